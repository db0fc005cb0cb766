"""aicrypto/proof on own items: what is shipped, how its answers are graded, and broken files."""

from __future__ import annotations

import hashlib
import json
import re
import runpy
from pathlib import Path
from random import Random

import jinja2
import msgspec
import pytest

import harness
from harness.core.errors import UsageError
from harness.core.registry import entries
from harness.core.task import TaskRequest, make_task
from harness.core.types import Output
from scorers.rubric import rubric
from tasks.aicrypto.proof import answer_of, read_problem, read_problems, to_sample

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "data" / "aicrypto" / "proof"
PROBLEMS = read_problems(FOLDER)
NAMES = [problem.id for problem in PROBLEMS]
KINDS = ("reference", "half", "wrong", "empty")
JUDGE = f"mock:script?file={FOLDER / 'judge.jsonl'}"
# Points of the criteria, and which are fatal, as the task's description lists them.
LISTED = {
    "P01": [3, 3, 2], "P02": [4, 3, 3], "P03": [4, 4, 2], "P04": [3, 4, 3], "P05": [4, 3, 3],
    "P06": [2, 4, 4], "P07": [4, 3, 3], "P08": [5, 3, 2], "P09": [4, 3, 3], "P10": [3, 4, 4],
    "P11": [4, 4, 2], "P12": [4, 4, 2],
}  # fmt: skip
# Totals of the half and the wrong proof, added up by hand; a fatal criterion has taken the points of
# the wrong proofs of P02, P04 and P05.
TOTALS = {
    "P01": (4, 0), "P02": (5, 0), "P03": (6, 0), "P04": (7, 0), "P05": (6, 0), "P06": (6, 2),
    "P07": (6, 0), "P08": (6, 0), "P09": (6, 3), "P10": (7, 3), "P11": (6, 0), "P12": (7, 3),
}  # fmt: skip


class HashJudge:
    """Grades the shipped answers by the hash of what stands in the fence; else says nothing."""

    spec = "fake:hash"

    def __init__(self):
        self.known = {
            hashlib.sha256(proof.encode()).hexdigest(): points
            for problem in PROBLEMS
            for proof, points in problem.graded().values()
        }

    def __call__(self, messages, seed):
        user = messages[-1].content
        mark = re.search(r"^BEGIN (\w+)$", user, re.MULTILINE)
        proof = user[mark.end() : user.index(f"\nEND {mark[1]}\n")].strip()
        points = self.known.get(hashlib.sha256(proof.encode()).hexdigest())
        return Output(text="" if points is None else f"Graded: {json.dumps(points)}")


def _scores(text_of, **options):
    score = rubric((HashJudge(),), **options)
    task = make_task("aicrypto/proof", TaskRequest())
    return [score(sample, Output(text=text_of(sample))) for sample in task.samples]


def _source(problem_id="P02"):
    return (FOLDER / f"{problem_id}.toml").read_text(encoding="utf-8")


# --- what is shipped -------------------------------------------------------------------------


def test_the_twelve_problems_are_there_with_their_points():
    found = {problem.id: [one.points for one in problem.rubric] for problem in PROBLEMS}
    assert found == LISTED
    assert [problem.points for problem in PROBLEMS] == [sum(points) for points in LISTED.values()]
    assert len(PROBLEMS) == entries("tasks")["aicrypto/proof"].n


def test_criteria_are_named_once_among_all_problems():
    # A run's metric criterion:ID would else mix two of them.
    ids = [one.id for problem in PROBLEMS for one in problem.rubric]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("problem", PROBLEMS, ids=NAMES)
def test_each_text_is_whole(problem):
    graded = problem.graded()
    texts = {kind: graded[kind][0] for kind in KINDS}
    assert texts["empty"] == ""
    assert len({*texts.values()}) == 4
    for text in (problem.statement, *texts.values()):
        assert text.count("$") % 2 == 0
        for left, right in (("{", "}"), ("[", "]")):
            bare = text.replace("\\" + left, "").replace("\\" + right, "")
            assert bare.count(left) == bare.count(right)
        opened = re.findall(r"\\begin\{(\w+)\}", text)
        assert sorted(opened) == sorted(re.findall(r"\\end\{(\w+)\}", text))
        assert len(re.findall(r"\\\[", text)) == len(re.findall(r"\\\]", text))
    assert problem.common_errors


