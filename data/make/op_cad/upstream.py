"""Writes sequences in the folder form of upstream's data, so that a loader meets it without a download."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cadquery as cq

from scorers.op_cad.kit import solids

from . import code, kernel
from .records import CHAMFER, EXTRUDE, FILLET, REVOLVE, Record, opened

Rows = Sequence[Mapping[str, Any]]


def write(rows: Rows, folder: Path, *, step_files: bool = False) -> None:
    """Write the folder.

    Parameters
    ----------
    rows
        Of `sequences.jsonl`.
    folder : Path
    step_files : bool
        The solids as well, as STEP; they are not the same byte for byte twice.
    """
    folder.mkdir(parents=True, exist_ok=True)
    steps = [step for one in rows for step in one["steps"]]
    _table(folder / "prompt.csv", ["group_index", "prompt_text", "op"], [
        [step["group_index"], step["instruction"], step["op"]] for step in steps
    ])  # fmt: skip
    _table(folder / "duplicates.csv", ["group_index", "duplicate_of_group_index"], [])
    fifth = [one["group_id"] for one in rows[::5]]
    split: dict[str, list[str]] = {"train": [], "test": []}
    for step in steps:
        part = "test" if step["group_index"].split("/")[0] in fifth else "train"
        split[part].append(step["group_index"])
    (folder / "split_result.json").write_text(json.dumps(split, indent=1) + "\n")
    full = "".join(json.dumps(_full(one)) + "\n" for one in rows)
    (folder / "full_sequence.jsonl").write_text(full)
    for one in rows:
        _code(one, folder)
        _built(one, folder, step_files=step_files)


def file_name(group_index: str) -> str:
    """Give the name of a step's file: `90001_index_1_step0.py`.

    Examples
    --------
    >>> file_name("90001_index_1/step0")
    '90001_index_1_step0.py'
    """
    return group_index.replace("/", "_") + ".py"


def _table(path: Path, head: Sequence[str], found: Sequence[Sequence[str]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([head, *found])


def _full(one: Mapping[str, Any]) -> dict[str, Any]:
    steps = one["steps"]
    last = steps[-1]["group_index"]
    said = ("group_index", "instruction", "header_instruction", "op")
    return {
        "group_id": one["group_id"], "group_index": last, "max_step": len(steps) - 1,
        "num_steps": len(steps), "pre_code_path": f"full_pre_code/{file_name(last)}",
        "pre_code_exists": True,
        "instructions": [
            {"step": k, **{name: step[name] for name in said}} for k, step in enumerate(steps)
        ],
    }  # fmt: skip


def _code(one: Mapping[str, Any], folder: Path) -> None:
    parts = [step["script_part"] for step in one["steps"]]
    told = [step["instruction"] for step in one["steps"]]
    for k, step in enumerate(one["steps"]):
        plain = code.pre_code(parts, k)
        texts = {
            "pre_code": plain, "pre_code_cop": code.pre_code_cop(parts, told, k),
            "full_pre_code": plain,
        }  # fmt: skip
        for name, text in texts.items():
            (folder / name).mkdir(exist_ok=True)
            (folder / name / file_name(step["group_index"])).write_text(text)


def _built(one: Mapping[str, Any], folder: Path, *, step_files: bool) -> None:
    """Write what needs the kernel: the true edges, and the solids."""
    group = folder / "step_files" / one["group_id"]
    group.mkdir(parents=True, exist_ok=True)
    info = []
    scope: dict[str, Any] = {}
    for k, step in enumerate(one["steps"]):
        keys = [key for record in step["records"] for key in record]
        bases = [{int(key.rpartition(" ")[2]): key} for key in keys]
        info.append(f"step{k}: {bases}")
        kernel.run(step["script_part"], scope)
        for record in step["records"]:
            kind, number, _ = opened(record)
            if kind in (FILLET, CHAMFER):
                place = folder / "gt_edges_json" / one["group_id"] / f"step{k}"
                place.mkdir(parents=True, exist_ok=True)
                found = _edges(record, step["group_index"], scope)
                (place / f"{kind}_{number}.json").write_text(json.dumps(found, indent=1) + "\n")
        if step_files:
            _solids(step, k, group, scope)
    (group / "group_info.txt").write_text("\n".join(info) + "\n")


def _edges(record: Record, group_index: str, scope: Mapping[str, Any]) -> dict[str, Any]:
    kind, number, body = opened(record)
    base = scope[f"base_{number}"].val()
    all_ = base.Edges()
    edges, calls = [], []
    if kind == FILLET:
        sizes = {"radius": body["radius"]}
    else:
        sizes = {"d1": body["distance_one"], "d2": body["distance_two"]}
    for place in body["edge"]:
        (chosen,) = cq.Workplane(base).edges(_nearest(place)).vals()
        at = next(k for k, edge in enumerate(all_) if edge.isSame(chosen))
        edges.append({"edge_index": at, **solids.edge(chosen)})
        calls.append(
            {
                "base_var": f"base_{number}",
                "selector_point": place,
                "op": kind.lower(),
                "params": sizes,
            }
        )
    return {
        "group_index": group_index, "op_tag": f"{kind} {number}", "op_kind": kind.lower(),
        "selector_points": body["edge"], "num_edges": len(edges), "edges": edges, "calls": calls,
        **sizes,
    }  # fmt: skip


def _nearest(place: Sequence[float]) -> Any:
    return cq.NearestToPointSelector(tuple(place))  # type: ignore[no-untyped-call]


def _solids(step: Mapping[str, Any], k: int, group: Path, scope: Mapping[str, Any]) -> None:
    numbers = "_".join(str(opened(record)[1]) for record in step["records"])
    found = {f"{numbers}/next_model.step": scope[f"result_{k}"]}
    if opened(step["records"][0])[0] in (EXTRUDE, REVOLVE):
        asked = dict(scope)
        kernel.run(step["code"], asked)
        found[f"step{numbers}/3D.step"] = asked["shape"]
    for name, work in found.items():
        (group / name).parent.mkdir(parents=True, exist_ok=True)
        cq.exporters.export(work, str(group / name))
