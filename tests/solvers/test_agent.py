"""The loop of model and tools, with a workplace that needs no sandbox."""

import json
from collections import Counter

import pytest

from harness.core.environment import EnvironmentRequest, ToolResult
from harness.core.errors import HarnessError, MissingPackageError, UsageError
from harness.solvers.tools import cut_middle

PROTOCOLS = ("tools", "fenced", "tags")
WRITTEN = {  # a sum, then a submission, in each protocol's own words
    "tools": (
        {"tool_calls": [{"name": "sum", "arguments": {"numbers": "2 2"}}]},
        {"text": "Done.", "tool_calls": [{"name": "submit", "arguments": '{"answer": "4"}'}]},
    ),
    "fenced": ("I add.\n```sum\n2 2\n```\nOutput of sum: 5", "```submit\n4\n```"),
    "tags": ("<sum>2 2</sum>", "So: <submit>4</submit>"),
}


def only(desk, run):
    """The records of a run of one item."""
    read = desk.read(run.run_id)
    (record,) = read.sample
    return record, read.event


def steps(events):
    return [(e.kind, e.data["turn"]) for e in events]


@pytest.mark.parametrize("protocol", ["auto", *PROTOCOLS])
def test_gold_scores_one_and_silence_nothing(desk, protocol):
    solver = f"agent?protocol={protocol}&max_turns=3"
    gold = desk.run("mock:gold", solver=solver)
    assert (gold.status, gold.metrics["accuracy"].value) == ("done", 1.0)
    assert desk.run("mock:empty", solver=solver).metrics["accuracy"].value == 0.0
    assert desk.run("mock:random", solver=solver).metrics["accuracy"].value == 0.0
    assert desk.open == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_whole_story_is_stored(desk, script, protocol):
    run = desk.run(script(*WRITTEN[protocol]), solver=f"agent?protocol={protocol}", first=1)
    record, events = only(desk, run)
    assert (record.output, record.status, record.isolation) == ("4", "unscored", "full")
    assert record.peak_mem_bytes == 1 << 20
    assert steps(events) == [
        ("model_call", 0), ("tool_call", 0), ("model_call", 1), ("tool_call", 1)
    ]  # fmt: skip
    assert desk.calls == [("i0", "sum", {"numbers": "2 2"}), ("i0", "submit", {"answer": "4"})]
    call = events[1].data
    assert (call["call"]["name"], call["text"], call["status"]) == ("sum", "4", "ok")
    assert (call["cpu_s"], call["peak_bytes"], call["submitted"]) == (0.25, 1 << 20, False)
    assert call["wall_s"] >= 0.0
    assert {(e.item_id, e.epoch, e.attempt) for e in events} == {("i0", 0, 1)}
    log = json.loads(record.tool_log)
    assert {k: log[k] for k in ("ended_by", "protocol", "turns", "calls")} == {
        "ended_by": "submit", "protocol": protocol, "turns": 2, "calls": 2
    }  # fmt: skip
    assert log["isolation"] == {"level": "full", "uid": 200001}
    assert [tool["name"] for tool in log["tools"]] == ["sum", "submit"]
    # The prompt as sent: in plain text the tools are explained, a service explains them itself.
    assert ("Adds the numbers" in record.prompt) == (protocol != "tools")
    assert "Be brief." in record.prompt


@pytest.fixture
def heard(desk, script, monkeypatch):
    """Run a script on one item and give what the model was sent at each turn."""
    from harness.backends.mock import Mock

    sent = []
    whole = Mock.generate

    def generate(self, requests):
        sent.extend(requests)
        return whole(self, requests)

    monkeypatch.setattr(Mock, "generate", generate)

    def run(solver, *turns):
        sent.clear()
        done = desk.run(script(*turns), solver=solver, first=1, fresh=True)
        return only(desk, done)[0], [request.messages for request in sent]

    return run


def test_the_conversation_of_a_service_with_tools(heard):
    _, (first, second) = heard("agent?protocol=tools", *WRITTEN["tools"])
    assert [m.role for m in first] == ["system", "user"]
    assert second[:2] == first
    assert second[2].tool_calls[0].arguments == {"numbers": "2 2"}
    assert (second[3].role, second[3].content) == ("tool", "4")
    assert second[3].tool_call_id == second[2].tool_calls[0].id


def test_the_conversation_in_plain_text_ends_at_the_call(heard):
    """What the model made up behind its call is not in the conversation it goes on from."""
    _, (_, second) = heard("agent?protocol=fenced", *WRITTEN["fenced"])
    assert [m.role for m in second] == ["system", "user", "assistant", "user"]
    assert second[2].content == "I add.\n```sum\n2 2\n```"
    assert second[3].content == "Output of sum:\n```\n4\n```"


