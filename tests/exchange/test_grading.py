"""Forms out, grades in: nothing of the judges is shown, nothing wrong is kept, figures are right."""

from __future__ import annotations

import csv
import io
import json
import shutil
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from harness.backends.base import load
from harness.core import registry
from harness.core.errors import StoreError, UsageError
from harness.core.records import EventRecord, RunFinished, ScoreRecord
from harness.core.task import Task
from harness.core.types import Output, Sample, Score, Usage
from harness.exchange.grading import COLUMNS, export_grading, guarded, unguarded
from harness.exchange.grading_agreement import agreement
from harness.exchange.grading_import import import_grading
from harness.exchange.rejected import RejectedError
from harness.runner.config import make_config
from harness.runner.lifecycle import resume, start
from harness.runner.rescore import rescore
from harness.runner.summary import summarise
from harness.store.care import verify
from harness.store.journal import Journal, read_records
from harness.store.layout import Store

# Points of the first and the second judge (each asked once), by item and criterion, of what is
# possible; and what two people give. Figures follow from these numbers alone.
POSSIBLE = {"idea": 4, "steps": 3, "end": 2}
ITEMS = ("007", "=p2", "p3", "p4", "p5")
JUDGES = {
    "007": ([4, 3, 2], [4, 2, 2]), "=p2": ([1, 0, 0], [2, 1, 0]), "p3": ([3, 3, 1], [4, 3, 2]),
    "p4": ([0, 0, 0], [1, 0, 1]), "p5": ([2, 2, 2], [3, 1, 1]),
}  # fmt: skip
PEOPLE = {
    "Ann": {"007": [4, 3, 2], "=p2": [1, 1, 0], "p3": [3, 2, 2], "p4": [1, 0, 0], "p5": [2, 1, 1]},
    "Bo": {"007": [4, 2, 2], "=p2": [0, 1, 0], "p3": [4, 3, 1], "p4": [2, 1, 0], "p5": [3, 3, 0]},
}
# Of 9 points: 9, 2, 8, 1 and 5.
BOTH = {"007": [4, 3, 2], "=p2": [1, 1, 0], "p3": [4, 3, 1], "p4": [1, 0, 0], "p5": [2, 2, 1]}
HOSTILE = '<script>alert("x")</script> & =HYPERLINK("http://x") </pre>'


def grader(judges):
    """Ask each judge once for JSON points; the form of a rubric's score."""

    def score(sample, output):
        given = [json.loads(judge([], k).text)[sample.item_id] for k, judge in enumerate(judges)]
        means = [sum(column) / len(given) for column in zip(*given, strict=True)]
        points = sum(means)
        metrics = {"points": points, "points_possible": 9.0}
        metrics |= {f"criterion:{name}": m for name, m in zip(POSSIBLE, means, strict=True)}
        metrics |= {f"judge:{k}:points": float(sum(one)) for k, one in enumerate(given)}
        return Score(value=points / 9, passed=points >= 7.2, metrics=metrics)

    return score


class Board:
    """A store, a task of proofs, a writer and two judges whose points are known."""

    def __init__(self, store: Store) -> None:
        self.store = store
        rubric = [
            {"id": name, "points": n, "criterion": f"+ has {name}"} for name, n in POSSIBLE.items()
        ]
        self.samples = [
            Sample(item_id=i, input=f"Prove {i}.", target=(f"Reference of {i}.",),
                   metadata={"rubric": rubric, "statement": f"Statement of {i} <b>"})
            for i in ITEMS
        ]  # fmt: skip
        self.scorer = "grader"
        self.calls = 0
        self.answers = {}

    def task(self, request):
        return Task(
            name="own/proof", version="1", samples=self.samples, prompt="{{ input }}",
            gold=lambda s: s.target[0], guess=lambda s, rng: "", scorer=self.scorer,
            metric="accuracy",
        )  # fmt: skip

    def writer(self, spec, options):
        made = load("mock:empty")
        made.generate = lambda requests: [self.answer(r) for r in requests]
        return made

    def answer(self, request):
        self.calls += 1
        return self.answers.get(request.item_id) or Output(text=f"{HOSTILE} {request.item_id}")

    @staticmethod
    def arbiter(spec, options):
        which = {"one": 0, "two": 1}[spec.name]
        points = json.dumps({item: both[which] for item, both in JUDGES.items()})
        made = load(f"mock:constant?text={spec.name}")
        made.generate = lambda requests: [Output(text=points, usage=Usage(9, 9)) for _ in requests]
        return made

    def run(self, **options):
        options = {"judge": "arbiter:one,arbiter:two"} | options
        config = make_config(task="own/proof", model="writer:SECRET-MODEL", **options)
        return start(config, self.store).run_id

    def records(self, run_id, kind):
        return [r for r in read_records(self.store.journal(run_id)) if isinstance(r, kind)]

    def raw(self, run_id):
        return self.store.journal(run_id).read_bytes()


