"""`agent`: the model works with the task's tools, turn by turn, until it submits.

Each turn is one request to the model and the calls in its reply; what they gave back is the next
message. The loop ends with a submission, at a limit, or with a fault. What was not submitted is no
answer: the scorer gets an empty text (or what the environment finds at the end).
"""

from __future__ import annotations

import time
from typing import Literal, TypeVar

import msgspec

from harness.backends.base import Capability
from harness.core.environment import Environment, ToolResult
from harness.core.errors import HarnessError, UsageError
from harness.core.types import (
    FinishReason,
    Message,
    Oracle,
    Output,
    Step,
    Tool,
    ToolCall,
    Work,
    prompt_text,
    text_of,
)
from harness.solvers.base import Item, Solving
from harness.solvers.grammar import (
    Protocol,
    body_of,
    find_call,
    instructions,
    told,
    written_call,
)
from harness.solvers.tools import ENDING, checked, cut_middle, gold_call

EndedBy = Literal[
    "submit", "max_turns", "tokens", "wall", "context", "model", "tool", "harness", "unavailable"
]
_N = TypeVar("_N", int, float)
MOST_CALLS = 16  # in one reply
LAST = "This is your last reply: submit your answer now."
CUT_REPLY = "Your reply was cut at the token limit before its call ended, so nothing was run."
_LEAST_S = 1.0  # a submission is taken even when the tools' time is used up
NO_CALL = "Your reply called no tool. Call one, or submit your answer."

_PROTOCOLS = ("auto", "tools", "fenced", "tags")
_UNASKED: tuple[FinishReason, ...] = ("error", "timeout", "content_filter", "skipped")


class Agent:
    """A loop of model and tools.

    Parameters
    ----------
    max_turns : int
        Replies of the model, at most; the last one is told to submit.
    tokens : int
        Tokens read and written over all turns after which no further turn begins; 0: no limit.
        Only what the backend reports is counted.
    wall_s : float
        Seconds that all calls of tools may take together. The model's own time is not counted: a
        slow server is no fault of the model.
    protocol : {"auto", "tools", "fenced", "tags"}
        How tools are called: by the service's own tool API, or as plain text (see
        `harness.solvers.grammar`). ``auto``: the API where there is one, else ``fenced``.
    output_kib : int
        What the model is shown of one result at most; the middle is cut.
    run_last : {"true", "false"}
        Whether calls of the last reply are carried out that submit nothing.
    """

    works_locally = True
    needs_environment = True

    def __init__(
        self,
        max_turns: str = "15",
        tokens: str = "0",
        wall_s: str = "600",
        protocol: str = "auto",
        output_kib: str = "16",
        run_last: str = "true",
    ) -> None:
        if protocol not in _PROTOCOLS:
            raise ValueError(f"protocol {protocol!r} is not one of {', '.join(_PROTOCOLS)}")
        if run_last not in ("true", "false"):
            raise ValueError(f"run_last must be true or false, not {run_last!r}")
        self.max_turns = _positive("max_turns", int(max_turns))
        self.tokens = int(tokens)
        self.wall_s = _positive("wall_s", float(wall_s))
        self.output_bytes = _positive("output_kib", int(output_kib)) * 1024
        self.run_last = run_last == "true"
        self.protocol = protocol
        self.needs: tuple[Capability, ...] = (
            ("generate", "tools") if protocol == "tools" else ("generate",)
        )

    def __call__(self, item: Item) -> Solving:
        """Solve one attempt."""
        if item.environment is None:
            raise UsageError("solver 'agent' needs a task with tools; use --solver generate")
        protocol = self._protocol(item)
        work = Work()
        try:
            with item.environment() as environment:
                talk = _Talk(self, item, environment, protocol, work)
                output = yield from talk.go_on()
        except UsageError:
            raise
        except HarnessError as error:
            # No isolation, no engine: the message says what to install.
            output = _ended("skipped", "unavailable", work, error=str(error))
        except Exception as error:  # noqa: BLE001  a fault of the harness, transcript and all
            output = _ended("error", "harness", work, error=f"{type(error).__name__}: {error}")
        return output

    def _protocol(self, item: Item) -> Protocol:
        if self.protocol == "auto":
            return "tools" if item.calls_tools else "fenced"
        return self.protocol  # type: ignore[return-value]  # checked at the start


