"""Reading tasks of Rule2DRC: own items, upstream's data set, or upstream's folder; strict about labels."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
from msgspec import Struct

from harness.core.errors import HarnessError, UsageError
from harness.core.hub import parse_data
from harness.core.keys import sha256_of
from harness.core.task import TaskRequest
from tasks.readers import Table, read_table

OWN_FOLDER = "rule2drc"


class TaskRow(Struct, kw_only=True):
    """A row of the config `tasks`; own rows have `metadata` as an object."""

    problem_id: str
    spec_yaml: str
    gold_drc: str
    labels_csv: str
    prompt: str = ""
    metadata: str | dict[str, Any] | None = None


class LayoutRow(Struct, kw_only=True):
    """A row of the config `testcases`; the file stands under `gds` or `gds_bytes`."""

    problem_id: str
    gds_path: str = ""
    filename: str = ""
    label: str | int | None = None
    labels_json: str | dict[str, int] | None = None
    gds: bytes | None = None
    gds_bytes: bytes | None = None
    split_hint: str | None = None

    @property
    def path(self) -> str:
        """Its name within the task."""
        return self.gds_path or self.filename

    @property
    def content(self) -> bytes | None:
        """The file's bytes."""
        return self.gds if self.gds is not None else self.gds_bytes


class Layout(Struct, frozen=True):
    """A labelled layout: its original name, its bytes, a label for each category in order."""

    name: str
    gds: bytes
    labels: tuple[int, ...]


class Problem(Struct, frozen=True, kw_only=True):
    """A task: the rule in words, its names, the deck that is right, and labelled layouts."""

    problem_id: str
    title: str
    text: str
    layers: dict[str, tuple[int, int]]
    rules: tuple[tuple[str, str], ...]
    categories: tuple[str, ...]
    gold: str
    layouts: tuple[Layout, ...]
    metadata: dict[str, Any]


class Loaded(Struct, frozen=True):
    """The problems, the hash of all that was read, and whether they are own items."""

    problems: list[Problem]
    sha256: str
    own: bool
    info: dict[str, Any]


def load(request: TaskRequest, own: Mapping[str, str], upstream: Mapping[str, str]) -> Loaded:
    """Read the tasks that are asked for.

    Parameters
    ----------
    request : TaskRequest
        With `data`: a data set with upstream's two configs; with `data_root`: a folder with
        ``tasks.jsonl`` and ``testcases.jsonl``, or upstream's repository (``problems/ID/spec.yaml``);
        else own items.
    own, upstream : mapping
        What to say of either.

    Raises
    ------
    UsageError
        For anything that cannot be read, with the file or row.
    HarnessError
        PyYAML is missing.
    """
    root = request.data_root
    if root is not None and request.data is None and not (root / "tasks.jsonl").is_file():
        problems = list(_of_folder(root))
        return Loaded(
            problems, sha256_of(msgspec.to_builtins(problems)), own=False, info=dict(upstream)
        )
    tasks = _table(request, "tasks", TaskRow)
    cases = _table(request, "testcases", LayoutRow)
    by_task: dict[str, list[LayoutRow]] = {}
    for row in cases.rows:
        by_task.setdefault(row.problem_id, []).append(row)
    problems, seen = [], set[str]()
    for position, row in enumerate(tasks.rows):
        if row.problem_id in seen:
            raise tasks.error(position, row.problem_id, "problem_id", "is used twice")
        seen.add(row.problem_id)
        problems.append(_problem(row, by_task.pop(row.problem_id, [])))
    if by_task:
        raise UsageError(f"{cases.origin}: layouts of {next(iter(by_task))!r}, which is no task")
    info = tasks.info(own, upstream)
    return Loaded(problems, sha256_of([tasks.sha256, cases.sha256]), own=tasks.own, info=info)


