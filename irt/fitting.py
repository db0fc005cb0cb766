"""`irt.fit`: from a table of answers to abilities and difficulties on one scale, with a verdict."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from irt._cells import curve
from irt._record import record
from irt.compare import Comparison, compare_draws, rank_shares
from irt.data import DataError, Floats, Responses
from irt.kinds import KINDS, Choices, asymptotes, check_kind, graded, share_of_points
from irt.laplace import Draws
from irt.methods import Estimate, Method, Request, Warm, choose_method, find_method
from irt.model import Hyper
from irt.new_items import ItemScores, score_items
from irt.prepare import MIN_MODELS, Excluded, prepare
from irt.records import Items, Models, Verdict
from irt.score import Scores, score_models

if TYPE_CHECKING:
    from irt._dif_records import Dif
    from irt.link import Link
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
    link : Link or None
        The link to human minutes, where they were given.
    """

    responses: Responses
    method: str
    gauge: str
    models: Models
    items: Items
    verdict: Verdict
    estimate: Estimate
    link: Link | None = None

    @property
    def kind(self) -> str:
        """The item model: a key of `irt.kinds.KINDS`."""
        e = self.estimate
        return "grm" if e.thresholds is not None else "2pl" if e.c is None else "3pl"

    @property
    def parameterisation(self) -> str:
        """The item model as a formula."""
        return KINDS[self.kind]

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
        """Probability of a right answer, shape (I, P), in the order of `items` and `models`.

        Of the graded model the expected share of the points.
        """
        e, theta = self.estimate, self.models.theta
        if e.thresholds is not None:
            return share_of_points(e.thresholds, self.items.a, theta)
        c = np.zeros(len(self.items)) if e.c is None else e.c
        return curve(self.items.a, self.items.d, c, theta)

    def _needs(self, *kinds: str, what: str) -> None:
        if self.kind not in kinds:
            raise DataError(f"{what} is there for model {' and '.join(kinds)}, not for {self.kind}")

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
            For a method without joint draws, or fewer than one draw.
        """
        if n < 1:
            raise DataError(f"n = {n} draws: at least one is needed")
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

        self._needs("2pl", "3pl", what="item fit")
        k, n, c = self.responses.k, self.responses.n, self.estimate.c
        return mean_squares(k, n, self.items.a, self.items.d, self.models.theta, c=c)

    def person_fit(self) -> PersonFit:
        """l_z of the models: far below 0 where answers do not follow difficulty (a broken run)."""
        from irt.residuals import person_fit

        self._needs("2pl", "3pl", what="person fit")
        k, n, c = self.responses.k, self.responses.n, self.estimate.c
        return person_fit(k, n, self.items.a, self.items.d, self.models.theta, c=c)

    def dif(self, groups: Mapping[Hashable, Hashable], **options: Any) -> Dif:
        """Test the items for differences between groups of models; see `irt.dif.dif`."""
        from irt.dif import dif

        self._needs("2pl", what="DIF")
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
        self._needs("2pl", "3pl", what="scoring models")
        data = self._responses(new)
        k, n = data.on_items(self.items.item)
        mean, sd = self.population
        return score_models(
            k, n, self.items.a, self.items.d, mean=mean, sd=sd, models=data.models,
            c=self.estimate.c, fractional=data.fractional,
        )  # fmt: skip

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
        self._needs("2pl", what="adding items")
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
            k, n, e.state.theta, self.hyper, m=e.m, s=e.s, cov_theta=cov, items=data.items,
            fractional=data.fractional,
        )  # fmt: skip

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
    human_minutes: Any = None,
    link: str = "ols",
    model: str = "2pl",
    choices: Choices | None = None,
) -> Fit:
    """Fit models and items on one scale: logit p = a (θ − b), or another model of items.

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
    human_minutes : mapping of item to minutes, or table, optional
        Human minutes of some items, see `irt.link.fit_link`: then the fit has a `link`.
    link : str
        How minutes follow difficulty: "ols", "weighted", or "joint", where the minutes are part of
        the likelihood and help to place their items.
    model : str
        "2pl", "3pl" (a lower asymptote of 1/choices, for multiple choice) or "grm" (graded response
        model: k of n points are an ordered score). The last two are fitted by mml.
    choices : int or mapping of item to int, optional
        Options of all items, or of those that have any: model "3pl" only.

    Returns
    -------
    Fit

    Raises
    ------
    DataError
        For data that cannot be fitted, with the reason; for a model that is not there.
    ValueError
        For a method or a level of the link that is not there.

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
    check_kind(model, choices, method, anchored)
    if human_minutes is None and link != "ols":
        raise DataError(f"link={link!r} is about human minutes: give human_minutes= too")
    if anchored and not _as_anchors(anchors):
        raise DataError("no anchors given")
    data, excluded = prepare(
        data, largest_block=largest_block, min_models=1 if anchored else MIN_MODELS
    )
    notes: tuple[str, ...] = ()
    if model != "2pl":
        method = "mml"
    elif not anchored:
        method, notes = choose_method(data, method)
    elif method == "auto":
        method = "joint"
    estimator = graded if model == "grm" else find_method(method)
    request = _request(anchors, warm)
    if choices is not None:
        request = replace(request, c=asymptotes(data.items, choices))
    if human_minutes is None:
        estimate = estimator(data, request)
        return _assembled(data, method, estimate, excluded, notes, anchors)
    return _with_link(
        data, method, estimator, request, excluded, notes, anchors, human_minutes, link
    )


def _with_link(
    data: Responses, method: str, estimator: Method, request: Request, excluded: Excluded,
    notes: tuple[str, ...],
    anchors: Fit | Mapping[Hashable, tuple[float, float]] | None, human_minutes: Any, level: str,
) -> Fit:  # fmt: skip
    """Fit with human minutes: as part of the likelihood, or regressed on afterwards."""
    from irt.link import check_level, choose_anchors, fit_link, link_of_joint

    check_level(level)
    chosen = choose_anchors(human_minutes, data.items, excluded)
    if level == "joint":
        if method != "joint":
            raise DataError(f"link='joint' is part of method='joint', not of {method!r}")
        request = replace(request, minutes=chosen.minutes)
    estimate = estimator(data, request)
    found = _assembled(data, method, estimate, excluded, notes, anchors)
    made = link_of_joint(found, chosen) if level == "joint" else None
    return replace(found, link=made or fit_link(found, human_minutes, level=level))


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


def _assembled(
    data: Responses, method: str, e: Estimate, excluded: Excluded, notes: tuple[str, ...],
    anchors: Fit | Mapping[Hashable, tuple[float, float]] | None,
) -> Fit:  # fmt: skip
    gauge = _FREE_GAUGE if anchors is None else _ANCHOR_GAUGE
    tables = record(data, e, excluded, notes, _as_anchors(anchors))
    return Fit(data, method, gauge, *tables, e)
