"""Own items of Rule2DRC: made again byte for byte, gold decks right in KLayout, wrong decks wrong."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("klayout.db", reason="needs the extra drc")
pytest.importorskip("yaml", reason="needs the extra drc")

from harness.core.resources import data
from harness.core.task import TaskRequest, make_task
from scorers.drc.klayout import KlayoutEngine
from scorers.drc.verdict import verdict

FOLDER = data("rule2drc")
MAKER = data("make") / "rule2drc"


def rows(name):
    return [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def samples():
    return {s.item_id: s for s in make_task("rule2drc/script", TaskRequest()).samples}


@pytest.fixture(scope="module")
def maker():
    sys.path.insert(0, str(MAKER))
    try:
        import make_rule2drc

        yield make_rule2drc
    finally:
        sys.path.remove(str(MAKER))
        for name in ("make_rule2drc", "frame", "distance", "shapes", "relations", "mutants"):
            sys.modules.pop(name, None)


def judged(engine, sample, deck):
    layouts = sample.metadata["layouts"]
    run = engine.run(deck, [row["gds"] for row in layouts], key=sample.item_id)
    return verdict(run, sample.metadata["categories"], [row["labels"] for row in layouts])


def test_the_maker_writes_these_files_byte_for_byte(maker):
    made = maker.files(3, 0)
    assert {name: hashlib.sha256(content).hexdigest() for name, content in made.items()} == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in FOLDER.iterdir()
    }
    said = json.loads(made["manifest.json"])["files"]
    assert said["tasks.jsonl"]["rows"] == 51
    assert 51 * 12 <= said["testcases.jsonl"]["rows"] <= 51 * 16


def test_another_seed_makes_other_items(maker):
    first = [row["spec_yaml"] for row in maker.rows(1, 0)["tasks"]]
    other = [row["spec_yaml"] for row in maker.rows(1, 1)["tasks"]]
    assert len({*first, *other}) > 30


def test_each_item_has_both_labels_and_names_of_its_kind(samples):
    marks = defaultdict(int)
    for sample in samples.values():
        columns = list(zip(*(row["labels"] for row in sample.metadata["layouts"]), strict=True))
        assert all(set(column) == {0, 1} for column in columns)
        name = sample.metadata["categories"][0]
        marks[
            "plain" if name.replace("_", "a").isalnum() else "dotted" if "." in name else "other"
        ] += 1
    assert marks == {"plain": 17, "dotted": 17, "other": 17}


def test_gold_is_right_and_a_sample_of_wrong_decks_is_wrong(samples):
    # All of them: data/make/rule2drc/make_rule2drc.py --check, and bench/rule2drc.py.
    if shutil.which("klayout") is None:
        pytest.skip("needs the program klayout: apt-get install klayout")
    rng = random.Random(3)
    by_name = defaultdict(list)
    for row in rows("mutants"):
        by_name[row["name"]].append((row["problem_id"], row["deck"]))
    jobs = [
        (*rng.choice(found), False) for _, found in sorted(by_name.items()) if rng.random() < 0.12
    ]
    golds = rng.sample(sorted(samples), 4)
    jobs += [(item, samples[item].target[0], True) for item in golds]
    engine = KlayoutEngine()
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda job: judged(engine, samples[job[0]], job[1]).success, jobs)
        assert list(found) == [good for _, _, good in jobs]


def test_pools_hold_what_they_say(samples):
    from scorers.drc.regions import RegionsEngine
    from scorers.drc.results import UnsupportedError

    engine, checked = RegionsEngine(), 0
    wrong = {(row["problem_id"], row["deck"]) for row in rows("mutants")}
    try:
        for pool in rows("pools"):
            assert len(pool["candidates"]) == len(set(pool["candidates"])) == 10
            assert 1 <= sum(pool["success"]) <= 3
            for deck, good in zip(pool["candidates"], pool["success"], strict=True):
                if not good:
                    assert (pool["problem_id"], deck) in wrong
                    continue
                try:
                    assert judged(engine, samples[pool["problem_id"]], deck).success
                    checked += 1
                except UnsupportedError:
                    raise AssertionError(f"a right deck is not in the subset: {deck}") from None
    finally:
        engine.close()
    assert checked >= 51
