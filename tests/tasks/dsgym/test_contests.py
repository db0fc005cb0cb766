"""Own contests: what is drawn, how it is judged, what a box shows, where programs land."""

from __future__ import annotations

import csv
import hashlib
import importlib
import io
import json
import math
import shutil
import statistics
import sys
from pathlib import Path
from random import Random

import msgspec
import numpy as np
import pytest

from harness.backends.base import load
from harness.core.errors import HarnessError, UsageError
from harness.core.records import EventRecord, SampleRecord, ScoreRecord
from harness.core.task import TaskRequest, make_task
from harness.core.types import Output, ToolCall
from harness.runner.audit_answers import gold_path
from harness.runner.audit_subject import Subject
from harness.runner.config import make_config
from harness.runner.lifecycle import start
from harness.runner.plan import make_plan
from harness.store.journal import read_records
from harness.store.layout import Store
from scorers.contest import contest
from tasks.dsgym.contests import read_contests
from tasks.dsgym.kernel import Kernel
from tasks.dsgym.own import own_root
from tasks.dsgym.task import limits

MAKE = Path(__file__).resolve().parents[3] / "data" / "make" / "dsgym"
NAMES = ("own-rent", "own-churn", "own-load")
BOARDS = Path("data/DSPredict_Offline_Leaderboard/own.json")
PARTS = ("public", "private")


def _facts(score):
    """What a verdict says of both boards: score, rank, medal, way to the floor."""
    return json.loads(score.explanation.splitlines()[-1])


class Made:
    """The script and what it draws for draw 0, by name of the contest."""

    def __init__(self) -> None:
        self.script = importlib.import_module("make_contests")
        self.boards = importlib.import_module("contest_board")
        self.contests = {one.name: one for one in self.script.contests()}
        self.drawn = {name: one.make(0) for name, one in self.contests.items()}


@pytest.fixture(scope="module")
def made():
    """The makers, imported from their folder and forgotten again: they bear everyday names."""
    before, path = set(sys.modules), list(sys.path)
    sys.path.insert(0, str(MAKE))
    try:
        yield Made()
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - before:
            if getattr(sys.modules[name], "__file__", None) in {str(p) for p in MAKE.glob("*.py")}:
                del sys.modules[name]


@pytest.fixture(scope="module")
def samples():
    return {sample.item_id: sample for sample in read_contests(own_root(), "own_predict")}


@pytest.fixture(scope="module")
def boards():
    return json.loads((own_root() / BOARDS).read_text(encoding="utf-8"))


@pytest.fixture
def root(tmp_path):
    """A copy of the own contests that a test may spoil."""
    for part in ("data/task/own_predict", "data/truth", BOARDS.parent):
        shutil.copytree(own_root() / part, tmp_path / "root" / part)
    for name in NAMES:
        part = f"data/data/{name}"
        shutil.copytree(own_root() / part, tmp_path / "root" / part)
    return tmp_path / "root"


def _table(name, file):
    path = own_root() / "data/data" / name / file
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


def _truth(sample):
    head, *rows = csv.reader(io.StringIO(sample.target[0]))
    return head, rows


def _submission(head, rows):
    return "\n".join(",".join(map(str, row)) for row in [head, *rows]) + "\n"


# What is drawn


def test_the_shipped_tables_are_what_the_script_makes(made):
    rows = []
    for name, one in made.contests.items():
        for path, content in made.script.tables_of(one, made.drawn[name]).items():
            assert (own_root() / path).read_bytes() == content, path
        rows.append(made.script.row_of(one, made.drawn[name]))
    written = json.loads((own_root() / "data/task/own_predict/own_predict.json").read_text())
    assert written == rows
    listed = json.loads((own_root() / "contests_manifest.json").read_text())["files"]
    # Six kinds of files: three tables a model sees, the truth, the contests, the boards.
    assert len(listed) == 3 * 4 + 2
    for path, facts in listed.items():
        content = (own_root() / path).read_bytes()
        assert facts == {
            "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(),
        }, path  # fmt: skip


