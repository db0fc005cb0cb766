"""`harness run --dry-run`: the plan and what it may cost; nothing is called."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

from harness.backends.base import LoadOptions, load
from harness.cli.jobs import Job
from harness.cli.output import note, print_json, print_table
from harness.core.types import text_of
from harness.runner.plan import Plan, make_plan
from harness.stats.power import mde_paired

CHARACTERS_A_TOKEN = 4  # the usual rule of thumb for English text; no model's tokenizer is asked
USUAL_SD = 0.5  # of the per-item difference of two models, where nothing is known of it
_JUDGE = "the judge's calls are not part of this plan, and their cost not of most_cost_usd"


def dry_run(groups: Mapping[tuple[str, LoadOptions], Sequence[Job]], json: bool) -> int:
    """Plan everything and print it."""
    rows: list[dict[str, Any]] = []
    for (spec, options), jobs in groups.items():
        with contextlib.closing(load(spec, options)) as backend:
            rows += [_row(make_plan(job.config, backend)) for job in jobs]
    if json:
        print_json({"schema": 1, "plan": rows})
        return 0
    priced = any(row["most_cost_usd"] is not None for row in rows)
    hidden = {"notes", "detectable_difference"}
    hidden |= set() if priced else {"prompt_tokens_estimate", "most_cost_usd"}
    columns = [name for name in rows[0] if name not in hidden]
    print_table("Planned; nothing was called", columns, [[r[c] for c in columns] for r in rows])
    if priced:
        note(
            "most_cost_usd: every answer as long as it may be, no answer of the store reused, "
            f"prompts estimated at {CHARACTERS_A_TOKEN} characters a token"
        )
    for text in dict.fromkeys(line for row in rows for line in (*_power(row), *row["notes"])):
        note(text)
    return 0


def _row(plan: Plan) -> dict[str, Any]:
    generates = "generate" in plan.solver.needs
    new_tokens = plan.n_planned * plan.generation.max_tokens if generates else 0
    prompt_tokens = plan.draws * sum(
        math.ceil(sum(len(text_of(m)) for m in messages) / CHARACTERS_A_TOKEN)
        for messages in plan.messages
    )
    return {
        "task": plan.config.task, "model": plan.config.model, "items": len(plan.samples),
        "attempts": plan.n_planned, "solver": str(plan.solver_spec),
        "scorer": str(plan.scorer_spec), "max_tokens": plan.generation.max_tokens,
        "most_new_tokens": new_tokens, "prompt_tokens_estimate": prompt_tokens,
        "most_cost_usd": plan.card.most_cost(prompt_tokens, new_tokens),
        "detectable_difference": mde_paired(len(plan.samples), USUAL_SD),
        "notes": plan.notes + _adaptive(plan) + ([f"{plan.task.name}: {_JUDGE}"] if plan.judges else []),
    }  # fmt: skip


def _adaptive(plan: Plan) -> list[str]:
    """Say that an adaptive run asks fewer items than it plans for."""
    if not plan.config.adaptive:
        return []
    most = f", {plan.config.max_items} at the most" if plan.config.max_items else ""
    return [f"{plan.task.name}: adaptive, so only as many of these items as it takes{most}"]


def _power(row: Mapping[str, Any]) -> list[str]:
    """Say what as many items can show at all, before they are paid for."""
    found = row["detectable_difference"]
    if found is None:
        return []
    points = f"{100 * found:.1f} points between two models"
    items = f"{row['task']}: {row['items']} items show a difference of {points}, or more"
    return [f"{items} (80 % power; spread of the differences {USUAL_SD})"]
