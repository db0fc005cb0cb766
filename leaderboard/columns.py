"""What every column means: one catalogue for tooltips, exports and the static site."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from typing import Any, Literal

import msgspec
from msgspec import Struct

Kind = Literal["text", "count", "score", "share", "number", "date"]
Row = Mapping[str, Any] | Struct


class Column(Struct, frozen=True):
    """One column.

    Attributes
    ----------
    title : str
        Heading.
    help : str
        What it is, for a reader who meets it for the first time.
    kind : str
        How it is written: ``score`` and ``share`` as percent, ``number`` to three digits.
    unit : str
        Empty for plain numbers and texts.
    better : str
        ``high``, ``low`` or empty.
    of : callable or None
        Makes the cell from the whole row where it is no field of it.
    hide_zero : bool
        Left out of a table where it is 0 in every row, as a fault that never happened.
    """

    title: str
    help: str
    kind: Kind = "text"
    unit: str = ""
    better: Literal["", "high", "low"] = ""
    of: Callable[[dict[str, Any]], Any] | None = None
    hide_zero: bool = False

    def tooltip(self) -> str:
        """Write meaning, unit and direction in one line."""
        unit = f" In {self.unit}." if self.unit else ""
        better = {"": "", "high": " Higher is better.", "low": " Lower is better."}[self.better]
        return self.help + unit + better


def rank_text(row: Mapping[str, Any]) -> str:
    """Write a rank interval: ``2–5``, ``1`` where both ends are one, a dash where there is no rank.

    Examples
    --------
    >>> rank_text({"rank_lo": 2, "rank_hi": 5}), rank_text({"rank_lo": None, "rank_hi": None})
    ('2–5', '–')
    """
    lo, hi = row["rank_lo"], row["rank_hi"]
    if lo is None:
        return "–"
    return f"{lo}" if lo == hi else f"{lo}–{hi}"


def interval_text(row: Mapping[str, Any]) -> str:
    """Write a 95 % interval in percent, its ends cut at 0 and 100 for display only.

    Examples
    --------
    >>> interval_text({"value": 0.975, "lo": 0.9465, "hi": 1.0035})
    '94.7 – 100.0'
    """
    lo, hi = row["lo"], row["hi"]
    if lo is None or hi is None:
        return "–"
    if 0 <= (row["value"] or 0) <= 1:
        lo, hi = max(lo, 0.0), min(hi, 1.0)
    return f"{100 * lo:.1f} – {100 * hi:.1f}"


def difference_text(row: Mapping[str, Any]) -> str:
    """Write the interval of a difference in points of percent, with signs.

    Examples
    --------
    >>> difference_text({"diff_lo": -0.0312, "diff_hi": 0.2})
    '−3.1 – +20.0'
    """
    lo, hi = row["diff_lo"], row["diff_hi"]
    if lo is None or hi is None:
        return "–"
    return f"{100 * lo:+.1f} – {100 * hi:+.1f}".replace("-", "−")


def _counted_text(row: Mapping[str, Any]) -> str:
    return f"{row['n_scored']:,} of {row['n_planned']:,}"


def _share(name: str) -> Callable[[dict[str, Any]], float | None]:
    return lambda row: row[name] / row["n_planned"] if row["n_planned"] else None


def _rate(name: str, title: str, what: str) -> Column:
    return Column(title, f"{what} Share of all planned attempts.", "share", better="low",
                  of=_share(name), hide_zero=True)  # fmt: skip


def _between(lo: str, hi: str) -> Callable[[dict[str, Any]], str]:
    """Write an interval to three digits; an end without bound, or not known, as a dash."""

    def of(row: dict[str, Any]) -> str:
        if row[lo] is None and row[hi] is None:
            return "–"
        return f"{text(row[lo], 'number')} – {text(row[hi], 'number')}"

    return of


COLUMNS: dict[str, Column] = {
    "rank": Column(
        "Rank",
        "All ranks that the data leave open: the low end is 1 + the number of models significantly "
        "better, the high end leaves out those significantly worse (paired tests, Holm, 95 % for "
        "all ranks at once). Models with the same interval are not told apart.",
        of=rank_text,
    ),
    "tier": Column(
        "Tier",
        "1 = the leader and every model not told apart from it; then the same among the rest.",
        "count",
    ),
    "rank_lo": Column("Rank, best", "Low end of the rank interval.", "count"),
    "rank_hi": Column("Rank, worst", "High end of the rank interval.", "count"),
    "model": Column("Model", "The model as it was asked for."),
    "variant": Column("Variant", "Precision and quantisation; 'simulated' ones save nothing."),
    "variant_id": Column("Variant id", "The model's whole identity, as a hash."),
    "strategy": Column("Strategy", "How an answer was chosen from one or more outputs."),
    "backend": Column("Backend", "What called the model."),
    "task": Column("Task", "What was asked; its version stands on the page of the task."),
    "version": Column("Version", "Of the task: items of two versions are never mixed."),
    "value": Column("Score", "Mean over the items that count.", "score", better="high"),
    "lo": Column("Score, low", "Low end of the interval of the score.", "score"),
    "hi": Column("Score, high", "High end of the interval of the score.", "score"),
    "interval": Column(
        "95 % interval",
        "Where the score would lie with other items of the same kind, in percent; Wilson's for "
        "right-or-wrong items, else a t interval over clusters. A dash where nothing says how far "
        "scores vary: one cluster, or a task without a score.",
        of=interval_text,
    ),
    "method": Column("Method", "How the interval was made."),
    "level": Column("Level", "Coverage that the interval is made for.", "number"),
    "n_items": Column("Items", "Items that count in the score.", "count"),
    "n_clusters": Column("Clusters", "Groups of items that belong together.", "count"),
    "counted": Column(
        "Scored", "Attempts that were scored, of those planned.", of=_counted_text
    ),
    "n_planned": Column("Planned", "Attempts planned.", "count"),
    "n_scored": Column("Scored", "Attempts with a score of their own.", "count"),
    "n_counted": Column("Counted", "Attempts in the denominator.", "count"),
    "error": Column("Errors", "The model's own errors; they count as wrong.", "count"),
    "error_harness": Column("Faults", "Of harness, engine or network; left out.", "count"),
    "timeout": Column("Timeouts", "Over the time limit; count as wrong.", "count"),
    "truncated": Column("Truncated", "Cut outputs, scored as they stand.", "count"),
    "refused": Column("Refused", "The model declined; counts as wrong.", "count"),
    "unscored": Column("Unscored", "No readable verdict; left out.", "count"),
    "unavailable": Column("Unavailable", "Engine or data missing; left out.", "count"),
    "no_answer": Column("Unparsed", "Answers that could not be read; part of errors.", "count"),
    "open": Column("Open", "Planned and not tried yet.", "count"),
    "error_rate": _rate("error", "Errors", "The model's own errors; they count as wrong."),
    "error_harness_rate": _rate("error_harness", "Faults", "Of harness, engine or network."),
    "timeout_rate": _rate("timeout", "Timeouts", "Over the time limit; counts as wrong."),
    "truncated_rate": _rate("truncated", "Truncated", "Cut outputs, scored as they stand."),
    "refused_rate": _rate("refused", "Refused", "The model declined; counts as wrong."),
    "unscored_rate": _rate("unscored", "Unscored", "No readable verdict; left out."),
    "unavailable_rate": _rate("unavailable", "Unavailable", "Engine or data missing; left out."),
    "no_answer_rate": _rate("no_answer", "Unparsed", "Answers that could not be read."),
    "open_rate": _rate("open", "Open", "Planned and not tried yet."),
    "cost_usd": Column("Cost", "What the calls cost; empty where unknown.", "number", "USD", "low"),
    "tokens_in": Column("Tokens in", "Tokens of the prompts.", "count", better="low"),
    "tokens_out": Column("Tokens out", "Tokens of the answers.", "count", better="low"),
    "latency_ms": Column("Latency", "Median time of a call.", "number", "ms", "low"),
    "bits": Column("Bits", "Bits a weight.", "number", "bits", "low"),
    "n_tasks": Column("Tasks", "Tasks of the chosen set that the model ran.", "count"),
    "date": Column("Date", "When the newest run began, UTC.", "date"),
    "started": Column("Started", "UTC.", "date"),
    "finished": Column("Finished", "UTC.", "date"),
    "seconds": Column("Time", "Wall time.", "number", "s", "low"),
    "status": Column(
        "Status",
        "done; partial: something is open, unavailable or fell to a fault; failed: nothing counted; "
        "unfinished: its end is not written yet; suspect: its journal was changed.",
    ),
    "flags": Column("Marks", "What a reader must know: baseline, partial, few clusters, …"),
    "notes": Column("Notes", "What a reader must know of a number."),
    "run_id": Column("Run", "Name of the run; its random part is enough for every command."),
    "solver": Column("Solver", "How the model was asked."),
    "scorer": Column("Scorer", "What judged the answers."),
    "metric": Column("Metric", "The task's headline."),
    "seed": Column("Seed", "Of the run.", "count"),
    "state": Column(
        "State",
        "running; stopped: no process writes it and its end is missing; ended: to be published; "
        "unknown: this system does not tell who writes it.",
    ),
    "made": Column("Made", "Attempts made so far.", "count"),
    "others": Column("Other", "Attempts that ended otherwise than scored."),
    "a_minute": Column("Speed", "Over the last attempts.", "number", "attempts a minute", "high"),
    "minutes_left": Column("Left", "At that speed.", "number", "min", "low"),
    "last": Column("Last record", "UTC.", "date"),
    "n": Column("Attempts", "How many.", "count"),
    "share": Column("Share", "Of the planned attempts.", "share"),
    "done": Column("Done", "Attempts made, of those planned.", "share"),
    "name": Column("Name", "What is not the same."),
    "license": Column("Licence", "Of the items."),
    "source": Column("Source", "Where the items come from."),
    "dataset_sha256": Column("Data hash", "sha256 of the data set."),
    "group": Column("Group", "What it reaches: the questions, the verdicts, or nothing."),
    "a": Column("A", "In the first."),
    "b": Column("B", "In the second."),
    "label": Column("Model", "Model, precision, quantisation and strategy."),
    "full": Column("Full", "The variant that is not quantised, of the same model and strategy."),
    "revision": Column("Revision", "Of the weights."),
    "simulated": Column(
        "Simulated", "Quantised in simulation: it saves no memory and no time.",
        of=lambda row: "simulated" if row["simulated"] else "",
    ),
    "n_runs": Column("Runs", "How many.", "count"),
    "weight_gib": Column("Weights", "Size of the weights.", "number", "GiB", "low"),
    "memory_gib": Column(
        "Memory", "Highest peak of any call; simulated quantisations have none.", "number", "GiB",
        "low",
    ),
    "tokens_per_s": Column(
        "Speed", "Tokens of the answers over the time of their calls: the speed of one answer; "
        "simulated quantisations have none.", "number", "tokens a second", "high",
    ),
    "front": Column("Front", "No other is better in score and price at once.",
                    of=lambda row: "front" if row["front"] else ""),
    "price_usd": Column("Cost of all items", "Asking every item once, at the average cost of an "
                        "item.", "number", "USD", "low", of=lambda row: row["cost_usd"]),
    "item": Column("Item", "Its name inside the task and version."),
    "category": Column("Category", "Of the items."),
    "cluster": Column("Cluster", "Items that belong together."),
    "human_minutes": Column("Human time", "Time that people need.", "number", "min"),
    "n_models": Column("Models", "Models with a score; baselines left out.", "count"),
    "mean": Column("Mean", "Over the models, each with the same weight.", "score"),
    "difficulty": Column(
        "Difficulty", "Log odds of a wrong answer over the models, half an answer added to both "
        "sides.", "number",
    ),
    "mean_a": Column("Score A", "Of the first, on the shared items.", "score"),
    "mean_b": Column("Score B", "Of the second, on the shared items.", "score"),
    "n_shared": Column("Shared", "Items that count for both.", "count"),
    "only_a": Column("Only A", "Items that count for the first only; left out.", "count"),
    "only_b": Column("Only B", "Items that count for the second only; left out.", "count"),
    "diff": Column("Difference", "Mean difference of the shared items, first less second.", "score"),
    "diff_interval": Column(
        "95 % interval", "Of the difference, in points of percent.", of=difference_text
    ),
    "diff_lo": Column("Difference, low", "Low end of its interval.", "score"),
    "diff_hi": Column("Difference, high", "High end of its interval.", "score"),
    "p": Column("p", "Of 'no difference', two-sided.", "number"),
    "p_adj": Column("p, Holm", "p corrected for the number of rows that are read together.", "number"),
    "test": Column(
        "Test", "mcnemar: exact, right-or-wrong items by themselves; sign-flip: permutation of few "
        "items or clusters; t and cluster-t: many.",
    ),
    "mcnemar_p": Column("p, exact", "Exact McNemar test, for right-or-wrong items; it knows nothing "
                        "of clusters.", "number"),
    "mde": Column("Detectable", "Smallest difference that so many items find, with 80 % power at "
                  "the 5 % level.", "score"),
    "gained": Column("Gained", "Items on which the first is better.", "count"),
    "lost": Column("Lost", "Items on which the second is better.", "count"),
    "better": Column("Better", "Which of the two."),
    "unlike": Column("Not alike", "In what the two differ, though they were compared."),
    "reasons": Column("Why not", "In what the two are not alike."),
    "figure": Column("Figure", "As published, in its own unit.", "number"),
    "citation": Column("Citation", "How to cite it."),
    "url": Column("Address", "Where it stands."),
    "note": Column("Note", "What a reader must know of it."),
    "fit_id": Column("Fit", "Its name: method and hash of what was fitted."),
    "n_subjects": Column("Models", "In the fit.", "count"),
    "n_questions": Column("Items", "In the fit.", "count"),
    "created": Column("Made", "UTC.", "date"),
    "item_name": Column("Item", "Task and name of the item; of a file its name there."),
    "difficulty_b": Column(
        "Difficulty", "b: the ability that solves the item half of the time.", "number"
    ),
    "difficulty_se": Column("± b", "Standard error of the difficulty.", "number"),
    "discrimination": Column(
        "Discrimination", "a: how sharply the item tells models apart near its difficulty.", "number"
    ),
    "log_discrimination_se": Column("± log a", "Standard error of log a.", "number"),
    "n_responders": Column("Answered by", "Models that answered the item.", "count"),
    "slope_z": Column(
        "Slope z", "Free slope over its error: far below 0 where better models do worse.", "number"
    ),
    "minutes_known": Column("Known time", "Human time that the link rests on.", "number", "min"),
    "minutes_hat": Column(
        "Predicted time", "Median human time that the link gives for its difficulty.", "number", "min"
    ),
    "hat_interval": Column(
        "95 % of items", "Where the human time of one item of this difficulty lies, in minutes.",
        of=_between("hat_lo", "hat_hi"),
    ),
    "ability": Column("Ability", "On the scale of its fit; mean 0, SD 1.", "number", better="high"),
    "ability_se": Column("±", "Standard error of the ability.", "number"),
    "ability_interval": Column(
        "95 % interval", "Of the ability.", of=_between("ability_lo", "ability_hi")
    ),
    "h50": Column("H50", "Human time of tasks solved at 50 %.", "number", "min", "high"),
    "h50_interval": Column(
        "H50, 95 %", "Interval of H50, in minutes.", of=_between("h50_lo", "h50_hi")
    ),
    "h80": Column("H80", "Human time of tasks solved at 80 %.", "number", "min", "high"),
    "h80_interval": Column(
        "H80, 95 %", "Interval of H80, in minutes.", of=_between("h80_lo", "h80_hi")
    ),
    "n_answered": Column("Items answered", "By this model.", "count"),
    "flag": Column("Mark", "What an item is marked with."),
    "n_flagged": Column("Items", "With this mark.", "count"),
    "meaning": Column("Meaning", "What the mark says."),
    "origin": Column("From", "Own runs, published answers fitted here, or published figures."),
    "released": Column(
        "Released", "First public release.",
        of=lambda row: row["released"].isoformat() if row["released"] else None,
    ),
    "minutes": Column(
        "Horizon", "Human time of tasks that it solves at the chosen chance.", "number", "min", "high"
    ),
    "minutes_interval": Column(
        "Horizon, 95 %", "Interval of the horizon, in minutes; published figures have none.",
        of=_between("minutes_lo", "minutes_hi"),
    ),
    "on_frontier": Column(
        "Frontier", "Beats all models released before it by more than 0.163 log-minutes.",
        of=lambda row: "yes" if row["on_frontier"] else "",
    ),
    "n_population": Column("Models", "In the population.", "count"),
    "n_dated": Column("Dated", "Models with a release date and a horizon.", "count"),
    "n_frontier": Column("On the frontier", "Models that the doubling time rests on.", "count"),
    "n_anchors": Column("Anchors", "Items (or models) that tie the scale to human time.", "count"),
    "link_level": Column(
        "Link",
        "ols: least squares on difficulties; weighted: by their errors; joint: inside the fit; "
        "models: through models that the published table knows.",
    ),
    "r2": Column("R²", "Of log human minutes on difficulty.", "number"),
    "verdict": Column("Verdict", "Whether the fit has converged."),
    "best": Column("Longest", "Dated model of the longest 50 % horizon."),
    "best_minutes": Column("Longest H50", "Its 50 % horizon.", "number", "min"),
    "best_interval": Column(
        "Longest, 95 %", "Interval of it, in minutes.", of=_between("best_lo", "best_hi")
    ),
    "months": Column("Doubling time", "Of the horizon at the frontier.", "number", "months", "low"),
    "months_interval": Column(
        "Doubling, 95 %", "Interval of the doubling time, in months.",
        of=_between("months_lo", "months_hi"),
    ),
    "months_method": Column("Interval by", "What the interval of the doubling time holds."),
    "used": Column("Used", "The level of the numbers above.",
                   of=lambda row: "yes" if row["used"] else ""),
    "figure_name": Column("Figure", "What was published."),
    "published": Column("Published", "By its authors.", "number"),
    "published_interval": Column(
        "Published, 95 %", "As its authors give it.", of=_between("published_lo", "published_hi")
    ),
    "here": Column("Here", "The same answers, fitted here.", "number"),
    "here_interval": Column("Here, 95 %", "Joint draws.", of=_between("here_lo", "here_hi")),
    "item_id": Column("Item", "Its name inside the task and version."),
    "epoch": Column("Repeat", "Of the item, from 0.", "count"),
    "attempt": Column("Attempt", "Later ones are tries again, or answers used again.", "count"),
    "ended": Column(
        "Ended",
        "How the attempt ended: scored, truncated (scored as it stands), refused, error, timeout, "
        "unscored (no readable verdict) or unavailable (engine or data missing).",
    ),
    "score": Column("Score", "What counts in the mean; empty where left out.", "score",
                    better="high"),
    "answer": Column("Answer", "As the scorer read it from the output; the head of a long one."),
    "reason": Column("Reason", "Why there is no plain verdict."),
    "cluster_id": Column("Cluster", "Items that belong together."),
    "latency_s": Column("Time", "Of the call.", "number", "s", "low"),
    "finish_reason": Column("Finish", "Why the model stopped."),
    "reused_from": Column("Paid in", "Run that made the call, where the answer was used again."),
    "ts": Column("Written", "UTC.", "date"),
    "stands": Column("Stands", "Whether this verdict is the one that counts."),
    "passed": Column("Passed", "The scorer's yes or no."),
    "scorer_version": Column("Scorer version", "Of its rules."),
    "judge": Column("Judge", "Identity of the model that judged."),
    "seq": Column("Record", "Number in the run's journal.", "count"),
    "replaces": Column("Replaces", "Record of the verdict that this one supersedes.", "count"),
    "option": Column("Option", "Its place among those offered, from 0.", "count"),
    "logprob": Column("Log-probability", "Natural log, of the whole option.", "number"),
}  # fmt: skip


def column(name: str) -> Column:
    """Look a column up; one that the catalogue does not know (a task's) is a text of its own name."""
    return COLUMNS.get(name) or Column(name, "")


def is_filled(name: str, values: Iterable[Any]) -> bool:
    """Tell whether a column says anything.

    Examples
    --------
    >>> is_filled("gained", [0, 0]), is_filled("error_rate", [0.0]), is_filled("model", ["", None])
    (True, False, False)
    """
    nothing = (None, "", 0) if column(name).hide_zero else (None, "")
    return any(value not in nothing for value in values)


def as_dict(row: Row) -> dict[str, Any]:
    """Give a row as a dict of its fields."""
    return msgspec.structs.asdict(row) if isinstance(row, Struct) else dict(row)


def cells(rows: Iterable[Row], names: Iterable[str]) -> dict[str, list[Any]]:
    """Give the values of some columns, by column name; lists in a cell become one text.

    Examples
    --------
    >>> cells([{"rank_lo": 1, "rank_hi": 2, "flags": ["partial", "baseline"]}], ["rank", "flags"])
    {'rank': ['1–2'], 'flags': ['partial, baseline']}
    """
    found = [as_dict(row) for row in rows]
    table: dict[str, list[Any]] = {}
    for name in names:
        of = column(name).of
        table[name] = [_flat(of(row) if of else row.get(name)) for row in found]
    return table


def text(value: Any, kind: Kind) -> str:
    """Write one cell for people.

    Examples
    --------
    >>> text(0.4567, "score"), text(1234567, "count"), text(0.00123456, "number"), text(None, "count")
    ('45.7 %', '1,234,567', '0.00123', '–')
    """
    if value is None or value == "":
        return "–"
    if isinstance(value, datetime | date):
        return f"{value:%Y-%m-%d %H:%M}" if isinstance(value, datetime) else f"{value:%Y-%m-%d}"
    if kind in ("score", "share"):
        return f"{100 * value:.1f} %"
    if kind == "count":
        return f"{value:,}"
    if kind == "number":
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return str(value)


def _flat(value: Any) -> Any:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
