"""The tables and the verdict of a fit, from what its method gives."""

from __future__ import annotations

from collections.abc import Container, Hashable

import numpy as np

from irt.data import Floats, Mask, Responses
from irt.methods import Estimate
from irt.prepare import Excluded
from irt.records import Items, Models, Verdict
from irt.score import se_difficulty


def record(
    data: Responses, e: Estimate, excluded: Excluded, notes: tuple[str, ...],
    anchors: Container[Hashable],
) -> tuple[Models, Items, Verdict]:  # fmt: skip
    """Make the tables of models and items, with the items' flags, and the verdict.

    Parameters
    ----------
    data : Responses
    e : Estimate
    excluded : Excluded
    notes : tuple of str
        Beside the method's own.
    anchors : container of items
        Those that kept their parameters.

    Returns
    -------
    models, items, verdict
    """
    right, asked = data.k.sum(axis=1), data.n.sum(axis=1)
    slope_z = _slope_z(data, e.theta)
    marks: dict[str, Mask] = {
        "prior_only": (right == 0) | (right == asked),
        "suspect_key": slope_z < 0,  # NaN is not
        "fisher": e.fisher_items,
        "anchor": np.array([key in anchors for key in data.items], dtype=bool),
    }
    flags: list[tuple[str, ...]] = [()] * len(data.items)
    for name, marked in marks.items():
        for row in np.flatnonzero(marked):
            flags[row] += (name,)
    items = Items(
        data.items, e.a, -e.d / e.a, e.d, np.sqrt(e.var_log_a),
        se_difficulty(e.a, e.d, e.var_log_a, e.var_d, e.cov), np.sqrt(e.var_d),
        np.count_nonzero(data.n, axis=1), slope_z, tuple(flags),
    )  # fmt: skip
    models = Models(data.models, e.theta, e.se_theta, np.count_nonzero(data.n, axis=0))

    def keys(mark: str) -> tuple[Hashable, ...]:
        return tuple(data.items[i] for i in np.flatnonzero(marks[mark]))

    verdict = Verdict(
        e.converged, e.iterations, e.decrement, e.max_grad, e.cholesky_ok,
        keys("fisher"), keys("prior_only"), keys("suspect_key"), excluded, notes + e.notes,
    )  # fmt: skip
    return models, items, verdict


def _slope_z(data: Responses, theta: Floats) -> Floats:
    """Score statistic of a zero slope with θ fixed: its sign is the sign of the best slope.

    With θ known an item's log-likelihood is concave in (a, d), so along the best d for each a it
    rises from a = 0 towards the best a: Σ θ (k − n p̄) there tells on which side that lies.
    """
    right, asked = data.k.sum(axis=1), data.n.sum(axis=1)
    rate = right / asked
    n_theta = data.n @ theta
    score = data.k @ theta - rate * n_theta
    spread = data.n @ theta**2 - n_theta**2 / asked
    with np.errstate(divide="ignore", invalid="ignore"):
        z = score / np.sqrt(rate * (1 - rate) * spread)
    return np.where((right > 0) & (right < asked) & (spread > 0), z, np.nan)
