"""Differential item functioning: items that are harder for a group of models than their ability says.

Two designs. `dif` compares groups (a lab, models before and after a date): each item's intercept, then
its slope, is refitted per group with the abilities given; likelihood-ratio and Wald tests, a
Mantel–Haenszel check, and Benjamini–Hochberg over all items. `paired_dif` compares twins (a quantised
model and its full-precision original), item by item within each pair.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Literal

import numpy as np
from scipy.special import chdtrc, ndtr

from irt._dif_checks import mantel_haenszel
from irt._dif_fit import GroupFit, fit_item_groups
from irt._dif_pairs import pair_test
from irt._dif_records import Dif, PairedDif
from irt.data import DataError, Floats, Responses
from irt.fitting import Fit, fit
from irt.residuals import benjamini_hochberg

ROUNDS = 5


def dif(
    fitted: Fit, groups: Mapping[Hashable, Hashable], *, reference: Hashable = None,
    theta: Literal["fixed", "linked"] = "fixed", alpha: float = 0.05, strata: int = 5,
) -> Dif:  # fmt: skip
    """Test every item for a difference between groups of models of equal ability.

    Parameters
    ----------
    fitted : Fit
        Counts.
    groups : mapping of model to group
        Models of the fit without a group are left out of the tests.
    reference : hashable, optional
        The group that the others are compared with; the largest by default.
    theta : {"fixed", "linked"}
        Abilities as fitted, or fitted anew on the items that show no difference, in at most five
        rounds until those stay the same. The second is right where many items differ the same way:
        they then pull the group's abilities along.
    alpha : float
        False discovery rate of the flags.
    strata : int
        Classes of ability of the Mantel–Haenszel check.

    Returns
    -------
    Dif

    Raises
    ------
    DataError
        For unknown models, fewer than two groups, a reference that is none, no testable item, no
        item left to link on, fractional scores, or an option out of its range.

    Examples
    --------
    >>> import irt
    >>> rng = np.random.default_rng(1)
    >>> able = rng.normal(size=60)
    >>> hard = np.linspace(-2, 2, 30) + np.outer(np.arange(60) % 2, np.arange(30) == 11) * 2.5
    >>> k = rng.random((60, 30)) < 1 / (1 + np.exp(hard - able[:, None]))
    >>> fitted = irt.fit(irt.Responses.from_matrix(k), method="joint")
    >>> found = dif(fitted, {name: int(name[1:]) % 2 for name in fitted.models.model}, reference=0)
    >>> found.flagged
    (('i0011', 1),)
    """
    if theta not in ("fixed", "linked"):
        raise DataError(f"theta is 'fixed' or 'linked', not {theta!r}")
    if strata < 1:
        raise DataError(f"strata = {strata}: at least one class of ability is needed")
    data = _counts(fitted)
    names, label = _labels(fitted, groups, reference)
    ability, purified, scale = fitted.models.theta, frozenset[Hashable](), fitted
    found = _tests(data, ability, label, names, scale, alpha, strata, purified)
    for _ in range(ROUNDS if theta == "linked" else 0):
        flagged = frozenset(item for item, _ in found.flagged)
        if flagged == purified:
            break
        keep = np.array([item not in flagged for item in data.items])
        if np.count_nonzero(keep) < 3:
            raise DataError("nearly every item is flagged: no scale is left to link the groups on")
        scale = fit(data.subset(keep, np.ones(len(data.models), dtype=bool)), method="joint")
        place = {name: row for row, name in enumerate(scale.models.model)}
        rows = np.array([place.get(name, -1) for name in data.models])
        # A model whose every answer was to a flagged item has no ability, and leaves the test.
        ability = np.where(rows >= 0, scale.models.theta[rows], np.nan)
        purified = flagged
        found = _tests(data, ability, label, names, scale, alpha, strata, purified)
    return found


def _counts(fitted: Fit) -> Responses:
    if fitted.responses.fractional:
        raise DataError("these tests are for counts: fractional scores have no likelihood")
    return fitted.responses


def _labels(
    fitted: Fit, groups: Mapping[Hashable, Hashable], reference: Hashable
) -> tuple[list[Hashable], Any]:
    """Group names, the reference first, and each model's number among them (−1 without one)."""
    unknown = sorted((m for m in groups if m not in set(fitted.models.model)), key=repr)
    if unknown:
        raise DataError(f"{len(unknown)} models are not in the fit: {unknown[:5]}")
    given = [groups[m] for m in fitted.models.model if m in groups]
    count = {name: given.count(name) for name in given}
    names = sorted(count, key=lambda name: (-count[name], repr(name)))
    if len(names) < 2:
        raise DataError(f"{len(names)} groups: a comparison needs at least two")
    if reference is not None and reference not in count:
        raise DataError(f"the reference {reference!r} is no group; there are {names}")
    if reference is not None:
        names.sort(key=lambda name: name != reference)
    place = {name: number for number, name in enumerate(names)}
    return names, np.array([place[groups[m]] if m in groups else -1 for m in fitted.models.model])


