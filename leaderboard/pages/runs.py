"""The page Runs: what runs right now, all runs, one run whole, and in what two of them differ."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from harness.core.errors import StoreError
from harness.store.journal import started
from leaderboard import ui
from leaderboard.data import Board
from leaderboard.rows.live import LiveRun, ingested
from leaderboard.rows.runs import (
    RunListRow,
    differences,
    facts,
    reproduce_command,
    resume_command,
    run_list,
    status_counts,
)
from leaderboard.ui.markup import plain

SECONDS = 3.0
"""Between two looks at the journals."""

_LIVE = ("run_id", "task", "model", "state", "done", "made", "n_planned", "value", "interval",
         "others", "a_minute", "minutes_left", "last")  # fmt: skip
_ALL = ("run_id", "task", "model", "status", "value", "interval", "counted", "error",
        "error_harness", "timeout", "truncated", "refused", "unscored", "unavailable", "open",
        "cost_usd", "seconds", "started", "flags")  # fmt: skip


def page() -> None:
    """Draw the page."""
    ui.heading("Runs")
    board = ui.board()
    state = board.state()
    if state.kind in ("missing", "empty"):
        ui.empty(state.what, state.command)
    _live(board, _shown(board, state.kind))
    if state.kind == "unreadable":
        ui.empty(state.what)
    if state.kind != "ready":
        return
    runs = board.ask(run_list)
    if not runs:
        return
    st.subheader("All runs", anchor=False)
    ui.table(runs, _ALL, "runs", bars=("value",), facts={"generation": board.generation})
    _one(board, runs)


def _shown(board: Board, kind: str) -> tuple[str, str | None]:
    """Name what a page shows: it is to be drawn again when this is another."""
    return kind, None if kind == "unreadable" else board.generation


@st.fragment(run_every=SECONDS)
def _live(board: Board, drawn: tuple[str, str | None]) -> None:
    """Draw the runs that the snapshot does not show whole; drawn anew by itself.

    `drawn` is what the rest of the page shows: the state of the store and its generation.
    """
    kind = board.state().kind
    if _shown(board, kind) != drawn:
        st.rerun()
    known = board.ask(ingested) if kind == "ready" else {}
    runs = board.tails.look(known)
    going = [run for run in runs if run.state in ("running", "unknown")]
    st.subheader(f"Running now: {len(going) or 'none'}", anchor=False)
    if not runs:
        st.caption("No run is going on. One that is started shows here within seconds, by itself.")
        return
    ui.table(runs, _LIVE, "live", bars=("value", "done"))
    reading = [run for run in runs if run.read < 1]
    if reading:
        st.caption(f"{len(reading)} journals are still being read; numbers will grow.")
    _stopped(board, runs)


def _stopped(board: Board, runs: Sequence[LiveRun]) -> None:
    stopped = [run for run in runs if run.state == "stopped"]
    if stopped:
        st.caption("Stopped before their end; this goes on with what is missing:")
        st.code(
            "\n".join(resume_command(board.store, run.run_id) for run in stopped), language=None
        )


def _one(board: Board, runs: Sequence[RunListRow]) -> None:
    """Draw one run whole, and beside another."""
    st.subheader("One run", anchor=False)
    by_id = {run.run_id: run for run in runs}

    def named(run_id: str) -> str:
        run = by_id[run_id]
        return f"{run.task} · {run.model} · {run_id.rpartition('-')[2]}"

    left, right = st.columns(2)
    with left:
        chosen = ui.choose("Run", list(by_id), "run", names=named)
    with right:
        others = ["", *(i for i in by_id if i != chosen)]
        other = ui.choose(
            "Differs from", others, "with", names=lambda i: named(i) if i else "choose a run"
        )
    if chosen is None:
        return
    run = by_id[chosen]
    ui.tiles({"Status": run.status, "Planned": f"{run.n_planned:,}", "Reused": f"{run.reused:,}"})
    if other:
        _difference(board, chosen, other)
    ui.table(status_counts(run), ("status", "n", "share"), "statuses")
    if (
        run.status in ("partial", "failed", "unfinished")
        and run.open + run.error_harness + run.unavailable
    ):
        st.caption("Something is left open; this goes on with it:")
        st.code(resume_command(board.store, chosen), language=None)
    ui.link("Samples of this run", "samples", run=chosen)
    _provenance(board, chosen)


def _difference(board: Board, a: str, b: str) -> None:
    try:
        rows = board.ask(differences, board.store, a, b)
    except StoreError as error:
        ui.empty(f"The two cannot be compared: {plain(str(error))}")
        return
    st.caption(f"What is not the same in A, {a}, and B, {b}:")
    ui.table(rows, ("group", "name", "a", "b"), "difference")


def _provenance(board: Board, run_id: str) -> None:
    found = facts(board.store, run_id)
    if not found:
        st.caption("The journal of this run is not here: what it says of itself cannot be shown.")
        return
    ui.provenance(
        board,
        [(f"{fact.group} {fact.name}", fact.value) for fact in found],
        reproduce_command(started(board.store, run_id), board.store),
    )
