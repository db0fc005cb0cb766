"""Figures that others have published for tasks: shown beside a measurement, in no mean and no rank."""

from __future__ import annotations

import tomllib
from functools import cache

import msgspec
from msgspec import Struct

from harness.core.resources import data


class PublishedFigure(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A figure of others.

    Attributes
    ----------
    task, metric : str
        What it is comparable with, as far as it is: the metric of a run's summary.
    who : str
        A model or a group of people.
    value : float
    condition : str
        On what it was measured.
    source, url, license, note : str
    """

    task: str
    metric: str
    who: str
    value: float
    condition: str
    source: str
    url: str
    license: str
    note: str = ""


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    figures: tuple[PublishedFigure, ...]


@cache
def published_figures() -> tuple[PublishedFigure, ...]:
    """Read the project's table of published figures.

    Examples
    --------
    >>> [f.value for f in published_figures() if f.task == "aicrypto/mcq"]
    [0.978]
    """
    text = data("published/tasks.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), _File).figures