class _Talk:
    """One attempt's conversation."""

    def __init__(
        self, agent: Agent, item: Item, environment: Environment, protocol: Protocol, work: Work
    ) -> None:
        self.agent = agent
        self.environment = environment
        self.protocol = protocol
        self.work = work
        self.tools = {tool.name: tool for tool in environment.tools}
        self.item = _with_gold_written(item, tuple(environment.tools), protocol)
        self.sent = _introduced(item.messages, environment.tools, protocol, agent.max_turns)
        self.messages = self.sent
        self.wall_left = agent.wall_s
        self.submitted: str | None = None
        work.summary = {
            "protocol": protocol,
            "tools": [msgspec.to_builtins(tool) for tool in environment.tools],
        }

    def go_on(self) -> Solving:
        """Take turns until something ends it."""
        first: Output | None = None
        tokens, turn = 0, 0
        while True:
            offered = tuple(self.tools.values()) if self.protocol == "tools" else ()
            output = yield self.item.ask(self.messages, turn, offered)
            if first is None:
                first = output
            tokens += (output.usage.tokens_in or 0) + (output.usage.tokens_out or 0)
            last = turn + 1 >= self.agent.max_turns
            ended = self._unanswered(output, turn) or self._turn(output, turn, last)
            if ended is None and last:
                ended = _ended(
                    "length" if output.finish_reason == "length" else "stop", "max_turns", self.work
                )
            if ended is None and self.agent.tokens and tokens >= self.agent.tokens:
                ended = _ended("length", "tokens", self.work)
            turn += 1
            if ended is not None:
                return self._closed(ended, first, turn)

    def _unanswered(self, output: Output, turn: int) -> Output | None:
        """End the attempt where no reply came: refused, failed, or no room left in the context."""
        if output.finish_reason not in _UNASKED:
            return None
        if output.finish_reason == "skipped" and turn:
            return _ended("length", "context", self.work)
        ended = _ended(output.finish_reason, "model", self.work, error=output.error)
        ended.error_kind = output.error_kind
        return ended

    def _turn(self, output: Output, turn: int, last: bool) -> Output | None:
        """Carry out the calls of a reply and add what they gave back to the conversation."""
        calls, reply, fault = self._read(output, turn)
        self.messages += (reply,)
        for number, call in enumerate(calls):
            result = self._call(call, turn, number, run=self.agent.run_last or not last)
            if ended := self._end(result, cut=output.finish_reason == "length"):
                return ended
            shown = cut_middle(result.text, self.agent.output_bytes)
            if self.protocol == "tools":
                self.messages += (Message("tool", shown, tool_call_id=call.id),)
            else:
                self.messages += (Message("user", told(call.name, shown, self.protocol)),)
        self._tell(turn, fault, last_comes=turn + 2 >= self.agent.max_turns)
        return None

    def _read(self, output: Output, turn: int) -> tuple[tuple[ToolCall, ...], Message, str | None]:
        """Find the calls of a reply; give the reply as the conversation keeps it, and a fault."""
        if self.protocol == "tools":
            fault = None if output.tool_calls else NO_CALL
            if output.finish_reason == "length" and not output.tool_calls:
                fault = CUT_REPLY
            return output.tool_calls, output.as_message(), fault
        found = find_call(output.text, tuple(self.tools.values()), self.protocol, turn)
        cut = output.finish_reason == "length"
        if found is None or (cut and not found.closed):
            return (), Message("assistant", output.text), CUT_REPLY if cut else NO_CALL
        return (found.call,), Message("assistant", output.text[: found.end]), None

    def _call(self, call: ToolCall, turn: int, number: int, run: bool) -> ToolResult:
        tool = self.tools.get(call.name)
        began = time.monotonic()
        made = checked(call, tool, self.tools)
        if isinstance(made, ToolResult):
            result = made
        elif number >= MOST_CALLS:
            result = ToolResult(text=f"Not run: at most {MOST_CALLS} calls a reply.",
                                status="denied", reason="too_many_calls")  # fmt: skip
        elif not run and call.name not in ENDING:
            result = ToolResult(text="Not run: this was the last reply.", status="denied",
                                reason="last_reply")  # fmt: skip
        elif self.wall_left <= 0 and call.name not in ENDING:
            result = ToolResult(text="No time is left for tools.", status="timeout", reason="wall")
        else:
            result = self.environment.call(made, max(self.wall_left, _LEAST_S))
        wall = time.monotonic() - began
        self.wall_left -= wall
        self._record(call, result, turn, wall)
        return result

    def _record(self, call: ToolCall, result: ToolResult, turn: int, wall: float) -> None:
        peak = result.facts.get("peak_bytes")
        if peak is not None:
            self.work.peak_bytes = max(peak, self.work.peak_bytes or 0)
        if result.isolation is not None:
            self.work.isolation = str(result.isolation["level"])
            self.work.summary["isolation"] = dict(result.isolation)
        data = {
            "call": msgspec.to_builtins(call),
            "text": cut_middle(result.text, self.agent.output_bytes),
            "status": result.status,
            "reason": result.reason,
            "submitted": result.submitted is not None,
            "wall_s": round(wall, 4),
            **result.facts,
        }
        self.work.steps.append(Step(turn=turn, kind="tool_call", data=data))

    def _end(self, result: ToolResult, cut: bool) -> Output | None:
        """End the attempt where a result says so."""
        if result.status == "harness":
            return _ended("error", "harness", self.work, error=result.reason or result.text)
        if result.submitted is not None:
            self.submitted = result.submitted
            return _ended("length" if cut else "stop", "submit", self.work)
        if result.status == "timeout" and (result.fatal or self.wall_left <= 0):
            return _ended("timeout", "wall", self.work, error="the tools' time is used up")
        if result.fatal:
            ended = _ended("error", "tool", self.work, error=result.reason or result.status)
            ended.error_kind = "model"
            return ended
        return None

    def _tell(self, turn: int, fault: str | None, last_comes: bool) -> None:
        said = " ".join(part for part in (fault, LAST if last_comes else None) if part)
        if not said:
            return
        *before, latest = self.messages
        if latest.role == "assistant":
            self.messages += (Message("user", said),)
        else:
            # Many chat templates take no two turns of one role in a row.
            joined = msgspec.structs.replace(latest, content=f"{text_of(latest)}\n\n{said}")
            self.messages = (*before, joined)
        self.work.steps.append(Step(turn=turn, kind="told", data={"text": said}))

    def _closed(self, ended: Output, first: Output, turns: int) -> Output:
        """Add what belongs to the whole attempt."""
        text = self.submitted
        finish = getattr(self.environment, "finish", None)
        if finish is not None and ended.finish_reason in ("stop", "length"):
            text = finish(text)
        wall = round(self.agent.wall_s - self.wall_left, 4)
        n_calls = sum(step.kind == "tool_call" for step in self.work.steps)
        self.work.summary |= {"turns": turns, "calls": n_calls, "tools_wall_s": wall}
        self.work.summary |= getattr(self.environment, "facts", {})
        return msgspec.structs.replace(
            ended,
            text=text or "",
            prompt=first.prompt if first.prompt is not None else prompt_text(self.sent),
            prompt_token_ids_head=first.prompt_token_ids_head,
            prompt_truncated=first.prompt_truncated,
        )


