"""In what two runs differ: what they asked, how they judged, and where they ran."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from harness.core.records import RunStarted
from harness.store.journal import started
from harness.store.queries import equal_keys, verdict_givers

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from harness.store.layout import Store

Group = Literal[
    "task", "prompt", "solving", "model", "judging", "selection", "running", "environment"
]
_CONFIG: dict[Group, tuple[str, ...]] = {
    "task": ("data_root", "data"),
    "prompt": ("system", "fewshot", "chat_template", "no_data", "args"),
    "solving": ("solver", "strategy", "epochs", "seed", "on_long", "sandbox"),
    "judging": ("errors",),
    "selection": ("limit", "first", "ids"),
}
# What the model was loaded with is part of its identity, so here it only says how it was asked for.
_ELSEWHERE = {"task", "model", "judge", "max_tokens", "temperature", "top_p", "stop"}
_NOT_THE_MODEL = {"variant_id", "model_id", "is_baseline", "threads", "batch_size", "seconds"}
# Two runs that differ in one of these did not answer the same questions, or were not judged alike.
_UNLIKE: dict[Group, tuple[str, ...]] = {
    "task": ("name", "version"),
    "prompt": ("prompt_sha256", "system", "fewshot", "no_data", "args"),
    "solving": ("solver",),
    "judging": ("scorers", "judges", "errors"),
}


class Difference(Struct, frozen=True, kw_only=True):
    """One fact that is not the same in two runs.

    Attributes
    ----------
    group : str
        ``task``, ``prompt``, ``solving`` and ``model`` reach the answers, and so the keys;
        ``judging`` reaches the verdicts; ``selection`` says which items; ``running`` and
        ``environment`` should change nothing.
    name : str
    a, b : object
        JSON-ready; None where a run does not say.
    """

    group: Group
    name: str
    a: Any
    b: Any


class RunDiff(Struct, frozen=True, kw_only=True):
    """Two runs side by side.

    Attributes
    ----------
    a, b : str
        Run ids.
    n_items_a, n_items_b, n_shared : int
        Items planned in each, and in both.
    other_content : list of str
        Shared items whose content is not the same.
    equal_keys, n_attempts : int
        Of the attempts at the same item and repeat in both runs, how many have the same key (the
        second run was, or would be, served the first one's answer).
    differences : list of Difference
    """

    a: str
    b: str
    n_items_a: int
    n_items_b: int
    n_shared: int
    other_content: list[str]
    equal_keys: int
    n_attempts: int
    differences: list[Difference]

    def unlike(self) -> list[str]:
        """Say why the two should not be compared, a phrase each; nothing when they may be."""
        reasons = [
            f"{d.name} ({_short(d.a)} / {_short(d.b)})"
            for d in self.differences
            if d.name in _UNLIKE.get(d.group, ())
            # A run whose every answer was refused or failed was judged by nobody.
            and not (d.name == "scorers" and not (d.a and d.b))
            and not (d.name == "judges" and None in (d.a, d.b))
        ]
        if self.other_content:
            first = ", ".join(self.other_content[:3])
            reasons.append(f"content of {len(self.other_content)} shared items (e.g. {first})")
        return reasons


def diff_runs(con: DuckDBPyConnection, store: Store, a: str, b: str) -> RunDiff:
    """Compare what two runs were.

    Parameters
    ----------
    con : DuckDBPyConnection
        A snapshot that holds both.
    store : Store
    a, b : str
        Run ids.
    """
    return _diff(con, store, a, b, equal_keys(con, a, b))


def unlike(con: DuckDBPyConnection, store: Store, a: str, b: str) -> list[str]:
    """Say why two runs should not be compared, as `RunDiff.unlike`; keys are not looked at.

    Parameters as for `diff_runs`.
    """
    return _diff(con, store, a, b, (0, 0)).unlike()


def _diff(con: DuckDBPyConnection, store: Store, a: str, b: str, keys: tuple[int, int]) -> RunDiff:
    one, two = started(store, a), started(store, b)
    items = [{item["item_id"]: item["content_sha256"] for item in run.items} for run in (one, two)]
    shared = items[0].keys() & items[1].keys()
    same, n_attempts = keys
    left, right = _facts(con, one), _facts(con, two)
    return RunDiff(
        a=a,
        b=b,
        n_items_a=len(items[0]),
        n_items_b=len(items[1]),
        n_shared=len(shared),
        other_content=sorted(i for i in shared if items[0][i] != items[1][i]),
        equal_keys=same,
        n_attempts=n_attempts,
        differences=[
            Difference(
                group=group, name=name, a=left.get((group, name)), b=right.get((group, name))
            )
            for group, name in dict.fromkeys([*left, *right])
            if left.get((group, name)) != right.get((group, name))
        ],
    )


def flat(facts: dict[str, Any], before: str = "") -> dict[str, Any]:
    """Write nested facts as one level with dotted names.

    Examples
    --------
    >>> flat({"packages": {"torch": "2.13.0"}, "cpus": 2})
    {'packages.torch': '2.13.0', 'cpus': 2}
    """
    level: dict[str, Any] = {}
    for name, value in facts.items():
        if isinstance(value, dict):
            level |= flat(value, f"{before}{name}.")
        else:
            level[before + name] = value
    return level


def _facts(con: DuckDBPyConnection, run: RunStarted) -> dict[tuple[Group, str], Any]:
    """Spread what a run says of itself over the groups."""
    info, config = dict(run.task_info), dict(run.config)
    generation = info.pop("generation", None) or {}
    scorers, judges = verdict_givers(con, run.run_id)
    named: dict[Group, dict[str, Any]] = {
        "task": {"name": run.task, "version": run.task_version},
        "prompt": {"prompt_sha256": info.pop("prompt_sha256", None)},
        "solving": {f"generation.{name}": value for name, value in generation.items()},
        "model": {k: v for k, v in flat(run.identity).items() if k not in _NOT_THE_MODEL},
        "judging": {
            "scorers": scorers,
            "judge": info.pop("judge", None),
            "judges": judges,
            "metric": info.pop("metric", None),
        },
        "selection": {},
        "running": {},
        "environment": flat(run.environment),
    }
    # `scorers` and `judges` say what judged in the end, `judge` and the hash only what would have
    # at the start; the items are compared one by one.
    for name in ("scorer_sha256", "items_sha256"):
        info.pop(name, None)
    named["task"] |= flat(info)
    for group, names in _CONFIG.items():
        named[group] |= {name: config.pop(name, None) for name in names}
    named["solving"] |= {"solver": run.solver, "strategy": run.strategy}
    named["running"] |= {k: v for k, v in config.items() if k not in _ELSEWHERE}
    return {(group, name): v for group, facts in named.items() for name, v in facts.items()}


def _short(value: Any, most: int = 40) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= most else text[: most - 1] + "…"
