"""Pages of fits: the scale of each, and its horizons beside the published ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from leaderboard.charts.horizon import doubling_sentence, horizon_plot
from leaderboard.charts.items import difficulty_histogram
from leaderboard.charts.link import link_plot
from leaderboard.charts.minutes import minutes_text
from leaderboard.charts.scale import ability_plot, information_plot, item_curves
from leaderboard.rows.horizon import Population, population, published
from leaderboard.rows.reference import ATTRIBUTION, LICENSE, SOURCE, published_figures
from leaderboard.rows.scale import (
    NOT_LINKED,
    FitChoice,
    Scale,
    fit_choices,
    fit_command,
    flag_counts,
    scale,
)
from leaderboard.site.builder import Site
from leaderboard.site.names import file_name
from leaderboard.site.parts import Code, Facts, Heading, Links, Note, Page, Part, make_table
from leaderboard.site.paths import horizon_path, scale_path

TOP = 30
"""Models in the plot of abilities; the table holds all."""
MOST_ITEMS = 1000
"""Items in the table of a page; the file holds all."""

_MODELS = ("model", "flags", "ability", "ability_interval", "h50", "h50_interval", "h80",
           "h80_interval", "n_answered")  # fmt: skip
_ITEMS = ("item_name", "flags", "difficulty_b", "difficulty_se", "discrimination", "n_responders",
          "slope_z", "minutes_known", "minutes_hat", "hat_interval")  # fmt: skip
_HORIZONS = ("model", "origin", "released", "minutes", "minutes_interval", "ability", "on_frontier",
             "notes", "license")  # fmt: skip
_BASIS = ("origin", "months", "months_interval", "best", "best_minutes", "best_interval",
          "n_population", "n_dated", "n_frontier", "n_anchors", "link_level", "r2", "verdict",
          "months_method", "source", "license")  # fmt: skip
_LEVELS = ("link_level", "used", "best_minutes", "months", "notes")
_FIGURES = ("figure_name", "published", "published_interval", "here", "here_interval", "source",
            "license")  # fmt: skip


def scales(site: Site) -> None:
    """Write the list of fits, and the scale of each."""
    fits = fit_choices(site.con)
    for fit in fits:
        _scale(site, scale(site.con, fit.fit_id))
    parts: list[Part] = [Links([(fit.label, scale_path(fit.fit_id)) for fit in fits])]
    if not fits:
        parts = [
            Note("No fit is stored. A scale needs several models on the same items."),
            Code("harness fit"),
        ]
    site.page(Page(
        "scale.html", "Scale", parts, "Models and items on one scale: a two-parameter logistic model."
    ))  # fmt: skip


def _scale(site: Site, found: Scale) -> None:
    fit, slug = found.fit, file_name(found.fit.fit_id)
    facts: dict[str, Any] = {"fit_id": fit.fit_id}
    if found.is_bridge:
        facts |= {"source": SOURCE, "license": LICENSE}
    abilities = partial(
        ability_plot, found.abilities[:TOP], link=found.link, title=_title(found, "Ability")
    )
    information = partial(
        information_plot, found.curves, abilities=found.abilities, link=found.link,
        title=_title(found, "Test information"),
    )  # fmt: skip
    parts: list[Part] = [
        *_verdict(found),
        Heading("Models"),
        site.chart(f"abilities-{slug}", abilities,
                   "Abilities with 95 % intervals; the table has the numbers."),
        make_table(found.models, _MODELS, site.keep("scale_models", found.models, **facts),
                   caption="Models on the scale"),
        site.chart(f"information-{slug}", information,
                   "How much all items together say about an ability."),
        Heading("Items"),
        *_items(site, found, slug, facts),
        Heading("Provenance"),
        *_provenance(found),
    ]  # fmt: skip
    site.page(Page(scale_path(fit.fit_id), f"Scale {fit.fit_id}", parts), "scale.html")


def _verdict(found: Scale) -> list[Part]:
    """Say first whether the numbers are to be trusted, and whether they read in minutes."""
    fit = found.fit
    parts: list[Part] = []
    if not fit.converged:
        parts.append(Note("NOT CONVERGED: the numbers of this fit are not to be trusted.", True))
    named = [
        ("Verdict", "converged" if fit.converged else "not converged"),
        ("Models", f"{fit.n_models:,}"), ("Items", f"{fit.n_items:,}"),
        ("Answers", f"{fit.n_cells:,}"),
    ]  # fmt: skip
    if fit.link is not None and found.link is not None:
        named.append(("Link", f"{fit.link['level']}, {fit.link['n_anchors']} anchors"))
        if fit.link["r2"] is not None:
            named.append(("R²", f"{fit.link['r2']:.3f}"))
    parts.append(Facts(named))
    if found.link is None:
        parts.append(Note(f"{NOT_LINKED}. Abilities have no human minutes.", True))
    if found.is_bridge:
        parts.append(Note(ATTRIBUTION))
    notes = [*fit.verdict["text"].splitlines(), *(fit.link or {}).get("notes", ())]
    parts.append(Facts([("", note) for note in notes], "What the fit says of itself"))
    return parts


def _items(site: Site, found: Scale, slug: str, facts: dict[str, Any]) -> list[Part]:
    in_minutes = any(row.minutes is not None for row in found.difficulties)
    histogram = partial(
        difficulty_histogram, found.difficulties, in_minutes=in_minutes,
        title=_title(found, "Difficulty of the items"),
    )  # fmt: skip
    curves = partial(
        item_curves, found.curves, link=found.link,
        title=_title(found, "Item characteristic curves"),
    )  # fmt: skip
    parts: list[Part] = [
        site.chart(f"difficulties-{slug}", histogram, "How many items there are of each difficulty."),
        site.chart(f"curves-{slug}", curves, "Chance of success over ability, a line an item.",
                   interactive=True),
    ]  # fmt: skip
    rows, band, notes = found.timed
    if rows:
        line = partial(
            link_plot, rows, band, notes=notes,
            title=_title(found, "Human minutes against difficulty"),
        )  # fmt: skip
        parts.append(site.chart(
            f"minutes-{slug}", line, "Items with known human time over their difficulty, and the link."
        ))  # fmt: skip
    flags = flag_counts(found)
    if flags:
        kept = site.keep("scale_flags", flags, **facts)
        parts.append(
            make_table(flags, ("flag", "n_flagged", "meaning"), kept, caption="Marks of the items")
        )
    kept = site.keep("scale_items", found.items, **facts)
    shown, cut = site.cut(
        found.items, MOST_ITEMS, f"scale_items/{slug}", "items, hardest first", **facts
    )
    return [*parts, *cut, make_table(shown, _ITEMS, kept, caption="Items, hardest first")]


def _title(found: Scale, title: str) -> str:
    """Give pictures their attribution: they are taken away without the page."""
    return f"{title} (BRIDGE, arXiv 2602.07267, {LICENSE})" if found.is_bridge else title


def _provenance(found: Scale) -> list[Part]:
    fit = found.fit
    named = {
        "fit": fit.fit_id, "method": fit.method, "scores": fit.scores,
        "parameterisation": fit.parameterisation, "gauge": fit.gauge, "answers from": fit.source,
        "data hash": fit.data_hash, "in-sample log loss": fit.log_loss,
        "intervals of abilities": "normal, ± 1.96 standard errors",
        "git commit": fit.code_commit, "packages": fit.versions, "seed": fit.seed,
        "made": f"{fit.created:%Y-%m-%d %H:%M} UTC",
    }  # fmt: skip
    facts = [(name, str(value)) for name, value in named.items() if value not in (None, "", {})]
    return [Facts(facts, "Provenance"), Code(fit_command(fit, "results"))]


def horizons(site: Site) -> None:
    """Write the published horizons, and a page for each fit with its own beside them."""
    fits = fit_choices(site.con)
    reference = [fit for fit in fits if fit.is_bridge][:1]
    for fit in fits:
        beside = [] if fit.is_bridge else reference
        _horizon(site, [fit, *beside], horizon_path(fit.fit_id), f"Horizon {fit.fit_id}")
    links = [(fit.label, horizon_path(fit.fit_id)) for fit in fits]
    _horizon(site, [], "horizon.html", "Horizon", links)


def _horizon(
    site: Site, fits: Sequence[FitChoice], path: str, title: str,
    links: Sequence[tuple[str, str]] = (),
) -> None:  # fmt: skip
    found = [*(population(site.con, fit.fit_id) for fit in fits), published()]
    parts: list[Part] = [Heading("Fits of this store"), Links(list(links))] if links else []
    if not fits and not links:
        parts.append(Note(
            "No fit is stored, so only published figures are drawn. Own models stand beside them "
            "once they are on a scale."
        ))  # fmt: skip
    for one in found:
        if one.fit is not None and not one.fit.converged:
            parts.append(Note(
                f"NOT CONVERGED: {one.basis.origin}: these numbers are not to be trusted.", True
            ))  # fmt: skip
        if one.reason:
            parts.append(Note(
                f"{NOT_LINKED}. The models of this fit have abilities and no human minutes.", True
            ))  # fmt: skip
    slug = file_name(path)
    parts += [
        *_horizon_plot(site, found, slug),
        Note(ATTRIBUTION),
        Heading("What the numbers rest on"),
        make_table([one.basis for one in found], _BASIS,
                   site.keep("horizon_basis", [one.basis for one in found], page=path),
                   caption="What the numbers rest on"),
        *_levels(site, found, path),
        *_horizon_models(site, found, path),
        Heading("Published figures"),
        *_figures(site, found, path),
    ]  # fmt: skip
    lead = "How long the tasks are, in human time, that a model solves half of the time."
    site.page(Page(path, title, parts, lead), "horizon.html")


def _horizon_plot(site: Site, found: Sequence[Population], slug: str) -> list[Part]:
    drawn = sorted((one for one in found if one.horizons), key=lambda one: one.trend is None)
    trend = drawn[0].trend if drawn else None
    rows = [row for one in drawn for row in one.horizons]
    draw = partial(
        horizon_plot, rows, trend, notes=[ATTRIBUTION], title="Horizon against release date"
    )
    said = doubling_sentence(trend) if trend else "no doubling time."
    parts: list[Part] = []
    if drawn and drawn[0].basis.best_minutes is not None:
        basis = drawn[0].basis
        parts.append(Facts([
            (basis.origin.capitalize(), said),
            ("Longest H50", f"{minutes_text(basis.best_minutes or 0)} ({basis.best})"),
        ]))  # fmt: skip
    alt = f"Horizons of {len(rows)} models over their release dates; {said}"
    return [*parts, site.chart(f"horizon-{slug}", draw, alt)]


def _horizon_models(site: Site, found: Sequence[Population], path: str) -> list[Part]:
    """Give each population a table of its own: published figures stand beside nothing measured."""
    parts: list[Part] = []
    for one in found:
        origin = one.basis.origin
        kept = site.keep("horizons", one.models, page=path)
        parts += [
            Heading(f"Models: {origin}"),
            make_table(one.models, _HORIZONS, kept, caption=f"50 % horizons: {origin}"),
        ]
    return parts


def _levels(site: Site, found: Sequence[Population], path: str) -> list[Part]:
    parts: list[Part] = []
    for one in found:
        if one.levels:
            basis = one.basis
            kept = site.keep(
                "horizon_levels", one.levels, page=path, origin=basis.origin, source=basis.source,
                license=basis.license,
            )  # fmt: skip
            parts += [
                Note(f"How far the level of the link moves them: {basis.origin}."),
                make_table(one.levels, _LEVELS, kept, caption="Sensitivity to the link"),
            ]
    return parts


def _figures(site: Site, found: Sequence[Population], path: str) -> list[Part]:
    """Give the authors' own figures, in a table that nothing else is made from."""
    beside = None
    for one in found:
        if one.kind == "fitted" and one.fit is not None and one.fit.link is not None:
            beside = one.fit.link.get("published")
    rows = published_figures(beside)
    kept = site.keep("published_figures", rows, page=path)
    parts: list[Part] = [make_table(rows, _FIGURES, kept, caption="Published figures")]
    if beside is not None:
        parts.append(Note(f"Here: {beside['ours']}. Published: {beside['method']}."))
    return parts
