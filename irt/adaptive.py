"""Computerised adaptive testing: a new model is asked only the items that tell most about it.

Items are chosen in batches, for one of two aims. For θ, a batch maximises the expected log of the
information, E[log(J(θ) + Σ n a² p q)], over the current posterior: J is what the prior and the answers
hold. For the score over all items, S(θ) = Σ p(θ)/I, it minimises the expected variance that θ leaves in
it, E[S'(θ)²/(J(θ) + Σ n a² p q)]: where S is flat, θ need not be known well. While θ is uncertain
both spread the batch over where θ may be; once it is known, both order items by n a² p q at θ. Owen
(1975) and van der Linden & Glas (2010) describe the field.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import norm

from irt.bank import Bank
from irt.data import DataError, Floats, Mask
from irt.score import mode

Aim = Literal["score", "theta"]
_GRID = np.linspace(-6.0, 6.0, 41)


@dataclass(frozen=True)
class CatRules:
    """How items are chosen and when to stop.

    Parameters
    ----------
    batch : int
        Items asked at once.
    first : int
        While θ is unknown a batch is at most as large as all before it together, the first one
        this: 1, 1, 2, 4, 8, 16, ...; a first batch of 16 would be aimed at the prior. From `batch`
        on all are equal.
    se : float, optional
        Stop when the standard error of θ, the bank's own error included, is not above this.
    max_items : int, optional
        Stop at so many answered items.
    randomesque : int
        Each item is drawn from so many best ones, so that not every model sees the same items
        (Kingsbury & Zara 1989); 1 always takes the best.
    aim : {"score", "theta"}
        What the items are to tell of: the score over the whole bank, or ability.
    shares : mapping of group to number, optional
        Target shares of the content groups, in any unit; items of other groups are not asked.
    widen : float
        Factor on the score's error. The error takes the model as true; answers that hang together
        beyond ability make it too small (about 1.5 times on BRIDGE). `irt.simulate` on models that were
        left out measures it (`irt.replay.widening`).
    seed : int
        Of the draws.
    """

    batch: int = 16
    first: int = 1
    se: float | None = None
    max_items: int | None = None
    randomesque: int = 1
    aim: Aim = "score"
    shares: Mapping[str, float] | None = None
    widen: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("batch", "first", "max_items", "randomesque", "seed"):
            value, least = getattr(self, name), int(name != "seed")
            if value is not None and value < least:
                raise DataError(f"{name} = {value} of an adaptive test: at least {least}")
        for name in ("se", "widen"):
            value = getattr(self, name)
            if value is not None and not 0 < value < np.inf:
                raise DataError(f"{name} = {value:g} of an adaptive test: above 0")
        if self.aim not in get_args(Aim):
            raise DataError(f"aim = {self.aim!r} of an adaptive test: score or theta")
        if self.shares is not None and not (
            self.shares and all(0 < share < np.inf for share in self.shares.values())
        ):
            raise DataError("shares of content groups are one or more numbers above 0")


@dataclass(frozen=True)
class CatResult:
    """What is known of a model so far.

    Parameters
    ----------
    theta, se : float
        Posterior mean, and its error: posterior SD and the bank's own error together.
    theta_map : float
        Posterior mode.
    bank_se : float
        The part of `se` that comes from the errors of the items' parameters.
    n_items, n_bank : int
        Items answered, and all that the score speaks of.
    observed : float
        Mean score of the answered items; NaN before the first.
    score, score_se, score_lo, score_hi : float
        Estimated score over all items of the bank, its error, and an interval for what running all
        of them would give.
    level : float
        Coverage of the interval.
    stopped : str or None
        Why nothing more is asked: "se", "max_items", "no items left"; None while it goes on.
    """

    theta: float
    se: float
    theta_map: float
    bank_se: float
    n_items: int
    n_bank: int
    observed: float
    score: float
    score_se: float
    score_lo: float
    score_hi: float
    level: float
    stopped: str | None


class Session:
    """One model's adaptive test: `next_batch` asks, `record` answers, `result` tells.

    A session rebuilt from the same bank, rules and recorded answers goes on as the first would have.

    Parameters
    ----------
    bank : Bank
        The score is over all of its items.
    rules : CatRules
    attempts : int or array, shape (I,)
        Attempts planned at each item.
    free : collection of keys
        Items whose answers are there already and cost nothing: they are asked before the others.
    """

    def __init__(
        self,
        bank: Bank,
        rules: CatRules,
        attempts: int | Sequence[float] | Floats = 1,
        free: Collection[Hashable] = (),
    ) -> None:
        self.bank, self.rules = bank, rules
        size = len(bank)
        self._free = np.array([key in free for key in bank.item])
        self._attempts = np.broadcast_to(np.asarray(attempts, dtype=np.float64), (size,))
        if not (np.isfinite(self._attempts) & (self._attempts > 0)).all():
            raise DataError("attempts planned at an item: above 0")
        self._k, self._n = np.zeros(size), np.zeros(size)
        self._closed = np.zeros(size, dtype=bool)  # answered or lost: never asked again
        self._pending: tuple[int, ...] = ()
        shares = rules.shares or {}
        absent = [name for name in shares if name not in bank.group]
        if absent:
            raise DataError(f"no item of the bank is of the group {', '.join(map(repr, absent))}")
        self._groups = tuple(sorted(shares))
        total = sum(shares.values())
        self._shares = np.array([shares[name] / total for name in self._groups])
        number: dict[str | None, int] = {name: row for row, name in enumerate(self._groups)}
        self._group = np.array([number.get(name, -1) for name in bank.group], dtype=np.intp)
        self._offered = self._group >= 0 if shares else np.ones(size, dtype=bool)

    @property
    def n_items(self) -> int:
        """Items answered."""
        return int(np.count_nonzero(self._n))

    @property
    def stopped(self) -> str | None:
        """Why nothing more is asked: "max_items", "no items left", "se"; None while it goes on."""
        rules = self.rules
        if rules.max_items is not None and self.n_items >= rules.max_items:
            return "max_items"
        if rules.se is not None and self._ability()[1] <= rules.se:
            return "se"
        return None if (self._offered & ~self._closed).any() else "no items left"

    def next_batch(self) -> tuple[Hashable, ...]:
        """Choose the items to run next.

        Returns
        -------
        tuple of keys
            In the order chosen; those still without an answer while a batch is out; empty at the end.
        """
        if not self._pending and self.stopped is None:
            size = min(self.rules.batch, max(self.rules.first, self.n_items))
            if self.rules.max_items is not None:
                size = min(size, self.rules.max_items - self.n_items)
            self._pending = self._choose(size)
        return tuple(self.bank.item[row] for row in self._pending)

    def record(self, item: Hashable, k: float, n: float = 1) -> None:
        """Take an answer, of an item that was asked or of any other one of the bank.

        Parameters
        ----------
        item : key
        k, n : float
            Successes and attempts; n = 0 for an item that was lost: it is not asked again, and
            stays unseen.

        Raises
        ------
        DataError
            For an item that is not in the bank or was recorded before, or numbers that are no k
            of n.
        """
        self.bank.check([item])
        row = self.bank.place[item]
        if self._closed[row]:
            raise DataError(f"item {item!r} was recorded before")
        if not (np.isfinite(k) and np.isfinite(n) and 0 <= k <= n):
            raise DataError(f"item {item!r}: k = {k:g} of n = {n:g}; 0 <= k <= n is needed")
        self._k[row], self._n[row], self._closed[row] = k, n, True
        self._pending = tuple(other for other in self._pending if other != row)

    def result(self, level: float = 0.95) -> CatResult:
        """Estimate ability and score over the whole bank.

        The score is (Σ observed + Σ p(θ̂) over the unseen)/I. Its variance adds the uncertainty of
        θ, the binomial noise of the unseen items and the errors of their parameters.

        Parameters
        ----------
        level : float
            Coverage of the score's interval.

        Returns
        -------
        CatResult

        Raises
        ------
        DataError
            For a level that is not between 0 and 1.
        """
        if not 0 < level < 1:
            raise DataError(f"level = {level:g} of an interval: between 0 and 1")
        theta, se, theta_map, bank_se = self._ability()
        bank, seen = self.bank, self._n > 0
        a, d = bank.a[~seen], bank.d[~seen]
        p = expit(a * theta + d)
        w = p * (1 - p)
        noise = float(np.sum(w / self._attempts[~seen]))
        items = float(np.sum(w**2 * _along(bank, ~seen, theta)))
        right = float(np.sum(self._k[seen] / self._n[seen]))
        size, asked = len(bank), int(seen.sum())
        score = (right + float(p.sum())) / size
        spread = self.rules.widen * float(np.sqrt((a @ w * se) ** 2 + noise + items)) / size
        reach = float(norm.ppf(0.5 + level / 2)) * spread
        return CatResult(
            theta, se, theta_map, bank_se, asked, size,
            right / asked if asked else float("nan"), score, spread,
            max(score - reach, right / size), min(score + reach, (right + size - asked) / size),
            level, self.stopped,
        )  # fmt: skip

    def _ability(self) -> tuple[float, float, float, float]:
        """Posterior mean and error of θ, its mode, and the bank's share of the error."""
        x, weight, peak = self._posterior()
        mean = float(weight @ x)
        var = float(weight @ (x - mean) ** 2)
        bank_var = self._bank_variance(peak)
        return mean, float(np.sqrt(var + bank_var)), peak, float(np.sqrt(bank_var))

    def _posterior(self) -> tuple[Floats, Floats, float]:
        """Points, weights that sum to 1, and the mode of the posterior of θ."""
        bank, seen = self.bank, self._n > 0
        a, d, k, n = bank.a[seen], bank.d[seen], self._k[seen], self._n[seen]
        peak, information = mode(k[:, None], n[:, None], a, d, mean=bank.mean, sd=bank.sd)
        x = peak[0] + _GRID / np.sqrt(information[0])
        z = np.multiply.outer(a, x) + d[:, None]
        log = k @ z - n @ np.logaddexp(0.0, z) - 0.5 * ((x - bank.mean) / bank.sd) ** 2
        weight = np.exp(log - log.max())
        return x, weight / weight.sum(), float(peak[0])

    def _bank_variance(self, theta: float) -> float:
        """Variance of θ̂ from the errors of the asked items' parameters, items independent.

        θ̂ solves g = Σ a (k − n p) − (θ − μ)/σ² = 0, so it moves by ∂g/J where an item moves:
        ∂g/∂log a = a (k − n p) − a² W θ and ∂g/∂d = −a W, with W = n p q and J = Σ a² W + 1/σ².
        """
        bank, seen = self.bank, self._n > 0
        a, n = bank.a[seen], self._n[seen]
        p = expit(a * theta + bank.d[seen])
        w = n * p * (1 - p)
        by_lam, by_d = a * (self._k[seen] - n * p) - a * a * w * theta, -a * w
        information = float(np.sum(a * a * w)) + bank.sd**-2
        return float(np.sum(_quadratic(bank, seen, by_lam, by_d))) / information**2

    def _choose(self, size: int) -> tuple[int, ...]:
        """Choose rows greedily by what they gain for the aim, per cost."""
        x, weight, _ = self._posterior()
        unit = information(self.bank.a, self.bank.d, x)
        # S'(θ)² = (Σ a p q over the unseen)², up to a factor.
        slope = (unit / self.bank.a[:, None])[self._n == 0].sum(axis=0) ** 2
        known = self._n @ unit + self.bank.sd**-2
        planned = unit * self._attempts[:, None]
        # From the answers so far, not from the calls so far: a resumed session draws the same.
        random = np.random.default_rng([self.rules.seed, int(self._closed.sum())])
        is_open = self._offered & ~self._closed
        counts = np.bincount(self._group[self._closed & (self._group >= 0)],
                             minlength=len(self._groups)).astype(np.float64)  # fmt: skip
        chosen: list[int] = []
        while len(chosen) < size and is_open.any():
            rows = self._candidates(is_open, counts)
            if self.rules.aim == "theta":
                gain = np.log1p(planned[rows] / known) @ weight
            else:
                gain = (slope * (1 / known - 1 / (known + planned[rows]))) @ weight
            gain = gain / self.bank.cost[rows]
            best = rows[np.argsort(-gain, kind="stable")[: self.rules.randomesque]]
            row = int(random.choice(best))
            chosen.append(row)
            known = known + planned[row]
            is_open[row] = False
            if self._groups:
                counts[self._group[row]] += 1
        return tuple(chosen)

    def _candidates(self, is_open: Mask, counts: Floats) -> NDArray[np.intp]:
        """Open rows, the free ones first; with balance, of the group furthest behind its share."""
        if self._groups:
            behind = self._shares * (counts.sum() + 1) - counts
            left = np.bincount(self._group[is_open], minlength=len(self._groups)) > 0
            is_open = is_open & (self._group == np.argmax(np.where(left, behind, -np.inf)))
        free = np.flatnonzero(is_open & self._free)
        return free if len(free) else np.flatnonzero(is_open)


