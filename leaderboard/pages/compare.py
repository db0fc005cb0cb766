"""The page Compare: two models on the items that both answered, and the answers side by side."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from leaderboard import ui
from leaderboard.charts.flips import FlipRow, flip_plot
from leaderboard.data import Board
from leaderboard.rows.compare import Answer, Compared, Refused, answer, compared
from leaderboard.rows.pairs import Flip
from leaderboard.rows.subjects import Subject, subjects
from leaderboard.ui.markup import plain

_COLUMNS = ("task", "version", "diff", "diff_interval", "p", "p_adj", "test", "mcnemar_p", "mde",
            "n_shared", "n_clusters", "mean_a", "mean_b", "gained", "lost", "only_a", "only_b",
            "flags", "unlike")  # fmt: skip
_FLIPS = ("task", "item", "category", "better", "mean_a", "mean_b")


def page() -> None:
    """Draw the page."""
    ui.heading("Compare")
    store = ui.board()
    known = {s.label: s for s in store.ask(subjects)}
    if len(known) < 2:
        ui.empty(
            "Two models are needed; this store holds "
            f"{len(known) or 'none'}. Run the same task on another one.",
            f"harness run --task gsm8k --model mock:gold --store {store.store.root}",
        )
        return
    names = list(known)
    left, right = st.columns(2)
    with left:
        a = ui.choose("A", names, "a") or names[0]
    with right:
        b = ui.choose("B", names, "b", default=names[1]) or names[1]
    different = ui.switch(
        "Compare also what is not alike", "different",
        help="Runs that were not asked or judged alike; a difference may then come from that.",
    )  # fmt: skip
    if a == b:
        ui.empty("A and B are the same: choose another one.")
        return
    one, two = known[a], known[b]
    found = store.ask(compared, store.store, one, two, different=different)
    _differences(store, found)
    _refused(found.refused, one, two)
    if found.rows:
        _side_by_side(store, found, one, two)
    ui.provenance(
        store,
        [("A", f"{a}, {one.variant_id}, {one.strategy}"),
         ("B", f"{b}, {two.variant_id}, {two.strategy}"), ("level", 0.95),
         ("tests", "paired by item; Holm over the tasks; see the page About")],
        f"harness compare '{one.model}' '{two.model}' --store {store.store.root}",
    )  # fmt: skip


def _differences(store: Board, found: Compared) -> None:
    if not found.rows:
        if not found.refused:
            ui.empty("The two have no task in common.", "harness list runs")
        return
    if found.overall is not None:
        all_ = found.overall
        facts = {"Difference over all tasks": f"{100 * all_.diff:+.1f} points"}
        if all_.lo is not None and all_.hi is not None and all_.p is not None:
            facts["95 % interval"] = f"{100 * all_.lo:+.1f} to {100 * all_.hi:+.1f}"
            facts["p"] = f"{all_.p:.2g}"
        ui.tiles(facts | {"Tasks": str(len(found.rows))})
        st.caption("Each task with the same weight, the tasks held fixed.")
    else:
        row = found.rows[0]
        facts = {"Difference": f"{100 * row.diff:+.1f} points" if row.diff is not None else "none"}
        if row.diff_lo is not None and row.diff_hi is not None:
            facts["95 % interval"] = f"{100 * row.diff_lo:+.1f} to {100 * row.diff_hi:+.1f}"
        if row.p is not None:
            facts["p"] = f"{row.p:.2g} ({row.test})"
        ui.tiles(facts | {"Shared items": f"{row.n_shared:,}"})
    ui.table(found.rows, _COLUMNS, "compare", facts={"generation": store.generation})
    points = [
        FlipRow(
            label=f"{row.task} {row.version}", gained=row.gained, lost=row.lost,
            unchanged=row.n_shared - row.gained - row.lost,
        )
        for row in found.rows
    ]  # fmt: skip
    drawn = partial(flip_plot, points, sort=[p.label for p in points], dark=ui.is_dark())
    ui.chart(drawn, "compare_flips", alt="Items on which A is better, and worse, by task.")


def _refused(refused: Sequence[Refused], one: Subject, two: Subject) -> None:
    if not refused:
        return
    st.subheader("Not compared", anchor=False)
    st.caption(
        f"{one.label} and {two.label} are not alike here: a difference would come from that as well."
    )
    ui.table(refused, ("task", "reasons"), "refused")


def _side_by_side(store: Board, found: Compared, one: Subject, two: Subject) -> None:
    st.subheader("Items on which they differ", anchor=False)
    left, middle, right = st.columns(3)
    with left:
        task = ui.choose("Task", [row.task for row in found.rows], "task")
    with middle:
        which = ui.choose("Better", ["either", "A", "B"], "better")
    flips = [f for f in found.flips if f.task == task and which in ("either", f.better)]
    with right:
        chosen = ui.choose("Item", [f.item for f in flips], "item")
    if chosen is None:
        st.caption("None.")
        return
    ui.table(flips, _FLIPS, "flipped", height=6)
    flip = next(f for f in flips if f.item == chosen)
    sides = [
        store.ask(answer, store.store, side, flip.task, flip.version, flip.item)
        for side in (one, two)
    ]
    _answers(flip, sides, (one, two))


def _answers(flip: Flip, sides: Sequence[Answer | None], who: Sequence[Subject]) -> None:
    prompts = {side.prompt for side in sides if side is not None and side.prompt is not None}
    if len(prompts) == 1:
        with st.expander("Prompt, the same for both", icon=":material/chat:"):
            st.code(prompts.pop(), language=None, wrap_lines=True)
    for column, side, subject, name, score in zip(
        st.columns(2), sides, who, "AB", (flip.mean_a, flip.mean_b), strict=True
    ):
        with column:
            st.markdown(f"**{name}** · score **{100 * score:.0f} %**")
            st.caption(plain(subject.label))
            _answer(side, own_prompt=len(prompts) > 1)


def _answer(side: Answer | None, *, own_prompt: bool) -> None:
    if side is None:
        st.caption("No answer is stored.")
        return
    if own_prompt and side.prompt is not None:
        with st.expander("Prompt", icon=":material/chat:"):
            st.code(side.prompt, language=None, wrap_lines=True)
    if side.output is None:
        st.caption("The text is not in this store.")
    else:
        st.code(side.output or "(empty)", language=None, wrap_lines=True)
    facts = {"Status": side.status, "Read as": side.answer, "Error": side.error}
    st.caption(" · ".join(f"{name}: {plain(value)}" for name, value in facts.items() if value))
    if side.explanation:
        st.caption(plain(side.explanation))
    ui.link("This run", "runs", run=side.run_id)
