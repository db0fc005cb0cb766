"""What the pages are built of: tables, charts, filters, provenance, and words for empty places."""

from leaderboard.ui.chart import chart, is_dark
from leaderboard.ui.handle import board
from leaderboard.ui.links import link
from leaderboard.ui.panels import empty, footer, heading, provenance, state_page, tiles
from leaderboard.ui.table import table
from leaderboard.ui.widgets import choose, choose_many, search_text, switch

__all__ = [
    "board", "chart", "choose", "choose_many", "empty", "footer", "heading", "is_dark", "link",
    "provenance", "search_text", "state_page", "switch", "table", "tiles",
]  # fmt: skip
