"""Tool calls over HTTP: what is sent is what each service documents, and what it answers is read.

Forms: OpenAI's chat completions (`tools`, `tool_calls`, role ``tool``), Anthropic's messages
(`tool_use` and `tool_result` blocks) and Gemini's generateContent (`functionCall` and
`functionResponse` parts); of the last two the services' own packages hold the types.
"""

import base64
import json
from typing import get_type_hints

import msgspec
import pytest

from harness.backends.base import ModelIdentity, Preview, require
from harness.backends.catalogue import CAPABILITIES
from harness.core import registry
from harness.core.errors import HarnessError, UsageError
from harness.core.records import EventRecord, SampleRecord
from harness.core.types import Message, Output, TextPart, Tool, ToolCall

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": ["integer", "null"]}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOLS = (Tool("forecast", "The weather to come.", SCHEMA), Tool("now", "What time it is."))
NO_PARAMETERS = {"type": "object", "properties": {}}
CALLS = [("c1", "forecast", {"city": "Zürich ☂", "days": None}), ("c2", "now", {})]
LONG = "ü☂\n" * 40_000
KINDS = ["openai", "anthropic", "gemini"]


def openai_reply(text, calls, finish="tool_calls", **more):
    """A chat completion; arguments are JSON text there."""
    message = {"role": "assistant", "content": text or None, "refusal": None, "annotations": []}
    if calls:
        message["tool_calls"] = [
            {"id": id_, "type": "function", "function": {
                "name": name, "arguments": args if isinstance(args, str) else json.dumps(args)}}
            for id_, name, args in calls
        ]  # fmt: skip
    return {
        "id": "r", "object": "chat.completion", "model": "m1",
        "choices": [{"index": 0, "message": message | more, "finish_reason": finish}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7},
    }  # fmt: skip


def anthropic_reply(text, calls, finish="tool_use", first=()):
    """A message of blocks; `first` are blocks of thought."""
    blocks = [*first, *([{"type": "text", "text": text}] if text else [])]
    blocks += [{"type": "tool_use", "id": i, "name": n, "input": a} for i, n, a in calls]
    return {
        "id": "m", "type": "message", "role": "assistant", "model": "m1", "content": blocks,
        "stop_reason": finish, "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 7},
    }  # fmt: skip


def gemini_reply(text, calls, finish="STOP", signature=None):
    """A candidate of parts; the service says STOP at a call, and signs the first of them."""
    parts = [{"text": text}] if text else []
    for number, (id_, name, args) in enumerate(calls):
        part = {"functionCall": {"name": name, "args": args} | ({"id": id_} if id_ else {})}
        if signature and number == 0:
            part["thoughtSignature"] = signature
        parts.append(part)
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": finish}],
        "usageMetadata": {"promptTokenCount": 11, "candidatesTokenCount": 7}, "modelVersion": "m1",
    }  # fmt: skip


REPLY = {"openai": openai_reply, "anthropic": anthropic_reply, "gemini": gemini_reply}
LENGTH = {"openai": "length", "anthropic": "max_tokens", "gemini": "MAX_TOKENS"}


@pytest.fixture(params=KINDS)
def kind(request):
    if request.param != "openai":
        pytest.importorskip({"anthropic": "anthropic", "gemini": "google.genai"}[request.param])
    return request.param


@pytest.fixture
def say(bench):
    """Let the server give one reply, and the model's output for it."""

    def ask(kind, reply, more="", tools=TOOLS, **request):
        bench.server.replies["given"] = reply
        bench.server.plan = {"*": ["given"]}
        return bench.model(kind, more).generate([bench.request(tools=tools, **request)])[0]

    return ask


def asked(text="item-a: 2 + 2?"):
    return (Message("system", "Be brief."), Message("user", text))


def conversation(output, *results):
    """What a solver sends next: the model's turn and a result for each call."""
    answers = [
        Message("tool", result, tool_call_id=call.id)
        for call, result in zip(output.tool_calls, results, strict=True)
    ]
    return (*asked(), output.as_message(), *answers)


# --- what every service's calls become ---


def test_calls_are_read_with_the_text_beside_them(say, kind):
    output = say(kind, REPLY[kind]("Let me look.", CALLS))
    assert output.tool_calls == tuple(ToolCall(*call) for call in CALLS)
    assert (output.text, output.finish_reason) == ("Let me look.", "tool_calls")
    assert [call.fault for call in output.tool_calls] == [None, None]


def test_a_tool_that_was_not_offered_is_passed_on(say, kind):
    output = say(kind, REPLY[kind]("", [("c1", "launch", {"at": [1, {"x": 2.5}]})]))
    assert output.tool_calls == (ToolCall("c1", "launch", {"at": [1, {"x": 2.5}]}),)


