"""aicrypto/proof on a sample of upstream's exams; skipped where it is not at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.task import TaskRequest, make_task

DATA = Path(__file__).resolve().parents[3] / "shared" / "upstream" / "aicrypto"
EXAMS = DATA / "data" / "proof_problems"


@pytest.fixture(scope="module")
def task():
    if not EXAMS.is_dir():
        pytest.skip("needs ../shared/upstream/aicrypto")
    return make_task("aicrypto/proof", TaskRequest(data_root=DATA))


def test_the_problems_of_the_sample_and_their_points(task):
    found = {s.item_id: s.metadata["points"] for s in task.samples}
    assert found == {"proof-exam1-1": 18, "proof-exam3-1": 14}
    assert [s.metadata["rubric"][0]["id"] for s in task.samples] == ["whole", "whole"]


def test_definitions_come_first_and_the_text_is_the_files(task):
    first = task.samples[0].input
    raw = (EXAMS / "exam1" / "problem1.tex").read_text(encoding="utf-8")
    definitions, heading, problem = raw.partition("\\paragraph{Problem 1")
    assert first == f"{definitions.strip()}\n\n{heading}{problem}".strip()


def test_the_note_of_exam_3_is_shown_unless_it_is_switched_off(task):
    note = (EXAMS / "exam3" / "Note.md").read_text(encoding="utf-8").strip()
    assert task.samples[1].input.startswith(note)
    assert task.info["notes"] == {"exam1": "there is none", "exam3": "shown with every problem"}
    bare = make_task("aicrypto/proof", TaskRequest(data_root=DATA, args={"note": "off"}))
    assert note not in bare.samples[1].input
