"""The questions of DSGym as they are: counts, what can be asked here, references against themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.errors import HarnessError
from harness.core.task import TaskRequest, build, make_task
from harness.core.types import Output
from harness.runner.audit import audit
from harness.runner.audit_subject import rendered
from harness.solvers.environment import EnvironmentRequest
from scorers.answer_types import matches, read_type
from scorers.data_answer import upstream_rule
from tasks.dsgym import rows
from tasks.dsgym.rows import host_file

DATA = Path(__file__).resolve().parents[3] / "shared" / "upstream" / "dsgym"
READ = {"daeval": rows.daeval, "qrdata": rows.qrdata, "dabstep": rows.dabstep, "dsbio": rows.dsbio}


@pytest.fixture(scope="module", autouse=True)
def there():
    if not (DATA / "data").is_dir():
        pytest.skip("needs ../shared/upstream/dsgym")


@pytest.mark.parametrize(
    ("name", "n", "n_here"),
    [("daeval", 181, 135), ("qrdata", 251, 85), ("dabstep", 460, 3), ("dsbio", 90, 0)],
)
def test_counts_and_what_can_be_asked_here(name, n, n_here):
    questions = READ[name](DATA)
    assert len({q.item_id for q in questions}) == len(questions) == n
    here = [
        q for q in questions if not q.without and all(host_file(DATA, f).is_file() for f in q.files)
    ]
    assert len(here) == n_here


def test_levels_types_and_sub_answers_are_as_published():
    levels = [q.category for q in READ["daeval"](DATA)]
    assert [levels.count(level) for level in ("easy", "medium", "hard")] == [67, 59, 55]
    kinds = [q.category for q in READ["qrdata"](DATA)]
    assert (kinds.count("numerical"), kinds.count("multiple_choice")) == (153, 98)
    assert sum(q.gold.count("@") for q in READ["daeval"](DATA)) == 330
    dabstep = [q.category for q in READ["dabstep"](DATA)]
    assert (dabstep.count("easy"), dabstep.count("hard")) == (72 + 3, 378 + 7)


@pytest.mark.parametrize("name", READ)
def test_every_reference_is_right_by_both_rules(name):
    for q in READ[name](DATA):
        if not q.without:
            assert upstream_rule(q.rule)(q.gold, q.gold), q.item_id
            assert matches(q.gold, q.gold, read_type(q.answer_type), q.options).right, q.item_id


def test_always_c_is_right_as_often_as_published():
    # Measured with the benchmark's own rule: 41 of 251.
    check = {c.name: c for c in audit("dsgym/qrdata", data_root=DATA).checks}["frequent_answer"]
    assert "always 'C' is right in 41 of 251 (16.3 %)" in check.why
    assert check.verdict == "warn"


@pytest.mark.parametrize("name", READ)
def test_prompts_hold_what_they_should_and_nothing_more(name):
    task = make_task(f"dsgym/{name}", TaskRequest(data_root=DATA))
    for sample, prompt in zip(task.samples, rendered(task, task.samples), strict=True):
        assert sample.input in prompt
        assert all(file in prompt for file in sample.metadata["files"])
        assert "# REFERENCE" not in prompt


def test_the_textbook_reference_is_shown_only_on_demand():
    shown = make_task("dsgym/qrdata", TaskRequest(data_root=DATA, args={"reference": "shown"}))
    prompts = rendered(shown, shown.samples)
    assert all("# REFERENCE" in prompt for prompt in prompts)
    assert "OpenIntro" in prompts[0]


def test_what_is_missing_is_named():
    task = make_task("dsgym/dabstep", TaskRequest(data_root=DATA))
    by_id = {sample.item_id: sample for sample in task.samples}
    with pytest.raises(HarnessError, match="gives no answer"):
        task.environment(by_id["dabstep-1"], EnvironmentRequest())
    with pytest.raises(HarnessError, match=r"payments\.csv"):
        task.environment(by_id["dabstep-dev-5"], EnvironmentRequest()).__enter__()
    score = build("scorers", task.scorer)
    assert score(by_id["dabstep-dev-5"], Output(text="nl")).value == 1.0
