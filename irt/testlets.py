"""Items that hang together beyond ability: copies, steps of one problem, thresholds of one task.

The model takes answers to be independent once ability is known. Three items cut from one graded task
are not, and count as three times the evidence that they are. They are found here by their residuals
and flagged; nothing is merged.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from irt.data import Floats
from irt.residuals import q3

if TYPE_CHECKING:
    from irt.fitting import Fit

MAX_ITEMS = 5_000
"""Above, the table of all pairs would take more than 200 MB."""


@dataclass(frozen=True)
class Testlets:
    """Groups of items whose residuals go together.

    Parameters
    ----------
    groups : tuple of tuples
        Items, largest group first; two items are in one group when a chain of pairs joins them.
    pairs : int
        Pairs over the threshold.
    tested : int
        Pairs that enough models answered both items of.
    """

    # Not a class of tests, whatever its name begins with.
    __test__ = False

    groups: tuple[tuple[Hashable, ...], ...]
    pairs: int
    tested: int

    @property
    def items(self) -> tuple[Hashable, ...]:
        """All items of all groups."""
        return tuple(item for group in self.groups for item in group)


def find_testlets(
    fit: Fit, *, size: float = 0.2, level: float = 0.05, least_models: int = 20
) -> Testlets:
    """Find items that hang together, by Yen's Q3 and an exact-moment test of each pair.

    A pair is taken when its residual correlation lies more than `size` above the mean of all pairs
    (Christensen, Makransky and Horton 2017: .2 above the mean), and when S = Σ_j e_1j e_2j, of the
    residuals e = k − n p of the models that answered both, is beyond the one-sided Bonferroni bound
    for all pairs tested. Given p, S has mean 0, variance Σ W_1 W_2 and third cumulant
    Σ W_1 W_2 (1 − 2p_1)(1 − 2p_2) with W = n p (1 − p): its tail is that of the gamma law with these
    moments. For items that few or nearly all solve, a normal tail is far too thin (a false pair in
    one of four tables instead of one of twenty, simulated).

    Parameters
    ----------
    fit : Fit
    size : float
        How far above the mean correlation counts.
    level : float
        Chance of any false pair.
    least_models : int
        Models that must have answered both items.

    Returns
    -------
    Testlets
        Nothing is tested of a graded fit, whose scores have another variance.

    Raises
    ------
    ValueError
        For more than 5,000 items.
    """
    from scipy.sparse.csgraph import connected_components

    keys = fit.items.item
    if fit.kind == "grm":
        return Testlets((), 0, 0)
    if len(keys) > MAX_ITEMS:
        raise ValueError(f"{len(keys)} items: testlets are looked for among {MAX_ITEMS} at most")
    data, p = fit.responses, fit.probabilities()
    seen = (data.n > 0).astype(np.float64)
    shared = seen @ seen.T
    rho = q3(data.k, data.n, fit.items.a, fit.items.d, fit.models.theta, c=fit.estimate.c).q3
    tested = np.triu(shared >= max(least_models, 4), 1) & np.isfinite(rho)
    n_tested = int(tested.sum())
    if n_tested == 0:
        return Testlets((), 0, 0)
    weight = data.n * p * (1 - p)
    skewed = weight * (1 - 2 * p)
    residual = data.k - data.n * p
    pairs = np.nonzero(tested & (rho > float(rho[tested].mean()) + size))
    sums, variance, third = ((each @ each.T)[pairs] for each in (residual, weight, skewed))
    joined = np.zeros_like(tested)
    joined[pairs] = _upper_tail(sums, variance, third) < level / n_tested
    _, label = connected_components(joined, directed=False)
    groups = [tuple(keys[i] for i in np.flatnonzero(label == g)) for g in np.unique(label)]
    several = sorted((g for g in groups if len(g) > 1), key=lambda g: (-len(g), str(g)))
    return Testlets(tuple(several), int(joined.sum()), n_tested)


def _upper_tail(x: Floats, variance: Floats, third: Floats) -> Floats:
    """Chance of at least x under the gamma law of mean 0 with this variance and third cumulant."""
    from scipy.special import gammaincc, ndtr

    sd = np.sqrt(variance)
    skew = third / sd**3
    z = x / sd
    # Without skewness the law is the normal one; a tail that is cut off above is not made use of.
    shape = 4 / np.maximum(skew, 1e-3) ** 2
    gamma = gammaincc(shape, np.maximum(shape + z * np.sqrt(shape), 0.0))
    return np.asarray(np.where(skew > 1e-3, gamma, ndtr(-z)), dtype=np.float64)