def enter(made):
    registry.task("own/proof", n=5)(made.task)
    registry.backend("writer")(made.writer)
    registry.backend("arbiter")(made.arbiter)
    registry.scorer("grader")(grader)
    return made


@pytest.fixture
def board(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_decorated", {})
    return enter(Board(Store.open(tmp_path / "store")))


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A run of five proofs with its forms, made once."""
    folder = tmp_path_factory.mktemp("template")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_decorated", {})
        made = enter(Board(Store.open(folder / "store")))
        run_id = made.run()
        forms = export_grading(made.store, run_id, folder / "forms")
    return made.store.root, run_id, read(forms.table)


def read(path):
    with Path(path).open(newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def fill(rows, who, points=PEOPLE):
    """Do what a person does: points for each criterion, the name beside it."""
    names = list(POSSIBLE)
    given = []
    for row in rows:
        item, criterion = unguarded(row["item_id"]), unguarded(row["criterion_id"])
        own = points[who][item][names.index(criterion)]
        given.append(row | {"points": str(own), "grader": who})
    return given


def save(path, rows, delimiter=",", encoding="utf-8-sig", lineterminator="\r\n"):
    text = io.StringIO(newline="")
    writer = csv.DictWriter(
        text, COLUMNS, delimiter=delimiter, lineterminator=lineterminator, extrasaction="ignore"
    )
    writer.writeheader()
    writer.writerows(rows)
    path.write_bytes(text.getvalue().encode(encoding))
    return path


@pytest.fixture
def graded(board, template):
    """The run and its rows to fill in, in the board's store."""
    root, run_id, rows = template
    shutil.copytree(root, board.store.root, dirs_exist_ok=True)
    return run_id, [dict(row) for row in rows]


# The forms


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data


def page_of(made):
    parser = Tags()
    parser.feed(Path(made.page).read_text(encoding="utf-8"))
    return parser


def test_the_table_has_a_row_a_criterion_and_nothing_of_the_judges(board, tmp_path):
    run_id = board.run()
    made = export_grading(board.store, run_id, tmp_path / "forms")
    raw = (tmp_path / "forms" / f"grading-{run_id}.csv").read_bytes()
    assert raw.startswith(b"\xef\xbb\xbf")
    rows = read(made.table)
    assert (made.answers, made.rows, len(rows), tuple(rows[0])) == (5, 15, 15, COLUMNS)
    assert [unguarded(row["item_id"]) for row in rows[::3]] == list(ITEMS)
    assert {row["points"] + row["grader"] + row["comment"] for row in rows} == {""}
    assert len({row["content"] for row in rows}) == 5


def test_neither_form_tells_the_model_unless_told_to(board, tmp_path):
    run_id = board.run()
    blind = export_grading(board.store, run_id, tmp_path / "a")
    told = export_grading(board.store, run_id, tmp_path / "b.csv", with_model=True)
    for path in (blind.table, blind.page, told.table):
        assert "SECRET-MODEL" not in Path(path).read_text(encoding="utf-8")
    assert "model writer:SECRET-MODEL" in page_of(told).text
    assert told.page == str(tmp_path / "b.html")


def test_what_a_model_wrote_is_text_on_the_page(board, tmp_path):
    page = page_of(export_grading(board.store, board.run(), tmp_path))
    assert "script" not in page.tags
    assert "b" not in page.tags
    for part in (HOSTILE, "Statement of p3 <b>", "Reference of p5.", "+ has steps"):
        assert part in page.text
    assert page.tags.count("article") == 5


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@x", "\t=x", "\r=x", "'=x", "＝1", "007", "1e5", "3-4", "MAR1",
             "1 May", "true", "5 %"],
)  # fmt: skip
def test_what_an_office_program_would_change_is_guarded(text):
    assert guarded(text) == f"'{text}"
    assert unguarded(guarded(text)) == text