def _table(request: TaskRequest, config: str, row: type[Any]) -> Table[Any]:
    if request.data is not None:
        spec = parse_data(request.data)
        if spec.config not in ("", None, "tasks", "testcases"):
            raise UsageError(
                f"--data {request.data}: leave config out, tasks and testcases are read"
            )
        request = msgspec.structs.replace(
            request, data=str(msgspec.structs.replace(spec, config=config))
        )
    return read_table(
        request, row, f"{OWN_FOLDER}/{config}.jsonl", lambda root: root / f"{config}.jsonl"
    )


def _problem(row: TaskRow, cases: Sequence[LayoutRow]) -> Problem:
    where = f"task {row.problem_id!r}"
    spec = _spec(row.spec_yaml, f"{where}: spec_yaml")
    categories = _categories(spec, where)
    files: dict[str, bytes] = {}
    for case in cases:
        if case.content is None:
            raise UsageError(f"{where}: the layout {case.path!r} has neither gds nor gds_bytes")
        if not case.path or case.path in files:
            raise UsageError(
                f"{where}: a layout has no name, or one that is used twice ({case.path!r})"
            )
        files[case.path] = case.content
    labels = read_labels(row.labels_csv, categories, files, where)
    for case in cases:
        said = _json(case.labels_json, where)
        if said and tuple(said.get(name) for name in categories) != labels[case.path]:
            raise UsageError(
                f"{where}: labels_json of {case.path!r} is {said}, its row in labels_csv "
                f"{dict(zip(categories, labels[case.path], strict=True))}"
            )
    layouts = tuple(Layout(name, files[name], labels[name]) for name in files)
    return _made(
        row.problem_id, spec, categories, row.gold_drc, layouts, _json(row.metadata, where)
    )


def _of_folder(root: Path) -> Iterable[Problem]:
    """Read upstream's repository: one folder a task below ``problems``."""
    found = sorted(root.glob("problems/*/spec.yaml"))
    if not found:
        raise UsageError(
            f"{root} holds no tasks of Rule2DRC: neither tasks.jsonl with testcases.jsonl nor "
            "problems/ID/spec.yaml"
        )
    for path in found:
        problem_id = path.parent.name
        where = str(path)
        spec = _spec(_text(path), where)
        categories = _categories(spec, where)
        deck = root / str(spec.get("deck") or f"gold/{problem_id}.drc")
        folder = root / str(spec.get("data_dir") or f"problems/{problem_id}/data/gds")
        folder = folder if (folder / "labels.csv").is_file() else folder / "gds"
        files = {
            file.relative_to(folder).as_posix(): file.read_bytes()
            for file in sorted(folder.glob("**/*"))
            if file.suffix in (".gds", ".oas")
        }
        text = _text(folder / "labels.csv")
        labels = read_labels(text, categories, files, str(folder / "labels.csv"))
        layouts = tuple(Layout(name, files[name], labels[name]) for name in files)
        yield _made(problem_id, spec, categories, _text(deck), layouts, {})


def read_labels(
    text: str, categories: Sequence[str], files: Iterable[str], where: str
) -> dict[str, tuple[int, ...]]:
    """Read ``labels.csv``: which layout violates which category.

    Parameters
    ----------
    text : str
        Header ``filename`` and the categories; 0 or 1 in each column. A file is named as in `files`
        or by a longer path that ends in such a name.
    categories : sequence of str
    files : iterable of str
        Names of the layouts that are there.
    where : str
        What to call it in an error.

    Returns
    -------
    dict of str to tuple of int
        By name, in the order of `categories`.

    Raises
    ------
    UsageError
        A missing or further column, a file without a row, a row without a file or with another
        value.
    """
    rows = list(csv.reader(io.StringIO(text.lstrip("\ufeff"))))
    head = rows[0] if rows else []
    if not head or head[0] != "filename" or sorted(head[1:]) != sorted(categories):
        raise UsageError(
            f"{where}: the columns of the labels are {head}, they must be filename and {list(categories)}"
        )
    known = list(files)
    found: dict[str, tuple[int, ...]] = {}
    for number, row in enumerate(rows[1:], 2):
        if not row:
            continue
        if len(row) != len(head) or any(value not in ("0", "1") for value in row[1:]):
            raise UsageError(
                f"{where}: line {number} of the labels does not hold 0 or 1 per category"
            )
        name = _file_of(row[0], known)
        if name is None or name in found:
            what = "is no layout that is there" if name is None else "stands twice"
            raise UsageError(f"{where}: line {number} of the labels: {row[0]!r} {what}")
        values = dict(zip(head[1:], map(int, row[1:]), strict=True))
        found[name] = tuple(values[category] for category in categories)
    if lacking := [name for name in known if name not in found]:
        raise UsageError(f"{where}: the layout {lacking[0]!r} has no row of labels")
    return found


