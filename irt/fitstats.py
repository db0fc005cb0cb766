"""Does the model fit: S-X² of each item, M2 of the whole, and (from `irt.residuals`) the rest.

Both tests here compare whole answer patterns with what the marginal model expects, so they want
complete single answers: k is 0 or 1 and n is 1 for every item of a model. Abilities are integrated
out over N(0, 1): give parameters in that gauge, as `irt.mml.mml` returns them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc

from irt._cells import Cells, Floats, curve, make_cells, sigmoid
from irt._nodes import normal_grid
from irt.residuals import (
    Bands,
    MeanSquares,
    PersonFit,
    ResidualCorrelations,
    auc,
    benjamini_hochberg,
    hold_out,
    log_loss,
    mean_squares,
    person_fit,
    predictive_bands,
    q3,
)

__all__ = [
    "Bands",
    "ItemFit",
    "MeanSquares",
    "ModelFit",
    "PersonFit",
    "ResidualCorrelations",
    "auc",
    "benjamini_hochberg",
    "hold_out",
    "log_loss",
    "m2",
    "mean_squares",
    "person_fit",
    "predictive_bands",
    "q3",
    "s_x2",
]

# M2 holds a square matrix of all I(I + 1)/2 margins: 1 GB at 150 items.
_MOST_ITEMS = 150


@dataclass(frozen=True)
class ItemFit:
    """S-X² of each item.

    Attributes
    ----------
    statistic, df, p, p_bh : array, shape (items,)
        S-X², its degrees of freedom, the χ² tail and that adjusted over the items by
        Benjamini–Hochberg; NaN where df < 1.
    n_models : float
        Complete models used.
    n_dropped : float
        Incomplete models left out.
    """

    statistic: Floats
    df: Floats
    p: Floats
    p_bh: Floats
    n_models: float
    n_dropped: float


@dataclass(frozen=True)
class ModelFit:
    """M2 of the whole model.

    Attributes
    ----------
    statistic, df, p : float
        M2, its degrees of freedom and the χ² tail.
    rmsea : float
        √max(0, (M2 − df)/(df (N − 1))).
    n_models : float
        Complete models used.
    n_dropped : float
        Incomplete models left out.
    """

    statistic: float
    df: int
    p: float
    rmsea: float
    n_models: float
    n_dropped: float


def s_x2(
    k: ArrayLike,
    n: ArrayLike,
    a: ArrayLike,
    d: ArrayLike,
    *,
    c: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    drop_incomplete: bool = False,
    n_nodes: int = 61,
) -> ItemFit:
    """Test each item by its rate of right answers at each summed score (Orlando & Thissen 2000).

    At the score s an item is expected right with E_s = ∫ p S⁻_{s−1} φ / ∫ S_s φ, S the law of the
    score given θ and S⁻ that without the item (Lord & Wingersky 1984). Sparse groups of equal score
    are merged: empty ones go; a single model joins the next higher group (the last: the lower);
    then, while a cell expects less than 1, the lowest such group joins the neighbour with fewer
    models (a tie: the lower one). df = groups − 2, for a and d.

    Parameters
    ----------
    k, n : array, shape (items, models)
        Right answers and answers.
    a, d : array, shape (items,)
        Slopes and intercepts.
    c : array or number, optional
        Lower asymptotes.
    counts : array, shape (models,), optional
        Multiplicities of the columns.
    drop_incomplete : bool
        Leave incomplete models out (they are counted in the result) instead of refusing them.
    n_nodes : int
        Nodes on [−6, 6].

    Returns
    -------
    ItemFit

    Raises
    ------
    ValueError
        When a model is incomplete or an answer is not 0 or 1 of 1; when there are fewer than three
        items.
    """
    cells, n_dropped = _complete(k, n, counts, c, drop_incomplete)
    n_items = len(cells.k)
    if n_items < 3:
        raise ValueError(f"S-X² needs at least 3 items, not {n_items}")
    x, log_w = normal_grid(n_nodes)
    p = curve(_vector(a, n_items), _vector(d, n_items), cells.c, x)
    scores = cells.k.sum(axis=0).astype(np.int64)
    group_n = _totals(scores, cells.counts, n_items + 1)
    rest = leave_one_out_scores(p)
    # The law of the whole score is that without item 0, plus item 0.
    whole = _add_item(rest[0], p[0]) @ np.exp(log_w)
    statistic, df = np.empty(n_items), np.empty(n_items)
    for i in range(n_items):
        expected = np.zeros(n_items + 1)
        expected[1:] = rest[i] @ (p[i] * np.exp(log_w)) / whole[1:]
        right = _totals(scores, cells.counts * cells.k[i], n_items + 1)
        inner = slice(1, n_items)
        groups = _merge(group_n[inner], right[inner], (group_n * expected)[inner])
        total, seen, hoped = np.array(groups).reshape(-1, 3).T
        statistic[i] = ((seen - hoped) ** 2 * total / (hoped * (total - hoped))).sum()
        df[i] = len(total) - 2
    tested = df >= 1
    tail = np.where(tested, chdtrc(np.maximum(df, 1), statistic), np.nan)
    return ItemFit(
        np.where(tested, statistic, np.nan), df, tail, benjamini_hochberg(tail),
        float(cells.counts.sum()), n_dropped,
    )  # fmt: skip


def m2(
    k: ArrayLike,
    n: ArrayLike,
    a: ArrayLike,
    d: ArrayLike,
    *,
    c: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    drop_incomplete: bool = False,
    n_nodes: int = 61,
) -> ModelFit:
    """Test the whole model by its first and second margins (Maydeu-Olivares & Joe 2005).

    With e the observed less the expected rates of right answers of items and of pairs, Ξ their
    covariance in one model and Δ the derivatives of the expected rates by every a and d,
    M2 = N eᵀ(Ξ⁻¹ − Ξ⁻¹Δ(ΔᵀΞ⁻¹Δ)⁻¹ΔᵀΞ⁻¹)e, df = I(I + 1)/2 − 2I.

    Parameters
    ----------
    k, n, a, d, c, counts, drop_incomplete, n_nodes
        As of `s_x2`.

    Returns
    -------
    ModelFit

    Raises
    ------
    ValueError
        As `s_x2`; and when there are fewer than 4 items (df < 1) or more than 150 (memory).
    """
    cells, n_dropped = _complete(k, n, counts, c, drop_incomplete)
    n_items = len(cells.k)
    if not 4 <= n_items <= _MOST_ITEMS:
        raise ValueError(f"M2 needs 4 to {_MOST_ITEMS} items, not {n_items}: test a part of them")
    x, log_w = normal_grid(n_nodes)
    slopes, intercepts = _vector(a, n_items), _vector(d, n_items)
    p = curve(slopes, intercepts, cells.c, x)
    s = sigmoid(np.multiply.outer(slopes, x) + intercepts[:, None])
    dp = (1 - cells.c[:, None]) * s * (1 - s)
    first, second = np.triu_indices(n_items, 1)
    one = np.arange(n_items)
    sets = np.concatenate([np.stack([one, one]), np.stack([first, second])], axis=1)
    xi, expected, delta = _margins(p, dp, x, np.exp(log_w), sets)
    size = float(cells.counts.sum())
    both = (cells.k * cells.counts) @ cells.k.T / size
    e = both[sets[0], sets[1]] - expected
    # Ξ = L Lᵀ: what the derivatives span is taken out of L⁻¹e; the rest is a sum of squares.
    root = np.linalg.cholesky(xi)
    scaled = np.linalg.solve(root, np.column_stack([e, delta]))
    basis, _ = np.linalg.qr(scaled[:, 1:])
    left = scaled[:, 0] - basis @ (basis.T @ scaled[:, 0])
    statistic, df = size * float(left @ left), n_items * (n_items + 1) // 2 - 2 * n_items
    rmsea = float(np.sqrt(max(0.0, (statistic - df) / (df * (size - 1))))) if size > 1 else 0.0
    return ModelFit(statistic, df, float(chdtrc(df, statistic)), rmsea, size, n_dropped)


def leave_one_out_scores(p: Floats) -> Floats:
    """Return the law of the summed score without each item, given ability.

    Halving: the items of one half are added to what the other half starts from, down to single
    items, so that the cost is I² log I a node and nothing is ever divided.

    Parameters
    ----------
    p : array, shape (items, nodes)
        Probabilities of a right answer.

    Returns
    -------
    array, shape (items, items, nodes)
        Entry [i, s]: probability of s right answers among the other items.
    """
    n_items, n_nodes = p.shape
    out = np.empty((n_items, n_items, n_nodes))

    def fill(low: int, high: int, law: Floats) -> None:
        if high - low == 1:
            out[low] = law
            return
        middle = (low + high) // 2
        without_left, without_right = law, law
        for i in range(middle, high):
            without_left = _add_item(without_left, p[i])
        for i in range(low, middle):
            without_right = _add_item(without_right, p[i])
        fill(low, middle, without_left)
        fill(middle, high, without_right)

    fill(0, n_items, np.ones((1, n_nodes)))
    return out


def _add_item(law: Floats, p: Floats) -> Floats:
    """Add one item to the law of a score, shape (scores, nodes)."""
    out = np.zeros((len(law) + 1, law.shape[1]))
    out[:-1] = law * (1 - p)
    out[1:] += law * p
    return out


def _totals(scores: NDArray[np.int64], weight: Floats, size: int) -> Floats:
    return np.bincount(scores, weight, size).astype(np.float64)


def _merge(n: Floats, right: Floats, hoped: Floats) -> list[list[float]]:
    """Merge groups of (models, right, expected right) by the rules that `s_x2` states."""
    groups = [list(g) for g in np.stack([n, right, hoped], axis=1) if g[0] > 0]

    def join(source: int, target: int) -> None:
        groups[target] = [x + y for x, y in zip(groups[source], groups[target], strict=True)]
        del groups[source]

    at = 0
    while at < len(groups) and len(groups) > 1:
        if groups[at][0] == 1:
            join(at, at + 1 if at + 1 < len(groups) else at - 1)
        else:
            at += 1
    while len(groups) > 1:
        sparse = [g for g, (m, _, e) in enumerate(groups) if min(e, m - e) < 1]
        if not sparse:
            break
        at = sparse[0]
        near = [g for g in (at - 1, at + 1) if 0 <= g < len(groups)]
        join(at, min(near, key=lambda g: groups[g][0]))
    return groups


def _margins(
    p: Floats, dp: Floats, x: Floats, w: Floats, sets: NDArray[np.intp]
) -> tuple[Floats, Floats, Floats]:
    """Return the covariance of the margins, their expectations and derivatives by (a, d).

    `sets` (2, margins) names the two items of each margin, twice the same for a single item.
    """
    single = sets[0] == sets[1]
    product = np.where(single[:, None], p[sets[0]], p[sets[0]] * p[sets[1]])
    expected = product @ w
    joint = (product * w) @ product.T
    delta = np.zeros((len(expected), 2 * len(p)))
    for i in range(len(p)):
        rows = np.flatnonzero((sets == i).any(axis=0))
        # What two margins share is counted once: E over the union, not over both.
        halved = product[rows] / np.sqrt(p[i])
        joint[np.ix_(rows, rows)] = (halved * w) @ halved.T
        slope = product[rows] / p[i] * (dp[i] * w)
        delta[rows, i], delta[rows, len(p) + i] = slope @ x, slope.sum(axis=1)
    np.fill_diagonal(joint, expected)
    return joint - np.outer(expected, expected), expected, delta


def _complete(
    k: ArrayLike, n: ArrayLike, counts: ArrayLike | None, c: ArrayLike | None, drop: bool
) -> tuple[Cells, float]:
    """Check that answers are single and models complete; leave incomplete ones out if asked."""
    cells = make_cells(k, n, counts, c)
    single = (cells.n == 1).all(axis=0) & ((cells.k == 0) | (cells.k == 1)).all(axis=0)
    if single.all():
        return cells, 0.0
    lost = float(cells.counts[~single].sum())
    if not drop or not single.any():
        raise ValueError(
            f"{lost:g} of {cells.counts.sum():g} models lack an answer or have one that is not 0 or 1 "
            "of 1: this test needs complete single answers; drop_incomplete=True leaves them out"
        )
    kept = make_cells(cells.k[:, single], cells.n[:, single], cells.counts[single], cells.c)
    return kept, lost


def _vector(values: ArrayLike, n_items: int) -> Floats:
    out = np.asarray(values, dtype=np.float64)
    if out.shape != (n_items,):
        raise ValueError(f"a and d must have shape ({n_items},), not {out.shape}")
    return out
