"""Everything that can be asked of a run, as one record that is stored with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct

from harness.backends.base import LoadOptions
from harness.core.environment import SandboxLevel
from harness.core.errors import UsageError
from harness.core.errors import unknown as unknown_name
from harness.core.hub import parse_data
from harness.core.resources import expanded
from harness.core.status import ERROR_POLICIES
from harness.core.task import TaskRequest
from harness.runner.judging import join_judges
from harness.runner.limits import Limits

OnLong = Literal["error", "skip", "truncate"]
Switch = Literal["auto", "on", "off"]
_CHOICES: dict[str, tuple[str, ...]] = {
    "on_long": get_args(OnLong), "chat_template": get_args(Switch), "errors": ERROR_POLICIES,
    "sandbox": get_args(SandboxLevel),
}  # fmt: skip


class RunConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run as it was asked for; None means the task's or model's own default.

    Attributes
    ----------
    task, model : str
        Task name and model SPEC.
    solver, strategy : str
        SPECs.
    limit, first : int or None
        A seeded sample by item hash, or the first items; not both.
    ids : tuple of str
        Exactly these items.
    epochs : int
        Repeats of each item.
    seed : int
        Fixes the sample, the task's draws and every random choice.
    fewshot : int
        Worked examples shown before each item; never the item itself.
    system : str or None
        System turn instead of the task's.
    args : dict
        The task's switches (`--arg k=v`).
    no_data : bool
        Ablation: leave out what the question rests on.
    max_tokens, temperature, top_p, stop
        Generation parameters instead of the task's.
    dtype, device, batch_size
        How the model is loaded.
    max_connections, rpm, timeout
        Requests under way at once, started a minute at most, and seconds for one: for models
        behind HTTP; answers do not depend on them.
    on_long : {"error", "skip", "truncate"}
        What becomes of a prompt longer than the model's context.
    sandbox : SandboxLevel
        The isolation around what a model writes; below ``userns`` only where named.
    errors : {"wrong", "exclude"}
        What the model's own errors and timeouts count as.
    data_root : str or None
        Folder with the benchmark's own files in the upstream layout.
    data : str or None
        A data set instead, ``hub:ID@REV`` or ``hub:DIR`` (see `harness.core.hub`).
    fresh : bool
        Call the model even where the store has the answer.
    judge : str or None
        Model SPEC for scorers that ask one, several comma-separated; no answer depends on it.
    max_cost, max_time, max_total_tokens
        When to stop (see `harness.runner.limits.Limits`); no answer depends on them.
    adaptive : bool
        Ask only the items that tell most, chosen by what was answered before.
    se : float or None
        Then: stop when ability is known to this standard error.
    max_items : int or None
        Then: stop at so many items.
    bank : str or None
        Then: the item bank, by its name in the store or as a file; by default the newest that has
        items of the task.
    """

    task: str
    model: str
    solver: str | None = None
    strategy: str = "sample"
    limit: int | None = None
    first: int | None = None
    ids: tuple[str, ...] = ()
    epochs: int = 1
    seed: int = 0
    fewshot: int = 0
    system: str | None = None
    chat_template: Switch = "auto"
    args: dict[str, str] = msgspec.field(default_factory=dict)
    no_data: bool = False
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] | None = None
    dtype: str = "auto"
    device: str = "auto"
    batch_size: int | None = None
    max_connections: int | None = None
    rpm: int | None = None
    timeout: float | None = None
    on_long: OnLong = "error"
    sandbox: SandboxLevel = "auto"
    errors: Literal["wrong", "exclude"] = "wrong"
    data_root: str | None = None
    data: str | None = None
    fresh: bool = False
    judge: str | None = None
    max_cost: float | None = None
    max_time: float | None = None
    max_total_tokens: int | None = None
    adaptive: bool = False
    se: float | None = None
    max_items: int | None = None
    bank: str | None = None

    def task_request(self) -> TaskRequest:
        """The part that the task reads."""
        return TaskRequest(
            data_root=Path(self.data_root) if self.data_root else None,
            data=self.data,
            seed=self.seed,
            args=self.args,
            no_data=self.no_data,
        )

    def load_options(self) -> LoadOptions:
        """The part that the backend reads."""
        return LoadOptions(
            dtype=self.dtype,
            device=self.device,
            batch_size=self.batch_size,
            max_connections=self.max_connections,
            rpm=self.rpm,
            timeout=self.timeout,
            chat_template=self.chat_template,
            on_long=self.on_long,
        )

    def limits(self) -> Limits:
        """The part that says when to stop."""
        return Limits(
            max_cost=self.max_cost,
            max_time=self.max_time,
            max_total_tokens=self.max_total_tokens,
        )


