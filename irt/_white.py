"""Coordinates in which the Laplace approximation of the joint posterior is standard normal.

Samplers and variational fits work in them: every correlation that the engine knows, the gauge's shift
and scale among them, is then in the map, one step length suits all coordinates, and what is left to
be learnt is how far the posterior is from normal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from irt.joint import JointResult
from irt.model import Hyper, State
from irt.newton import arrow, factor


@dataclass(frozen=True)
class White:
    """The linear map from white coordinates to deviations from the polished point.

    Parameters
    ----------
    theta : tensor, shape (P, P)
        L⁻¹ of the models' complement S = L Lᵀ.
    u, v : tensors, shape (I, P)
        Whitened cross terms of the items.
    l11, l21, l22 : tensors, shape (I,)
        Cholesky factors of the items' blocks.
    """

    theta: Any
    u: Any
    v: Any
    l11: Any
    l21: Any
    l22: Any

    @property
    def size(self) -> int:
        """Number of coordinates, P + 2 I."""
        return len(self.theta) + 2 * len(self.l11)

    @property
    def log_det(self) -> float:
        """Logarithm of the map's determinant."""
        logs = self.theta.diagonal().log().sum() - self.l11.log().sum() - self.l22.log().sum()
        return float(logs)

    def deviations(self, point: Any) -> tuple[Any, Any, Any]:
        """Turn white points into deviations of θ, λ = log a and d.

        Parameters
        ----------
        point : tensor, shape (..., P + 2 I)

        Returns
        -------
        theta, lam, d : tensors, shapes (..., P), (..., I) and (..., I)
        """
        models, items = len(self.theta), len(self.l11)
        white, first, second = point.split([models, items, items], dim=-1)
        theta = white @ self.theta
        d = (second - theta @ self.v.mT) / self.l22
        lam = (first - theta @ self.u.mT - self.l21 * d) / self.l11
        return theta, lam, d


def whiten(result: JointResult) -> White:
    """Take the map from the engine's observed information (Fisher's where that has no factor).

    Parameters
    ----------
    result : JointResult
        A fit without frozen parts.

    Returns
    -------
    White

    Raises
    ------
    ArithmeticError
        Where neither form is positive definite: the point is no maximum.
    """
    import torch

    free = result.system.free_items, result.system.free_theta
    for system in (result.system, arrow(result.state, result.at, *free, pure_fisher=True)):
        lower = factor(system.schur_theta(np.float64))
        if lower is not None:
            pairs = [np.split(x.copy(), 2) for _, x in system.white_rows(np.float64)]
            u, v = (np.concatenate(part) for part in zip(*pairs, strict=True))
            parts = (np.linalg.inv(lower), u, v)
            return White(*(torch.tensor(x) for x in (*parts, system.l11, system.l21, system.l22)))
    raise ArithmeticError("the joint information has no Cholesky factor, not even in Fisher's form")


def white_model(
    model: Callable[..., None], cells: Any, white: White, at: State, hyper: Hyper | None
) -> None:
    """State a model with one flat site in place of three: the point in white coordinates.

    Parameters
    ----------
    model : callable
        Pyro's model, with the sites `theta_z`, `lam_z` and `d_z`.
    cells : Observed
    white : White
    at : State
        The polished point, whose hyperparameters the map is made for.
    hyper : Hyper, optional
        Passed to the model.
    """
    import pyro
    from pyro import distributions as dist

    flat = dist.Normal(cells.k.new_zeros(white.size), 1.0).mask(False).to_event(1)
    point = pyro.sample("point", flat)
    if point.dim() > 1:  # several particles: (particles, 1, size)
        point = point.squeeze(-2)
    theta, lam, d = white.deviations(point)
    h = at.hyper
    sites = {
        "theta_z": (theta + cells.k.new_tensor(at.theta - h.mu_theta)) / h.sigma_theta,
        "lam_z": (lam + cells.k.new_tensor(at.lam - h.mu_a)) / h.sigma_a,
        "d_z": (d + cells.k.new_tensor(at.d - h.mu_d)) / h.sigma_d,
    }
    pyro.poutine.condition(model, data=sites)(cells, hyper)