@pytest.mark.parametrize(
    ("protocol", "turn", "said"),
    [
        ("tags", "The answer is 4.", "called no tool"),
        ("tools", "The answer is 4.", "called no tool"),
        ("tags", "", "called no tool"),
        ("tools", {"tool_calls": [{"name": "fly"}]}, "no tool 'fly'; there are: sum, submit"),
        ("tools", {"tool_calls": [{"name": "sum"}]}, "needs the argument 'numbers'"),
        ("tools", {"tool_calls": [{"name": "sum", "arguments": "2 2"}]}, "Not run: the arguments are no JSON"),
        ("tools", {"tool_calls": [{"name": "sum", "arguments": {"numbers": "1", "x": 1}}]}, "no argument 'x'"),
    ],
)  # fmt: skip
def test_a_model_that_slips_is_told_so_and_goes_on(heard, desk, protocol, turn, said):
    record, (_, second) = heard(f"agent?protocol={protocol}", turn, WRITTEN[protocol][1])
    assert said in second[-1].content
    assert record.output == "4"
    assert [name for _, name, _ in desk.calls] == ["submit"]


def test_a_number_for_a_text_is_taken_as_it_is_written(desk, script):
    answer = {"tool_calls": [{"name": "submit", "arguments": {"answer": 4}}]}
    record, _ = only(desk, desk.run(script(answer), first=1))
    assert record.output == "4"


def test_several_calls_in_one_reply_run_in_order_up_to_the_submission(desk, script):
    calls = [
        {"name": "sum", "arguments": {"numbers": "1 2"}},
        {"name": "submit", "arguments": {"answer": "3"}},
        {"name": "sum", "arguments": {"numbers": "9 9"}},
    ]
    record, events = only(desk, desk.run(script({"tool_calls": calls}), first=1))
    assert [name for _, name, _ in desk.calls] == ["sum", "submit"]
    assert (record.output, len(events)) == ("3", 3)


def test_no_more_than_sixteen_calls_of_a_reply_are_run(desk, script):
    many = [{"name": "sum", "arguments": {"numbers": "1"}}] * 20
    _, events = only(
        desk, desk.run(script({"tool_calls": many}), first=1, solver="agent?max_turns=1")
    )
    assert len(desk.calls) == 16
    assert Counter(e.data.get("reason") for e in events if e.kind == "tool_call") == {
        None: 16, "too_many_calls": 4
    }  # fmt: skip


def test_the_last_turn_is_told_to_submit(heard):
    record, sent = heard(
        "agent?max_turns=3&protocol=tags", "<sum>1</sum>", "<sum>2</sum>", "<sum>3</sum>"
    )
    told = ["last reply" in messages[-1].content for messages in sent]
    assert told == [False, False, True]
    assert "<information>\n2\n</information>" in sent[2][-1].content
    assert (record.output, json.loads(record.tool_log)["ended_by"]) == ("", "max_turns")
    _, (only_one,) = heard("agent?max_turns=1&protocol=tags", "<submit>1</submit>")
    assert "last reply" in only_one[0].content


def test_without_a_submission_there_is_no_answer(desk):
    run = desk.run("mock:empty", solver="agent?max_turns=2")
    assert (run.counts["error"], run.n_planned, run.metrics["accuracy"].value) == (6, 6, 0.0)
    assert {s.reason for s in desk.read(run.run_id).score} == {"no_answer"}


def test_calls_of_the_last_reply_are_run_unless_told_not_to(desk, script):
    model = script("<sum>1 1</sum>")
    desk.run(model, solver="agent?max_turns=1&protocol=tags", first=1)
    assert len(desk.calls) == 1
    _, events = only(
        desk, desk.run(model, solver="agent?max_turns=1&protocol=tags&run_last=false", first=1)
    )
    assert (len(desk.calls), events[1].data["reason"]) == (1, "last_reply")


def test_the_token_limit_ends_it_as_truncated(desk, script):
    # The mock's tokens are words: the prompt has at least "Be brief." and "Add 0 0.".
    run = desk.run(script("<sum>1</sum>"), solver="agent?tokens=5&protocol=tags", first=1)
    record, events = only(desk, run)
    assert (record.status, json.loads(record.tool_log)["ended_by"]) == ("truncated", "tokens")
    assert run.counts["truncated"] == 1
    assert [e.kind for e in events] == ["model_call", "tool_call"]


