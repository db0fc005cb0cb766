"""Rows of the page Compare: two subjects paired by item, task by task, and answers side by side.

As on the command line, two are not compared where their runs did not ask or judge alike; unlike
there, a side is a variant with a strategy over all its runs, as on the page Leaderboard.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from harness.core.errors import HarnessError
from harness.stats.pairs import MacroTest, holm_adjusted, over_tasks
from harness.store.difference import unlike
from harness.store.layout import Store
from harness.store.rows import dicts
from harness.store.texts import sample
from leaderboard.rows.pairs import Flip, Paired, paired
from leaderboard.rows.subjects import Key, Subject, item_tables

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SETTINGS = {
    "solver": "r.solver",
    "errors": "r.errors",
    "system": "coalesce(r.config_json ->> '$.system', '')",
    "fewshot": "coalesce(r.config_json ->> '$.fewshot', '0')",
    "args": "coalesce(nullif(r.config_json ->> '$.args', '{}'), '')",
}
"""What all runs of both sides must have in common; what is hashed stands in the journals."""


class CompareRow(Struct, frozen=True, kw_only=True):
    """A against B on one task; columns as in `leaderboard.columns.COLUMNS`.

    Attributes
    ----------
    diff, diff_lo, diff_hi : float or None
        A less B with its 95 % interval.
    p, p_adj : float or None
        Two-sided, by `test`; and Holm's over all tasks compared.
    mcnemar_p : float or None
        Exact McNemar test, for 0/1 scores.
    gained, lost : int
        Items on which A is better, and worse.
    unlike : tuple of str
        In what the two are not alike though they were compared.
    """

    task: str
    version: str
    n_shared: int
    n_clusters: int
    only_a: int
    only_b: int
    mean_a: float | None
    mean_b: float | None
    diff: float | None
    diff_lo: float | None
    diff_hi: float | None
    p: float | None
    p_adj: float | None
    test: str
    mcnemar_p: float | None
    mde: float | None
    gained: int
    lost: int
    unlike: tuple[str, ...]
    flags: tuple[str, ...]


class Refused(Struct, frozen=True, kw_only=True):
    """A task on which the two are not compared, and why."""

    task: str
    reasons: tuple[str, ...]


class Compared(Struct, frozen=True, kw_only=True):
    """Two subjects on all tasks that both ran.

    Attributes
    ----------
    overall : MacroTest or None
        Over the rows, each with the same weight; None for fewer than two.
    flips : list of Flip
        Of all rows, in their order.
    """

    rows: list[CompareRow]
    refused: list[Refused]
    overall: MacroTest | None
    flips: list[Flip]


class Answer(Struct, frozen=True, kw_only=True):
    """What one side answered to an item.

    Attributes
    ----------
    prompt, output : str or None
        None where the texts are not in the store.
    """

    run_id: str
    status: str
    answer: str | None
    explanation: str | None
    prompt: str | None
    output: str | None
    error: str | None
    tokens_out: int | None


class _Runs(Struct, frozen=True):
    """What the runs of a subject on a task and version have said."""

    newest: str
    whole: bool
    adaptive: bool
    settings: dict[str, list[str]]


def compared(
    con: DuckDBPyConnection, store: Store, a: Subject, b: Subject, *, different: bool = False
) -> Compared:
    """Compare two subjects on every task that both ran.

    Parameters
    ----------
    con : DuckDBPyConnection
    store : Store
        For the plans in the journals; where one is missing, what only it says is not looked at.
    a, b : Subject
    different : bool
        Compare those too that were not asked or judged alike. Two versions of a task never are:
        their items are not the same.
    """
    of_a, of_b = _runs(con, a.key), _runs(con, b.key)
    both: list[tuple[str, str]] = []
    refused: list[Refused] = []
    for task in (t for t in of_a if t in of_b):
        shared = [version for version in of_a[task] if version in of_b[task]]
        if shared:
            both.append((task, max(shared, key=lambda v: of_a[task][v].newest)))
        else:
            versions = " / ".join(", ".join(of[task]) for of in (of_a, of_b))
            refused.append(Refused(task=task, reasons=(f"version ({versions})",)))
    sides = [(of_a[task][version], of_b[task][version]) for task, version in both]
    # Plans and verdicts are looked up, and items compared, at the same time: each is half of it all.
    with closing(con.cursor()) as beside, ThreadPoolExecutor(1) as pool:
        alike = pool.map(lambda pair: _unlike(beside, store, *pair), sides)
        tables = item_tables(con, both, [a.key, b.key])
        pairs = [paired(task, version, tables[task, version]) for task, version in both]
        said = list(alike)
    rows: list[tuple[str, str, Paired, list[str], list[str]]] = []
    for (task, version), (one, two), pair, reasons in zip(both, sides, pairs, said, strict=True):
        if not pair.test.n_items:
            reasons.append("items (none counts in both)")
        if reasons and not (different and pair.test.n_items):
            refused.append(Refused(task=task, reasons=tuple(reasons)))
            continue
        rows.append((task, version, pair, reasons, _marks(a, b, one, two)))
    refused.sort(key=lambda one: one.task)
    tests = holm_adjusted([pair.test for _, _, pair, *_ in rows])
    return Compared(
        rows=[_row(*row, p_adj=test.p_adj) for row, test in zip(rows, tests, strict=True)],
        refused=refused,
        overall=over_tasks(tests) if len(tests) > 1 else None,
        flips=[flip for _, _, pair, *_ in rows for flip in pair.flips],
    )


def answer(
    con: DuckDBPyConnection, store: Store, subject: Subject, task: str, version: str, item: str
) -> Answer | None:
    """Give a subject's newest answer to an item whole; None where it has none."""
    row = con.execute(
        """
        SELECT max(s.run_id) FROM samples s JOIN runs r USING (run_id)
        WHERE s.task_id = $task AND s.version = $version AND s.item_id = $item
            AND r.variant_id = $variant AND r.strategy = $strategy
            AND coalesce(r.config_json ->> '$.no_data', 'false') <> 'true'
        """,
        {
            "task": task, "version": version, "item": item,
            "variant": subject.variant_id, "strategy": subject.strategy,
        },
    ).fetchone()  # fmt: skip
    run_id = row[0] if row else None
    if run_id is None:
        return None
    found = sample(con, store, run_id, item)
    explanation = next(
        (s["explanation"] for s in reversed(found["scores"]) if s["explanation"]), None
    )
    return Answer(
        run_id=run_id, status=found["status"], answer=found["answer"], explanation=explanation,
        prompt=found["prompt"], output=found["output"], error=found["error"],
        tokens_out=found["tokens_out"],
    )  # fmt: skip


