"""The page Scale: one fit of item response theory, its verdict, items and models."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from leaderboard import ui
from leaderboard.charts.items import difficulty_histogram
from leaderboard.charts.link import link_plot
from leaderboard.charts.scale import ability_plot, information_plot, item_curves
from leaderboard.data import Board
from leaderboard.rows.reference import ATTRIBUTION, LICENSE, SOURCE
from leaderboard.rows.scale import (
    NOT_LINKED,
    FitChoice,
    Scale,
    ScaleItem,
    fit_choices,
    fit_command,
    flag_counts,
    scale,
)
from leaderboard.ui.markup import plain

TOP = 30
"""Models in the plot of abilities unless all are asked for."""

_FITS = ("fit_id", "source", "method", "n_subjects", "n_questions", "created")
_ITEMS = ("item_name", "difficulty_b", "difficulty_se", "discrimination", "flags", "n_responders", "slope_z",
          "minutes_known", "minutes_hat", "hat_interval")  # fmt: skip
_MODELS = ("model", "ability", "ability_interval", "n_answered", "flags")
_MINUTES = ("h50", "h50_interval", "h80", "h80_interval")


def page() -> None:
    """Draw the page."""
    ui.heading("Scale", "Models and items on one scale: a two-parameter logistic model.")
    board = ui.board()
    known = board.ask(fit_choices)
    if not known:
        ui.empty(
            "No fit is stored. A scale needs several models on the same items.",
            f"harness fit --store {board.store.root}",
        )
        return
    chosen = choose_fit(known)
    found = board.ask(scale, chosen.fit_id)
    _verdict(found)
    if found.is_bridge:
        st.caption(ATTRIBUTION)
    facts = {"generation": board.generation, "fit_id": found.fit.fit_id}
    if found.is_bridge:
        facts |= {"source": SOURCE, "license": LICENSE}
    _models(found, facts)
    _items(found, facts)
    _provenance(board, found)


def choose_fit(known: Sequence[FitChoice], default: str | None = None) -> FitChoice:
    """Let a fit be chosen by its name, which stands in the address, and say what it is of.

    Parameters
    ----------
    known : sequence of FitChoice
        At least one.
    default : str or None
        A name; the first fit where it is None.
    """
    by_id = {fit.fit_id: fit for fit in known}
    chosen = by_id[ui.choose("Fit", list(by_id), "fit", default=default) or known[0].fit_id]
    st.caption(plain(chosen.label))
    if len(known) > 1:
        with st.expander(f"All {len(known)} fits", icon=":material/list:"):
            ui.table(known, _FITS, "fits")
    return chosen


def _verdict(found: Scale) -> None:
    """Say first whether the numbers are to be trusted, and whether they read in minutes."""
    fit = found.fit
    if not fit.converged:
        st.error(
            "NOT CONVERGED: the numbers of this fit are not to be trusted. Fit again with another "
            "method, or with more answers.", icon=":material/error:",
        )  # fmt: skip
    facts = {
        "Verdict": "converged" if fit.converged else "not converged",
        "Models": f"{fit.n_models:,}", "Items": f"{fit.n_items:,}", "Answers": f"{fit.n_cells:,}",
    }  # fmt: skip
    if fit.link is not None and found.link is not None:
        facts["Link"] = f"{fit.link['level']}, {fit.link['n_anchors']} anchors"
        if fit.link["r2"] is not None:
            facts["R²"] = f"{fit.link['r2']:.3f}"
    ui.tiles(facts)
    if found.link is None:
        st.info(f"{NOT_LINKED}. Abilities have no human minutes.")
        if reason := fit.verdict.get("not_linked"):
            st.caption(plain(reason))
    notes = [*fit.verdict["text"].splitlines(), *(fit.link or {}).get("notes", ())]
    with st.expander("What the fit says of itself", icon=":material/rule:"):
        st.markdown("\n".join(f"- {plain(note)}" for note in notes))


def _models(found: Scale, facts: dict[str, str | None]) -> None:
    st.subheader("Models", anchor=False)
    everything = False
    if len(found.abilities) > TOP:
        everything = ui.switch(f"All {len(found.abilities)} models", "all_models")
    shown = found.abilities if everything else found.abilities[:TOP]
    ui.chart(
        partial(
            ability_plot, shown, link=found.link, dark=ui.is_dark(), title=_title(found, "Ability")
        ),
        "abilities",
        alt="Abilities with 95 % intervals; the numbers stand in the table below.",
    )
    columns = [*_MODELS[:3], *(_MINUTES if found.link else ()), *_MODELS[3:]]
    ui.table(found.models, columns, "fit_models", facts=facts)
    ui.chart(
        partial(
            information_plot, found.curves, abilities=found.abilities, link=found.link,
            dark=ui.is_dark(), title=_title(found, "Test information"),
        ),
        "information", alt="How much all items together say about an ability.",
    )  # fmt: skip


def _items(found: Scale, facts: dict[str, str | None]) -> None:
    st.subheader("Items", anchor=False)
    in_minutes = any(row.minutes is not None for row in found.difficulties)
    ui.chart(
        partial(
            difficulty_histogram, found.difficulties, in_minutes=in_minutes, dark=ui.is_dark(),
            title=_title(found, "Difficulty of the items"),
        ),
        "difficulties", alt="How many items there are of each difficulty.",
    )  # fmt: skip
    guessed = sum("prior_only" in item.flags for item in found.items)
    if guessed:
        st.caption(
            f"{guessed:,} of {len(found.items):,} items were answered all right or all wrong: their "
            "difficulty, and so their time, is a guess of the prior."
        )
    _curves(found)
    rows, band, notes = found.timed
    if rows:
        ui.chart(
            partial(
                link_plot, rows, band, notes=notes, dark=ui.is_dark(),
                title=_title(found, "Human minutes against difficulty"),
            ),
            "minutes", alt="Items with known human time over their difficulty, and the link.",
        )  # fmt: skip
    flags = flag_counts(found)
    if flags:
        ui.table(flags, ("flag", "n_flagged", "meaning"), "flags", facts=facts)
    names = [str(flag["flag"]) for flag in flags]
    marked = ui.choose_many("Items with these marks", names, "marks") if names else ()
    shown = [item for item in found.items if not marked or set(marked) & set(item.flags)]
    ui.table(shown, _ITEMS, "fit_items", facts=facts)


def _curves(found: Scale) -> None:
    names = [item.item_name for item in found.items if item.difficulty_b is not None]
    chosen = ui.choose_many(
        "Items in colour", names, "items", placeholder="up to four",
        help="Their curves stand out, and below are links to their samples.",
    )[:4]  # fmt: skip
    ui.chart(
        partial(
            item_curves, found.curves, highlight=chosen, link=found.link, dark=ui.is_dark(),
            title=_title(found, "Item characteristic curves"),
        ),
        "curves", alt="Chance of success over ability, a line an item.",
    )  # fmt: skip
    _samples([item for item in found.items if item.item_name in chosen])


def _samples(items: Sequence[ScaleItem]) -> None:
    """Link to the answers; items of a file have none here."""
    for item in items:
        if item.task is not None:
            label = plain(f"Samples of {item.item_name}")
            ui.link(label, "samples", task=item.task, item=item.item_id)


def _title(found: Scale, title: str) -> str:
    """Give pictures their attribution: they are taken away without the page."""
    return f"{title} (BRIDGE, arXiv 2602.07267, {LICENSE})" if found.is_bridge else title


def _provenance(board: Board, found: Scale) -> None:
    fit = found.fit
    ui.provenance(
        board,
        [
            ("fit", fit.fit_id), ("method", fit.method), ("scores", fit.scores),
            ("parameterisation", fit.parameterisation), ("gauge", fit.gauge),
            ("answers from", fit.source), ("selection", fit.selection),
            ("data hash", fit.data_hash), ("in-sample log loss", fit.log_loss),
            ("intervals of abilities", "normal, ± 1.96 standard errors"),
            ("git commit", fit.code_commit), ("packages", fit.versions), ("seed", fit.seed),
            ("made", f"{fit.created:%Y-%m-%d %H:%M} UTC"), ("seconds", f"{fit.seconds:.2f}"),
        ],
        fit_command(fit, str(board.store.root)),
    )  # fmt: skip