@pytest.mark.parametrize("text", ["own-mcq-C03", "P01", "whole", "it's", "a=b", "marble", ""])
def test_what_it_leaves_alone_is_left_alone(text):
    assert guarded(text) == text == unguarded(text)


def test_no_cell_of_the_table_is_a_formula(graded):
    _, rows = graded
    for row in rows:
        for name in ("run", "item_id", "criterion_id", "criterion", "content"):
            assert not row[name].startswith(("=", "+", "-", "@"))


def test_a_table_that_is_there_is_not_written_over(board, tmp_path):
    run_id = board.run()
    made = export_grading(board.store, run_id, tmp_path)
    with Path(made.table).open("a", encoding="utf-8") as file:
        file.write("an hour's work")
    with pytest.raises(UsageError, match="may have been filled in"):
        export_grading(board.store, run_id, tmp_path)
    assert Path(made.table).read_text(encoding="utf-8").endswith("an hour's work")


def test_attempts_without_an_answer_are_not_in_the_forms(board, tmp_path):
    board.answers = {
        "p3": Output(text="", finish_reason="content_filter"),
        "p4": Output(text="half", finish_reason="length"), "p5": Output(text="  \n"),
    }  # fmt: skip
    made = export_grading(board.store, board.run(), tmp_path)
    assert [unguarded(row["item_id"]) for row in read(made.table)[::3]] == ["007", "=p2", "p4"]
    assert "cut at the token limit" in page_of(made).text


def test_a_run_without_any_answer_and_a_strange_path_are_refused(board, tmp_path):
    run_id = board.run()
    with pytest.raises(UsageError, match=r"ends in \.csv"):
        export_grading(board.store, run_id, tmp_path / "forms.xlsx")
    board.answers = dict.fromkeys(ITEMS, Output(text="", finish_reason="content_filter"))
    with pytest.raises(UsageError, match="no answer that could be graded"):
        export_grading(board.store, board.run(seed=1), tmp_path)


def test_items_that_changed_are_refused(board, tmp_path):
    run_id = board.run()
    board.samples[1] = Sample(item_id="=p2", input="Prove another thing.")
    with pytest.raises(UsageError, match="'=p2' of own/proof is no longer what it was"):
        export_grading(board.store, run_id, tmp_path)


# The way back


def test_gradings_are_kept_beside_the_verdicts_which_stay(board, graded, tmp_path):
    run_id, rows = graded
    before = summarise(board.store, run_id).metrics
    calls = board.calls
    file = save(tmp_path / "filled.csv", fill(rows, "Ann") + fill(rows, "Bo"))
    (done,) = import_grading(board.store, [file])
    assert (done.run_id, done.graders) == (run_id, ["Ann", "Bo"])
    assert (done.n_new, done.n_changed, done.n_unchanged, done.n_verdicts) == (10, 0, 0, 0)
    assert summarise(board.store, run_id).metrics == before
    assert len(board.records(run_id, ScoreRecord)) == 5
    assert (board.calls, verify(board.store)) == (calls, [])
    assert resume(board.store, run_id).status == "done"