def test_a_cut_answer_stays_cut_though_it_calls(say, kind):
    output = say(kind, REPLY[kind]("", CALLS, LENGTH[kind]))
    assert (output.finish_reason, len(output.tool_calls)) == ("length", 2)


def test_what_stands_behind_a_stop_string_was_not_said(say, kind):
    output = say(kind, REPLY[kind]("Hm. END or", CALLS), stop=(" END",))
    assert (output.text, output.finish_reason) == ("Hm.", "stop")
    assert (output.tool_calls, output.native) == ((), None)


def test_without_tools_nothing_is_sent_of_them(bench, kind):
    output = bench.ask("ok", kind=kind)
    assert (output.tool_calls, output.native, output.finish_reason) == ((), None, "stop")
    assert "tool" not in json.dumps(bench.server.bodies)


# --- openai ---


def test_openai_gets_tools_as_functions(bench, say):
    say("openai", openai_reply("", CALLS))
    assert bench.server.bodies[0]["tools"] == [
        {"type": "function", "function": {
            "name": "forecast", "description": "The weather to come.", "parameters": SCHEMA}},
        {"type": "function", "function": {
            "name": "now", "description": "What time it is.", "parameters": NO_PARAMETERS}},
    ]  # fmt: skip


def test_openai_gets_the_calls_and_a_turn_for_each_result(bench, say):
    first = say("openai", openai_reply("", CALLS))
    say("openai", openai_reply("Rain.", [], "stop"), messages=conversation(first, LONG, "12:00"))
    *before, turn, one, two = bench.server.bodies[1]["messages"]
    assert before == bench.server.bodies[0]["messages"]
    for call in turn["tool_calls"]:
        call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    assert turn == {
        "role": "assistant", "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {
                "name": "forecast", "arguments": {"city": "Zürich ☂", "days": None}}},
            {"id": "c2", "type": "function", "function": {"name": "now", "arguments": {}}},
        ],
    }  # fmt: skip
    assert one == {"role": "tool", "tool_call_id": "c1", "content": LONG}
    assert two == {"role": "tool", "tool_call_id": "c2", "content": "12:00"}


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        ('{"city": "Bonn', "no JSON"),
        ("city=Bonn", "no JSON"),
        ('{"days": NaN}', "no JSON"),
        ('["Bonn"]', "no JSON object"),
        ('"Bonn"', "no JSON object"),
        ("[" * 5000 + "]" * 5000, "recursion"),
        ('{"a":' * 200 + "1" + "}" * 200, "levels deep"),
    ],
)
def test_arguments_that_are_no_object_are_kept_as_written(bench, say, written, fault):
    """Servers refuse to take such text back, at every further turn: an object holds it then."""
    first = say("openai", openai_reply("", [("c1", "forecast", written)]))
    (call,) = first.tool_calls
    assert (call.arguments, first.finish_reason) == (written, "tool_calls")
    assert fault in call.fault
    say("openai", openai_reply("", [], "stop"), messages=conversation(first, call.fault))
    sent = bench.server.bodies[1]["messages"][2]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(sent) == {"invalid_json": written}


@pytest.mark.parametrize("written", ["", " ", "null", "{}"])
def test_a_call_without_arguments_has_none(say, written):
    (call,) = say("openai", openai_reply("", [("c1", "now", written)])).tool_calls
    assert (call.arguments, call.fault) == ({}, None)


