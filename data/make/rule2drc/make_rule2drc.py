"""Make the own items of Rule2DRC: `python data/make/rule2drc/make_rule2drc.py [--seed N] [--count N] [--out DIR]`.

Writes into data/rule2drc, in the form of upstream's data set, a JSON object a line:

tasks.jsonl      51 tasks: 17 families, three draws each of threshold, layers, names and wording
testcases.jsonl  their layouts, 12 to 16 each, labelled by how they were drawn and never by running a deck
mutants.jsonl    decks that are wrong: each must score 0
pools.jsonl      candidates to choose from: ten decks of a task, one to three of them right
manifest.json    how many, and the SHA-256 of each file

`--check` runs every deck in KLayout and compares: gold right, mutants wrong, pools as they say. It takes minutes.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import io
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import distance
import relations
import shapes
import yaml
from frame import Canvas, Draw, Item
from mutants import mutants

FAMILIES = (
    distance.width, distance.space, distance.notch, distance.isolated, distance.separation, distance.enclosure,
    distance.overlap, shapes.area, shapes.hole_area, shapes.density, shapes.edge_length, shapes.angle, shapes.grid,
    relations.connectivity, relations.two_categories, relations.marker, relations.other_dbu,
)  # fmt: skip
OUT = Path(__file__).resolve().parents[2] / "rule2drc"
POOL = 10


def items(count: int, seed: int) -> Iterator[tuple[str, int, Item]]:
    """Make the items: so many draws of each family."""
    for family in FAMILIES:
        for number in range(count):
            name = family.__name__
            yield (
                f"own-drc-{name.replace('_', '-')}-{number + 1}",
                number,
                family(Draw(name, number % 3, seed + number // 3)),
            )


def layouts(item: Item) -> list[bytes]:
    """Draw the layouts of an item."""
    made = []
    for one in item.cases:
        canvas = Canvas(item.dbu)
        one.shapes(canvas)
        made.append(canvas.bytes())
    return made


def variants(item: Item) -> list[str]:
    """Write the gold deck in three ways that say the same."""
    head, _, body = item.gold.partition("\n\n")
    names = list(item.layers)
    renamed = item.gold
    for k, name in enumerate(names):
        renamed = renamed.replace(f"{name} = ", f"layer{k} = ").replace(
            f"\n{name}.", f"\nlayer{k}."
        )
        renamed = renamed.replace(f"({name}", f"(layer{k}").replace(f" {name}", f" layer{k}")
    commented = f"{head}\n\n# {item.title}\n{body}"
    return [item.gold, commented, renamed]


def pool(problem_id: str, item: Item) -> dict[str, Any]:
    """Draw a pool: ten candidates, one to three of them right."""
    rng = Random(f"pool/{problem_id}")
    right = rng.sample(variants(item), rng.randrange(1, 4))
    wrong = rng.sample(sorted(mutants(item).values()), POOL - len(right))
    order = rng.sample([(deck, 1) for deck in right] + [(deck, 0) for deck in wrong], POOL)
    return {
        "pool_id": f"{problem_id}-pool", "problem_id": problem_id, "candidates": [deck for deck, _ in order],
        "success": [good for _, good in order],
    }  # fmt: skip


def rows(count: int, seed: int) -> dict[str, list[dict[str, Any]]]:
    """Make all rows, by file."""
    made: dict[str, list[dict[str, Any]]] = {
        name: [] for name in ("tasks", "testcases", "mutants", "pools")
    }
    for problem_id, number, item in items(count, seed):
        files = {}
        for k, (one, data) in enumerate(zip(item.cases, layouts(item), strict=True)):
            side = "fail" if any(one.label) else "pass"
            path = f"problems/{problem_id}/data/gds/{side}/{k:02d}-{one.name.replace(' ', '-')}.gds"
            files[path] = (one, data)
            made["testcases"].append({
                "problem_id": problem_id, "gds_path": path, "label": side,
                "labels_json": json.dumps(dict(zip(item.categories, one.label, strict=True))),
                "gds": base64.b64encode(data).decode(),
            })  # fmt: skip
        made["tasks"].append({
            "problem_id": problem_id, "spec_yaml": _spec(problem_id, item), "gold_drc": item.gold,
            "labels_csv": _labels(item, list(files)),
            "metadata": {"family": item.family, "level": item.level, "dbu": item.dbu, "draw": number},
        })  # fmt: skip
        made["mutants"] += [
            {"problem_id": problem_id, "name": name, "deck": deck}
            for name, deck in mutants(item).items()
        ]
        made["pools"].append(pool(problem_id, item))
    return made


def _spec(problem_id: str, item: Item) -> str:
    spec = {
        "id": problem_id, "title": item.title, "nl_description": item.text,
        "layers": {name: list(at) for name, at in item.layers.items()},
        "rules": [{"text": text, "category": category} for text, category in item.rules],
        "categories": list(item.categories), "deck": f"gold/{problem_id}.drc",
        "data_dir": f"problems/{problem_id}/data/gds",
    }  # fmt: skip
    return str(yaml.safe_dump(spec, sort_keys=False, allow_unicode=True, width=10**6))


def _labels(item: Item, paths: list[str]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["filename", *item.categories])
    writer.writerows([path, *one.label] for path, one in zip(paths, item.cases, strict=True))
    return file.getvalue()


def files(count: int, seed: int) -> dict[str, bytes]:
    """Make the content of every file."""
    made = {
        f"{name}.jsonl": "".join(
            json.dumps(row, ensure_ascii=False) + "\n" for row in found
        ).encode()
        for name, found in rows(count, seed).items()
    }
    manifest = {
        "seed": seed,
        "draws": count,
        "files": {
            name: {"rows": content.count(b"\n"), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in made.items()
        },
    }
    return {**made, "manifest.json": json.dumps(manifest, indent=1).encode() + b"\n"}


def check(count: int, seed: int) -> int:
    """Run every deck in KLayout; print what is not as it should be, give how many are not."""
    from scorers.drc.klayout import KlayoutEngine
    from scorers.drc.verdict import verdict

    jobs = []
    for problem_id, _, item in items(count, seed):
        data, label = layouts(item), [one.label for one in item.cases]
        drawn = pool(problem_id, item)
        decks = [
            ("gold", item.gold, True),
            *((name, deck, False) for name, deck in mutants(item).items()),
        ]
        decks += [
            (f"candidate {k}", deck, bool(good))
            for k, (deck, good) in enumerate(
                zip(drawn["candidates"], drawn["success"], strict=True)
            )
        ]
        jobs += [(problem_id, item, data, label, *deck) for deck in decks]
    engine = KlayoutEngine()

    def one(job: tuple[Any, ...]) -> str:
        problem_id, item, data, label, name, deck, good = job
        found = verdict(engine.run(deck, data, key=problem_id), item.categories, label)
        return "" if found.success == good else f"{problem_id}: {name}: {found.reason or 'success'}"

    with ThreadPoolExecutor(2) as threads:
        faults = [fault for fault in threads.map(one, jobs) if fault]
    print(*faults, f"{len(jobs)} decks, {len(faults)} not as they should be", sep="\n")
    return len(faults)


def main() -> int:
    """Write the files, or check what they say."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=3, help="draws of each family")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    if asked.check:
        return int(check(asked.count, asked.seed) > 0)
    asked.out.mkdir(parents=True, exist_ok=True)
    for name, content in files(asked.count, asked.seed).items():
        (asked.out / name).write_bytes(content)
        print(f"{asked.out / name}: {len(content):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
