"""Human minutes: reading them, and how well predicted minutes agree with known ones."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irt._table import _columns, _plain
from irt.data import DataError

BUCKETS = (15.0, 60.0, 240.0)  # upper ends, in minutes; the last bucket is open


def read_minutes(minutes: Any) -> dict[Hashable, float]:
    """Read human minutes of items.

    Parameters
    ----------
    minutes : mapping of item to minutes, or table
        A table, in any form that `Responses.from_table` takes, has the columns `item` and
        `human_minutes` (or `minutes`).

    Returns
    -------
    dict
        Item to minutes; NaN where a table has none.

    Raises
    ------
    DataError
        For a missing column, an item given twice, or minutes that are no number.

    Examples
    --------
    >>> read_minutes({"item": ["x", "y"], "human_minutes": [3, 4.5]})
    {'x': 3.0, 'y': 4.5}
    """
    if isinstance(minutes, Mapping) and not _is_table(minutes):
        return {key: _number(key, value) for key, value in minutes.items()}
    columns = _columns(minutes)
    name = "human_minutes" if "human_minutes" in columns else "minutes"
    if "item" not in columns or name not in columns:
        raise DataError(
            "a table of minutes has the columns item and human_minutes; "
            f"it has {', '.join(columns) or 'none'}"
        )
    keys, values = list(columns["item"]), list(columns[name])
    if len(keys) != len(values):
        raise DataError(f"the columns are not of one length: {len(keys)} and {len(values)}")
    found: dict[Hashable, float] = {}
    for key, value in zip(map(_plain, keys), values, strict=True):
        if key in found:
            raise DataError(f"the minutes of item {key!r} are given twice")
        found[key] = _number(key, value)
    return found


def _is_table(minutes: Mapping[Any, Any]) -> bool:
    """Columns are sequences; minutes of an item are a number."""
    return "item" in minutes and not isinstance(minutes["item"], int | float | str)


def _number(key: Any, value: Any) -> float:
    if value is None or value == "":
        return float("nan")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise DataError(f"the minutes of item {key!r} are {value!r}, which is no number") from None


def buckets(minutes: Any) -> NDArray[np.intp]:
    """Sort minutes into BRIDGE's four buckets: [0, 15], (15, 60], (60, 240], above 240.

    Parameters
    ----------
    minutes : array

    Returns
    -------
    array of int
        0 to 3.

    Examples
    --------
    >>> buckets([15.0, 15.1, 240.0, 480.0]).tolist()
    [0, 1, 2, 3]
    """
    return np.searchsorted(BUCKETS, np.asarray(minutes, dtype=np.float64), side="left")


def _confusion(known: Any, predicted: Any) -> NDArray[np.float64]:
    """Count the pairs of buckets, the known in rows, as shares."""
    one, two = buckets(known), buckets(predicted)
    if len(one) != len(two) or not len(one):
        raise DataError(f"{len(one)} known and {len(two)} predicted minutes")
    table = np.zeros((len(BUCKETS) + 1,) * 2)
    np.add.at(table, (one, two), 1.0)
    return table / len(one)


def bucket_accuracy(known: Any, predicted: Any) -> float:
    """Give the share of items predicted in their own bucket.

    Parameters
    ----------
    known, predicted : arrays, shape (I,)
        Minutes.

    Returns
    -------
    float
    """
    return float(np.trace(_confusion(known, predicted)))


def bucket_macro_f1(known: Any, predicted: Any) -> float:
    """Give the mean over buckets of F1 = 2 hits/(known + predicted).

    Parameters
    ----------
    known, predicted : arrays, shape (I,)
        Minutes.

    Returns
    -------
    float
        Over the buckets that occur among the known or the predicted.
    """
    table = _confusion(known, predicted)
    both = table.sum(axis=0) + table.sum(axis=1)
    return float(np.mean(2 * np.diag(table)[both > 0] / both[both > 0]))


def bucket_kappa(known: Any, predicted: Any) -> float:
    """Give Cohen's kappa with linear weights: 1 − Σ|i − j| p_ij / Σ|i − j| p_i. p_.j.

    Parameters
    ----------
    known, predicted : arrays, shape (I,)
        Minutes.

    Returns
    -------
    float
        NaN when everything lies in one bucket.
    """
    table = _confusion(known, predicted)
    index = np.arange(len(table))
    apart = np.abs(index[:, None] - index)
    chance = float(np.sum(apart * np.outer(table.sum(axis=1), table.sum(axis=0))))
    return 1 - float(np.sum(apart * table)) / chance if chance > 0 else float("nan")


def within_factor(known: Any, predicted: Any, factor: float = 2.0) -> int:
    """Count the items predicted within a factor of their minutes, the ends included.

    Parameters
    ----------
    known, predicted : arrays, shape (I,)
        Minutes.
    factor : float

    Returns
    -------
    int
    """
    ratio = np.asarray(predicted, dtype=np.float64) / np.asarray(known, dtype=np.float64)
    return int(np.sum((ratio >= 1 / factor) & (ratio <= factor)))
