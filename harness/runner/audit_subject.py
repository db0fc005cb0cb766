"""What an audit looks at and what it says: the task laid out once, for all checks to read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Literal

import msgspec
from msgspec import Struct

from harness.core.spec import parse_spec
from harness.core.task import Scorer, Task, make_task
from harness.core.types import Message, Output, Sample, Score, TextPart
from harness.runner.audit_text import clean
from harness.runner.config import RunConfig
from harness.runner.judging import NO_JUDGE, Judges, build_scorer, wants_judge
from harness.runner.prompt import Prompt
from harness.runner.scoring import close_scorer, judge

Verdict = Literal["ok", "warn", "fail"]

# Below this one-sided probability a share is no chance any more (divided by the number of tries).
LEVEL = 0.01
# A constant may be right in a tenth of items with free answers: small whole numbers are common.
FREE_CHANCE = 0.1


class Check(Struct, frozen=True, kw_only=True):
    """What one check found.

    Attributes
    ----------
    name : str
        Which check.
    verdict : {"ok", "warn", "fail"}
        ``warn``: know it when you read a score. ``fail``: the score is wrong until it is mended.
    value : float or None
        The figure it rests on, mostly a share of the items; None where there is none.
    why : str
        One sentence, with the first of the items it is about.
    """

    name: str
    verdict: Verdict
    value: float | None
    why: str


class Subject:
    """A task under audit.

    Parameters
    ----------
    config : RunConfig
        Says which task, with which data, seed and switches, and who judges its answers.

    Attributes
    ----------
    judges : Judges or None
        None where none is named or the scorer asks none.
    """

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        self.task: Task = make_task(config.task, config.task_request())
        self.samples: Sequence[Sample] = self.task.samples
        asked = config.judge if wants_judge(self.task.scorer) else None
        self.judges = Judges(asked) if asked else None
        each = self.judges.each if self.judges else ()
        self._scorer: Scorer = build_scorer(self.task.scorer, each, config.sandbox)

    def close(self) -> None:
        """Let the judges' models and the scorer's engines go; the next question loads them again."""
        close_scorer(self._scorer)
        if self.judges is not None:
            self.judges.close()

    @cached_property
    def golds(self) -> list[tuple[str, ...]]:
        """What a perfect model would say to each item, turn by turn."""
        return [turns_of(self.task, sample) for sample in self.samples]

    @cached_property
    def one_turn(self) -> bool:
        """Whether an answer is one text that the scorer can read without the solver.

        With an agent it is what the model hands in, where gold is nothing but that.
        """
        solver = parse_spec(self.config.solver or self.task.solver).name
        if solver in ("generate", "choose"):
            return all(len(gold) == 1 for gold in self.golds)
        return all(isinstance(self.task.gold(sample), str) for sample in self.samples)

    @cached_property
    def prompts(self) -> list[str]:
        """The user turns of each item as one text."""
        return rendered(self.task, self.samples)

    @cached_property
    def bare(self) -> Task:
        """The task with ``no_data``."""
        request = msgspec.structs.replace(self.config.task_request(), no_data=True)
        return make_task(self.config.task, request)

    @cached_property
    def choice(self) -> list[Sample]:
        """The items with options."""
        return [sample for sample in self.samples if sample.choices]

    @cached_property
    def single(self) -> list[Sample]:
        """The items with exactly one right option."""
        return [s for s in self.choice if len(s.correct) == 1 and in_range(s, s.correct[0])]

    def expected(self, sample: Sample) -> float:
        """Give what gold scores."""
        return 1.0 if self.task.gold_value is None else self.task.gold_value(sample)

    def score(self, sample: Sample, text: str) -> Score:
        """Score a text as the answer to an item; a scorer that raises shows in the reason."""
        return judge(self._scorer, sample, Output(text=text))

    def is_right(self, sample: Sample, text: str) -> bool:
        """Tell whether a text scores what gold does."""
        return self.is_whole(sample, self.score(sample, text))

    def is_whole(self, sample: Sample, score: Score) -> bool:
        """Tell whether a score is what gold scores."""
        return score.value is not None and score.value >= self.expected(sample) - 1e-9


def turns_of(task: Task, sample: Sample) -> tuple[str, ...]:
    """Give gold as a tuple of turns."""
    return task.gold_texts(sample)


def rendered(task: Task, samples: Iterable[Sample]) -> list[str]:
    """Render items as one text each, their user turns only."""
    prompt = Prompt(task)
    return ["\n".join(_text(turn) for turn in prompt.turns(sample)) for sample in samples]


def question(sample: Sample) -> str:
    """Give what is asked as one text; a picture or a sound is its source."""
    if isinstance(sample.input, str):
        return clean(sample.input)
    return clean("\n".join(_text(turn) for turn in sample.input))


def identity(sample: Sample) -> tuple[str, tuple[str, ...]]:
    """Give what makes two items the same question, whatever the order of their options."""
    return question(sample), tuple(sorted(map(clean, sample.choices)))


def key_of(sample: Sample) -> tuple[str, ...]:
    """Give the reference of an item, independent of the order of its options."""
    if sample.choices:
        return tuple(
            sorted(clean(sample.choices[j]) for j in sample.correct if in_range(sample, j))
        )
    return tuple(sorted(map(clean, sample.target)))


def in_range(sample: Sample, position: int) -> bool:
    """Tell whether there is an option at a position."""
    return 0 <= position < len(sample.choices)


def needs_judge(scores: Iterable[Score]) -> bool:
    """Tell whether scores are missing only because nobody judges here."""
    return any(score.reason == NO_JUDGE for score in scores)


def some(names: Iterable[object]) -> str:
    """Name the first few.

    Examples
    --------
    >>> some(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    listed = [str(name) for name in names]
    shown = ", ".join(listed[:3])
    return shown if len(listed) <= 3 else f"{shown} and {len(listed) - 3} more"


def share(part: int, whole: int) -> str:
    """Write a count with its share.

    Examples
    --------
    >>> share(38, 135)
    '38 of 135 (28.1 %)'
    """
    return f"{part} of {whole} ({100 * part / whole:.1f} %)" if whole else "0 of 0"


def tail(k: int, n: int, p: float) -> float:
    """Give the probability of at least `k` successes in `n` trials: exact, binomial.

    P(X >= k) is the regularised incomplete beta function I_p(k, n - k + 1).

    Examples
    --------
    >>> round(tail(2, 2, 0.5), 12)
    0.25
    """
    from scipy.special import betainc

    if k > n:
        return 0.0
    return 1.0 if k <= 0 else float(betainc(k, n - k + 1, p))


def _text(message: Message) -> str:
    parts = message.content
    if isinstance(parts, str):
        return parts
    return "".join(
        part.text if isinstance(part, TextPart) else f"[{part.source}]" for part in parts
    )
