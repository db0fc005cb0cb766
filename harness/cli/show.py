"""`harness show task|run|sample|diff|fit`: one thing whole, or two runs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from harness.cli.output import print_json, print_summaries, print_table
from harness.cli.pictures import save_pictures
from harness.cli.transcript import print_transcript
from harness.core.errors import UsageError, unknown
from harness.core.registry import find
from harness.core.task import TaskRequest, make_task
from harness.core.types import Sample
from harness.runner.config import make_config
from harness.store.layout import Store

if TYPE_CHECKING:
    from harness.runner.adaptive_outcome import Outcome

_WHAT = ("task", "run", "sample", "diff", "fit")


def register(app: typer.Typer, line: str) -> None:
    """Add the verb to the application."""
    app.command("show", help=line)(show)


def show(
    what: Annotated[str, typer.Argument(help="task, run, sample, diff or fit.")],
    name: Annotated[
        str, typer.Argument(help="Task name, or id of a run or fit (`last`: the newest).")
    ],
    item: Annotated[
        str | None, typer.Argument(help="For sample: the item id; for diff: the other run.")
    ] = None,
    epoch: Annotated[int, typer.Option(help="For sample: which repeat.")] = 0,
    data_root: Annotated[str | None, typer.Option(help="For task: its own files.")] = None,
    data: Annotated[str | None, typer.Option(help="For task: a data set, hub:ID@REV.")] = None,
    store: Annotated[
        str | None, typer.Option(help="The store [$HARNESS_STORE, ./results].")
    ] = None,
    pictures: Annotated[
        str | None, typer.Option(help="For sample: a folder to write its pictures into.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Strict JSON on stdout.")] = False,
) -> int:
    """Show one task, run, sample or fit, or in what two runs differ."""
    if what not in _WHAT:
        raise unknown("show", what, _WHAT)
    if what == "task":
        _show_task(name, data_root, data, json)
    elif what == "run":
        _show_run(name, store, json)
    elif what == "fit":
        _show_fit(name, store, json)
    elif what == "diff":
        if item is None:
            raise UsageError("show diff needs two runs: harness show diff A B")
        _show_diff(name, item, store, json)
    else:
        if item is None:
            raise UsageError("show sample needs RUN and ITEM: harness show sample RUN ITEM")
        _show_sample(name, item, epoch, store, pictures, json)
    return 0


def _show_task(name: str, data_root: str | None, data: str | None, json: bool) -> None:
    from harness.runner.inspect import named_files

    entry = find("tasks", name)
    config = make_config(task=name, model="mock:empty", data_root=data_root, data=data)
    request: TaskRequest = config.task_request()
    task = make_task(name, request)
    first: Sample = task.samples[0]
    shown: dict[str, Any] = {
        "name": task.name,
        "version": task.version,
        "group": entry.group,
        "summary": entry.summary,
        "n": len(task.samples),
        "solver": task.solver,
        "scorer": task.scorer,
        "metric": task.metric,
        "generation": msgspec.to_builtins(task.generation),
        "args": list(task.args),
        **task.info,
        "system": task.system,
        "prompt": task.prompt,
        "first_item": msgspec.to_builtins(
            msgspec.structs.replace(first, metadata=named_files(first.metadata))
        ),
        "gold_of_first": task.gold(first),
    }
    _print_one(shown, json)


def _show_run(name: str, store: str | None, json: bool) -> None:
    from harness.cli.grading import print_agreement, print_judges
    from harness.exchange.grading_agreement import agreement
    from harness.exchange.judges_agreement import judges_agreement
    from harness.runner.summary import summarise
    from harness.store.ingest import refresh
    from harness.store.journal import started
    from harness.store.layout import find_run
    from harness.store.publish import snapshot
    from harness.store.queries import verdict_givers

    opened = Store.open(store, create=False)
    run_id = find_run(opened, name)
    refresh(opened)
    summary = summarise(opened, run_id)
    record = msgspec.to_builtins(started(opened, run_id))
    record["items"] = [item["item_id"] for item in record["items"]]
    graded = agreement(opened, run_id)
    # Only a rubric's gradings tell what each judge gave.
    among = judges_agreement(opened, run_id) if "n_gradings" in summary.metrics else None
    scorers, judges = verdict_givers(snapshot(opened), run_id)
    if json:
        print_json({
            "summary": summary, "started": record, "agreement": graded,
            "verdicts": {"scorers": scorers, "judges": judges}, "judges_agreement": among,
        })  # fmt: skip
        return
    print_summaries([summary])
    if scorers:
        who = f", judged by {', '.join(judges)}" if judges else ""
        print(f"verdicts of {', '.join(scorers)}{who}\n")
    rows = [
        (name, *("–" if v is None else f"{v:.4f}" for v in (m.value, m.lo, m.hi)), m.method)
        for name, m in summary.metrics.items()
    ]
    print_table("", ["metric", "value", "lo", "hi", "method"], rows)
    if summary.adaptive:
        _print_adaptive(summary.adaptive)
    if (r := summary.repeats) and r.se is not None:
        parts = f"± {r.se_items:.4f} from items, ± {r.se_repeats:.4f} from repeats"
        print(f"standard error {r.se:.4f}: {parts} ({r.n_min} to {r.n_max} an item)\n")
    if among is not None:
        print_judges(among)
    if graded is not None:
        print_agreement(graded)
    _print_provenance(record)


def _print_adaptive(outcome: Outcome) -> None:
    """Write what an adaptive run came to, and what its score is not."""
    print(outcome.line())
    if outcome.observed is not None:
        print(
            f"the score is an estimate over {outcome.n_bank} items, observed where asked and predicted "
            f"where not; the mean of the {outcome.n_answered} items asked ({outcome.observed:.4f}) "
            "is of items chosen for this model, and no score\n"
        )


def _print_provenance(record: dict[str, Any]) -> None:
    """Write what a run rests on, a fact a line, what was not said left out."""
    from harness.store.difference import flat

    shown = {
        "asked for": record["config"],
        "model": record["identity"],
        "task": {k: record[k] for k in ("task", "task_version", "scorer", "solver", "strategy")}
        | record["task_info"],
        "environment": record["environment"],
    }
    for heading, facts in shown.items():
        print(f"{heading}")
        for name, value in flat(facts).items():
            if value not in (None, "", []):
                print(f"  {name}: {_cell(value)}")


def _show_sample(
    name: str, item: str, epoch: int, store: str | None, folder: str | None, json: bool
) -> None:
    from harness.runner.inspect import whole_sample
    from harness.store.layout import find_run

    opened = Store.open(store, create=False)
    whole = whole_sample(opened, find_run(opened, name), item, epoch)
    saved = [] if folder is None else save_pictures(whole["files"], Path(folder))
    if json:
        print_json(whole)
        return
    events = whole.pop("events")
    pictures = whole.pop("files")
    whole["files"] = [f"{one['name']} ({one['media_type']})" for one in pictures]
    _print_one(whole, json)
    print_transcript(events)
    if pictures and folder is None:
        print("the pictures as files: the same command with --pictures DIR")
    for path in saved:
        print(path)


def _show_diff(a: str, b: str, store: str | None, json: bool) -> None:
    from harness.store.difference import diff_runs
    from harness.store.ingest import refresh
    from harness.store.layout import find_run
    from harness.store.publish import snapshot

    opened = Store.open(store, create=False)
    refresh(opened)
    found = diff_runs(snapshot(opened), opened, find_run(opened, a), find_run(opened, b))
    if json:
        print_json(found)
        return
    rows = [(d.group, d.name, _cell(d.a), _cell(d.b)) for d in found.differences]
    columns = ["", "", f"A {found.a}", f"B {found.b}"]
    print_table("", columns, rows or [("", "nothing differs", "", "")])
    print(
        f"items: {found.n_items_a} in A, {found.n_items_b} in B, {found.n_shared} in both"
        + (f", {len(found.other_content)} of other content" if found.other_content else "")
        + f"; {found.equal_keys} of {found.n_attempts} shared attempts have equal keys"
    )
    unlike = found.unlike()
    print(f"not to be compared: {'; '.join(unlike)}" if unlike else "may be compared item by item")


def _show_fit(name: str, store: str | None, json: bool) -> None:
    from harness.cli.fit import print_fit
    from harness.store.ingest import refresh
    from harness.store.publish import snapshot
    from harness.store.queries import find_fit

    opened = Store.open(store, create=False)
    refresh(opened)
    found = find_fit(snapshot(opened), name)
    if json:
        print_json(found)
    else:
        print_fit(found)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _print_one(shown: dict[str, Any], json: bool) -> None:
    """Write a record: short values on a line, long texts under a heading."""
    if json:
        print_json(shown)
        return
    for key, value in shown.items():
        if isinstance(value, str) and ("\n" in value or len(value) > 100):
            print(f"── {key} " + "─" * max(0, 70 - len(key)))
            print(value)
            print("─" * 74)
        elif isinstance(value, dict | list | tuple):
            print(f"{key}: {msgspec.json.encode(value).decode()}")
        else:
            print(f"{key}: {'–' if value is None else value}")
