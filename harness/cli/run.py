"""`harness run`: tasks × models, everything checked before the first call."""

from __future__ import annotations

import contextlib
from typing import Annotated, Any

import typer

from harness.backends.base import load, preview
from harness.cli.output import ProgressBar, note, print_json, print_summaries, print_table
from harness.core.errors import HarnessError, UsageError
from harness.core.registry import Entry, expand_tasks
from harness.runner.config import RunConfig, make_config
from harness.runner.lifecycle import StoppedError, carry_out
from harness.runner.plan import make_plan
from harness.runner.summary import Summary
from harness.store.layout import Store

S = typer.Option  # short, since every line below is one


def register(app: typer.Typer, line: str) -> None:
    """Add the verb to the application."""
    app.command("run", help=line)(run)


def run(
    task: Annotated[list[str], S("--task", "-t", help="Task or group; several: a,b or repeated.")],
    model: Annotated[list[str], S("--model", "-m", help="SPEC backend:name?k=v; may be repeated.")],
    limit: Annotated[int | None, S(help="A seeded sample of N items, by item hash.")] = None,
    first: Annotated[int | None, S(help="The first N items (a biased subset).")] = None,
    ids: Annotated[str | None, S(help="Exactly these item ids, comma-separated.")] = None,
    epochs: Annotated[int, S(help="Repeats of each item.")] = 1,
    seed: Annotated[int, S(help="Fixes the sample and every random choice.")] = 0,
    solver: Annotated[str | None, S(help="SPEC instead of the task's solver.")] = None,
    strategy: Annotated[str, S(help="SPEC: how one answer is made of several draws.")] = "sample",
    fewshot: Annotated[int, S(help="Worked examples before each item.")] = 0,
    system: Annotated[str | None, S(help="System turn instead of the task's.")] = None,
    chat_template: Annotated[str, S(help="auto, on or off.")] = "auto",
    arg: Annotated[
        list[str] | None, S("--arg", help="Switch of the task, k=v; repeatable.")
    ] = None,
    no_data: Annotated[bool, S("--no-data", help="Withhold what the question rests on.")] = False,
    temperature: Annotated[float | None, S(help="0 is greedy.")] = None,
    top_p: Annotated[float | None, S(help="Nucleus sampling.")] = None,
    max_tokens: Annotated[int | None, S(help="Longest answer, in tokens.")] = None,
    stop: Annotated[list[str] | None, S("--stop", help="Stop string; repeatable.")] = None,
    dtype: Annotated[str, S(help="auto, fp32, bf16 or fp16.")] = "auto",
    device: Annotated[str, S(help="auto, cpu or cuda.")] = "auto",
    batch_size: Annotated[int | None, S(help="Requests at once; does not change answers.")] = None,
    on_long: Annotated[str, S(help="Prompt too long: error, skip or truncate.")] = "error",
    errors: Annotated[str, S(help="The model's own errors count as: wrong or exclude.")] = "wrong",
    data_root: Annotated[str | None, S(help="Folder with the benchmark's own files.")] = None,
    store: Annotated[str | None, S(help="Where results go [$HARNESS_STORE, ./results].")] = None,
    fresh: Annotated[bool, S("--fresh", help="Call anew where the store has the answer.")] = False,
    dry_run: Annotated[bool, S("--dry-run", help="Plan and check; call nothing.")] = False,
    json: Annotated[bool, S("--json", help="Strict JSON on stdout.")] = False,
) -> int:
    """Run every task on every model; exit code 1 when anything planned stayed open."""
    options = {
        "limit": limit, "first": first, "ids": _ids(ids),
        "epochs": epochs, "seed": seed, "solver": solver, "strategy": strategy,
        "fewshot": fewshot, "system": system,
        "chat_template": chat_template, "args": pairs(arg or []), "no_data": no_data,
        "temperature": temperature, "top_p": top_p, "max_tokens": max_tokens,
        "stop": tuple(stop) if stop else None, "dtype": dtype, "device": device,
        "batch_size": batch_size, "on_long": on_long, "errors": errors, "data_root": data_root,
        "fresh": fresh,
    }  # fmt: skip
    tasks = _runnable(expand_tasks(_split(task)), _split(task), data_root)
    configs = {m: [make_config(task=t.name, model=m, **options) for t in tasks] for m in model}
    if dry_run:
        return _dry_run(configs, json)
    if len(configs) > 1:
        _check(configs)
    return _run_all(configs, store, json)


