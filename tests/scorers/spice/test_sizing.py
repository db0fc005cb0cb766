"""The scorer `sizing`: every kind of answer has its status and reason, and budgets count."""

from __future__ import annotations

import json
import shutil

import pytest

from harness.core.errors import UsageError
from harness.core.types import Output, Sample
from scorers.spice import CIRCUITS
from scorers.spice.score import objective, read_specs
from scorers.spice.sizing import designs_of, sizing

CIRCUIT = CIRCUITS["five_trans_ota"]
SPECS = "dc_gain_db > 41 AND power_dc < 71"


def item(budget=1, specs=SPECS, circuit=CIRCUIT, **more):
    return Sample(
        item_id="x", input="", metadata={
            "circuit": circuit.name, "variables": {n: list(g) for n, g in circuit.variables.items()},
            "specs": [[s.metric, s.op, s.target] for s in read_specs(specs)], "budget": budget,
            "random_j": {"10": 0.01}, "random_rate": 0.05, "discriminating": True, **more,
        },
    )  # fmt: skip


@pytest.fixture(scope="module")
def scorer():
    if shutil.which("ngspice") is None:
        pytest.skip("needs the program ngspice: apt-get install ngspice")
    made = sizing(tech="demo")
    yield made
    made.close()


def says(scorer, sample, answer):
    return scorer(sample, Output(text=answer if isinstance(answer, str) else json.dumps(answer)))


def test_a_design_that_meets_all_is_one(scorer):
    # 41.619 dB, 69.933 µW: the reference figures of the middle of the grid.
    score = says(scorer, item(), CIRCUIT.middle)
    assert (score.value, score.status, score.reason) == (1.0, "scored", None)
    expected = objective(read_specs(SPECS), {"dc_gain_db": 41.619, "power_dc": 69.933})
    assert score.metrics["best_j:design"] == pytest.approx(expected, abs=1e-4)
    assert score.metrics["fom:valid"] == pytest.approx(41.619 / 41 / (69.933 / 71), rel=1e-4)
    assert score.facts["designs"][0]["metrics"]["ugbw"] == pytest.approx(85.01, rel=1e-3)
    assert [picture.name for picture in score.pictures] == ["Best design"]
    rows = json.loads(score.pictures[0].data)["data"]["values"]
    assert rows[0]["y"] == pytest.approx(41.619, abs=0.01)


def test_a_target_that_is_missed_is_named_with_its_figure(scorer):
    score = says(scorer, item(specs="dc_gain_db > 45"), CIRCUIT.middle)
    assert (score.value, score.status) == (0.0, "scored")
    assert score.explanation == "not met: dc_gain_db > 45 (41.62)"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("I would take wide transistors.", "no JSON object"),
        ({**CIRCUIT.middle, "W_tail_base": "1.68"}, "W_tail_base is '1.68', no number"),
        ({**CIRCUIT.middle, "W_tail_base": 1.7}, "not on its grid"),
        ({**CIRCUIT.middle, "W_tail_base": True}, "no number"),
        ({"W_tail_base": 1.68}, "missing"),
        ({**CIRCUIT.middle, "x1 out 0 0 0 nch\n.control\nshell id\n.endc": 1}, "is no variable"),
        ('{"W_tail_base": NaN, "W_diff_base": 1.68, "W_load_base": 1.68}', "NaN is no number"),
    ],
)
def test_what_is_no_design_is_wrong_and_says_why(scorer, answer, why):
    score = says(scorer, item(), answer)
    assert (score.value, score.status, score.reason) == (0.0, "error", "no_design")
    assert why in score.explanation


def test_an_empty_answer_is_none(scorer):
    assert says(scorer, item(), " ").reason == "no_answer"


def test_a_figure_that_cannot_be_measured_is_not_met(scorer):
    # Driven out of saturation it passes more through its gate's capacitor than it amplifies: no corner.
    stage = CIRCUITS["resistive_load_amp"]
    weak = {"W_input": 50.0, "L_input": 0.5, "R_load": 100e3}
    specs = "bandwidth_mhz > 0.001 AND output_swing_v > 0"
    score = says(scorer, item(specs=specs, circuit=stage), weak)
    assert (score.value, score.reason) == (0.0, "not_measured")
    assert "bandwidth_mhz" in score.explanation


def test_a_budget_counts_every_design_and_no_more(scorer):
    low = {**CIRCUIT.middle, "W_diff_base": 0.84}
    tried = [low, {"W": 1}, CIRCUIT.middle, {**CIRCUIT.middle, "W_load_base": 2.52}]
    specs = "ugbw > 80 AND power_dc < 71"
    score = says(scorer, item(budget=10, specs=specs), {"designs": tried})
    assert (
        score.value,
        score.metrics["first_hit:design"],
        score.metrics["evaluations:design"],
    ) == (
        1.0,
        3,
        4,
    )
    assert score.metrics["gain_over_random:design"] == pytest.approx(
        score.metrics["best_j:design"] - 0.01
    )
    assert [picture.name for picture in score.pictures] == ["Convergence", "Designs", "Best design"]
    best = [row["best"] for row in json.loads(score.pictures[0].data)["data"]["values"]]
    assert best == sorted(best)
    # The third design lies beyond a budget of two.
    assert says(scorer, item(budget=2, specs=specs), {"designs": tried}).value == 0.0


def test_one_shot_takes_no_list_of_designs():
    many = json.dumps({"designs": [CIRCUIT.middle]})
    assert designs_of(many, 1) == [many]
    assert designs_of(many, 10) == [CIRCUIT.middle]


def test_a_technology_that_is_not_here_is_unavailable(monkeypatch, tmp_path):
    monkeypatch.setenv("HARNESS_DATA", str(tmp_path))
    score = sizing(tech="sky130")(item(), Output(text=json.dumps(CIRCUIT.middle)))
    assert score.status == "unavailable"
    assert "harness fetch sky130" in score.explanation
    with pytest.raises(UsageError, match="tech=tsmc is not one of"):
        sizing(tech="tsmc")


def test_without_the_program_it_is_unavailable(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    score = sizing(tech="demo")(item(), Output(text=json.dumps(CIRCUIT.middle)))
    assert (score.status, "apt-get install ngspice" in score.explanation) == ("unavailable", True)
