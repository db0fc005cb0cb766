"""Rows of the page Trade-off: scores beside bits, memory, speed and cost, and who is on the front."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from leaderboard.charts.tradeoff import Against, TradeRow, pareto_front
from leaderboard.rows.board import BoardRow, board
from leaderboard.rows.subjects import Key, subjects
from leaderboard.rows.usage import Tasks, TaskVersion, Used, items_of, used

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class TradeoffRow(Struct, frozen=True, kw_only=True):
    """A subject with its score and its prices on the chosen tasks.

    Attributes
    ----------
    front : bool
        On the Pareto front of the chosen price, by point estimates.
    memory_gib, tokens_per_s : float or None
        The highest peak over the tasks, and answers over the time of their calls; None for a
        simulated quantisation.
    cost_usd : float or None
        Of asking every item of the chosen tasks once, at what an item cost on average.
    """

    front: bool
    label: str
    model: str
    variant: str
    variant_id: str
    strategy: str
    backend: str
    value: float
    lo: float | None
    hi: float | None
    method: str
    level: float
    n_items: int
    bits: float | None
    memory_gib: float | None
    tokens_per_s: float | None
    cost_usd: float | None
    simulated: bool
    baseline: bool
    flags: tuple[str, ...]


def tradeoff(con: DuckDBPyConnection, tasks: Tasks, against: Against) -> list[TradeoffRow]:
    """Set the scores of all models on some tasks against a price.

    Parameters
    ----------
    con : DuckDBPyConnection
    tasks : tuple of (task, version)
        With several, the score is the mean over them of the models that ran all.
    against : str
        A key of `leaderboard.charts.tradeoff.AXES`.

    Returns
    -------
    list of TradeoffRow
        The front first, then falling score; those without a score are left out.
    """
    return fronted(priced(con, tasks, board(con, tasks).rows), against)


def priced(con: DuckDBPyConnection, tasks: Tasks, scored: Sequence[BoardRow]) -> list[TradeoffRow]:
    """Put prices beside the scores of the page Leaderboard."""
    names = {s.key: s for s in subjects(con)}
    prices, items = used(con, tasks), items_of(con, tasks)
    rows = []
    for row in scored:
        key = (row.variant_id, row.strategy)
        who = names.get(key)
        if row.value is None or who is None:
            continue
        of_tasks = [prices.get((key, task)) for task in tasks]
        rows.append(TradeoffRow(
            front=False, label=who.label, model=row.model, variant=row.variant,
            variant_id=row.variant_id, strategy=row.strategy, backend=row.backend,
            value=row.value, lo=row.lo, hi=row.hi, method=row.method, level=row.level,
            n_items=row.n_items, bits=row.bits, memory_gib=_memory(of_tasks),
            tokens_per_s=_speed(of_tasks), cost_usd=_cost(key, tasks, prices, items),
            simulated=who.simulated, baseline=row.baseline, flags=row.flags,
        ))  # fmt: skip
    return rows


def fronted(rows: Sequence[TradeoffRow], against: Against) -> list[TradeoffRow]:
    """Mark the front of a price, and put it first."""
    front = {row.label for row in pareto_front([trade_row(row) for row in rows], against)}
    marked = [replace(row, front=row.label in front) for row in rows]
    return sorted(marked, key=lambda row: (not row.front, -row.value, row.label))


def trade_row(row: TradeoffRow) -> TradeRow:
    """Give the chart's form of a row."""
    return TradeRow(
        label=row.label, score=row.value, lo=row.lo, hi=row.hi, bits=row.bits,
        memory_gib=row.memory_gib, tokens_per_s=row.tokens_per_s, cost_usd=row.cost_usd,
        is_simulated=row.simulated, is_baseline=row.baseline,
    )  # fmt: skip


def _memory(of_tasks: Sequence[Used | None]) -> float | None:
    return max((one.memory_gib for one in of_tasks if one and one.memory_gib), default=None)


def _speed(of_tasks: Sequence[Used | None]) -> float | None:
    """Tokens over seconds, summed over the tasks that tell both."""
    known = [
        (one.tokens_per_s * one.seconds, one.seconds)
        for one in of_tasks
        if one and one.tokens_per_s is not None and one.seconds
    ]
    seconds = sum(time for _, time in known)
    return sum(tokens for tokens, _ in known) / seconds if seconds else None


def _cost(
    key: Key, tasks: Tasks, prices: dict[tuple[Key, TaskVersion], Used], n: dict[TaskVersion, int]
) -> float | None:
    total = 0.0
    for task in tasks:
        one = prices.get((key, task))
        if one is None or one.item_usd is None:
            return None
        total += one.item_usd * n[task]
    return total
