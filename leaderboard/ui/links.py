"""Links from page to page, with what the other page is to show."""

from __future__ import annotations

import streamlit as st

from leaderboard.app_pages import PAGES


def link(label: str, page: str, **parameters: str) -> None:
    """Draw a link to another page; nothing where this installation has no such page.

    Parameters
    ----------
    label : str
    page : str
        Its name in the address, such as ``model``.
    **parameters : str
        Values of its widgets, by their keys.
    """
    if page in PAGES:
        st.page_link(PAGES[page].entry(), label=label, query_params=parameters or None)
