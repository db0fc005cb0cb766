"""`harness run`: tasks × models, everything checked before the first call."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from harness.backends.base import LoadOptions, load, preview
from harness.cli.dry_run import dry_run as plan_only
from harness.cli.jobs import Job, grouped, make_jobs
from harness.cli.output import ProgressBar, note, print_beside, print_json, print_summaries
from harness.cli.suite import KEYS, suite_jobs
from harness.runner.adaptive_bank import task_bank
from harness.runner.beside import Beside, beside_published
from harness.runner.inspect import unavailable
from harness.runner.lifecycle import StoppedError, carry_out
from harness.runner.plan import make_plan
from harness.runner.summary import Summary
from harness.store.layout import Store

S = typer.Option  # short, since every line below is one
Groups = dict[tuple[str, LoadOptions], list[Job]]
_REASONS = 3  # shown of why items could not be asked


def register(app: typer.Typer, line: str) -> None:
    """Add the verb to the application."""
    app.command("run", help=line)(run)


def run(
    ctx: typer.Context,
    task: Annotated[
        list[str] | None, S("--task", "-t", help="Task or group; several: a,b or repeated.")
    ] = None,
    model: Annotated[
        list[str] | None, S("--model", "-m", help="SPEC backend:name?k=v; may be repeated.")
    ] = None,
    suite: Annotated[
        Path | None, S("--suite", "-c", help="TOML file of runs; options here override it.")
    ] = None,
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
    max_connections: Annotated[int | None, S(help="Requests to a server at once [16].")] = None,
    rpm: Annotated[int | None, S(help="Requests to a server a minute, at most.")] = None,
    timeout: Annotated[float | None, S(help="Seconds for one request to a server [600].")] = None,
    on_long: Annotated[str, S(help="Prompt too long: error, skip or truncate.")] = "error",
    sandbox: Annotated[
        str, S(help="Around its programs: auto, full, userns, unshare, limits or container.")
    ] = "auto",
    errors: Annotated[str, S(help="The model's own errors count as: wrong or exclude.")] = "wrong",
    data_root: Annotated[str | None, S(help="Folder with the benchmark's own files.")] = None,
    data: Annotated[str | None, S(help="A data set, hub:ID@REV or hub:DIR.")] = None,
    store: Annotated[str | None, S(help="Where results go [$HARNESS_STORE, ./results].")] = None,
    fresh: Annotated[bool, S("--fresh", help="Call anew where the store has the answer.")] = False,
    judge: Annotated[
        list[str] | None, S(help="Model SPEC for tasks that a model judges; several: a,b.")
    ] = None,
    max_cost: Annotated[float | None, S(help="Stop at so many US dollars.")] = None,
    max_time: Annotated[float | None, S(help="Stop after so many seconds.")] = None,
    max_total_tokens: Annotated[int | None, S(help="Stop at so many tokens, in and out.")] = None,
    adaptive: Annotated[
        bool, S("--adaptive", help="Ask only the items that tell most, from an item bank.")
    ] = False,
    se: Annotated[
        float | None, S(help="Adaptive: stop at this standard error of ability [0.2].")
    ] = None,
    max_items: Annotated[int | None, S(help="Adaptive: stop at so many items.")] = None,
    bank: Annotated[
        str | None, S(help="Adaptive: bank, by name or .json file [newest that has the task].")
    ] = None,
    dry_run: Annotated[bool, S("--dry-run", help="Plan and check; call nothing.")] = False,
    json: Annotated[bool, S("--json", help="Strict JSON on stdout.")] = False,
) -> int:
    """Run every task on every model; exit code 1 when anything planned stayed open."""
    # Whatever the signature adds to a run's options is read here, in one place.
    asked = {name: value for name, value in locals().items() if name in KEYS}
    if suite is None:
        jobs = make_jobs(asked)
    else:
        jobs = suite_jobs(suite, {k: v for k, v in asked.items() if _is_given(ctx, k)})
    groups = grouped(jobs)
    if dry_run:
        return plan_only(groups, json)
    if len(groups) > 1:
        _check(groups)
    return _run_all(groups, json)


def _is_given(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _check(groups: Groups) -> None:
    """Plan every run before the first: a wrong word for the last must not cost the first ones."""
    for (spec, options), jobs in groups.items():
        with contextlib.closing(preview(spec, options)) as model:
            for job in jobs:
                plan = make_plan(job.config, model)
                if plan.config.adaptive:
                    task_bank(plan, Store.open(job.store))


def _run_all(groups: Groups, json: bool) -> int:
    """Run everything; what fails was not to be seen before.

    Models are loaded one after the other, so that two large ones never lie in memory together.
    """
    summaries: list[Summary] = []
    beside: list[Beside] = []
    code = 0
    try:
        for (spec, options), jobs in groups.items():
            if _all_at_a_limit(jobs):
                code = 1
                continue
            with contextlib.closing(load(spec, options)) as backend:
                plans = [make_plan(job.config, backend) for job in jobs]
                stores = [Store.open(job.store) for job in jobs]
                for plan, store in zip(plans, stores, strict=True):
                    if plan.config.adaptive:
                        task_bank(plan, store)  # a wrong one is told before the first call
                for job, store in zip(jobs, stores, strict=True):
                    if _all_at_a_limit([job]):
                        plans.pop(0)
                        code = 1
                        continue
                    # No name for the plan here: it is let go in there, before the summary is made.
                    summaries.append(carry_out(plans.pop(0), store, ProgressBar(), job.meter))
                    upstream = bool(job.config.data_root or job.config.data)
                    beside += beside_published(summaries[-1], same_items=upstream)
    except StoppedError as stop:
        note(f"harness: stopped; what is done is kept. Go on with: {stop.resume}")
        return 1
    _report(summaries, beside, json)
    return code if all(s.status == "done" for s in summaries) else 1


def _all_at_a_limit(jobs: list[Job]) -> bool:
    """Tell whether none of the jobs may start any more, and say so of each."""
    reached = [job.meter.reached() for job in jobs]
    if not all(reached):
        return False
    for job, why in zip(jobs, reached, strict=True):
        note(f"{job.config.task} · {job.config.model}: not started, {why}; the same command again "
             "does it")  # fmt: skip
    return True


def _report(summaries: list[Summary], beside: list[Beside], json: bool) -> None:
    if json:
        print_json({"schema": 1, "runs": summaries, "published": beside})
        return
    print_summaries(summaries)
    print_beside(beside)
    for summary in summaries:
        _explain(summary)
        share = summary.counts["truncated"] / max(summary.n_planned, 1)
        if share > 0.01:
            note(
                f"{summary.task} · {summary.model}: {share:.0%} of the answers were cut at the "
                "token limit; raise --max-tokens before reading the score"
            )


def _explain(summary: Summary) -> None:
    """Say what is left out of a score, and why."""
    name = f"{summary.task} · {summary.model}"
    if n := summary.counts["unscored"]:
        note(f"{name}: {n} answers have no verdict and are left out: a task that is judged needs "
             "--judge SPEC, and gradings that can be read")  # fmt: skip
    if n := summary.counts["unavailable"]:
        note(f"{name}: {n} items could not be asked here:")
        for why, times in unavailable(Store.open(summary.store), summary.run_id)[:_REASONS]:
            note(f"  {why}" + (f" (and {times - 1} more like it)" if times > 1 else ""))
