"""Pyro's statement of the model is the second opinion on the joint engine's objective."""

from __future__ import annotations

import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("pyro")

import irt  # noqa: E402
from irt import _white, pyro_model  # noqa: E402
from irt.data import DataError, Responses  # noqa: E402
from irt.joint import fit_joint  # noqa: E402
from irt.model import Hyper, State, cells_pass  # noqa: E402

# models, items, attempts, missing
SHAPES = [(12, 30, 1, 0.0), (20, 15, 5, 0.3), (40, 9, 1, 0.2), (6, 50, 8, 0.5)]


def tensors(state, *, grad=False):
    return [torch.tensor(x, requires_grad=grad) for x in (state.theta, state.lam, state.d)]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_autograd_of_the_log_joint_vanishes_at_the_engines_maximum(simulate, seed, shape):
    models, items, attempts, missing = shape
    data = simulate(seed, models, items, attempts=attempts, missing=missing)
    result = fit_joint(data.k, data.n)
    assert result.converged
    cells = pyro_model.observed(data.responses)
    parts = tensors(result.state, grad=True)
    pyro_model.log_joint(cells, *parts, result.state.hyper).backward()
    assert max(float(x.grad.abs().max()) for x in parts) <= 1e-6
    # elsewhere it does not vanish
    moved = tensors(result.state.standardised(0.1, 1.1), grad=True)
    pyro_model.log_joint(cells, *moved, result.state.hyper).backward()
    assert max(float(x.grad.abs().max()) for x in moved) > 1e-2


@pytest.mark.parametrize("shape", SHAPES)
def test_differences_of_log_joints_are_the_engines(simulate, shape):
    models, items, attempts, missing = shape
    data = simulate(3, models, items, attempts=attempts, missing=missing)
    cells = pyro_model.observed(data.responses)
    rng = np.random.default_rng(4)
    hyper = Hyper(0.2, 0.6, -0.4, 1.7, 0.3, 1.2)
    ours, theirs = [], []
    for _ in range(4):
        state = State(
            rng.normal(size=models), 0.4 * rng.normal(size=items), rng.normal(size=items), hyper
        )
        at = cells_pass(data.k, data.n, state, np.float64)
        ours.append(at.log_lik + state.log_prior())
        theirs.append(float(pyro_model.log_joint(cells, *tensors(state), hyper)))
    assert np.diff(theirs) == pytest.approx(np.diff(ours), rel=1e-10)


@pytest.mark.parametrize("priors", [False, True])
def test_the_log_joint_by_scipy(simulate, priors):
    """All of it: binomial coefficients, standard normal sites, priors of the hyperparameters."""
    from scipy import stats

    data = simulate(5, 7, 11, attempts=4, missing=0.3)
    rng = np.random.default_rng(6)
    hyper = Hyper(0.1, 0.4, -0.2, 1.5)
    state = State(rng.normal(size=7), 0.4 * rng.normal(size=11), rng.normal(size=11), hyper)
    p = 1 / (1 + np.exp(-(state.a[:, None] * state.theta + state.d[:, None])))
    expected = stats.binom.logpmf(data.k, data.n, p)[data.n > 0].sum()
    for value in (state.theta, (state.lam - 0.1) / 0.4, (state.d + 0.2) / 1.5):
        expected += stats.norm.logpdf(value).sum()
    if priors:
        expected += stats.norm.logpdf(0.1, 0, 0.5) + stats.halfnorm.logpdf(0.4, 0, 0.5)
        expected += stats.norm.logpdf(-0.2, 0, 2) + stats.halfnorm.logpdf(1.5, 0, 3)
    cells = pyro_model.observed(data.responses)
    found = pyro_model.log_joint(cells, *tensors(state), hyper, priors=priors)
    assert float(found) == pytest.approx(expected, rel=1e-12)


def test_a_missing_cell_counted_as_wrong_is_not_the_model(simulate):
    """The planted fault: 0 of 1 in place of 0 of 0 moves the maximum."""
    data = simulate(7, 20, 15, missing=0.3)
    result = fit_joint(data.k, data.n)
    names = data.responses.models, data.responses.items
    cells = pyro_model.observed(Responses(*names, data.k, np.ones_like(data.n)))
    parts = tensors(result.state, grad=True)
    pyro_model.log_joint(cells, *parts, result.state.hyper).backward()
    assert max(float(x.grad.abs().max()) for x in parts) > 0.1


def test_what_pyro_does_not_take(simulate):
    data = simulate(8, 10, 10).responses
    halves = Responses(data.models, data.items, data.k / 2, data.n, fractional=True)
    with pytest.raises(DataError, match="fractional scores need method='joint'"):
        irt.fit(halves, method="svi")
    for method in ("svi", "nuts"):
        with pytest.raises(DataError, match=f"{method} takes no anchors"):
            irt.fit(data, method=method, anchors={"i00003": (1.0, 0.0)})


@pytest.mark.parametrize("limit", ["MAX_CELLS", "MAX_PARAMETERS"])
def test_nuts_refuses_what_would_take_hours(simulate, monkeypatch, limit):
    data = simulate(9, 10, 20).responses
    monkeypatch.setattr(pyro_model, limit, 49)
    with pytest.raises(DataError, match=r"200 cells and 50 parameters: at most .*49") as caught:
        irt.fit(data, method="nuts")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("absent", ["pyro", "torch"])
def test_a_missing_package_is_one_line_with_the_command(simulate, monkeypatch, absent):
    data = simulate(10, 10, 10).responses
    monkeypatch.setitem(sys.modules, absent, None)
    for method in ("svi", "nuts"):
        with pytest.raises(
            ModuleNotFoundError, match=r"pip install 'bridge-harness\[irt\]'"
        ) as caught:
            irt.fit(data, method=method)
        assert "\n" not in str(caught.value)


def test_white_coordinates_fall_back_on_fishers_information(simulate, monkeypatch):
    data = simulate(11, 10, 12)
    result = fit_joint(data.k, data.n)
    plain = _white.whiten(result)
    real, calls = _white.factor, []

    def once_not(system):
        calls.append(1)
        return real(system) if len(calls) > 1 else None

    monkeypatch.setattr(_white, "factor", once_not)
    fisher = _white.whiten(result)
    assert fisher.log_det != plain.log_det
    assert fisher.log_det == pytest.approx(plain.log_det, abs=2)
    monkeypatch.setattr(_white, "factor", lambda _: None)
    with pytest.raises(ArithmeticError, match="not even in Fisher's form"):
        _white.whiten(result)


def test_white_coordinates_are_the_inverse_of_the_hessian(simulate):
    """In them the numerical Hessian of Pyro's log joint is minus one."""
    data = simulate(12, 5, 7, attempts=3, missing=0.2)
    result = fit_joint(data.k, data.n)
    state, white = result.state, _white.whiten(result)
    cells = pyro_model.observed(data.responses)

    def height(point):
        theta, lam, d = white.deviations(point)
        start = tensors(state)
        return pyro_model.log_joint(
            cells, start[0] + theta, start[1] + lam, start[2] + d, state.hyper
        )

    zero = torch.zeros(white.size, dtype=torch.float64)
    hessian = torch.autograd.functional.hessian(height, zero)
    assert float((hessian + torch.eye(white.size)).abs().max()) < 1e-8
