"""Linking separate fits: a known change of scale comes back, drifting anchors are found."""

from __future__ import annotations

import numpy as np
import pytest

import irt
from irt.data import DataError
from irt.equating import drift_z, equate

METHODS = ("mean_mean", "mean_sigma", "haebara", "stocking_lord")


def _anchors(n=40):
    rng = np.random.default_rng(51)
    return np.exp(0.3 * rng.normal(size=n)), rng.normal(size=n)


@pytest.mark.parametrize("method", METHODS)
def test_an_exact_change_of_scale_comes_back(method):
    a, b = _anchors()
    # the second fit's scale: θ₁ = 1.3 θ₂ − 0.4
    scale = equate(a, b, 1.3 * a, (b + 0.4) / 1.3, method)
    assert scale.slope == pytest.approx(1.3, rel=1e-6)
    assert scale.intercept == pytest.approx(-0.4, abs=1e-6)
    assert not scale.drifted.any()
    a1, b1 = scale.items(1.3 * a, (b + 0.4) / 1.3)
    assert np.allclose([a1, b1], [a, b])
    assert np.allclose(scale.abilities(np.array([0.0, 1.0])), [-0.4, 0.9])


def test_moments_by_hand():
    a1, b1 = np.array([1.0, 2.0]), np.array([0.0, 2.0])
    a2, b2 = np.array([3.0, 3.0]), np.array([1.0, 2.0])
    mean = equate(a1, b1, a2, b2, "mean_mean", drift=None)
    assert (mean.slope, mean.intercept) == (2.0, 1.0 - 2 * 1.5)
    sigma = equate(a1, b1, a2, b2, "mean_sigma", drift=None)
    assert (sigma.slope, sigma.intercept) == (2.0, 1.0 - 2 * 1.5)


def test_the_curve_methods_minimise_their_criteria():
    a, b = _anchors()
    rng = np.random.default_rng(52)
    a2, b2 = (
        1.3 * a * np.exp(0.1 * rng.normal(size=40)),
        (b + 0.4) / 1.3 + 0.1 * rng.normal(size=40),
    )
    x = np.linspace(-4, 4, 41)
    w = np.exp(-(x**2) / 2)

    def criterion(slope, intercept, whole):
        p1 = 1 / (1 + np.exp(-a[:, None] * (x - b[:, None])))
        p2 = 1 / (1 + np.exp(-a2[:, None] / slope * (x - slope * b2[:, None] - intercept)))
        gap = (p1 - p2).sum(axis=0) if whole else p1 - p2
        return float((gap**2 * w).sum())

    for method, whole in (("haebara", False), ("stocking_lord", True)):
        found = equate(a, b, a2, b2, method, drift=None)
        best = criterion(found.slope, found.intercept, whole)
        for move in (-1e-3, 1e-3):
            assert criterion(found.slope + move, found.intercept, whole) > best
            assert criterion(found.slope, found.intercept + move, whole) > best


def test_a_drifting_anchor_is_found_and_left_out():
    a, b = _anchors()
    rng = np.random.default_rng(53)
    b2 = (b + 0.4) / 1.3 + 0.02 * rng.normal(size=40)
    b2[7] += 1.5
    scale = equate(a, b, 1.3 * a, b2, "mean_sigma")
    assert scale.drifted[7]
    assert int(np.abs(scale.z).argmax()) == 7
    assert scale.slope == pytest.approx(1.3, rel=0.02)
    assert scale.intercept == pytest.approx(-0.4, abs=0.02)
    kept = equate(a, b, 1.3 * a, b2, "mean_sigma", drift=None)
    assert abs(kept.intercept + 0.4) > abs(scale.intercept + 0.4)


def test_robust_z_by_hand():
    """Quartiles of b₁ −19 and 22, of b₂ ±20: slope 41/40; the differences left are then by hand."""
    b2 = np.array([-40.0, -20.0, 0.0, 20.0, 40.0])
    b1 = b2 + np.array([0.0, 1.0, 0.0, 2.0, 4.0])
    # b₁ − 41/40 b₂ = 1, 1.5, 0, 1.5, 3: median 1.5, quartiles 1 and 1.5
    assert np.allclose(drift_z(b1, b2), np.array([-0.5, 0, -1.5, 0, 1.5]) / (0.74 * 0.5))


def test_separate_fits_of_one_population_agree(simulate):
    """Two halves of the models, fitted apart, linked by their items: close to the fit of all."""
    data = simulate(54, 120, 150)
    everyone = np.ones(150, dtype=bool)
    half = np.arange(120) < 60
    whole, one, two = (
        irt.fit(data.responses.subset(everyone, mask), method="joint")
        for mask in (np.ones(120, dtype=bool), half, ~half)
    )
    scale = equate(one.items.a, one.items.b, two.items.a, two.items.b, "stocking_lord")
    linked = np.concatenate([one.models.theta, scale.abilities(two.models.theta)])
    linked = (linked - linked.mean()) / linked.std()
    assert np.sqrt(np.mean((linked - whole.models.theta) ** 2)) < 0.12


def test_what_cannot_be_linked():
    a, b = _anchors()
    with pytest.raises(DataError, match="at least two"):
        equate(a[:1], b[:1], a[:1], b[:1])
    with pytest.raises(DataError, match="one difficulty"):
        equate(a, 0 * b, a, b)


@pytest.mark.parametrize("name", ["stocking-lord", "mean", ""])
def test_a_method_that_is_not_there_is_no_other_one(name):
    a, b = np.ones(4), np.arange(4.0)
    with pytest.raises(
        DataError, match=r"no method of equating .* mean_mean, mean_sigma"
    ) as refused:
        equate(a, b, a, b, name)
    assert "\n" not in str(refused.value)
