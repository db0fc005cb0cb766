"""The page Samples: attempts looked for by what they are and what they say, and one of them whole."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, get_args

import streamlit as st

from harness.core.types import STATUSES
from leaderboard import ui
from leaderboard.data import Board
from leaderboard.exports import table_bytes
from leaderboard.rows.attempt import Attempt, attempt, choices, show_command, visible
from leaderboard.rows.samples import (
    FIELDS,
    PAGE,
    Listed,
    RunInfo,
    SampleRow,
    Verdict,
    Wanted,
    categories,
    every,
    find_key,
    key_of,
    listed,
    neighbours,
    place_of,
    runs_with_samples,
)
from leaderboard.ui import sample as draw
from leaderboard.ui.markup import plain
from leaderboard.ui.picture import facts, pictures

MOST_EXPORTED = 100_000
"""Rows of one file; `harness export results` gives a whole store."""

_COLUMNS = ("task", "model", "item_id", "epoch", "ended", "score", "answer", "reason", "category",
            "cluster_id", "tokens_in", "tokens_out", "latency_s", "cost_usd", "run_id")  # fmt: skip
_SEEN = "_samples_seen"


def page() -> None:
    """Draw the page."""
    ui.heading(
        "Samples", "Every attempt, with what was asked, what came back and how it was judged."
    )
    board = ui.board()
    runs = board.ask(runs_with_samples)
    if not runs:
        ui.empty("No run has made an attempt yet.", "harness list runs")
        return
    scope, wanted = _filters(board, runs)
    _begin_anew(scope, wanted)
    number = _number("page")
    found = _around(board, scope, wanted, number)
    if not _of_page(found, number) and number > 1:
        number = _set_number("page", 1)
        found = _around(board, scope, wanted, number)
    _list(board, scope, wanted, found, number)
    if key := st.query_params.get("key"):
        st.dialog("Sample", width="large", on_dismiss=_close)(_sample)(board, scope, wanted, key)


def _around(board: Board, scope: Sequence[RunInfo], wanted: Wanted, number: int) -> Listed:
    """Read a page of the list, with the row before it and the one after it."""
    return listed(
        board.ask, board.store, scope, wanted, _first(number), PAGE + 2, looks=_number("looks")
    )


def _first(number: int) -> int:
    """Give the position of the first row that `_around` reads."""
    return max(0, (number - 1) * PAGE - 1)


def _of_page(found: Listed, number: int) -> list[SampleRow]:
    """Leave out what `_around` reads beyond the page."""
    before = (number - 1) * PAGE - _first(number)
    return found.rows[before : before + PAGE]


def _filters(board: Board, runs: Sequence[RunInfo]) -> tuple[list[RunInfo], Wanted]:
    """Let runs be chosen, and what their attempts must be."""
    first, second, third, fourth = st.columns(4)
    with first:
        task = ui.choose("Task", ["", *_names(r.task for r in runs)], "task", names=_or_all)
    scope = [r for r in runs if task in ("", None, r.task)]
    with second:
        model = ui.choose("Model", ["", *_names(r.model for r in scope)], "model", names=_or_all)
    scope = [r for r in scope if model in ("", None, r.model)]
    by_id = {r.run_id: r for r in scope}
    with third:
        run = ui.choose(
            "Run", ["", *by_id], "run",
            names=lambda i: f"{by_id[i].task} · {by_id[i].model} · {i[-8:]}" if i else "all",
        )  # fmt: skip
    scope = [by_id[run]] if run else scope
    with fourth:
        text = ui.search_text("Text", "text", help="Part of any of the texts, whatever the case.")
    with st.expander("More filters", icon=":material/filter_list:"):
        one = scope[0] if len({(r.task_id, r.version) for r in scope}) == 1 else None
        known = board.ask(categories, one.task_id, one.version) if one else []
        wanted = _wanted(text, known)
    return scope, wanted


def _wanted(text: str, known: Sequence[str]) -> Wanted:
    first, second, third, fourth = st.columns(4)
    with first:
        statuses = ui.choose_many("Ended", STATUSES, "ended")
        verdict: Any = ui.choose("Verdict", get_args(Verdict), "verdict", names=_or_all)
    with second:
        fields = ui.choose_many("Text in", FIELDS, "in")
        item = ui.search_text("Item", "item", help="Part of its name.")
    with third:
        category = ui.choose(
            "Category", ["", *known], "category", names=_or_all, help="Of one task only."
        )
        cluster = ui.search_text("Cluster", "cluster", help="Its whole name.")
    with fourth:
        score = _range("Score", "score", "0 to 1 in most tasks.")
        tokens = _range("Tokens out", "tokens", "Of the answer.")
        seconds = _range("Seconds", "seconds", "Of the call.")
    return Wanted(
        statuses=statuses, verdict=verdict or "", score_from=score[0], score_to=score[1],
        tokens_from=_whole(tokens[0]), tokens_to=_whole(tokens[1]), seconds_from=seconds[0],
        seconds_to=seconds[1], category=category or "", cluster=cluster, item=item, text=text,
        fields=fields,
    )  # fmt: skip


def _range(label: str, key: str, what: str) -> tuple[float | None, float | None]:
    left, right = st.columns(2)
    low = left.number_input(
        f"{label} from", value=None, key=f"{key}_from", bind="query-params", help=what, step=0.1
    )
    high = right.number_input(
        "to", value=None, key=f"{key}_to", bind="query-params", help=what, step=0.1
    )
    return low, high


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _names(values: Any) -> list[str]:
    from leaderboard.charts.common import natural_key

    return sorted(set(values), key=natural_key)


def _or_all(name: str) -> str:
    return name or "all"


def _begin_anew(scope: Sequence[RunInfo], wanted: Wanted) -> None:
    """Go to the first page when what is looked for is not what it was."""
    now = (tuple(r.run_id for r in scope), wanted)
    if st.session_state.setdefault("_samples_of", now) != now:
        st.session_state["_samples_of"] = now
        _set_number("page", 1)
        _set_number("looks", 1)


def _number(name: str) -> int:
    """Read a number from the address; 1 where there is none."""
    text = st.query_params.get(name, "")
    return max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < 9 else 1


def _set_number(name: str, value: int) -> int:
    """Write a number into the address; 1 is left out."""
    if value > 1:
        st.query_params[name] = str(value)
    elif name in st.query_params:
        del st.query_params[name]
    return value


def _list(
    board: Board, scope: Sequence[RunInfo], wanted: Wanted, found: Listed, number: int
) -> None:
    """Draw a page of the list; a row that is picked opens."""
    more = found.looked < found.n_runs
    rows = _of_page(found, number)
    if not rows:
        ui.empty("No attempt is like that." if not more else (
            f"Nothing in the newest {found.looked} of {found.n_runs} runs."
        ))  # fmt: skip
    else:
        _paging(rows, found.found, number, more)
        picked = ui.table(
            rows, _shown(scope), "samples", select=True, height=16, grid=_grid(scope, wanted, number),
            facts={"generation": board.generation},
        )  # fmt: skip
        if (at := _new_pick(picked)) is not None:
            st.query_params["key"] = rows[at].key
        if found.found > len(rows) or more:
            _all_rows(board, scope, wanted)
    if more and wanted != Wanted():
        st.button(
            "Look through more runs", key="look_on", icon=":material/search:",
            on_click=_look_on,
        )  # fmt: skip


def _grid(scope: Sequence[RunInfo], wanted: Wanted, number: int) -> str:
    """Name the grid: for another list it is another one, where nothing is picked yet."""
    now, state = (tuple(r.run_id for r in scope), wanted, number), st.session_state
    if state.get("_samples_list") != now:
        state["_samples_list"] = now
        state["_samples_grids"] = state.get("_samples_grids", 0) + 1
        state[_SEEN] = []
    return f"samples_grid_{state['_samples_grids']}"


def _new_pick(picked: list[int]) -> int | None:
    """Tell which row was clicked just now; a click on the picked row lets it go, and opens it again."""
    seen, st.session_state[_SEEN] = st.session_state[_SEEN], picked
    return None if picked == seen else [*seen, *picked][-1]


def _shown(scope: Sequence[RunInfo]) -> list[str]:
    """Leave out what is the same in all rows."""
    same = {
        "task": len({r.task for r in scope}) == 1,
        "model": len({r.model for r in scope}) == 1,
        "run_id": len(scope) == 1,
    }
    return [name for name in _COLUMNS if not same.get(name)]


def _paging(rows: Sequence[SampleRow], n_found: int, number: int, more: bool) -> None:
    first = (number - 1) * PAGE + 1
    known = f"at least {n_found:,}" if more else f"{n_found:,}"
    with st.container(horizontal=True, vertical_alignment="center"):
        for label, to, icon, off in (
            ("Previous page", number - 1, ":material/chevron_left:", number == 1),
            ("Next page", number + 1, ":material/chevron_right:",
             first + len(rows) > n_found),
        ):  # fmt: skip
            st.button(
                label, key=f"page_{label[:4]}", icon=icon, disabled=off, on_click=_turn,
                args=(to,),
            )  # fmt: skip
        st.markdown(f"**{first:,} – {first + len(rows) - 1:,}** of {known}")
        by_key = {row.key: row for row in rows}
        st.selectbox(
            "Open", ["", *by_key], key="_open", label_visibility="collapsed",
            format_func=lambda key: _named(by_key.get(key)), on_change=_open_chosen,
        )  # fmt: skip


def _named(row: SampleRow | None) -> str:
    if row is None:
        return "Open a sample …"
    repeat = f" repeat {row.epoch}" if row.epoch else ""
    # Run and task too: the same item stands in the list once a run.
    return f"{row.item_id}{repeat} · {row.ended} · {row.task} · {row.model} · {row.run_id[-8:]}"


def _turn(to: int) -> None:
    _set_number("page", to)


def _look_on() -> None:
    _set_number("looks", _number("looks") + 1)


def _open_chosen() -> None:
    if key := st.session_state["_open"]:
        st.query_params["key"] = key
        st.session_state["_open"] = ""


def _all_rows(board: Board, scope: Sequence[RunInfo], wanted: Wanted) -> None:
    """Draw a menu of files of the whole list."""

    def made(form: str) -> bytes:
        rows = list(every(board.ask, board.store, scope, wanted, MOST_EXPORTED))
        return table_bytes(rows, form, None, {"generation": board.generation})

    with st.popover("Download the whole list", icon=":material/download:", key="whole_list"):
        st.caption(f"All pages, {MOST_EXPORTED:,} rows at most; texts are not in it.")
        for form in ("csv", "parquet", "json"):
            st.download_button(
                form.upper() if form != "parquet" else "Parquet", data=partial(made, form),
                file_name=f"samples-all.{form}", key=f"whole_{form}", on_click="ignore",
            )  # fmt: skip


# --- one sample ---


def _close() -> None:
    if "key" in st.query_params:
        del st.query_params["key"]


def _sample(board: Board, scope: Sequence[RunInfo], wanted: Wanted, key: str) -> None:
    """Draw the sample that the address names; drawn anew by itself when it is another."""
    key = st.query_params.get("key", key)
    place = place_of(key) or place_of(board.ask(find_key, key) or "")
    found = board.ask(attempt, board.store, *place) if place else None
    if place is None or found is None:
        ui.empty(f"There is no sample {plain(visible(key)[:200])} in this store.")
        return
    _moves(board, scope, wanted, place)
    _facts(board, found)
    shown = [f"Pictures ({len(found.pictures)})"] if found.pictures else []
    tabs = iter(st.tabs([
        "Answer", *shown, f"Scores ({len(found.scores)})", f"Turns ({len(found.turns)})", "Facts",
    ]))  # fmt: skip
    with next(tabs):
        _answer(found)
    if found.pictures:
        with next(tabs):
            pictures(found.pictures)
    with next(tabs):
        draw.scores(found.scores)
        if found.facts:
            st.caption("What the verdict rests on:")
            facts(found.facts)
    with next(tabs):
        draw.turns(found.turns)
    with next(tabs):
        _more(found)
    st.caption("The reference is not in the store; this prints the sample with its reference:")
    st.code(show_command(board.store, *place), language=None, wrap_lines=True)


def _moves(
    board: Board, scope: Sequence[RunInfo], wanted: Wanted, place: tuple[str, int, str]
) -> None:
    """Draw the ways to the samples before and after: in the list, else in the run."""
    run_id, epoch, item_id = place
    number = _number("page")
    keys = [row.key for row in _around(board, scope, wanted, number).rows]
    key = key_of(run_id, epoch, item_id)
    if key in keys:
        i = keys.index(key)
        before = keys[i - 1] if i else None
        after = keys[i + 1] if i + 1 < len(keys) else None
        at = _first(number) + i
        where = f"{at + 1:,} of the list"
    else:
        before, after = board.ask(neighbours, run_id, epoch, item_id)
        at, where = None, "of its run"
    with st.container(horizontal=True, vertical_alignment="center"):
        for label, to, step, icon in (
            ("Previous", before, -1, ":material/chevron_left:"),
            ("Next", after, 1, ":material/chevron_right:"),
        ):
            st.button(
                label, key=f"sample_{label}", icon=icon, disabled=to is None, on_click=_go,
                args=(to, None if at is None else (at + step) // PAGE + 1),
                shortcut="Left" if step < 0 else "Right",
            )  # fmt: skip
        st.caption(where)


def _go(key: str, number: int | None) -> None:
    st.query_params["key"] = key
    if number is not None and number != _number("page"):
        _set_number("page", number)
        st.rerun()  # of all: by itself the dialog alone is drawn anew, before the list as it was


def _facts(board: Board, found: Attempt) -> None:
    row = found.row
    run = next((r for r in board.ask(runs_with_samples) if r.run_id == row["run_id"]), None)
    score = "left out" if row["counted"] is None else f"{row['counted']:.4g}"
    draw.lines({
        "Item": row["item_id"], "Repeat": row["epoch"] or None,
        "Task": run.task if run else row["task_id"], "Model": run.model if run else None,
        "Ended": row["status"], "Score": score, "Reason": row["reason"],
        "Answer": row["answer"], "Category": row["category"],
    })  # fmt: skip


def _answer(found: Attempt) -> None:
    """Draw what was asked beside what came back."""
    left, right = st.columns(2)
    with left:
        draw.prompt(found)
        if found.row["prompt_truncated"]:
            st.caption(f"{found.row['prompt_truncated']:,} tokens of it were cut.")
    with right:
        st.markdown("**Output**")
        draw.plain(found.output or "", "output")
        for name, text in (("Reasoning", found.reasoning), ("Error", found.error)):
            if text:
                st.markdown(f"**{name}**")
                draw.plain(text, name.lower(), height=300 if text.count("\n") > 12 else None)
        if found.choice_logprobs:
            st.markdown("**Options**")
            draw.bars(choices(found.choice_logprobs))
        for score in found.standing[:1]:
            st.markdown("**Verdict**")
            draw.lines({
                "Scorer": f"{score.scorer} (version {score.scorer_version})", "Value": score.value,
                "Judge": score.judge,
            })  # fmt: skip
            if score.explanation:
                draw.plain(score.explanation, "explanation")


def _more(found: Attempt) -> None:
    row = found.row
    draw.lines({
        "Run": row["run_id"], "Version": row["version"], "Attempt": row["attempt"],
        "Paid in": row["reused_from"], "Finish": row["finish_reason"],
        "Error kind": row["error_kind"], "Written (UTC)": row["ts"], "Cluster": row["cluster_id"],
        "Key": row["key"] and row["key"].hex,
    })  # fmt: skip
    latency = row["latency_ms"]
    memory = row["peak_mem_bytes"]
    draw.lines({
        "Tokens in": row["tokens_in"], "Tokens out": row["tokens_out"],
        "of these reasoning": row["tokens_reasoning"],
        "Time": None if latency is None else f"{latency / 1000:.3f} s",
        "Cost": None if row["cost_usd"] is None else f"{row['cost_usd']:.6g} USD",
        "Peak memory": None if memory is None else f"{memory / 2**20:.1f} MiB",
        "Isolation": row["isolation"],
        "First prompt tokens": ", ".join(map(str, row["prompt_ids_head"] or ())),
    })  # fmt: skip
    if found.tool_log:
        st.caption("Tools, in short")
        draw.plain(found.tool_log, "tool_log")
    ui.link("This run", "runs", run=row["run_id"])
