"""`irt.fit`: from a table of answers to abilities and difficulties on one scale, with a verdict."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from irt.compare import Comparison, compare_draws, rank_shares
from irt.data import DataError, Floats, Mask, Responses
from irt.laplace import Draws
from irt.methods import Estimate, Request, Warm, choose_method, find_method
from irt.model import Hyper
from irt.prepare import MIN_MODELS, Excluded, prepare
from irt.records import Items, Models, Verdict
from irt.score import (
    ItemScores,
    Scores,
    score_items,
    score_models,
    se_difficulty,
)  # fmt: skip

if TYPE_CHECKING:
    from irt._dif_records import Dif
    from irt.residuals import MeanSquares, PersonFit
    from irt.testlets import Testlets

_FREE_GAUGE = "mean(theta) = 0, SD(theta) = 1 over the calibration models"
_ANCHOR_GAUGE = "the anchors' scale"


@dataclass(frozen=True, eq=False)
class Fit:
    """A fit: `models`, `items`, `verdict`, and what can be done with them.

    Parameters
    ----------
    responses : Responses
        What was fitted, after exclusions.
    method : str
        The method used.
    gauge : str
        What fixes zero and unit of θ.
    models : Models
    items : Items
    verdict : Verdict
    estimate : Estimate
        The method's own record.
    """

    responses: Responses
    method: str
    gauge: str
    models: Models
    items: Items
    verdict: Verdict
    estimate: Estimate

    parameterisation = "logit p = a (theta - b) = a theta + d"

    @property
    def hyper(self) -> Hyper:
        """Priors, in the engine's gauge (θ of the engine = m + s θ, see `estimate`)."""
        return self.estimate.hyper

    @property
    def data_hash(self) -> str:
        """sha256 of what was fitted."""
        return self.responses.data_hash

    @cached_property
    def log_loss(self) -> float:
        """Mean −log p of an attempt's outcome, in sample."""
        return -self.estimate.log_lik / float(self.responses.n.sum())

    @property
    def population(self) -> tuple[float, float]:
        """Mean and SD of the prior of θ in the reported gauge."""
        h, e = self.hyper, self.estimate
        return (h.mu_theta - e.m) / e.s, h.sigma_theta / e.s

    def probabilities(self) -> Floats:
        """Probability of a right answer, shape (I, P), in the order of `items` and `models`."""
        z = np.multiply.outer(self.items.a, self.models.theta) + self.items.d[:, None]
        return np.asarray(1 / (1 + np.exp(np.minimum(-z, 700.0))), dtype=np.float64)

    def draws(self, n: int = 1000, seed: int = 0) -> Draws:
        """Draw abilities and items together from the Laplace approximation.

        Intervals of differences, ranks and difficulties come from these.

        Parameters
        ----------
        n, seed : int

        Returns
        -------
        Draws
            Each draw standardised by itself.

        Raises
        ------
        ValueError
            For a method without joint draws.
        """
        if self.estimate.draw is None:
            raise ValueError(f"method {self.method!r} gives no joint draws: use method='joint'")
        return self.estimate.draw(n, np.random.default_rng(seed))

    def compare(
        self, one: Hashable, two: Hashable, *, level: float = 0.95, n: int = 4000, seed: int = 0
    ) -> Comparison:
        """Compare two models by joint draws, in which their errors are correlated.

        Parameters
        ----------
        one, two : hashable
            Names.
        level : float
            Coverage of the interval.
        n, seed : int
            Of the draws.

        Returns
        -------
        Comparison

        Raises
        ------
        DataError
            For a model that is not in this fit.
        """
        unknown = [name for name in (one, two) if name not in self.models.model]
        if unknown:
            raise DataError(f"not in the fit: {', '.join(map(repr, unknown))}")
        first, second = (self.models.model.index(name) for name in (one, two))
        theta = self.draws(n, seed).theta
        gap = float(self.models.theta[first] - self.models.theta[second])
        return compare_draws(theta[:, first], theta[:, second], gap, level)

    def rank_probabilities(self, n: int = 4000, seed: int = 0) -> Floats:
        """Probability of each rank for each model, shape (P, P), the best rank first.

        Parameters
        ----------
        n, seed : int
            Of the draws.

        Returns
        -------
        array, shape (P, P)
        """
        return rank_shares(self.draws(n, seed).theta)

    def item_fit(self) -> MeanSquares:
        """Infit and outfit of the items; S-X² and M2 need complete data: see `irt.fitstats`."""
        from irt.residuals import mean_squares

        k, n = self.responses.k, self.responses.n
        return mean_squares(k, n, self.items.a, self.items.d, self.models.theta)

    def person_fit(self) -> PersonFit:
        """l_z of the models: far below 0 where answers do not follow difficulty (a broken run)."""
        from irt.residuals import person_fit

        k, n = self.responses.k, self.responses.n
        return person_fit(k, n, self.items.a, self.items.d, self.models.theta)

    def dif(self, groups: Mapping[Hashable, Hashable], **options: Any) -> Dif:
        """Test the items for differences between groups of models; see `irt.dif.dif`."""
        from irt.dif import dif

        return dif(self, groups, **options)

    def testlets(self) -> Testlets:
        """Find items that hang together beyond ability; see `irt.testlets.find_testlets`."""
        from irt.testlets import find_testlets

        return find_testlets(self)

    def score_model(self, new: Any) -> Scores:
        """Place models on this scale, the items as they are.

        Parameters
        ----------
        new : Responses or long table
            Answers to items of this fit.

        Returns
        -------
        Scores
            MAP (a calibration model scored anew has its own θ), EAP and WLE, with errors.

        Raises
        ------
        DataError
            For items that are not in this fit.
        """
        data = self._responses(new)
        k, n = data.on_items(self.items.item)
        mean, sd = self.population
        return score_models(k, n, self.items.a, self.items.d, mean=mean, sd=sd, models=data.models)

    def add_items(self, new: Any) -> ItemScores:
        """Place items on this scale, the models as they are.

        Parameters
        ----------
        new : Responses or long table
            Answers of models of this fit to other items.

        Returns
        -------
        ItemScores
            With the abilities' errors carried into those of the items.

        Raises
        ------
        DataError
            For models that are not in this fit.
        """
        data = self._responses(new)
        place = {name: column for column, name in enumerate(self.models.model)}
        unknown = [name for name in data.models if name not in place]
        if unknown:
            raise DataError(f"{len(unknown)} models are not in the fit: {unknown[:5]}")
        columns = np.array([place[name] for name in data.models], dtype=np.intp)
        k, n = (np.zeros((len(data.items), len(place))) for _ in range(2))
        k[:, columns], n[:, columns] = data.k, data.n
        e = self.estimate
        cov = None if e.cov_theta is None else e.cov_theta()
        return score_items(
            k, n, e.state.theta, self.hyper, m=e.m, s=e.s, cov_theta=cov, items=data.items
        )

    def _responses(self, new: Any) -> Responses:
        if isinstance(new, Responses):
            return new
        return Responses.from_table(new, "fractional" if self.responses.fractional else "counts")


