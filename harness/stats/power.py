"""The smallest difference that a comparison of n items would find.

Shown beside every comparison and before a run, so that nobody waits for 60 items to separate two
models five points apart. Power is that of the two-sided t test (paired) or normal test (unpaired);
both tails count, as in statsmodels' ``TTestPower`` and ``NormalIndPower``, against which the tests
compare: only ``scipy.special`` is imported here, which costs a third of statsmodels' start.
"""

from __future__ import annotations

import math
from collections.abc import Callable


def mde_paired(n: int, sd: float, alpha: float = 0.05, power: float = 0.8) -> float | None:
    """Smallest difference that a paired t test of n items finds with the given power.

    Parameters
    ----------
    n : int
        Shared items.
    sd : float
        Standard deviation of the per-item differences, in the unit of the score; 0.5 is a fair
        guess for 0/1 scores of two models never compared before.
    alpha : float
        Two-sided level of the test.
    power : float
        Chance of finding the difference; above `alpha`.

    Returns
    -------
    float or None
        In the unit of `sd`; None below 2 items.

    Raises
    ------
    ValueError
        For an sd that is not positive, or alpha and power out of order.

    Notes
    -----
    The d that solves ``P(|T| > t) = power`` for T noncentral t with n - 1 degrees of freedom and
    noncentrality d sqrt(n) / sd (Cohen 1988, chapter 2).

    Examples
    --------
    >>> round(mde_paired(500, 1.0), 6), round(mde_paired(60, 1.0), 6)
    (0.125532, 0.367704)
    """
    _check(n, sd, alpha, power)
    return mde_from_se(sd / math.sqrt(n), n - 1, alpha, power) if n >= 2 else None


def mde_from_se(se: float, df: int, alpha: float = 0.05, power: float = 0.8) -> float | None:
    """Smallest difference that a t test with this standard error finds.

    For clusters the standard error is the cluster-robust one and `df` is the number of clusters
    minus one; for items by themselves it equals `mde_paired`.

    Parameters
    ----------
    se : float
        Standard error of the difference.
    df : int
        Degrees of freedom.
    alpha, power : float
        As for `mde_paired`.

    Returns
    -------
    float or None
        In the unit of `se`; None below 1 degree of freedom.

    Raises
    ------
    ValueError
        As for `mde_paired`.
    """
    from scipy.special import nctdtr, stdtrit

    _check(df, se, alpha, power)
    if df < 1:
        return None
    critical = float(stdtrit(df, 1 - alpha / 2))

    def chance(shift: float) -> float:
        # Far out in the lower tail scipy answers NaN for what is 0 to the last digit.
        lower = float(nctdtr(df, shift, -critical))
        return 1 - float(nctdtr(df, shift, critical)) + (0.0 if math.isnan(lower) else lower)

    return se * _solve(chance, power)


def mde_unpaired(n: int, sd: float, alpha: float = 0.05, power: float = 0.8) -> float | None:
    """Smallest difference that two separate samples of n items each would show (normal test).

    Parameters
    ----------
    n : int
        Items of each sample.
    sd : float
        Standard deviation of a score.
    alpha, power : float
        As for `mde_paired`.

    Returns
    -------
    float or None
        In the unit of `sd`; None without items.

    Raises
    ------
    ValueError
        As for `mde_paired`.

    Examples
    --------
    >>> round(mde_unpaired(500, 1.0), 6)
    0.177188
    """
    from scipy.special import ndtr, ndtri

    _check(n, sd, alpha, power)
    if n < 1:
        return None
    critical = float(ndtri(1 - alpha / 2))

    def chance(shift: float) -> float:
        return float(ndtr(shift - critical)) + float(ndtr(-shift - critical))

    return sd * math.sqrt(2 / n) * _solve(chance, power)


def _solve(chance: Callable[[float], float], power: float) -> float:
    """Bisect for the shift, in standard errors, at which the chance reaches the power."""
    low, high = 0.0, 1.0
    while chance(high) < power:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        if chance(middle) < power:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _check(n: int, sd: float, alpha: float, power: float) -> None:
    if n < 0:
        raise ValueError(f"{n} items or degrees of freedom: there are no fewer than none")
    if not (sd > 0 and math.isfinite(sd)):
        raise ValueError(f"sd = {sd}: a spread above 0 is needed")
    if not 0 < alpha < power < 1:
        raise ValueError(f"alpha = {alpha}, power = {power}: 0 < alpha < power < 1 is needed")