def _file_of(said: str, known: Sequence[str]) -> str | None:
    """Find the layout that a row means: its name, or the only one that the said path ends in."""
    if said in known:
        return said
    parts = PurePosixPath(said).parts
    ends = [
        name
        for name in known
        if parts[-len(PurePosixPath(name).parts) :] == PurePosixPath(name).parts
    ]
    longer = [name for name in known if PurePosixPath(name).parts[-len(parts) :] == parts]
    fitting = ends or longer
    return fitting[0] if len(fitting) == 1 else None


def _made(
    problem_id: str, spec: Mapping[str, Any], categories: Sequence[str], gold: str,
    layouts: tuple[Layout, ...], metadata: dict[str, Any],
) -> Problem:  # fmt: skip
    if not layouts:
        raise UsageError(f"task {problem_id!r} has no layouts")
    _check_files(problem_id, layouts, metadata.get("dbu"))
    rules = spec.get("rules") or [{"text": name, "category": name} for name in categories]
    return Problem(
        problem_id=problem_id,
        title=str(spec.get("title") or problem_id),
        text=str(spec["nl_description"]),
        layers={str(name): (int(at[0]), int(at[1])) for name, at in spec["layers"].items()},
        rules=tuple((str(rule["text"]), str(rule["category"])) for rule in rules),
        categories=tuple(categories),
        gold=gold,
        layouts=layouts,
        metadata=metadata,
    )


def _check_files(problem_id: str, layouts: Sequence[Layout], dbu: float | None) -> None:
    """Refuse a layout that no deck could be run on: the deck would be blamed for it.

    Without the package that reads layouts nothing is checked, and nothing can be judged either.
    """
    if importlib.util.find_spec("klayout") is None:
        return
    from scorers.drc.layout import BadLayoutError, open_layout

    for layout in layouts:
        try:
            open_layout(layout.gds, f"task {problem_id!r}: the layout {layout.name}", dbu)
        except BadLayoutError as error:
            raise UsageError(str(error)) from error


def _spec(text: str, where: str) -> dict[str, Any]:
    try:
        import yaml
    except ImportError as error:
        raise HarnessError("Rule2DRC needs PyYAML: pip install 'bridge-harness[drc]'") from error
    try:
        spec = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise UsageError(f"{where} is no YAML: {str(error).splitlines()[0]}") from error
    if not isinstance(spec, dict) or not isinstance(spec.get("layers"), dict):
        raise UsageError(f"{where} has no layers")
    if not isinstance(spec.get("nl_description"), str):
        raise UsageError(f"{where} has no nl_description")
    for name, at in spec["layers"].items():
        if not (isinstance(at, list) and len(at) == 2 and all(type(n) is int for n in at)):
            raise UsageError(f"{where}: layer {name} is {at}, it must be [layer, datatype]")
    return spec


def _categories(spec: Mapping[str, Any], where: str) -> tuple[str, ...]:
    named = [str(rule.get("category")) for rule in spec.get("rules") or ()]
    named = named or [str(name) for name in spec.get("categories") or ()]
    if not named:
        raise UsageError(f"{where} names no category, neither in rules nor in categories")
    return tuple(dict.fromkeys(named))


def _json(value: Any, where: str) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else {}
        except ValueError as error:
            raise UsageError(f"{where}: {value[:60]!r} is no JSON") from error
    return value or {}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise UsageError(f"cannot read {path}: {why}") from error
