"""Agreement of raters who give points: scipy, a published worked example and hand counts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from harness.core.types import Output, Sample
from harness.stats.agreement import krippendorff_alpha
from harness.stats.ratings import (
    alpha_of_all,
    judges_ratings,
    pairwise_agreement,
    rater_agreement,
)
from scorers.rubric import rubric


def test_two_raters_by_hand():
    found = rater_agreement([1, 2, 3, None, 5, float("nan")], [2, 2, 5, 4, None, 1])
    assert found.n == 3
    assert found.mean_abs_difference == 1
    assert found.pearson == pytest.approx(stats.pearsonr([1, 2, 3], [2, 2, 5])[0])
    assert found.spearman == pytest.approx(stats.spearmanr([1, 2, 3], [2, 2, 5])[0])
    assert found.alpha == krippendorff_alpha(np.array([[1, 2, 3], [2, 2, 5]], float), "interval")


def test_nothing_in_common():
    found = rater_agreement([1, None], [None, 2])
    assert (found.n, found.pearson, found.spearman, found.mean_abs_difference, found.alpha) == (
        0, None, None, None, None,
    )  # fmt: skip


def test_pairs_of_several_raters():
    ratings = [[1, 2, 3], [1, 2, 3], [3, 2, 1]]
    found = pairwise_agreement(ratings)
    assert {pair: one.pearson for pair, one in found.items()} == pytest.approx(
        {(0, 1): 1, (0, 2): -1, (1, 2): -1}
    )


def test_alpha_of_a_published_example_on_the_interval_scale():
    # Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), four observers: 0.849.
    ratings = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    ]
    assert alpha_of_all(ratings) == pytest.approx(0.849, abs=5e-4)


@pytest.mark.parametrize("wrong", [([1, 2], [1]), ([1, float("inf")], [1, 2])])
def test_what_cannot_be_compared_is_refused(wrong):
    with pytest.raises(ValueError, match=r"ratings of one rater|not finite"):
        rater_agreement(*wrong)


def test_what_judges_gave_is_read_from_their_scores():
    sample = Sample(
        item_id="p",
        input="?",
        metadata={"statement": "?", "rubric": [{"id": "all", "points": 4, "criterion": "All."}]},
    )

    def judge(spec, *says):
        said = iter(says)

        class Judge:
            def __call__(self, messages, seed):
                return Output(text=next(said))

        Judge.spec = spec
        return Judge()

    def points(n):
        return f'{{"all": {n}}}'

    one = judge("mock:one", points(4), points(3), points(0), points(1))
    two = judge("mock:two", points(2), "?", points(0), points(0))
    score = rubric((one, two), repeats="2")
    proofs = ["## Proof\nA.", "## Proof\nB.", ""]
    told = [score(sample, Output(text=text)).explanation for text in proofs]
    assert judges_ratings([*told, None, "graded by people: 3 of 4"]) == {
        ("mock:one", 0): [1, 0],
        ("mock:one", 1): [0.75, 0.25],
        ("mock:two", 0): [0.5, 0],
        ("mock:two", 1): [None, 0],
    }
