"""Pages of scores: the leaderboard, the tasks, the trade-off."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from leaderboard.charts.items import CategoryRow, DifficultyRow, category_bars, difficulty_histogram
from leaderboard.charts.scores import RankRow, ScoreRow, rank_plot, score_plot
from leaderboard.charts.tradeoff import AXES, tradeoff_plot
from leaderboard.rows.board import BoardRow, Standings, TaskVersion, board, labels, task_versions
from leaderboard.rows.model import CategoryScore, category_scores
from leaderboard.rows.subjects import subjects
from leaderboard.rows.task import TaskFacts, ablations, published, task_facts, task_items
from leaderboard.rows.tradeoff import fronted, priced, trade_row
from leaderboard.site.builder import Site
from leaderboard.site.names import file_name
from leaderboard.site.parts import Code, Facts, Heading, Link, Links, Note, Page, Part, make_table
from leaderboard.site.paths import model_path, run_path, task_path

TOP = 40
"""Models in a plot; the tables hold all."""

MOST_ITEMS = 1000
"""Items in the table of a page; the file holds all."""

_RATES = ("error_rate", "error_harness_rate", "timeout_rate", "truncated_rate", "refused_rate",
          "unscored_rate", "unavailable_rate", "no_answer_rate", "open_rate")  # fmt: skip
_BOARD = ("rank", "tier", "model", "variant", "flags", "strategy", "value", "interval", "counted",
          "n_items", "n_tasks", *_RATES, "cost_usd", "latency_ms", "date")  # fmt: skip
_ITEMS = ("item", "category", "cluster", "mean", "difficulty", "n_models", "human_minutes")
_CATEGORIES = ("label", "category", "value", "interval", "n_items", "n_clusters", "flags")
_ABLATIONS = ("model", "value", "interval", "n_items", "flags", "run_id")
_PUBLISHED = ("model", "metric", "figure", "source", "citation", "license", "url", "note")
_TRADE = ("front", "label", "flags", "value", "interval", "bits", "memory_gib", "tokens_per_s",
          "price_usd", "n_items")  # fmt: skip


def chosen_tasks(site: Site) -> list[TaskVersion]:
    """Give what the leaderboard shows: the newest version of each task that has scores."""
    newest = [t for t in task_versions(site.con) if t.newest]
    return [t for t in newest if t.n_models] or newest


def leaderboard(site: Site) -> Standings:
    """Write the page Leaderboard and give its rows."""
    tasks = chosen_tasks(site)
    found = board(site.con, tuple((t.task, t.version) for t in tasks))
    data = site.keep("leaderboard", found.rows)
    columns = [c for c in _BOARD if c != "n_tasks" or len(tasks) > 1]
    parts: list[Part] = [
        Facts(_counts(found.rows, len(tasks))),
        *_order_notes(found.rows),
        make_table(
            found.rows, columns, data, caption="Leaderboard", band="tier", bars=("value",),
            links={"model": _model_link(site)},
        ),
        Heading("Scores with 95 % intervals"),
        *_scores(site, "scores", found.rows),
    ]  # fmt: skip
    if len(tasks) > 1:
        parts += _at_a_glance(site, found, tasks)
    parts += [Heading("Tasks"), Links([(t.label, task_path(t.task, t.version)) for t in tasks])]
    site.page(Page("index.html", "Leaderboard", parts))
    return found


def _counts(rows: Sequence[BoardRow], n_tasks: int) -> list[tuple[str, str]]:
    ranked = [r for r in rows if r.rank_lo is not None]
    first = sum(r.tier == 1 for r in ranked)
    return [("Models", str(sum(not r.baseline for r in rows))), ("Tasks", str(n_tasks)),
            ("Ranked", str(len(ranked))), ("First tier", str(first)),
            ("Runs", str(sum(r.n_runs for r in rows)))]  # fmt: skip


def _order_notes(rows: Sequence[BoardRow]) -> list[Note]:
    ranked = [r for r in rows if r.rank_lo is not None]
    notes = []
    if not ranked:
        notes.append(Note(
            "Nothing is ranked: a rank needs a score on every task, and baselines get none."
        ))  # fmt: skip
    elif len(ranked) > 1 and all(r.tier == 1 for r in ranked):
        notes.append(Note(
            f"The data tell none of these {len(ranked)} models apart: each may have any rank from 1 "
            f"to {len(ranked)}, and the order of the rows says nothing."
        ))  # fmt: skip
    elif len(ranked) > 1:
        notes.append(Note(
            "A thick line parts the tiers; inside a tier the order of the rows says nothing."
        ))  # fmt: skip
    if any(r.baseline for r in rows):
        notes.append(Note("Baselines, in italics, are no models and have no rank."))
    return notes


def _scores(site: Site, name: str, rows: Sequence[BoardRow]) -> list[Part]:
    points = [
        ScoreRow(
            label=label, score=row.value, lo=row.lo, hi=row.hi, n=row.n_items,
            is_baseline=row.baseline, is_partial="partial" in row.flags,
        )
        for label, row in zip(labels(rows), rows, strict=True)
        if row.value is not None
    ]  # fmt: skip
    shown = points[:TOP]
    if not shown:
        return [Note("No model has a score yet.")]
    draw = partial(score_plot, shown, sort=[p.label for p in shown], title=None)
    alt = f"Scores of {len(shown)} models with 95 % intervals; the table has the numbers."
    left_out = [Note(f"The first {TOP} of {len(points)} rows.")] if len(points) > TOP else []
    return [site.chart(name, draw, alt), *left_out]


def _at_a_glance(site: Site, found: Standings, tasks: Sequence[TaskVersion]) -> list[Part]:
    names = labels(found.rows)
    ranks = [
        RankRow(label=name, task=task.label, rank_lo=cell.rank_lo, rank_hi=cell.rank_hi)
        for name, of_model in zip(names, found.cells, strict=True)
        for task, cell in zip(tasks, of_model, strict=True)
        if cell.rank_lo is not None and cell.rank_hi is not None
    ]
    by_model: dict[str, dict[str, Any]] = {rank.label: {"model": rank.label} for rank in ranks}
    for rank in ranks:
        ends = sorted({rank.rank_lo, rank.rank_hi})
        by_model[rank.label][rank.task] = "–".join(map(str, ends))
    if not ranks:
        return []
    for name, of_model in zip(names, found.cells, strict=True):
        for task, cell in zip(tasks, of_model, strict=True):
            site.keep("ranks", [cell], label=name, task=task.task, version=task.version)
    shown = list(by_model)[:TOP]
    draw = partial(
        rank_plot, [r for r in ranks if r.label in shown], sort=shown,
        tasks=[t.label for t in tasks], title=None,
    )  # fmt: skip
    return [
        Heading("Ranks task by task"),
        make_table(
            list(by_model.values()), ["model", *(t.label for t in tasks)], "ranks",
            caption="Rank intervals of each model on each task",
        ),
        site.chart("ranks", draw, "The rank intervals of the table, as bars."),
    ]  # fmt: skip


def tasks(site: Site) -> None:
    """Write the list of tasks, and a page for each with its version."""
    known = task_versions(site.con)
    facts = [_task(site, one) for one in known]
    rows = [
        {"task": f.task, "version": f.version, "n_items": f.n_items, "n_models": one.n_models,
         "metric": f.metric, "license": f.license, "source": f.source}
        for f, one in zip(facts, known, strict=True)
    ]  # fmt: skip
    table = make_table(
        rows, ("task", "version", "n_items", "n_models", "metric", "license", "source"),
        site.keep("tasks", facts), caption="Tasks",
        links={"task": lambda row: task_path(row["task"], row["version"])},
    )  # fmt: skip
    site.page(Page("tasks.html", "Tasks", [table]))


def _task(site: Site, one: TaskVersion) -> TaskFacts:
    facts = task_facts(site.con, one.task, one.version)
    rows = board(site.con, ((one.task, one.version),)).rows
    slug = file_name(f"{one.task} {one.version}")
    of_task = {"task": one.task, "version": one.version}
    items = task_items(site.con, one.task, one.version)
    histogram = partial(
        difficulty_histogram, [DifficultyRow(item=i.item, b=i.difficulty) for i in items],
        measure="log odds of a wrong answer, over the models", title=None,
    )  # fmt: skip
    shown, cut = site.cut(items, MOST_ITEMS, f"task_items/{slug}", "items, hardest first")
    parts: list[Part] = [
        *_task_facts(facts),
        Heading("Results"),
        *_order_notes(rows),
        make_table(
            rows, [c for c in _BOARD if c != "n_tasks"], site.keep("task_results", rows, **of_task),
            caption=f"Results on {one.label}", band="tier", bars=("value",),
            links={"model": _model_link(site)},
        ),
        *_scores(site, f"scores-{slug}", rows),
        *_categories(site, one, rows, slug),
        Heading("Items by difficulty"),
        site.chart(f"items-{slug}", histogram, f"How many of {len(items)} items are how hard.")
        if any(item.mean is not None for item in items)
        else Note("No item has a score of a model yet; baselines are left out here."),
        *cut,
        make_table(
            shown, _ITEMS, site.keep("task_items", items), caption="Items, hardest first"
        ),
        *_soundness(site, facts),
    ]  # fmt: skip
    site.page(
        Page(task_path(one.task, one.version), one.label, parts, facts.benchmark or ""),
        "tasks.html",
    )
    return facts


def _task_facts(facts: TaskFacts) -> list[Part]:
    better = {True: "higher is better", False: "lower is better", None: ""}
    named = {
        "Version": facts.version,
        "Measures": ", ".join(filter(None, (facts.metric, better[facts.higher_is_better]))),
        "Items": f"{facts.n_items:,}", "Clusters": f"{facts.n_clusters:,}",
        "Detectable difference": f"{100 * facts.mde:.1f} points" if facts.mde else "",
        "Licence": facts.license or "not stated", "Items from": facts.source or "not stated",
    }  # fmt: skip
    stated = [("data set, sha256", facts.dataset_sha256 or "not stated"),
              *facts.protocol, *facts.stated]  # fmt: skip
    return [
        Facts([(name, value) for name, value in named.items() if value]),
        Facts(stated, "How it is asked and judged"),
    ]


def _categories(site: Site, one: TaskVersion, rows: Sequence[BoardRow], slug: str) -> list[Part]:
    """Give every model's categories as a table, and the leading one's as bars."""
    scored = [row for row in rows if row.value is not None]
    found: list[CategoryScore] = []
    for label, row in zip(labels(scored), scored, strict=True):
        key = (row.variant_id, row.strategy)
        found += category_scores(site.con, one.task, one.version, label, key)
    if not found:
        return []
    first = found[0].label
    bars = [
        CategoryRow(category=r.category, score=r.value, lo=r.lo, hi=r.hi, n=r.n_items)
        for r in found
        if r.label == first and r.value is not None
    ]
    draw = partial(category_bars, bars, title=f"Scores of {first} by category")
    return [
        Heading("Categories"),
        site.chart(f"categories-{slug}", draw, f"Scores of {first} in {len(bars)} categories."),
        make_table(found, _CATEGORIES, site.keep("categories", found),
                   caption="Scores by category", bars=("value",)),
    ]  # fmt: skip


def _soundness(site: Site, facts: TaskFacts) -> list[Part]:
    marks = {"lie open on the web": facts.n_public, "carry a canary": facts.n_canary}
    said = [f"{n:,} of {facts.n_items:,} items {what}" for what, n in marks.items() if n]
    parts: list[Part] = [
        Heading("Is the task itself sound?"),
        Note(f"Contamination: {'; '.join(said)}." if said else
             "Contamination: no item is marked as open on the web or as carrying a canary."),
        Note("Verdicts of audits are not kept in a store; this makes one:"),
        Code(f"harness audit {facts.task}"),
    ]  # fmt: skip
    bare = ablations(site.con, facts.task, facts.version)
    if bare:
        kept = site.keep("ablations", bare, task=facts.task, version=facts.version)
        parts += [
            Note("Runs without the data that the questions rest on; above chance hints at leaks:"),
            make_table(bare, _ABLATIONS, kept, caption="Runs without the data",
                       links={"run_id": lambda row: run_path(row["run_id"])}),
        ]  # fmt: skip
    others = published(site.con, facts.task)
    if others:
        kept = site.keep("published", others, task=facts.task)
        parts += [
            Heading("Published figures of others"),
            Note("Not measured here, often asked in another way; in no mean, rank or fit."),
            make_table(others, _PUBLISHED, kept, caption="Published figures of others"),
        ]
    return parts


def tradeoff(site: Site, found: Standings) -> None:
    """Write the page Trade-off: one chart and table a price, all on one page."""
    keys = tuple((t.task, t.version) for t in chosen_tasks(site))
    rows = priced(site.con, keys, found.rows)
    parts: list[Part] = []
    for against, axis in AXES.items():
        shown = [r for r in fronted(rows, against) if not r.baseline]
        known = [trade_row(r) for r in shown if getattr(r, against) is not None]
        if not known:
            continue
        draw = partial(tradeoff_plot, known, against, title=None)
        parts += [
            Heading(f"Score against {axis.title}"),
            site.chart(f"tradeoff-{against}", draw, f"Scores against {axis.title}."),
            make_table(
                shown, _TRADE, site.keep("tradeoff", shown, against=against),
                caption=f"Score against {axis.title}", bars=("value",),
            ),
        ]  # fmt: skip
    if not parts:
        parts.append(Note("No model has both a score and a price."))
    site.page(Page(
        "tradeoff.html", "Trade-off", parts,
        "The front: no other is better in score and price at once, by point estimates. A simulated "
        "quantisation has neither memory nor speed: it computes as the full model does.",
    ))  # fmt: skip


def _model_link(site: Site) -> Link:
    """Lead from a row of a board to the model's page."""
    ids = {s.key: s.model_id for s in subjects(site.con)}

    def link(row: dict[str, Any]) -> str | None:
        found = ids.get((row["variant_id"], row["strategy"]))
        return None if found is None else model_path(found)

    return link
