"""Fit models and items of a store, or of a file, on one scale (`irt`, two-parameter logistic).

The library is imported when something is fitted: numpy and scipy cost the command line its start.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from harness.core.errors import HarnessError, UsageError, unknown
from harness.core.keys import sha256_of
from harness.runner.adaptive_bank import add_contents, bank_file, make_bank, write_bank
from harness.runner.common_models import link_through_models
from harness.runner.environment import environment
from harness.runner.human_minutes import Minutes, finite, with_known_dates, with_the_stores_own
from harness.runner.linking import add_minutes, link
from harness.runner.published import beside_published
from harness.store.banks import item_contents
from harness.store.fits import (
    FitItem,
    FitModel,
    FitRow,
    StoredFit,
    Variant,
    cells,
    keep_fit,
    scored_tasks,
    scored_variants,
)
from harness.store.ingest import refresh
from harness.store.layout import Store
from harness.store.publish import snapshot

if TYPE_CHECKING:
    import irt

Scores = Literal["counts", "fractional"]
_SCORES = ("counts", "fractional")
# What the library says to its callers, in the words of the command line.
_IN_OUR_WORDS = {
    "largest_block=True": "--largest-block",
    "scores='fractional'": "--scores fractional",
    "method='joint'": "--method joint",
    "method='mml'": "--method mml",
    "choices=": "--choices",
}
_PACKAGES = ("bridge-harness", "numpy", "scipy")
_NAMED = 3
NOT_LINKED = (
    "not linked to human minutes: no shared items or models with a scale that has them, and no "
    "minutes of their own"
)


class ItemKey(NamedTuple):
    """An item's identity, which reads as ``task/item`` where people see it."""

    task_id: str
    version: str
    item_id: str

    def __str__(self) -> str:
        return f"{self.task_id}/{self.item_id}"

    def __repr__(self) -> str:
        # The hash of the data is made of this: it must be that of the plain tuple.
        return repr(tuple(self))


class Subject(NamedTuple):
    """A model with its strategy, which reads as its SPEC where people see it."""

    variant_id: str
    strategy: str
    model: str
    is_baseline: bool

    def __str__(self) -> str:
        return self.model if self.strategy == "sample" else f"{self.model} ({self.strategy})"

    def __repr__(self) -> str:
        # The rest is for display: how a model was called must not change the hash of the data.
        return repr((self.variant_id, self.strategy))


def fit_store(
    store: Store,
    *,
    tasks: Sequence[str] = (),
    models: Sequence[str] = (),
    baselines: bool = False,
    method: str = "auto",
    scores: str = "counts",
    largest_block: bool = False,
    minutes: Minutes | None = None,
    bank: str | None = None,
    model_kind: str = "2pl",
    choices: int | None = None,
) -> StoredFit:
    """Fit what the store holds, and keep the fit in it.

    Parameters
    ----------
    store : Store
    tasks : sequence of str
        Tasks or groups; all by default.
    models : sequence of str
        SPECs or variant ids; all by default.
    baselines : bool
        Take mocks in, which are left out otherwise.
    method : str
        ``auto`` or one of `irt.methods.METHODS`.
    scores : {"counts", "fractional"}
        Whether scores other than right and wrong are allowed.
    largest_block : bool
        Where there is no common scale, fit the largest connected part.
    minutes : Minutes, optional
        Human minutes of items, and release dates: then the fit has horizons. Without them the
        minutes that the tasks state of their items, and the dates of the models' cards.
    bank : str, optional
        Keep the items as a bank of this name too, for adaptive runs, in the store and as the file
        ``banks/NAME.json`` beside it.
    model_kind : {"2pl", "3pl", "grm"}
        Two-parameter logistic, with a lower asymptote of 1/choices, or graded response model.
    choices : int, optional
        Options of an item, for ``3pl``.

    Returns
    -------
    StoredFit

    Raises
    ------
    UsageError
        Unknown names, or data that cannot be fitted, with the reason.
    HarnessError
        When the method needs a package that is not installed.
    StoreError
        When the store cannot be written.
    """
    _check(method, scores)
    started = time.perf_counter()
    refresh(store)
    con = snapshot(store)
    chosen_tasks = _choose_tasks(scored_tasks(con), tasks)
    variants = _choose_variants(scored_variants(con), models, baselines)
    rows = cells(con, chosen_tasks, list(variants))
    _check_scores(rows, scores)
    table = {
        "model": [Subject(v, strategy, *variants[v]) for v, strategy, *_ in rows],
        "item": [ItemKey(*row[2:5]) for row in rows],
        "k": [row[5] for row in rows],
        "n": [row[6] for row in rows],
    }
    fitted = _fit(table, method, scores, largest_block, model_kind, choices)
    selection = {"tasks": chosen_tasks, "models": list(models), "baselines": baselines}
    names: tuple[Any, ...] = fitted.models.model
    specs = {str(who): who.model.partition(" [")[0] for who in names}
    items = [str(key) for key in fitted.items.item]
    known = with_the_stores_own(con, minutes or Minutes(), chosen_tasks, items, specs)
    found = _read(fitted, "store", selection, started, known, specs, bank)
    if found.bank is not None:
        add_contents(found.bank, item_contents(con, chosen_tasks))
    keep_fit(store, found)
    if found.bank is not None:
        write_bank(found.bank, bank_file(store, found.bank.bank.name))
    return found


