"""Simulated answers with known truth, for all tests of the library."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from irt.data import Responses


def _simulate(seed, n_models, n_items, *, attempts=1, missing=0.0):
    """θ ~ N(0, 1), b ~ N(0, 1.2²), log a ~ N(0, 0.4²); truth is given with mean(θ) = 0, SD(θ) = 1."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=n_models)
    b = 1.2 * rng.normal(size=n_items)
    a = np.exp(0.4 * rng.normal(size=n_items))
    n = np.full((n_items, n_models), attempts)
    n[rng.random(n.shape) < missing] = 0
    k = rng.binomial(n, 1 / (1 + np.exp(-a[:, None] * (theta - b[:, None]))))
    m, s = theta.mean(), theta.std() or 1.0
    responses = Responses(
        tuple(f"m{j:04d}" for j in range(n_models)),
        tuple(f"i{i:05d}" for i in range(n_items)),
        k.astype(float),
        n.astype(float),
    )
    return SimpleNamespace(
        responses=responses, k=responses.k, n=responses.n,
        theta=(theta - m) / s, a=a * s, b=(b - m) / s,
    )  # fmt: skip


@pytest.fixture(scope="session")
def simulate():
    return _simulate


@pytest.fixture
def rows_of():
    """The long rows of some responses."""

    def rows(responses):
        return [
            {"model": model, "item": item, "k": responses.k[i, j], "n": responses.n[i, j]}
            for i, item in enumerate(responses.items)
            for j, model in enumerate(responses.models)
            if responses.n[i, j]
        ]

    return rows
