"""The regression and the resampling of METR's method, many at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from irt._metr_cells import Cells
from irt.data import Floats, Mask

_MAX_STEPS, _MAX_HALVINGS = 100, 40
_DECREMENT = 1e-22  # weights sum to about 1, so this is a coefficient right to about ten digits
_CHUNK = 4_000_000  # numbers in one array of a chunk of draws


def fit_lines(
    x: Floats, right: Floats, wrong: Floats, regularisation: float
) -> tuple[Floats, Floats, Mask]:
    """Fit many weighted logistic regressions on one x by Newton's method.

    Minimised is −Σ[right log p + wrong log(1 − p)] + ½ λ β1² with logit p = β0 + β1 x, which is
    scikit-learn's LogisticRegression(C=1/λ) divided by C.

    Parameters
    ----------
    x : array, shape (I,)
    right, wrong : arrays, shape (B, I)
        Weights of the rows 1 and of the rows 0.
    regularisation : float
        λ > 0.

    Returns
    -------
    intercept, slope : arrays, shape (B,)
        (−inf, −inf) where there is no success, (inf, −inf) where there is no failure: steps at 0
        and at infinity minutes. NaN where there is no weight at all.
    converged : array of bool, shape (B,)
    """
    successes, failures = right.sum(axis=1), wrong.sum(axis=1)
    intercept = np.where(successes > 0, np.inf, np.where(failures > 0, -np.inf, np.nan))
    slope = np.where(np.isnan(intercept), np.nan, -np.inf)
    converged = np.ones(len(right), dtype=bool)
    both = np.flatnonzero((successes > 0) & (failures > 0))
    if len(both):
        intercept[both], slope[both], converged[both] = _newton(
            x, right[both], wrong[both], regularisation
        )
    return intercept, slope, converged


def _newton(
    x: Floats, right: Floats, wrong: Floats, regularisation: float
) -> tuple[Floats, Floats, Mask]:
    total = right + wrong
    # The intercept is not penalised: x may be centred, which keeps the 2 × 2 systems well posed.
    # Sums row by row, not a matrix product: the bits of a fit do not depend on its company.
    centre = np.sum(total * x, axis=1) / total.sum(axis=1)
    xc = x - centre[:, None]
    # With tasks of one length only the slope is 0, and not what rounding makes of it.
    xc[np.abs(xc) < 1e-12] = 0.0
    beta = np.zeros((len(right), 2))
    beta[:, 0] = np.log(right.sum(axis=1) / wrong.sum(axis=1))
    converged = np.zeros(len(right), dtype=bool)
    value = _loss(beta, xc, right, wrong, regularisation)
    for _ in range(_MAX_STEPS):
        live = np.flatnonzero(~converged)
        if not len(live):
            break
        step, decrement = _step(beta[live], xc[live], right[live], total[live], regularisation)
        beta[live], value[live] = _descend(
            beta[live], step, value[live], xc[live], right[live], wrong[live], regularisation
        )
        converged[live] = decrement < _DECREMENT
    return beta[:, 0] - beta[:, 1] * centre, beta[:, 1], converged


def _loss(beta: Floats, x: Floats, right: Floats, wrong: Floats, regularisation: float) -> Floats:
    z = beta[:, :1] + beta[:, 1:] * x
    softplus = np.logaddexp(0.0, z)
    loss = np.sum((right + wrong) * softplus - right * z, axis=1)
    return np.asarray(loss + 0.5 * regularisation * beta[:, 1] ** 2)


def _step(
    beta: Floats, x: Floats, right: Floats, total: Floats, regularisation: float
) -> tuple[Floats, Floats]:
    """Give Newton's step and its decrement gᵀH⁻¹g."""
    p = expit(beta[:, :1] + beta[:, 1:] * x)
    error, w = right - total * p, total * p * (1 - p)
    g0, g1 = error.sum(axis=1), np.sum(error * x, axis=1) - regularisation * beta[:, 1]
    h00, h01 = w.sum(axis=1), np.sum(w * x, axis=1)
    h11 = np.sum(w * x * x, axis=1) + regularisation
    determinant = h00 * h11 - h01 * h01
    step = np.column_stack([h11 * g0 - h01 * g1, h00 * g1 - h01 * g0]) / determinant[:, None]
    return step, step[:, 0] * g0 + step[:, 1] * g1