def test_the_wall_limit_is_over_all_calls_and_is_a_timeout(desk, script):
    given = []

    def act(calculator, call, wall_s):
        given.append(wall_s)
        return ToolResult(text="too slow", status="timeout", reason="wall", fatal=len(given) == 2)

    desk.act = act
    run = desk.run(script(*["<sum>1</sum>"] * 5), solver="agent?wall_s=30&protocol=tags", first=1)
    record, _ = only(desk, run)
    # One slow call is told to the model; when the time is used up the attempt ends.
    assert (record.status, len(given), run.counts["timeout"]) == ("timeout", 2, 1)
    assert 29 < given[1] < given[0] == 30.0
    assert run.metrics["accuracy"].value == 0.0


def test_used_up_time_refuses_tools_but_not_the_submission(desk, script, monkeypatch):
    clock = iter([0.0, 31.0, 40.0, 40.0])
    monkeypatch.setattr(
        "harness.solvers.agent.time", type("T", (), {"monotonic": lambda: next(clock)})
    )
    model = script("<sum>1</sum>", "<submit>1</submit>")
    record, _ = only(desk, desk.run(model, solver="agent?wall_s=30&protocol=tags", first=1))
    assert (record.status, record.output) == ("unscored", "1")


@pytest.mark.parametrize(
    ("result", "status", "kind", "ended_by"),
    [
        (ToolResult(text="", status="memory", reason="oom", fatal=True), "error", "model", "tool"),
        (ToolResult(text="", status="crash", reason="protocol", fatal=True), "error", "model", "tool"),
        (ToolResult(text="", status="timeout", fatal=True), "timeout", None, "wall"),
        (ToolResult(text="no box", status="harness"), "error", "harness", "harness"),
    ],
)  # fmt: skip
def test_an_end_by_a_tool_has_the_status_of_the_specification(
    desk, script, result, status, kind, ended_by
):
    desk.act = lambda *_: result
    run = desk.run(script("<sum>1</sum>"), solver="agent?protocol=tags", first=1)
    last = desk.read(run.run_id).sample[-1]
    assert (last.status, last.error_kind, json.loads(last.tool_log)["ended_by"]) == (
        status,
        kind,
        ended_by,
    )
    # A fault of the harness is tried twice more and leaves the denominator, the others are wrong.
    assert last.attempt == (3 if kind == "harness" else 1)
    assert run.n_counted == (0 if kind == "harness" else 1)
    assert desk.open == []


def test_a_result_that_is_not_fatal_lets_the_model_go_on(desk, script):
    def act(calculator, call, wall_s):
        if call.name == "sum":
            return ToolResult(text="[Ended: memory.]", status="memory", reason="memory")
        return None

    desk.act = act
    record, events = only(
        desk,
        desk.run(
            script("<sum>1</sum>", "<submit>1</submit>"), solver="agent?protocol=tags", first=1
        ),
    )
    assert (record.status, record.output, events[1].data["status"]) == ("unscored", "1", "memory")


def test_what_an_environment_raises_is_the_harnesss_fault_and_keeps_the_transcript(desk, script):
    def act(calculator, call, wall_s):
        raise OSError(28, "No space left on device")

    desk.act = act
    run = desk.run(script("<sum>1</sum>"), solver="agent?protocol=tags", first=1)
    read = desk.read(run.run_id)
    assert [(r.status, r.error_kind) for r in read.sample] == [("error", "harness")] * 3
    assert "No space left" in read.sample[0].error
    assert [e.kind for e in read.event] == ["model_call"] * 3
    assert (run.status, desk.open) == ("failed", [])


@pytest.mark.parametrize(
    "error",
    [
        HarnessError("no sandbox works here; install it with: sudo apt-get install bubblewrap"),
        MissingPackageError("the task", "klayout", "pip install klayout"),
    ],
)
def test_without_isolation_or_engine_the_attempt_is_unavailable(desk, error):
    def enter(calculator):
        raise error

    desk.enter = enter
    run = desk.run()
    read = desk.read(run.run_id)
    assert {(r.status, r.error) for r in read.sample} == {("unavailable", str(error))}
    assert (run.status, run.counts["unavailable"], run.n_counted) == ("failed", 6, 0)
    assert [e for e in read.event if e.kind == "model_call"] == []  # nothing was paid for
    desk.enter = lambda calculator: None
    assert desk.resume(run.run_id).metrics["accuracy"].value == 1.0


