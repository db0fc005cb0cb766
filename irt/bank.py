"""A calibrated bank of items: what a new model needs to be placed on the scale, and nothing more."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from irt.data import DataError, Floats, Mask
from irt.score import se_difficulty

if TYPE_CHECKING:
    from irt.fitting import Fit

FORMAT, VERSION = "irt-bank", 1
PARAMETERISATION = "logit p = a (theta - b) = a theta + d"
_NUMBERS = ("a", "d", "se_log_a", "se_d", "cov", "cost")  # of an item, as they are stored


@dataclass(frozen=True, eq=False)
class Bank:
    """Items with their parameters and the errors of these, on a named scale.

    Parameters
    ----------
    item : tuple
        Keys; the task's version belongs in them, as in (task, version, item). Shape (I,).
    a, d : arrays, shape (I,)
        Discriminations and intercepts: logit p = a θ + d.
    se_log_a, se_d, cov : arrays, shape (I,)
        Standard errors of log a and d, and the covariance of both.
    cost : array, shape (I,)
        What an attempt is expected to cost, in any one unit (seconds, dollars); 1 where not given.
    group : tuple of str or None, shape (I,)
        Content group, for balance.
    mean, sd : float
        The population's θ: the prior of a new model.
    gauge, method, data_hash : str
        What fixes the scale, how it was fitted, and to which data.
    content : tuple of str or None, shape (I,) or empty
        Hash of each item's content, so that a changed item is not taken for the old one.
    widen : float
        Factor on the error of a score (see `irt.adaptive.CatRules`), as `irt.replay.widening`
        measures it; 1 where it was not measured.
    """

    item: tuple[Hashable, ...]
    a: Floats
    d: Floats
    se_log_a: Floats
    se_d: Floats
    cov: Floats
    cost: Floats
    group: tuple[str | None, ...]
    mean: float
    sd: float
    gauge: str
    method: str
    data_hash: str
    content: tuple[str | None, ...] = ()
    widen: float = 1.0

    def __post_init__(self) -> None:
        if not self.item:
            raise DataError("a bank without items")
        if len(self.place) < len(self.item):
            twice = next(key for row, key in enumerate(self.item) if self.place[key] != row)
            raise DataError(f"the bank has the item {twice!r} twice")
        sizes = {len(getattr(self, name)) for name in (*_NUMBERS, "group")}
        sizes |= {len(self.content)} if self.content else set()
        if sizes != {len(self.item)}:
            raise DataError(f"{len(self.item)} items, but columns of {sorted(sizes)} rows")
        sound = np.isfinite([getattr(self, name) for name in _NUMBERS]).all(axis=0)
        sound &= (self.a > 0) & (self.cost > 0) & (self.se_log_a >= 0) & (self.se_d >= 0)
        # a hair above 1: a correlation of one, rounded
        sound &= np.abs(self.cov) <= 1.000001 * self.se_log_a * self.se_d
        if not sound.all():
            key = self.item[int(np.argmin(sound))]
            raise DataError(
                f"the bank's item {key!r} needs finite parameters, a and cost above 0, and errors "
                "that are a covariance"
            )
        if not 0 < self.widen < np.inf:
            raise DataError(f"the bank widens errors by {self.widen:g}: above 0")
        if not (np.isfinite(self.mean) and 0 < self.sd < np.inf):
            raise DataError(f"the bank's population has mean {self.mean:g} and SD {self.sd:g}")

    def __len__(self) -> int:
        return len(self.item)

    @cached_property
    def place(self) -> dict[Hashable, int]:
        """Row of each item."""
        return {key: row for row, key in enumerate(self.item)}

    @property
    def b(self) -> Floats:
        """Difficulties −d/a."""
        return -self.d / self.a

    @property
    def se_b(self) -> Floats:
        """Standard errors of the difficulties."""
        return se_difficulty(self.a, self.d, self.se_log_a**2, self.se_d**2, self.cov)

    @classmethod
    def of(
        cls,
        fit: Fit,
        *,
        cost: Mapping[Any, float] | None = None,
        group: Mapping[Any, str] | None = None,
        content: Mapping[Any, str] | None = None,
    ) -> Bank:
        """Take the items of a fit.

        Parameters
        ----------
        fit : Fit
        cost : mapping of item to number, optional
            Expected cost of an attempt, of all items or of none: without a price an item would
            look free or dear by accident.
        group : mapping of item to str, optional
            Content groups; an item may have none.
        content : mapping of item to str, optional
            Hashes of the items' content.

        Returns
        -------
        Bank

        Raises
        ------
        DataError
            For a fit that has not converged, an item without a cost where costs are given, or one
            without finite errors.
        """
        if not fit.verdict.converged:
            raise DataError("the fit has not converged: its items are no bank to measure with")
        if fit.kind != "2pl":
            raise DataError(f"a bank holds two-parameter items; this fit is of model {fit.kind!r}")
        items, e = fit.items, fit.estimate
        unpriced = [key for key in items.item if cost is not None and key not in cost]
        if unpriced:
            raise DataError(f"{len(unpriced)} items have no cost, {unpriced[0]!r} among them")
        priced = np.ones(len(items)) if cost is None else np.array([cost[k] for k in items.item])
        groups = tuple((group or {}).get(key) for key in items.item)
        contents = () if content is None else tuple(content.get(key) for key in items.item)
        mean, sd = fit.population
        return cls(
            items.item, items.a, items.d, items.se_log_a, items.se_d, np.asarray(e.cov),
            priced.astype(np.float64), groups, float(mean), float(sd),
            fit.gauge, fit.method, fit.data_hash, contents,
        )  # fmt: skip

    def subset(self, keep: Mask) -> Bank:
        """Keep some items.

        Parameters
        ----------
        keep : array of bool, shape (I,)

        Returns
        -------
        Bank
        """
        rows = np.flatnonzero(keep)
        columns = {name: getattr(self, name)[rows] for name in _NUMBERS}
        return Bank(
            tuple(self.item[row] for row in rows),
            group=tuple(self.group[row] for row in rows),
            mean=self.mean, sd=self.sd,
            gauge=self.gauge, method=self.method, data_hash=self.data_hash, **columns,
            content=tuple(self.content[row] for row in rows) if self.content else (),
            widen=self.widen,
        )  # fmt: skip

    def check(self, items: Iterable[Hashable]) -> None:
        """Refuse items that the bank does not have.

        Parameters
        ----------
        items : iterable of keys

        Raises
        ------
        DataError
            One line; where only the version in the key differs, it names both keys.
        """
        unknown = [key for key in items if key not in self.place]
        if not unknown:
            return
        versions = {_unversioned(key): key for key in self.item if _unversioned(key)}
        for key in unknown:
            twin = versions.get(_unversioned(key))
            if twin is not None:
                raise DataError(
                    f"the bank is of another version of the task: it has {twin!r}, not {key!r} "
                    f"({len(unknown)} such items)"
                )
        shown = ", ".join(map(repr, unknown[:5])) + (", ..." if len(unknown) > 5 else "")
        raise DataError(f"{len(unknown)} items are not in the bank: {shown}")

    def to_dict(self) -> dict[str, Any]:
        """Give a mapping that JSON can hold.

        Returns
        -------
        dict
            Format and its version, parameterisation, gauge, population, data hash, one mapping an
            item.
        """
        columns = {name: getattr(self, name).tolist() for name in _NUMBERS}
        rows = [
            {
                "item": list(key) if isinstance(key, tuple) else key,
                **{name: columns[name][row] for name in _NUMBERS},
                "group": self.group[row],
                **({"content": self.content[row]} if self.content else {}),
            }
            for row, key in enumerate(self.item)
        ]
        return {
            "format": FORMAT, "version": VERSION, "parameterisation": PARAMETERISATION,
            "gauge": self.gauge, "method": self.method, "data_hash": self.data_hash,
            "converged": True, "widen": self.widen, "population": {"mean": self.mean, "sd": self.sd}, "items": rows,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Bank:
        """Read what `to_dict` gave.

        Parameters
        ----------
        stored : mapping

        Returns
        -------
        Bank

        Raises
        ------
        DataError
            For another format, a newer version, another parameterisation, a fit that has not
            converged, a field that is not there, or parameters that are none.
        """
        if not isinstance(stored, Mapping) or stored.get("format") != FORMAT:
            raise DataError(f"this is no bank of items: it has no format {FORMAT!r}")
        version = stored.get("version")
        if not isinstance(version, int) or not 1 <= version <= VERSION:
            raise DataError(
                f"a bank of format version {version}; this program reads up to {VERSION}: "
                "update it, or store the bank again"
            )
        if stored.get("parameterisation") != PARAMETERISATION:
            raise DataError(
                f"the bank's parameterisation is {stored.get('parameterisation')!r}, "
                f"not {PARAMETERISATION!r}"
            )
        if stored.get("converged", True) is not True:
            raise DataError("the bank is of a fit that has not converged")
        try:
            rows, population = stored["items"], stored["population"]
            contents = tuple(row.get("content") for row in rows)
            columns = {
                name: np.array([row[name] for row in rows], dtype=np.float64) for name in _NUMBERS
            }
            return cls(
                tuple(_key(row["item"]) for row in rows),
                group=tuple(row["group"] for row in rows),
                mean=float(population["mean"]), sd=float(population["sd"]),
                gauge=stored["gauge"], method=stored["method"], data_hash=stored["data_hash"],
                content=contents if any(contents) else (),
                widen=float(stored.get("widen", 1.0)), **columns,
            )  # fmt: skip
        except KeyError as error:
            raise DataError(f"the bank has no field {error.args[0]!r}") from None
        except (AttributeError, TypeError, ValueError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"the bank cannot be read: {error}") from None


def _key(stored: Any) -> Hashable:
    """Turn a list, which is what JSON makes of a tuple, back into one."""
    return tuple(map(_key, stored)) if isinstance(stored, list) else stored


def _unversioned(key: Hashable) -> Hashable:
    """(task, version, item) without the version; nothing for a key of another form."""
    return (key[0], *key[2:]) if isinstance(key, tuple) and len(key) >= 3 else None