def _check(configs: dict[str, list[RunConfig]]) -> None:
    """Plan every run before the first: a wrong word for the last must not cost the first ones."""
    for spec, of_model in configs.items():
        with contextlib.closing(preview(spec, of_model[0].load_options())) as model:
            for config in of_model:
                make_plan(config, model)


def _run_all(configs: dict[str, list[RunConfig]], store: str | None, json: bool) -> int:
    """Run everything; what fails was not to be seen before.

    Models are loaded one after the other, so that two large ones never lie in memory together.
    """
    summaries: list[Summary] = []
    try:
        for spec, of_model in configs.items():
            with contextlib.closing(load(spec, of_model[0].load_options())) as backend:
                plans = [make_plan(config, backend) for config in of_model]
                opened = Store.open(store)
                while plans:
                    # A plan is let go when its run is over: big ones need not lie in memory.
                    summaries.append(carry_out(plans.pop(0), opened, ProgressBar()))
    except StoppedError as stop:
        note(f"harness: stopped; what is done is kept. Go on with: {stop.resume}")
        return 1
    _report(summaries, json)
    return 0 if all(s.status == "done" for s in summaries) else 1


def _report(summaries: list[Summary], json: bool) -> None:
    if json:
        print_json({"schema": 1, "runs": summaries})
        return
    print_summaries(summaries)
    for summary in summaries:
        share = summary.counts["truncated"] / max(summary.n_planned, 1)
        if share > 0.01:
            note(
                f"{summary.task} · {summary.model}: {share:.0%} of the answers were cut at the "
                "token limit; raise --max-tokens before reading the score"
            )


def _dry_run(configs: dict[str, list[RunConfig]], json: bool) -> int:
    rows: list[dict[str, Any]] = []
    for spec, of_model in configs.items():
        backend = load(spec, of_model[0].load_options())
        for config in of_model:
            plan = make_plan(config, backend)
            rows.append({
                "task": config.task, "model": spec, "items": len(plan.samples),
                "attempts": plan.n_planned, "solver": str(plan.solver_spec),
                "scorer": str(plan.scorer_spec), "max_tokens": plan.generation.max_tokens,
                "most_new_tokens": plan.n_planned * plan.generation.max_tokens,
                "notes": plan.notes,
            })  # fmt: skip
        backend.close()
    if json:
        print_json({"schema": 1, "plan": rows})
    else:
        columns = [name for name in rows[0] if name != "notes"]
        print_table("Planned; nothing was called", columns, [[r[c] for c in columns] for r in rows])
        for row in rows:
            for text in row["notes"]:
                note(text)
    return 0


def _runnable(entries: list[Entry], asked: list[str], data_root: str | None) -> list[Entry]:
    """Drop a group's tasks that cannot run here, with a line; refuse one asked for by name."""
    kept = []
    for entry in entries:
        state, why = entry.state()
        if state != "unavailable" or (entry.needs_data and data_root):
            kept.append(entry)
        elif entry.name in asked:
            raise HarnessError(f"task {entry.name!r} is unavailable: {why}")
        else:
            note(f"{entry.name} is skipped: {why}")
    if not kept:
        raise HarnessError("nothing to run: every task of the group is unavailable")
    return kept


def _split(values: list[str]) -> list[str]:
    return [part.strip() for value in values for part in value.split(",") if part.strip()]


def _ids(text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    ids = tuple(_split([text]))
    if not ids:
        # An empty variable in a script must not run, and pay for, everything.
        raise UsageError("--ids names no item: write --ids ID[,ID…]")
    return ids


def pairs(values: list[str]) -> dict[str, str]:
    """Read repeated k=v options into a dict."""
    found: dict[str, str] = {}
    for value in values:
        key, equals, rest = value.partition("=")
        if not equals or not key:
            raise UsageError(f"--arg {value!r}: write k=v")
        found[key] = rest
    return found
