"""Fits of item response theory in the store: written by the lock's holder, read from snapshots.

What is fitted comes from `item_scores`; what comes out lies in `irt_fits`, `irt_items` and
`irt_models`. Nothing here computes: numbers go in and out as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, field

from harness.core.errors import StoreError, UsageError, unknown
from harness.store.banks import TABLES as BANK_TABLES
from harness.store.banks import StoredBank
from harness.store.layout import Store
from harness.store.lock import locked
from harness.store.publish import publish
from harness.store.rows import dicts
from harness.store.schema import connect

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TABLES = ("irt_fits", "irt_items", "irt_models")
_JSON = ("hyper", "link", "anchors", "selection", "versions", "verdict")


class FitRow(Struct, kw_only=True):
    """A fit without its models and items.

    Attributes
    ----------
    fit_id : str
        Method and a hash of method, data and kind of scores: the same fit has the same name.
    method, scores : str
        The method used; ``counts`` or ``fractional``.
    seed : int or None
        Of a method that draws.
    parameterisation, gauge : str
    hyper : dict
        Priors, in the engine's gauge.
    link, anchors : dict or None
        The link to human minutes and the items held fixed, where there are any.
    source : str
        ``store``, or the name of the file that was fitted.
    selection : dict
        What of the source was fitted.
    data_hash : str
        sha256 of the fitted cells.
    code_commit : str or None
    versions : dict
        Of the packages that did it.
    converged : bool
    verdict : dict
        `irt.Verdict` with keys as JSON, its text under `text`.
    log_loss : float or None
        Mean -log p of an attempt's outcome, in sample.
    n_models, n_items, n_cells : int
    seconds : float
        Reading the answers and fitting them.
    created : datetime
        UTC.
    """

    fit_id: str
    method: str
    scores: str
    seed: int | None = None
    parameterisation: str
    gauge: str
    hyper: dict[str, Any]
    link: dict[str, Any] | None = None
    anchors: dict[str, Any] | None = None
    source: str
    selection: dict[str, Any]
    data_hash: str
    code_commit: str | None
    versions: dict[str, str]
    converged: bool
    verdict: dict[str, Any]
    log_loss: float | None
    n_models: int
    n_items: int
    n_cells: int
    seconds: float
    created: datetime


class FitItem(Struct, kw_only=True):
    """An item of a fit: logit p = a (theta - b) = a theta + d.

    Attributes
    ----------
    task_id, version : str or None
        None for an item of a file.
    a, b, d, se_log_a, se_b, se_d : float or None
    n_models : int
        Models that answered.
    slope_z : float or None
        Negative where better models do worse; None where all are right or all wrong.
    human_minutes_hat, lo, hi : float or None
        Where there is a link to human minutes.
    flags : list of str
    """

    fit_id: str
    task_id: str | None
    version: str | None
    item_id: str
    a: float | None
    b: float | None
    d: float | None
    se_log_a: float | None
    se_b: float | None
    se_d: float | None
    n_models: int
    slope_z: float | None
    human_minutes_hat: float | None = None
    lo: float | None = None
    hi: float | None = None
    flags: list[str] = field(default_factory=list)


class FitModel(Struct, kw_only=True):
    """A model of a fit.

    Attributes
    ----------
    variant_id : str
        The model's identity; for a file its name there.
    strategy : str or None
    model : str
        As people know it.
    theta, se : float or None
        Ability and its standard error in the fit's gauge.
    n_items : int
        Items answered.
    horizon50_min, lo, hi, horizon80_min, lo80, hi80 : float or None
        Where there is a link to human minutes.
    flags : list of str
        ``baseline`` for a mock.
    """

    fit_id: str
    variant_id: str
    strategy: str | None
    model: str
    theta: float | None
    se: float | None
    n_items: int
    horizon50_min: float | None = None
    lo: float | None = None
    hi: float | None = None
    horizon80_min: float | None = None
    lo80: float | None = None
    hi80: float | None = None
    flags: list[str] = field(default_factory=list)


class StoredFit(Struct):
    """A fit whole; `bank` only while it is written (see `harness.store.banks` for reading)."""

    fit: FitRow
    models: list[FitModel]
    items: list[FitItem]
    bank: StoredBank | None = None


class Variant(Struct, frozen=True):
    """A model that has scores: its identity, the SPEC it was last run as, and if it is a mock."""

    variant_id: str
    model: str
    is_baseline: bool


def scored_variants(con: DuckDBPyConnection) -> list[Variant]:
    """List the models that have item scores, by identity."""
    rows = con.execute(
        """
        SELECT variant_id, max_by(model, run_id), bool_or(is_baseline) FROM runs
        SEMI JOIN item_scores USING (variant_id) GROUP BY variant_id ORDER BY variant_id
        """
    ).fetchall()
    return [Variant(*row) for row in rows]


def scored_tasks(con: DuckDBPyConnection) -> list[str]:
    """List the tasks that have item scores."""
    rows = con.execute("SELECT DISTINCT task_id FROM item_scores ORDER BY task_id").fetchall()
    return [task for (task,) in rows]


def cells(
    con: DuckDBPyConnection, tasks: Sequence[str], variant_ids: Sequence[str]
) -> list[tuple[str, str, str, str, str, float, int]]:
    """Give the scores of some models on some tasks, a row an item.

    Returns
    -------
    list of (variant_id, strategy, task_id, version, item_id, k, n)
        `k` is the sum of the scores of the `n` answers that count.
    """
    return con.execute(
        """
        SELECT variant_id, strategy, task_id, version, item_id, k, n FROM item_scores
        WHERE list_contains($tasks, task_id) AND list_contains($variants, variant_id) ORDER BY ALL
        """,
        {"tasks": list(tasks), "variants": list(variant_ids)},
    ).fetchall()


def keep_fit(store: Store, found: StoredFit) -> None:
    """Write a fit in one transaction, in place of the same fit made earlier, and publish it.

    Its bank, where it has one, takes the place of the bank of that name.

    Raises
    ------
    StoreError
        When the store cannot be written; then nothing of the fit is in it.
    """
    import duckdb

    row = msgspec.structs.asdict(found.fit)
    for name in _JSON:
        value = row.pop(name)
        row[f"{name}_json"] = None if value is None else msgspec.json.encode(value).decode()
    items, models = (
        [msgspec.structs.asdict(r) for r in rows] for rows in (found.items, found.models)
    )
    with locked(store, wait=True):
        try:
            with connect(store.database) as con:
                con.execute("BEGIN")
                for table, rows in zip(_TABLES, ([row], items, models), strict=True):
                    con.execute(f"DELETE FROM {table} WHERE fit_id = ?", [found.fit.fit_id])
                    _insert(con, table, rows)
                if (bank := found.bank) is not None:
                    for table, rows in zip(BANK_TABLES, bank.rows(), strict=True):
                        con.execute(f"DELETE FROM {table} WHERE name = ?", [bank.bank.name])
                        _insert(con, table, rows)
                con.execute("COMMIT")
            publish(store)
        except (OSError, duckdb.Error) as error:
            raise StoreError(
                f"cannot write the fit to store {store.root}: {str(error).splitlines()[0]}"
            ) from error


def _insert(con: DuckDBPyConnection, table: str, rows: list[dict[str, Any]]) -> None:
    import pyarrow as pa

    con.register("new_rows", pa.Table.from_pylist(rows))
    con.execute(f"INSERT INTO {table} BY NAME SELECT * FROM new_rows")
    con.unregister("new_rows")


def fits(con: DuckDBPyConnection) -> list[FitRow]:
    """List all fits, the one made last at the end."""
    rows = dicts(con.execute("SELECT * FROM irt_fits ORDER BY created, fit_id"))
    for row in rows:
        for name in _JSON:
            text = row.pop(f"{name}_json")
            row[name] = None if text is None else msgspec.json.decode(text)
    return [FitRow(**row) for row in rows]


def fit_items(con: DuckDBPyConnection, fit_id: str) -> list[FitItem]:
    """List the items of a fit by task, version and name; none for an unknown fit."""
    rows = con.execute(
        "SELECT * FROM irt_items WHERE fit_id = ? ORDER BY task_id, version, item_id", [fit_id]
    )
    return [FitItem(**row) for row in dicts(rows)]


def fit_models(con: DuckDBPyConnection, fit_id: str) -> list[FitModel]:
    """List the models of a fit, the ablest first; none for an unknown fit."""
    rows = con.execute(
        "SELECT * FROM irt_models WHERE fit_id = ? "
        "ORDER BY theta DESC NULLS LAST, variant_id, strategy",
        [fit_id],
    )
    return [FitModel(**row) for row in dicts(rows)]


def find_fit(con: DuckDBPyConnection, name: str) -> StoredFit:
    """Find a fit by its id, the beginning of one, or its hash; ``last`` is the newest.

    Raises
    ------
    UsageError
        No such fit, or several.
    """
    known = {row.fit_id: row for row in fits(con)}
    matches = [i for i in known if i.startswith(name) or i.endswith(f"-{name}")]
    if name == "last" and known:
        matches = [list(known)[-1]]
    elif name in known:
        matches = [name]
    if not matches:
        raise unknown("fit", name, known, "`harness fit` makes one")
    if len(matches) > 1:
        raise UsageError(f"fit {name!r} is ambiguous: {', '.join(matches[:5])}")
    fit_id = matches[0]
    return StoredFit(known[fit_id], fit_models(con, fit_id), fit_items(con, fit_id))
