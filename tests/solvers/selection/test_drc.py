"""Choosing among decks for real: scripts in the sandbox, an engine, own pools, the task and its scorer."""

import json
import threading
from pathlib import Path

import msgspec
import pytest

from harness.core import registry
from harness.core.environment import EnvironmentRequest
from harness.core.errors import UsageError
from harness.core.task import TaskRequest
from harness.core.types import Output, text_of
from harness.runner.config import make_config
from harness.runner.lifecycle import start
from harness.solvers.selection import ALGORITHMS, Fault, Options, Pool
from harness.solvers.selection.solver import Select
from harness.store.journal import read_records
from harness.store.layout import Store
from scorers.drc import missing_engine
from scorers.drc.choice import drc_choice
from tasks.rule2drc.bench import make_bench, read_manifest, unusable
from tasks.rule2drc.select import environment, gold, gold_value, read_pools, select

pytestmark = pytest.mark.skipif(
    bool(missing_engine("regions")), reason="needs the package klayout: the extra drc"
)

LAYOUT = """\
import os, pya

def write(name, width, tops=1):
    layout = pya.Layout()
    for k in range(tops):
        cell = layout.create_cell(f"TOP{k}")
        cell.shapes(layout.layer(*LAYER)).insert(pya.Box(0, 0, 4000, width))
    layout.write(os.path.join(os.environ["OUTPUT_DIR"], name))
"""
SUITE = """
import json
with open(os.path.join(os.environ["OUTPUT_DIR"], "manifest.jsonl"), "w") as file:
    for k in range(10):
        write(f"case_{k:04d}.gds", 150 + 10 * k, tops=2 if k == 1 else 1)
        row = {"filename": f"case_{k:04d}.gds", "expected": {CATEGORY: int(k < 5)}, "intent": f"{k}"}
        file.write(json.dumps(row) + "\\n")
    file.write(json.dumps({**row, "filename": "case_0030.gds"}) + "\\n")
"""


@pytest.fixture(scope="module")
def task():
    return select(TaskRequest(args={"engine": "regions"}))


@pytest.fixture(scope="module")
def sample(task):
    return next(s for s in task.samples if s.item_id == "own-drc-width-1-pool")


@pytest.fixture
def bench(sample):
    with environment(sample, EnvironmentRequest(), engine="regions") as made:
        yield made


def _script(sample, text):
    layer = next(iter(sample.metadata["layers"].values()))
    head = f"LAYER = {tuple(layer)}\nCATEGORY = {sample.metadata['categories'][0]!r}\n"
    return head + LAYOUT + text


def _play(bench, sample, by="split_tester", maker="items"):
    """Let a judge that knows choose; gives the choice and the questions."""
    right = {k for k, success in enumerate(sample.metadata["success"]) if success}
    asked = []
    pool = Pool(key=sample.item_id, candidates=bench.candidates)
    algorithm = ALGORITHMS[by](pool, bench, Options(maker=maker))
    try:
        question = next(algorithm)
        while True:
            asked.append(text_of(question.messages[-1]))
            said = (reply for k, reply in question.picks.items() if k in right)
            question = algorithm.send(next(said, question.none))
    except StopIteration as ended:
        return ended.value, asked


# the bench


def test_a_script_makes_a_suite_in_the_sandbox(bench, sample):
    cases = bench.suite(_script(sample, SUITE), 3)
    # Of ten layouts the first eight by name, and of these not the one with two top cells.
    assert [case.intent for case in cases] == ["0", "2", "3", "4", "5", "6", "7"]
    assert cases[0].expected == {sample.metadata["categories"][0]: 1}
    right = sample.metadata["success"].index(1)
    # The limit is 0.2 µm: widths 150 to 220 without 160.
    (said,) = bench.run([right], cases)
    assert [one.verdict for one in said] == ["VIOLATION"] * 4 + ["PASS"] * 3
    assert bench.runs() == 7
    bench.run([right], cases)
    assert bench.runs() == 7
    assert "(4.000,0.150)" in bench.show(cases[0])
    assert bench.isolation is not None


def test_a_script_makes_one_layout(bench, sample):
    made = bench.layout(_script(sample, "write('case_0000.gds', 200)"), 0)
    assert unusable(made.data, "x") == ""
    two = bench.layout(_script(sample, "write('case_0000.gds', 200, tops=2)"), 0)
    assert "2 top cells" in two.text
    other = bench.layout(_script(sample, "write('other.gds', 200)"), 0)
    assert "case_0000.gds" in other.text


