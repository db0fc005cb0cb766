"""The plan of a submission, worked out anew from the task as it is installed here."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from harness.backends.base import Capability, ModelIdentity
from harness.core.errors import HarnessError
from harness.core.records import RunStarted
from harness.core.task import build
from harness.core.types import Generation
from harness.exchange.manifest import DataFrom, Manifest, TaskHashes
from harness.exchange.rejected import Reasons
from harness.runner.config import RunConfig, make_config
from harness.runner.lifecycle import run_started
from harness.runner.plan import Plan, make_plan, plan_hashes

_OTHER = "get the version of the task that was run, or have it run with this one"


class _Elsewhere:
    """Stands where a plan wants its model: it answered somewhere else."""

    capabilities: frozenset[Capability] = frozenset(
        (
            "generate", "samples", "token_logprobs", "next_token_full", "loglikelihood", "logits",
            "hidden_states", "tools",
        )
    )  # fmt: skip
    batch_size = 1
    context_length: int | None = None

    def __init__(self, identity: ModelIdentity, is_baseline: bool, calls_tools: bool) -> None:
        self.identity = identity
        self.is_baseline = is_baseline
        if not calls_tools:
            self.capabilities = self.capabilities - {"tools"}

    def generate(self, requests: object) -> Any:
        """Refuse: nothing is to be called."""
        raise HarnessError("checking a submission calls no model")

    loglikelihood = generate

    def describe(self) -> dict[str, Any]:
        """Give nothing: the file says what its model was."""
        return {}

    def close(self) -> None:
        """Do nothing."""


def plan_elsewhere(run: RunStarted, config: RunConfig, keys: Collection[str]) -> Plan:
    """Plan a run of a model that is not here: its identity is known, nothing can be called.

    Parameters
    ----------
    run : RunStarted
    config : RunConfig
        What was asked for, with the data where they lie here.
    keys : collection of str
        Keys of attempts that were made. Where tools are worked with, a key says whether the model's
        service took them, and nothing else of a run does: the plan is of the two the one that fits.

    Raises
    ------
    HarnessError
        No such plan can be made here.
    msgspec.ValidationError
        The run does not say which model it was, or how it was asked.
    """
    identity = msgspec.convert(run.identity, ModelIdentity)
    generation = msgspec.convert(run.task_info.get("generation"), Generation)
    # The context of the model, which nobody knows here, may have shortened the answers.
    asked = msgspec.structs.replace(config, max_tokens=generation.max_tokens, judge=None)
    plan = make_plan(asked, _Elsewhere(identity, run.is_baseline, calls_tools=True))
    if plan.works_locally and not any(planned.key in keys for planned in plan.attempts):
        plan = make_plan(asked, _Elsewhere(identity, run.is_baseline, calls_tools=False))
    return plan


def local_config(
    manifest: Manifest, data_root: str | None, data: str | None, reasons: Reasons
) -> RunConfig | None:
    """Read what was asked for, with the data where they lie here.

    What a file names is never opened or fetched: `data_root` and `data` come from the person who
    imports it.
    """
    for name in ("data_root", "data"):
        if manifest.run.config.get(name) is not None:
            remedy = "ask the sender to write it anew with `harness export submission`"
            reasons.add("the file says where data are read from", f"config {name}", remedy)
    needs: dict[DataFrom, tuple[str | None, str]] = {
        "data root": (data_root, "give your copy of the benchmark's files with --data-root DIR"),
        "data set": (data, "give the data set with --data hub:ID@REV or hub:DIR"),
    }
    given, remedy = needs.get(manifest.data_from, ("", ""))
    if given is None:
        reasons.add("the items come from elsewhere", f"a {manifest.data_from}", remedy)
        return None
    asked = {**manifest.run.config, "data_root": None, "data": None}
    if manifest.data_from == "data root":
        asked["data_root"] = data_root
    elif manifest.data_from == "data set":
        asked["data"] = data
    try:
        return make_config(**asked)
    except (HarnessError, TypeError) as error:
        reasons.add("the run's options cannot be read", f"config ({error})", "upgrade, or ask the "
                    "sender which version wrote it")  # fmt: skip
        return None


def plan_again(
    manifest: Manifest, config: RunConfig, keys: Collection[str], reasons: Reasons
) -> Plan | None:
    """Plan the run as it was planned there, and compare every hash with the installed task's.

    Returns
    -------
    Plan or None
        None when no plan can be made here; `reasons` then say why.
    """
    run = manifest.run
    try:
        generation = msgspec.convert(run.task_info.get("generation"), Generation)
        draws = config.epochs * build("strategies", config.strategy).n
        # Before anything is laid out: a plan of this size might not fit into memory.
        if run.epochs != draws or draws * len(run.items) != run.n_planned:
            where = (
                f"{len(run.items)} items x {run.epochs} repeats, {run.n_planned} attempts planned, "
                f"{draws} draws asked for"
            )
            reasons.add("the plan does not add up", where, "ask the sender to write it anew")
            return None
        plan = plan_elsewhere(run, config, keys)
    except (HarnessError, msgspec.ValidationError, ValueError, RecursionError) as error:
        remedy = "install or give what is missing, or ask the sender which version wrote it"
        reasons.add("the run cannot be planned here", f"task {run.task} ({error})", remedy)
        return None
    _compare_task(manifest, plan, reasons)
    _compare_items(manifest, plan, reasons)
    _compare_run(manifest, plan, generation, reasons)
    return plan


def task_hashes(plan: Plan) -> TaskHashes:
    """Hash what is asked by a plan."""
    hashes = plan_hashes(plan)
    return TaskHashes(
        content_sha256=plan.task.content_hash(),
        dataset_sha256=plan.task.info.get("dataset_sha256"),
        items_sha256=hashes["items_sha256"],
        prompt_sha256=hashes["prompt_sha256"],
        solver_version=plan.solver_entry.version,
    )


def _compare_task(manifest: Manifest, plan: Plan, reasons: Reasons) -> None:
    here, there, run = task_hashes(plan), manifest.task, manifest.run
    if run.task != plan.task.name or run.task_version != plan.task.version:
        where = f"{run.task} {run.task_version}, here {plan.task.name} {plan.task.version}"
        reasons.add("the task is another", where, _OTHER)
    for name in TaskHashes.__struct_fields__:
        mine, theirs = getattr(here, name), getattr(there, name)
        if mine != theirs:
            what = f"the task's {name} is another"
            reasons.add(what, f"{str(theirs)[:16]}, here {str(mine)[:16]}", _OTHER)
    for name, mine in plan_hashes(plan).items():
        if name != "scorer_sha256" and run.task_info.get(name) != mine:
            reasons.add(f"the plan's {name} is another", f"here {mine[:16]}", _OTHER)


def _compare_items(manifest: Manifest, plan: Plan, reasons: Reasons) -> None:
    theirs = {str(item.get("item_id")): item for item in manifest.run.items}
    mine = {item["item_id"]: item for item in run_started(plan, manifest.run.run_id).items}
    if len(theirs) != len(manifest.run.items):
        reasons.add("an item is planned twice", manifest.run.task, _OTHER)
    for item_id in mine.keys() - theirs.keys():
        reasons.add("an item of the plan is missing", f"item {item_id}", _OTHER)
    for item_id, item in theirs.items():
        if item_id not in mine:
            reasons.add("an item is none of the plan's", f"item {item_id}", _OTHER)
            continue
        for name in sorted({*item, *mine[item_id]}):
            if item.get(name) != mine[item_id].get(name):
                reasons.add(f"the {name} of an item is another", f"item {item_id}", _OTHER)


def _compare_run(manifest: Manifest, plan: Plan, generation: Generation, reasons: Reasons) -> None:
    """Compare what the plan's record says beside its configuration with what follows from that."""
    run, identity = manifest.run, plan.backend.identity
    follows: dict[str, tuple[object, object]] = {
        "model": (run.model, plan.config.model),
        "strategy": (run.strategy, plan.config.strategy),
        "solver": (run.solver, str(plan.solver_spec)),
        "metric": (run.metric, plan.task.metric),
        "seed": (run.seed, plan.config.seed),
        "errors": (run.errors, plan.config.errors),
        "n_planned": (run.n_planned, plan.n_planned),
        "generation": (generation, plan.generation),
        "variant_id": (run.identity.get("variant_id"), identity.variant_id),
        "model_id": (run.identity.get("model_id"), identity.name),
        "is_baseline": (run.identity.get("is_baseline"), run.is_baseline),
    }
    for name, (said, found) in follows.items():
        if said != found:
            where = f"{name}: {said}, from its options follows {found}"
            reasons.add("the run contradicts its own options", where, "ask the sender to write it "
                        "anew with `harness export submission`")  # fmt: skip
