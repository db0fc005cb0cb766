"""The one reader of items: own file, the benchmark's own file or a data set, checked row by row.

Broken data are the user's to mend, so every error names the file, the row and the field.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from harness.core import resources
from harness.core.errors import UsageError
from harness.core.hub import DataSet, parse_data, read_data_set
from harness.core.keys import sha256_of
from harness.core.task import TaskRequest

Row = TypeVar("Row", bound=msgspec.Struct)

_AT = re.compile(r" - at `\$\.?(?P<field>.*)`$")
_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]+)`")


class Table(msgspec.Struct, Generic[Row], frozen=True, kw_only=True):
    """The rows of a task and where they came from.

    Attributes
    ----------
    rows : list of Row
        At least one.
    sha256 : str
        Hex digest of the file's bytes; for a data set, of the rows' canonical JSON.
    origin : pathlib.Path or DataSet
        The file, or the data set without its rows.
    own : bool
        They are own items.
    """

    rows: list[Row]
    sha256: str
    origin: Path | DataSet
    own: bool

    @property
    def split(self) -> str:
        """The split's name, for rows that have no name of their own; a file is a test split."""
        return (self.origin.split if isinstance(self.origin, DataSet) else "") or "test"

    def error(self, position: int, name: object, field: str, why: str) -> UsageError:
        """Make the error for a row whose content is wrong; see `row_error`."""
        return row_error(self.origin, position, name, field, why)

    def info(self, own: Mapping[str, str], upstream: Mapping[str, str]) -> dict[str, Any]:
        """Say what was read, for a task's `info`.

        Parameters
        ----------
        own, upstream : mapping
            `benchmark`, `license`, `source` of own items and of the benchmark's own files.

        Returns
        -------
        dict
            One of the two with `dataset_sha256`; for a data set, its own words and `data`: id or
            folder, revision, commit, config and split.
        """
        if isinstance(self.origin, DataSet):
            read, spec = self.origin, self.origin.spec
            data = {"name": spec.name, "revision": spec.revision, "commit": read.commit,
                    "config": read.config, "split": read.split}  # fmt: skip
            said = {"benchmark": f"{upstream['benchmark']}, from a data set",
                    "license": "the data set's own", "source": str(spec), "data": data}  # fmt: skip
            return {**said, "dataset_sha256": self.sha256}
        return {**(own if self.own else upstream), "dataset_sha256": self.sha256}


def read_table(
    request: TaskRequest, row: type[Row], own: str, upstream: Callable[[Path], Path]
) -> Table[Row]:
    """Read the rows that a task is asked for.

    Parameters
    ----------
    request : TaskRequest
        With `data`, a data set; with `data_root`, the benchmark's own files; else own items.
    row : type
        A msgspec struct, see `read_rows`; the columns of a data set are named as its fields.
    own : str
        The own file below ``data/``.
    upstream : callable
        From `data_root` to the benchmark's own file.

    Returns
    -------
    Table

    Raises
    ------
    UsageError
        For anything that cannot be read, naming place, row and field.
    HarnessError
        The hub cannot be reached, or a package is missing.
    """
    if request.data is not None:
        if request.data_root is not None:
            raise UsageError("give --data or --data-root, not both")
        return _from_data_set(request.data, row)
    root = request.data_root
    path = upstream(root) if root is not None else resources.data(own)
    rows, sha256 = read_rows(path, row)
    return Table(rows=rows, sha256=sha256, origin=path, own=root is None)


def _from_data_set(text: str, row: type[Row]) -> Table[Row]:
    fields = msgspec.structs.fields(row)
    read = read_data_set(parse_data(text), [field.encode_name for field in fields])
    for field in fields:
        if field.required and field.encode_name not in read.columns:
            there = ", ".join(read.columns) or "none"
            raise UsageError(
                f"{_place(read)} has no column {field.encode_name!r}: its columns are {there}"
            )
    # By way of JSON, so that the same is allowed as in a file.
    decode, rows = msgspec.json.Decoder(row).decode, []
    for position, raw in enumerate(map(msgspec.json.encode, read.rows)):
        try:
            rows.append(decode(raw))
        except (msgspec.DecodeError, RecursionError) as error:
            name = _name_of(msgspec.Raw(raw))
            raise UsageError(f"{_place(read, position, name)}: {_in_words(error)}") from error
    origin = msgspec.structs.replace(read, rows=[])
    return Table(rows=rows, sha256=sha256_of(msgspec.to_builtins(rows)), origin=origin, own=False)