def test_layouts_that_are_no_gds_or_too_much_are_refused(bench, sample):
    packed = """
import gzip
path = os.path.join(os.environ["OUTPUT_DIR"], "case_0000.gds")
write("case_0000.gds", 200)
data = gzip.compress(open(path, "rb").read())
open(path, "wb").write(data)
"""
    assert "no GDS" in bench.layout(_script(sample, packed), 0).text
    many = """
layout = pya.Layout()
top, inner = layout.create_cell("TOP"), layout.create_cell("INNER")
inner.shapes(layout.layer(*LAYER)).insert(pya.Box(0, 0, 10, 10))
array = pya.CellInstArray(
    inner.cell_index(), pya.Trans(0, 0), pya.Vector(20, 0), pya.Vector(0, 20), 30000, 30000
)
top.insert(array)
layout.write(os.path.join(os.environ["OUTPUT_DIR"], "case_0000.gds"))
"""
    assert "20,000 shapes" in bench.layout(_script(sample, many), 0).text


def test_killing_it_ends_a_script(bench):
    raised = []

    def work():
        try:
            bench.layout("import time\ntime.sleep(59)", 0)
        except RuntimeError as error:
            raised.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    while bench._worker is None:
        thread.join(0.01)
        assert thread.is_alive()
    bench.kill()
    thread.join(20)
    assert raised == ["stopped"]
    with pytest.raises(RuntimeError, match="stopped"):
        bench.layout("pass", 0)


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("print('begun')\nraise ValueError('no idea')", "no idea"),
        ("import sys\nsys.exit(3)", "SystemExit"),
        ("import os\nos.abort()", "SIGABRT"),
        ("x = (", "SyntaxError"),
        ("pass", "manifest.jsonl"),
        (
            "import os\nopen(os.environ['OUTPUT_DIR'] + '/manifest.jsonl', 'w').write('[]')",
            "line 1",
        ),
    ],
)
def test_a_script_that_fails_is_told_why(bench, script, told):
    made = bench.suite(script, 0)
    assert isinstance(made, Fault)
    assert told in made.text


def test_a_script_sees_nothing_of_the_host(bench, monkeypatch):
    monkeypatch.setenv("HARNESS_SECRET", "key")
    pools = Path(__file__).parents[3] / "data" / "rule2drc" / "pools.jsonl"
    assert pools.is_file()
    script = f"""
import os, socket
print("file", os.path.exists({str(pools)!r}), "secret", "HARNESS_SECRET" in os.environ)
print(sorted(k for k in os.environ if k in ("NUM_CASES", "SEED", "OUTPUT_DIR")), os.environ["SEED"])
try:
    socket.create_connection(("192.0.2.1", 80), 1)
except OSError:
    print("no network")
"""
    made = bench.layout(script, 42)
    assert "file False secret False" in made.text
    assert "['NUM_CASES', 'OUTPUT_DIR', 'SEED'] 42" in made.text
    assert "no network" in made.text


def _row(**changes):
    return json.dumps({"filename": "case_0000.gds", "expected": {"W": 1}, "intent": "x"} | changes)


@pytest.mark.parametrize(
    "line",
    [
        "{", "[]", "null", _row(filename="../case_0000.gds"), _row(filename=["case_0000.gds"]), _row(filename="case_0.gds"),
        _row(expected={}), _row(expected={"W": 1, "V": 0}), _row(expected={"W": True}), _row(expected={"W": 2}),
        _row(expected={"W": "1"}), _row(expected=[1]), _row(intent=3),
    ],
)  # fmt: skip
def test_the_manifest_is_read_strictly(line):
    rows, faults = read_manifest(f"{line}\n{_row()}\n{_row()}\n".encode(), ["W"])
    assert rows == {"case_0000.gds": ({"W": 1}, "x")}
    assert len(faults) == 2
    assert "twice" in faults[1]


def test_own_layouts_are_not_those_that_decks_are_judged_on(bench, sample):
    judged = {row["gds"] for row in sample.metadata["layouts"]}
    cases = bench.items()
    assert len(cases) == len(judged)
    assert sum(case.data in judged for case in cases) <= 2  # empty ones
    # Widths stay what they were.
    labels = sorted(row["labels"][0] for row in sample.metadata["layouts"])
    assert sorted(case.expected[sample.metadata["categories"][0]] for case in cases) == labels


@pytest.mark.parametrize("by", sorted(ALGORITHMS))
def test_no_way_of_choosing_sees_a_label(sample, by):
    """Without labels, layouts and gold deck the same is asked and chosen, to the letter."""
    bare = msgspec.structs.replace(
        sample, target=(), correct=(),
        metadata={k: v for k, v in sample.metadata.items() if k not in ("layouts", "success")},
    )  # fmt: skip
    played = []
    for one in (sample, bare):
        with make_bench(
            one, sample.metadata["candidates"], EnvironmentRequest(), "regions"
        ) as made:
            made.suite = lambda *_: ()  # no script of a model's here
            played.append(_play(made, sample, by, maker="model"))
            if one is bare:
                with pytest.raises(UsageError, match="maker=items"):
                    made.items()
    assert played[0] == played[1]
    names = [row["name"] for row in sample.metadata["layouts"]]
    assert not any(name in text for text in played[0][1] for name in (*names, "success"))