def test_another_draw_is_another_contest_of_the_same_size(made):
    for name, one in made.contests.items():
        first, again, other = made.drawn[name], one.make(0), one.make(1)
        assert first.files == again.files
        assert set(first.truth) != set(other.truth) or first.truth != other.truth
        assert first.files["train.csv"] != other.files["train.csv"]
        assert (len(first.train), len(first.test)) == (len(other.train), len(other.test))


@pytest.mark.parametrize(
    ("name", "given", "asked"),
    [
        ("own-rent", 3000, 1500),
        ("own-churn", 4000, 2000),
        # 5 sites, 272 and 28 days; a row of the given days holds 24 hours
        ("own-load", 5 * 272, 5 * 28 * 24),
    ],
)
def test_the_tables_are_as_the_specification_says(samples, name, given, asked):
    train, test = _table(name, "train.csv"), _table(name, "test.csv")
    form, (head, truth) = _table(name, "sample_submission.csv"), _truth(samples[name])
    assert (len(train), len(test)) == (given, asked)
    assert [row["id"] for row in test] == [row["id"] for row in form] == [row[0] for row in truth]
    assert list(form[0]) == head
    assert head[1] not in test[0]


def test_missing_cells_copies_and_noise_are_where_they_should_be():
    test = _table("own-rent", "test.csv")
    rent = _table("own-rent", "train.csv") + test
    empty = {column: sum(row[column] == "" for row in rent) for column in test[0]}
    # 5 % of 4,500 is 225; four standard deviations of a fair draw are 59
    assert {column for column, n in empty.items() if n} == {"year", "distance", "energy"}
    assert all(abs(empty[column] - 225) < 59 for column in ("year", "distance", "energy"))
    churn = _table("own-churn", "train.csv")
    assert all(int(row["days"]) == 30 * int(row["tenure"]) for row in churn)
    left = np.array([int(row["churn"]) for row in churn])
    assert 0.165 < left.mean() < 0.195
    batch = np.array([int(row["batch"]) for row in churn])
    # Of two independent columns the correlation has a standard deviation of 1 / sqrt(n).
    assert abs(np.corrcoef(batch, left)[0, 1]) < 3.5 / math.sqrt(len(churn))


def test_ids_say_nothing_of_the_target(samples):
    from scipy.stats import spearmanr
    from sklearn.neighbors import KNeighborsRegressor

    for name in NAMES:
        _, rows = _truth(samples[name])
        values = np.array([[float(a), float(b)] for a, b in rows])
        n = len(values)
        assert abs(spearmanr(values[:, 0], values[:, 1]).statistic) < 4 / math.sqrt(n)
        values = values[np.random.default_rng(0).permutation(n)]
        half, target = n // 2, np.log1p(values[:, 1])
        model = KNeighborsRegressor(20).fit(values[:half, :1], target[:half])
        # Neighbours that tell nothing add a twentieth to the variance: about -0.05.
        assert model.score(values[half:, :1], target[half:]) < 0.02, name
    train, test = _table("own-rent", "train.csv"), _table("own-rent", "test.csv")
    assert not {row["id"] for row in train} & {row["id"] for row in test}


# How it is judged


def _rmsle(truth, given):
    return float(np.sqrt(np.mean((np.log1p(truth) - np.log1p(given)) ** 2)))


def _auc(truth, given):
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(truth, given))


def _smape(truth, given):
    return float(np.mean(200 * np.abs(truth - given) / (np.abs(truth) + np.abs(given))))


def _expected_auc(share):
    """AUC to be expected where each is positive with its share: over all ordered pairs."""
    won = (share[:, None] > share[None, :]) + 0.5 * (share[:, None] == share[None, :])
    weight = share[:, None] * (1 - share[None, :])
    return float((weight * won).sum() / weight.sum())


