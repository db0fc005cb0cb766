"""Parts that stand on every page: heading, compact facts, provenance, footer, and empty places."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from leaderboard.data import Board, State

FOOTER = "Script time"
"""How the footer's text begins: a test in a browser waits for it."""

_log = logging.getLogger("leaderboard")


def heading(title: str, line: str = "") -> None:
    """Draw the page's title and one line of what it shows."""
    st.title(title, anchor=False)
    if line:
        st.caption(line)


def tiles(facts: Mapping[str, str]) -> None:
    """Draw a few facts in one compact line that wraps on a phone.

    Plain text, because Streamlit's metric puts an arrow before every second line.
    """
    st.markdown(" · ".join(f"{name} **{value}**" for name, value in facts.items()))


def empty(what: str, command: str = "") -> None:
    """Say that there is nothing to show, why, and what to run."""
    st.info(what)
    if command:
        st.code(command, language=None)


def state_page(state: State) -> None:
    """Draw a page in place of one that needs results, where there are none to read."""
    titles = {
        "missing": "No store yet", "empty": "No runs yet", "waiting": "Nothing published yet",
        "unreadable": "The store cannot be read", "ready": "",
    }  # fmt: skip
    heading(titles[state.kind])
    empty(state.what, state.command)


def provenance(
    board: Board, facts: Sequence[tuple[str, Any]], command: str = "", label: str = "Provenance"
) -> None:
    """Draw the panel of what a page's numbers rest on.

    Parameters
    ----------
    board : Board
        Its generation is always named.
    facts : sequence of (str, object)
        Name and value; those without a value are left out.
    command : str
        The command that makes the numbers again.
    label : str
    """
    with st.expander(label, icon=":material/fingerprint:"):
        lines = [("snapshot", board.generation), ("store", board.store.root), *facts]
        st.markdown("\n".join(
            f"- {name}: `{_plain(value)}`" for name, value in lines if value not in (None, "", [])
        ))  # fmt: skip
        if command:
            st.code(command, language=None)


def footer(started: float, page: str) -> None:
    """Draw the last line: the time that the script took, and the snapshot it read.

    Parameters
    ----------
    started : float
        `time.perf_counter` at the script's beginning.
    page : str
        Its name, for the log.
    """
    seconds = time.perf_counter() - started
    _log.info("page %s: %.3f s", page, seconds)
    st.caption(f"{FOOTER} {seconds:.3f} s")


def _plain(value: Any) -> str:
    return str(value).replace("`", "'").replace("\n", " ")
