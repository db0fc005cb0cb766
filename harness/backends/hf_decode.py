"""The decoding loop of the `hf` backend.

Our own loop, because three things must hold that a general `generate` does not promise: every row
draws from its own generator (so no answer depends on its neighbours), stop strings are found in the
text, and left padding with explicit positions is used whatever the tokenizer's default.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import torch
from msgspec import Struct

from harness.backends.stops import cut
from harness.core.types import GenerateRequest, Generation

if TYPE_CHECKING:
    from harness.backends.hf import HfBackend


class Decoded(Struct):
    """One row's answer: its text after stop strings, and its tokens without EOS.

    `n_tokens` counts what was generated, stop string included; `logprobs` are those of the tokens
    that the text needs.
    """

    text: str
    finish_reason: Literal["stop", "length"]
    n_tokens: int
    logprobs: tuple[float, ...]


class _Row(Struct):
    index: int
    room: int
    generator: torch.Generator
    ids: list[int]
    logprobs: list[float]
    finish: Literal["stop", "length"] | None = None


@torch.inference_mode()
def decode(
    backend: HfBackend, requests: Sequence[GenerateRequest], prompts: Sequence[list[int]]
) -> list[Decoded]:
    """Generate for rows that share their generation parameters.

    Parameters
    ----------
    backend : HfBackend
    requests : sequence of GenerateRequest
    prompts : sequence of list of int
        Token ids, each shorter than the model's context.

    Returns
    -------
    list of Decoded
        In the order asked.
    """
    generation = requests[0].generation
    rows = [_row(backend, i, r, p) for i, (r, p) in enumerate(zip(requests, prompts, strict=True))]
    ids, mask = _left_pad(backend, prompts)
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    active = list(rows)
    ends = _end_tokens(backend)
    cache: Any = None
    while active:
        out = backend.model(
            input_ids=ids, attention_mask=mask, position_ids=positions, cache=cache,
            use_cache=True, logits_to_keep=1,
        )  # fmt: skip
        cache = out.cache
        tokens = _draw(out.logits[:, -1, :].float(), active, generation)
        for row in active:
            _check_end(backend, row, generation, ends)
        keep = [i for i, row in enumerate(active) if row.finish is None]
        if not keep:
            break
        ids = tokens[:, None]
        positions = positions[:, -1:] + 1
        mask = torch.cat([mask, mask.new_ones(len(active), 1)], dim=1)
        if len(keep) < len(active):
            select = torch.tensor(keep, device=ids.device)
            ids, positions, mask = ids[select], positions[select], mask[select]
            cache.batch_select_indices(select)
            active = [active[i] for i in keep]
    return [_decoded(backend, row, generation) for row in rows]


def _row(backend: HfBackend, index: int, request: GenerateRequest, prompt: list[int]) -> _Row:
    room = request.generation.max_tokens
    if backend.context_length is not None:
        room = min(room, backend.context_length - len(prompt))
    generator = torch.Generator().manual_seed(request.seed)
    return _Row(index, room, generator, [], [])


def _left_pad(
    backend: HfBackend, prompts: Sequence[list[int]]
) -> tuple[torch.Tensor, torch.Tensor]:
    width = max(map(len, prompts))
    pad = backend.tokenizer.pad_token_id or 0
    ids = torch.tensor([[pad] * (width - len(p)) + p for p in prompts], device=backend.device)
    mask = torch.tensor(
        [[0] * (width - len(p)) + [1] * len(p) for p in prompts], device=backend.device
    )
    return ids, mask


def _draw(logits: torch.Tensor, rows: Sequence[_Row], generation: Generation) -> torch.Tensor:
    """Draw one token a row; log-probabilities are those at temperature 1, in fp32."""
    logprobs = logits.log_softmax(-1)
    if generation.temperature == 0:
        tokens = logits.argmax(-1)
    else:
        weights = _nucleus((logits / generation.temperature).softmax(-1), generation.top_p).cpu()
        drawn = [
            torch.multinomial(w, 1, generator=row.generator)
            for w, row in zip(weights, rows, strict=True)
        ]
        tokens = torch.cat(drawn).to(logits.device)
    chosen = logprobs.gather(1, tokens[:, None])[:, 0].tolist()
    for row, token, logprob in zip(rows, tokens.tolist(), chosen, strict=True):
        row.ids.append(token)
        row.logprobs.append(logprob)
    return tokens


def _nucleus(weights: torch.Tensor, top_p: float) -> torch.Tensor:
    """Keep the smallest set of tokens whose probability reaches `top_p` (at least one)."""
    if top_p >= 1:
        return weights
    ordered, order = weights.sort(-1, descending=True)
    before = ordered.cumsum(-1) - ordered
    ordered = ordered.masked_fill(before >= top_p, 0.0)
    return torch.zeros_like(weights).scatter(-1, order, ordered)


def _check_end(backend: HfBackend, row: _Row, generation: Generation, ends: set[int]) -> None:
    if row.ids[-1] in ends:
        row.ids.pop()
        row.logprobs.pop()
        row.finish = "stop"
    elif generation.stop and _stopped(backend, row, generation.stop):
        row.finish = "stop"
    elif len(row.ids) >= row.room:
        row.finish = "length"


def _end_tokens(backend: HfBackend) -> set[int]:
    configured = backend.model.generation_config.eos_token_id
    many = configured if isinstance(configured, list) else [configured]
    return {t for t in (*many, backend.tokenizer.eos_token_id) if t is not None}


def _stopped(backend: HfBackend, row: _Row, stop: Sequence[str]) -> bool:
    # Every token gives at least one character or part of one (4 bytes at most), so this tail
    # holds every stop string that could have ended with the newest token.
    tail = row.ids[-4 * max(map(len, stop)) - 4 :]
    return cut(_text(backend, tail), stop)[1]


def _text(backend: HfBackend, ids: list[int]) -> str:
    text: str = backend.tokenizer.decode(ids, skip_special_tokens=True)
    return text


def _decoded(backend: HfBackend, row: _Row, generation: Generation) -> Decoded:
    text, stopped = cut(_text(backend, row.ids), generation.stop)
    finish = "stop" if stopped else row.finish or "length"
    kept = len(row.ids)
    while stopped and kept and len(_text(backend, row.ids[: kept - 1])) >= len(text):
        kept -= 1
    return Decoded(text, finish, len(row.ids), tuple(row.logprobs[:kept]))
