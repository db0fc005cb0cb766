"""Pages of models: each by itself, and in pairs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from leaderboard.charts.flips import FlipRow, flip_plot
from leaderboard.rows.board import BoardRow
from leaderboard.rows.compare import Compared, compared
from leaderboard.rows.model import full_of, model_names, model_page
from leaderboard.rows.runs import RunListRow
from leaderboard.rows.subjects import Subject, subjects
from leaderboard.site.builder import Site
from leaderboard.site.names import file_name
from leaderboard.site.parts import Facts, Heading, Links, Note, Page, Part, make_table
from leaderboard.site.paths import compare_path, model_path, run_path, task_path

MOST_FLIPS = 500
"""Items in the table of a comparison; the file holds all."""

_MODELS = ("model_id", "label", "baseline", "backend", "bits", "n_runs")
_VARIANTS = ("label", "backend", "revision", "bits", "weight_gib", "simulated", "strategy",
             "n_runs", "variant_id")  # fmt: skip
_SCORES = ("task", "version", "label", "flags", "value", "interval", "n_items", "n_clusters")
_COST = ("task", "version", "label", "tokens_in", "tokens_out", "cost_usd", "latency_ms",
         "tokens_per_s", "memory_gib")  # fmt: skip
_QUANT = ("task", "version", "label", "full", "diff", "diff_interval", "p", "p_adj", "test",
          "n_shared", "mean_a", "mean_b", "gained", "lost", "mde", "flags")  # fmt: skip
_RUNS = ("run_id", "task", "version", "model", "strategy", "status", "value", "interval",
         "counted", "cost_usd", "seconds", "started", "flags")  # fmt: skip
_COMPARE = ("task", "version", "diff", "diff_interval", "p", "p_adj", "test", "mcnemar_p", "mde",
            "n_shared", "n_clusters", "mean_a", "mean_b", "gained", "lost", "only_a", "only_b",
            "flags", "unlike")  # fmt: skip
_FLIPS = ("task", "item", "category", "better", "mean_a", "mean_b")


def models(site: Site, runs: Sequence[RunListRow]) -> None:
    """Write the list of models, and a page for each."""
    names = model_names(site.con)
    every = subjects(site.con)
    for name in names:
        _model(site, name, [s for s in every if s.model_id == name], runs)
    table = make_table(
        every, _MODELS, site.keep("variants", every), caption="Models and their variants",
        links={"model_id": lambda row: model_path(row["model_id"])},
    )  # fmt: skip
    site.page(Page("models.html", "Models", [table]))


def _model(site: Site, name: str, variants: Sequence[Subject], runs: Sequence[RunListRow]) -> None:
    found = model_page(site.con, name)
    facts = found.facts
    named = {
        "Variants": str(len(found.variants)), "Runs": str(len(found.run_ids)),
        "Family": facts.family or "", "Parameters": f"{facts.params:,}" if facts.params else "",
        "Released": f"{facts.release_date:%Y-%m-%d}" if facts.release_date else "",
        "Licence": facts.license or "", "Source": facts.source or "",
    }  # fmt: skip
    to_task = {"task": lambda row: task_path(row["task"], row["version"])}
    own = {"model": name}
    parts: list[Part] = [Facts([(key, value) for key, value in named.items() if value])]
    if all(variant.baseline for variant in variants):
        parts.append(Note("A baseline: no model gave these answers, and it is never ranked."))
    if any(variant.simulated for variant in variants):
        parts.append(Note(
            "A simulated quantisation computes as the full model does: no memory, no speed."
        ))  # fmt: skip
    scores = site.keep("model_scores", found.scores, **own)
    parts += [
        Heading("Variants and quantisations"),
        make_table(found.variants, _VARIANTS, "variants", caption=f"Variants of {name}"),
        Heading("Scores"),
        make_table(found.scores, _SCORES, scores, caption=f"Scores of {name}", links=to_task,
                   bars=("value",)),
    ]  # fmt: skip
    if found.quantised:
        kept = site.keep("quantised", found.quantised, **own)
        points = [
            FlipRow(
                label=f"{row.task} {row.version} · {row.label} against {row.full}",
                gained=row.gained, lost=row.lost,
                unchanged=row.n_shared - row.gained - row.lost,
            )
            for row in found.quantised
        ]  # fmt: skip
        draw = partial(flip_plot, points, sort=[p.label for p in points], title=None)
        parts += [
            Heading("Quantised against full"),
            make_table(found.quantised, _QUANT, kept, caption="Quantised against full",
                       links=to_task),
            site.chart(f"quantised-{file_name(name)}", draw,
                       "Items that quantised variants gain and lose."),
        ]  # fmt: skip
    own_runs = [run for run in runs if run.run_id in set(found.run_ids)]
    parts += [
        Heading("Cost and speed"),
        make_table(found.scores, _COST, scores, caption=f"Cost and speed of {name}"),
        Heading("Runs"),
        make_table(own_runs, _RUNS, "runs", caption=f"Runs of {name}",
                   links={"run_id": lambda row: run_path(row["run_id"])}),
    ]  # fmt: skip
    site.page(Page(model_path(name), name, parts), "models.html")


def comparisons(site: Site, rows: Sequence[BoardRow]) -> None:
    """Write the comparisons of interest: neighbours on the leaderboard, quantised against full."""
    pairs = _pairs(site, rows)
    links = []
    for a, b in pairs:
        _comparison(site, a, b)
        links.append((f"{a.label} against {b.label}", compare_path(a.label, b.label)))
    parts: list[Part] = [Links(links)] if links else [Note("There are no two models to compare.")]
    site.page(Page(
        "compare.html", "Compare", parts,
        "Neighbours on the leaderboard, and quantised variants against full ones, paired by item.",
    ))  # fmt: skip


def _pairs(site: Site, rows: Sequence[BoardRow]) -> list[tuple[Subject, Subject]]:
    every = subjects(site.con)
    by_key = {s.key: s for s in every}
    ranked = [by_key[r.variant_id, r.strategy] for r in rows if r.rank_lo is not None]
    pairs = list(pairwise(ranked))
    for one in every:
        full = full_of(one, [s for s in every if s.model_id == one.model_id])
        # Its neighbour may be the full one already.
        if (
            not one.full
            and full is not None
            and not {(one.key, full.key), (full.key, one.key)} & {(a.key, b.key) for a, b in pairs}
        ):
            pairs.append((one, full))
    return pairs


def _comparison(site: Site, a: Subject, b: Subject) -> None:
    found = compared(site.con, site.store, a, b)
    sides = {"label_a": a.label, "label_b": b.label}
    kept = site.keep("comparisons", found.rows, **sides)
    parts: list[Part] = [
        Facts([("A", a.label), ("B", b.label), *_overall(found)]),
        Links([(f"A: {a.model_id}", model_path(a.model_id)),
               (f"B: {b.model_id}", model_path(b.model_id))]),
    ]  # fmt: skip
    if found.rows:
        table = make_table(
            found.rows, _COMPARE, kept, caption="Differences by task, A less B",
            links={"task": lambda row: task_path(row["task"], row["version"])},
        )  # fmt: skip
        parts += [Heading("Differences"), table]
    elif not found.refused:
        parts.append(Note("The two have no task in common."))
    if found.refused:
        parts += [
            Heading("Not compared"),
            Note("The two are not alike here: a difference would come from that as well."),
            make_table(found.refused, ("task", "reasons"),
                       site.keep("not_compared", found.refused, **sides), caption="Not compared"),
        ]  # fmt: skip
    if found.flips:
        flips = site.keep("flips", found.flips, **sides)
        slug = file_name(f"{a.label} against {b.label}")
        shown, cut = site.cut(found.flips, MOST_FLIPS, f"flips/{slug}", "items, by task and name")
        parts += [
            Heading("Items on which they differ"),
            *cut,
            make_table(shown, _FLIPS, flips, caption="Items on which the two differ"),
        ]
    title = f"{a.label} against {b.label}"
    site.page(Page(compare_path(a.label, b.label), title, parts), "compare.html")


def _overall(found: Compared) -> list[tuple[str, str]]:
    over = found.overall
    if over is None:
        return []
    facts = [("Difference over all tasks", f"{100 * over.diff:+.1f} points")]
    if over.lo is not None and over.hi is not None:
        facts.append(("95 % interval", f"{100 * over.lo:+.1f} to {100 * over.hi:+.1f}"))
    return facts + ([("p", f"{over.p:.2g}")] if over.p is not None else [])
