"""Submissions: every way to be invalid, the metrics against other tools, a place on two boards."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from harness.core.errors import UsageError
from harness.core.types import Output, Sample
from scorers.contest import (
    METRICS,
    PERFECT,
    Contest,
    auc,
    check_contest,
    contest,
    honest_boards,
    parts,
    rmsle,
    smape,
)

IDS = [str(1000 + i) for i in range(60)]
TRUTH = {one: 10.0 + i for i, one in enumerate(IDS)}
RULES = {
    "metric": "rmsle", "direction": "lower", "id_column": "id", "target_column": "rent",
    "noise_floor": 0.0, "public_scores": (0.1, 0.2, 0.3), "private_scores": (0.1, 0.2, 0.3, 0.4),
}  # fmt: skip
SAMPLE = Sample(
    item_id="rent", input="",
    target=("id,rent\n" + "".join(f"{k},{v}\n" for k, v in TRUTH.items()),),
    metadata={"contest": RULES},
)  # fmt: skip


def _csv(rows, head="id,rent"):
    return "\n".join([head, *(f"{k},{v}" for k, v in rows)]) + "\n"


PARTS = ("public", "private")
# What stands for an invalid submission: of these 0 is the worst, so a mean over contests is honest.
NOTHING = {"valid": 0.0} | {
    f"{name}_{part}": 0.0 for name in ("percentile", "above_median", "medal", "gold") for part in PARTS
}  # fmt: skip


def _facts(score):
    return json.loads(score.explanation.splitlines()[-1])


def _off(by):
    """Make predictions of which ln(1 + p) - ln(1 + y) is `by` everywhere: the RMSLE is `by`."""
    return [(k, (1 + v) * math.exp(by) - 1) for k, v in TRUTH.items()]


def test_the_truth_is_the_best_submission_in_any_order():
    for rows in (list(TRUTH.items()), list(TRUTH.items())[::-1]):
        score = contest()(SAMPLE, Output(text=_csv(rows)))
        assert (score.value, score.passed, score.metrics["valid"]) == (1.0, True, 1.0)
        facts = _facts(score)
        assert facts["private"]["score"] == facts["public"]["score"] == 0.0
        assert facts["private"]["to_floor"] == 1.0
    turned = [f"{v},{k}" for k, v in TRUTH.items()]
    text = "\ufeff" + "\r\n".join(["rent,id", *turned])
    assert contest()(SAMPLE, Output(text=text)).value == 1.0


def test_a_place_on_the_private_board_is_the_value():
    score = contest()(SAMPLE, Output(text=_csv(_off(0.26))))
    facts = _facts(score)
    # Two of four are better, none is equal; two of three on the public board.
    assert facts["private"]["score"] == facts["public"]["score"] == 0.26
    assert score.value == 0.5
    assert [(facts[part]["rank"], facts[part]["n"]) for part in PARTS] == [(3, 3), (3, 4)]
    # (0.26 - 0.25) / (0 - 0.25) private, (0.26 - 0.2) / (0 - 0.2) public
    assert facts["private"]["to_floor"] == pytest.approx(-0.04)
    assert facts["public"]["to_floor"] == pytest.approx(-0.3)
    assert not score.passed
    assert "private rmsle 0.26, rank 3 of 4" in score.explanation


def test_the_same_predictions_as_an_entry_s_tie_with_it():
    # RMSLE 0.200004 and 0.199996 are both 0.2 on a board of five decimals; 0.20002 is not.
    for off in (0.200004, 0.199996):
        score = contest()(SAMPLE, Output(text=_csv(_off(off))))
        # One better, one equal, two worse: 100 (2 + 1/2) / 4.
        assert score.metrics["percentile_private"] == 62.5
        assert _facts(score)["private"]["rank"] == 2
    assert contest()(SAMPLE, Output(text=_csv(_off(0.20002)))).metrics["percentile_private"] == 50.0


def test_perfect_scores_on_a_board_are_left_out_where_that_is_asked_for():
    private = (0.0, 0.0, *RULES["private_scores"])
    spoilt = Sample(
        item_id="rent", input="", target=SAMPLE.target,
        metadata={"contest": RULES | {"private_scores": private}},
    )  # fmt: skip
    assert honest_boards(Contest(**spoilt.metadata["contest"])) == (Contest(**RULES), 2)
    given = Output(text=_csv(_off(0.15)))
    # Kept: three of six are better. Dropped: one of four.
    assert contest()(spoilt, given).value == 0.5
    assert contest("drop")(spoilt, given).value == 0.75
    assert contest("drop")(SAMPLE, given) == contest()(SAMPLE, given)
    with pytest.raises(ValueError, match="keep or drop"):
        contest("hide")


def test_every_metric_of_an_invalid_submission_is_a_zero_of_the_worst_kind():
    valid = contest()(SAMPLE, Output(text=_csv(TRUTH.items())))
    assert set(valid.metrics) == set(NOTHING)
    # The best submission has the most in each, so no mean over both is better for a zero.
    assert all(valid.metrics[name] > 0 for name in NOTHING)


def test_numbers_too_large_for_a_metric_are_invalid():
    rules = RULES | {"metric": "smape"}
    sample = Sample(item_id="rent", input="", target=SAMPLE.target, metadata={"contest": rules})
    for large in ("1e308", "-1.7e308"):
        score = contest()(sample, Output(text=_csv([(k, large) for k in IDS])))
        assert (score.status, score.value, score.reason) == ("scored", 0.0, "not_a_number")
        assert "too large" in score.explanation
    # The logarithm has room for them.
    assert contest()(SAMPLE, Output(text=_csv([(k, "1e308") for k in IDS]))).metrics["valid"] == 1.0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (_csv(TRUTH.items(), "id,price"), "columns"),
        (_csv([*TRUTH.items()][1:]), "missing_id"),
        (_csv([*TRUTH.items(), (IDS[0], 1)]), "twice"),
        (_csv([*TRUTH.items(), ("9", 1)]), "unknown_id"),
        (_csv([*[*TRUTH.items()][1:], (IDS[0], "nan")]), "not_a_number"),
        (_csv([*[*TRUTH.items()][1:], (IDS[0], "cheap")]), "not_a_number"),
        (_csv([*[*TRUTH.items()][1:], (IDS[0], "1,2")]), "rows"),
        (_csv([*[*TRUTH.items()][1:], (IDS[0], -1)]), "negative"),
        ('id,rent\n"1,2\n', "rows"),
        ("no file", "columns"),
    ],
)
def test_an_invalid_submission_says_why(text, reason):
    score = contest()(SAMPLE, Output(text=text))
    assert (score.value, score.reason, score.metrics) == (0.0, reason, NOTHING)


def test_no_submission_is_no_answer():
    assert contest()(SAMPLE, Output(text="")).reason == "no_answer"


def test_the_metrics_equal_other_tools():
    from scipy.stats import mannwhitneyu

    rng = np.random.default_rng(3)
    truth, given = rng.integers(0, 2, 500).astype(float), rng.integers(0, 30, 500).astype(float)
    u = mannwhitneyu(given[truth == 1], given[truth == 0]).statistic
    expected = u / (truth.sum() * (500 - truth.sum()))
    assert auc(truth.tolist(), given.tolist()) == pytest.approx(float(expected), abs=1e-12)
    y, p = rng.gamma(2, 3, 500), rng.gamma(2, 3, 500)
    log = float(np.sqrt(np.mean((np.log1p(p) - np.log1p(y)) ** 2)))
    assert rmsle(y.tolist(), p.tolist()) == pytest.approx(log, rel=1e-12)
    share = float(100 * np.mean(2 * np.abs(p - y) / (np.abs(p) + np.abs(y))))
    assert smape(y.tolist(), p.tolist()) == pytest.approx(share, rel=1e-12)


def test_the_public_part_is_thirty_percent_and_follows_the_id_alone():
    many = {str(i): 0 for i in range(10_000)}
    split = parts(many)
    # 3,000 expected; 5 standard deviations of a fair draw are 230
    assert abs(len(split["public"]) - 3000) < 230
    assert set(parts(dict.fromkeys(reversed(many)))["public"]) == set(split["public"])


@pytest.mark.parametrize(
    ("change", "said"),
    [({"metric": "mae"}, "metric"), ({"direction": "down"}, "direction"),
     ({"public_scores": (0.0, 0.0)}, "public board"), ({"private_scores": ()}, "private board")],
)  # fmt: skip
def test_a_contest_that_cannot_be_placed_is_refused(change, said):
    check_contest(Contest(**RULES), "own-rent")
    with pytest.raises(UsageError, match=f"own-rent.*{said}"):
        check_contest(Contest(**(RULES | change)), "own-rent")
    assert set(METRICS) == {"rmsle", "auc", "smape"}


def test_the_truth_reaches_the_perfect_score_of_every_metric():
    truth = [0.0, 1.0, 1.0, 0.0]
    assert {name: metric(truth, truth) for name, metric in METRICS.items()} == PERFECT