def test_the_same_file_twice_changes_nothing(board, graded, tmp_path):
    run_id, rows = graded
    file = save(tmp_path / "filled.csv", fill(rows, "Ann"))
    import_grading(board.store, [file])
    before = board.raw(run_id)
    (done,) = import_grading(board.store, [file])
    assert (done.n_new, done.n_changed, done.n_unchanged) == (0, 0, 5)
    assert board.raw(run_id) == before


def test_a_grader_may_think_again_and_both_stay_in_the_journal(board, graded, tmp_path):
    run_id, rows = graded
    import_grading(board.store, [save(tmp_path / "a.csv", fill(rows, "Ann"))])
    again = fill(rows, "Ann")
    again[0]["points"] = "2"
    (done,) = import_grading(board.store, [save(tmp_path / "b.csv", again)])
    assert (done.n_new, done.n_changed, done.n_unchanged) == (0, 1, 4)
    kept = [e.data["points"]["idea"] for e in board.records(run_id, EventRecord)
            if e.kind == "human_grading" and e.item_id == "007"]  # fmt: skip
    assert kept == [4, 2]
    # (2 + 3 + 2) / 9 against the judges' 8.5 / 9.
    item = next(p for p in done.agreement.pairs if p.name == "007/idea")
    assert item.difference.value == pytest.approx(1 - 0.5)


def shares(who=("Ann", "Bo")):
    """Give judge's and people's shares: totals by item, and criteria by item and name."""
    totals, criteria = [], {}
    for item in ITEMS:
        judged = np.mean(JUDGES[item], axis=0)
        people = np.mean([PEOPLE[name][item] for name in who], axis=0)
        totals.append((judged.sum() / 9, people.sum() / 9))
        for k, (name, possible) in enumerate(POSSIBLE.items()):
            criteria[item, name] = (judged[k] / possible, people[k] / possible)
    return np.array(totals), criteria


def test_agreement_is_what_scipy_gives_for_the_same_numbers(board, graded, tmp_path):
    run_id, rows = graded
    files = [save(tmp_path / f"{who}.csv", fill(rows, who)) for who in ("Ann", "Bo")]
    (done,) = import_grading(board.store, files)
    assert agreement(board.store, run_id) == done.agreement
    totals, criteria = shares()
    pooled = np.array(list(criteria.values()))
    one = np.array([(sum(JUDGES[i][0]) / 9, y) for i, (_, y) in zip(ITEMS, totals, strict=True)])
    expected = {("answers", ""): totals, ("criteria", ""): pooled}
    for item in ITEMS:
        expected["item", item] = np.array([criteria[item, name] for name in POSSIBLE])
    found = {(p.scope, p.name): p for p in done.agreement.pairs}
    judges = [p for p in done.agreement.pairs if p.scope == "judge"]
    assert [p.name[:3] for p in judges] == ["1: ", "2: "]
    expected["judge", judges[0].name] = one
    for at, pairs in expected.items():
        x, y = pairs.T
        assert found[at].n == len(pairs)
        assert found[at].difference.value == pytest.approx(np.abs(x - y).mean(), abs=1e-12)
        if np.ptp(x) and np.ptp(y):
            assert found[at].pearson.value == pytest.approx(scipy.stats.pearsonr(x, y)[0])
            assert found[at].spearman.value == pytest.approx(scipy.stats.spearmanr(x, y)[0])
        else:
            assert found[at].pearson.value is found[at].spearman.value is None
    single = found["criterion", "p5/steps"]
    x, y = criteria["p5", "steps"]
    assert (single.n, single.pearson.value) == (1, None)
    assert single.difference.value == pytest.approx(abs(x - y))
    whole = found["answers", ""]
    assert whole.pearson.lo < whole.pearson.value < whole.pearson.hi
    # Items are few but independent: the plain t interval of scipy for their differences.
    gaps = np.abs(totals[:, 0] - totals[:, 1])
    ends = scipy.stats.t.interval(0.95, 4, gaps.mean(), scipy.stats.sem(gaps))
    assert (whole.difference.lo, whole.difference.hi) == pytest.approx(ends)
    assert found["item", "p3"].pearson.lo is None


