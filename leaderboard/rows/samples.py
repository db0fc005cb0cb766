"""Rows of the page Samples: attempts that are looked for, a page at a time.

A list goes through runs, newest first, one query a run: so it costs what one run costs, however many
attempts the store holds. Without a filter the runs before a page are passed over by their counts.
`leaderboard.rows.attempt` gives one attempt whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from msgspec import Struct

from harness.store.layout import Store
from harness.store.rows import dicts
from leaderboard.rows.board import task_versions
from leaderboard.rows.subjects import subjects

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PAGE = 50
"""Rows of a page."""

LOOK_ATTEMPTS = 20_000
LOOK_RUNS = 20
"""A filtered list looks through so much before it asks whether to go on."""

FIELDS = ("prompt", "output", "reasoning", "explanation")
"""Texts that a search reads."""

Verdict = Literal["", "right", "not right", "not counted"]


class RunInfo(Struct, frozen=True, kw_only=True):
    """A run that has attempts.

    Attributes
    ----------
    task : str
        Its label, as on the page Leaderboard.
    model : str
        Model with precision, quantisation and strategy, as on the page Model.
    n : int
        Attempts made: the latest of every item and repeat.
    """

    run_id: str
    task: str
    task_id: str
    version: str
    model: str
    n: int


class Wanted(Struct, frozen=True, kw_only=True):
    """What an attempt must be to be listed; all of it, and nothing by default.

    Attributes
    ----------
    statuses : tuple of str
        Any of these.
    verdict : str
        ``right`` (counts 1 or more), ``not right`` (counts less), ``not counted`` (left out).
    score_from, score_to : float or None
        Of what counts in the mean.
    tokens_from, tokens_to : int or None
        Of the answer.
    seconds_from, seconds_to : float or None
        Of the call.
    category, cluster : str
        Exactly this one.
    item : str
        Part of the item's name.
    text : str
        Part of one of `fields`, whatever the case.
    fields : tuple of str
        Of `FIELDS`; empty for all.
    """

    statuses: tuple[str, ...] = ()
    verdict: Verdict = ""
    score_from: float | None = None
    score_to: float | None = None
    tokens_from: int | None = None
    tokens_to: int | None = None
    seconds_from: float | None = None
    seconds_to: float | None = None
    category: str = ""
    cluster: str = ""
    item: str = ""
    text: str = ""
    fields: tuple[str, ...] = ()


class SampleRow(Struct, frozen=True, kw_only=True):
    """One attempt in a list; columns as in `leaderboard.columns.COLUMNS`.

    Attributes
    ----------
    key : str
        Its name in the address: run, repeat and item.
    score : float or None
        What counts in the mean; None where the attempt is left out.
    """

    key: str
    run_id: str
    task: str
    version: str
    model: str
    item_id: str
    epoch: int
    attempt: int
    ended: str
    score: float | None
    answer: str | None
    reason: str | None
    category: str | None
    cluster_id: str | None
    tokens_in: int | None
    tokens_out: int | None
    latency_s: float | None
    cost_usd: float | None
    finish_reason: str | None
    reused_from: str | None
    ts: datetime


class Listed(Struct, frozen=True):
    """A page of a list.

    Attributes
    ----------
    rows : list of SampleRow
    found : int
        In the runs that were looked through; at least.
    looked, n_runs : int
        Runs looked through, and all: with fewer the list may go on.
    """

    rows: list[SampleRow]
    found: int
    looked: int
    n_runs: int


Ask = Callable[..., Any]
"""`leaderboard.data.Board.ask`, or a function that asks every time: see `asker`."""


def asker(con: DuckDBPyConnection) -> Ask:
    """Give a function that asks one connection, for use without the site."""
    return lambda query, *args: query(con, *args)


def runs_with_samples(con: DuckDBPyConnection) -> list[RunInfo]:
    """List runs that have attempts, newest first."""
    tasks = {(t.task, t.version): t.label for t in task_versions(con)}
    models = {s.key: s.label for s in subjects(con)}
    rows = con.execute(
        """
        SELECT run_id, task_id, version, variant_id, strategy, model, n_attempts
        FROM runs JOIN run_totals USING (run_id) WHERE n_attempts > 0 ORDER BY run_id DESC
        """
    ).fetchall()
    return [
        RunInfo(
            run_id=run_id, task=tasks[task_id, version], task_id=task_id, version=version, n=n,
            model=models.get((variant, strategy), f"{model} without the data"),
        )
        for run_id, task_id, version, variant, strategy, model, n in rows
    ]  # fmt: skip


def categories(con: DuckDBPyConnection, task_id: str, version: str) -> list[str]:
    """List the categories of a task's items."""
    rows = con.execute(
        "SELECT DISTINCT category FROM items WHERE task_id = ? AND version = ? "
        "AND category IS NOT NULL ORDER BY category",
        [task_id, version],
    ).fetchall()
    return [category for (category,) in rows]