def fit_file(
    path: Path,
    *,
    method: str = "auto",
    scores: str = "counts",
    largest_block: bool = False,
    minutes: Minutes | None = None,
    bank: str | None = None,
    model_kind: str = "2pl",
    choices: int | None = None,
) -> StoredFit:
    """Fit the answers in a file: py-irt JSONL, a long or wide CSV, or a long Parquet table.

    Parameters
    ----------
    path : Path
    method, scores, largest_block, minutes, bank, model_kind, choices
        As for `fit_store`; a bank's file is written by `harness.runner.adaptive_bank.write_bank`.

    Returns
    -------
    StoredFit
        Not kept anywhere: see `harness.store.fits.keep_fit`.

    Raises
    ------
    UsageError
        A file that cannot be read, or data that cannot be fitted, with the rows and the reason.
    HarnessError
        When the method needs a package that is not installed.
    """
    _check(method, scores)
    started = time.perf_counter()
    fitted = _fit(path, method, scores, largest_block, model_kind, choices)
    names = {str(name): str(name) for name in fitted.models.model}
    known = with_known_dates(minutes or Minutes(), names)
    return _read(fitted, path.name, {}, started, known, names, bank)


def _read(
    fitted: irt.Fit,
    source: str,
    selection: dict[str, Any],
    started: float,
    minutes: Minutes,
    names: dict[str, str],
    bank: str | None,
) -> StoredFit:
    """Turn a fit into rows, in human minutes where any are known."""
    if not minutes.minutes:
        found = _stored(fitted, source, selection, started, None)
        if not link_through_models(fitted, found, names, minutes):
            found.fit.verdict["not_linked"] = "; ".join((NOT_LINKED, *minutes.notes))
        found.bank = None if bank is None else make_bank(fitted, bank, found.fit)
        return found
    linked = link(fitted, minutes)
    found = _stored(linked.fit, source, selection, started, minutes)
    add_minutes(linked, found, minutes)
    beside_published(linked, found)
    found.bank = None if bank is None else make_bank(linked.fit, bank, found.fit)
    return found


def _check(method: str, scores: str) -> None:
    """Refuse a wrong word before anything is read."""
    from irt.methods import METHODS

    if method != "auto" and method not in METHODS:
        raise unknown("method", method, ("auto", *METHODS))
    if scores not in _SCORES:
        raise unknown("kind of scores", scores, _SCORES)


def _choose_tasks(known: list[str], asked: Sequence[str]) -> list[str]:
    if not known:
        raise UsageError("the store has no scored items yet: `harness run` something first")
    chosen: set[str] = set()
    for name in asked:
        here = [task for task in known if task == name or task.startswith(f"{name}/")]
        if not here:
            raise unknown("task", name, known, "with scores in this store")
        chosen.update(here)
    return sorted(chosen) if asked else known


