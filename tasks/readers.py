"""The one reader of item files: JSON lists and JSON lines, checked row by row.

A broken file is the user's to mend, so every error names the file, the row and the field.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from harness.core.errors import UsageError

Row = TypeVar("Row", bound=msgspec.Struct)

_AT = re.compile(r" - at `\$\.?(?P<field>.*)`$")
_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]+)`")


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


def row_error(path: Path, position: int, name: object, field: str, why: str) -> UsageError:
    """Make the error for a row whose content is wrong though its types are right.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    position : int
        0-based position of the row among all rows.
    name : object
        The row's own id, as it stands in the file.
    field, why : str
        Which field, and what is wrong with it.
    """
    return UsageError(f"{_place(path, position, name)}: field {field!r}: {why}")


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
        except msgspec.DecodeError as error:
            raise UsageError(f"{path}:{number}: {_in_words(error)}") from error
    return rows


def _list(path: Path, body: bytes, row: type[Row]) -> list[Row]:
    try:
        return msgspec.json.decode(body, type=list[row])  # type: ignore[valid-type]
    except msgspec.DecodeError as error:
        raise _locate(path, body, row, error) from error


def _locate(path: Path, body: bytes, row: type[Row], error: Exception) -> UsageError:
    """Find the row that is to blame; only reached for a file that is broken somewhere."""
    try:
        rows = msgspec.json.decode(body, type=list[msgspec.Raw])
    except msgspec.DecodeError as no_list:
        byte = re.search(r"\(byte (\d+)\)", str(no_list))
        line = body[: int(byte[1])].count(b"\n") + 1 if byte else 1
        return UsageError(f"{path}:{line}: {_in_words(no_list)}")
    for position, raw in enumerate(rows):
        try:
            msgspec.json.decode(raw, type=row)
        except msgspec.DecodeError as first:
            return UsageError(f"{_place(path, position, _name_of(raw))}: {_in_words(first)}")
    return UsageError(f"{path}: {_in_words(error)}")


def _place(path: Path, position: int, name: object) -> str:
    """Name a row the way an editor finds it: the line of JSON lines, else its number in the list."""
    if path.suffix == ".jsonl":
        lines = path.read_bytes().split(b"\n")
        filled = [number for number, line in enumerate(lines, 1) if line.strip()]
        return f"{path}:{filled[position]}" + ("" if name is None else f" (item {name})")
    return f"{path}: row {position + 1}" + ("" if name is None else f" (item {name})")


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
