"""Reading sequences of Op-CAD: own items, or upstream's folder."""

from __future__ import annotations

import ast
import csv
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from harness.core.errors import UsageError
from harness.core.resources import data
from harness.core.task import TaskRequest
from tasks.readers import read_rows

OPS = ("extrude", "revolve", "chamfer_fillet")
_INDEX = re.compile(r"(\d+_index_\d+)/step(\d+)")
_GT_SIZES = ("radius", "d1", "d2")


class Step(Struct, frozen=True, kw_only=True):
    """An operation of a part.

    Attributes
    ----------
    group_index : str
        ``90001_index_1/step0``.
    op : {"extrude", "revolve", "chamfer_fillet"}
    instruction : str
    before, before_cop : str
        The code so far, without and with each step's instruction as a comment.
    truth : str
        The true code in the form asked for; empty where only solids are known.
    truth_files : dict of str to str
        STEP files below the root, by ``result`` and ``shape``.
    truth_calls : list of dict
        The true fillets and chamfers, where only solids are known.
    change : float, optional
        By how much it changes the volume, mm³.
    """

    group_index: str
    op: str
    instruction: str
    before: str
    before_cop: str
    truth: str = ""
    truth_files: dict[str, str] = {}
    truth_calls: list[dict[str, Any]] = []
    change: float | None = None

    @property
    def number(self) -> int:
        """Its number within the part, from 0."""
        return place_of(self.group_index)[1]


class Part(Struct, frozen=True, kw_only=True):
    """A part: its steps in order, the script of the whole where it is known, its family."""

    group_id: str
    steps: tuple[Step, ...]
    script: str = ""
    family: str = ""


class Loaded(Struct, frozen=True):
    """Parts, the hash of all that was read, the root of their files, and whether they are own items."""

    parts: list[Part]
    sha256: str
    root: Path | None
    own: bool


class _OwnStep(Struct, kw_only=True):
    group_index: str
    op: str
    instruction: str
    code: str
    script_part: str
    volume_change: float


class _OwnRow(Struct, kw_only=True):
    group_id: str
    family: str
    steps: list[_OwnStep]
    script: str


def load(request: TaskRequest) -> Loaded:
    """Read the parts that are asked for.

    Raises
    ------
    UsageError
        The folder holds none, or a file in it cannot be read.
    """
    if request.data_root is not None:
        return _of_folder(request.data_root)
    rows, digest = read_rows(data("op_cad") / "sequences.jsonl", _OwnRow)
    return Loaded([_own(row) for row in rows], digest, None, own=True)


def place_of(group_index: str) -> tuple[str, int]:
    """Take a step's name apart.

    Raises
    ------
    UsageError
        It is none.

    Examples
    --------
    >>> place_of("00003_index_4/step1")
    ('00003_index_4', 1)
    """
    found = _INDEX.fullmatch(group_index)
    if found is None:
        raise UsageError(f"{group_index!r} is no step: it must read like 00003_index_4/step1")
    return found[1], int(found[2])


def _own(row: _OwnRow) -> Part:
    steps, so_far, told = [], "", ""
    for number, step in enumerate(row.steps):
        steps.append(Step(
            group_index=step.group_index, op=step.op, instruction=step.instruction, before=so_far,
            before_cop=told, truth=step.code, change=step.volume_change,
        ))  # fmt: skip
        so_far += ("\n" if so_far else "") + step.script_part
        told += f"{chr(10) if told else ''}## step{number}: {step.instruction}\n{step.script_part}"
    return Part(group_id=row.group_id, steps=tuple(steps), script=row.script, family=row.family)


def read_split(path: Path) -> dict[str, list[str]]:
    """Read ``split_result.json``: names of steps by part of the data; a part may be a dict of lists.

    Raises
    ------
    UsageError
        It is no such file.
    """
    found = _json(path)
    if not isinstance(found, dict):
        raise UsageError(f"{path} is no object of lists")
    split = {}
    for name, ids in found.items():
        lists = list(ids.values()) if isinstance(ids, dict) else [ids]
        if not all(isinstance(one, list) and all(isinstance(i, str) for i in one) for one in lists):
            raise UsageError(f"{path}: {name} is neither a list of names nor a dict of such lists")
        split[name] = [i for one in lists for i in one]
    return split


