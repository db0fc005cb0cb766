"""The page Horizon: capability in human minutes against release date, and what that rests on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from leaderboard import ui
from leaderboard.charts.common import AnyChart
from leaderboard.charts.horizon import (
    KINDS,
    HorizonRow,
    TrendRow,
    doubling_sentence,
    horizon_plot,
)
from leaderboard.charts.minutes import minutes_text
from leaderboard.data import Board
from leaderboard.pages.scale import choose_fit
from leaderboard.rows.horizon import Population, population, published
from leaderboard.rows.reference import ATTRIBUTION, LICENSE, SOURCE, published_figures
from leaderboard.rows.scale import NOT_LINKED, FitChoice, fit_choices, fit_command
from leaderboard.ui.markup import plain

_MODELS = ("model", "origin", "released", "minutes", "minutes_interval", "ability", "on_frontier",
           "notes", "license")  # fmt: skip
_BASIS = ("origin", "months", "months_interval", "best", "best_minutes", "best_interval",
          "n_population", "n_dated", "n_frontier", "n_anchors", "link_level", "r2", "verdict",
          "months_method")  # fmt: skip
_HEIGHT = 560
_FIGURES = ("figure_name", "published", "published_interval", "here", "here_interval", "source")


def page() -> None:
    """Draw the page."""
    ui.heading(
        "Horizon",
        "How long the tasks are, in human time, that a model solves, against its release date.",
    )
    board = ui.board()
    known = board.ask(fit_choices)
    if not known:
        ui.empty(
            "No fit is stored, so only published figures are drawn. Own models stand beside them "
            "once they are on a scale.", f"harness fit --store {board.store.root}",
        )  # fmt: skip
    q, populations = _choose(board, known)
    _notices(populations)
    drawn = _choose_drawn(populations, q)
    _plot(drawn, q)
    st.caption(
        "Filled circles: own runs. Filled squares: published answers, fitted here. Hollow diamonds: "
        "published figures, without intervals."
    )
    st.caption(ATTRIBUTION)
    _basis(board, populations, q)
    _models(board, populations if q == 50 else [p for p in populations if p.kind != "published"])
    _figures(board, populations)
    _provenance(board, populations)


def _choose(board: Board, known: Sequence[FitChoice]) -> tuple[int, list[Population]]:
    """Let fit and chance be chosen; give the fit, BRIDGE's newest fit and the published figures."""
    left, right = st.columns([3, 1])
    with right:
        chance = ui.choose(
            "Solved at, in %", ["50", "80"], "q",
            help="For an item of typical discrimination. The 80 % horizon is then the same share of "
            "the 50 % one for all models of a fit.",
        )  # fmt: skip
    q = int(chance or 50)
    ids: list[str] = []
    if known:
        # Own models are what a reader comes for; the reference is drawn beside them anyway.
        own = [fit.fit_id for fit in known if not fit.is_bridge]
        with left:
            chosen = choose_fit(known, own[0] if own else None)
        ids = [chosen.fit_id]
        if not chosen.is_bridge:
            ids += [fit.fit_id for fit in known if fit.is_bridge][:1]
    return q, [*(board.ask(population, fit_id, q) for fit_id in ids), published()]


def _choose_drawn(populations: Sequence[Population], q: int) -> list[Population]:
    """Let populations be hidden, and the frontier be chosen, which then comes first."""
    there = [p for p in populations if p.horizons and (q == 50 or p.kind != "published")]
    names = {p.basis.origin: p for p in there}
    with st.container(horizontal=True):
        hidden = ui.choose_many("Hide", list(names), "hide", placeholder="nothing")
        shown = [p for name, p in names.items() if name not in hidden]
        with_trend = [p.basis.origin for p in shown if p.trend is not None]
        first = ui.choose("Frontier and doubling time of", with_trend, "frontier")
    if q != 50:
        st.caption(
            "The published table has 50 % horizons only, so it is not drawn. Frontier and doubling "
            "time are those of the 50 % horizons: every horizon shrinks by the same factor."
        )
    return sorted(shown, key=lambda p: p.basis.origin != first)


def _notices(populations: Sequence[Population]) -> None:
    for p in populations:
        if p.fit is not None and not p.fit.converged:
            st.error(
                f"NOT CONVERGED: {plain(p.basis.origin)}: these numbers are not to be trusted.",
                icon=":material/error:",
            )
        if p.reason:
            st.info(f"{NOT_LINKED}. The models of this fit have abilities and no human minutes.")