def _choose_variants(
    known: list[Variant], asked: Sequence[str], baselines: bool
) -> dict[str, tuple[str, bool]]:
    """Give the models to fit with name and kind; two of one SPEC are told apart by identity."""
    for name in asked:
        if not any(name in (v.model, v.variant_id) for v in known):
            names = sorted({v.model for v in known})
            raise unknown("model", name, names, "with scores in this store")
    chosen = [v for v in known if not asked or v.model in asked or v.variant_id in asked]
    kept = [v for v in chosen if baselines or not v.is_baseline]
    if not kept:
        raise UsageError(
            f"all {len(chosen)} models with scores are baselines ({_some([v.model for v in chosen])}), "
            "which are no contenders: take them in with --baselines"
        )
    times = Counter(v.model for v in kept)
    apart = {v.variant_id: f" [{v.variant_id[:8]}]" * (times[v.model] > 1) for v in kept}
    return {v.variant_id: (v.model + apart[v.variant_id], v.is_baseline) for v in kept}


def _check_scores(rows: list[tuple[str, str, str, str, str, float, int]], scores: str) -> None:
    """Refuse scores that are no k of n, or only in part, naming task and first items."""
    outside = [row for row in rows if not 0 <= row[5] <= row[6]]
    broken = [] if scores == "fractional" else [row for row in rows if row[5] % 1]
    for wrong, why, hint in (
        (outside, "scores outside 0 to 1", ""),
        (broken, "scores that are neither right nor wrong", "declare --scores fractional, or "),
    ):
        if wrong:
            task = wrong[0][2]
            items = dict.fromkeys(row[4] for row in wrong if row[2] == task)
            rest = len({row[2] for row in wrong}) - 1
            more = f" (and {rest} more tasks)" if rest else ""
            raise UsageError(
                f"task {task}{more} has {why} on {len(items)} items ({_some(list(items))}): "
                f"{hint}choose other tasks with --task"
            )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")


def _fit(
    source: Path | dict[str, Any], method: str, scores: str, largest_block: bool, model: str,
    choices: int | None,
) -> irt.Fit:  # fmt: skip
    import irt

    kind: Scores = "fractional" if scores == "fractional" else "counts"
    try:
        if isinstance(source, Path):
            answers = _answers(source, kind)
        else:
            answers = irt.Responses.from_table(source, kind)
        return irt.fit(answers, method, largest_block=largest_block, model=model, choices=choices)
    except irt.DataError as error:
        text = str(error)
        for theirs, ours in _IN_OUR_WORDS.items():
            text = text.replace(theirs, ours)
        raise UsageError(f"cannot fit: {text}") from None
    except ModuleNotFoundError as error:
        raise HarnessError(f"method {method}: {error}") from error


def _answers(path: Path, scores: Scores) -> irt.Responses:
    import irt

    try:
        return irt.read(path, scores)
    except irt.DataError as error:
        if str(error).startswith("cannot read"):
            raise UsageError(str(error).splitlines()[0]) from None
        raise
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError as error:  # bytes that are no text, or no Parquet
        raise UsageError(f"cannot read {path}: {str(error).splitlines()[0]}") from None


