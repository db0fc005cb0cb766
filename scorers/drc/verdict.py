"""From what a deck said of every layout to a verdict: ours, and upstream's beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from scorers.drc.results import DeckRun, LayoutRun


class Confusion(NamedTuple):
    """How often a category fired, and should have."""

    tp: int
    fp: int
    fn: int
    tn: int

    @property
    def f1(self) -> float:
        """2 tp / (2 tp + fp + fn); 1 where there was nothing to find and nothing was found.

        Examples
        --------
        >>> round(Confusion(3, 1, 0, 0).f1, 6), Confusion(0, 0, 0, 5).f1
        (0.857143, 1.0)
        """
        all_ = 2 * self.tp + self.fp + self.fn
        return 2 * self.tp / all_ if all_ else 1.0

    @property
    def upstream_f1(self) -> float:
        """The same with 0 for 0/0, as upstream has it: a right deck on clean layouts alone fails."""
        all_ = 2 * self.tp + self.fp + self.fn
        return 2 * self.tp / all_ if all_ else 0.0


class Row(Struct, frozen=True, kw_only=True):
    """One layout: what it should say, what the deck said, and whether that is right.

    Attributes
    ----------
    layout : int
    status : str
    label, bits : list of int
        Of the categories in order; `bits` of a failed layout is empty.
    right : bool
    items : int
        Markers in all.
    unknown : list of str
        Categories with items that the task does not have.
    message : str
    seconds : float
    """

    layout: int
    status: str
    label: list[int]
    bits: list[int]
    right: bool
    items: int
    unknown: list[str]
    message: str
    seconds: float


class Verdict(Struct, frozen=True, kw_only=True):
    """What a deck is worth on a task.

    Attributes
    ----------
    success : bool
        Every layout ran well, each category fired on exactly the layouts that violate it, no report
        has an item of another category, and nothing depends on the order of the layouts.
    partial : float
        Share of layouts on which all categories are right; a failed layout is wrong.
    f1 : dict of str to float
        By category, over the layouts that ran well; a failed layout counts as saying the opposite.
    compile_rate : float
        Share of layouts that ran well.
    upstream : bool
        What upstream's rules say: a failed layout says "no violation", 0/0 is 0, a quoted name is an
        unknown category.
    reason : str
        A short machine word for what kept it from success; empty with it.
    rows : list of Row
    """

    success: bool
    partial: float
    f1: dict[str, float]
    compile_rate: float
    upstream: bool
    reason: str
    rows: list[Row]


def verdict(run: DeckRun, categories: Sequence[str], labels: Sequence[Sequence[int]]) -> Verdict:
    """Judge a deck by what it said of every layout.

    Parameters
    ----------
    run : DeckRun
    categories : sequence of str
    labels : sequence of sequence of int
        One row a layout, 1 where it violates the category.

    Raises
    ------
    ValueError
        Rows or columns of labels and results do not fit together, or there is no layout: then
        nothing can be right.
    """
    if not labels or len(labels) != len(run.runs):
        raise ValueError(f"{len(labels)} rows of labels for {len(run.runs)} layouts")
    if any(len(row) != len(categories) for row in labels):
        raise ValueError(f"labels do not have {len(categories)} columns each")
    rows = [_row(one, categories, label) for one, label in zip(run.runs, labels, strict=True)]
    ran = [row for row in rows if row.status == "ok"]
    counted = {name: _confusion(rows, k) for k, name in enumerate(categories)}
    right = sum(row.right for row in rows)
    reason = _reason(run, rows)
    return Verdict(
        success=not reason,
        partial=0.0 if run.stateful else right / len(rows),
        f1={name: found.f1 for name, found in counted.items()},
        compile_rate=len(ran) / len(rows),
        upstream=_upstream(rows, categories),
        reason=reason,
        rows=rows,
    )


def _row(run: LayoutRun, categories: Sequence[str], label: Sequence[int]) -> Row:
    bits = [int(run.counts.get(name, 0) > 0) for name in categories] if run.status == "ok" else []
    unknown = sorted(name for name, n in run.counts.items() if n and name not in categories)
    return Row(
        layout=run.index, status=run.status, label=list(label), bits=bits,
        right=run.status == "ok" and bits == list(label) and not unknown,
        items=sum(run.counts.values()), unknown=unknown, message=run.message,
        seconds=run.seconds,
    )  # fmt: skip


def _confusion(rows: Sequence[Row], k: int) -> Confusion:
    pairs = [(row.label[k], row.bits[k] if row.bits else 1 - row.label[k]) for row in rows]
    return Confusion(
        tp=pairs.count((1, 1)), fp=pairs.count((0, 1)), fn=pairs.count((1, 0)),
        tn=pairs.count((0, 0)),
    )  # fmt: skip


def _reason(run: DeckRun, rows: Sequence[Row]) -> str:
    """Name what is wrong first of all: how it failed, then what it said."""
    statuses = {row.status for row in rows}
    for status in ("timeout", "crash", "error", "no_report", "bad_report"):
        if status in statuses:
            return f"deck_{status}"
    if run.stateful:
        return "stateful"
    if any(row.unknown for row in rows):
        return "unknown_category"
    return "" if all(row.right for row in rows) else "wrong_layouts"


def _upstream(rows: Sequence[Row], categories: Sequence[str]) -> bool:
    """Apply upstream's rules (commit 1d011cf) to the same results.

    It reads categories from the report's text, where a name that is no plain word stands in quotes,
    and so calls that name unknown.
    """
    if any(row.unknown for row in rows):
        return False
    for k, name in enumerate(categories):
        bits = [row.bits[k] if row.bits else 0 for row in rows]
        if any(bits) and not _is_plain(name):
            return False
        pairs = list(zip((row.label[k] for row in rows), bits, strict=True))
        found = Confusion(
            pairs.count((1, 1)), pairs.count((0, 1)), pairs.count((1, 0)), pairs.count((0, 0))
        )
        if found.upstream_f1 < 1.0:
            return False
    return True


def _is_plain(name: str) -> bool:
    """Tell whether a report writes a name without quotes."""
    return bool(name) and name.isascii() and all(c.isalnum() or c in "_$" for c in name)


def metrics_of(found: Verdict) -> Mapping[str, float]:
    """Give the verdict's further figures, by the names they are stored under."""
    return {
        "partial": found.partial,
        "f1": sum(found.f1.values()) / len(found.f1),
        "compile_rate": found.compile_rate,
        "upstream_success": float(found.upstream),
    }
