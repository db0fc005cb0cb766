"""The page Trade-off: scores against bits, memory, speed and cost, with the Pareto front."""

from __future__ import annotations

from contextlib import closing
from functools import partial

import streamlit as st

from leaderboard import ui
from leaderboard.charts.tradeoff import AXES, Against, tradeoff_plot
from leaderboard.data import Board
from leaderboard.rows.board import Tasks, board, task_versions
from leaderboard.rows.tradeoff import TradeoffRow, fronted, priced, trade_row

_AGAINST: dict[str, Against] = {
    "bits": "bits", "memory": "memory_gib", "speed": "tokens_per_s", "cost": "cost_usd",
}  # fmt: skip
_COLUMNS = ("front", "label", "value", "interval", "bits", "memory_gib", "tokens_per_s",
            "price_usd", "n_items", "flags")  # fmt: skip


def page() -> None:
    """Draw the page."""
    ui.heading("Trade-off")
    store = ui.board()
    known = store.ask(task_versions)
    left, right = st.columns(2)
    with left:
        names = ui.choose_many(
            "Tasks", [t.label for t in known], "tasks", placeholder="all tasks",
            help="With several, the mean over them of the models that ran all.",
        )  # fmt: skip
    with right:
        word = ui.choose("Against", list(_AGAINST), "against") or "bits"
    newest = [t for t in known if t.newest]
    chosen = [t for t in known if t.label in names] or [t for t in newest if t.n_models] or newest
    tasks = tuple((t.task, t.version) for t in chosen)
    against = _AGAINST[word]
    rows = fronted(_rows(store, tasks), against) if tasks else []
    if not rows:
        ui.empty("No model has a score on these tasks.", "harness list runs")
        return
    with st.container(horizontal=True):
        zoom = ui.switch("Zoom to the data", "zoom", help="A cut axis makes noise look large.")
        baselines = ui.switch("Baselines", "baselines", help="Mocks; never on the front.")
    shown = [row for row in rows if baselines or not row.baseline]
    _tiles(shown, against)
    drawn = partial(
        tradeoff_plot, [trade_row(row) for row in shown], against, zoom=zoom, dark=ui.is_dark()
    )
    ui.chart(
        drawn, "tradeoff", alt=f"Scores against {AXES[against].title}; the table has them too."
    )
    ui.table(
        shown, _COLUMNS, "tradeoff_rows", bars=("value",), facts={"generation": store.generation}
    )
    st.caption(
        "Speed: tokens of the answers over the time of their calls. Cost: every item of the chosen "
        "tasks once, at the average cost of an item. A simulated quantisation has neither memory "
        "nor speed: it computes as the full model does."
    )
    ui.provenance(
        store,
        [("tasks", ", ".join(f"{t.task} version {t.version}" for t in chosen)),
         ("against", AXES[against].title), ("front", "by point estimates; baselines passed over"),
         ("level", 0.95)],
        f"harness list runs --json --store {store.store.root}",
    )  # fmt: skip


def _rows(store: Board, tasks: Tasks) -> list[TradeoffRow]:
    """Give all rows; the scores are those that the page Leaderboard may have asked for already."""

    def make() -> list[TradeoffRow]:
        with closing(store.connect()) as con:
            return priced(con, tasks, store.ask(board, tasks).rows)

    return store.keep(("tradeoff", tasks), make)


def _tiles(rows: list[TradeoffRow], against: Against) -> None:
    known = [row for row in rows if getattr(row, against) is not None]
    front = [row.label for row in known if row.front]
    ui.tiles({"With a value": f"{len(known)} of {len(rows)}", "On the front": str(len(front))})