def _tests(
    data: Responses, ability: Floats, label: Any, names: list[Hashable], scale: Fit,
    alpha: float, strata: int, purified: frozenset[Hashable],
) -> Dif:  # fmt: skip
    """Compare every group with the reference, at given abilities."""
    prior = scale.hyper.mu_a + float(np.log(scale.estimate.s)), scale.hyper.sigma_a
    keys: list[tuple[Hashable, Hashable]] = []
    parts: list[dict[str, Floats]] = []
    silent: list[tuple[Hashable, Hashable, str]] = []
    good = True
    for number, name in enumerate(names[1:], 1):
        both = ((label == 0) | (label == number)) & np.isfinite(ability)
        focal = (label[both] == number).astype(np.float64)
        k, n, theta = data.k[:, both], data.n[:, both], ability[both]
        reasons = [_silence(k[i], n[i], focal) for i in range(len(k))]
        silent += [(item, name, why) for item, why in zip(data.items, reasons, strict=True) if why]
        rows = np.array([not why for why in reasons])
        if not rows.any():
            continue
        k, n = k[rows], n[rows]
        at = fit_item_groups(k, n, theta, focal, prior)
        good = good and at.converged
        parts.append(_columns(at, k, n, theta, focal, strata))
        keys += [(item, name) for item, row in zip(data.items, rows, strict=True) if row]
    if not parts:
        raise DataError("no item has right and wrong answers in two groups: nothing can be tested")
    table = {column: np.concatenate([part[column] for part in parts]) for column in parts[0]}
    for name in ("lr", "wald", "slope", "mh"):
        table[f"q_{name}"] = benjamini_hochberg(table[f"p_{name}"])
    marks = {"dif": table["q_lr"], "slope_dif": table["q_slope"], "mh": table["q_mh"]}
    flags = tuple(
        tuple(mark for mark, q in marks.items() if q[row] < alpha) for row in range(len(keys))
    )
    left_out = tuple(m for m, number in zip(data.models, label, strict=True) if number < 0)
    return Dif(
        item=tuple(item for item, _ in keys), group=tuple(group for _, group in keys), flags=flags,
        reference=names[0], not_testable=tuple(silent), left_out=left_out,
        purified=tuple(item for item in data.items if item in purified), converged=good, **table,
    )  # fmt: skip


def _silence(k: Floats, n: Floats, focal: Floats) -> str:
    """Why an item cannot be compared, or nothing."""
    for name, group in (("reference", focal == 0), ("focal", focal == 1)):
        right, asked = k[group].sum(), n[group].sum()
        if asked == 0:
            return f"no answers in the {name} group"
        if right in (0, asked):
            return f"all {'right' if right else 'wrong'} in the {name} group"
    return ""


