"""Submissions: every way to be invalid, the metrics against other tools, a place on two boards."""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness.core.errors import UsageError
from harness.core.types import Output, Sample
from scorers.contest import METRICS, Contest, auc, check_contest, contest, parts, rmsle, smape

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


def test_the_truth_is_the_best_submission_in_any_order():
    for rows in (list(TRUTH.items()), list(TRUTH.items())[::-1]):
        score = contest()(SAMPLE, Output(text=_csv(rows)))
        assert (score.value, score.passed, score.metrics["valid"]) == (1.0, True, 1.0)
        assert score.metrics["score_private"] == score.metrics["score_public"] == 0.0
        assert score.metrics["to_floor_private"] == 1.0
    turned = [f"{v},{k}" for k, v in TRUTH.items()]
    text = "\ufeff" + "\r\n".join(["rent,id", *turned])
    assert contest()(SAMPLE, Output(text=text)).value == 1.0


def test_a_place_on_the_private_board_is_the_value():
    off = math.exp(0.26)  # ln(1 + p) - ln(1 + y) = 0.26 everywhere
    rows = [(k, (1 + v) * off - 1) for k, v in TRUTH.items()]
    score = contest()(SAMPLE, Output(text=_csv(rows)))
    # Two of four are better, none is equal; two of three on the public board.
    assert score.metrics["score_private"] == pytest.approx(0.26)
    assert score.value == 0.5
    assert (score.metrics["rank_private"], score.metrics["rank_public"]) == (3.0, 3.0)
    # (0.26 - 0.25) / (0 - 0.25) private, (0.26 - 0.2) / (0 - 0.2) public
    assert score.metrics["to_floor_private"] == pytest.approx(-0.04)
    assert score.metrics["to_floor_public"] == pytest.approx(-0.3)
    assert not score.passed


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
    assert (score.value, score.reason, score.metrics) == (0.0, reason, {"valid": 0.0})


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
