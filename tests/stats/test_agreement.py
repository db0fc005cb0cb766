"""Kappa and alpha against published worked examples, scikit-learn, and a plain count."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.stats.agreement import cohen_kappa, kappa_estimate, krippendorff_alpha

steady = settings(deadline=None, derandomize=True)
_ = float("nan")

# Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011): four observers, twelve
# units, some ratings missing.
FOUR_OBSERVERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
        [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
    ]
)
# From the same paper: two observers, no missing ratings.
BINARY = np.array([[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]], dtype=float)
NOMINAL = np.array([[ord(c) for c in row] for row in ("aabbdcccedda", "babbbccceddd")], dtype=float)
LABELS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=60)


@pytest.mark.parametrize(
    ("ratings", "scale", "alpha"),
    [
        (BINARY, "nominal", 0.095),
        (NOMINAL, "nominal", 0.692),
        (FOUR_OBSERVERS, "nominal", 0.743),
        (FOUR_OBSERVERS, "ordinal", 0.815),
        (FOUR_OBSERVERS, "interval", 0.849),
    ],
)
def test_krippendorffs_own_examples(ratings, scale, alpha):
    assert krippendorff_alpha(ratings, scale) == pytest.approx(alpha, abs=5e-4)


def plain_alpha(table, distance):
    """The definition in words: every pair of ratings of a unit, and every pair at all."""
    units = [[x for x in column if not math.isnan(x)] for column in table.T.tolist()]
    units = [unit for unit in units if len(unit) > 1]
    everything = [x for unit in units for x in unit]
    n = len(everything)
    within = sum(
        distance(x, y) / (len(unit) - 1)
        for unit in units
        for x, y in itertools.permutations(unit, 2)
    )
    overall = sum(distance(x, y) for x, y in itertools.permutations(everything, 2))
    return 1 - (within / n) / (overall / (n * (n - 1)))


@steady
@given(st.integers(2, 5), st.integers(3, 20), st.integers(0, 2**32 - 1))
def test_alpha_is_the_plain_count(raters, units, seed):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 4, (raters, units)).astype(float)
    table[rng.random(table.shape) < 0.2] = _
    found = krippendorff_alpha(table, "nominal")
    if found is None:
        return
    assert found == pytest.approx(plain_alpha(table, lambda x, y: x != y), abs=1e-10)
    assert krippendorff_alpha(table, "interval") == pytest.approx(
        plain_alpha(table, lambda x, y: (x - y) ** 2), abs=1e-10
    )
    # Two values that occur: their ranks are as far apart as any, so that all scales agree.
    binary = np.where(np.isnan(table), _, table > 1)
    scales = [krippendorff_alpha(binary, scale) for scale in ("nominal", "ordinal", "interval")]
    assert scales[0] is None or scales[1:] == pytest.approx(scales[:1] * 2, abs=1e-10)


def test_alpha_where_it_is_not_defined():
    assert krippendorff_alpha(np.ones((3, 5))) is None
    assert krippendorff_alpha(np.array([[1, _, 2], [_, 1, _]])) is None
    assert krippendorff_alpha(np.full((2, 0), 1.0)) is None
    assert krippendorff_alpha(np.array([[1.0, 2, 3], [1, 2, 3]])) == 1.0
    with pytest.raises(ValueError, match="scale 'ratio'"):
        krippendorff_alpha(BINARY, "ratio")
    with pytest.raises(ValueError, match="raters x units"):
        krippendorff_alpha(np.ones(4))
    with pytest.raises(ValueError, match="not finite"):
        krippendorff_alpha(np.array([[1, np.inf], [1, 2]]))


def grants():
    """Fifty grant proposals, two readers: 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no."""
    first = ["yes"] * 25 + ["no"] * 25
    second = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15
    return first, second


def test_kappa_worked_example():
    assert cohen_kappa(*grants()) == pytest.approx(0.4, abs=1e-12)


@steady
@given(LABELS, st.sampled_from(["none", "linear", "quadratic"]))
def test_kappa_agrees_with_scikit_learn(pairs, weights):
    from sklearn.metrics import cohen_kappa_score

    a, b = [x for x, _y in pairs], [y for _x, y in pairs]
    found = cohen_kappa(a, b, weights, categories=[0, 1, 2, 3])
    if found is None:
        assert len(set(a)) == len(set(b)) == 1
        assert a == b
        return
    theirs = cohen_kappa_score(
        a, b, labels=[0, 1, 2, 3], weights=None if weights == "none" else weights
    )
    assert found == pytest.approx(theirs, abs=1e-10)
    assert cohen_kappa(b, a, weights, categories=[0, 1, 2, 3]) == pytest.approx(found, abs=1e-12)


def test_weights_see_how_far_labels_lie_apart():
    near = cohen_kappa([1, 2, 3, 4, 1], [1, 2, 3, 4, 2], "quadratic")
    far = cohen_kappa([1, 2, 3, 4, 1], [1, 2, 3, 4, 4], "quadratic")
    assert near > far
    # By hand, linear: O: one pair 1 apart of 5; E: rows 2,1,1,1 and columns 1,2,1,1 over 5.
    chance = sum(
        r * c * abs(i - j) for i, r in enumerate((2, 1, 1, 1)) for j, c in enumerate((1, 2, 1, 1))
    )
    linear = cohen_kappa([1, 2, 3, 4, 1], [1, 2, 3, 4, 2], "linear")
    assert linear == pytest.approx(1 - 1 / (chance / 5))


def test_kappa_where_it_is_not_defined():
    assert cohen_kappa([], []) is None
    assert cohen_kappa(["a", "a"], ["a", "a"]) is None
    assert cohen_kappa(["a", "a"], ["a", "b"]) == 0.0
    with pytest.raises(ValueError, match="2 labels of one rater, but 1"):
        cohen_kappa(["a", "b"], ["a"])
    with pytest.raises(ValueError, match="outside the categories"):
        cohen_kappa(["a", "b"], ["a", "c"], categories=["a", "b"])
    with pytest.raises(ValueError, match="weights 'cubic'"):
        cohen_kappa([1, 2], [1, 2], "cubic")


def test_interval_of_kappa_is_that_of_its_asymptotic_error():
    """Fleiss, Cohen and Everitt 1969 give the standard error in closed form; statsmodels has it."""
    from statsmodels.stats.inter_rater import cohens_kappa

    a, b = (part * 4 for part in grants())
    theirs = cohens_kappa(np.array([[20, 5], [10, 15]]) * 4)
    found = kappa_estimate(a, b, draws=4000)
    assert found.value == pytest.approx(theirs.kappa)
    assert found.se == pytest.approx(theirs.std_kappa, rel=0.05)
    assert (found.lo, found.hi) == pytest.approx((theirs.kappa_low, theirs.kappa_upp), abs=0.02)
    assert kappa_estimate(a, b, seed=1) == kappa_estimate(a, b, seed=1) != kappa_estimate(a, b)


def test_dialogues_are_drawn_whole():
    """Each of the 50 proposals five times in its own dialogue says no more than once."""
    a, b = grants()
    clusters = [i for i in range(50) for _copy in range(5)]
    many = [x for x in a for _copy in range(5)], [x for x in b for _copy in range(5)]
    once, copies = kappa_estimate(a, b), kappa_estimate(*many, clusters=clusters)
    assert (copies.value, copies.lo, copies.hi) == pytest.approx((once.value, once.lo, once.hi))
    assert (copies.n_items, copies.n_clusters) == (250, 50)
    assert kappa_estimate(*many).se < 0.6 * copies.se


def test_no_interval_where_none_can_be_given():
    assert kappa_estimate([], []).notes == ("no items",)
    one = kappa_estimate([1, 2, 1], [1, 2, 2], clusters=["d"] * 3)
    assert (one.lo, one.notes) == (None, ("one cluster",))
    assert one.value == cohen_kappa([1, 2, 1], [1, 2, 2])
    perfect = kappa_estimate([1, 2] * 10, [1, 2] * 10)
    assert (perfect.value, perfect.lo, perfect.notes) == (1.0, None, ("boundary",))
    with pytest.raises(ValueError, match="draws = 0"):
        kappa_estimate([1], [1], draws=0)
