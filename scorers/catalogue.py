"""The scorers that come with the project."""

from __future__ import annotations

from harness.core.registry import Entry

SCORERS: tuple[Entry, ...] = (
    Entry(
        name="number",
        target="scorers.number:number",
        version="1",
        summary="the final number of the answer, compared by value (tolerance=0)",
    ),
    Entry(
        name="choice",
        target="scorers.choice:choice",
        version="1",
        summary="the set of chosen options, or the likeliest one (profile=strict|upstream)",
    ),
    Entry(
        name="exact",
        target="scorers.exact:exact",
        version="1",
        summary="the whole answer equals a reference (ignore_case=no|yes)",
    ),
)