def _plot(drawn: Sequence[Population], q: int) -> None:
    trend = drawn[0].trend if drawn else None
    if drawn and trend is not None:
        basis = drawn[0].basis
        facts = {f"Doubling time, {plain(basis.origin)}": _months(drawn[0])}
        if basis.best is not None and basis.best_minutes is not None:
            facts["Longest H50"] = f"{minutes_text(basis.best_minutes)} ({plain(basis.best)})"
        ui.tiles(facts)
    rows = [row for p in drawn for row in p.horizons]
    notes = [_note(drawn[0])] if trend is not None else []
    if any(p.kind != "own" for p in drawn):
        notes.append(ATTRIBUTION)
    ui.chart(
        partial(
            _chart, rows, trend, probability=q / 100, notes=notes, dark=ui.is_dark(),
        ),
        "horizon",
        alt=f"Horizons of {len(rows)} models over their release dates; "
        + (doubling_sentence(trend) if trend else "no doubling time."),
    )  # fmt: skip


def _chart(
    rows: Sequence[HorizonRow],
    trend: TrendRow | None,
    *,
    probability: float,
    notes: Sequence[str],
    dark: bool,
) -> AnyChart:
    """Draw the chart higher than others: on a page its height holds title and legend too."""
    drawn = horizon_plot(rows, trend, probability=probability, notes=notes, dark=dark)
    found: AnyChart = drawn.properties(height=_HEIGHT) if rows else drawn
    return found


def _note(p: Population) -> str:
    b = p.basis
    r2 = "" if b.r2 is None else f", R² {b.r2:.3f}"
    return (
        f"{b.origin.capitalize()}: {b.n_dated} dated models of {b.n_population}, link "
        f"{b.link_level} on {b.n_anchors} anchors{r2}."
    )


def _months(p: Population) -> str:
    b = p.basis
    if b.months is None:
        return "none found"
    if b.months_lo is None:
        return f"{b.months:.2f} months"
    hi = "without end" if b.months_hi is None else f"{b.months_hi:.2f}"
    return f"{b.months:.2f} months [{b.months_lo:.2f}, {hi}]"


def _basis(board: Board, populations: Sequence[Population], q: int) -> None:
    st.subheader("What the numbers rest on", anchor=False)
    ui.table([p.basis for p in populations], _BASIS, "basis", facts=_facts(board))
    at_levels = [p for p in populations if p.levels]
    if not at_levels:
        return
    st.markdown("**How far the level of the link moves them**" + (", at 50 %" if q != 50 else ""))
    for place, p in zip(st.columns(len(at_levels)), at_levels, strict=True):
        origin = p.basis.origin
        facts = _facts(board) | {"origin": origin, "source": p.basis.source}
        with place:
            st.caption(plain(origin.capitalize()))
            ui.table(
                p.levels, ("link_level", "used", "best_minutes", "months", "notes"),
                f"levels_{p.kind}", facts=facts | {"license": p.basis.license},
            )  # fmt: skip


def _models(board: Board, populations: Sequence[Population]) -> None:
    st.subheader("Models", anchor=False)
    placed = [m for p in populations for m in p.models if m.minutes is not None and m.released]
    undated = [m for p in populations for m in p.models if m.minutes is not None and not m.released]
    left = [m for p in populations for m in p.models if m.minutes is None]
    if placed:
        ui.table(placed, _MODELS, "horizons", facts=_facts(board))
    if undated:
        st.markdown(f"**Without a release date**: {len(undated)}, not in the chart or the frontier")
        columns = [c for c in _MODELS if c != "released"]
        ui.table(undated, columns, "undated", facts=_facts(board), height=8)
    if left:
        st.markdown(
            f"**{NOT_LINKED.partition(':')[0].capitalize()}**: {len(left)}, without minutes"
        )
        ui.table(left, ("model", "origin", "ability", "ability_se", "notes"), "not_linked",
                 facts=_facts(board), height=8)  # fmt: skip


def _figures(board: Board, populations: Sequence[Population]) -> None:
    """Draw the authors' own figures, in a table that nothing else is made from."""
    st.subheader("Published figures", anchor=False)
    beside = None
    for p in populations:
        if p.kind == "fitted" and p.fit is not None and p.fit.link is not None:
            beside = p.fit.link.get("published")
    ui.table(published_figures(beside), _FIGURES, "published_figures", facts=_facts(board))
    if beside is not None:
        st.caption(f"Here: {beside['ours']}. Published: {beside['method']}.")


def _facts(board: Board) -> dict[str, str | None]:
    return {"generation": board.generation}


def _provenance(board: Board, populations: Sequence[Population]) -> None:
    fits = [p.fit for p in populations if p.fit is not None]
    facts = [(f"fit, {p.basis.origin}", p.fit.fit_id) for p in populations if p.fit is not None]
    hashes = [(f"data hash of {fit.fit_id}", fit.data_hash) for fit in fits]
    commits = [(f"git commit of {fit.fit_id}", fit.code_commit) for fit in fits]
    ui.provenance(
        board,
        [
            *facts, *hashes, *commits, (KINDS["published"], f"{SOURCE}, {LICENSE}"),
            ("interval of a horizon", "joint draws of abilities, items and link, 95 %"),
            ("interval of the published doubling time", "frontier points resampled, 2,000 draws"),
        ],
        "\n".join(fit_command(fit, str(board.store.root)) for fit in fits),
    )  # fmt: skip
