"""The pages in their order, found by name: one whose module is missing is not listed."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from streamlit.navigation.page import Page


class PageEntry(Struct, frozen=True):
    """One page.

    Attributes
    ----------
    name : str
        In the address, and of its module in `leaderboard.pages`.
    title : str
    icon : str
        Of the Material set that Streamlit carries.
    """

    name: str
    title: str
    icon: str

    def entry(self) -> Page:
        """Give Streamlit's record of the page; the module is imported when it is opened."""
        import streamlit as st

        return st.Page(
            self._open, title=self.title, icon=self.icon, url_path=self.name,
            default=self.name == "leaderboard",
        )  # fmt: skip

    def _open(self) -> None:
        importlib.import_module(f"leaderboard.pages.{self.name}").page()


_ALL = (
    PageEntry("leaderboard", "Leaderboard", ":material/leaderboard:"),
    PageEntry("task", "Task", ":material/assignment:"),
    PageEntry("model", "Model", ":material/smart_toy:"),
    PageEntry("compare", "Compare", ":material/compare_arrows:"),
    PageEntry("samples", "Samples", ":material/list:"),
    PageEntry("scale", "Scale", ":material/straighten:"),
    PageEntry("horizon", "Horizon", ":material/timeline:"),
    PageEntry("tradeoff", "Trade-off", ":material/balance:"),
    PageEntry("runs", "Runs", ":material/play_circle:"),
    PageEntry("about", "About", ":material/info:"),
)
PAGES = {page.name: page for page in _ALL if find_spec(f"leaderboard.pages.{page.name}")}