def _runs(con: DuckDBPyConnection, key: Key) -> dict[str, dict[str, _Runs]]:
    """Sum up a subject's runs by task, then version."""
    settings = ", ".join(f"{of} AS {name}" for name, of in SETTINGS.items())
    rows = dicts(con.execute(
        f"""
        SELECT r.task_id, r.version, r.run_id, {settings},
            coalesce(r.config_json ->> '$.adaptive', 'false') = 'true' AS adaptive,
            r.status = 'done' AND coalesce(t.n_attempts, 0) >= r.n_planned
                AND coalesce(t.error_harness + t.unavailable, 0) = 0 AS whole
        FROM runs r LEFT JOIN run_totals t USING (run_id)
        WHERE r.variant_id = $variant AND r.strategy = $strategy
            AND coalesce(r.config_json ->> '$.no_data', 'false') <> 'true'
        ORDER BY r.task_id, r.run_id DESC
        """,
        {"variant": key[0], "strategy": key[1]},
    ))  # fmt: skip
    # Grouped here: a database sums up few rows more slowly than it reads them.
    grouped: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for row in rows:
        grouped.setdefault(row["task_id"], {}).setdefault(row["version"], []).append(row)
    return {
        task: {version: _summed(of_version) for version, of_version in versions.items()}
        for task, versions in grouped.items()
    }


def _summed(newest_first: Sequence[dict[str, Any]]) -> _Runs:
    newest = newest_first[0]
    return _Runs(
        newest["run_id"], newest["whole"], all(row["adaptive"] for row in newest_first),
        {name: _distinct(newest_first, name) for name in SETTINGS},
    )  # fmt: skip


def _distinct(rows: Sequence[dict[str, Any]], name: str) -> list[str]:
    return sorted({row[name] for row in rows}, key=lambda value: value or "")


def _unlike(con: DuckDBPyConnection, store: Store, one: _Runs, two: _Runs) -> list[str]:
    """Say why two should not be compared: settings of all runs, then the plans of the newest ones."""
    reasons = [
        f"{name} ({_short(one.settings[name])} / {_short(two.settings[name])})"
        for name in SETTINGS
        if one.settings[name] != two.settings[name]
    ]
    named = {reason.partition(" (")[0] for reason in reasons}
    if _has_plan(store, one.newest) and _has_plan(store, two.newest):
        try:
            planned = unlike(con, store, one.newest, two.newest)
        except HarnessError as error:
            planned = [f"a plan that cannot be read ({error})"]
        reasons += [r for r in planned if r.partition(" (")[0] not in named]
    who = " and ".join(side for side, runs in (("A", one), ("B", two)) if runs.adaptive)
    if who:
        reasons.append(f"items ({who} adaptive: chosen by what was answered before)")
    return reasons


def _has_plan(store: Store, run_id: str) -> bool:
    return store.journal(run_id).parent.is_dir()


def _short(values: Sequence[str]) -> str:
    text = ", ".join(value or "none" for value in values)
    return text if len(text) <= 40 else text[:39] + "…"


def _marks(a: Subject, b: Subject, one: _Runs, two: _Runs) -> list[str]:
    return [
        f"{side} is {what}"
        for side, subject, runs in (("A", a, one), ("B", b, two))
        for what, is_so in (
            ("a baseline", subject.baseline),
            ("simulated", subject.simulated),
            ("not whole", not runs.whole and not subject.baseline),
        )
        if is_so
    ]


def _row(
    task: str, version: str, pair: Paired, reasons: list[str], marks: list[str], *,
    p_adj: float | None,
) -> CompareRow:  # fmt: skip
    test: Any = pair.test
    return CompareRow(
        task=task, version=version, n_shared=test.n_items, n_clusters=test.n_clusters,
        only_a=pair.only_a, only_b=pair.only_b, mean_a=test.a, mean_b=test.b, diff=test.diff,
        diff_lo=test.lo, diff_hi=test.hi, p=test.p, p_adj=p_adj, test=test.test,
        mcnemar_p=test.mcnemar_p, mde=test.mde, gained=pair.gained, lost=pair.lost,
        unlike=tuple(reasons), flags=(*marks, *test.notes),
    )  # fmt: skip
