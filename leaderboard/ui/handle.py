"""The one handle on the store that all visitors of a server share."""

from __future__ import annotations

import os
from pathlib import Path

import streamlit as st

from harness.store.layout import DEFAULT, VARIABLE, Store
from leaderboard.data import Board


def board() -> Board:
    """Give the board of ``$HARNESS_STORE``, else ``./results``."""
    return _board(str(Path(os.environ.get(VARIABLE) or DEFAULT).absolute()))


@st.cache_resource(show_spinner=False, max_entries=4)
def _board(root: str) -> Board:
    return Board(Store(Path(root)))