def test_answers_that_no_judge_could_read_make_no_pair(board, tmp_path):
    board.scorer = "moody"
    registry.scorer("moody")(
        lambda judges: lambda s, o: (
            Score(value=None, status="unscored", reason="judge_unreadable")
            if s.item_id == "p3" else Score(value=1.0)
        )
    )  # fmt: skip
    run_id = board.run()
    rows = read(export_grading(board.store, run_id, tmp_path).table)
    (done,) = import_grading(board.store, [save(tmp_path / "f.csv", fill(rows, "Ann"))])
    assert (done.agreement.n_answers, done.agreement.n_unpaired) == (5, 1)
    assert [(p.scope, p.n) for p in done.agreement.pairs] == [("answers", 4), *[("item", 1)] * 4]
    assert done.agreement.people_alpha is None


def test_a_run_that_nobody_graded_has_no_agreement(board):
    assert agreement(board.store, board.run()) is None


def test_an_item_without_a_rubric_is_graded_as_a_whole(board, tmp_path):
    board.samples = [Sample(item_id=i, input="?", target=("1",)) for i in ITEMS]
    run_id = board.run()
    rows = read(export_grading(board.store, run_id, tmp_path).table)
    assert [(r["criterion_id"], r["points_possible"]) for r in rows] == [("whole", "1")] * 5
    filled = [row | {"points": "1", "grader": "Ann"} for row in rows]
    (done,) = import_grading(board.store, [save(tmp_path / "f.csv", filled)], as_verdict=True)
    assert (done.n_new, done.n_verdicts) == (5, 5)
    assert summarise(board.store, run_id).metrics["accuracy"].value == 1.0
    assert {s.passed for s in board.records(run_id, ScoreRecord)[5:]} == {True}
    assert {p.scope for p in done.agreement.pairs} == {"answers", "judge", "item"}


def test_a_fatal_criterion_without_a_point_takes_all(board, tmp_path):
    for sample in board.samples:
        sample.metadata["rubric"][0]["fatal"] = True
    run_id = board.run()
    rows = fill(read(export_grading(board.store, run_id, tmp_path).table), "Ann")
    rows[0]["points"] = "0"
    import_grading(board.store, [save(tmp_path / "f.csv", rows)])
    totals = {e.item_id: e.data["total"] for e in board.records(run_id, EventRecord)
              if e.kind == "human_grading"}  # fmt: skip
    assert (totals["007"], totals["=p2"]) == (0, 2)


# As verdicts


@pytest.mark.parametrize(
    ("solved", "passed"),
    [(None, {"007", "p3"}), ("0.5", {"007", "p3", "p5"}), ("0.7", {"007", "p3"}),
     ("0.9", {"007"}), ("nonsense", {"007", "p3"}), ("7", {"007", "p3"})],
)  # fmt: skip
def test_solved_is_from_the_share_on_that_the_run_was_told(board, tmp_path, solved, passed):
    def own(judges, solved=""):
        return grader(judges)

    registry.scorer("own")(own)
    board.scorer = "own" if solved is None else f"own?solved={solved}"
    run_id = board.run()
    rows = fill(read(export_grading(board.store, run_id, tmp_path).table), "Both", {"Both": BOTH})
    import_grading(board.store, [save(tmp_path / "f.csv", rows)], as_verdict=True)
    people = board.records(run_id, ScoreRecord)[5:]
    assert {score.item_id for score in people if score.passed} == passed


