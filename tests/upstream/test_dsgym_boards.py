"""Places on six real leaderboards, measured with the benchmark's own rules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scorers.board import place, without_perfect

DATA = Path(__file__).resolve().parents[3] / "shared" / "upstream" / "dsgym"


@pytest.fixture(scope="module")
def boards():
    folder = DATA / "data/DSPredict_Offline_Leaderboard"
    if not folder.is_dir():
        pytest.skip("needs ../shared/upstream/dsgym")
    found = {}
    for level in ("easy", "hard"):
        text = (folder / f"{level}_leaderboard_stats_2026-02-01.json").read_text(encoding="utf-8")
        found |= json.loads(text)
    return found


@pytest.mark.parametrize(
    ("name", "side", "n", "score", "direction", "rank", "medal", "percentile", "above"),
    [
        ("titanic", "public", 12437, 0.80, "higher", 550, "silver", 95.585752, True),
        ("titanic", "public", 12437, 0.77511, "higher", 4159, None, 52.400096, False),
        ("playground-series-s3e22", "private", 1543, 0.75, "higher", 308, None, 78.775113, True),
        ("house-prices-advanced-regression-techniques", "public", 4451, 0.12, "lower", 217, "silver",
         95.147158, True),
        ("stanford-covid-vaccine", "private", 1636, 0.35, "lower", 35, "silver", 97.92176, True),
        ("statoil-iceberg-classifier-challenge", "private", 3330, 0.15, "lower", 380, None,
         88.618619, True),
        ("gendered-pronoun-resolution", "private", 263, 0.3, "lower", 45, "silver", 83.269962, True),
    ],
)  # fmt: skip
def test_places_as_measured(
    boards, name, side, n, score, direction, rank, medal, percentile, above
):
    board = boards[name][f"{side}_scores"]
    found = place(score, board, direction)
    assert (found.n, found.rank, found.medal, found.above_median) == (n, rank, medal, above)
    assert found.percentile == pytest.approx(percentile, abs=5e-7)


def test_a_flat_board_and_perfect_scores(boards):
    # 263 zeros, and 115 of 12,437 that nobody reaches without the answers.
    flat = boards["gendered-pronoun-resolution"]["public_scores"]
    assert set(flat) == {0.0}
    with pytest.raises(ValueError, match="two different"):
        place(0.3, flat, "lower")
    assert without_perfect(boards["titanic"]["public_scores"], 1.0)[1] == 115
