"""The page Leaderboard: rank intervals first, models that are not told apart on one ground."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from leaderboard import ui
from leaderboard.charts.scores import RankRow, ScoreRow, rank_plot, score_plot
from leaderboard.data import Board
from leaderboard.rows.board import BoardRow, Standings, TaskVersion, board, labels, task_versions

TOP = 20
"""Models in the interval plot unless all are asked for."""

COLUMNS = (
    "rank", "tier", "model", "variant", "strategy", "value", "interval", "counted", "n_items",
    "flags", "n_tasks", "error_rate", "error_harness_rate", "timeout_rate", "truncated_rate",
    "refused_rate", "unscored_rate", "unavailable_rate", "no_answer_rate", "open_rate", "cost_usd",
    "latency_ms", "date",
)  # fmt: skip


def page() -> None:
    """Draw the page."""
    ui.heading("Leaderboard")
    store = ui.board()
    known = store.ask(task_versions)
    if not known:
        ui.empty("No run has come far enough to be shown.", "harness list runs")
        return
    chosen = _choose_tasks(known)
    found = store.ask(board, tuple((t.task, t.version) for t in chosen))
    shown = _filtered(found)
    rows = [found.rows[i] for i in shown]
    _summary(chosen, found.rows, rows)
    if not rows:
        ui.empty("No model is left: take a filter away.")
        return
    ui.table(
        rows, [c for c in COLUMNS if c != "n_tasks" or len(chosen) > 1], "leaderboard",
        band="tier", bars=("value",), facts={"generation": store.generation},
    )  # fmt: skip
    _intervals(rows)
    if len(chosen) > 1:
        _at_a_glance(found, shown, [t.label for t in chosen])
    _provenance(store, chosen, rows)


def _choose_tasks(known: Sequence[TaskVersion]) -> list[TaskVersion]:
    """Let tasks be chosen; without a choice the newest version of each that has scores."""
    names = ui.choose_many(
        "Tasks", [t.label for t in known], "tasks", placeholder="all tasks",
        help="With several tasks the score is the mean over them, each with the same weight, of "
        "the models that ran all.",
    )  # fmt: skip
    if names:
        return [t for t in known if t.label in names]
    newest = [t for t in known if t.newest]
    return [t for t in newest if t.n_models] or newest


def _filtered(found: Standings) -> list[int]:
    """Let rows be filtered; ranks stay those among all models. Gives positions."""
    rows = found.rows
    with st.expander("Filter", icon=":material/filter_list:"):
        left, middle, right, last = st.columns(4)
        with left:
            models = ui.choose_many("Models", sorted({r.model for r in rows}), "models")
        with middle:
            backends = ui.choose_many("Backends", sorted({r.backend for r in rows}), "backends")
        with right:
            quants = ui.choose_many(
                "Quantisation", sorted({r.quantisation or "none" for r in rows}), "quant"
            )
        with last:
            strategies = ui.choose_many(
                "Strategies", sorted({r.strategy for r in rows}), "strategies"
            )
        baselines = ui.switch("Baselines", "baselines", value=True, help="Mocks; never ranked.")
    return [
        i
        for i, r in enumerate(rows)
        if (not models or r.model in models)
        and (not backends or r.backend in backends)
        and (not quants or (r.quantisation or "none") in quants)
        and (not strategies or r.strategy in strategies)
        and (baselines or not r.baseline)
    ]


def _summary(
    chosen: Sequence[TaskVersion], every: Sequence[BoardRow], rows: Sequence[BoardRow]
) -> None:
    ranked = [r for r in every if r.rank_lo is not None]
    first = [r for r in ranked if r.tier == 1]
    facts = {"Models": f"{len(rows)} of {len(every)}", "Tasks": str(len(chosen))}
    if ranked:
        facts["Ranked"] = str(len(ranked))
        facts["First tier"] = str(len(first))
    ui.tiles(facts)
    if not ranked:
        st.caption(
            "Nothing is ranked: a rank needs a score on every chosen task, and baselines get none."
        )
    elif len(ranked) > 1 and len(first) == len(ranked):
        st.caption(
            f"The data tell none of these {len(ranked)} models apart: each may have any rank from 1 "
            f"to {len(ranked)}, and the order of the rows says nothing."
        )
    elif len(ranked) > 1:
        st.caption(
            "Rows of one tier stand on the same ground; inside a tier the order says nothing."
        )


def _intervals(rows: Sequence[BoardRow]) -> None:
    st.subheader("Scores with 95 % intervals", anchor=False)
    everything = False
    with st.container(horizontal=True):
        if len(rows) > TOP:
            everything = ui.switch(f"All {len(rows)} models", "all_models")
        zoom = ui.switch("Zoom to the data", "zoom", help="A cut axis makes noise look large.")
    shown = rows if everything else rows[:TOP]
    names = labels(rows)
    points = [
        ScoreRow(
            label=name, score=row.value, lo=row.lo, hi=row.hi, n=row.n_items,
            is_baseline=row.baseline, is_partial="partial" in row.flags,
        )
        for name, row in zip(names, shown, strict=False)
        if row.value is not None
    ]  # fmt: skip
    order = [point.label for point in points]
    drawn = partial(score_plot, points, sort=order, zoom=zoom, dark=ui.is_dark())
    ui.chart(
        drawn, "scores", alt=f"Scores of {len(points)} models with 95 % intervals; the numbers "
        "stand in the table above.",
    )  # fmt: skip


def _at_a_glance(found: Standings, shown: Sequence[int], tasks: Sequence[str]) -> None:
    """Draw one row a model and one rank interval a task."""
    st.subheader("Ranks task by task", anchor=False)
    names = labels([found.rows[i] for i in shown])
    ranks = [
        RankRow(label=name, task=task, rank_lo=cell.rank_lo, rank_hi=cell.rank_hi)
        for name, i in zip(names, shown, strict=True)
        for task, cell in zip(tasks, found.cells[i], strict=True)
        if cell.rank_lo is not None and cell.rank_hi is not None
    ]
    by_model: dict[str, dict[str, str]] = {name: {"model": name} for name in names}
    for rank in ranks:
        ends = sorted({rank.rank_lo, rank.rank_hi})
        by_model[rank.label][rank.task] = "–".join(map(str, ends))
    ui.table(list(by_model.values()), ["model", *tasks], "ranks", export=["model", *tasks])
    if ui.switch("Draw the ranks", "draw_ranks"):
        drawn = partial(rank_plot, ranks, sort=names, tasks=tasks, dark=ui.is_dark())
        ui.chart(drawn, "rank_intervals", alt="The rank intervals of the table above, as bars.")


def _provenance(store: Board, chosen: Sequence[TaskVersion], rows: Sequence[BoardRow]) -> None:
    methods = ", ".join(sorted({r.method for r in rows if r.value is not None}))
    tasks = ", ".join(f"{t.task} version {t.version}" for t in chosen)
    ui.provenance(
        store,
        [
            ("tasks", tasks),
            ("method of the intervals", methods),
            ("level", 0.95),
            ("ranks", "paired tests of all pairs, Holm; see the page About"),
            ("runs", sum(r.n_runs for r in rows)),
        ],
        "harness list runs --json",
    )