def test_as_verdicts_people_have_the_last_word_and_the_judges_stay(board, graded, tmp_path):
    run_id, rows = graded
    file = save(tmp_path / "f.csv", fill(rows, "Bo") + fill(rows, "Ann"))
    (done,) = import_grading(board.store, [file], as_verdict=True)
    assert (done.n_new, done.n_verdicts) == (10, 5)
    totals, _ = shares()
    summary = summarise(board.store, run_id)
    assert summary.metrics["accuracy"].value == pytest.approx(totals[:, 1].mean())
    assert summary.status == "done"
    scores = board.records(run_id, ScoreRecord)
    old = {s.item_id: s for s in scores[:5]}
    for verdict in scores[5:]:
        assert (verdict.scorer, verdict.judge_variant) == ("human", "human:Ann+human:Bo")
        assert verdict.replaces == old[verdict.item_id].seq
    first = next(s for s in scores[5:] if s.item_id == "p3")
    assert first.metrics == {
        "points": 7.5, "points_possible": 9.0, "criterion:idea": 3.5, "criterion:steps": 2.5,
        "criterion:end": 1.5,
    }  # fmt: skip
    assert first.passed  # 7.5 of 9 are 83 %
    # Agreement is still with the judges.
    assert done.agreement.pairs[0].difference.value == pytest.approx(
        np.abs(totals[:, 0] - totals[:, 1]).mean()
    )
    before = board.raw(run_id)
    (again,) = import_grading(board.store, [file], as_verdict=True)
    assert (again.n_unchanged, again.n_verdicts, board.raw(run_id)) == (10, 0, before)
    assert verify(board.store) == []


def test_a_verdict_counts_all_who_graded_the_answer(board, graded, tmp_path):
    run_id, rows = graded
    import_grading(board.store, [save(tmp_path / "a.csv", fill(rows, "Ann"))])
    import_grading(board.store, [save(tmp_path / "b.csv", fill(rows[:3], "Bo"))], as_verdict=True)
    (verdict,) = board.records(run_id, ScoreRecord)[5:]
    assert (verdict.item_id, verdict.value) == ("007", pytest.approx((9 + 8) / 2 / 9))


def test_scoring_again_gives_the_judges_the_last_word_again(board, graded, tmp_path):
    run_id, rows = graded
    file = save(tmp_path / "f.csv", fill(rows, "Ann"))
    import_grading(board.store, [file], as_verdict=True)
    done = rescore(board.store, run_id)
    totals, _ = shares()
    assert done.before.judge == "human:Ann"
    assert done.after.headline.value == pytest.approx(totals[:, 0].mean())


def test_a_verdict_ends_a_run_that_a_judges_fault_left_open(board, tmp_path):
    def falling(judges):
        def score(sample, output):
            if sample.item_id == "p3":
                raise RuntimeError("no line")
            return Score(value=1.0)

        return score

    registry.scorer("grader")(falling)
    run_id = board.run()
    assert summarise(board.store, run_id).status == "partial"
    rows = fill(read(export_grading(board.store, run_id, tmp_path).table), "Ann")
    file = save(tmp_path / "f.csv", [r for r in rows if r["item_id"] == "p3"])
    import_grading(board.store, [file])
    assert summarise(board.store, run_id).status == "partial"
    import_grading(board.store, [file], as_verdict=True)
    assert summarise(board.store, run_id).status == "done"
    assert [r.status for r in board.records(run_id, RunFinished)] == ["partial", "done"]


def test_a_strategys_number_cannot_be_peoples(board, tmp_path):
    @registry.strategy("last")
    class Last:
        n = 3

        def __call__(self, candidates):
            return 2

    run_id = board.run(strategy="last")
    rows = fill(read(export_grading(board.store, run_id, tmp_path).table), "Ann")
    assert len(rows) == 45
    file = save(tmp_path / "f.csv", rows)
    before = board.raw(run_id)
    with pytest.raises(UsageError, match="import without --as-verdict"):
        import_grading(board.store, [file], as_verdict=True)
    assert board.raw(run_id) == before
    import_grading(board.store, [file])


# What office programs make of the table


@pytest.mark.parametrize(
    "form",
    [{}, {"delimiter": ";"}, {"encoding": "utf-8"}, {"lineterminator": "\n"},
     {"delimiter": ";", "encoding": "utf-8", "lineterminator": "\n"}],
)  # fmt: skip
def test_forms_of_csv_that_are_read(board, graded, tmp_path, form):
    rows = [
        row | {"grader": "Änne", "comment": 'two\nlines; "quoted", and a comma'}
        for row in fill(graded[1], "Ann")
    ]
    (done,) = import_grading(board.store, [save(tmp_path / "f.csv", rows, **form)])
    assert (done.n_new, done.graders) == (5, ["Änne"])


