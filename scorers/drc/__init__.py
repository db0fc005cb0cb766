"""Decks of design rules, judged by running them: engines, verdict, pictures, figures of pools."""

from scorers.drc.deck import extract_deck
from scorers.drc.pools import pool_figures
from scorers.drc.results import DeckRun, LayoutRun, Marker, UnsupportedError
from scorers.drc.scorer import DrcScorer, drc, make_engine, missing_engine
from scorers.drc.verdict import Verdict, verdict

__all__ = [
    "DeckRun", "DrcScorer", "LayoutRun", "Marker", "UnsupportedError", "Verdict", "drc", "extract_deck",
    "make_engine", "missing_engine", "pool_figures", "verdict",
]  # fmt: skip
