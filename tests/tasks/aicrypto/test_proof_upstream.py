"""The reader of upstream's exams, on made-up ones in the same layout."""

from __future__ import annotations

import pytest

from harness.core.errors import UsageError
from harness.core.task import TaskRequest, make_task
from harness.core.types import Output
from scorers.rubric import rubric
from tasks.aicrypto.proof_upstream import read_fragment

ONE = "\\paragraph{Definitions.} A wug is blue.\n\n\\paragraph{Problem 1 (18 points)} Show that wugs fly."
TWO = "\\paragraph{Problem 2 (20 points)}\nUse the wug of Problem 1. Show that it sings.\n"
THREE = "**Problem 3 (14 points)** Show that a dax hops."
NOTE = "## Note\nWrite formal proofs. See Problem 2."
LEAK = "\\paragraph{Problem 1 (18 points)} Show that wugs fly."


def exams(tmp_path, files, folder="data/proof_problems"):
    for name, text in files.items():
        path = tmp_path / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return tmp_path


WHOLE = {"exam1/problem1.tex": ONE, "exam1/problem2.tex": TWO, "exam1/problem3.tex": THREE}


def ask(root, no_data=False, **args):
    return make_task("aicrypto/proof", TaskRequest(data_root=root, args=args, no_data=no_data))


@pytest.mark.parametrize("folder", ["data/proof_problems", "data/Proof", "proof_problems", "."])
def test_each_layout_is_found(folder, tmp_path):
    task = ask(exams(tmp_path, WHOLE, folder))
    assert [s.item_id for s in task.samples] == [f"proof-exam1-{k}" for k in (1, 2, 3)]
    assert [s.metadata["points"] for s in task.samples] == [18, 20, 14]
    assert task.info["points_possible"] == 52
    assert "without a reference" in task.info["graded"]


def test_problems_stand_in_the_order_of_their_numbers(tmp_path):
    files = {f"exam{e}/problem{k}.tex": f"\\paragraph{{Problem {k} (1 point)}} Do."
             for e in (10, 2) for k in (10, 9)}  # fmt: skip
    names = [s.item_id for s in ask(exams(tmp_path, files)).samples]
    assert names == [f"proof-exam{e}-{k}" for e in (2, 10) for k in (9, 10)]


def test_a_problem_brings_along_what_it_rests_on(tmp_path):
    one, two, three = (s.input for s in ask(exams(tmp_path, WHOLE)).samples)
    assert one.index("A wug is blue") < one.index("Problem 1 (18 points)")
    # Definitions of an earlier problem, the problem it names, then itself.
    order = [two.index(t) for t in ("A wug is blue", "not to be proved here", "wugs fly", "sings")]
    assert order == sorted(order)
    assert "wugs fly" not in three
    assert "sings" not in one + three


def test_definitions_of_a_later_problem_are_not_brought_along(tmp_path):
    files = {"exam1/problem1.tex": LEAK, "exam1/problem2.tex": f"A fep is red.\n{TWO}"}
    one, two = (s.input for s in ask(exams(tmp_path, files)).samples)
    assert "fep" in two
    assert "fep" not in one


@pytest.mark.parametrize(
    ("note", "switch", "shown", "said"),
    [(NOTE, "auto", True, "shown"), (NOTE, "off", False, "left out"), (NOTE, "on", True, "shown"),
     (LEAK, "auto", False, "itself a problem"), (LEAK, "on", True, "shown")],
)  # fmt: skip
def test_a_note_is_shown_unless_it_is_a_problem(note, switch, shown, said, tmp_path):
    task = ask(exams(tmp_path, {**WHOLE, "exam1/Note.md": note}), note=switch)
    third = task.samples[2].input
    assert (note in third) is shown
    assert said in task.info["notes"]["exam1"]
    assert third == task.samples[2].metadata["statement"]
    # A problem that only the note names is not brought along.
    assert "sings" not in third


def test_data_and_their_hash(tmp_path):
    first = ask(exams(tmp_path / "a", WHOLE)).info["dataset_sha256"]
    again = ask(exams(tmp_path / "b", WHOLE, "data/Proof")).info["dataset_sha256"]
    other = ask(exams(tmp_path / "c", {**WHOLE, "exam1/Note.md": NOTE})).info["dataset_sha256"]
    assert first == again != other


def test_one_criterion_stands_for_the_whole(tmp_path):
    task = ask(exams(tmp_path, WHOLE))
    sample = task.samples[0]
    asked = []

    class Judge:
        spec = "mock:judge"

        def __call__(self, messages, seed):
            asked.extend(messages)
            return Output(text='{"whole": 9}')

    score = rubric((Judge(),))(sample, Output(text="## Proof\nThey do."))
    assert (score.value, score.metrics["criterion:whole"]) == (0.5, 9)
    assert "There is no reference proof" in asked[1].content
    assert "whole (0 to 18 points)" in asked[1].content


def test_gold_is_not_known_and_a_guess_is_well_formed(tmp_path):
    task = ask(exams(tmp_path, WHOLE))
    for sample in task.samples:
        assert task.gold(sample) == ""
        assert task.gold_value(sample) == 0
        assert task.guess(sample, None).startswith("## Proof\n")


def test_without_its_data_a_problem_is_withheld(tmp_path):
    sample = ask(exams(tmp_path, WHOLE), no_data=True).samples[0]
    assert "wug" not in sample.input
    assert "wug" in sample.metadata["statement"]


BROKEN = {
    "no heading": ("Show that wugs fly.", "no heading"),
    "no points": ("\\paragraph{Problem 1} Show it.", "says no points"),
    "zero points": ("\\paragraph{Problem 1 (0 points)} Show it.", "says no points"),
    "two headings": (LEAK + LEAK, "2 headings"),
    "nothing after it": ("\\paragraph{Problem 1 (18 points)}\n", "nothing stands after"),
    "another number": ("\\paragraph{Problem 2 (18 points)} Show it.", "says problem 2"),
    "empty": ("", "is empty"),
    "white space": (" \n", "is empty"),
    "not UTF-8": (b"\\paragraph{Problem 1 (18 points)} \xff", "not UTF-8"),
}


@pytest.mark.parametrize(("text", "why"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_named(text, why, tmp_path):
    with pytest.raises(UsageError, match=why) as error:
        ask(exams(tmp_path, {"exam1/problem1.tex": text}))
    assert "exam1/problem1.tex" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_number_twice_and_no_exam_at_all(tmp_path):
    twice = {"exam1/problem1.tex": LEAK, "exam1/problem01.tex": LEAK}
    with pytest.raises(UsageError, match="problem 1 stands in another file"):
        ask(exams(tmp_path / "a", twice))
    with pytest.raises(UsageError, match=r"no exam1/problem1\.tex"):
        ask(tmp_path / "b")
    with pytest.raises(UsageError, match=r"Note.md: not UTF-8"):
        ask(exams(tmp_path / "c", {**WHOLE, "exam1/Note.md": b"\xff"}))


@pytest.mark.parametrize(
    "heading",
    ["\\paragraph{Problem 4 (18 points)}", "\\paragraph{Problem 4 (18 points).}", "**Problem 4 (18 pts)**",
     "\\paragraph*{Problem~4 ( 18 point )}", "\\paragraph{problem 4 (18 Points)} "],
)  # fmt: skip
def test_headings_in_use(heading):
    found = read_fragment(f"\n{heading}\nShow it.", "x")
    assert (found.number, found.points, found.before) == (4, 18, "")