def test_columns_may_be_moved_and_empty_ones_added(board, graded, tmp_path):
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=";", quoting=csv.QUOTE_ALL)
    writer.writerow([*reversed(COLUMNS), "", ""])
    for row in fill(graded[1], "Ann"):
        writer.writerow([*(row[name] for name in reversed(COLUMNS)), "", ""])
    writer.writerow([""] * 13)
    (tmp_path / "f.csv").write_text(text.getvalue(), encoding="utf-8", newline="")
    (done,) = import_grading(board.store, [tmp_path / "f.csv"])
    assert done.n_new == 5


def test_answers_may_be_left_out_and_names_drawn_down(board, graded, tmp_path):
    rows = fill(graded[1], "Ann")
    for row in rows[3:]:
        row["points"] = ""
    (done,) = import_grading(board.store, [save(tmp_path / "f.csv", rows)])
    assert done.n_new == 1


@pytest.mark.parametrize(
    ("raw", "match"),
    [
        (b"", "misses run"),
        (b"a,b\n1,2\n", "misses run.* has 'a', 'b'"),
        ("\t".join(COLUMNS).encode(), "parted by commas or semicolons"),
        (",".join((*COLUMNS, "notes")).encode(), "has 'notes'"),
        (",".join((*COLUMNS, "run")).encode(), "has 'run'"),
        (",".join(COLUMNS).encode("utf-16"), "no UTF-8 text.*save it as CSV in UTF-8"),
        ((",".join(COLUMNS) + "\n,,,,,,,,Änne,,").encode("cp1252"), "no UTF-8 text"),
        ((",".join(COLUMNS) + '\n"open').encode(), "no CSV table"),
        (",".join(COLUMNS).encode(), "no grading in it"),
    ],
)  # fmt: skip
def test_files_that_are_no_filled_table(board, tmp_path, raw, match):
    (tmp_path / "f.csv").write_bytes(raw)
    with pytest.raises(UsageError, match=match) as refused:
        import_grading(board.store, [tmp_path / "f.csv"])
    assert refused.value.exit_code == 2
    assert "\n" not in str(refused.value)


def test_an_unfilled_form_and_a_missing_file(board, graded, tmp_path):
    with pytest.raises(UsageError, match="no grading in it; fill in points and grader"):
        import_grading(board.store, [save(tmp_path / "f.csv", graded[1])])
    with pytest.raises(UsageError, match=r"cannot read .*gone\.csv"):
        import_grading(board.store, [tmp_path / "gone.csv"])


BAD = {
    "a run is not in this store": {"run": "20200101T000000000000-00000000"},
    "the run has no such answer": {"item_id": "p9"},
    "the run has no such answer: f.csv:2 .*epoch 3": {"epoch": "3"},
    "the attempt is another": {"attempt": "2"},
    "the row is for another answer or rubric": {"content": "h" + "0" * 24},
    "the rubric has no such criterion": {"criterion_id": "style"},
    "points_possible was changed": {"points_possible": "5"},
    "more points than possible: f.csv:2 .5 of 4.": {"points": "5"},
    "points are no whole number: f.csv:2 .'-1'.": {"points": "-1"},
    "points are no whole number: f.csv:2 .'2.5'.": {"points": "2.5"},
    "points are no whole number: f.csv:2 .'2,0'.": {"points": "2,0"},
    "points are no whole number: f.csv:2 .'٣'.": {"points": "٣"},
    "points are no whole number: f.csv:2 .'4444444444'.": {"points": "4" * 10},
    "epoch was changed": {"epoch": "first"},
    "points or a comment without a grader": {"grader": ""},
    "an answer is graded in part: .* 007 by Ann lacks idea": {"points": ""},
    "an answer is graded in part: .* 007 by Bo lacks": {"grader": "Bo"},
    "a grader has more than 100": {"grader": "A" * 101},
    "a grader is no name on one line": {"grader": "A\nB"},
    "a comment has more than 10000": {"comment": "c" * 10_001},
}


