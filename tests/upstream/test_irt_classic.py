"""Marginal fits and fit statistics against R mirt 1.38.1 on five classical and simulated sets.

Estimates of the oracle: two-parameter logistic, EM, 61 equal steps on [−6, 6], Oakes errors.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from irt import fitstats
from irt.mml import mml

DATA = Path(__file__).resolve().parents[3] / "shared" / "upstream" / "irt" / "classic"
LOG_LIK = {
    "sim_a": -5846.47256574,
    "sim_b": -15879.5550224,
    "sim_c": -3330.99738582,
    "lsat6": -2466.65337751,
    "lsat7": -2658.80511363,
}


def _table(path):
    if not path.is_file():
        pytest.skip("needs ../shared/upstream/irt/classic")
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {
        name: np.array([float(r[name] or "nan") for r in rows])
        for name in rows[0]
        if name != "item"
    }


class _Case:
    """A set's answers, our fit and the oracle's tables; θ one entry a person, as the oracle's."""

    def __init__(self, name):
        pattern = name.startswith("lsat")
        answers = _table(DATA / f"{name}_{'patterns' if pattern else 'responses'}.csv")
        counts = answers.pop("count") if pattern else np.ones(len(next(iter(answers.values()))))
        raw = np.array(list(answers.values()))[:, counts > 0]
        self.counts = counts[counts > 0]
        self.k, self.n = np.nan_to_num(raw), (~np.isnan(raw)).astype(float)
        self.fit = mml(self.k, self.n, counts=self.counts, tol=1e-10)
        self.items = _table(DATA / f"{name}_mirt_items.csv")
        self.theta = _table(DATA / f"{name}_mirt_theta.csv")

    def person(self, values):
        return np.repeat(values, self.counts.astype(int))


@pytest.fixture(scope="module")
def case():
    made = {}

    def get(name):
        if name not in made:
            made[name] = _Case(name)
        return made[name]

    return get


@pytest.mark.parametrize("name", LOG_LIK)
def test_the_log_likelihood_agrees(case, name):
    fit = case(name).fit
    assert fit.converged
    assert fit.nodes == "grid"
    assert fit.log_lik == pytest.approx(LOG_LIK[name], abs=1e-6)


@pytest.mark.parametrize("name", LOG_LIK)
def test_items_agree(case, name):
    one = case(name)
    assert one.fit.a == pytest.approx(one.items["a"], abs=1e-4)
    assert one.fit.d == pytest.approx(one.items["d"], abs=1e-4)
    assert one.fit.b == pytest.approx(one.items["b"], abs=1e-4)


@pytest.mark.parametrize("name", LOG_LIK)
def test_standard_errors_of_items_agree(case, name):
    one = case(name)
    assert one.fit.se_a == pytest.approx(one.items["se_a"], abs=1e-3)
    assert one.fit.se_d == pytest.approx(one.items["se_d"], abs=1e-3)


@pytest.mark.parametrize("name", LOG_LIK)
def test_abilities_agree(case, name):
    one = case(name)
    assert one.person(one.fit.theta) == pytest.approx(one.theta["eap"], abs=1e-5)
    assert one.person(one.fit.sd) == pytest.approx(one.theta["eap_se"], abs=1e-5)
    assert one.person(one.fit.theta_map) == pytest.approx(one.theta["map"], abs=1e-5)
    assert one.person(one.fit.se_map) == pytest.approx(one.theta["map_se"], abs=1e-4)


@pytest.mark.parametrize("name", ["sim_a", "lsat6", "lsat7"])
def test_s_x2_agrees_in_statistic_and_degrees_of_freedom(case, name):
    one = case(name)
    found = fitstats.s_x2(one.k, one.n, one.fit.a, one.fit.d, counts=one.counts)
    oracle = _table(DATA / f"{name}_mirt_sx2.csv")
    assert found.statistic == pytest.approx(oracle["S_X2"], abs=1e-4)
    assert found.df.tolist() == oracle["df.S_X2"].tolist()
    assert found.p == pytest.approx(oracle["p.S_X2"], abs=1e-4)


@pytest.mark.parametrize(
    ("name", "statistic", "df"),
    [("sim_a", 170.9841, 170), ("lsat6", 4.738384, 5), ("lsat7", 11.93841, 5)],
)
def test_m2_agrees(case, name, statistic, df):
    one = case(name)
    found = fitstats.m2(one.k, one.n, one.fit.a, one.fit.d, counts=one.counts)
    assert found.statistic == pytest.approx(statistic, rel=1e-6)
    assert found.df == df


@pytest.mark.parametrize("name", LOG_LIK)
def test_adaptive_nodes_reach_the_same_estimates(case, name):
    one = case(name)
    own = mml(one.k, one.n, counts=one.counts, tol=1e-10, nodes="adaptive", n_nodes=25)
    assert own.log_lik == pytest.approx(LOG_LIK[name], abs=1e-5)
    assert own.a == pytest.approx(one.items["a"], abs=1e-4)
