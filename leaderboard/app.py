"""The frame of every page: navigation, the state of the store, errors as words, and the footer.

``leaderboard/script/app.py`` is the script that Streamlit runs; it calls `main`.
"""

from __future__ import annotations

import time
from typing import Literal

import streamlit as st

from harness.core.errors import HarnessError
from leaderboard import ui
from leaderboard.app_pages import PAGES
from leaderboard.ui.markup import plain

# A picture of our own: the browser would fetch a named one from a public server.
ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><g fill="#0072B2">'
    '<rect x="1" y="2" width="14" height="3"/><rect x="1" y="7" width="9" height="3"/>'
    '<rect x="1" y="12" width="5" height="3"/></g></svg>'
)
NEEDS_NO_SNAPSHOT = {"runs", "about"}


def main() -> None:
    """Draw the page that the address asks for, and the footer below it."""
    started = time.perf_counter()
    st.set_page_config(page_title="Harness", page_icon=ICON, layout="wide")
    # Inside another page (`?embed=true`) there is the view and nothing around it.
    position: Literal["hidden", "top"] = "hidden" if st.context.is_embedded else "top"
    # The only rule of our own: Streamlit leaves as much again above the title.
    st.html("<style>.stMainBlockContainer{padding-top:4.5rem}</style>")
    chosen = st.navigation([page.entry() for page in PAGES.values()], position=position)
    name = chosen.url_path or "leaderboard"
    board = ui.board()
    state = board.state()
    if state.kind == "ready" or name in NEEDS_NO_SNAPSHOT:
        try:
            chosen.run()
        except HarnessError as error:
            ui.empty(plain(str(error)))
    else:
        ui.state_page(state)
    ui.footer(started, name)