def _ended(
    finish_reason: FinishReason, by: EndedBy, work: Work, error: str | None = None
) -> Output:
    work.summary["ended_by"] = by
    kind: Literal["harness"] | None = "harness" if by == "harness" else None
    return Output(
        text="", finish_reason=finish_reason, error=error, error_kind=kind, work=work
    )  # fmt: skip


def _introduced(
    messages: tuple[Message, ...], tools: tuple[Tool, ...], protocol: Protocol, max_turns: int
) -> tuple[Message, ...]:
    """Add what the model must know to the system turn, or put one before the prompt."""
    parts = [instructions(tools, protocol), LAST if max_turns == 1 else ""]
    added = "\n\n".join(part for part in parts if part)
    if not added:
        return messages
    head = messages[0] if messages else None
    if head is not None and head.role == "system" and isinstance(head.content, str):
        return (Message("system", f"{head.content}\n\n{added}"), *messages[1:])
    return (Message("system", added), *messages)


def _with_gold_written(item: Item, tools: tuple[Tool, ...], protocol: Protocol) -> Item:
    """Let a baseline speak the protocol; of gold and guesses a mere text is submitted."""
    oracle = item.oracle
    if oracle is None:
        return item
    submit = next((tool for tool in tools if tool.name in ENDING), None)
    guess = oracle.guess

    def submitted(turn: str | Message) -> str | Message:
        if submit is None or isinstance(turn, Message):
            return written_call(turn, tools, protocol)
        message = gold_call(submit.name, **{body_of(submit) or "answer": turn})
        return written_call(message, tools, protocol)

    written = Oracle(
        gold=tuple(map(submitted, oracle.gold)),
        correct=oracle.correct,
        guess=lambda rng: submitted(guess(rng)),
    )
    return msgspec.structs.replace(item, oracle=written)


def _positive(name: str, value: _N) -> _N:
    if not 0 < value < float("inf"):
        raise ValueError(f"{name} must be above 0, not {value}")
    return value
