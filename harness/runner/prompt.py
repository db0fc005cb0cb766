"""What a model is asked: the task's template, rendered, with worked examples before it."""

from __future__ import annotations

import hashlib

from harness.core.errors import UsageError
from harness.core.task import Task
from harness.core.types import Message, Sample
from harness.runner.config import RunConfig
from harness.solvers.base import Solver


class Prompt:
    """A task's template, compiled once: compiling it per sample was others' main cost.

    Raises
    ------
    UsageError
        The template is no Jinja.
    """

    def __init__(self, task: Task) -> None:
        import jinja2

        environment = jinja2.Environment(
            undefined=jinja2.StrictUndefined,
            autoescape=False,  # noqa: S701  prompts are text for a model, not HTML
            keep_trailing_newline=True,
        )
        self._task = task
        self._undefined = jinja2.UndefinedError
        try:
            self._template = environment.from_string(task.prompt)
        except jinja2.TemplateSyntaxError as error:
            raise UsageError(f"prompt of task {task.name!r}: {error}") from error
        self._globals = dict(self._template.globals)

    def turns(self, sample: Sample) -> tuple[Message, ...]:
        """Write an item as the turns that ask it.

        Raises
        ------
        UsageError
            The template names something that the item does not have.
        """
        if not isinstance(sample.input, str):
            return sample.input
        shown = {
            **self._globals,
            "input": sample.input,
            "choices": sample.choices,
            "metadata": sample.metadata,
        }
        template = self._template
        try:
            # What `template.render` does, without copying Jinja's chained globals for every item.
            parts = template.root_render_func(template.new_context(shown, shared=True))
            return (Message("user", "".join(parts)),)
        except self._undefined as error:
            raise UsageError(f"prompt of task {self._task.name!r}: {error}") from error


class Shots:
    """Worked examples (`--fewshot N`): each a question and what a perfect model would say.

    The pool is ranked once by a hash of seed, task and item, so that all items see the same first N
    examples, except that an item never sees itself: neither by id nor under another id with the same
    question.

    Raises
    ------
    UsageError
        The pool holds fewer than N + 1 different questions.
    """

    def __init__(self, task: Task, config: RunConfig, prompt: Prompt, solver: Solver) -> None:
        self._n = config.fewshot
        self._task = task
        self._prompt = prompt
        self._compared = "loglikelihood" in solver.needs
        self._examples: list[tuple[Sample, tuple[Message, ...]]] = []
        if self._n == 0:
            return
        # One more than N: an item that stands among the first N is passed over.
        pool = task.samples if task.shots is None else task.shots
        different = {_question(s): s for s in sorted(pool, key=lambda s: s.item_id, reverse=True)}
        ranked = sorted(different.values(), key=lambda s: _rank(config.seed, task.name, s.item_id))
        if len(ranked) <= self._n:
            raise UsageError(
                f"--fewshot {self._n} needs at least {self._n + 1} different items to draw from; "
                f"{task.name!r} has {len(ranked)}"
            )
        self._examples = [(s, self._example(s)) for s in ranked[: self._n + 1]]

    def before(self, sample: Sample) -> list[Message]:
        """Give the turns to show before an item."""
        others = [turns for s, turns in self._examples if _question(s) != _question(sample)]
        return [message for turns in others[: self._n] for message in turns]

    def _example(self, sample: Sample) -> tuple[Message, ...]:
        asked = self._prompt.turns(sample)
        return (*asked, Message("assistant", self._answer(sample)))

    def _answer(self, sample: Sample) -> str:
        if self._compared and self._task.continuations is not None and sample.correct:
            return self._task.continuations(sample)[sample.correct[0]]
        return self._task.gold_texts(sample)[0]


def _question(sample: Sample) -> tuple[object, ...]:
    """What makes two items the same question, whatever their ids and the order of their options."""
    return (sample.input, tuple(sorted(sample.choices)))


def _rank(seed: int, task: str, item_id: str) -> bytes:
    return hashlib.sha256(f"shot\x1f{seed}\x1f{task}\x1f{item_id}".encode()).digest()