@pytest.mark.parametrize(
    ("name", "metric"), [("own-rent", _rmsle), ("own-churn", _auc), ("own-load", _smape)]
)
def test_the_noiseless_truth_meets_the_floor(made, samples, name, metric):
    drawn, floor = made.drawn[name], samples[name].metadata["contest"]["noise_floor"]
    truth = np.array([float(text) for text in drawn.truth.values()])
    known = np.array(list(drawn.noiseless.values()))
    assert metric(truth, known) == pytest.approx(floor, rel=0.02)
    # And it is what theory says: the noise itself, the law of pairs, 100 E|0.04 z|.
    expected = {
        "own-rent": 0.15, "own-churn": _expected_auc(known), "own-load": 4 * math.sqrt(2 / math.pi),
    }[name]  # fmt: skip
    assert floor == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("name", NAMES)
def test_the_truth_is_the_best_and_the_floor_beats_the_board_s_middle(made, samples, name):
    head, rows = _truth(samples[name])
    best = contest()(samples[name], Output(text=_submission(head, rows)))
    perfect = {"own-rent": 0.0, "own-churn": 1.0, "own-load": 0.0}[name]
    for part in PARTS:
        assert best.metrics[f"percentile_{part}"] == 100.0
        assert (_facts(best)[part]["rank"], _facts(best)[part]["score"]) == (1, perfect)
    known = list(made.drawn[name].noiseless.items())
    there = contest()(samples[name], Output(text=_submission(head, known)))
    assert all(there.metrics[f"above_median_{part}"] == 1.0 for part in PARTS)
    assert 0.9 < _facts(there)["private"]["to_floor"] < 1.1


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_the_rows_does_not_matter(made, samples, name):
    head, _ = _truth(samples[name])
    rows = list(made.drawn[name].noiseless.items())
    first = contest()(samples[name], Output(text=_submission(head, rows)))
    Random(1).shuffle(rows)
    assert contest()(samples[name], Output(text=_submission(head, rows))) == first


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda rows: rows[1:], "missing_id"),
        (lambda rows: [*rows, rows[0]], "twice"),
        (lambda rows: [[rows[0][0], "NaN"], *rows[1:]], "not_a_number"),
        (lambda rows: [[rows[0][0], "much"], *rows[1:]], "not_a_number"),
    ],
)
def test_an_invalid_submission_says_why(samples, name, spoil, reason):
    head, rows = _truth(samples[name])
    score = contest()(samples[name], Output(text=_submission(head, spoil(rows))))
    assert (score.value, score.reason, score.metrics["valid"]) == (0.0, reason, 0.0)
    # What is not on a board is last there, in every figure of it.
    assert len(score.metrics) == 9
    assert not any(score.metrics.values())


# The boards