def _stored(
    fitted: irt.Fit,
    source: str,
    selection: dict[str, Any],
    started: float,
    minutes: Minutes | None,
) -> StoredFit:
    """Turn a fit into rows of the store."""
    scores = "fractional" if fitted.responses.fractional else "counts"
    # With other anchors, dates or level it is another reading of the same fit, kept beside it.
    reading: list[Any] = [] if minutes is None else [minutes]
    if fitted.kind != "2pl":
        c = fitted.estimate.c
        reading += [fitted.kind, None if c is None else c.tolist()]
    name = sha256_of([fitted.method, fitted.data_hash, scores, *reading])[:12]
    fit_id = f"{fitted.method}-{name}"
    packages = environment()["packages"]
    hanging, remark = _testlets(fitted)
    verdict = _verdict(fitted)
    if remark:
        verdict["text"] += f"\n{remark}"
    row = FitRow(
        fit_id=fit_id, method=fitted.method, scores=scores, seed=fitted.estimate.seed,
        parameterisation=fitted.parameterisation, gauge=fitted.gauge,
        hyper=_numbers(vars(fitted.hyper)), source=source, selection=selection,
        data_hash=fitted.data_hash, code_commit=environment().get("git_commit"),
        versions={p: packages[p] for p in _PACKAGES if p in packages},
        converged=bool(fitted.verdict.converged), verdict=verdict,
        log_loss=finite(fitted.log_loss), n_models=len(fitted.models), n_items=len(fitted.items),
        n_cells=fitted.responses.n_cells,
        seconds=time.perf_counter() - started,
        created=datetime.now(UTC).replace(tzinfo=None),
    )  # fmt: skip
    models = [_model(fit_id, one) for one in fitted.models.to_dicts()]
    items = [_item(fit_id, one, hanging) for one in fitted.items.to_dicts()]
    # In the order in which the store gives them.
    models.sort(
        key=lambda m: (math.inf if m.theta is None else -m.theta, m.variant_id, m.strategy or "")
    )
    items.sort(key=lambda i: (i.task_id or "", i.version or "", i.item_id))
    return StoredFit(row, models, items)


def _model(fit_id: str, one: dict[str, Any]) -> FitModel:
    who = one["model"]
    known = isinstance(who, Subject)
    return FitModel(
        fit_id=fit_id, variant_id=who.variant_id if known else str(who),
        strategy=who.strategy if known else None, model=str(who), theta=finite(one["theta"]),
        se=finite(one["se"]), n_items=int(one["n_items"]),
        flags=["baseline"] if known and who.is_baseline else [],
    )  # fmt: skip


def _testlets(fitted: irt.Fit) -> tuple[frozenset[Any], str]:
    """Find items that hang together beyond ability, and say so in a line."""
    from irt.testlets import MAX_ITEMS, find_testlets

    if len(fitted.items) > MAX_ITEMS:
        return frozenset(), f"not looked for: testlets among more than {MAX_ITEMS} items"
    found = find_testlets(fitted)
    if not found.groups:
        return frozenset(), ""
    first = _some([str(item) for item in found.groups[0]])
    return frozenset(found.items), (
        f"{len(found.items)} items hang together in {len(found.groups)} groups beyond ability "
        f"(testlets), so their errors are too small: {first}"
    )


def _item(fit_id: str, one: dict[str, Any], hanging: frozenset[Any]) -> FitItem:
    key = one["item"]
    task, version, item = key if isinstance(key, ItemKey) else (None, None, str(key))
    numbers = {name: finite(one[name]) for name in ("a", "b", "d", "se_log_a", "se_b", "se_d")}
    return FitItem(
        fit_id=fit_id, task_id=task, version=version, item_id=item, **numbers,
        n_models=int(one["n_models"]), slope_z=finite(one["slope_z"]),
        flags=[*one["flags"], *(["testlet"] if key in hanging else [])],
    )  # fmt: skip


def _verdict(fitted: irt.Fit) -> dict[str, Any]:
    verdict = fitted.verdict
    left_out = verdict.excluded
    return {
        "converged": bool(verdict.converged),
        "iterations": int(verdict.iterations),
        "decrement": finite(verdict.decrement),
        "max_grad": finite(verdict.max_grad),
        "cholesky_ok": bool(verdict.cholesky_ok),
        "models_left_out": [[_plain(key), why] for key, why in left_out.models],
        "items_left_out": [[_plain(key), why] for key, why in left_out.items],
        "notes": list(verdict.notes),
        "text": str(verdict),
    }


def _plain(key: Any) -> Any:
    """Give a key as JSON has it: an item's identity whole, everything else as people see it."""
    return list(key) if isinstance(key, ItemKey) else str(key)


def _numbers(values: dict[str, Any]) -> dict[str, float | None]:
    return {name: finite(value) for name, value in values.items()}