def _columns(
    at: GroupFit, k: Floats, n: Floats, theta: Floats, focal: Floats, strata: int
) -> dict[str, Floats]:
    a, gamma = np.exp(at.x[:, 0]), at.x[:, 2]
    delta_b = -gamma / a
    # Δb = −γ e^−λ: its slopes are −Δb in λ and −1/a in γ
    var = delta_b**2 * at.cov[:, 0, 0] + at.cov[:, 2, 2] / a**2 + 2 * delta_b / a * at.cov[:, 0, 2]
    wald = gamma / at.gamma_se
    mh_log_odds, mh_se, mh_chi2 = mantel_haenszel(k, n, theta, focal, strata)
    asked = n > 0
    return {
        "n_reference": asked[:, focal == 0].sum(axis=1), "n_focal": asked[:, focal == 1].sum(axis=1),
        "delta_b": delta_b, "se_b": np.sqrt(np.maximum(var, 0.0)),
        "lr": at.lr, "p_lr": chdtrc(1, at.lr),
        "wald": wald, "p_wald": 2 * ndtr(-np.abs(wald)),
        "delta_log_a": at.x[:, 3], "se_log_a": at.delta_se,
        "lr_slope": at.lr_slope, "p_slope": chdtrc(1, at.lr_slope),
        "mh_log_odds": mh_log_odds, "mh_se": mh_se, "mh_chi2": mh_chi2, "p_mh": chdtrc(1, mh_chi2),
    }  # fmt: skip


def paired_dif(
    fitted: Fit, pairs: Mapping[Hashable, Hashable], *, alpha: float = 0.05
) -> PairedDif:
    """Test every item for a difference between models and their twins.

    Parameters
    ----------
    fitted : Fit
        Counts.
    pairs : mapping of model to its original
        Say, quantised model to full precision.
    alpha : float
        False discovery rate of the flags.

    Returns
    -------
    PairedDif
        A general loss by the twins is a difference of ability and no flag; an item is flagged where
        they lose (or win) more on it than that.

    Raises
    ------
    DataError
        For unknown models, a model paired with itself, no pairs, or fractional scores.
    """
    data = _counts(fitted)
    place = {name: column for column, name in enumerate(data.models)}
    unknown = sorted({m for pair in pairs.items() for m in pair if m not in place}, key=repr)
    if unknown:
        raise DataError(f"{len(unknown)} models are not in the fit: {unknown[:5]}")
    if not pairs or any(one == two for one, two in pairs.items()):
        raise DataError("pairs go from a model to another one, and there must be at least one")
    twins = sorted((place[two], place[one]) for two, one in pairs.items())
    second, first = (np.array(side, dtype=np.intp) for side in zip(*twins, strict=True))
    gain = fitted.models.theta[second] - fitted.models.theta[first]
    rows: list[dict[str, Any]] = []
    silent: list[tuple[Hashable, str]] = []
    for i, item in enumerate(data.items):
        both = (data.n[i, first] > 0) & (data.n[i, second] > 0)
        one, two = (
            list(zip(data.k[i, side[both]], data.n[i, side[both]], strict=True))
            for side in (first, second)
        )
        a = float(fitted.items.a[i])
        test, discordant = pair_test(one, two, a * gain[both])
        if test is None:
            silent.append(
                (item, "no pair answered it differently" if one else "no pair answered it")
            )
            continue
        rows.append(
            {
                "item": item, "n_pairs": len(one), "n_discordant": discordant,
                "delta_b": -test.delta / a, "se_b": test.se / a, "lr": test.lr,
                "wald": test.delta / test.se if np.isfinite(test.se) else np.nan,
                "p_exact": test.p_exact,
            }
        )  # fmt: skip
    table = {
        name: np.array([row[name] for row in rows])
        for name in ("n_pairs", "n_discordant", "delta_b", "se_b", "lr", "wald", "p_exact")
    }
    p_lr, q_exact = chdtrc(1, table["lr"]), benjamini_hochberg(table["p_exact"])
    return PairedDif(
        item=tuple(row["item"] for row in rows), p_lr=p_lr, q_lr=benjamini_hochberg(p_lr),
        p_wald=2 * ndtr(-np.abs(table["wald"])), q_exact=q_exact,
        flags=tuple(("dif",) if q < alpha else () for q in q_exact), not_testable=tuple(silent),
        **table,
    )  # fmt: skip
