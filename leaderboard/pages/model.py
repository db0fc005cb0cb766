"""The page Model: variants and quantisations, scores over tasks, cost and speed, and runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from leaderboard import ui
from leaderboard.charts.flips import FlipRow, flip_plot
from leaderboard.charts.items import CategoryRow, category_bars
from leaderboard.charts.scores import ScoreRow, score_plot
from leaderboard.data import Board
from leaderboard.rows.model import (
    ModelPage,
    ModelScore,
    QuantRow,
    category_scores,
    model_names,
    model_page,
)
from leaderboard.rows.runs import run_list
from leaderboard.ui.markup import plain

LINKS = 5
"""Newest runs that are linked; the table holds all."""

_VARIANTS = ("label", "backend", "revision", "bits", "weight_gib", "simulated", "strategy",
             "n_runs", "variant_id")  # fmt: skip
_SCORES = ("task", "version", "label", "value", "interval", "n_items", "n_clusters", "flags")
_COST = ("task", "version", "label", "tokens_in", "tokens_out", "cost_usd", "latency_ms",
         "tokens_per_s", "memory_gib")  # fmt: skip
_QUANT = ("task", "version", "label", "full", "diff", "diff_interval", "p", "p_adj", "test",
          "n_shared", "mean_a", "mean_b", "gained", "lost", "mde", "flags")  # fmt: skip
_RUNS = ("run_id", "task", "version", "model", "strategy", "status", "value", "interval",
         "counted", "cost_usd", "seconds", "started", "flags")  # fmt: skip


def page() -> None:
    """Draw the page."""
    ui.heading("Model")
    store = ui.board()
    chosen = ui.choose("Model", store.ask(model_names), "model")
    if chosen is None:
        ui.empty("No run has come far enough to be shown.", "harness list runs")
        return
    found = store.ask(model_page, chosen)
    _facts(store, found)
    _scores(store, found.scores)
    _quantised(store, found)
    _categories(store, found)
    _cost(store, found.scores)
    _runs(store, found)
    ui.provenance(
        store,
        [("model", chosen), ("variants", ", ".join(v.variant_id for v in found.variants)),
         ("runs", len(found.run_ids)), ("level", 0.95)],
        f"harness list runs --json --store {store.store.root}",
    )  # fmt: skip


def _facts(store: Board, found: ModelPage) -> None:
    facts = found.facts
    tiles = {
        "Variants": str(len(found.variants)),
        "Runs": str(len(found.run_ids)),
        "Family": plain(facts.family or ""),
        "Parameters": f"{facts.params:,}" if facts.params else "",
        "Released": f"{facts.release_date:%Y-%m-%d}" if facts.release_date else "",
        "Licence": plain(facts.license or ""),
        "Source": plain(facts.source or ""),
    }
    ui.tiles({name: value for name, value in tiles.items() if value})
    if all(variant.baseline for variant in found.variants):
        st.caption("A baseline: no model gave these answers, and it is never ranked.")
    st.subheader("Variants and quantisations", anchor=False)
    ui.table(found.variants, _VARIANTS, "variants", facts={"generation": store.generation})


def _scores(store: Board, scores: Sequence[ModelScore]) -> None:
    st.subheader("Scores", anchor=False)
    if not any(row.value is not None for row in scores):
        st.caption("Nothing is scored yet.")
        return
    ui.table(
        scores, _SCORES, "model_scores", bars=("value",), facts={"generation": store.generation}
    )
    several = len({row.label for row in scores}) > 1
    versions = {(row.task, row.version) for row in scores}
    named = {task for task, _ in versions if sum(t == task for t, _ in versions) > 1}
    points = [
        ScoreRow(
            label=" · ".join(filter(None, (
                row.task + (f" version {row.version}" if row.task in named else ""),
                row.label if several else "",
            ))),
            score=row.value, lo=row.lo, hi=row.hi, n=row.n_items,
            is_baseline="baseline" in row.flags,
        )
        for row in scores
        if row.value is not None
    ]  # fmt: skip
    drawn = partial(score_plot, points, sort=[p.label for p in points], dark=ui.is_dark())
    ui.chart(drawn, "model_scores_plot", alt=f"{len(points)} scores with 95 % intervals.")


def _quantised(store: Board, found: ModelPage) -> None:
    st.subheader("Quantised against full", anchor=False)
    rows: list[QuantRow] = found.quantised
    if not rows:
        st.caption("No quantised variant has a task in common with one that is not quantised.")
        return
    ui.table(rows, _QUANT, "quantised", facts={"generation": store.generation})
    # On a phone a long name leaves no room for the bars.
    short = {v.label: v.variant for v in found.variants}
    names = [f"{row.task} · {short[row.label]}" for row in rows]
    if len(set(names)) < len(names):
        names = [f"{row.task} {row.version} · {row.label}" for row in rows]
    points = [
        FlipRow(
            label=name, gained=row.gained, lost=row.lost,
            unchanged=row.n_shared - row.gained - row.lost,
        )
        for name, row in zip(names, rows, strict=True)
    ]  # fmt: skip
    drawn = partial(
        flip_plot, points, sort=[p.label for p in points], dark=ui.is_dark(),
        title="Gained and lost",
    )  # fmt: skip
    ui.chart(drawn, "flips", alt="Items that quantised variants gain and lose.")


def _categories(store: Board, found: ModelPage) -> None:
    st.subheader("Categories", anchor=False)
    scored = [row for row in found.scores if row.value is not None]
    left, right = st.columns(2)
    with left:
        task = ui.choose("Task", list(dict.fromkeys(_task_label(row) for row in scored)), "task")
    with right:
        of_task = {row.label: row for row in scored if _task_label(row) == task}
        label = ui.choose("Variant", list(of_task), "variant")
    if label is None:
        st.caption("Nothing is scored yet.")
        return
    row = of_task[label]
    rows = store.ask(category_scores, row.task, row.version, label, (row.variant_id, row.strategy))
    if not rows:
        st.caption("The items of this task have no categories.")
        return
    bars = [
        CategoryRow(category=r.category, score=r.value, lo=r.lo, hi=r.hi, n=r.n_items)
        for r in rows
        if r.value is not None
    ]
    drawn = partial(category_bars, bars, dark=ui.is_dark())
    ui.chart(drawn, "model_categories", alt=f"Scores of {label} in {len(bars)} categories.")
    ui.table(
        rows, ("category", "value", "interval", "n_items", "n_clusters", "flags"), "categories"
    )


def _task_label(row: ModelScore) -> str:
    return f"{row.task} version {row.version}"


def _cost(store: Board, scores: Sequence[ModelScore]) -> None:
    st.subheader("Cost and speed", anchor=False)
    if any("simulated" in row.flags for row in scores):
        st.caption("A simulated quantisation computes as the full model does: no memory, no speed.")
    ui.table(scores, _COST, "cost", facts={"generation": store.generation})


def _runs(store: Board, found: ModelPage) -> None:
    st.subheader("Runs", anchor=False)
    ids = set(found.run_ids)
    rows = [run for run in store.ask(run_list) if run.run_id in ids]
    ui.table(rows, _RUNS, "model_runs", facts={"generation": store.generation})
    for run in rows[:LINKS]:
        ui.link(f"{run.task} · {run.run_id}", "runs", run=run.run_id)
