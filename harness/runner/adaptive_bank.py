"""The item bank of an adaptive run: found, checked against the task, and priced."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.core.errors import StoreError, UsageError
from harness.core.keys import sample_hash
from harness.runner.config import is_bank_file
from harness.store.banks import BankItem, BankRow, StoredBank, find_bank, item_costs, newest_bank_of
from harness.store.ingest import refresh
from harness.store.layout import Store
from harness.store.publish import snapshot

if TYPE_CHECKING:
    import irt
    from harness.runner.plan import Plan
    from harness.store.fits import FitRow

_NAMED = 3
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
_COLUMNS = ("a", "b", "d", "se_log_a", "se_b", "se_d", "cov")
_NOISE_S = 0.1  # attempts shorter than this on average differ by chance, not by item


class TaskBank(NamedTuple):
    """The part of a bank that a task's items are measured with.

    Parameters
    ----------
    name : str
        As asked for.
    bank : irt.Bank
        The task's items only, keyed (task, version, item), with their costs.
    n_task : int
        All items of the task.
    outside : tuple of str
        The task's items that the bank does not have.
    changed : tuple of str
        Those that it has with other content.
    """

    name: str
    bank: irt.Bank
    n_task: int
    outside: tuple[str, ...]
    changed: tuple[str, ...]

    def notes(self, task: str) -> list[str]:
        """Say which items the estimate leaves out, a line for each reason."""
        return [
            f"{task}: {len(items)} of {self.n_task} items {why} bank {self.name} ({_some(items)}): "
            "they are not asked, and the estimate says nothing of them"
            for items, why in (
                (self.outside, "are not in"), (self.changed, "have other content than in"),
            )
            if items
        ]  # fmt: skip


def task_bank(plan: Plan, store: Store) -> TaskBank:
    """Find the bank that a plan asks for and keep what belongs to its task.

    Parameters
    ----------
    plan : Plan
        Of an adaptive run.
    store : Store

    Returns
    -------
    TaskBank

    Raises
    ------
    UsageError
        No bank, one that cannot be read, one of a fit that has not converged, one of another
        version of the task, or one without any of its items.
    """
    task, version = plan.task.name, plan.task.version
    name, whole = _find(plan.config.bank, task, store)
    mine = [key for key in whole.item if isinstance(key, tuple) and key[0] == task]
    if not mine:
        raise UsageError(f"bank {name} has no item of {task}: `harness fit --bank` makes one of it")
    known = {str(key[2]): key for key in mine if len(key) == 3 and key[1] == version}
    if not known:
        versions = ", ".join(sorted({str(key[1]) for key in mine}))
        raise UsageError(
            f"bank {name} is of version {versions} of {task}, which is now version {version}: "
            "run models on the task as it is and make a new one with `harness fit --bank`"
        )
    content = dict(zip(whole.item, whole.content, strict=True)) if whole.content else {}
    ids = {sample.item_id: sample_hash(sample) for sample in plan.samples}
    changed = [
        i for i, sha in ids.items() if i in known and content.get(known[i]) not in (None, sha)
    ]
    outside = [i for i in ids if i not in known]
    kept = {known[i] for i in ids if i in known} - {known[i] for i in changed}
    if not kept:
        raise UsageError(
            f"bank {name} has none of the {len(ids)} items of {task} as they are now "
            f"({len(outside)} unknown, {len(changed)} with other content)"
        )
    bank = whole.subset(_array([key in kept for key in whole.item]))
    return TaskBank(name, _priced(bank, store), len(ids), tuple(outside), tuple(changed))


def make_bank(fitted: irt.Fit, name: str, row: FitRow) -> StoredBank:
    """Make the bank of a fit.

    Parameters
    ----------
    fitted : irt.Fit
    name : str
    row : FitRow
        The fit in the store.

    Returns
    -------
    StoredBank

    Raises
    ------
    UsageError
        A name that could be no file's, a fit that has not converged, or an item without finite
        errors.
    """
    import irt
    from irt.replay import widening

    if not re.fullmatch(_NAME, name) or is_bank_file(name):
        raise UsageError(f"--bank {name!r}: a name has letters, digits, '_', '-' and '.' only")
    try:
        bank = irt.Bank.of(fitted)
        widen = widening(fitted)
    except irt.DataError as error:
        raise UsageError(f"no bank {name} is made: {error}") from None
    numbers = {column: getattr(bank, column).tolist() for column in _COLUMNS}
    items = []
    for i, key in enumerate(bank.item):
        task, version, item = key if isinstance(key, tuple) else (None, None, str(key))
        items.append(
            BankItem(
                name=name, task_id=task, version=version, item_id=item, category=None,
                content_sha256=None, **{c: values[i] for c, values in numbers.items()},
            )
        )  # fmt: skip
    head = BankRow(
        name=name, fit_id=row.fit_id, method=bank.method, gauge=bank.gauge,
        data_hash=bank.data_hash, converged=row.converged, mean=bank.mean, sd=bank.sd, widen=widen,
        n_items=len(bank), created=row.created,
    )  # fmt: skip
    return StoredBank(head, items)


def add_contents(
    found: StoredBank, contents: Mapping[tuple[str, str, str], tuple[str | None, str | None]]
) -> None:
    """Put in what the store knows of the items: their categories and content hashes.

    Parameters
    ----------
    found : StoredBank
    contents : mapping of (task, version, item) to (category, content hash)
    """
    for item in found.items:
        if item.task_id is not None and item.version is not None:
            key = (item.task_id, item.version, item.item_id)
            item.category, item.content_sha256 = contents.get(key, (None, None))


def write_bank(found: StoredBank, path: Path) -> None:
    """Write a bank as a JSON file that `irt.Bank.from_dict` reads.

    Raises
    ------
    StoreError
        When it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(_to_irt(found).to_dict(), indent=1)
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from error


