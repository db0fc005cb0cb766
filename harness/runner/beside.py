"""A run's figures beside those that others have published for the same task."""

from __future__ import annotations

import re

from msgspec import Struct

from harness.core.published import PublishedFigure, published_figures
from harness.runner.summary import Metric, Summary


class Beside(Struct, frozen=True, kw_only=True):
    """One quantity of one run, as the benchmark's authors report it.

    Attributes
    ----------
    task, model, metric : str
    here : Metric or None
        None where this run cannot have it; `why` says what it would take.
    why : str
    n_counted : int
        Attempts that the figure rests on; the published ones say theirs in `condition`.
    same_items : bool
        The run used the benchmark's own files; figures on our own items are of other questions.
    published : tuple of PublishedFigure
    """

    task: str
    model: str
    metric: str
    here: Metric | None
    why: str
    n_counted: int
    same_items: bool
    published: tuple[PublishedFigure, ...]


def beside_published(summary: Summary, *, same_items: bool) -> list[Beside]:
    """Put a run beside what is published for its task; empty for a baseline, or where nothing is published.

    Parameters
    ----------
    summary : Summary
    same_items : bool
        Whether the run used the benchmark's own files.
    """
    if summary.is_baseline or summary.is_test_model:
        return []
    figures = [figure for figure in published_figures() if figure.task == summary.task]
    rows = []
    for metric in dict.fromkeys(figure.metric for figure in figures):
        here = summary.metrics.get(metric)
        rows.append(
            Beside(
                task=summary.task, model=summary.model, metric=metric, here=here,
                why="" if here and here.value is not None else _missing(metric),
                n_counted=summary.n_counted, same_items=same_items,
                published=tuple(f for f in figures if f.metric == metric),
            )
        )  # fmt: skip
    return rows


def _missing(metric: str) -> str:
    """Say what a run would need to have a metric."""
    repeats = re.fullmatch(r"pass@(\d+)", metric)
    if metric == "scoring_rate":
        return "needs gradings: --judge SPEC"
    return f"needs --epochs {repeats[1]}" if repeats else "no such metric in this run"