def _descend(
    beta: Floats, step: Floats, value: Floats, x: Floats, right: Floats, wrong: Floats,
    regularisation: float,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Take the step, halved as long as the loss rises by more than rounding."""
    length = np.ones(len(beta))
    new = beta + step
    found = _loss(new, x, right, wrong, regularisation)
    for _ in range(_MAX_HALVINGS):
        worse = np.flatnonzero(~(found <= value + 1e-13))
        if not len(worse):
            break
        length[worse] /= 2
        new[worse] = beta[worse] + length[worse, None] * step[worse]
        found[worse] = _loss(new[worse], x[worse], right[worse], wrong[worse], regularisation)
    return new, found


def fit_draws(
    cells: Cells, weight: Floats, regularisation: float, n: int, seed: int
) -> tuple[Floats, Floats, int]:
    """Resample families, tasks and runs, and fit every draw.

    Parameters
    ----------
    cells : Cells
    weight : array, shape (I, P)
        Weight of a run, as in the fit: not renormalised in a draw.
    regularisation : float
    n, seed : int
        Draw i takes numpy's `default_rng(seed + i)`.

    Returns
    -------
    intercept, slope : arrays, shape (n, P)
        As those of `fit_lines`; NaN for a model none of whose tasks was drawn.
    failed : int
        Fits that did not converge.
    """
    shape = weight.shape
    x = np.log2(cells.minutes)
    lines, failed = np.empty((2, n, shape[1])), 0
    chunk = max(1, _CHUNK // weight.size)
    for start in range(0, n, chunk):
        stop = min(n, start + chunk)
        right = np.empty((stop - start, shape[1], shape[0]))
        wrong = np.empty_like(right)
        for row, i in enumerate(range(start, stop)):
            solved, tried = _resample(cells, np.random.default_rng(seed + i))
            right[row], wrong[row] = (weight * solved).T, (weight * (tried - solved)).T
        flat = (-1, shape[0])
        intercept, slope, good = fit_lines(
            x, right.reshape(flat), wrong.reshape(flat), regularisation
        )
        failed += int(np.sum(~good))
        lines[0, start:stop] = intercept.reshape(-1, shape[1])
        lines[1, start:stop] = slope.reshape(-1, shape[1])
    return lines[0], lines[1], failed


def _resample(cells: Cells, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw successes and attempts, both (I, P).

    A task drawn m times stands for m·n runs of a model that ran it n times. Runs drawn with
    replacement fall on the distinct scores of the cell as a multinomial does: no run is looked at.
    """
    times = _times_drawn(cells.family, rng)
    tried = times[:, None] * cells.n
    of_cell = tried.ravel()[cells.cell].astype(np.int64)
    found = rng.multinomial(of_cell, cells.count / cells.count.sum(axis=1, keepdims=True))
    solved = np.zeros(cells.n.size)
    solved[cells.cell] = np.sum(found * cells.score, axis=1)
    return solved.reshape(cells.n.shape), tried


def _times_drawn(family: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.intp]:
    """Give how often each task is drawn: families first, then as many tasks as a family has.

    The draw of tasks is the same for all models, as models differ on the same tasks.
    """
    size = np.bincount(family)
    members = np.argsort(family, kind="stable")
    first = np.concatenate([[0], np.cumsum(size)[:-1]])
    copies = np.bincount(rng.integers(0, len(size), len(size)), minlength=len(size))
    drawn = np.repeat(np.arange(len(size)), copies * size)
    task = members[first[drawn] + rng.integers(0, size[drawn])]
    return np.bincount(task, minlength=len(family))