def fit(
    responses: Any,
    method: str = "auto",
    *,
    anchors: Fit | Mapping[Hashable, tuple[float, float]] | None = None,
    warm: Fit | None = None,
    largest_block: bool = False,
) -> Fit:
    """Fit the two-parameter logistic model: logit p = a (θ − b).

    Parameters
    ----------
    responses : Responses or long table
        Columns `model`, `item`, `k`, optional `n`.
    method : str
        "joint" (Newton–Schur), "mml" (quadrature EM), another one of `irt.methods.METHODS`, or
        "auto": mml for short tests of many models, else joint.
    anchors : Fit or mapping of item to (a, b), optional
        Fixed-item calibration: these items keep their parameters and their scale, everything else
        is estimated on it.
    warm : Fit, optional
        Start from this fit.
    largest_block : bool
        Fit the largest connected block instead of refusing blocks without a link.

    Returns
    -------
    Fit

    Raises
    ------
    DataError
        For data that cannot be fitted, with the reason.
    ValueError
        For a method that is not there.

    Examples
    --------
    >>> rows = [
    ...     {"model": m, "item": i, "k": int(able >= hard)}
    ...     for able, m in enumerate("pqrstu")
    ...     for hard, i in enumerate(("easy", "middling", "hard"), 1)
    ... ]
    >>> found = fit(rows, method="joint")
    >>> bool(np.all(np.diff(found.models.theta[:4]) > 0)), found.verdict.converged
    (True, True)
    """
    data = responses if isinstance(responses, Responses) else Responses.from_table(responses)
    anchored = anchors is not None
    if anchored and not _as_anchors(anchors):
        raise DataError("no anchors given")
    data, excluded = prepare(
        data, largest_block=largest_block, min_models=1 if anchored else MIN_MODELS
    )
    notes: tuple[str, ...] = ()
    if not anchored:
        method, notes = choose_method(data, method)
    elif method == "auto":
        method = "joint"
    estimate = find_method(method)(data, _request(anchors, warm))
    return _assemble(data, method, estimate, excluded, notes, anchors)


def _request(
    anchors: Fit | Mapping[Hashable, tuple[float, float]] | None, warm: Fit | None
) -> Request:
    start = None
    if warm is not None:
        start = Warm(warm.models.model, warm.items.item, warm.estimate.start)
    if not isinstance(anchors, Fit):
        return Request(start, anchors or {})
    h, e = anchors.hyper, anchors.estimate
    # The bank's priors at its reported scale; of the small shift m only the typical a matters.
    typical = float(np.exp(h.mu_a))
    hyper = Hyper(h.mu_a + float(np.log(e.s)), h.sigma_a, h.mu_d + typical * e.m, h.sigma_d)
    return Request(start, _as_anchors(anchors), hyper)


def _as_anchors(anchors: Fit | Mapping[Hashable, tuple[float, float]] | None) -> Mapping[Any, Any]:
    if isinstance(anchors, Fit):
        items = anchors.items
        return dict(zip(items.item, zip(items.a, items.b, strict=True), strict=True))
    return anchors or {}


def _assemble(
    data: Responses, method: str, e: Estimate, excluded: Excluded, notes: tuple[str, ...],
    anchors: Fit | Mapping[Hashable, tuple[float, float]] | None,
) -> Fit:  # fmt: skip
    right, asked = data.k.sum(axis=1), data.n.sum(axis=1)
    slope_z = _slope_z(data, e.theta)
    known = _as_anchors(anchors)
    marks: dict[str, Mask] = {
        "prior_only": (right == 0) | (right == asked),
        "suspect_key": slope_z < 0,  # NaN is not
        "fisher": e.fisher_items,
        "anchor": np.array([key in known for key in data.items], dtype=bool),
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
    gauge = _FREE_GAUGE if anchors is None else _ANCHOR_GAUGE
    return Fit(data, method, gauge, models, items, verdict, e)


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