# own pools


@pytest.mark.parametrize("family", ["space", "enclosure", "two-categories", "connectivity"])
def test_split_tester_reaches_the_oracle_with_own_layouts_and_a_right_judge(task, family):
    sample = next(s for s in task.samples if s.item_id.startswith(f"own-drc-{family}"))
    with environment(sample, EnvironmentRequest(), engine="regions") as bench:
        choice, _ = _play(bench, sample)
    assert sample.metadata["success"][choice.index] == 1
    assert choice.facts["maker"] == "items"


@pytest.mark.skipif(bool(missing_engine("klayout")), reason="needs the program klayout")
def test_the_program_says_the_same_of_a_pool(task, sample):
    decks = [0, sample.metadata["success"].index(1)]
    said = []
    for engine in ("klayout", "regions"):
        few = [sample.metadata["candidates"][k] for k in decks]
        with make_bench(sample, few, EnvironmentRequest(), engine) as bench:
            said.append([bench.run([0, 1], bench.items()), [c.expected for c in bench.items()]])
    assert said[0] == said[1]


# the scorer and the task


@pytest.mark.parametrize("text", ["", "7.", "the first", "-1", "10", "```\n0\n```", "0 1"])
def test_what_is_no_index_is_no_answer_and_keeps_the_pool(sample, text):
    scorer = drc_choice("regions")
    score = scorer(sample, Output(text=text))
    scorer.close()
    assert (score.value, score.status, score.reason) == (0.0, "error", "no_answer")
    assert score.metrics["oracle"] == 1.0


def test_a_choice_is_worth_what_its_deck_is(sample):
    success = sample.metadata["success"]
    wrong = sample.metadata["candidates"].index(
        next(d for d in sample.metadata["candidates"] if "input(63" in d)
    )
    scorer = drc_choice("regions")
    for index, value in ((success.index(1), 1.0), (wrong, 0.0)):
        score = scorer(sample, Output(text=f" {index}\n"))
        assert (score.value, score.passed, score.answer) == (value, bool(value), str(index))
        pool = {"oracle": 1.0, "random": sum(success) / 10, "first": float(success[0])}
        assert pool.items() <= score.metrics.items()
    without = msgspec.structs.replace(sample, metadata={**sample.metadata, "candidates": ["  "]})
    assert scorer(without, Output(text="0")).reason == "no_deck"
    scorer.close()


def test_gold_gives_a_right_index(task):
    for sample in task.samples:
        success = sample.metadata["success"]
        assert success[int(gold(sample))] == 1
        assert gold_value(sample) == 1.0


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"candidates": []}, "no candidates"),
        ({"success": [1]}, "a 0 or 1 for each"),
        ({"success": [1, 2]}, "a 0 or 1 for each"),
    ],
)
def test_pools_that_do_not_fit_are_refused(tmp_path, row, why):
    path = tmp_path / "pools.jsonl"
    path.write_text(json.dumps({"pool_id": "p", "problem_id": "x", "candidates": ["a", "b"]} | row))
    with pytest.raises(UsageError, match=why):
        read_pools(path)


def test_candidates_of_ones_own_need_a_known_task(tmp_path):
    path = tmp_path / "pools.jsonl"
    row = {"pool_id": "p", "problem_id": "own-drc-width-1", "candidates": ["a", "b"]}
    path.write_text(json.dumps(row))
    (sample,) = select(TaskRequest(args={"candidates": str(path)})).samples
    assert (gold(sample), gold_value(sample)) == ("", 0.0)
    path.write_text(json.dumps(row | {"problem_id": "nobody"}))
    with pytest.raises(UsageError, match="nobody"):
        select(TaskRequest(args={"candidates": str(path)}))


@pytest.mark.parametrize(
    "solver", ["generate", "select?by=split_tester&maker=items", "select?by=llm_judge"]
)
def test_gold_scores_one_through_a_whole_run(tmp_path, monkeypatch, solver):
    monkeypatch.setattr(registry, "_decorated", {})
    registry.task("own/select", n=51)(select)
    registry.scorer("drc_choice", version="1")(drc_choice)
    registry.solver("select", version="1")(Select)
    store = Store.open(tmp_path / "store")
    config = make_config(
        task="own/select", model="mock:gold", solver=solver, args={"engine": "regions"},
        ids=["own-drc-width-1-pool"],
    )  # fmt: skip
    summary = start(config, store)
    assert (summary.status, summary.metrics["success"].value) == ("done", 1.0)
    records = list(read_records(store.journal(summary.run_id)))
    (score,) = [r for r in records if type(r).__name__ == "ScoreRecord"]
    assert score.metrics["oracle"] == 1.0
