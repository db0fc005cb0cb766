"""`harness fit --plots DIR`: the pictures of a fit, as PNG and SVG.

The charts are the site's own, imported only where something is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.core.errors import UsageError
from harness.store.fits import StoredFit

_PACKAGES = ("altair", "vl_convert")
_INSTALL = "pip install -e '.[board]' (in the checkout)"


def check_drawing() -> None:
    """Say before a fit starts whether its pictures can be drawn.

    Raises
    ------
    UsageError
        With the command that installs what is missing.
    """
    from importlib.util import find_spec

    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise UsageError(f"--plots needs {' and '.join(missing)}: {_INSTALL}")


def draw(found: StoredFit, folder: Path) -> list[Path]:
    """Draw a fit.

    Parameters
    ----------
    found : StoredFit
    folder : Path
        Is made where it is missing.

    Returns
    -------
    list of Path
        `curves` and `abilities`; with a link to human minutes `minutes`, and with release dates
        `horizon`: each as ``.png`` and ``.svg``.

    Raises
    ------
    UsageError
        A file that cannot be written.
    """
    from leaderboard.charts.saving import save

    return [
        save(chart, folder / f"{name}.{ending}")
        for name, chart in _charts(found)
        for ending in ("png", "svg")
    ]


def _charts(found: StoredFit) -> Iterator[tuple[str, Any]]:
    from leaderboard.charts.horizon import horizon_plot
    from leaderboard.charts.link import link_plot
    from leaderboard.charts.scale import ability_plot, item_curves
    from leaderboard.rows.horizon import population_of
    from leaderboard.rows.scale import ability_rows, item_rows, link_rows, minutes_link

    line = minutes_link(found.fit)
    yield "curves", item_curves(item_rows(found), link=line)
    yield "abilities", ability_plot(ability_rows(found), link=line)
    rows, band, notes = link_rows(found)
    if rows:
        yield "minutes", link_plot(rows, band, notes=notes)
    people = population_of(found)
    if people.trend is not None:
        basis = people.basis
        note = f"{basis.n_dated} dated models of {basis.n_population}, link {basis.link_level}."
        yield "horizon", horizon_plot(people.horizons, people.trend, notes=[note])
