"""`clarify`: ask about an unclear prompt, let a user answer, write the prompt anew, then the program.

After ProCAD (arXiv 2602.03045) in our own words. The user is the task's environment, which knows what was
meant; the program is always written, whether anything was asked or not.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any, Protocol, cast

from harness.backends.base import Capability
from harness.core.errors import HarnessError, UsageError
from harness.core.types import FinishReason, Message, Output, Request, Step, Work, prompt_text
from harness.solvers.base import Item, Solving
from harness.solvers.sizing.base import read_object

_UNANSWERED: tuple[FinishReason, ...] = ("error", "timeout", "skipped")
CLARIFIER = """\
You read descriptions of CAD parts before they are built. Look for sizes that are missing, given twice with \
different values, or impossible. The direction of a plane's normal is never a reason to ask. Ask as few questions \
as possible, each about one size of one feature. Reply with JSON alone: \
{"is_misleading": true, "questions": ["…"]} where something must be asked, else \
{"is_misleading": false, "standardized_prompt": "the description, complete and in order"}."""
CORRECT = """\
Your questions were answered:
{answers}
Write the description anew with every size in its place. Reply with JSON alone: \
{{"is_misleading": false, "standardized_prompt": "…"}}"""
CODER = """\
You are a CAD engineer who writes CadQuery programs. You reply with Python code in one block and nothing else. \
The finished part is one solid called r; import cadquery as cq, and nothing else but math, functools and numpy."""


class User(Protocol):
    """Who knows what was meant."""

    def answer(self, question: str) -> str:
        """Answer a question, or say that there is nothing to add."""
        ...


class Clarify:
    """Clarifier, user and coder.

    Parameters
    ----------
    max_questions : int
        Questions that the user answers; those beyond are counted and not answered.
    """

    works_locally = True
    needs_environment = True
    needs: tuple[Capability, ...] = ("generate",)

    def __init__(self, max_questions: str = "8") -> None:
        self.max_questions = int(max_questions)
        if self.max_questions < 0:
            raise ValueError(f"max_questions must not be below 0, not {max_questions}")

    def __call__(self, item: Item) -> Solving:
        """Solve one attempt."""
        if item.environment is None:
            raise UsageError("solver 'clarify' needs a task with a user to ask: procad")
        work = Work()
        try:
            with item.environment() as environment:
                if not hasattr(environment, "answer"):
                    raise UsageError("solver 'clarify' needs a task with a user to ask: procad")
                return (yield from self._go(item, cast("User", environment), work))
        except UsageError:
            raise
        except HarnessError as error:
            return _ended("skipped", work, str(error), None)
        except Exception as error:  # noqa: BLE001  a fault of the harness, transcript and all
            return _ended("error", work, f"{type(error).__name__}: {error}", "harness")

    def _go(self, item: Item, user: User, work: Work) -> Solving:
        given = _text(item)
        turns = _Turns(item, work)
        talk = (Message("system", CLARIFIER), Message("user", given))
        try:
            reply = yield from turns.ask(talk)
            found = read_object(reply) or {}
            bad = int(not _is_reply(found))
            questions = _questions(found)
            prompt, answers = (
                _prompt(found) or given,
                [user.answer(question) for question in questions[: self.max_questions]],
            )
            if questions:
                told = "\n".join(f"- {q}\n  {a}" for q, a in zip(questions, answers, strict=False))
                more = Message("user", CORRECT.format(answers=told))
                again = yield from turns.ask((*talk, Message("assistant", reply), more))
                corrected = _prompt(read_object(again) or {})
                bad += corrected is None
                # The coder still gets what was learnt, whatever became of the new description.
                prompt = corrected or f"{given}\n{' '.join(answers)}"
            code = yield from turns.ask((Message("system", CODER), Message("user", prompt)))
        except _UnansweredError as error:
            output = error.output
            return _ended(output.finish_reason, work, output.error, output.error_kind)
        work.summary |= {"questions": len(questions), "bad_replies": bad}
        handed = {"questions": questions, "answers": answers, "prompt": prompt, "code": code}
        return Output(
            text=json.dumps(handed), work=work, prompt=prompt_text(talk),
            finish_reason=turns.finish_reason,
        )  # fmt: skip


class _UnansweredError(Exception):
    def __init__(self, output: Output) -> None:
        super().__init__(output.error)
        self.output = output


class _Turns:
    """Asks, and keeps what was said."""

    def __init__(self, item: Item, work: Work) -> None:
        self.item, self.work, self.turn = item, work, 0
        self.finish_reason: FinishReason = "stop"

    def ask(self, messages: tuple[Message, ...]) -> Generator[Request, Output, str]:
        output = yield self.item.ask(messages, self.turn)
        if output.finish_reason in _UNANSWERED:
            raise _UnansweredError(output)
        self.finish_reason = output.finish_reason
        text = "" if output.finish_reason == "content_filter" else output.text
        told = {"text": prompt_text(messages[-1:]), "reply": text}
        self.work.steps.append(Step(turn=self.turn, kind="told", data=told))
        self.turn += 1
        return text


def _text(item: Item) -> str:
    if not isinstance(item.sample.input, str):
        raise UsageError("solver 'clarify' needs a description in words")
    return item.sample.input


def _is_reply(found: dict[str, Any]) -> bool:
    return bool(_questions(found)) or _prompt(found) is not None


def _questions(found: dict[str, Any]) -> list[str]:
    """Give the questions of a reply; none where it says that all is clear."""
    given = found.get("questions")
    if found.get("is_misleading") is not True or not isinstance(given, list):
        return []
    return [one for one in given if isinstance(one, str) and one.strip()]


def _prompt(found: dict[str, Any]) -> str | None:
    given = found.get("standardized_prompt")
    return given if isinstance(given, str) and given.strip() else None


def _ended(reason: FinishReason, work: Work, error: str | None, kind: Any) -> Output:
    return Output(text="", finish_reason=reason, error=error, error_kind=kind, work=work)
