"""Places on a board: the rules by hand, and what must hold of any board."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from scorers.board import medal, place, to_floor, without_perfect

steady = settings(deadline=None, derandomize=True)
scores = st.integers(0, 50).map(float)


def test_equals_share_the_best_place():
    # One is better, two are equal, two are worse: rank 2, 100 (2 + 1) / 5.
    found = place(0.2, [0.1, 0.2, 0.2, 0.3, 0.5], "lower")
    assert (found.rank, found.percentile, found.above_median) == (2, 60.0, False)
    assert place(0.15, [0.1, 0.2, 0.2, 0.3, 0.5], "lower").above_median


@given(st.lists(scores, min_size=2), scores, scores, st.sampled_from(["lower", "higher"]))
@steady
def test_a_better_score_never_stands_lower(board, one, other, direction):
    assume(len(set(board)) > 1)
    worse, better = sorted((one, other), reverse=direction == "lower")
    low, high = place(worse, board, direction), place(better, board, direction)
    assert 0 <= low.percentile <= high.percentile <= 100
    assert high.rank <= low.rank
    # The mirrored board in the other direction is the same contest.
    mirrored = "lower" if direction == "higher" else "higher"
    assert place(-one, [-s for s in board], mirrored) == place(one, board, direction)


@pytest.mark.parametrize(
    ("n", "gold", "silver", "bronze"),
    # Kaggle's table of medals; 10 % of 15 entries is 2, rounded up.
    [(15, 2, 3, 6), (99, 10, 20, 40), (100, 10, 20, 40), (249, 10, 50, 100), (250, 11, 50, 100),
     (999, 12, 50, 100), (1000, 12, 50, 100), (12438, 35, 622, 1244)],
)  # fmt: skip
def test_medals_end_where_kaggle_says(n, gold, silver, bronze):
    ends = {"gold": gold, "silver": silver, "bronze": bronze}
    for kind, end in ends.items():
        assert medal(end, n) == kind
    assert medal(gold + 1, n) == "silver"
    assert medal(bronze + 1, n) is None


@pytest.mark.parametrize("board", [[], [0.0], [0.0] * 263])
def test_a_flat_board_is_refused(board):
    with pytest.raises(ValueError, match="two different scores"):
        place(0.5, board, "higher")


def test_the_way_from_the_median_to_the_floor():
    # Median of four: (0.2 + 0.4) / 2 = 0.3; from there to 0.1 half of the way is 0.2.
    board = [0.1, 0.4, 0.2, 0.8]
    assert to_floor(0.2, board, 0.1) == pytest.approx(0.5)
    assert to_floor(0.4, board, 0.1) == pytest.approx(-0.5)
    assert to_floor(0.2, [0.1, 0.3, 0.5], 0.3) is None


def test_perfect_scores_are_left_out_and_counted():
    assert without_perfect([1.0, 0.9, 1.0, 0.99999], 1.0) == ([0.9, 0.99999], 2)


def test_what_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="finite"):
        place(float("nan"), [0.0, 1.0], "higher")
