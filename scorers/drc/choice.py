"""The scorer `drc_choice`: run the candidate whose index is the answer."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from harness.core.types import Output, Sample, Score
from scorers.drc.scorer import DrcScorer

_INDEX = re.compile(r"[0-9]{1,4}")


def index_in(text: str, n: int) -> int | None:
    r"""Read an answer that is the index of one of `n` candidates and nothing else.

    Examples
    --------
    >>> index_in(" 3\n", 10), index_in("10", 10), index_in("I take 3.", 10)
    (3, None, None)
    """
    found = _INDEX.fullmatch(text.strip())
    index = int(text) if found else n
    return index if index < n else None


def floor_and_ceiling(success: Sequence[int]) -> dict[str, float]:
    """Give what a pool allows: `oracle`, a right one is there; `random`, their share; `first`.

    Parameters
    ----------
    success : sequence of int
        1 for each candidate that is right; empty where nobody knows: then nothing is given.

    Examples
    --------
    >>> floor_and_ceiling([0, 1, 0, 0])
    {'oracle': 1.0, 'random': 0.25, 'first': 0.0}
    """
    if not success:
        return {}
    return {
        "oracle": float(any(success)),
        "random": sum(success) / len(success),
        "first": float(success[0]),
    }


def drc_choice(engine: str = "klayout", sandbox: str = "auto") -> DrcChoice:
    """Judge a choice among decks by running the chosen one (the scorer `drc_choice`).

    Parameters
    ----------
    engine : {"klayout", "regions"}
    sandbox : str
        The level of isolation asked for.

    Raises
    ------
    ValueError
        Another engine.
    """
    return DrcChoice(engine, sandbox)


class DrcChoice:
    """See `drc_choice`; the item's metadata has `candidates`, and `success` where it is known."""

    def __init__(self, engine: str, sandbox: str) -> None:
        self._decks = DrcScorer(engine, sandbox)
        self.at_once = self._decks.at_once

    def __call__(self, sample: Sample, output: Output) -> Score:
        """Read the index, and run that candidate on the item's layouts."""
        candidates: Sequence[str] = sample.metadata["candidates"]
        pool = floor_and_ceiling(sample.metadata.get("success", ()))
        index = index_in(output.text, len(candidates))
        if index is None:
            said = f"the answer is not one index from 0 to {len(candidates) - 1}"
            return msgspec.structs.replace(Score.no_answer(said), metrics=pool)
        # Judged like any answer that holds the deck, fences and all.
        made = self._decks(sample, Output(text=candidates[index]))
        return msgspec.structs.replace(
            made,
            answer=str(index),
            # An index was read; what it leads to is no deck.
            reason="no_deck" if made.reason == "no_answer" else made.reason,
            metrics={**made.metrics, **pool},
            facts={**made.facts, "chosen": index},
            explanation=f"candidate {index}: {made.explanation}",
        )

    def close(self) -> None:
        """Let the engine go."""
        self._decks.close()
