"""A stored fit whose models bear the names that the other pages give them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from harness.store.fits import FitModel, StoredFit, find_fit
from leaderboard.rows.subjects import PLAIN, subjects

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def named_fit(con: DuckDBPyConnection, fit_id: str) -> StoredFit:
    """Read a fit.

    A fit tells two variants of a model apart by the beginning of their hashes. Here they are called
    what they are, precision and quantisation; the hash stays where that does not tell them apart.

    Raises
    ------
    UsageError
        No such fit.
    """
    found = find_fit(con, fit_id)
    hashed = [m for m in found.models if _mark(m) in m.model]
    if not hashed:
        return found
    names = _names(con, hashed, {m.model for m in found.models})
    models = [replace(m, model=names.get(m.model, m.model)) for m in found.models]
    fit = replace(found.fit, link=_renamed(found.fit.link, names))
    return replace(found, fit=fit, models=models)


def _mark(model: FitModel) -> str:
    return f" [{model.variant_id[:8]}]"


def _names(con: DuckDBPyConnection, hashed: list[FitModel], taken: set[str]) -> dict[str, str]:
    """Give the new name of each old one, where it can be one of its own."""
    labels = {s.key: s.label for s in subjects(con)}
    names: dict[str, str] = {}
    for m in hashed:
        label = labels.get((m.variant_id, m.strategy or ""))
        if label is not None:
            # What follows the hash names the strategy, which a label leaves out where it is plain.
            rest = m.model.partition(_mark(m))[2] if m.strategy in PLAIN else ""
            names[m.model] = label + rest
    new = list(names.values())
    return {old: name for old, name in names.items() if new.count(name) == 1 and name not in taken}


def _renamed(value: Any, names: dict[str, str]) -> Any:
    """Rename models wherever a link names them: as keys of figures and dates, and in lists."""
    if isinstance(value, dict):
        return {names.get(key, key): _renamed(inner, names) for key, inner in value.items()}
    if isinstance(value, list):
        return [_renamed(inner, names) for inner in value]
    return names.get(value, value) if isinstance(value, str) else value