def read_results(path: Path) -> list[dict[str, str]]:
    """Read a table of upstream's results, with what each row says of the program (``class``).

    A fault of the model's service (``gen_error``) says nothing about a program, though upstream counts
    it as one that cannot be run.
    """
    rows = list(_table(path))
    for row in rows:
        if row.get("gen_error"):
            row["class"] = "api_fault"
        else:
            row["class"] = "valid" if row.get("exec_ok_full") == "1" else "invalid"
    return rows


def _of_folder(root: Path) -> Loaded:
    """Read upstream's folder: the part `test` of its split where there is one, else all."""
    prompts = root / "prompt.csv"
    if not prompts.is_file():
        raise UsageError(f"{root} holds no Op-CAD data: prompt.csv is not there")
    digest = hashlib.sha256(prompts.read_bytes())
    rows = list(_table(prompts))
    for number, row in enumerate(rows, 2):
        if row.get("op") not in OPS or not row.get("prompt_text"):
            raise UsageError(
                f"{prompts}:{number}: op must be one of {', '.join(OPS)}, with prompt_text"
            )
        place_of(row["group_index"])
    kept: set[str] | None = None
    if (split := root / "split_result.json").is_file():
        kept = set(read_split(split).get("test", [])) or None
    twins = {row["group_index"] for name in ("duplicates.csv", "dedup.csv")
             if (root / name).is_file() for row in _table(root / name)}  # fmt: skip
    by_group: dict[str, list[Step]] = {}
    for row in rows:
        if (kept is None or row["group_index"] in kept) and row["group_index"] not in twins:
            step = _step(root, row)
            digest.update(msgspec.json.encode(step))
            by_group.setdefault(place_of(row["group_index"])[0], []).append(step)
    parts = [
        Part(group_id=name, steps=tuple(sorted(steps, key=lambda step: step.number)))
        for name, steps in by_group.items()
    ]
    if not parts:
        raise UsageError(f"{root}: no step of prompt.csv is left by split_result.json")
    return Loaded(parts, digest.hexdigest(), root, own=False)


def _step(root: Path, row: Mapping[str, str]) -> Step:
    group, number = place_of(row["group_index"])
    file = f"{group}_step{number}.py"
    names = _bases(root / "step_files" / group / "group_info.txt", number)
    joined = "_".join(names)
    folder = Path("step_files") / group
    files = {"result": folder / joined / "next_model.step"}
    if row["op"] != "chamfer_fillet":
        alone = [folder / f"step{sep.join(names)}" / "3D.step" for sep in ("_", "-", ",")]
        files["shape"] = next((one for one in alone if (root / one).is_file()), alone[0])
    for name in files.values():
        if not (root / name).is_file():
            raise UsageError(f"{row['group_index']}: the true solid {root / name} is not there")
    return Step(
        group_index=row["group_index"], op=row["op"], instruction=row["prompt_text"],
        before=_text(root / "pre_code" / file), before_cop=_text(root / "pre_code_cop" / file),
        truth_files={name: path.as_posix() for name, path in files.items()},
        truth_calls=list(_calls(root / "gt_edges_json" / group / f"step{number}")),
    )  # fmt: skip


def _bases(path: Path, number: int) -> list[str]:
    """Give the numbers of a step's base operations, from ``stepK: [{1: 'Fillet 1'}, …]``."""
    for line in _text(path).splitlines():
        head, _, tail = line.partition(":")
        if head.strip() == f"step{number}":
            try:
                found = ast.literal_eval(tail.strip())
                return [str(key) for one in found for key in one]
            except (ValueError, SyntaxError, TypeError) as error:
                raise UsageError(f"{path}: the line of step{number} cannot be read") from error
    raise UsageError(f"{path} has no line of step{number}")


def _calls(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*.json")):
        found = _json(path)
        try:
            yield {
                "op": found["op_kind"],
                "sizes": [float(found[name]) for name in _GT_SIZES if name in found],
                "edges": [
                    {name: edge[name] for name in ("geomType", "center", "length", "vertices")}
                    for edge in found["edges"]
                ],
            }
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"{path} names no edges: {error}") from error


def _table(path: Path) -> Iterator[dict[str, str]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        for number, row in enumerate(csv.DictReader(file), 2):
            if None in row or "group_index" not in row or None in row.values():
                raise UsageError(f"{path}:{number}: not a row of the table's columns")
            yield row


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {type(error).__name__}") from error


def _json(path: Path) -> Any:
    try:
        return json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no JSON") from error