def listed(
    ask: Ask, store: Store, runs: Sequence[RunInfo], wanted: Wanted, offset: int, n: int = PAGE,
    looks: int = 1,
) -> Listed:  # fmt: skip
    """Give rows of a list from a position on.

    Parameters
    ----------
    ask : callable
        `Board.ask` keeps answers; `asker` does not.
    store : Store
        Where the texts are.
    runs : sequence of RunInfo
        Gone through in this order.
    wanted : Wanted
    offset, n : int
        First row, and how many at most.
    looks : int
        How often to look through `LOOK_ATTEMPTS` attempts or `LOOK_RUNS` runs.
    """
    rows: list[SampleRow] = []
    found = looked = read = 0
    unfiltered = wanted == Wanted()
    for run in runs:
        if not unfiltered:
            enough = read + run.n > looks * LOOK_ATTEMPTS or looked >= looks * LOOK_RUNS
            # One row beyond a full page says that there is another.
            if looked and (enough or found > offset + n):
                break
        here = run.n if unfiltered else ask(count, store, run, wanted)
        skipped = max(0, offset - found)
        if skipped < here and len(rows) < n:
            rows += ask(rows_of, store, run, wanted, skipped, n - len(rows))
        found += here
        read += run.n
        looked += 1
    return Listed(rows, found, looked, len(runs))


def every(
    ask: Ask, store: Store, runs: Sequence[RunInfo], wanted: Wanted, most: int
) -> Iterator[SampleRow]:
    """Give all rows of a list, run by run, at most so many."""
    for run in runs:
        rows = ask(rows_of, store, run, wanted, 0, most)
        yield from rows
        most -= len(rows)
        if most <= 0:
            return


def count(con: DuckDBPyConnection, store: Store, run: RunInfo, wanted: Wanted) -> int:
    """Count the attempts of a run that are wanted."""
    source, values = _source(store, run, wanted)
    row = con.execute(f"SELECT count(*) {source}", values).fetchone()
    return int(row[0]) if row else 0


def rows_of(
    con: DuckDBPyConnection, store: Store, run: RunInfo, wanted: Wanted, offset: int, n: int
) -> list[SampleRow]:
    """Give attempts of a run that are wanted, by item and repeat."""
    source, values = _source(store, run, wanted)
    found = dicts(con.execute(
        f"""
        SELECT a.run_id, a.version, a.item_id, a.epoch, a.attempt, a.status AS ended,
            a.counted AS score, a.answer, a.reason, a.category, a.cluster_id, a.tokens_in,
            a.tokens_out, (a.latency_ms / 1000)::DOUBLE AS latency_s, a.cost_usd, a.finish_reason,
            a.reused_from, a.ts
        {source} ORDER BY a.item_id, a.epoch LIMIT {int(n)} OFFSET {int(offset)}
        """,
        values,
    ))  # fmt: skip
    return [
        SampleRow(
            key=key_of(run.run_id, row["epoch"], row["item_id"]), task=run.task, model=run.model,
            **row,
        )
        for row in found
    ]  # fmt: skip


