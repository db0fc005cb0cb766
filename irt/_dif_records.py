"""What the tests for differential item functioning give."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from irt.data import Floats
from irt.score import to_dicts


@dataclass(frozen=True)
class Dif:
    """Tests of items, one entry an item and focal group (T entries); logit p = a θ + d.

    Parameters
    ----------
    item, group : tuples
        Key, and the focal group compared with the reference.
    n_reference, n_focal : arrays of int
        Models that answered.
    delta_b, se_b : arrays
        Difficulty in the focal group less that in the reference group, slopes equal; positive is
        harder for the focal group than its abilities say.
    lr, p_lr, q_lr : arrays
        Likelihood-ratio χ²(1) of equal intercepts, its p value, and that after Benjamini–Hochberg.
    wald, p_wald, q_wald : arrays
        The same by z = Δd/SE.
    delta_log_a, se_log_a, lr_slope, p_slope, q_slope : arrays
        Difference of log a with intercepts free, its error and test.
    mh_log_odds, mh_se, mh_chi2, p_mh, q_mh : arrays
        Mantel–Haenszel over strata of ability: log common odds ratio (positive favours the
        reference group), its error, χ²(1) with continuity correction.
    flags : tuple of tuples
        `dif` (q_lr below `alpha`), `slope_dif` (q_slope), `mh` (q_mh).
    reference : hashable
    not_testable : tuple of (item, group, reason)
        Items without a test; not dropped in silence.
    left_out : tuple
        Models of the fit that have no group.
    purified : tuple
        Items left out of the scale the abilities stand on (`theta="linked"`).
    converged : bool
    """

    item: tuple[Hashable, ...]
    group: tuple[Hashable, ...]
    n_reference: Any
    n_focal: Any
    delta_b: Floats
    se_b: Floats
    lr: Floats
    p_lr: Floats
    q_lr: Floats
    wald: Floats
    p_wald: Floats
    q_wald: Floats
    delta_log_a: Floats
    se_log_a: Floats
    lr_slope: Floats
    p_slope: Floats
    q_slope: Floats
    mh_log_odds: Floats
    mh_se: Floats
    mh_chi2: Floats
    p_mh: Floats
    q_mh: Floats
    flags: tuple[tuple[str, ...], ...]
    reference: Hashable
    not_testable: tuple[tuple[Hashable, Hashable, str], ...]
    left_out: tuple[Hashable, ...]
    purified: tuple[Hashable, ...]
    converged: bool

    def __len__(self) -> int:
        return len(self.item)

    @property
    def flagged(self) -> tuple[tuple[Hashable, Hashable], ...]:
        """Item and focal group of every `dif` or `slope_dif`."""
        return tuple(
            (item, group)
            for item, group, flags in zip(self.item, self.group, self.flags, strict=True)
            if {"dif", "slope_dif"} & set(flags)
        )

    def to_dicts(self) -> list[dict[str, Any]]:
        """One mapping an item and focal group."""
        return to_dicts(self, last="flags")


@dataclass(frozen=True)
class PairedDif:
    """Tests of items by pairs of models, one entry an item (T entries).

    Parameters
    ----------
    item : tuple
    n_pairs, n_discordant : arrays of int
        Pairs that both answered, and those of them that say something.
    delta_b, se_b : arrays
        Difficulty for the second models less that for the first ones, beyond the pairs' difference
        of ability; infinite where all the discordant pairs point one way.
    lr, p_lr, q_lr : arrays
        Likelihood-ratio χ²(1) of no difference, its p value, and that after Benjamini–Hochberg.
    wald, p_wald : arrays
        The same by the estimate over its error; NaN where it is infinite.
    p_exact, q_exact : arrays
        Exact two-sided p value given the discordant pairs: McNemar's where abilities are equal.
    flags : tuple of tuples
        `dif` where q_exact is below `alpha`.
    not_testable : tuple of (item, reason)
    """

    item: tuple[Hashable, ...]
    n_pairs: Any
    n_discordant: Any
    delta_b: Floats
    se_b: Floats
    lr: Floats
    p_lr: Floats
    q_lr: Floats
    wald: Floats
    p_wald: Floats
    p_exact: Floats
    q_exact: Floats
    flags: tuple[tuple[str, ...], ...]
    not_testable: tuple[tuple[Hashable, str], ...]

    def __len__(self) -> int:
        return len(self.item)

    @property
    def flagged(self) -> tuple[Hashable, ...]:
        """Keys of the flagged items."""
        return tuple(item for item, f in zip(self.item, self.flags, strict=True) if f)

    def to_dicts(self) -> list[dict[str, Any]]:
        """One mapping an item."""
        return to_dicts(self, last="flags")
