"""Attempts as training data: exactly the conversation that the model had."""

import msgspec
import pytest

from harness.core import registry
from harness.core.environment import ToolResult
from harness.core.errors import UsageError
from harness.core.types import Output, ToolCall
from harness.exchange.trajectories import trajectories
from harness.solvers.tools import TOOLS


class Bench:
    """Two tools without a box: what is run gives back its length, what is submitted is taken."""

    tools = (TOOLS["python"], TOOLS["submit"])

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace) -> None:
        pass

    def call(self, call, wall_s):
        if call.name == "submit":
            return ToolResult(text="Submitted.", submitted=call.arguments["answer"])
        return ToolResult(text=f"{len(call.arguments['code'])} characters\n")

    def kill(self) -> None:
        pass


@pytest.fixture
def bench(house):
    make = house.task

    def task(request):
        return msgspec.structs.replace(make(request), environment=lambda sample, request: Bench())

    registry.task("own/add", n=12)(task)
    house.samples = house.samples[:2]
    house.seen = {}
    return house


def _asked(house, replies):
    """Answer by turn, and keep what each item was asked last."""

    def answer(request):
        house.seen[request.item_id] = request
        reply = replies[min(request.turn, len(replies) - 1)]
        return Output(text=reply) if isinstance(reply, str) else reply

    house.answer = answer


def _as_sent(request):
    return [
        {"role": m.role, "content": m.content, **({"tool_call_id": m.tool_call_id} if m.tool_call_id else {})}
        for m in request.messages
        if not m.tool_calls
    ]  # fmt: skip


@pytest.mark.parametrize("protocol", ["tags", "fenced"])
def test_the_messages_are_what_the_model_was_sent(bench, protocol):
    call, end = (
        ("<python>\n1 + 1\n</python>", "<submit>1001</submit>")
        if protocol == "tags"
        else ("```python\n1 + 1\n```", "```submit\n1001\n```")
    )
    # A reply without a call is told so; what stands behind a call is never read again.
    _asked(bench, ["Let me think.", f"Now.\n{call}\nI guess it says 2.", f"Done.\n{end}\nBye."])
    run = bench.run(solver=f"agent?protocol={protocol}&max_turns=3")
    made = {one.item_id: one for one in trajectories(bench.store, run.run_id)}
    assert made.keys() == bench.seen.keys() == {"i000", "i001"}
    for item_id, one in made.items():
        assert one.messages[:-1] == _as_sent(bench.seen[item_id])
        assert one.messages[-1] == {"role": "assistant", "content": f"Done.\n{end}"}
        assert (one.tools, one.templated, one.status) == ([], False, "scored")
    assert [made[i].score for i in ("i000", "i001")] == [0.0, 1.0]


def test_a_services_own_tools_are_written_as_its_api_has_them(bench):
    bench.capabilities |= {"tools"}
    _asked(bench, [
        Output(text="Look.", tool_calls=(ToolCall("a", "python", {"code": "1"}),)),
        Output(text="", tool_calls=(ToolCall("b", "submit", {"answer": "1001"}),)),
    ])  # fmt: skip
    run = bench.run(solver="agent?protocol=tools&max_turns=5")
    one = next(t for t in trajectories(bench.store, run.run_id) if t.item_id == "i001")
    *_, called, given, last = one.messages
    assert called["tool_calls"] == [
        {"id": "a", "type": "function", "function": {"name": "python", "arguments": '{"code":"1"}'}}
    ]
    assert given == {"role": "tool", "tool_call_id": "a", "content": "1 characters\n"}
    assert last["tool_calls"][0]["function"]["name"] == "submit"
    assert [tool["name"] for tool in one.tools] == ["python", "submit"]


def test_only_good_attempts_are_kept_and_reused_ones_are_found(bench):
    _asked(bench, ["<submit>1001</submit>"])
    solver = "agent?protocol=tags&max_turns=3"
    bench.run(solver=solver)
    again = bench.run(solver=solver)
    kept = list(trajectories(bench.store, again.run_id, least=1.0))
    assert [one.item_id for one in kept] == ["i001"]
    assert kept[0].run_id == again.run_id
    assert kept[0].messages[-1] == {"role": "assistant", "content": "<submit>1001</submit>"}


def test_faults_are_left_out_and_plain_answers_are_conversations_too(bench):
    def answer(request):
        if request.item_id == "i000":
            return Output(text="", finish_reason="error", error="no network", error_kind="network")
        return Output(text="1001")

    bench.answer = answer
    run = bench.run(solver="generate")
    (one,) = trajectories(bench.store, run.run_id)
    assert [m["role"] for m in one.messages] == ["system", "user", "assistant"]
    assert (one.item_id, one.score, one.messages[-1]["content"]) == ("i001", 1.0, "1001")


def test_an_unknown_run_is_said_so(house):
    with pytest.raises(UsageError, match="nowhere"):
        list(trajectories(house.store, "nowhere"))
