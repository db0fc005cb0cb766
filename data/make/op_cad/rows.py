"""Rows of `sequences.jsonl`, and the counts that the set must reach."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import code, text
from .draw import Drawn, draw
from .families import FAMILIES
from .records import CUT, REVOLVE, opened

LENGTHS = range(2, 9)
FIRST_ID = 90001
"""Ids of groups start here, outside upstream's range."""
ROUND = len(FAMILIES) * len(LENGTHS)
LEAST = {
    "extrude_add": 40, "extrude_cut": 60, "revolve": 20, "chamfer": 30, "fillet": 30,
    "of_each_length": 6, "with_two_base_operations": 8,
}  # fmt: skip
"""What a set of 60 sequences or more must hold at least."""
MOST_TWO_DISTANCES = 0.1


def sequences(count: int, seed: int) -> Iterator[Drawn]:
    """Draw so many sequences: each family with each length, in turns.

    Two sequences never end with the same solid: the second one is drawn again.
    """
    names = list(FAMILIES)
    seen: set[str] = set()
    for k in range(count):
        turn, at = divmod(k, ROUND)
        family, shift = names[at % len(names)], at // len(names)
        length = LENGTHS[(at + shift) % len(LENGTHS)]
        again = 0
        while (made := draw(seed + 10**6 * turn + 10**9 * again, family, length)).digest in seen:
            again += 1
        seen.add(made.digest)
        yield made


def row(made: Drawn, number: int) -> dict[str, Any]:
    """Make the row of a sequence; `script_part` of all its steps, joined, is its `script`."""
    group = f"{FIRST_ID + number}_index_1"
    steps = [
        {
            "group_index": f"{group}/step{k}", "op": step.op, "kinds": list(step.kinds),
            "records": step.records, "instruction": step.instruction,
            "header_instruction": text.header(step.kinds), "code": step.code,
            "script_part": step.part, "volume_change": _digits(step.change, 15),
            "volume": _digits(step.volume, 12),
        }
        for k, step in enumerate(made.steps)
    ]  # fmt: skip
    return {
        "group_id": group, "family": made.plan["family"], "plan": made.plan, "steps": steps,
        "script": code.script(made.parts),
    }  # fmt: skip


def counts(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Count sequences by family and length, steps by operation and kind, records by what they do."""
    steps = [step for one in rows for step in one["steps"]]
    does = Counter(_does(record) for step in steps for record in step["records"])
    does["chamfer_two_distances"] = sum(
        opened(record)[2].get("chamfer_type", 0) for step in steps for record in step["records"]
    )
    found = {
        "family": Counter(one["family"] for one in rows),
        "length": Counter(str(len(one["steps"])) for one in rows),
        "op": Counter(step["op"] for step in steps),
        "kind": Counter(kind for step in steps for kind in step["kinds"]),
        "record": does,
        "two": Counter(
            "with_two_base_operations" for one in rows
            if any(len(step["records"]) > 1 for step in one["steps"])
        ),
    }  # fmt: skip
    return {name: dict(sorted(counter.items())) for name, counter in found.items()}


def lacking(found: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Say of a set's counts where they stay under the least."""
    does = found["record"]
    have = {
        "extrude_add": does.get("extrude_add", 0), "extrude_cut": does.get("extrude_cut", 0),
        "revolve": does.get("revolve_add", 0) + does.get("revolve_cut", 0),
        "chamfer": does.get("chamfer", 0), "fillet": does.get("fillet", 0),
        "of_each_length": min(found["length"].get(str(n), 0) for n in LENGTHS),
        "with_two_base_operations": found["two"].get("with_two_base_operations", 0),
    }  # fmt: skip
    told = [f"{k}: {have[k]} of {least}" for k, least in LEAST.items() if have[k] < least]
    if does["chamfer_two_distances"] > MOST_TWO_DISTANCES * does.get("chamfer", 0):
        told.append(f"chamfers with two distances: {does['chamfer_two_distances']} are too many")
    return told


def _does(record: dict[str, dict[str, Any]]) -> str:
    kind, _, body = opened(record)
    if "Profile" not in body:
        return kind.lower()
    side = "cut" if body["operation"] == CUT else "add"
    return f"{'revolve' if kind == REVOLVE else 'extrude'}_{side}"


def _digits(value: float, digits: int) -> float:
    """Keep what does not depend on the machine."""
    return float(format(value, f".{digits}g"))
