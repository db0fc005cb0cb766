"""Measure packed log-likelihood of the `hf` backend against lm-eval's HFLM.

    .venv/bin/python -P bench/packed.py [--model hf:tiny] [--items 1000] [--repeats 3] [--json]

Both run in one process on the same weights, in turn, one thread, HFLM at batch 16 with its
reuse of one-token continuations on, tokenisation inside both timings. A speed
ratio means nothing without the lengths, so these stand beside it.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from harness.backends.base import LoadOptions, load
from harness.core.types import ChoiceRequest, Message

_TOLERANCE = 1e-4
_BARS = {(5, 1): 1.3, (5, 12): 3.0}  # (shots, choice tokens) -> least ratio
_QUESTION = "Question: So, what is {} + {}?\nAnswer:"
_WORDS = ("red", "blue", "green", "black", "white", "round", "small", "tall", "old", "new")


class Result(NamedTuple):
    """One setting: mean lengths in tokens, CPU seconds, and how far the numbers lie apart."""

    shots: int
    context_tokens: float
    choice_tokens: float
    hflm_s: float
    packed_s: float
    ratio: float
    max_abs_diff: float
    argmax_changes: int
    greedy_changes: int
    bar: float | None

    @property
    def ok(self) -> bool:
        """Whether numbers and speed are as promised."""
        same = self.max_abs_diff < _TOLERANCE and not self.argmax_changes
        return same and self.ratio >= (self.bar or 0)


def main() -> int:
    """Measure all settings, print a line each, exit 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--model", default="hf:tiny")
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--calls", type=int, default=0, help="requests a call; 0: all at once")
    parser.add_argument("--batch-size", type=int, help="rows a batch instead of a token limit")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # HFLM warns that it was handed a model, which is the point
    backend: Any = load(
        f"{options.model}?device=cpu&threads=1",
        LoadOptions(batch_size=options.batch_size, chat_template="off"),
    )
    results = []
    for shots in (0, 5):
        for words in (1, 12):
            rows = items(options.items, shots, words)
            calls = options.calls or len(rows)
            result = measure(backend, rows, options.repeats, calls, _BARS.get((shots, words)))
            results.append(result._replace(shots=shots))
            if not options.json:
                _print(results[-1])
    if options.json:
        print(json.dumps([r._asdict() for r in results], indent=2))
    return 0 if all(r.ok for r in results) else 1


def items(n: int, shots: int, words: int) -> list[tuple[str, tuple[str, ...]]]:
    """Write n sums with four options each, of one number or of about `words` tokens."""
    rng = random.Random(0)

    def option(value: int) -> str:
        if words == 1:
            return f" {value}"
        return f" {value}, " + " ".join(rng.choice(_WORDS) for _ in range(words - 5))

    rows = []
    for _ in range(n):
        a, b = rng.randrange(21), rng.randrange(21)
        pairs = [(rng.randrange(21), rng.randrange(21)) for _ in range(shots)]
        context = "".join(f"{_QUESTION.format(x, y)} {x + y}\n\n" for x, y in pairs)
        values = [a + b, *rng.sample([v for v in range(41) if v != a + b], 3)]
        rows.append((context + _QUESTION.format(a, b), tuple(option(v) for v in values)))
    return rows


def measure(
    backend: Any, rows: list[tuple[str, tuple[str, ...]]], repeats: int, calls: int,
    bar: float | None,
) -> Result:  # fmt: skip
    """Run both sides `repeats` times in turn and compare."""
    from lm_eval.models.huggingface import HFLM  # type: ignore[import-untyped]

    lm = HFLM(pretrained=backend.model, tokenizer=backend.tokenizer, batch_size=16)
    hflm(lm, rows[:16])
    packed(backend, rows[:16], calls)
    theirs, ours = [], []
    for _ in range(repeats):
        theirs.append(_timed(lambda: hflm(lm, rows)))
        ours.append(_timed(lambda: packed(backend, rows, calls)))
    a, b = theirs[-1][1], ours[-1][1]
    seconds = [statistics.median(t for t, _ in side) for side in (theirs, ours)]
    splits = [backend.split(context, c) for context, cs in rows for c in cs]
    return Result(
        shots=0,
        context_tokens=statistics.mean(len(c) for c, _ in splits),
        choice_tokens=statistics.mean(len(c) for _, c in splits),
        hflm_s=seconds[0],
        packed_s=seconds[1],
        ratio=seconds[0] / seconds[1],
        max_abs_diff=max(
            abs(p - q)
            for x, y in zip(a, b, strict=True)
            for (p, _), (q, _) in zip(x, y, strict=True)
        ),
        argmax_changes=sum(_best(x) != _best(y) for x, y in zip(a, b, strict=True)),
        greedy_changes=sum(
            p != q for x, y in zip(a, b, strict=True) for (_, p), (_, q) in zip(x, y, strict=True)
        ),
        bar=bar,
    )


Scores = list[list[tuple[float, bool]]]


def packed(backend: Any, rows: list[tuple[str, tuple[str, ...]]], calls: int) -> Scores:
    """Ask our backend, `calls` requests at a time."""
    requests = [
        ChoiceRequest(item_id=str(i), messages=(Message("user", context),), continuations=cs)
        for i, (context, cs) in enumerate(rows)
    ]
    outputs = [
        output
        for at in range(0, len(requests), calls)
        for output in backend.loglikelihood(requests[at : at + calls])
    ]
    return [list(zip(o.choice_logprobs, o.choice_greedy, strict=True)) for o in outputs]


def hflm(lm: Any, rows: list[tuple[str, tuple[str, ...]]]) -> Scores:
    """Ask lm-eval's HFLM on the same weights."""
    from lm_eval.api.instance import Instance  # type: ignore[import-untyped]

    asked = [
        Instance("loglikelihood", {}, (context, c), i)
        for i, (context, cs) in enumerate(rows)
        for c in cs
    ]
    answers = iter(lm.loglikelihood(asked, disable_tqdm=True))
    return [[next(answers) for _ in cs] for _, cs in rows]


def _timed(run: Callable[[], Scores]) -> tuple[float, Scores]:
    start = time.process_time()
    found = run()
    return time.process_time() - start, found


def _best(scores: list[tuple[float, bool]]) -> int:
    return max(range(len(scores)), key=lambda i: scores[i][0])


def _print(r: Result) -> None:
    bar = f" (at least {r.bar})" if r.bar else ""
    print(
        f"{'ok  ' if r.ok else 'MISS'} {r.shots} shots, context {r.context_tokens:.1f} tokens, "
        f"choice {r.choice_tokens:.2f}: HFLM {r.hflm_s:.2f} s, packed {r.packed_s:.2f} s, "
        f"ratio {r.ratio:.2f}{bar}; max |diff| {r.max_abs_diff:.1e}, "
        f"{r.argmax_changes} argmax and {r.greedy_changes} greedy changes",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