@pytest.mark.parametrize("problem", PROBLEMS, ids=NAMES)
def test_the_question_gives_no_part_of_the_solution_away(problem):
    task = make_task("aicrypto/proof", TaskRequest())
    sample = next(s for s in task.samples if s.item_id == problem.item_id)
    template = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(task.prompt)
    shown = template.render(input=sample.input, metadata=sample.metadata)
    assert problem.statement.strip() in shown
    assert '"## Proof"' in shown
    for hidden in (problem.reference, *(one.criterion for one in problem.rubric)):
        assert hidden.strip() not in shown


# --- how its answers are graded --------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("problem", PROBLEMS, ids=NAMES)
def test_each_graded_answer_has_exactly_its_points(problem, kind):
    proof, points = problem.graded()[kind]
    score = rubric((HashJudge(),))(to_sample(problem), Output(text=answer_of(proof)))
    half, wrong = TOTALS[problem.id]
    total = {"reference": problem.points, "half": half, "wrong": wrong, "empty": 0}[kind]
    assert score.metrics["points"] == total
    assert score.value == pytest.approx(total / problem.points)
    assert score.passed is (kind == "reference")
    assert score.reason == ("no_answer" if kind == "empty" else None)
    assert {k: score.metrics[f"criterion:{k}"] for k in points} == points


@pytest.mark.parametrize("options", [{}, {"repeats": "3"}])
def test_gold_scores_one_and_a_guess_what_the_wrong_proof_does(options):
    task = make_task("aicrypto/proof", TaskRequest())
    assert {score.value for score in _scores(task.gold, **options)} == {1.0}
    guessed = _scores(lambda sample: task.guess(sample, Random(0)), **options)
    wrong = [TOTALS[p.id][1] / p.points for p in PROBLEMS]
    assert [score.value for score in guessed] == pytest.approx(wrong)


def test_an_answer_that_the_fake_judge_does_not_know_is_unscored():
    assert {score.status for score in _scores(lambda _: "## Proof\nTrust me.")} == {"unscored"}


def test_the_scripted_judge_is_what_its_maker_writes():
    made = runpy.run_path(str(ROOT / "data" / "make" / "aicrypto" / "make_proof_judge.py"))
    assert made["main"](["--check"]) == 0
    assert len(made["render"]().splitlines()) == 36


@pytest.mark.parametrize("kind", ["half", "empty"])
def test_the_whole_path_with_a_scripted_judge(kind, tmp_path):
    rows = [{"item_id": p.item_id, "output": answer_of(p.graded()[kind][0])} for p in PROBLEMS]
    script = tmp_path / "answers.jsonl"
    script.write_bytes(b"\n".join(map(msgspec.json.encode, rows)))
    run = harness.run("aicrypto/proof", f"mock:script?file={script}", store=tmp_path, judge=JUDGE)
    summary = run.summary()
    won = [TOTALS[p.id][0] if kind == "half" else 0 for p in PROBLEMS]
    name, metric = next(iter(summary.metrics.items()))
    share = sum(a / p.points for a, p in zip(won, PROBLEMS, strict=True)) / 12
    assert (name, summary.status, summary.n_counted) == ("points_share", "done", 12)
    assert metric.value == pytest.approx(share)
    assert summary.metrics["scoring_rate"].value == pytest.approx(sum(won) / 119)


def test_gold_through_the_whole_path_with_two_judges_and_repeats(tmp_path):
    second = tmp_path / "other.jsonl"
    second.write_bytes((FOLDER / "judge.jsonl").read_bytes())
    judges = f"{JUDGE},mock:script?file={second}"
    run = harness.run(
        "aicrypto/proof", "mock:gold", store=tmp_path, judge=judges, first=2, args={"repeats": "2"}
    )
    summary = run.summary()
    assert next(iter(summary.metrics.values())).value == 1
    assert summary.metrics["n_gradings"].value == 4


def test_without_a_judge_nothing_is_known(tmp_path):
    summary = harness.run("aicrypto/proof", "mock:gold", store=tmp_path).summary()
    assert (summary.counts["unscored"], summary.n_counted) == (12, 0)


