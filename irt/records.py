"""What a fit reports: a table of models, a table of items, a verdict."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from irt.data import Floats
from irt.prepare import Excluded
from irt.score import to_dicts


@dataclass(frozen=True)
class Models:
    """Abilities, a column a field, all of shape (P,).

    Parameters
    ----------
    model : tuple
        Names.
    theta, se : arrays
        Ability and its standard error in the fixed gauge.
    n_items : array of int
        Items answered.
    """

    model: tuple[Hashable, ...]
    theta: Floats
    se: Floats
    n_items: Any

    def __len__(self) -> int:
        return len(self.model)

    def to_dicts(self) -> list[dict[str, Any]]:
        """One mapping a model."""
        return to_dicts(self)


@dataclass(frozen=True)
class Items:
    """Item parameters, a column a field, all of shape (I,): logit p = a (θ − b) = a θ + d.

    Parameters
    ----------
    item : tuple
        Keys.
    a, b, d : arrays
        Discrimination, difficulty b = −d/a, intercept.
    se_log_a, se_b, se_d : arrays
        Standard errors in the fixed gauge.
    n_models : array of int
        Models that answered.
    slope_z : array
        Score statistic of the unconstrained slope with θ fixed; negative where better models do
        worse, NaN for items all got right or wrong.
    flags : tuple of tuples
        `prior_only` (all right or all wrong: the prior speaks), `suspect_key` (negative slope),
        `fisher` (its observed information is not positive definite), `anchor`.
    """

    item: tuple[Hashable, ...]
    a: Floats
    b: Floats
    d: Floats
    se_log_a: Floats
    se_b: Floats
    se_d: Floats
    n_models: Any
    slope_z: Floats
    flags: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        return len(self.item)

    def to_dicts(self) -> list[dict[str, Any]]:
        """One mapping an item."""
        return to_dicts(self)


@dataclass(frozen=True)
class Verdict:
    """What is to be known before the numbers are believed; `str` of it is for people.

    Parameters
    ----------
    converged : bool
    iterations : int
    decrement, max_grad : float
        Newton decrement before the last step (method `mml`: its last change) and largest gradient.
    cholesky_ok : bool
        Whether the observed information has a Cholesky factor.
    fisher_items, prior_only, suspect_key : tuple
        Keys of the items with these flags.
    excluded : Excluded
        Models and items left out, with reasons.
    notes : tuple of str
    """

    converged: bool
    iterations: int
    decrement: float
    max_grad: float
    cholesky_ok: bool
    fisher_items: tuple[Hashable, ...]
    prior_only: tuple[Hashable, ...]
    suspect_key: tuple[Hashable, ...]
    excluded: Excluded
    notes: tuple[str, ...]

    def __str__(self) -> str:
        outcome = "converged" if self.converged else "NOT CONVERGED"
        how = f"decrement {self.decrement:.1e}, largest gradient {self.max_grad:.1e}"
        lines = [f"{outcome} after {self.iterations} iterations ({how})"]
        if not self.cholesky_ok:
            lines.append("the observed information is not positive definite")
        for what, keys in (
            ("items on the Fisher fallback", self.fisher_items),
            ("items all right or all wrong, placed by the prior", self.prior_only),
            ("items whose key is suspect (better models do worse)", self.suspect_key),
            ("models left out", tuple(f"{m} ({why})" for m, why in self.excluded.models)),
            ("items left out", tuple(f"{i} ({why})" for i, why in self.excluded.items)),
        ):
            if keys:
                some = ", ".join(map(str, keys[:5])) + (", ..." if len(keys) > 5 else "")
                lines.append(f"{len(keys)} {what}: {some}")
        return "\n".join([*lines, *self.notes])