def read_rows(path: Path, row: type[Row]) -> tuple[list[Row], str]:
    """Read all rows of a file.

    Parameters
    ----------
    path : pathlib.Path
        ``*.jsonl``: one object a line, empty lines are passed over. Anything else: one JSON list.
    row : type
        A msgspec struct; types are strict (``true`` is no integer), fields it does not name are
        allowed and ignored.

    Returns
    -------
    rows : list of Row
        In the order of the file, at least one.
    sha256 : str
        Hex digest of the file's bytes.

    Raises
    ------
    UsageError
        The file is missing or no JSON, it has no rows, or a row lacks a field or has one of the
        wrong type. The message names file, row and field.
    """
    raw = _read(path)
    body = raw.removeprefix(b"\xef\xbb\xbf")
    try:
        body.decode()
    except UnicodeDecodeError as error:
        line = body[: error.start].count(b"\n") + 1
        raise UsageError(f"{path}:{line}: not UTF-8 text") from error
    rows = _lines(path, body, row) if path.suffix == ".jsonl" else _list(path, body, row)
    if not rows:
        raise UsageError(f"{path} has no rows: give a file with at least one item")
    return rows, hashlib.sha256(raw).hexdigest()


def row_error(
    origin: Path | DataSet, position: int, name: object, field: str, why: str
) -> UsageError:
    """Make the error for a row whose content is wrong though its types are right.

    Parameters
    ----------
    origin : pathlib.Path or DataSet
        Where the row stands.
    position : int
        0-based position of the row among all rows.
    name : object
        The row's own id, as it stands in the file.
    field, why : str
        Which field, and what is wrong with it.
    """
    return UsageError(f"{_place(origin, position, name)}: field {field!r}: {why}")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error


def _lines(path: Path, body: bytes, row: type[Row]) -> list[Row]:
    decode = msgspec.json.Decoder(row).decode
    rows = []
    for number, line in enumerate(body.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            rows.append(decode(line))
        except (msgspec.DecodeError, RecursionError) as error:
            raise UsageError(f"{path}:{number}: {_in_words(error)}") from error
    return rows


def _list(path: Path, body: bytes, row: type[Row]) -> list[Row]:
    try:
        return msgspec.json.decode(body, type=list[row])  # type: ignore[valid-type]
    except (msgspec.DecodeError, RecursionError) as error:
        raise _locate(path, body, row, error) from error


def _locate(path: Path, body: bytes, row: type[Row], error: Exception) -> UsageError:
    """Find the row that is to blame; only reached for a file that is broken somewhere."""
    try:
        rows = msgspec.json.decode(body, type=list[msgspec.Raw])
    except (msgspec.DecodeError, RecursionError) as no_list:
        byte = re.search(r"\(byte (\d+)\)", str(no_list))
        line = body[: int(byte[1])].count(b"\n") + 1 if byte else 1
        return UsageError(f"{path}:{line}: {_in_words(no_list)}")
    for position, raw in enumerate(rows):
        try:
            msgspec.json.decode(raw, type=row)
        except (msgspec.DecodeError, RecursionError) as first:
            return UsageError(f"{_place(path, position, _name_of(raw))}: {_in_words(first)}")
    return UsageError(f"{path}: {_in_words(error)}")


def _place(origin: Path | DataSet, position: int | None = None, name: object = None) -> str:
    """Name a row the way it is found: a line of JSON lines, else its number among all rows."""
    item = "" if name is None else f" (item {name})"
    if isinstance(origin, DataSet):
        split = f", split {origin.split}" if origin.split and not origin.spec.split else ""
        row = "" if position is None else f": row {position + 1}"
        return f"--data {origin.spec}{split}{row}{item}"
    assert position is not None
    if origin.suffix == ".jsonl":
        lines = origin.read_bytes().split(b"\n")
        filled = [number for number, line in enumerate(lines, 1) if line.strip()]
        return f"{origin}:{filled[position]}{item}"
    return f"{origin}: row {position + 1}{item}"


def _name_of(raw: msgspec.Raw) -> object:
    row: Any = msgspec.json.decode(raw)
    if not isinstance(row, dict):
        return None
    return row.get("item_id", row.get("id"))


def _in_words(error: Exception) -> str:
    """Say in one line what msgspec found, with the field first.

    Examples
    --------
    >>> _in_words(msgspec.ValidationError("Expected `str`, got `int` - at `$.answer`"))
    "field 'answer': expected str, got int"
    >>> _in_words(msgspec.ValidationError("Object missing required field `answer`"))
    "field 'answer' is missing"
    """
    text = str(error)
    if not isinstance(error, msgspec.ValidationError):
        return f"not valid JSON: {text}"
    at = _AT.search(text)
    outer = at["field"] if at else ""
    text = text[: at.start()] if at else text
    if missing := _MISSING.fullmatch(text):
        # A path such as "[0].answer" only repeats the row that is named already.
        return f"field {missing['name']!r} is missing" + (f" in {outer!r}" if outer else "")
    text = text.replace("`", "")
    text = text[0].lower() + text[1:]
    return f"field {outer!r}: {text}" if outer else text