def information(a: Floats, d: Floats, theta: Floats) -> Floats:
    """Fisher information about θ of one attempt: a² p q.

    Parameters
    ----------
    a, d : arrays, shape (I,)
    theta : array, shape (Q,)

    Returns
    -------
    array, shape (I, Q)

    Examples
    --------
    >>> information(np.array([2.0]), np.array([-2.0]), np.array([1.0])).tolist()
    [[1.0]]
    """
    p = expit(np.multiply.outer(a, theta) + d[:, None])
    return np.asarray((a * a)[:, None] * p * (1 - p), dtype=np.float64)


def _quadratic(bank: Bank, rows: Mask, by_lam: Floats, by_d: Floats) -> Floats:
    """Variance of by_lam·log a + by_d·d of each item."""
    return np.asarray(
        (by_lam * bank.se_log_a[rows]) ** 2
        + (by_d * bank.se_d[rows]) ** 2
        + 2 * by_lam * by_d * bank.cov[rows]
    )


def _along(bank: Bank, rows: Mask, theta: float) -> Floats:
    """Variance of the logit a θ + d of each item: its derivative by log a is a θ, by d 1."""
    a = bank.a[rows]
    return _quadratic(bank, rows, a * theta, np.ones_like(a))


def cat(
    bank: Bank,
    rules: CatRules | None = None,
    *,
    attempts: int | Sequence[float] | Floats = 1,
    free: Collection[Hashable] = (),
) -> Session:
    """Start an adaptive test of one model.

    Parameters
    ----------
    bank : Bank
    rules : CatRules, optional
    attempts : int or array, shape (I,)
        Attempts planned at each item.
    free : collection of keys
        Items whose answers are there already: they are asked before the others.

    Returns
    -------
    Session

    Raises
    ------
    DataError
        For a content group that is not in the bank.

    Examples
    --------
    >>> import irt
    >>> rows = [
    ...     {"model": f"m{m}", "item": f"i{i}", "k": int(m + i > 4)} for m in range(8) for i in range(6)
    ... ]
    >>> session = cat(Bank.of(irt.fit(rows, method="joint")), CatRules(batch=2, max_items=4))
    >>> while asked := session.next_batch():
    ...     for item in asked:
    ...         session.record(item, k=1)  # here the model would run
    >>> session.stopped, session.result().n_items
    ('max_items', 4)
    """
    return Session(bank, rules or CatRules(), attempts, free)
