"""The page Task: what a task is, who scores what on it, its items, and what others have published."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from leaderboard import ui
from leaderboard.charts.items import (
    CategoryRow,
    DifficultyRow,
    category_bars,
    difficulty_histogram,
)
from leaderboard.charts.scores import ScoreRow, score_plot
from leaderboard.data import Board
from leaderboard.rows.board import BoardRow, TaskVersion, board, labels, task_versions
from leaderboard.rows.model import category_scores
from leaderboard.rows.task import TaskFacts, ablations, published, task_facts, task_items
from leaderboard.ui.markup import plain

TOP = 20
"""Models in the interval plot, and items in the table, unless all are asked for."""

_RESULTS = ("rank", "tier", "model", "variant", "strategy", "value", "interval", "counted",
            "n_items", "flags", "cost_usd", "latency_ms", "date")  # fmt: skip
_ITEMS = ("item", "category", "cluster", "mean", "difficulty", "n_models", "human_minutes")


def page() -> None:
    """Draw the page."""
    ui.heading("Task")
    store = ui.board()
    known = store.ask(task_versions)
    chosen = ui.choose("Task", [t.label for t in known], "task")
    found = next((t for t in known if t.label == chosen), None)
    if found is None:
        ui.empty("No run has come far enough to be shown.", "harness list runs")
        return
    facts = store.ask(task_facts, found.task, found.version)
    rows = store.ask(board, ((found.task, found.version),)).rows
    _facts(facts, rows)
    _results(store, rows)
    _items(store, found)
    _categories(store, found, rows)
    _soundness(store, facts)
    _published(store, found.task)
    ui.provenance(
        store,
        [("task", facts.task), ("version", facts.version), ("data", facts.dataset_sha256),
         *facts.protocol, *facts.stated,
         ("method of the intervals", ", ".join(sorted({r.method for r in rows if r.value is not None}))),
         ("level", 0.95)],
        f"harness list runs --json --store {store.store.root}",
    )  # fmt: skip


def _facts(facts: TaskFacts, rows: Sequence[BoardRow]) -> None:
    tiles = {
        "Version": plain(facts.version),
        "Items": f"{facts.n_items:,}",
        "Clusters": f"{facts.n_clusters:,}" if facts.n_clusters < facts.n_items else "",
        "Models": str(sum(not row.baseline for row in rows)),
        "Detectable difference": f"{100 * facts.mde:.1f} points" if facts.mde else "",
        "Licence": plain(facts.license or "not stated"),
    }
    ui.tiles({name: value for name, value in tiles.items() if value})
    direction = {True: " (higher is better)", False: " (lower is better)", None: ""}
    measured = f"Measures **{plain(facts.metric or 'a score')}**{direction[facts.higher_is_better]}"
    of = f" on items of {plain(facts.benchmark)}" if facts.benchmark else ""
    source = f"; items: {plain(facts.source)}" if facts.source else ""
    minutes = ""
    if facts.n_minutes:
        where = f" ({plain(facts.human_time_source)})" if facts.human_time_source else ""
        minutes = f" Human time is known of {facts.n_minutes:,} items{where}."
    st.markdown(f"{measured}{of}{source}.{minutes}")
    if facts.mde:
        st.caption(
            f"Two models that differ by less than {100 * facts.mde:.1f} points are found to differ "
            "with less than 80 % power, taking a spread of 0.5 for the differences and each cluster "
            "as one item; a comparison of two models shows its own."
        )
    with st.expander("How it is asked and judged", icon=":material/rule:"):
        lines = [("data set, sha256", facts.dataset_sha256 or "not stated"), *facts.protocol,
                 *facts.stated]  # fmt: skip
        st.markdown("\n".join(f"- {name}: `{_code(value)}`" for name, value in lines))


def _code(value: str) -> str:
    return value.replace("`", "'").replace("\n", " ")


def _results(store: Board, rows: Sequence[BoardRow]) -> None:
    st.subheader("Results", anchor=False)
    models = [row for row in rows if not row.baseline]
    if models:
        ui.table(
            models, _RESULTS, "task_results", band="tier", bars=("value",),
            facts={"generation": store.generation},
        )  # fmt: skip
    else:
        st.caption("No model has run it; baselines stand below.")
    names = labels(rows)
    every = [
        ScoreRow(
            label=name, score=row.value, lo=row.lo, hi=row.hi, n=row.n_items,
            is_baseline=row.baseline, is_partial="partial" in row.flags,
        )
        for name, row in zip(names, rows, strict=True)
        if row.value is not None
    ]  # fmt: skip
    if every:
        with st.container(horizontal=True):
            everything = len(every) > TOP and ui.switch(f"All {len(every)} models", "all_models")
            zoom = ui.switch("Zoom to the data", "zoom", help="A cut axis makes noise look large.")
        points = every if everything else every[:TOP]
        order = [point.label for point in points]
        drawn = partial(score_plot, points, sort=order, zoom=zoom, dark=ui.is_dark())
        ui.chart(drawn, "task_scores", alt=f"Scores of {len(points)} models with 95 % intervals.")
    baselines = [row for row in rows if row.baseline]
    if baselines:
        st.subheader("Baselines", anchor=False)
        st.caption("Answers that no model gave: what the score means at its ends. Never ranked.")
        ui.table(baselines, ("model", "strategy", "value", "interval", "counted"), "baselines")


def _items(store: Board, found: TaskVersion) -> None:
    st.subheader("Items by difficulty", anchor=False)
    items = store.ask(task_items, found.task, found.version)
    answered = [item for item in items if item.mean is not None]
    if not answered:
        ui.empty("No item has a score of a model yet; baselines are left out here.")
        return
    drawn = partial(
        difficulty_histogram,
        [DifficultyRow(item=item.item, b=item.difficulty) for item in items],
        measure="log odds of a wrong answer, over the models", dark=ui.is_dark(),
    )  # fmt: skip
    ui.chart(drawn, "item_difficulty", alt=f"How many of {len(answered)} items are how hard.")
    n_all = sum(item.mean == 1 for item in answered)
    n_none = sum(item.mean == 0 for item in answered)
    st.caption(
        f"Every model solves {n_all:,} of the {len(answered):,} answered items, and none solves "
        f"{n_none:,}: these tell no models apart. The scale of a fit stands on the page Scale."
    )
    everything = len(items) > TOP and ui.switch(f"All {len(items):,} items", "all_items")
    ui.table(items if everything else items[:TOP], _ITEMS, "items", height=10)
    if len(items) > TOP and not everything:
        st.caption(f"The {TOP} hardest; the switch brings all, also into the files.")


def _categories(store: Board, found: TaskVersion, rows: Sequence[BoardRow]) -> None:
    st.subheader("Categories", anchor=False)
    scored = [row for row in rows if row.value is not None]
    named = dict(zip(labels(scored), scored, strict=True))
    chosen = ui.choose("Model", list(named), "model")
    if chosen is None:
        st.caption("No model has a score.")
        return
    key = (named[chosen].variant_id, named[chosen].strategy)
    rows_ = store.ask(category_scores, found.task, found.version, chosen, key)
    if not rows_:
        st.caption("The items of this task have no categories.")
        return
    bars = [
        CategoryRow(category=row.category, score=row.value, lo=row.lo, hi=row.hi, n=row.n_items)
        for row in rows_
        if row.value is not None
    ]
    drawn = partial(category_bars, bars, dark=ui.is_dark(), title=f"Scores of {chosen} by category")
    ui.chart(drawn, "task_categories", alt=f"Scores of {chosen} in {len(bars)} categories.")
    ui.table(
        rows_, ("category", "value", "interval", "n_items", "n_clusters", "flags"), "categories"
    )


def _soundness(store: Board, facts: TaskFacts) -> None:
    st.subheader("Is the task itself sound?", anchor=False)
    st.caption(
        "Verdicts of audits are not kept in a store; this makes one, with what the store holds:"
    )
    st.code(f"harness audit {facts.task} --store {store.store.root}", language=None)
    marks = {"lie open on the web": facts.n_public, "carry a canary": facts.n_canary}
    said = [f"{n:,} of {facts.n_items:,} items {what}" for what, n in marks.items() if n]
    st.caption(
        f"Contamination: {'; '.join(said)}." if said else
        "Contamination: no item is marked as open on the web or as carrying a canary."
    )  # fmt: skip
    bare = store.ask(ablations, facts.task, facts.version)
    if bare:
        st.caption("Runs without the data that the questions rest on; above chance hints at leaks:")
        ui.table(bare, ("model", "value", "interval", "n_items", "flags", "run_id"), "ablations")


def _published(store: Board, task: str) -> None:
    rows = store.ask(published, task)
    if not rows:
        return
    st.subheader("Published figures of others", anchor=False)
    st.caption("Not measured here, often asked in another way; in no mean, rank or fit.")
    ui.table(
        rows, ("model", "metric", "figure", "source", "citation", "license", "url", "note"),
        "published",
    )  # fmt: skip