@pytest.mark.parametrize("match", BAD)
def test_a_row_that_cannot_be_right_is_refused_and_nothing_kept(board, graded, tmp_path, match):
    run_id, rows = graded
    filled = fill(rows, "Ann")
    filled[0] |= BAD[match]
    before = board.raw(run_id)
    with pytest.raises(RejectedError, match=match):
        import_grading(board.store, [save(tmp_path / "f.csv", filled)])
    assert board.raw(run_id) == before


def test_a_row_twice_in_one_file_or_in_two_is_refused(board, graded, tmp_path):
    rows = fill(graded[1], "Ann")
    twice = save(tmp_path / "f.csv", [*rows, rows[4]])
    with pytest.raises(RejectedError, match=r"graded twice by Ann: f\.csv:17 and f\.csv:6"):
        import_grading(board.store, [twice])
    once = save(tmp_path / "g.csv", rows)
    with pytest.raises(RejectedError, match="graded twice by Ann"):
        import_grading(board.store, [once, save(tmp_path / "h.csv", rows[:3])])


def test_a_row_with_a_cell_too_many_is_refused(board, graded, tmp_path):
    path = save(tmp_path / "f.csv", fill(graded[1], "Ann"))
    path.write_bytes(path.read_bytes().rstrip() + b",more\r\n")
    with pytest.raises(RejectedError, match=r"more cells than columns: f\.csv:16"):
        import_grading(board.store, [path])


def test_every_reason_is_told_at_once(board, graded, tmp_path):
    rows = fill(graded[1], "Ann")
    rows[0]["points"], rows[4]["grader"], rows[8]["content"] = "9", "", "h0"
    with pytest.raises(RejectedError) as refused:
        import_grading(board.store, [save(tmp_path / "f.csv", rows)])
    told = "\n".join(refused.value.reasons)
    for part in ("more points than possible", "without a grader", "another answer", "=p2 by Ann"):
        assert part in told
    assert all("\n" not in reason for reason in refused.value.reasons)


def test_an_answer_that_another_run_gave_takes_no_grades(board, graded, tmp_path):
    """The content id binds a row to its run, item and answer, however alike two runs are."""
    other = board.run(seed=1, fresh=True)
    rows = [row | {"run": other} for row in fill(graded[1], "Ann")]
    with pytest.raises(RejectedError, match="another answer or rubric"):
        import_grading(board.store, [save(tmp_path / "f.csv", rows)])


def test_two_runs_in_one_file_are_kept_both_or_none(board, tmp_path):
    runs = [board.run(), board.run(seed=1)]
    rows = []
    for run_id in runs:
        rows += fill(read(export_grading(board.store, run_id, tmp_path / run_id).table), "Ann")
    file = save(tmp_path / "f.csv", rows)
    before = [board.raw(run_id) for run_id in runs]
    writing = Journal(board.store.journal(runs[1]), runs[1])
    with writing, pytest.raises(StoreError, match="being written by another process"):
        import_grading(board.store, [file])
    assert [board.raw(run_id) for run_id in runs] == before
    assert [one.run_id for one in import_grading(board.store, [file])] == runs


def test_a_grading_that_came_with_a_run_and_cannot_be_one_is_passed_over(board):
    run_id = board.run()
    for points, total in (({"idea": 5}, 5), ({"idea": -1}, 0), ({"idea": 1}, 4), ({}, 0)):
        data = {"grader": "x", "content": "h", "points": points, "possible": {"idea": 4},
                "total": total, "rubric": True}  # fmt: skip
        with Journal(board.store.journal(run_id), run_id) as journal:
            journal.append(EventRecord(
                seq=0, ts="", run_id=run_id, schema=1, kind="human_grading", item_id="007",
                epoch=0, attempt=1, data=data,
            ))  # fmt: skip
    assert agreement(board.store, run_id) is None
