"""Pages of runs and their samples, and the page About."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from harness.core.errors import StoreError
from harness.store.journal import started
from harness.store.layout import Store
from harness.store.rows import dicts
from harness.store.texts import attempts_with_text
from leaderboard.columns import as_dict
from leaderboard.pages.about import BRIDGE, COUNTING, METHODS, WORDS
from leaderboard.rows.about import licences
from leaderboard.rows.attempt import messages, visible
from leaderboard.rows.runs import (
    RunListRow,
    facts,
    reproduce_command,
    run_list,
    status_counts,
)
from leaderboard.rows.samples import RunInfo, SampleRow, Wanted, rows_of, runs_with_samples
from leaderboard.site.builder import Site
from leaderboard.site.names import file_name
from leaderboard.site.parts import (
    Code,
    Facts,
    Heading,
    Links,
    Note,
    Page,
    Part,
    Prose,
    SamplePart,
    make_table,
)
from leaderboard.site.paths import run_path, samples_path, task_path

SHARD = 100
"""Samples of a page and of a file."""

MOST_ROWS = 1000
"""Samples in the list of a page; the files hold all."""

OPEN_LICENCES = ("Apache-2.0", "CC0-1.0", "CC-BY-4.0", "MIT")
_ALL = ("run_id", "task", "model", "status", "flags", "value", "interval", "counted", "error",
        "error_harness", "timeout", "truncated", "refused", "unscored", "unavailable", "open",
        "cost_usd", "seconds", "started")  # fmt: skip
_LIST = ("item_id", "epoch", "ended", "score", "answer", "reason", "category", "cluster_id",
         "tokens_in", "tokens_out", "latency_s", "cost_usd")  # fmt: skip
_WITHHELD = (
    "The prompts and answers of this task are not shown: only items of our own under an open licence "
    "are passed on here. What the attempts came to is counted above."
)
_TEXTS = ("prompt", "output", "reasoning", "error", "tool_log")


def runs(site: Site) -> list[RunListRow]:
    """Write the list of runs, a page for each, and the samples that may be passed on."""
    found = run_list(site.con)
    may = _may_show(site)
    with_samples = {info.run_id: info for info in runs_with_samples(site.con)}
    for run in found:
        info = with_samples.get(run.run_id)
        _run(site, run, info, shown=info is not None and (run.task, run.version) in may)
    links = {
        "run_id": lambda row: run_path(row["run_id"]),
        "task": lambda row: task_path(row["task"], row["version"]),
    }
    parts: list[Part] = [
        make_table(found, _ALL, site.keep("runs", found), caption="Runs, newest first",
                   links=links, bars=("value",))
    ]  # fmt: skip
    site.page(Page("runs.html", "Runs", parts))
    return found


def withheld_tasks(site: Site) -> list[str]:
    """Name the tasks whose samples are not passed on."""
    may = _may_show(site)
    every = licences(site.con)
    return [f"{t.task} version {t.version}" for t in every if (t.task, t.version) not in may]


def _may_show(site: Site) -> set[tuple[str, str]]:
    """Give the tasks of own items under an open licence: nobody else's questions are passed on."""
    return {
        (t.task, t.version)
        for t in licences(site.con)
        if t.license in OPEN_LICENCES
        and t.source is not None
        and (t.source == "own" or t.source.startswith("data/make/"))
    }


def _run(site: Site, run: RunListRow, info: RunInfo | None, *, shown: bool) -> None:
    counts = status_counts(run)
    named = [
        ("Task", run.task), ("Model", run.model), ("Status", run.status),
        ("Planned", f"{run.n_planned:,}"), ("Reused", f"{run.reused:,}"),
        ("Marks", ", ".join(run.flags)),
    ]  # fmt: skip
    parts: list[Part] = [
        Facts([(name, value) for name, value in named if value]),
        Links([(f"Task {run.task}", task_path(run.task, run.version))]),
        make_table(counts, ("status", "n", "share"),
                   site.keep("statuses", counts, run_id=run.run_id),
                   caption="How the planned attempts ended"),
        Heading("Samples"),
        *(_samples(site, run, info) if shown and info else
          [Note(_WITHHELD if info else "No attempt was made.")]),
        Heading("Provenance"),
        *_provenance(site, run.run_id),
    ]  # fmt: skip
    site.page(Page(run_path(run.run_id), f"Run {run.run_id}", parts), "runs.html")


def _provenance(site: Site, run_id: str) -> list[Part]:
    found = facts(site.store, run_id)
    try:
        first = started(site.store, run_id)
    except StoreError:
        return [
            Note("The journal of this run is not here: what it says of itself cannot be shown.")
        ]
    site.keep(
        "facts", [{"run_id": run_id, "group": f.group, "name": f.name, "value": _said(f.value)}
                  for f in found],
    )  # fmt: skip
    lines = [(f"{fact.group} {fact.name}", _said(fact.value)) for fact in found]
    # Where the store lies on the machine of whoever exports is nobody else's business.
    return [Facts(lines, "Provenance"), Code(reproduce_command(first, Store(Path("results"))))]


