"""A check beside the refits: Mantel–Haenszel over classes of ability."""

from __future__ import annotations

import numpy as np

from irt.data import Floats


def mantel_haenszel(
    k: Floats, n: Floats, theta: Floats, focal: Floats, strata: int
) -> tuple[Floats, Floats, Floats]:
    """Common odds ratio of right answers, reference against focal group, over classes of ability.

    Mantel & Haenszel (1959) with the continuity correction; error of the log odds ratio by Robins,
    Breslow & Greenland (1986).

    Parameters
    ----------
    k, n : arrays, shape (I, P)
    theta : array, shape (P,)
        Abilities; the classes are between their quantiles.
    focal : array, shape (P,)
        1 in the focal group.
    strata : int

    Returns
    -------
    log_odds, se, chi2 : arrays, shape (I,)
        NaN where no class has right and wrong answers of both groups.
    """
    edges = np.quantile(theta, np.linspace(0, 1, strata + 1)[1:-1])
    which = np.searchsorted(edges, theta, side="right")
    member = (which == np.arange(strata)[:, None]).astype(np.float64)
    a, c = (k @ (member * side).T for side in (1 - focal, focal))  # right
    b, d = ((n - k) @ (member * side).T for side in (1 - focal, focal))  # wrong
    total = a + b + c + d
    with np.errstate(divide="ignore", invalid="ignore"):
        r, s = np.nan_to_num(a * d / total), np.nan_to_num(b * c / total)
        p, q = np.nan_to_num((a + d) / total), np.nan_to_num((b + c) / total)
        expected = np.nan_to_num((a + b) * (a + c) / total).sum(axis=1)
        spread = (a + b) * (c + d) * (a + c) * (b + d) / (total**2 * (total - 1))
        spread = np.where(total > 1, spread, 0.0).sum(axis=1)
        gap = np.maximum(np.abs(a.sum(axis=1) - expected) - 0.5, 0.0)
        chi2 = np.where(spread > 0, gap**2 / spread, np.nan)
        r_all, s_all = r.sum(axis=1), s.sum(axis=1)
        log_odds = np.where((r_all > 0) & (s_all > 0), np.log(r_all / s_all), np.nan)
        var = (
            (p * r).sum(axis=1) / (2 * r_all**2)
            + (p * s + q * r).sum(axis=1) / (2 * r_all * s_all)
            + (q * s).sum(axis=1) / (2 * s_all**2)
        )
    return log_odds, np.where(np.isfinite(log_odds), np.sqrt(var), np.nan), chi2