def test_a_reply_cut_in_the_middle_of_its_call_is_not_run(desk, script):
    run = desk.run("mock:gold?truncate=1", solver="agent?protocol=tags&max_turns=2")
    assert desk.calls == []
    assert run.counts["truncated"] == 6
    told = [e.data["text"] for e in desk.read(run.run_id).event if e.kind == "told"]
    assert all("cut at the token limit" in text for text in told)


def test_a_refusal_and_a_failed_call_end_the_attempt(desk):
    refused = desk.run("mock:gold?refuse=1", first=1)
    assert (refused.counts["refused"], refused.n_counted) == (1, 1)
    failed = desk.run("mock:gold?fail=1", first=1)
    assert (failed.status, failed.counts["error_harness"]) == ("failed", 1)


def test_long_output_is_cut_in_the_middle_for_the_model_and_in_the_store(desk, script):
    long = "begin " + "7 " * 3000 + "end"
    desk.act = lambda c, call, w: ToolResult(text=long) if call.name == "sum" else None
    model = script("<sum>1</sum>", "<submit>1</submit>")
    _, events = only(desk, desk.run(model, solver="agent?protocol=tags&output_kib=1", first=1))
    shown = events[1].data["text"]
    assert (shown[:7], shown[-5:]) == ("begin 7", "7 end")
    assert len(shown) <= 1024 + len("\n[9999 bytes cut]\n")
    assert f"[{len(long) - 1024} bytes cut]" in shown


def test_numbers_are_whole_or_gone():
    text = " ".join(str(k) for k in range(1000, 2000))
    for most in range(50, 90):
        head, note, tail = cut_middle(text, most).split("\n")
        assert set(head.split()) | set(tail.split()) <= set(text.split())
        assert "bytes cut" in note


def test_secrets_never_reach_a_row(desk, script, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", 'own"secret-1234')
    token = "hf_" + "a1B2" * 8
    desk.act = lambda c, call, w: ToolResult(
        text=f'{token} own"secret-1234', facts={"seen": [token]}
    )
    turn = {
        "text": f"I know {token}",
        "tool_calls": [{"name": "sum", "arguments": {"numbers": token}}],
    }
    run = desk.run(script(turn), solver="agent?max_turns=1", first=1)
    raw = desk.store.journal(run.run_id)
    _, events = only(desk, run)
    assert events[1].data["text"] == "[redacted] [redacted]"
    assert events[1].data["call"]["arguments"] == {"numbers": "[redacted]"}
    assert events[1].data["seen"] == ["[redacted]"]
    if raw.exists():
        assert token.encode() not in raw.read_bytes()


def test_the_environment_is_told_level_seed_and_repeat(desk):
    desk.run(first=1, epochs=2, seed=7, sandbox="userns")
    assert desk.requests == [
        ("i0", EnvironmentRequest(level="userns", seed=7, epoch=epoch)) for epoch in (0, 1)
    ]


def test_finish_gives_what_is_scored(desk, monkeypatch):
    made = desk.environment

    def environment(sample, request):
        calculator = made(sample, request)
        calculator.finish = lambda submitted: sample.target[0] if submitted is None else submitted
        return calculator

    desk.environment = environment
    assert desk.run("mock:empty", solver="agent?max_turns=1").metrics["accuracy"].value == 1.0


def test_what_an_environment_counted_is_in_the_attempt_s_summary(desk, monkeypatch):
    made = desk.environment

    def environment(sample, request):
        calculator = made(sample, request)
        calculator.facts = {"wrong": 3}
        return calculator

    desk.environment = environment
    record, _ = only(desk, desk.run(first=1))
    log = json.loads(record.tool_log)
    assert (log["wrong"], log["turns"]) == (3, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": "agent?max_turns=0"}, "max_turns must be above 0"),
        ({"solver": "agent?protocol=xml"}, "is not one of auto"),
        ({"solver": "agent?turns=3"}, "unknown option 'turns'"),
        ({"solver": "agent?run_last=no"}, "true or false"),
        ({"sandbox": "none"}, "unknown --sandbox 'none'"),
    ],
)
def test_bad_options_are_one_clear_line(desk, options, message):
    with pytest.raises(UsageError, match=message) as caught:
        desk.run(**options)
    assert "\n" not in str(caught.value)


def test_a_task_without_tools_has_no_agent(desk):
    desk.with_tools = False
    with pytest.raises(UsageError, match="works with tools"):
        desk.run()


def test_calls_of_a_script_need_a_service_with_tools(desk, script):
    with pytest.raises(HarnessError, match="protocol=tools"):
        desk.run(script(*WRITTEN["tools"]), solver="agent?protocol=tags", first=1)
    assert desk.open == []