def _said(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _samples(site: Site, run: RunListRow, info: RunInfo) -> list[Part]:
    """Write the shards of a run; give the list and the links to them."""
    rows = rows_of(site.con, site.store, info, Wanted(), 0, info.n)
    texts = iter(attempts_with_text(site.con, site.store, run.run_id))
    explained = _explanations(site, run.run_id)
    n_shards = -(-len(rows) // SHARD)
    shards = [(f"{i * SHARD + 1:,} to {min((i + 1) * SHARD, len(rows)):,}",
               samples_path(run.run_id, i)) for i in range(n_shards)]  # fmt: skip
    place = {row.key: i for i, row in enumerate(rows)}
    for i in range(n_shards):
        part = rows[i * SHARD : (i + 1) * SHARD]
        _shard(site, run, i, list(_whole(part, islice(texts, len(part)), explained)), shards)

    def to_sample(row: dict[str, Any]) -> str:
        at = place[row["key"]]
        return f"{samples_path(run.run_id, at // SHARD)}#s{at % SHARD + 1}"

    name = f"samples/{file_name(run.run_id)}-all"
    shown, cut = site.cut(rows, MOST_ROWS, name, "samples, by item")
    return [
        *cut,
        make_table(shown, _LIST, site.keep("samples", rows), caption="Samples",
                   links={"item_id": to_sample}),
        Note("Whole, with prompt and output:"),
        Links(shards),
    ]  # fmt: skip


def _whole(
    rows: Sequence[SampleRow],
    texts: Iterator[dict[str, Any]],
    explained: dict[tuple[str, int], str],
) -> Iterator[dict[str, Any]]:
    """Join rows with their texts: both are ordered by item and repeat."""
    for row, text in zip(rows, texts, strict=True):
        place = (row.item_id, row.epoch)
        if place != (text["item_id"], text["epoch"]):
            raise StoreError(f"the samples of run {row.run_id} changed while they were exported")
        said = {name: text[name] for name in _TEXTS} | {"explanation": explained.get(place)}
        yield as_dict(row) | said


def _explanations(site: Site, run_id: str) -> dict[tuple[str, int], str]:
    """Give what judges and scorers wrote beside the verdicts that stand."""
    paths = [str(path) for path in site.store.texts(run_id)]
    if not paths:
        return {}
    rows = dicts(site.con.execute(
        """
        SELECT item_id, epoch, any_value(explanation) AS explanation
        FROM v_attempts JOIN read_parquet($paths) t ON t.text_id = score_seq
        WHERE run_id = $run AND explanation IS NOT NULL GROUP BY item_id, epoch
        """,
        {"paths": paths, "run": run_id},
    ))  # fmt: skip
    return {(row["item_id"], row["epoch"]): row["explanation"] for row in rows}


def _shard(
    site: Site,
    run: RunListRow,
    i: int,
    samples: list[dict[str, Any]],
    shards: list[tuple[str, str]],
) -> None:
    name = f"samples/{file_name(run.run_id)}-{i + 1:03d}"
    content = {"run_id": run.run_id, "task": run.task, "version": run.version,
               "generation": site.generation, "samples": samples}  # fmt: skip
    site.write(f"data/{name}.json", msgspec.json.encode(content))
    parts: list[Part] = [
        Links([(f"Run {run.run_id}", run_path(run.run_id)), ("JSON", f"data/{name}.json"), *shards])
    ]
    parts += [_sample(sample, f"s{j}") for j, sample in enumerate(samples, 1)]
    title = f"Samples of run {run.run_id}, {shards[i][0]}"
    site.page(Page(f"{name}.html", title, parts, f"{run.task} · {run.model}"), "runs.html")


def _sample(sample: dict[str, Any], anchor: str) -> SamplePart:
    score = sample["score"]
    said = {
        "ended": sample["ended"], "score": None if score is None else f"{score:g}",
        "read as": sample["answer"], "reason": sample["reason"],
        "tokens out": sample["tokens_out"],
    }  # fmt: skip
    texts = [(name, visible(sample[name])) for name in (*_TEXTS, "explanation") if sample[name]]
    turns = messages(sample["prompt"] or "")
    if turns is not None:
        texts = [*((f"prompt, {role}", visible(text)) for role, text in turns),
                 *(text for text in texts if text[0] != "prompt")]  # fmt: skip
    title = f"{sample['item_id']}" + (f", repeat {sample['epoch']}" if sample["epoch"] else "")
    line = " · ".join(f"{k} {visible(str(v))}" for k, v in said.items() if v not in (None, ""))
    return SamplePart(anchor, title, line, texts)


def about(site: Site, withheld: Sequence[str]) -> None:
    """Write the page About."""
    rows = licences(site.con)
    parts: list[Part] = []
    for title, text in (("Words", WORDS), ("What counts", COUNTING), ("Methods", METHODS)):
        parts += [Heading(title), Prose(text)]
    parts += [
        Heading("Data and licences"),
        Prose(BRIDGE),
        make_table(rows, ("task", "version", "license", "source", "dataset_sha256"),
                   site.keep("licences", rows), caption="Licences of the tasks"),
    ]  # fmt: skip
    if withheld:
        parts.append(Note(f"Counts only, no prompts and answers: {', '.join(withheld)}."))
    site.page(Page("about.html", "About", parts, f"Harness {site.version}, Apache-2.0"))
