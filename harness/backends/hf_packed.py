"""Packed log-likelihood: one sequence an item instead of one a choice.

A context and the choices that share it are laid out side by side, every choice without its last
token, which is never fed in::

    ids        c0 c1 c2 | a0 a1 | b0 b1 b2 |
    positions   0  1  2 |  3  4 |  3  4  5 |
    sees          c     | c + a |  c + b   |

The mask keeps the choices apart, and each starts again at the position behind the context: so every
token meets what it would meet alone, and the context is computed once. The first token of every
choice is read behind the context, token t behind token t - 1 of its own choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import torch

CPU_TOKENS = 1_536  # rows x longest row of one call: more gains nothing, see docs/decisions/0007
GPU_TOKENS = 32_768
_MASKED = ("sdpa", "eager")  # the attentions of transformers that take a 4D additive mask

Pair = tuple[list[int], list[int]]


class Scored(NamedTuple):
    """One continuation: the sum of log p over its tokens in nats, and whether each is the argmax."""

    logprob: float
    greedy: bool


class Layout(NamedTuple):
    """How rows are laid out.

    Attributes
    ----------
    tokens : int
        Rows times longest row of one call, and the choices of one row; a single row may be longer
        by its context.
    rows : int or None
        Rows of one call, instead of `tokens`.
    window : int or None
        Longest context with a choice that may share its row with another; None: any. 0: none may,
        each choice gets a row of its own (one-token choices still share, they need no mask).
    """

    tokens: int = CPU_TOKENS
    rows: int | None = None
    window: int | None = None


class _Row(NamedTuple):
    """Choices of one item that share a context; `places` are their positions in the item."""

    item: int
    places: list[int]
    context: list[int]
    choices: list[list[int]]

    @property
    def length(self) -> int:
        return len(self.context) + sum(len(c) - 1 for c in self.choices)

    @property
    def masked(self) -> bool:
        # A lone choice, or choices of one token (nothing of which is fed in), are plain causal.
        return len(self.choices) > 1 and any(len(c) > 1 for c in self.choices)


def score(model: Any, items: Sequence[Sequence[Pair]], layout: Layout) -> list[list[Scored]]:
    """Score the continuations of items.

    Parameters
    ----------
    model : transformers causal language model
    items : sequence of sequence of (context ids, continuation ids)
        Neither part empty. Pairs of an item with equal contexts share a row.
    layout : Layout
        Changes the cost; results by rounding only (less than 1e-4 in fp32).

    Returns
    -------
    list of list of Scored
        log p(continuation | context) = sum over tokens of log softmax in fp32, in the order given.
    """
    results: list[list[Any]] = [[None] * len(pairs) for pairs in items]
    rows = [row for i, pairs in enumerate(items) for row in _rows(i, pairs, layout)]
    for batch in _batches(rows, layout):
        for row, scores in zip(batch, _score_or_halve(model, batch), strict=True):
            for place, scored in zip(row.places, scores, strict=True):
                results[row.item][place] = scored
    return results


def windows(ids: list[int], prefix: int, room: int | None) -> list[Pair]:
    """Cut a text's tokens into windows of at most `room` inputs, as lm-eval's rolling rule does.

    Parameters
    ----------
    ids : list of int
        Every token of it is scored once.
    prefix : int
        What foretells the first token.
    room : int or None
        The model's context length.

    Returns
    -------
    list of (context, scored tokens)

    Examples
    --------
    >>> windows([1, 2, 3, 4, 5], prefix=0, room=4)
    [([0], [1, 2, 3, 4]), ([1, 2, 3, 4], [5])]
    """
    room = room or len(ids)
    found = [([prefix], ids[:room])] if ids else []
    for start in range(room, len(ids), room or 1):
        end = min(start + room, len(ids))
        found.append((ids[end - room - 1 : start], ids[start:end]))
    return found


def widest_window(model: Any) -> int | None:
    """Give the `Layout.window` within which packing is right for a model.

    Sliding windows count the tokens between, which packing changes; recurrent layers and positions
    that follow from the place in the row (ALiBi) cannot be packed at all. Rather than keep a list
    of architectures, a made-up item is scored both ways.

    Returns
    -------
    int or None
        In tokens; None without a limit, 0 when choices cannot share rows.
    """
    config = model.config.get_text_config()
    if getattr(model.config, "_attn_implementation", None) not in _MASKED:
        return 0
    limits = [getattr(config, name, None) for name in ("sliding_window", "attention_chunk_size")]
    window = min((w for w in limits if w), default=None)
    item = _probe(config.vocab_size)
    alone = score(model, [item], Layout(window=0))[0]
    try:
        packed = score(model, [item], Layout())[0]
    except (TypeError, ValueError, RuntimeError, IndexError):
        return 0  # it takes no 4D mask or no positions
    # Half precision blurs the comparison; a wrong mask or position shifts much more than this.
    tolerance = 1e-3 if model.dtype == torch.float32 else 0.5
    same = all(abs(a.logprob - p.logprob) < tolerance for a, p in zip(alone, packed, strict=True))
    return window if same else 0


def _probe(vocabulary: int) -> list[Pair]:
    def ids(start: int, n: int) -> list[int]:
        return [(start + 37 * k) % vocabulary for k in range(n)]

    return [(ids(11, 6), ids(5 + 101 * j, 5)) for j in range(4)]


def _rows(item: int, pairs: Sequence[Pair], layout: Layout) -> Iterator[_Row]:
    """Split an item's choices into rows: by context, and so that the choices keep to the limit.

    However long a context is, its choices share it: that is where sharing saves most.
    """
    shared: dict[tuple[int, ...], list[int]] = {}
    for place, (context, _) in enumerate(pairs):
        shared.setdefault(tuple(context), []).append(place)
    for places in shared.values():
        p = len(pairs[places[0]][0])
        short = [j for j in places if len(pairs[j][1]) == 1]
        longest = p + max(len(pairs[j][1]) for j in places) - 1
        fits = layout.window is None or longest <= layout.window
        runs = [places] if fits else [short, *([j] for j in places if len(pairs[j][1]) > 1)]
        for run in runs:
            yield from _fill(item, run, pairs, layout.tokens)


def _fill(item: int, places: list[int], pairs: Sequence[Pair], limit: int) -> Iterator[_Row]:
    row: _Row | None = None
    for place in places:
        context, choice = pairs[place]
        if row is not None and row.length + len(choice) - 1 > len(context) + limit:
            yield row
            row = None
        row = row or _Row(item, [], context, [])
        row.places.append(place)
        row.choices.append(choice)
    if row is not None:
        yield row


def _batches(rows: list[_Row], layout: Layout) -> Iterator[list[_Row]]:
    """Fill batches with rows of like length, longest first: little padding, and memory runs out
    with the first batch or never. Rows that need no mask stay among themselves.
    """
    ordered = sorted(rows, key=lambda row: (not row.masked, -row.length))
    batch: list[_Row] = []
    for row in ordered:
        most = layout.rows or layout.tokens // batch[0].length if batch else 1
        if batch and (len(batch) >= most or row.masked != batch[0].masked):
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def _score_or_halve(model: Any, batch: list[_Row]) -> list[list[Scored]]:
    try:
        return _score_batch(model, batch)
    except torch.OutOfMemoryError:
        if len(batch) == 1:
            raise
    # Outside the handler: the exception would keep the tensors that filled the memory.
    half = len(batch) // 2
    return _score_or_halve(model, batch[:half]) + _score_or_halve(model, batch[half:])


@torch.inference_mode()
def _score_batch(model: Any, batch: list[_Row]) -> list[list[Scored]]:
    width = max(row.length for row in batch)
    heads: list[int] = []  # flat positions that are scored, each once
    reads: list[int] = []  # for every token of every choice: which of `heads` foretells it
    targets: list[int] = []
    for r, row in enumerate(batch):
        first = len(heads)
        # The last token of the context and all that follows foretell something.
        heads.extend(range(r * width + len(row.context) - 1, r * width + row.length))
        at = first + 1
        for choice in row.choices:
            reads.append(first)
            reads.extend(range(at, at + len(choice) - 1))
            at += len(choice) - 1
            targets.extend(choice)
    logits = _logits_at(model, _inputs(model, batch, width), heads)
    read, target = (torch.tensor(x, device=logits.device) for x in (reads, targets))
    logprobs = logits.log_softmax(-1)[read, target].tolist()
    greedy = (logits.argmax(-1)[read] == target).tolist()
    return list(_collect(batch, logprobs, greedy))


def _collect(
    batch: list[_Row], logprobs: list[float], greedy: list[bool]
) -> Iterator[list[Scored]]:
    at = 0
    for row in batch:
        scores = []
        for choice in row.choices:
            part = slice(at, at + len(choice))
            scores.append(Scored(sum(logprobs[part]), all(greedy[part])))
            at += len(choice)
        yield scores


def _inputs(model: Any, batch: list[_Row], width: int) -> dict[str, torch.Tensor]:
    """Lay a batch out, padded on the right: under a causal mask nothing sees what comes later."""
    fed = [chain(row.context, *(c[:-1] for c in row.choices)) for row in batch]
    ids = _padded(fed, width, 0, model.device)
    if not batch[0].masked:
        return {"input_ids": ids}
    parts = [_parts(row) for row in batch]
    places = [_positions(row) for row in batch]
    return {
        "input_ids": ids,
        "position_ids": _padded(places, width, 0, model.device),
        "attention_mask": _mask(_padded(parts, width, -1, model.device), model.dtype),
    }


def _parts(row: _Row) -> Iterator[int]:
    """Number the parts of a row, token by token: 0 the context, 1, 2, … the choices."""
    yield from (0 for _ in row.context)
    for j, choice in enumerate(row.choices, start=1):
        yield from (j for _ in choice[1:])


def _positions(row: _Row) -> Iterator[int]:
    start = len(row.context)
    yield from range(start)
    for choice in row.choices:
        yield from range(start, start + len(choice) - 1)


def _padded(rows: Sequence[Iterator[int]], width: int, fill: int, device: Any) -> torch.Tensor:
    lists = [list(row) for row in rows]
    return torch.tensor([r + [fill] * (width - len(r)) for r in lists], device=device)


def _mask(parts: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Make the additive mask, (rows, 1, width, width), from the parts, (rows, width).

    A token sees the earlier tokens of its own part and of the context, and itself; padding (-1)
    sees itself only, because a softmax over nothing is NaN.
    """
    query, key = parts[:, :, None], parts[:, None, :]
    width = parts.shape[1]
    causal = torch.ones(width, width, dtype=torch.bool, device=parts.device).tril()
    sees = causal & ((key == 0) | (key == query)) & (query >= 0)
    sees |= torch.eye(width, dtype=torch.bool, device=parts.device)
    mask = torch.zeros(sees.shape, dtype=dtype, device=parts.device)
    return mask.masked_fill(~sees, torch.finfo(dtype).min)[:, None]


def _logits_at(model: Any, inputs: dict[str, torch.Tensor], heads: list[int]) -> torch.Tensor:
    """Run a model, its output layer at some flat positions only: fp32 logits, (heads, vocabulary).

    A vocabulary is wide and most positions are not scored. The hidden states are picked just before
    the output layer, so that whatever a model does behind it (scaling, soft caps) still happens.
    """
    index = torch.tensor(heads, device=inputs["input_ids"].device)
    shape = inputs["input_ids"].shape
    picked = False

    def pick(_: Any, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        nonlocal picked
        if not args or args[0].shape[:2] != shape:
            return None
        picked = True
        return (args[0].flatten(0, 1)[index][None], *args[1:])

    layer = model.get_output_embeddings()
    hook = layer.register_forward_pre_hook(pick) if layer is not None else None
    try:
        logits: torch.Tensor = model(**inputs, use_cache=False).logits
    finally:
        if hook is not None:
            hook.remove()
    return (logits[0] if picked else logits.flatten(0, 1)[index]).float()
