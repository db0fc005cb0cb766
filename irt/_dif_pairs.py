"""The conditional test of one item on pairs of models: what is left when both answers are summed.

Given how many of a pair's attempts were right together, the second model's share has the noncentral
hypergeometric distribution with odds exp(offset + δ), whatever else the two models share (Fisher 1935);
with one attempt each this is a coin of that log-odds for every discordant pair, and with offset 0 the
test is McNemar's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from irt.data import Floats


@dataclass(frozen=True)
class PairTest:
    """One item: δ, its error, χ²(1) and the exact p value.

    Parameters
    ----------
    delta, se : float
        Log-odds of the second models beyond the offsets; infinite (error too) where all pairs
        point one way.
    lr : float
    p_exact : float
        Two-sided: twice the smaller tail, at most 1.
    """

    delta: float
    se: float
    lr: float
    p_exact: float


@dataclass(frozen=True)
class _Pair:
    """Possible numbers of right answers of the second model, and their log weights at δ = 0."""

    values: Floats
    log_weight: Floats

    def probabilities(self, delta: float) -> Floats:
        z = self.log_weight + delta * self.values
        weight = np.exp(z - z.max())
        return np.asarray(weight / weight.sum(), dtype=np.float64)


def pair_test(
    first: Sequence[tuple[float, float]], second: Sequence[tuple[float, float]], offsets: Floats
) -> tuple[PairTest | None, int]:
    """Test whether the second models do as well as the offsets say.

    Parameters
    ----------
    first, second : sequences of (k, n)
        Whole numbers, a pair a place.
    offsets : array, shape (pairs,)
        The second model's log-odds less the first one's, as their abilities have it.

    Returns
    -------
    test, n_discordant
        No test where no pair says anything.
    """
    pairs, seen = [], 0.0
    for (k1, n1), (k2, n2), offset in zip(first, second, offsets, strict=True):
        total = k1 + k2
        values = np.arange(max(0.0, total - n1), min(n2, total) + 1)
        if len(values) > 1:
            log_weight = _log_choose(n2, values) + _log_choose(n1, total - values) + offset * values
            pairs.append(_Pair(values, log_weight))
            seen += k2
    if not pairs:
        return None, 0
    return _test(pairs, seen), len(pairs)


def _test(pairs: list[_Pair], seen: float) -> PairTest:
    low, high = (float(sum(end(p.values) for p in pairs)) for end in (np.min, np.max))
    null = _log_likelihood(pairs, seen, 0.0)
    p_exact = _exact(pairs, seen - low)
    if seen in (low, high):
        sign = 1.0 if seen == high else -1.0
        # In the limit only the observed outcome is left, whose probability is then 1.
        ends = [p.log_weight[-1 if sign > 0 else 0] for p in pairs]
        limit = float(sum(ends)) - sum(_log_sum(p.log_weight) for p in pairs)
        return PairTest(sign * np.inf, np.inf, -2 * limit, p_exact)
    delta, information = _root(pairs, seen)
    gain = 2 * (_log_likelihood(pairs, seen, delta) - null)
    return PairTest(delta, information**-0.5, max(gain, 0.0), p_exact)


def _log_choose(n: float, k: Floats) -> Floats:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1), dtype=np.float64)


def _log_sum(z: Floats) -> float:
    top = float(z.max())
    return top + float(np.log(np.exp(z - top).sum()))


def _log_likelihood(pairs: list[_Pair], seen: float, delta: float) -> float:
    """Log-likelihood of δ, up to a constant that is the same for every δ."""
    return delta * seen - sum(_log_sum(p.log_weight + delta * p.values) for p in pairs)


def _root(pairs: list[_Pair], seen: float) -> tuple[float, float]:
    """Solve E(δ) = seen by Newton inside a shrinking bracket; the expectation rises with δ."""
    low, high, delta = -40.0, 40.0, 0.0
    for _ in range(200):
        mean, var = 0.0, 0.0
        for pair in pairs:
            p = pair.probabilities(delta)
            centre = float(p @ pair.values)
            mean, var = mean + centre, var + float(p @ (pair.values - centre) ** 2)
        low, high = (delta, high) if mean < seen else (low, delta)
        new = delta + (seen - mean) / max(var, 1e-300)
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - delta) < 1e-12 * (1 + abs(delta)):
            break
        delta = new
    return delta, var


def _exact(pairs: list[_Pair], above_low: float) -> float:
    """Two-sided p value of the sum, its distribution by convolution."""
    law = np.ones(1)
    for pair in pairs:
        law = np.convolve(law, pair.probabilities(0.0))
    place = round(above_low)
    tails = law[: place + 1].sum(), law[place:].sum()
    return float(min(1.0, 2 * min(tails)))