def test_arguments_as_an_object_are_taken_too(bench):
    """Some servers give what OpenAI writes as text."""
    reply = openai_reply("", CALLS)
    reply["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = {"city": "Bonn"}
    bench.server.replies["given"] = reply
    assert bench.ask("given").tool_calls[0].arguments == {"city": "Bonn"}


def test_a_server_that_says_stop_at_a_call(say):
    assert say("openai", openai_reply("", CALLS, "stop")).finish_reason == "tool_calls"
    assert say("openai", openai_reply("", CALLS, None)).finish_reason == "tool_calls"
    assert say("openai", openai_reply("4", [], "stop")).finish_reason == "stop"


@pytest.mark.parametrize("thoughts", [{"reasoning_content": ""}, {"reasoning": "rain?"}])
def test_thoughts_before_a_call_go_back_in_their_own_field(bench, say, thoughts):
    first = say("openai", openai_reply("", CALLS, **thoughts))
    say("openai", openai_reply("", [], "stop"), messages=conversation(first, "a", "b"))
    turn = bench.server.bodies[1]["messages"][2]
    assert {name: turn[name] for name in turn if name.startswith("reasoning")} == thoughts


def test_calls_without_an_id_get_one_that_stands_once(bench, say):
    unnamed = [(None, "now", {}), ("", "now", {})]
    first = say("openai", openai_reply("", unnamed))
    messages = conversation(first, "a", "b")
    second = say("openai", openai_reply("", unnamed), messages=messages, turn=1)
    ids = [call.id for call in (*first.tool_calls, *second.tool_calls)]
    assert len(set(ids)) == 4
    turn, *results = bench.server.bodies[1]["messages"][2:]
    assert [call["id"] for call in turn["tool_calls"]] == ids[:2]
    assert [result["tool_call_id"] for result in results] == ids[:2]


@pytest.mark.parametrize("kind", ["openai", "vllm"])
def test_tools_need_the_chat_api(bench, kind):
    model = bench.model(kind, "&api=completions")
    answered = Message("tool", "12:00", tool_call_id="c1")
    for request in (
        bench.request(tools=TOOLS), bench.request(messages=(*asked(), answered)),
        bench.request(messages=(Message("assistant", "", tool_calls=(ToolCall("c", "n", {}),)),)),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=f"{kind}:m1 takes tools with api=chat") as caught:
            model.generate([request])
        assert "\n" not in str(caught.value)
    assert bench.server.calls.total() == 0


def test_vllm_takes_tools_with_the_chat_api(bench, say):
    output = say("vllm", openai_reply("", CALLS), more="&api=chat")
    assert [call.name for call in output.tool_calls] == ["forecast", "now"]
    assert len(bench.server.bodies[0]["tools"]) == 2


# --- anthropic ---


def test_anthropic_gets_tools_with_their_schema(bench, say):
    pytest.importorskip("anthropic")
    say("anthropic", anthropic_reply("", CALLS))
    assert bench.server.bodies[0]["tools"] == [
        {"name": "forecast", "description": "The weather to come.", "input_schema": SCHEMA},
        {"name": "now", "description": "What time it is.", "input_schema": NO_PARAMETERS},
    ]


def test_anthropic_gets_all_results_in_one_turn_and_first_in_it(bench, say):
    """The service: results follow their calls at once, in one turn, before any text."""
    pytest.importorskip("anthropic")
    first = say("anthropic", anthropic_reply("Let me look.", CALLS))
    messages = (*conversation(first, LONG, "\n"), Message("user", "Hurry."))
    messages += (Message("assistant", "Rain."), Message("user", "Sure?"), Message("assistant", ""))
    messages += (Message("user", "Yes?"),)
    say("anthropic", anthropic_reply("Yes.", [], "end_turn"), messages=messages)
    assert bench.server.bodies[1]["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "item-a: 2 + 2?"}]},
        {"role": "assistant", "content": [
            {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "id": "c1", "name": "forecast",
             "input": {"city": "Zürich ☂", "days": None}},
            {"type": "tool_use", "id": "c2", "name": "now", "input": {}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1",
             "content": [{"type": "text", "text": LONG}]},
            {"type": "tool_result", "tool_use_id": "c2", "content": []},
            {"type": "text", "text": "Hurry."},
        ]},
        {"role": "assistant", "content": [{"type": "text", "text": "Rain."}]},
        {"role": "user", "content": [{"type": "text", "text": "Sure?"}]},
        {"role": "user", "content": [{"type": "text", "text": "Yes?"}]},
    ]  # fmt: skip
    _is_anthropics(bench.server.bodies[1])


def test_anthropic_gets_its_signed_thoughts_back_unchanged(bench, say):
    """It refuses a conversation without them; empty text, which it writes, it takes not back."""
    pytest.importorskip("anthropic")
    thoughts = [
        {"type": "thinking", "thinking": "rain?", "signature": "sig+/=="},
        {"type": "redacted_thinking", "data": "xyz"},
    ]
    empty = {"type": "text", "text": "\n"}
    first = say("anthropic", anthropic_reply("", CALLS[1:], first=(*thoughts, empty)))
    assert (first.reasoning, first.text) == ("rain?", "\n")
    say("anthropic", anthropic_reply("", CALLS), messages=conversation(first, "12:00"))
    assert bench.server.bodies[1]["messages"][1]["content"] == [
        *thoughts, {"type": "tool_use", "id": "c2", "name": "now", "input": {}},
    ]  # fmt: skip
    _is_anthropics(bench.server.bodies[1])


def test_anthropic_gets_calls_that_another_wrote(bench, say):
    pytest.importorskip("anthropic")
    calls = (ToolCall("c1", "forecast", "city=Bonn", "no JSON"), ToolCall("c2", "now", {}))
    for text in ("", "So."):
        turn = Message("assistant", text, tool_calls=calls)
        say("anthropic", anthropic_reply("4", [], "end_turn"), messages=(*asked(), turn))
    written = [
        {
            "type": "tool_use",
            "id": "c1",
            "name": "forecast",
            "input": {"invalid_json": "city=Bonn"},
        },
        {"type": "tool_use", "id": "c2", "name": "now", "input": {}},
    ]
    sent = [body["messages"][1]["content"] for body in bench.server.bodies]
    assert sent == [written, [{"type": "text", "text": "So."}, *written]]
    _is_anthropics(bench.server.bodies[1])


def _is_anthropics(body):
    """Hold a request against the types of the service's own package, block by block."""
    from anthropic import types
    from pydantic import TypeAdapter

    kinds = {
        "text": types.TextBlockParam, "tool_use": types.ToolUseBlockParam,
        "tool_result": types.ToolResultBlockParam, "thinking": types.ThinkingBlockParam,
        "redacted_thinking": types.RedactedThinkingBlockParam,
    }  # fmt: skip
    blocks = [(kinds[b["type"]], b) for m in body["messages"] for b in m["content"]]
    for kind, given in [*blocks, *((types.ToolParam, tool) for tool in body["tools"])]:
        TypeAdapter(kind).validate_python(given)
        assert set(given) <= set(get_type_hints(kind))


# --- gemini ---

SIGNATURE = base64.b64encode(b"\xfb\xff\xbfthoughts").decode()  # "+/+/…": no two alphabets agree


def test_gemini_gets_tools_as_declarations(bench, say):
    """The package writes the schema's name with underscores, which the service reads as well."""
    pytest.importorskip("google.genai")
    say("gemini", gemini_reply("", CALLS))
    (tool,) = bench.server.bodies[0]["tools"]
    assert set(tool) == {"functionDeclarations"}
    schemas = []
    for declared in tool["functionDeclarations"]:
        (name,) = {"parametersJsonSchema", "parameters_json_schema"} & set(declared)
        schemas.append(declared.pop(name))
    assert schemas == [SCHEMA, NO_PARAMETERS]
    assert tool["functionDeclarations"] == [
        {"name": "forecast", "description": "The weather to come."},
        {"name": "now", "description": "What time it is."},
    ]


@pytest.mark.parametrize("named", [True, False])
def test_gemini_gets_signed_calls_and_all_results_in_one_turn(bench, say, named):
    """Older models give calls no id; a result then names the tool alone."""
    pytest.importorskip("google.genai")
    calls = [(id_ if named else None, name, args) for id_, name, args in CALLS]
    first = say("gemini", gemini_reply("So.", calls, signature=SIGNATURE))
    messages = (*conversation(first, LONG, "12:00"), Message("user", "Hurry."))
    say("gemini", gemini_reply("Rain.", []), messages=messages)
    contents = bench.server.bodies[1]["contents"]
    signed = contents[1]["parts"][1].pop("thoughtSignature")
    assert base64.urlsafe_b64decode(signed) == b"\xfb\xff\xbfthoughts"
    one, two = ({"id": "c1"}, {"id": "c2"}) if named else ({}, {})
    assert contents == [
        {"role": "user", "parts": [{"text": "item-a: 2 + 2?"}]},
        {"role": "model", "parts": [
            {"text": "So."},
            {"functionCall": {"name": "forecast", "args": {"city": "Zürich ☂", "days": None}} | one},
            {"functionCall": {"name": "now", "args": {}} | two},
        ]},
        {"role": "user", "parts": [
            {"functionResponse": {"name": "forecast", "response": {"output": LONG}} | one},
            {"functionResponse": {"name": "now", "response": {"output": "12:00"}} | two},
        ]},
        {"role": "user", "parts": [{"text": "Hurry."}]},
    ]  # fmt: skip
    _is_geminis(bench.server.bodies[1])


def test_gemini_names_the_tool_of_the_latest_call_with_that_id(bench, say):
    pytest.importorskip("google.genai")
    say("gemini", gemini_reply("", []), messages=(
        *asked(), Message("assistant", "", tool_calls=(ToolCall("c", "now", {}),)),
        Message("tool", "12:00", tool_call_id="c"),
        Message("assistant", "So.", tool_calls=(ToolCall("c", "forecast", "Bonn", "no JSON"),)),
        Message("tool", (TextPart("rain"),), tool_call_id="c"),
    ))  # fmt: skip
    assert bench.server.bodies[0]["contents"][1:] == [
        {"role": "model", "parts": [{"functionCall": {"id": "c", "name": "now", "args": {}}}]},
        {"role": "user", "parts": [
            {"functionResponse": {"id": "c", "name": "now", "response": {"output": "12:00"}}}]},
        {"role": "model", "parts": [
            {"text": "So."},
            {"functionCall": {"id": "c", "name": "forecast", "args": {"invalid_json": "Bonn"}}}]},
        {"role": "user", "parts": [
            {"functionResponse": {"id": "c", "name": "forecast", "response": {"output": "rain"}}}]},
    ]  # fmt: skip
    with pytest.raises(HarnessError, match="answers the call 'c9', which no earlier turn holds"):
        say("gemini", {}, messages=(*asked(), Message("tool", "12:00", tool_call_id="c9")))


@pytest.mark.parametrize("why", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"])
def test_a_call_that_gemini_could_not_read_is_the_models_fault(say, why):
    """The service gives no parts then."""
    pytest.importorskip("google.genai")
    reply = gemini_reply("", [], why)
    reply["candidates"][0]["content"] = {}
    output = say("gemini", reply)
    assert (output.finish_reason, output.error_kind) == ("error", "model")
    assert output.error == f"the model's tool call cannot be used: {why}"


def _is_geminis(body):
    """Hold a request against the types of the service's own package, which refuse other fields."""
    from google.genai import types

    for content in body["contents"]:
        types.Content.model_validate(content)
    for tool in body["tools"]:
        types.Tool.model_validate(tool)


# --- runs ---


class Agent:
    """Offers tools until the model calls none; `turns` bounds its calls."""

    needs = ("generate", "tools")

    def __init__(self, turns: int = 9) -> None:
        self.turns = turns

    def __call__(self, item):
        messages, output = item.messages, Output(text="")
        for turn in range(self.turns):
            output = yield msgspec.structs.replace(item.ask(messages, turn), tools=TOOLS)
            if not output.tool_calls:
                break
            results = [Message("tool", "12:00", tool_call_id=c.id) for c in output.tool_calls]
            messages = (*messages, output.as_message(), *results)
        return output


def _run(bench, turns, plan):
    registry.solver("own/agent")(lambda: Agent(turns))
    bench.samples = bench.samples[:1]
    bench.server.replies = {
        "calls": openai_reply("", CALLS), "slip": openai_reply("", [("c9", "now", "{")]),
        "done": openai_reply("4", [], "stop"),
    }  # fmt: skip
    bench.server.plan = {"*": plan}
    run = bench.run(solver="own/agent")
    events = [e.data for e in bench.records(EventRecord) if e.kind == "model_call"]
    return run, events


def test_the_journal_holds_the_calls_of_every_turn(bench):
    run, events = _run(bench, 9, ["calls", "slip", "done"])
    assert (run.status, run.metrics["accuracy"].value) == ("done", 1.0)
    assert events[0]["tool_calls"] == [
        {"id": "c1", "name": "forecast", "arguments": {"city": "Zürich ☂", "days": None}},
        {"id": "c2", "name": "now", "arguments": {}},
    ]
    (slip,) = events[1]["tool_calls"]
    assert (slip["id"], slip["arguments"]) == ("c9", "{")
    assert "no JSON" in slip["fault"]
    assert set(events[2]) == set(events[0]) - {"tool_calls"}


def test_a_last_answer_that_calls_is_not_lost(bench):
    _, events = _run(bench, 1, ["calls"])
    assert [call["name"] for call in events[0]["tool_calls"]] == ["forecast", "now"]
    (record,) = bench.records(SampleRecord)
    assert record.finish_reason == "tool_calls"


def test_a_single_answer_without_calls_has_no_event(bench):
    _, events = _run(bench, 1, ["done"])
    assert events == []


def test_who_can_call_tools_is_known_before_anything_is_called(bench):
    able = {"openai": "", "vllm": "&api=chat"}
    for name, more in able.items():
        require(bench.model(name, more), "tools", "an agent")
    said = (
        r"an agent needs 'tools', which backend '{}' cannot do{}; use one of: anthropic, gemini, "
    )
    said += "mock, openai, vllm"
    unable = Preview(
        identity=ModelIdentity(backend="hf", name="a"), capabilities=CAPABILITIES["hf"]
    )
    with pytest.raises(UsageError, match=said.format("hf", "")):
        require(unable, "tools", "an agent")
    with pytest.raises(UsageError, match=said.format("vllm", " with api=completions")):
        require(bench.model("vllm"), "tools", "an agent")
