"""`irt.fit` on simulated sets with known truth, R mirt's estimates of the same data as the yardstick."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irt
from irt.data import Responses

DATA = Path(__file__).resolve().parents[3] / "shared" / "upstream" / "irt" / "classic"


def _table(name):
    return np.genfromtxt(DATA / name, delimiter=",", names=True, dtype=None, encoding="utf-8")


def _aligned(x):
    return (x - x.mean()) / x.std()


def _rmse(x, y):
    return float(np.sqrt(np.mean((_aligned(x) - _aligned(y)) ** 2)))


@pytest.fixture(scope="module", params=["a", "b", "c"])
def case(request):
    """Name, answers (persons are rows), truth and mirt's estimates."""
    name = f"sim_{request.param}"
    if not (DATA / f"{name}_responses.csv").is_file():
        pytest.skip("needs ../shared/upstream/irt/classic")
    truth = _table(f"{name}_true_items.csv"), _table(f"{name}_true_theta.csv")["theta"]
    answers = np.genfromtxt(DATA / f"{name}_responses.csv", delimiter=",", skip_header=1)
    mirt = _table(f"{name}_mirt_items.csv"), _table(f"{name}_mirt_theta.csv")
    return name, Responses.from_matrix(answers), truth, mirt


@pytest.mark.parametrize("method", ["joint", "auto"])
def test_truth_is_recovered_as_well_as_by_mirt(case, method):
    name, data, (items, theta), (mirt_items, mirt_theta) = case
    fit = irt.fit(data, method=method)
    if method == "joint" and name != "sim_c":
        # 500 × 20 and 1,000 × 40: not its ground, and it says so
        assert "the joint fit is biased" in str(fit.verdict)
        return
    assert _rmse(fit.models.theta, theta) <= 1.05 * _rmse(mirt_theta["eap"], theta)
    assert _rmse(fit.items.b, items["b"]) <= 1.3 * _rmse(mirt_items["b"], items["b"])
    assert np.corrcoef(np.log(fit.items.a), np.log(items["a"]))[0, 1] > 0.75


def test_scoring_on_mirts_items_gives_mirts_abilities(case):
    """From mirt's own a and d; its EAP is on a grid of 61 points, ours on 31 about the mode."""
    _, data, _, (items, persons) = case
    scores = irt.score_models(data.k, data.n, items["a"], items["d"])
    assert np.abs(scores.theta - persons["map"]).max() < 1e-5
    assert np.abs(scores.eap - persons["eap"]).max() < 1e-4
    assert np.abs(scores.se - persons["map_se"]).max() < 1e-3
    assert np.abs(scores.eap_sd - persons["eap_se"]).max() < 1e-3


def test_a_thousand_models_are_scored_at_once(case):
    """All persons of a set in one call are the persons one by one."""
    _, data, _, (items, _) = case
    together = irt.score_models(data.k, data.n, items["a"], items["d"])
    for j in range(0, data.k.shape[1], 97):
        alone = irt.score_models(data.k[:, [j]], data.n[:, [j]], items["a"], items["d"])
        assert alone.theta[0] == pytest.approx(together.theta[j], abs=1e-9)
        assert alone.wle[0] == pytest.approx(together.wle[j], abs=1e-8)