def bank_file(store: Store, name: str) -> Path:
    """Give the place of a bank's file beside the store."""
    return store.root / "banks" / f"{name}.json"


def _find(asked: str | None, task: str, store: Store) -> tuple[str, irt.Bank]:
    if asked is not None and is_bank_file(asked):
        return Path(asked).name, _read_file(Path(asked))
    found = None
    if store.run_ids() or store.database.exists():
        refresh(store)
        con = snapshot(store)
        name = asked or newest_bank_of(con, task)
        found = None if name is None else find_bank(con, name)
    if found is None:
        what = f"unknown item bank {asked!r}: there are none" if asked else "no bank has its items"
        raise UsageError(f"{task}: {what} in this store; `harness fit --bank` makes one")
    if not found.bank.converged:
        raise UsageError(f"bank {found.bank.name} is of a fit that has not converged: fit it anew")
    return found.bank.name, _to_irt(found)


def _read_file(path: Path) -> irt.Bank:
    import irt

    try:
        return irt.Bank.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise UsageError(f"cannot read bank {path}: {error.strerror or error}") from None
    except ValueError as error:  # no JSON, no text, or no bank
        raise UsageError(f"cannot use bank {path}: {str(error).splitlines()[0]}") from None


def _to_irt(found: StoredBank) -> irt.Bank:
    import irt

    rows, head = found.items, found.bank
    columns = {
        name: _array([getattr(row, name) for row in rows])
        for name in ("a", "d", "se_log_a", "se_d", "cov")
    }
    return irt.Bank(
        tuple(
            row.item_id if row.task_id is None else (row.task_id, row.version, row.item_id)
            for row in rows
        ),
        cost=_array([1.0] * len(rows)), group=tuple(row.category for row in rows),
        mean=head.mean, sd=head.sd, gauge=head.gauge, method=head.method,
        data_hash=head.data_hash, content=tuple(row.content_sha256 for row in rows),
        widen=head.widen, **columns,
    )  # fmt: skip


def _priced(bank: irt.Bank, store: Store) -> irt.Bank:
    """Put in what attempts at the items have cost: dollars, else tokens, else seconds; mean 1.

    An item without a figure costs what the others do on average.
    """
    import dataclasses

    if not store.run_ids():
        return bank
    keys: Sequence[Any] = bank.item
    costs = item_costs(snapshot(store), keys[0][0], keys[0][1])
    for kind, least in enumerate((0.0, 0.0, _NOISE_S)):
        known = {i: c for i, all_kinds in costs.items() if (c := all_kinds[kind]) is not None}
        found = [known[key[2]] for key in keys if known.get(key[2], 0.0) > 0]
        mean = sum(found) / len(found) if found else 0.0
        if mean > least:
            cost = [(known.get(key[2]) or mean) / mean for key in keys]
            return dataclasses.replace(bank, cost=_array(cost))
    return bank


def _array(values: Sequence[Any]) -> Any:
    import numpy as np

    return np.array(values)


def _some(items: Sequence[str]) -> str:
    return ", ".join(items[:_NAMED]) + (", …" if len(items) > _NAMED else "")