def test_the_boards_are_in_order_and_called_what_they_are(boards):
    assert set(boards) == set(NAMES)
    for name, board in boards.items():
        assert (board["label"], board["total_submissions"]) == ("reference programs", 120)
        assert board["direction"] == ("higher" if name == "own-churn" else "lower")
        for at, part in enumerate(("public", "private")):
            scores = [both[at] for both in board["programs"].values()]
            best_first = sorted(scores, reverse=board["direction"] == "higher")
            assert board[f"{part}_scores"] == best_first
            assert board[f"{part}_mean"] == pytest.approx(statistics.fmean(scores), abs=1e-5)
            assert board[f"{part}_median"] == pytest.approx(statistics.median(scores), abs=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_a_few_programs_score_again_what_the_board_says(made, boards, name):
    one, drawn = made.contests[name], made.drawn[name]
    listed = made.boards.programs(len(drawn.inputs), of_class=one.metric == "auc")
    assert len({program.name(drawn.inputs) for program in listed}) == 120
    runner = made.boards.Runner(one, drawn)
    # Forests and boosting are slow; those that are small stand for them.
    quick = [program for program in listed if program.depth * program.size <= 60]
    for program in Random(name).sample(quick, 6):
        found = made.boards.measure(one, drawn, runner.predict(program))
        said = boards[name]["programs"][program.name(drawn.inputs)]
        # Another version of the library may take the other one of two equally good splits.
        near = 0.02 if program.depth else 1e-4
        assert [found["public"], found["private"]] == pytest.approx(said, rel=near)


def test_two_programs_worked_out_by_hand(samples, boards):
    train = _table("own-rent", "train.csv")
    test = {row["id"]: float(row["area"]) for row in _table("own-rent", "test.csv")}
    rents = np.array([float(row["rent"]) for row in train])
    areas = np.array([float(row["area"]) for row in train])
    # Least squares in closed form; a ridge of 1 among 3,000 rows moves the fourth place at most.
    slope, start_at = np.polyfit(areas, np.log1p(rents), 1)
    lines = {one: math.expm1(start_at + slope * area) for one, area in test.items()}
    middle = dict.fromkeys(test, float(np.median(rents)))
    head, _ = _truth(samples["own-rent"])
    for name, given in (("line, area", lines), ("constant, percentile 50", middle)):
        score = contest()(samples["own-rent"], Output(text=_submission(head, given.items())))
        said = boards["own-rent"]["programs"][name]
        assert [_facts(score)[part]["score"] for part in PARTS] == pytest.approx(said, abs=1e-4)
    # The median is exact: the copy ties with the program, also with its other scores' digits.
    for part in PARTS:
        scores = boards["own-rent"][f"{part}_scores"]
        at = said[PARTS.index(part)]
        worse, equal = sum(s > at for s in scores), scores.count(at)
        assert equal >= 1
        assert score.metrics[f"percentile_{part}"] == pytest.approx(100 * (worse + equal / 2) / 120)


def test_a_flat_board_is_refused(root, boards):
    boards = json.loads(json.dumps(boards))
    boards["own-load"]["private_scores"] = [5.0] * 120
    (root / BOARDS).write_text(json.dumps(boards))
    with pytest.raises(UsageError, match="own-load: the private board is flat"):
        make_task("dsgym/own_predict", TaskRequest(data_root=root))


def test_perfect_scores_are_counted_and_dropped_by_a_switch(root, boards):
    boards = json.loads(json.dumps(boards))
    # Nobody reaches an error of 0 without the truth.
    boards["own-rent"]["private_scores"][:0] = [0.0, 0.0]
    boards["own-load"]["public_scores"] = [0.0] * 119 + [3.0]
    (root / BOARDS).write_text(json.dumps(boards))
    kept = make_task("dsgym/own_predict", TaskRequest(data_root=root))
    assert kept.info["perfect_scores"] == "121 on the boards, kept"
    with pytest.raises(
        UsageError, match="own-load without perfect scores: the public board is flat"
    ):
        make_task("dsgym/own_predict", TaskRequest(data_root=root, args={"perfect": "drop"}))
    boards["own-load"]["public_scores"] = [0.0, 3.0, 4.0]
    (root / BOARDS).write_text(json.dumps(boards))
    config = make_config(
        task="dsgym/own_predict", model="mock:gold", data_root=str(root), args={"perfect": "drop"}
    )
    subject = Subject(config)
    assert subject.task.info["perfect_scores"] == "3 on the boards, left out"
    assert subject.task.scorer == "contest?perfect=drop"
    # The switch changes how stored answers are placed, and no answer.
    keys = [
        [one.key for one in make_plan(each, load("mock:gold", each.load_options())).attempts]
        for each in (config, msgspec.structs.replace(config, args={}))
    ]
    assert keys[0] == keys[1]


def test_a_direction_that_is_turned_is_caught_by_the_audit(root):
    path = root / "data/task/own_predict/own_predict.json"
    rows = json.loads(path.read_text())
    config = make_config(
        task="dsgym/own_predict", model="mock:gold", data_root=str(root), ids=("own-rent",)
    )
    assert gold_path(Subject(config)).verdict == "ok"
    rows[0]["metadata"]["direction"] = "higher"
    path.write_text(json.dumps(rows))
    found = gold_path(Subject(config))
    assert (found.verdict, found.value) == ("fail", 0.0)


def test_a_contest_without_its_truth_cannot_be_had(root):
    (root / "data/truth/own-rent.csv").unlink()
    without = {s.item_id: s.metadata["without"] for s in read_contests(root, "own_predict")}
    # The message is stored with the attempt: no folder of this machine is in it.
    assert without["own-rent"].startswith("data/truth/own-rent.csv is missing")
    assert without["own-churn"] == ""
    path = root / "data/task/own_predict/own_predict.json"
    rows = json.loads(path.read_text())
    del rows[1]["metadata"]["metric"]
    path.write_text(json.dumps(rows))
    said = read_contests(root, "own_predict")[1].metadata["without"]
    assert said.startswith("data/task/own_predict/own_predict.json, own-churn: ")
    assert str(root) not in said


def test_a_file_that_is_missing_is_named_as_below_the_root(root):
    data = {"/data/own-rent/lost.csv": root / "data/data/own-rent/lost.csv"}
    with pytest.raises(HarnessError) as caught, Kernel(level="auto", limits=limits(), data=data):
        pass
    assert str(caught.value).startswith(
        "data/data/own-rent/lost.csv is missing below the data root"
    )
    assert str(root) not in str(caught.value)


# The box

LOOK = """
import os, sys
wanted, found = {wanted!r}, []
for top, folders, files in os.walk('/'):
    if top in ('/proc', '/sys', '/dev', '/usr', sys.base_prefix, sys.prefix):
        folders.clear()
    named = [os.path.join(top, file) for file in files]
    found += [path for path in named if 'truth' in path and 'site-packages' not in path]
    found += [path for path in named if 'dsgym' in path or '/own.json' in path]
    if top.startswith(('/data', '/box', '/tmp', '/root', '/home', os.getcwd())):
        for path in named:
            with open(path, errors='replace') as file:
                text = file.read()
            found += [path] * any(part in text for part in wanted)
found += [name for name, value in os.environ.items() if 'dsgym' in value]
print(sorted(set(found)))
"""


@pytest.mark.parametrize("name", NAMES)
def test_nothing_in_the_box_holds_the_target(samples, name):
    _, rows = _truth(samples[name])
    # Rows on end in the form of the truth, and the values alone; enough that not all are the zeros
    # of a sample submission.
    lines = ["\n".join(",".join(row) for row in rows[at : at + 60]) for at in (0, 700)]
    column = [sep.join(row[1] for row in rows[:60]) for sep in (",", "\n", ", ")]
    data = {
        f"/data/{name}/{file}": own_root() / "data/data" / name / file
        for file in ("train.csv", "test.csv", "sample_submission.csv")
    }
    code = LOOK.format(wanted=lines + column)
    assert _look(data, code) == "[]"
    if name == "own-rent":  # what looks for it does find it
        planted = f"/data/{name}/extra.csv"
        data[planted] = own_root() / "data/truth/own-rent.csv"
        assert _look(data, code) == f"['{planted}']"


def _look(data, code):
    with Kernel(level="auto", limits=limits(), data=data, submission=True) as box:
        call = ToolCall(id="1", name="python", arguments={"code": code})
        return box.call(call, 120).text.strip()


def _play(folder, turns):
    """Run a script of own contests; give the records."""
    script = folder / "script.jsonl"
    lines = [json.dumps({"item_id": item, "turns": said}) for item, said in turns.items()]
    script.write_text("\n".join(lines), encoding="utf-8")
    store = Store.open(folder / "store")
    config = make_config(
        task="dsgym/own_predict", model=f"mock:script?file={script}", ids=tuple(turns)
    )
    run = start(config, store)
    return list(read_records(store.journal(run.run_id)))


COPY = "<python>\nimport shutil\nshutil.copy('/data/own-rent/sample_submission.csv', 'submission.csv')\n</python>"
ENDLESS = "<python>\nimport time\nwhile True:\n    time.sleep(0.1)\n</python>"


@pytest.mark.parametrize("limit", ["task.CELL_S", "task.TOTAL_S"])
def test_a_cell_s_time_may_run_out_but_not_that_of_all(tmp_path, monkeypatch, limit):
    monkeypatch.setattr("tasks.dsgym.kernel.PRELOAD", ())
    monkeypatch.setattr(f"tasks.dsgym.{limit}", 2.0)
    records = _play(tmp_path, {"own-rent": [COPY, ENDLESS, "<answer>done</answer>"]})
    status = [r.status for r in records if isinstance(r, SampleRecord)]
    valid = [r.metrics["valid"] for r in records if isinstance(r, ScoreRecord)]
    # One cell is a part of the work, and the file stays; all time used up is the end of it.
    assert (status, valid) == ((["unscored"], [1.0]) if "CELL" in limit else (["timeout"], []))


def test_nothing_of_the_truth_is_in_the_prompt(samples):
    for sample in samples.values():
        assert not any(",".join(row) in sample.input for row in _truth(sample)[1])
        assert str(sample.metadata["contest"]["noise_floor"]) not in sample.input


TREE = """
import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeRegressor

train, test = (pd.read_csv(f'/data/{name}/{{part}}.csv') for part in ('train', 'test'))
{reshape}
model = DecisionTreeRegressor(max_depth=3, random_state=0)
model.fit(train[['{column}']], np.log1p(train['{target}']))
test['{target}'] = np.expm1(model.predict(test[['{column}']]))
test[['id', '{target}']].to_csv('submission.csv', index=False)
"""
LONG = """
train = train.melt(['site', 'day', 'temperature', 'holiday'], var_name='hour', value_name='load')
train['hour'] = train['hour'].astype(int)
"""
COUNT = """
import pandas as pd
test = pd.read_csv('/data/own-churn/test.csv')
test['churn'] = test['calls']
test[['id', 'churn']].to_csv('submission.csv', index=False)
"""


def test_programs_land_on_the_board_where_they_should(tmp_path, boards):
    # A single column's line orders as the column does: the count of calls is no worse than its fit.
    said = {
        "own-rent": ("tree, area, depth 3", TREE.format(
            name="own-rent", reshape="", column="area", target="rent")),
        "own-load": ("tree, hour, depth 3", TREE.format(
            name="own-load", reshape=LONG, column="hour", target="load")),
        "own-churn": ("line, calls", COUNT),
    }  # fmt: skip
    turns = {
        item: [f"<python>\n{code}</python>", "<answer>done</answer>"]
        for item, (_, code) in said.items()
    }
    records = _play(tmp_path, turns)
    scores = {r.item_id: r for r in records if isinstance(r, ScoreRecord)}
    calls = [r.data for r in records if isinstance(r, EventRecord) and r.kind == "tool_call"]
    assert not [call["text"] for call in calls if call["status"] == "error"]
    assert {r.item_id for r in records if isinstance(r, SampleRecord)} == set(NAMES)
    for item, (name, _) in said.items():
        board, metrics, facts = boards[item], scores[item].metrics, _facts(scores[item])
        for at, part in enumerate(PARTS):
            score = board["programs"][name][at]
            assert facts[part]["score"] == pytest.approx(score, abs=1.1e-5)
            # The place by counting, with the score as the box's program reached it.
            mine, others = facts[part]["score"], board[f"{part}_scores"]
            sign = 1 if board["direction"] == "higher" else -1
            better = sum(sign * other > sign * mine for other in others)
            worse = sum(sign * other < sign * mine for other in others)
            equal = len(others) - better - worse
            assert facts[part]["rank"] == better + 1
            assert metrics[f"percentile_{part}"] == pytest.approx(100 * (worse + equal / 2) / 120)


def test_the_sample_submission_is_valid_and_poor(samples):
    for name in NAMES:
        text = (own_root() / "data/data" / name / "sample_submission.csv").read_text()
        score = contest()(samples[name], Output(text=text))
        assert score.metrics["valid"] == 1.0
        assert score.metrics["percentile_private"] < 20


def test_a_task_of_three_with_a_box_for_each():
    task = make_task("dsgym/own_predict", TaskRequest())
    assert [sample.item_id for sample in task.samples] == list(NAMES)
    assert task.info["board"] == "120 reference programs, no people"
    assert task.info["perfect_scores"] == "0 on the boards, kept"
    assert "contest" in task.system
    assert "answer questions" not in task.system
    assert not msgspec.json.encode(task.toolset).count(b"truth")
