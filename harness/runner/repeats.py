"""What repeats (epochs) add to a run's summary: pass@k, and how much more repeats could still help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from harness.store.queries import item_repeats

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from harness.stats.intervals import Estimate


class Repeats(Struct, frozen=True, kw_only=True):
    """Where the uncertainty of a run's headline comes from.

    Attributes
    ----------
    se, se_items, se_repeats : float or None
        Standard error of the mean, and its two parts (`harness.stats.repeats.variance_parts`).
    n_min, n_max : int
        Fewest and most repeats of an item that count.
    """

    se: float | None
    se_items: float | None
    se_repeats: float | None
    n_min: int
    n_max: int


def repeats_of(
    con: DuckDBPyConnection, run_id: str, metric: str
) -> tuple[Repeats | None, dict[str, Estimate]]:
    """Look at the repeats of a run's items.

    Parameters
    ----------
    con : DuckDBPyConnection
    run_id, metric : str

    Returns
    -------
    repeats : Repeats or None
        None where no item has more than one value.
    pass_at_k : dict of str to Estimate
        ``pass@2`` to ``pass@K`` for scores of 0 and 1, K the fewest repeats of an item; pass@1 is
        the headline itself.
    """
    items = item_repeats(con, run_id, metric)
    if not items or max(len(values) for _, _, values in items) < 2:
        return None, {}
    from harness.stats.repeats import pass_at_k_estimate, variance_parts

    values = [values for _, _, values in items]
    clusters = [cluster for _, cluster, _ in items]
    parts = variance_parts(values, clusters)
    repeats = Repeats(
        se=parts.se,
        se_items=parts.se_items,
        se_repeats=parts.se_repeats,
        n_min=parts.n_epochs_min,
        n_max=parts.n_epochs_max,
    )
    if not all(value in (0, 1) for row in values for value in row):
        return repeats, {}
    right, tried = [round(sum(row)) for row in values], [len(row) for row in values]
    return repeats, {
        f"pass@{k}": pass_at_k_estimate(right, tried, k, clusters)
        for k in range(2, parts.n_epochs_min + 1)
    }