def make_config(**options: Any) -> RunConfig:
    """Check and make a `RunConfig` from keyword options.

    Raises
    ------
    UsageError
        For an unknown option, a wrong type or a value out of range, in one line.
    """
    root = options.get("data_root")
    if root is not None:
        # As an absolute path, so that `resume` finds it from any folder.
        options["data_root"] = str(expanded(root).absolute())
    if isinstance(options.get("data"), str):
        options["data"] = str(parse_data(options["data"]))
    judge = options.get("judge")
    if isinstance(judge, list | tuple) and all(isinstance(one, str) for one in judge):
        options["judge"] = join_judges(judge)
    bank = options.get("bank")
    if isinstance(bank, str) and is_bank_file(bank):
        options["bank"] = str(expanded(bank).absolute())
    known = set(RunConfig.__struct_fields__)
    unknown = sorted(set(options) - known)
    if unknown:
        raise UsageError(f"unknown option {unknown[0]!r} of a run: it takes {', '.join(known)}")
    for name, allowed in _CHOICES.items():
        if options.get(name, allowed[0]) not in allowed:
            raise unknown_name(f"--{name.replace('_', '-')}", str(options[name]), allowed)
    try:
        config = msgspec.convert(options, RunConfig)
    except msgspec.ValidationError as error:
        raise UsageError(f"bad option of a run: {error}") from error
    _check_ranges(config)
    _check_adaptive(config)
    config.limits().check()
    return config


def is_bank_file(bank: str) -> bool:
    """Tell the path of a bank's file from the name of one in the store.

    Examples
    --------
    >>> is_bank_file("default"), is_bank_file("mine.json"), is_bank_file("./mine")
    (False, True, True)
    """
    return bank.endswith(".json") or "/" in bank


def _check_adaptive(config: RunConfig) -> None:
    """Refuse what an adaptive run cannot be joined with: it chooses the items itself, once each."""
    if not config.adaptive:
        for name in ("se", "max_items", "bank"):
            if getattr(config, name) is not None:
                raise UsageError(f"--{name.replace('_', '-')} belongs to --adaptive")
        return
    for name in ("limit", "first", "ids"):
        if getattr(config, name):
            raise UsageError(f"--adaptive chooses the items itself: leave --{name} out")
    if config.epochs > 1 or config.strategy != "sample":
        what = "--epochs" if config.epochs > 1 else "--strategy"
        raise UsageError(f"--adaptive asks every item once: leave {what} out")
    if config.no_data:
        raise UsageError(
            "--adaptive measures with items as they were answered: leave --no-data out"
        )
    if config.se is not None and not 0 < config.se < float("inf"):
        raise UsageError(f"--se must be above 0, not {config.se}")
    if config.max_items is not None and config.max_items < 1:
        raise UsageError(f"--max-items must be at least 1, not {config.max_items}")


def _check_ranges(config: RunConfig) -> None:
    if config.limit is not None and config.first is not None:
        raise UsageError("give --limit (a seeded sample) or --first, not both")
    for name in ("limit", "first", "epochs", "max_tokens", "batch_size",
                 "max_connections", "rpm"):  # fmt: skip
        value = getattr(config, name)
        if value is not None and value < 1:
            raise UsageError(f"--{name.replace('_', '-')} must be at least 1, not {value}")
    if config.timeout is not None and not 0 < config.timeout <= 86_400:
        raise UsageError(f"--timeout must lie between 0 and 86400 seconds, not {config.timeout}")
    if not -(2**63) <= config.seed < 2**63:
        raise UsageError(f"--seed {config.seed} does not fit into 64 bits")
    if config.fewshot < 0:
        raise UsageError(f"--fewshot must not be negative, not {config.fewshot}")
    if config.temperature is not None and not 0 <= config.temperature <= 100:
        raise UsageError(f"--temperature must lie between 0 and 100, not {config.temperature}")
    if config.top_p is not None and not 0 < config.top_p <= 1:
        raise UsageError(f"--top-p must lie in (0, 1], not {config.top_p}")
    if config.data_root is not None and config.data is not None:
        raise UsageError("give --data-root (a folder) or --data (a data set), not both")
    if config.data_root is not None and not Path(config.data_root).is_dir():
        raise UsageError(f"--data-root {config.data_root} is not a folder")
