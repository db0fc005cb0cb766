"""A table three ways: the grid, plain HTML for keyboards and readers, and files to take away."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from leaderboard.columns import Column, Kind, Row, cells, column, is_filled, text
from leaderboard.exports import table_bytes

if TYPE_CHECKING:
    pass

ROW_PIXELS = 35
TOP = 15
"""Rows that a grid shows before it scrolls."""

_BANDS = ("rgba(0, 114, 178, 0.14)", "")


def table(
    rows: Sequence[Row],
    columns: Sequence[str],
    key: str,
    *,
    export: Sequence[str] | None = None,
    facts: dict[str, Any] | None = None,
    band: str | None = None,
    height: int = TOP,
    select: bool = False,
    grid: str | None = None,
    bars: Sequence[str] = (),
) -> list[int]:
    """Draw rows, with a switch to plain HTML and a menu of downloads.

    Parameters
    ----------
    rows : sequence of Struct or mapping
    columns : sequence of str
        Names in `leaderboard.columns.COLUMNS`, in order; columns that are empty in all rows are left
        out.
    key : str
        Of the widgets; also the name of the files.
    export : sequence of str or None
        Fields in the files; all fields of the rows by default.
    facts : dict or None
        Further columns of the files, the same in every row, such as the snapshot's generation.
    band : str or None
        A field: rows with the same value of it stand on the same ground.
    height : int
        Rows shown before the grid scrolls.
    select : bool
        Let a row be picked.
    grid : str or None
        Key of the grid, where that of the table is not enough: with another one nothing is picked.
    bars : sequence of str
        Score columns drawn as a bar from 0 to 1.

    Returns
    -------
    list of int
        Positions of the picked rows.
    """
    found = cells(rows, columns)
    kept = {name: values for name, values in found.items() if is_filled(name, values)}
    with st.container(horizontal=True, vertical_alignment="center"):
        plain = st.toggle(
            "Plain table", key=f"{key}_plain", bind="query-params",
            help="The same rows as plain HTML: for keyboards, screen readers and copying.",
        )  # fmt: skip
        _downloads(rows, key, export, facts)
    ground = cells(rows, [band])[band] if band else None
    if plain:
        st.html(html_table(kept, ground))
        return []
    picked: Any = st.dataframe(
        _styled(kept, ground),
        column_config={name: _config(column(name), name in bars) for name in kept},
        height=(min(len(rows), height) + 1) * ROW_PIXELS + 3,
        hide_index=True,
        placeholder="–",
        key=grid or f"{key}_grid",
        on_select="rerun" if select else "ignore",
        selection_mode="single-row",
        alt=f"Table of {len(rows)} rows; the switch above shows it as plain HTML.",
    )
    return list(picked["selection"]["rows"]) if select else []


def html_table(kept: dict[str, list[Any]], ground: list[Any] | None = None) -> str:
    """Write columns as a semantic HTML table, everything escaped.

    Parameters
    ----------
    kept : dict of str to list
        Values by column name.
    ground : list or None
        One value a row: a rule is drawn where it changes.

    Examples
    --------
    >>> html_table({"model": ["<a>"]}).count("&lt;a&gt;")
    1
    """
    heads = "".join(
        f'<th scope="col" title="{html.escape(column(name).tooltip())}">'
        f"{html.escape(column(name).title)}</th>"
        for name in kept
    )
    kinds: dict[str, Kind] = {name: column(name).kind for name in kept}
    n = len(next(iter(kept.values()), []))
    lines = []
    for i in range(n):
        first = i > 0 and ground is not None and ground[i] != ground[i - 1]
        row = "".join(
            f"<td{_align(kinds[name])}>{html.escape(text(values[i], kinds[name]))}</td>"
            for name, values in kept.items()
        )
        mark = ' class="next"' if first else ""
        lines.append(f"<tr{mark}>{row}</tr>")
    style = (
        "<style>table.plain{border-collapse:collapse;width:100%;font-size:.9rem}"
        "table.plain th,table.plain td{padding:.25rem .6rem;text-align:left;"
        "border-bottom:1px solid rgba(128,128,128,.3)}"
        "table.plain td.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}"
        "table.plain tr.next td{border-top:3px solid rgba(128,128,128,.8)}"
        "div.plain{overflow-x:auto}</style>"
    )
    return (
        f'{style}<div class="plain"><table class="plain"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _align(kind: Kind) -> str:
    return "" if kind in ("text", "date") else ' class="n"'


def _styled(kept: dict[str, list[Any]], ground: list[Any] | None) -> Any:
    import pandas as pd

    frame = pd.DataFrame(kept)
    if ground is None or len(set(ground)) < 2:
        return frame
    order = {value: i for i, value in enumerate(dict.fromkeys(ground))}
    colours = [_BANDS[order[value] % 2] for value in ground]
    return frame.style.apply(
        lambda _: [f"background-color: {c}" if c else "" for c in colours], axis=0
    )


def _config(what: Column, bar: bool) -> Any:
    kinds: dict[Kind, Callable[..., Any]] = {
        "text": st.column_config.TextColumn,
        "date": st.column_config.DatetimeColumn,
    }
    options: dict[str, Any] = {"help": what.tooltip()}
    if bar:
        return st.column_config.ProgressColumn(
            what.title, format="percent", min_value=0.0, max_value=1.0, **options
        )
    if what.kind in ("score", "share"):
        return st.column_config.NumberColumn(what.title, format="percent", **options)
    if what.kind == "count":
        return st.column_config.NumberColumn(what.title, format="localized", **options)
    if what.kind == "number":
        return st.column_config.NumberColumn(what.title, format="%.3g", **options)
    if what.kind == "date":
        options["format"] = "YYYY-MM-DD HH:mm"
    return kinds[what.kind](what.title, **options)


def _downloads(
    rows: Sequence[Row], key: str, export: Sequence[str] | None, facts: dict[str, Any] | None
) -> None:
    with st.popover("Download", icon=":material/download:", key=f"{key}_download"):
        for form, mime in (
            ("csv", "text/csv"),
            ("parquet", "application/vnd.apache.parquet"),
            ("json", "application/json"),
        ):
            st.download_button(
                form.upper() if form != "parquet" else "Parquet",
                # Made when it is asked for: a page is not slowed by files nobody takes.
                data=partial(table_bytes, rows, form, export, facts),
                file_name=f"{key}.{form}",
                mime=mime,
                key=f"{key}_{form}",
                on_click="ignore",
            )