def test_without_its_data_a_problem_is_withheld_but_judged():
    full = make_task("aicrypto/proof", TaskRequest())
    bare = make_task("aicrypto/proof", TaskRequest(no_data=True))
    for sample, other in zip(full.samples, bare.samples, strict=True):
        assert other.input != sample.input
        assert other.metadata["title"] == ""
        assert other.metadata["statement"] == sample.metadata["statement"]


@pytest.mark.parametrize("args", [{"note": "maybe"}, {"judges": "2"}])
def test_an_unknown_switch_is_refused(args):
    with pytest.raises(UsageError):
        make_task("aicrypto/proof", TaskRequest(args=args))


def test_a_switch_of_the_scorer_reaches_it():
    task = make_task("aicrypto/proof", TaskRequest(args={"repeats": "3", "solved": "0.9"}))
    assert task.scorer == "rubric?repeats=3&solved=0.9"
    assert task.info["solved_from"] == "0.9"


# --- broken files ----------------------------------------------------------------------------

# What is replaced in the file of P02, by what, and what the error must name.
FAULTS = {
    "points that do not sum": ("points = 10", "points = 11", "'rubric': its points sum to 10"),
    "an id twice": ('id = "p02_success"', 'id = "p02_reduction"', "'rubric.id': 'p02_reduction'"),
    "no points": ("points = 4\nfatal", "points = 0\nfatal", "'rubric.p02_reduction'"),
    "an unknown field": ('label = "f', 'lable = "f', "lable"),
    "an unknown field of a criterion": ("fatal = true", "deadly = true", "deadly"),
    "a missing field": ('label = "foundations"\n', "", "label"),
    "a field of the wrong type": ("points = 10", 'points = "10"', "points"),
    "an empty statement": ("statement = '''", "statement = ''\nx = '''", "statement"),
    "expected points out of range": ("p02_distribution = 0, p02_success = 1 }\ntext = '''\nAssume",
        "p02_distribution = 4, p02_success = 1 }\ntext = '''\nAssume",
        "'answers.half.points.p02_distribution': 4 of 3"),
    "negative points": ("p02_success = 1 }\ntext = '''\nAssume",
        "p02_success = -1 }\ntext = '''\nAssume", "answers.half.points"),
    "a criterion left out": ("{ p02_reduction = 4, p02_distribution = 0, ", "{ p02_reduction = 4, ",
        "'answers.half.points': must name the criteria"),
    "a reference without full points": ("p02_distribution = 3, p02_success = 3",
        "p02_distribution = 3, p02_success = 2", "'answers.reference.points'"),
    "an empty answer with points": ("p02_reduction = 0, p02_distribution = 0, p02_success = 0",
        "p02_reduction = 1, p02_distribution = 0, p02_success = 0", "'answers.empty.points'"),
    "no TOML": ("[[rubric]]", "[[rubric]", "TOML|Expected"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "named"), FAULTS.values(), ids=FAULTS)
def test_a_broken_file_is_refused_in_one_line(old, new, named, tmp_path):
    source = _source()
    assert old in source
    path = tmp_path / "P02.toml"
    path.write_text(source.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(UsageError) as error:
        read_problem(path)
    message = str(error.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    assert re.search(named, message)


def test_a_text_where_none_belongs_and_none_where_one_does(tmp_path):
    path = tmp_path / "P02.toml"
    path.write_text(_source() + 'text = "something"\n', encoding="utf-8")
    with pytest.raises(UsageError, match=r"answers\.empty\.text"):
        read_problem(path)
    without = re.sub(r"(?s)(\[answers\.half\].*?)text = '''.*?'''", r"\1", _source(), count=1)
    path.write_text(without, encoding="utf-8")
    with pytest.raises(UsageError, match=r"answers\.half\.text"):
        read_problem(path)


def test_a_file_that_is_no_text(tmp_path):
    path = tmp_path / "P02.toml"
    path.write_bytes(b"id = '\xff'")
    with pytest.raises(UsageError, match=r"P02\.toml"):
        read_problem(path)
    with pytest.raises(UsageError, match="cannot read"):
        read_problem(tmp_path / "missing.toml")


def test_a_folder_of_problems(tmp_path):
    with pytest.raises(UsageError, match="no problems"):
        read_problems(tmp_path)
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_text(_source(), encoding="utf-8")
    with pytest.raises(UsageError, match=r"b.toml: field 'id': 'P02' is used twice"):
        read_problems(tmp_path)
