"""Compare two runs, or two models on every task that both ran: paired by item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct, field

from harness.core.errors import UsageError, unknown
from harness.runner.adaptive_outcome import METHOD
from harness.runner.summary import Summary, headline_of, summaries
from harness.store.difference import diff_runs
from harness.store.ingest import refresh
from harness.store.layout import Store, find_run
from harness.store.publish import snapshot
from harness.store.queries import item_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duckdb import DuckDBPyConnection

    from harness.stats.pairs import PairTest


class Flips(Struct, frozen=True):
    """Items on which the two are not equal: where A is better, and where A is worse."""

    gained: list[str]
    lost: list[str]


class Comparison(Struct, frozen=True, kw_only=True):
    """A against B on one task.

    Attributes
    ----------
    task, metric : str
    run_a, run_b : str
        Run ids.
    mean_a, mean_b : float or None
        Mean score of each on the shared items.
    n, n_clusters : int
        Items that count in both, and their clusters.
    only_a, only_b : int
        Items that count in one run only; they are left out.
    diff, lo, hi : float or None
        A - B with its 95 % interval.
    p, p_adj : float or None
        Two-sided p value, and Holm's over all tasks compared.
    test : str
        Which test gave `p` (see `harness.stats.pairs.compare_items`).
    mcnemar_p : float or None
        Exact McNemar test beside it, for 0/1 scores.
    mde : float or None
        Smallest difference that would be found with 80 % power on as many items.
    flips : Flips
    unlike : list of str
        In what the two runs are not alike though they were compared (``--allow-different``).
    notes : list of str
    """

    task: str
    metric: str
    run_a: str
    run_b: str
    mean_a: float | None
    mean_b: float | None
    n: int
    n_clusters: int
    only_a: int
    only_b: int
    diff: float | None
    lo: float | None
    hi: float | None
    p: float | None
    p_adj: float | None
    test: str
    mcnemar_p: float | None
    mde: float | None
    flips: Flips
    unlike: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class Compared(Struct, frozen=True, kw_only=True):
    """A against B over all tasks compared, in the form of ``harness compare --json``.

    With one task the numbers are that task's. With several, `diff` is the mean of the tasks'
    differences, each task with the same weight; its standard error is sqrt(sum se_t^2) / T, the
    tasks held fixed, and the interval and `p` are normal, whatever the number of items (``test`` is
    ``macro``); there are none where all differences of a task are equal. `n` is the number of items
    in all.

    Attributes
    ----------
    a, b : str
        As asked for.
    n : int
    diff, lo, hi, p : float or None
    test : str
    flips : Flips
        With several tasks as ``task/item``.
    tasks : list of Comparison
    """

    a: str
    b: str
    n: int
    diff: float | None
    lo: float | None
    hi: float | None
    p: float | None
    test: str
    flips: Flips
    tasks: list[Comparison]


def compare(store: Store, a: str, b: str, *, allow_different: bool = False) -> Compared:
    """Compare two runs or models, item by item.

    Parameters
    ----------
    store : Store
    a, b : str
        Each a run id (or the beginning or random part of one, or ``last``), a model SPEC (the
        newest run of each task that both ran), or ``MODEL@TASK``.
    allow_different : bool
        Compare runs whose prompt, task version, items' content or scorer are not the same, or
        that chose their items.

    Raises
    ------
    UsageError
        Unknown run or model, nothing in common, or unlike runs without leave.
    """
    from harness.stats.pairs import holm_adjusted

    refresh(store)
    con = snapshot(store)
    every = summaries(store)
    pairs = _pairs(a, _runs_of(store, every, a), b, _runs_of(store, every, b))
    found, left_out = [], []
    for pair in pairs:
        try:
            found.append(_one_task(con, store, *pair, allow_different))
        except _NothingSharedError as error:
            if len(pairs) == 1:
                raise
            left_out.append(f"{pair[0].task} is left out: {error}")
    if not found:
        raise UsageError("; ".join(left_out))
    found[0][0].notes.extend(left_out)
    adjusted = holm_adjusted([test for _, test in found])
    tasks = [
        msgspec.structs.replace(one, p_adj=test.p_adj)
        for (one, _), test in zip(found, adjusted, strict=True)
    ]
    return _over_all(a, b, tasks, adjusted)


class _NothingSharedError(UsageError):
    """Two runs of a task have no item that counts in both."""


def _runs_of(store: Store, every: list[Summary], name: str) -> dict[str, list[Summary]]:
    """Find the runs that a name stands for, by task, newest last."""
    model, at, task = name.rpartition("@")
    found: dict[str, list[Summary]] = {}
    for run in every:
        if run.model == name or (at and run.model == model and run.task == task):
            found.setdefault(run.task, []).append(run)
    if found:
        return found
    try:
        run_id = find_run(store, name)
    except UsageError:
        known = sorted({run.model for run in every} | {f"{r.model}@{r.task}" for r in every})
        raise unknown("run or model", name, known, "see `harness list runs`") from None
    by_id = {run.run_id: run for run in every}
    if run_id not in by_id:
        raise UsageError(f"run {run_id} ended before its plan was written")
    return {by_id[run_id].task: [by_id[run_id]]}


def _pairs(
    a: str, of_a: dict[str, list[Summary]], b: str, of_b: dict[str, list[Summary]]
) -> list[tuple[Summary, Summary, list[str]]]:
    """Pair the newest runs of every task that both sides ran."""
    shared = [task for task in of_a if task in of_b]
    if not shared:
        raise UsageError(
            f"{a} and {b} have no task in common: {', '.join(of_a)} against {', '.join(of_b)}"
        )
    pairs = []
    for task in shared:
        one, two = of_a[task][-1], of_b[task][-1]
        if one.run_id == two.run_id:
            raise UsageError(f"{a} and {b} are the same run {one.run_id}")
        notes = [
            f"{label}: newest of {len(runs)} runs" + (", unfinished" * (run.status == "partial"))
            for label, run, runs in (("A", one, of_a[task]), ("B", two, of_b[task]))
            if len(runs) > 1
        ]
        pairs.append((one, two, notes))
    return pairs


def _one_task(
    con: DuckDBPyConnection,
    store: Store,
    a: Summary,
    b: Summary,
    notes: list[str],
    allow_different: bool,
) -> tuple[Comparison, PairTest]:
    from harness.stats.pairs import compare_items

    unlike = diff_runs(con, store, a.run_id, b.run_id).unlike() + _chosen(a, b)
    if unlike and not allow_different:
        raise UsageError(
            f"{a.run_id} and {b.run_id} are not alike in {'; '.join(unlike)}; see `harness show "
            f"diff {a.run_id} {b.run_id}`, or compare them all the same with --allow-different"
        )
    metric = headline_of(a)[0]
    left = {item: (mean, cluster) for item, cluster, mean, _ in item_values(con, a.run_id, metric)}
    right = {item: mean for item, _, mean, _ in item_values(con, b.run_id, headline_of(b)[0])}
    shared = [item for item in left if item in right]
    if not shared:
        raise _NothingSharedError(f"{a.run_id} and {b.run_id} have no item that counts in both")
    test = compare_items(
        [left[i][0] for i in shared], [right[i] for i in shared], [left[i][1] for i in shared]
    )
    made = Comparison(
        task=a.task, metric=metric, run_a=a.run_id, run_b=b.run_id, mean_a=test.a, mean_b=test.b,
        n=test.n_items, n_clusters=test.n_clusters, only_a=len(left) - len(shared),
        only_b=len(right) - len(shared), diff=test.diff, lo=test.lo, hi=test.hi, p=test.p,
        p_adj=None, test=test.test, mcnemar_p=test.mcnemar_p, mde=test.mde,
        flips=Flips(
            [i for i in shared if left[i][0] > right[i]],
            [i for i in shared if left[i][0] < right[i]],
        ),
        unlike=unlike, notes=[*notes, *_marks(a, b), *test.notes],
    )  # fmt: skip
    return made, test


def _chosen(a: Summary, b: Summary) -> list[str]:
    """Say which side is adaptive: a difference on items that it chose is of these items only."""
    sides = [label for label, run in (("A", a), ("B", b)) if _is_adaptive(run)]
    if not sides:
        return []
    who = " and ".join(sides)
    why = "chosen by what was answered before, so a difference on them is of these items only"
    return [f"items ({who} adaptive: {why})"]


def _is_adaptive(run: Summary) -> bool:
    return headline_of(run)[1].method == METHOD


def _marks(a: Summary, b: Summary) -> list[str]:
    """Say what a reader must know of a side: a baseline, or a run with something left open."""
    return [
        f"{label} is {what}"
        for label, run in (("A", a), ("B", b))
        for what, is_so in (
            ("a baseline", run.is_baseline),
            ("not whole", run.status != "done" and not run.is_baseline),
        )
        if is_so
    ]


def _over_all(a: str, b: str, tasks: list[Comparison], tests: Sequence[PairTest]) -> Compared:
    if len(tasks) == 1:
        one = tasks[0]
        return Compared(
            a=a, b=b, n=one.n, diff=one.diff, lo=one.lo, hi=one.hi, p=one.p, test=one.test,
            flips=one.flips, tasks=tasks,
        )  # fmt: skip
    from harness.stats.pairs import over_tasks

    macro = over_tasks(tests)
    kinds: tuple[Literal["gained", "lost"], ...] = ("gained", "lost")
    flips = Flips(*([f"{t.task}/{i}" for t in tasks for i in getattr(t.flips, k)] for k in kinds))
    n = sum(t.n for t in tasks)
    return Compared(
        a=a, b=b, n=n, diff=macro.diff, lo=macro.lo, hi=macro.hi, p=macro.p, test="macro",
        flips=flips, tasks=tasks,
    )  # fmt: skip
