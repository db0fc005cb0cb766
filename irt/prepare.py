"""What can be fitted: empty models and items set aside, one connected block, enough of both."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from irt.data import DataError, Floats, Mask, Responses

MIN_MODELS = 4
Codes = NDArray[np.intp]


@dataclass(frozen=True)
class Excluded:
    """Models and items left out of a fit, each with the reason.

    Parameters
    ----------
    models, items : tuple of (name, reason)
    """

    models: tuple[tuple[Hashable, str], ...] = ()
    items: tuple[tuple[Hashable, str], ...] = ()


def prepare(
    responses: Responses, *, largest_block: bool = False, min_models: int = MIN_MODELS
) -> tuple[Responses, Excluded]:
    """Leave out what is empty and refuse what cannot be put on one scale.

    Parameters
    ----------
    responses : Responses
        Answers as read.
    largest_block : bool
        Where models and items fall into blocks without a common cell, fit the largest one (most
        cells) and state the rest as excluded, instead of refusing.
    min_models : int
        Fewer are refused; 1 where anchors give the scale, and then equal answers are no fault.

    Returns
    -------
    responses, excluded
        The part to fit, and what was left out and why.

    Raises
    ------
    DataError
        For no cells at all, disconnected blocks, fewer than four models, or answers that are all
        right or all wrong.
    """
    asked = responses.n > 0
    models, items = np.asarray(asked.any(axis=0)), np.asarray(asked.any(axis=1))
    left_models: list[tuple[Hashable, str]] = _out(responses.models, ~models, "no answers")
    left_items: list[tuple[Hashable, str]] = _out(responses.items, ~items, "no answers")
    if not models.any():
        raise DataError("there is no answer at all")
    kept = responses if models.all() and items.all() else responses.subset(items, models)
    model_block, item_block = _blocks(kept)
    if model_block.max() > 0:
        if not largest_block:
            raise DataError(_describe(kept, model_block, item_block))
        largest = _largest(kept, model_block)
        apart = "not connected with the largest block"
        models, items = np.equal(model_block, largest), np.equal(item_block, largest)
        left_models += _out(kept.models, ~models, apart)
        left_items += _out(kept.items, ~items, apart)
        kept = kept.subset(items, models)
    if len(kept.models) < min_models:
        raise DataError(
            f"{len(kept.models)} models are too few for a scale of their own (at least "
            f"{min_models}): score them on an existing fit with score_model"
        )
    solved = kept.k.sum()
    if min_models > 1 and solved in (0, kept.n.sum()):
        raise DataError(f"no variation: every answer is {'right' if solved else 'wrong'}")
    return kept, Excluded(tuple(left_models), tuple(left_items))


def _out(names: tuple[Hashable, ...], mask: Mask, why: str) -> list[tuple[Hashable, str]]:
    return [(names[number], why) for number in np.flatnonzero(mask)]


def _blocks(responses: Responses) -> tuple[Codes, Codes]:
    """Number the connected blocks of models and items, the block of the first model being 0."""
    n_models = responses.n.shape[1]
    if _all_reached(responses.n):
        return np.zeros(n_models, dtype=np.intp), np.zeros(len(responses.n), dtype=np.intp)
    from scipy.sparse import coo_array  # rarely needed, and dear to import
    from scipy.sparse.csgraph import connected_components

    asked = responses.n > 0
    item, model = np.nonzero(asked)
    size = n_models + len(asked)
    graph = coo_array((np.ones(len(item), dtype=np.int8), (model, item + n_models)), (size, size))
    _, block = connected_components(graph, directed=False)
    return block[:n_models], block[n_models:]


def _all_reached(n: Floats) -> bool:
    """Whether a few rounds from the first model reach everyone: the common case needs no graph."""
    models = np.zeros(n.shape[1])
    models[0] = 1.0
    for _ in range(4):
        items = (n @ models > 0).astype(np.float64)
        models = (items @ n > 0).astype(np.float64)
        if models.all() and items.all():
            return True
    return False


def _largest(responses: Responses, model_block: Codes) -> int:
    cells = (responses.n > 0).sum(axis=0)
    return int(np.argmax(np.bincount(model_block, weights=cells)))


def _describe(responses: Responses, model_block: Codes, item_block: Codes) -> str:
    """Name the blocks: the error a user gets who mixed two benchmarks without a link."""
    parts = []
    for block in range(int(model_block.max()) + 1):
        members = [responses.models[j] for j in np.flatnonzero(model_block == block)]
        tasks = [responses.items[i] for i in np.flatnonzero(item_block == block)]
        parts.append(f"{_some(members)} with {len(tasks)} items ({_some(tasks)})")
    shown = "; ".join(parts[:4]) + (f"; and {len(parts) - 4} more" if len(parts) > 4 else "")
    return (
        f"models and items fall into {len(parts)} blocks without a common model or item, so there "
        f"is no common scale: {shown}. Fit them apart, or the largest with largest_block=True"
    )


def _some(names: list[Hashable]) -> str:
    return ", ".join(map(str, names[:3])) + (f", ... ({len(names)})" if len(names) > 3 else "")