def _source(store: Store, run: RunInfo, wanted: Wanted) -> tuple[str, dict[str, Any]]:
    """Write what the rows of a run come from, and the values in it."""
    values: dict[str, Any] = {"run": run.run_id}
    conditions = ["a.run_id = $run"]

    def need(condition: str, **given: Any) -> None:
        if all(value not in (None, "", ()) for value in given.values()):
            conditions.append(condition)
            values.update(given)

    if wanted.statuses:
        need("list_contains($statuses, a.status)", statuses=list(wanted.statuses))
    if wanted.verdict:
        conditions.append({
            "right": "a.counted >= 1", "not right": "a.counted < 1",
            "not counted": "a.counted IS NULL",
        }[wanted.verdict])  # fmt: skip
    need("a.counted >= $score_from", score_from=wanted.score_from)
    need("a.counted <= $score_to", score_to=wanted.score_to)
    need("a.tokens_out >= $tokens_from", tokens_from=wanted.tokens_from)
    need("a.tokens_out <= $tokens_to", tokens_to=wanted.tokens_to)
    need("a.latency_ms >= 1000 * $seconds_from", seconds_from=wanted.seconds_from)
    need("a.latency_ms <= 1000 * $seconds_to", seconds_to=wanted.seconds_to)
    need("a.category = $category", category=wanted.category)
    need("a.cluster_id = $cluster", cluster=wanted.cluster)
    need("contains(lower(a.item_id), lower($item))", item=wanted.item)
    source = "FROM v_attempts a"
    if wanted.text:
        paths = [str(path) for path in store.texts(run.run_id)]
        if not paths:
            return f"{source} WHERE false AND a.run_id = $run", {"run": run.run_id}
        source += f" SEMI JOIN ({_hits(wanted.fields)}) h USING (item_id, epoch)"
        values |= {"paths": paths, "text": wanted.text}
    return f"{source} WHERE {' AND '.join(conditions)}", values


def _hits(fields: tuple[str, ...]) -> str:
    """Write the query of the items whose latest attempt, or a verdict on it, holds the text.

    Only the columns searched are read. A verdict's explanation lies under the verdict's own number.
    """
    where = " OR ".join(
        f"contains(lower({name}), lower($text))" for name in FIELDS if name in (fields or FIELDS)
    )
    return f"""
        WITH hits AS (SELECT text_id FROM read_parquet($paths) WHERE {where})
        SELECT item_id, epoch FROM v_attempts JOIN hits USING (text_id) WHERE run_id = $run
        UNION
        SELECT item_id, epoch FROM scores JOIN hits ON seq = text_id WHERE run_id = $run
    """


def key_of(run_id: str, epoch: int, item_id: str) -> str:
    """Name an attempt in an address; the item stands last, as it may hold anything.

    Examples
    --------
    >>> key_of("r1", 0, "a:b"), place_of("r1:0:a:b"), place_of("r1")
    ('r1:0:a:b', ('r1', 0, 'a:b'), None)
    """
    return f"{run_id}:{epoch}:{item_id}"


def place_of(key: str) -> tuple[str, int, str] | None:
    """Read a name made by `key_of`: run, repeat, item; None where it is none."""
    run_id, _, rest = key.partition(":")
    epoch, colon, item_id = rest.partition(":")
    if not colon or not epoch.isascii() or not epoch.isdigit() or len(epoch) > 9:
        return None
    return run_id, int(epoch), item_id


def neighbours(
    con: DuckDBPyConnection, run_id: str, epoch: int, item_id: str
) -> tuple[str | None, str | None]:
    """Give the keys of the attempts before and after one in its run, by item and repeat."""
    found: list[str | None] = []
    for compare, order in (("<", "DESC"), (">", "ASC")):
        row = con.execute(
            f"SELECT item_id, epoch FROM samples WHERE run_id = $run "
            f"AND (item_id {compare} $item OR item_id = $item AND epoch {compare} $epoch) "
            f"ORDER BY item_id {order}, epoch {order} LIMIT 1",
            {"run": run_id, "item": item_id, "epoch": epoch},
        ).fetchone()
        found.append(key_of(run_id, row[1], row[0]) if row else None)
    return found[0], found[1]


def find_key(con: DuckDBPyConnection, key: str) -> str | None:
    """Find an attempt by its content key (32 or 64 hex digits): its name, of several the newest's."""
    try:
        wanted = UUID(key[:32])
    except ValueError:
        return None
    row = con.execute(
        "SELECT run_id, epoch, item_id FROM samples WHERE key = ? ORDER BY run_id DESC LIMIT 1",
        [wanted],
    ).fetchone()
    return key_of(*row) if row else None
