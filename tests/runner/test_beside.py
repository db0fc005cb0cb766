"""A run beside published figures, and points won over points possible."""

from __future__ import annotations

import msgspec
import pytest

from harness.core import registry
from harness.core.published import published_figures
from harness.core.types import Output, Score
from harness.runner.beside import beside_published
from harness.runner.summary import summarise


@pytest.fixture
def graded(house):
    """Items worth 1, 2, 3, …; an answer is the share of the points that it wins."""

    def judge(sample, output):
        possible = float(int(sample.item_id[1:]) + 1)
        if output.text == "mumble":
            return Score.no_answer("nothing to read")
        won = float(output.text) * possible
        return Score(value=won / possible, metrics={"points": won, "points_possible": possible})

    registry.scorer("points")(lambda: judge)
    house.scorer = "points"
    house.samples = house.samples[:4]
    make = house.task
    registry.task("own/add", n=4)(lambda r: msgspec.structs.replace(make(r), metric="points_share"))
    return house


def test_the_scoring_rate_weighs_items_by_their_points(graded):
    shares = {"i000": "1", "i001": "0", "i002": "0.5", "i003": "1"}
    graded.answer = lambda request: Output(text=shares[request.item_id])
    run = graded.run()
    metrics = summarise(graded.store, run.run_id).metrics
    assert list(metrics) == ["points_share", "scoring_rate"]
    assert metrics["points_share"].value == (1 + 0 + 0.5 + 1) / 4
    # 1 of 1, 0 of 2, 1.5 of 3, 4 of 4
    assert metrics["scoring_rate"].value == pytest.approx(6.5 / 10)
    assert metrics["scoring_rate"].method == "ratio-t"


def test_an_unreadable_answer_wins_nothing_and_its_points_stay(graded):
    graded.answer = lambda request: Output(text="1")
    graded.run(seed=1)
    graded.answer = lambda request: Output(text="mumble" if request.item_id == "i003" else "1")
    run = graded.run(seed=2)
    # What i003 is worth was told by the run before: 1 + 2 + 3 of 10.
    assert summarise(graded.store, run.run_id).metrics["scoring_rate"].value == pytest.approx(0.6)


def test_points_that_nobody_has_told_leave_no_rate(graded):
    graded.answer = lambda request: Output(text="mumble" if request.item_id == "i003" else "1")
    summary = summarise(graded.store, graded.run().run_id)
    assert summary.metrics["scoring_rate"].value is None
    assert summary.notes[-1] == "no scoring_rate: what 1 items are worth is not known"


def test_what_an_item_is_worth_is_known_from_the_task(graded):
    graded.samples = [
        msgspec.structs.replace(s, metadata={"points": i + 1}) for i, s in enumerate(graded.samples)
    ]
    graded.answer = lambda request: Output(text="mumble" if request.item_id == "i003" else "1")
    assert summarise(graded.store, graded.run().run_id).metrics["scoring_rate"].value == (
        pytest.approx(0.6)
    )


def test_a_criterion_of_one_item_is_no_zero_of_another(graded):
    """The fault: an answer that cannot be read counted 0 in the criteria of all other items."""

    def judge(sample, output):
        if output.text == "mumble":
            none = Score.no_answer("nothing to read")
            return msgspec.structs.replace(none, metrics={f"criterion:{sample.item_id}": 0.0})
        return Score(value=1.0, metrics={f"criterion:{sample.item_id}": 4.0, "n_gradings": 2.0})

    registry.scorer("points")(lambda: judge)
    graded.answer = lambda request: Output(text="mumble" if request.item_id == "i000" else "1")
    metrics = summarise(graded.store, graded.run().run_id).metrics
    assert [metrics[f"criterion:i00{k}"].value for k in range(4)] == [0.0, 4.0, 4.0, 4.0]
    # A count is no sample of anything: no interval.
    assert (metrics["n_gradings"].lo, metrics["n_gradings"].method) == (None, "mean")


def test_published_figures_stand_beside_contenders_only(house):
    summary = summarise(house.store, house.run().run_id)
    ctf = msgspec.structs.replace(summary, task="aicrypto/ctf", model="openai:a")
    (row,) = beside_published(ctf, same_items=False)
    assert (row.metric, row.here, row.why) == ("pass@3", None, "needs --epochs 3")
    # The paper's figures, at second hand: the best model 56.0 %, people 81.2 %.
    assert [(f.who, f.value) for f in row.published] == [
        ("best of 17 models", 0.56), ("human experts", 0.812),
    ]  # fmt: skip
    for change in ({"is_baseline": True}, {"model": "hf:tiny?dtype=bf16"}, {"task": "gsm8k"}):
        assert beside_published(msgspec.structs.replace(ctf, **change), same_items=False) == []
    mcq = msgspec.structs.replace(ctf, task="aicrypto/mcq")
    assert beside_published(mcq, same_items=True)[0].here == summary.metrics["accuracy"]


def test_every_published_figure_says_where_it_is_from():
    for figure in published_figures():
        assert figure.source
        assert figure.url.startswith("https://")
        assert figure.condition
        assert 0 < figure.value <= 1
