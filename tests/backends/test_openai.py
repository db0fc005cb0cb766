"""What is sent to an OpenAI-style server and what is read from its replies."""

import base64
import json
import math

import pytest

from harness.backends.http import TransientError
from harness.backends.vllm import sum_after
from harness.core.errors import HarnessError, UsageError
from harness.core.types import AudioPart, ChoiceRequest, ImagePart, Message, TextPart


def test_the_request_is_what_was_asked_for(bench):
    bench.ask("ok", temperature=0.5, top_p=0.9, max_tokens=9, stop=("a", "b", "", "c", "d", "e"))
    (body,) = bench.server.bodies
    assert body == {
        "model": "m1", "temperature": 0.5, "top_p": 0.9, "max_tokens": 9, "seed": 7,
        "stop": ["a", "b", "c", "d"],
        "messages": [{"role": "system", "content": "Be brief."},
                     {"role": "user", "content": "item-a: 2 + 2?"}],
    }  # fmt: skip
    assert bench.server.paths == ["/v1/chat/completions"]
    assert "Authorization" not in bench.server.headers[0]


def test_extras_are_sent_and_are_part_of_the_identity(bench):
    plain = bench.model()
    more = "&reasoning_effort=low&body.top_k=40&body.user=me&omit=seed,temperature"
    model = bench.model(more=f"{more}&max_tokens_field=max_completion_tokens")
    model.generate([bench.request(max_tokens=9)])
    (body,) = bench.server.bodies
    assert (body["reasoning_effort"], body["top_k"], body["user"]) == ("low", 40, "me")
    assert body["max_completion_tokens"] == 9
    assert {"seed", "temperature", "max_tokens"}.isdisjoint(body)
    identities = {plain.identity.variant_id, model.identity.variant_id}
    identities.add(bench.model(more="&api=completions").identity.variant_id)
    identities.add(bench.model(more="&body.top_k=41").identity.variant_id)
    assert len(identities) == 4
    assert plain.identity.args == {"base_url": f"{bench.server.url}/v1", "api": "chat"}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("&temprature=1", "unknown option 'temprature'"),
        ("&api=responses", "chat or completions"),
        ("&body.stream=true", "ours to set"),
        ("&body.model=x", "ours to set"),
    ],
)
def test_bad_options_are_refused(bench, more, said):
    with pytest.raises(UsageError, match=said):
        bench.model(more=more)


def test_pictures_and_sounds_are_sent_as_the_servers_parts(bench, tmp_path):
    picture, sound = tmp_path / "p.png", tmp_path / "s.mp3"
    picture.write_bytes(b"\x89PNG")
    sound.write_bytes(b"ID3")
    message = Message("user", (
        TextPart("item-a"), ImagePart(str(picture)), ImagePart("data:image/gif;base64,R0lG"),
        AudioPart(str(sound), "audio/mpeg"),
    ))  # fmt: skip
    bench.model().generate([bench.request(messages=(message,))])
    given = bench.server.bodies[0]["messages"][0]["content"]
    png, mp3 = base64.b64encode(b"\x89PNG").decode(), base64.b64encode(b"ID3").decode()
    assert given == [
        {"type": "text", "text": "item-a"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{png}"}},
        {"type": "image_url", "image_url": {"url": "data:image/gif;base64,R0lG"}},
        {"type": "input_audio", "input_audio": {"data": mp3, "format": "mp3"}},
    ]
    gone = Message("user", (ImagePart(str(tmp_path / "gone.png")),))
    with pytest.raises(HarnessError, match=r"cannot read .*gone\.png"):
        bench.model().generate([bench.request(messages=(gone,))])


def test_stop_strings_are_enforced_here(bench):
    output = bench.ask("stops", stop=("x1", "x2", "x3", "x4", "\nQ:"))
    assert (output.text, output.finish_reason) == ("4", "stop")


def test_refusals_tool_calls_and_dated_names(bench):
    assert bench.ask("refusal").finish_reason == "content_filter"
    assert bench.ask("filtered").finish_reason == "content_filter"
    assert bench.ask("tools").finish_reason == "tool_calls"
    assert bench.ask("dated").text == "4"


def test_a_longer_name_may_be_another_model(bench):
    with pytest.raises(HarnessError, match="answered as 'm10'"):
        bench.ask("near")


def test_a_server_that_gives_up_is_a_fault(bench):
    assert bench.ask("abort").error_kind == "network"


def test_the_names_that_answer_are_counted(bench):
    model = bench.model(more="&any_model=1")
    bench.server.plan = {"*": ["500", "wrong"]}
    model.generate([bench.request()])
    assert model.observed() == {"calls": 2, "retries": 1, "answered as other-model": 1}
    assert model.observed() == {}


def test_token_log_probabilities_on_request(bench):
    assert bench.ask("ok").token_logprobs is None
    bench.server.answer = lambda item: "12 Q: 3"
    model = bench.model(more="&logprobs=1")
    output = model.generate([bench.request(stop=(" Q:",))])[0]
    assert "token_logprobs" in model.capabilities
    assert (output.text, output.token_logprobs) == ("12", (-0.25, -0.25))


def test_completions_send_one_text(bench):
    output = bench.model(more="&api=completions").generate([bench.request()])[0]
    assert output.text == "4"
    assert bench.server.paths == ["/v1/completions"]
    assert bench.server.bodies[0]["prompt"] == output.prompt
    assert "item-a: 2 + 2?" in output.prompt


def test_a_reply_that_never_ends_is_a_fault(bench, monkeypatch):
    monkeypatch.setattr("harness.backends.openai.MOST_BYTES", 10)
    output = bench.ask("ok")
    assert (output.error_kind, "did not end" in output.error) == ("network", True)


def test_a_dripping_reply_runs_out_of_time(bench):
    model = bench.model(timeout=5)
    time = iter(range(0, 10**6, 10))  # ten seconds pass from look to look
    model.caller.clock = lambda: float(next(time))
    output = model.generate([bench.request()])[0]
    assert (output.error_kind, "did not end" in output.error) == ("network", True)


# --- vllm ---


def test_log_probabilities_of_given_options(bench):
    """The server charges a hundredth of a character's code: by hand, ' 45' costs 0.32+0.52+0.53."""
    model = bench.model("vllm")
    request = ChoiceRequest(
        item_id="item-a", messages=(Message("user", "item-a: 2 + 2 ="),),
        continuations=(" 4", " 45", " five"),
    )  # fmt: skip
    output = model.loglikelihood([request])[0]
    expected = [-sum(map(ord, text)) / 100 for text in (" 4", " 45", " five")]
    assert expected[1] == pytest.approx(-1.37)
    assert output.choice_logprobs == pytest.approx(expected)
    assert (output.usage.tokens_in, bench.server.calls["item-a"]) == (33, 3)
    assert all(math.isfinite(v) for v in output.choice_logprobs)


def test_blanks_before_an_option_belong_to_it(bench):
    request = ChoiceRequest(
        item_id="item-a", messages=(Message("user", "item-a = "),), continuations=("4",)
    )
    output = bench.model("vllm").loglikelihood([request])[0]
    assert output.choice_logprobs == pytest.approx([-(32 + 52) / 100])


def test_a_token_across_the_border_counts_and_the_drawn_one_does_not():
    given = {"tokens": ["ab", "cd", "e", "!"], "token_logprobs": [None, -1.0, -2.0, -9.0],
             "text_offset": [0, 2, 4, 5]}  # fmt: skip
    reply = {"choices": [{"logprobs": given}]}
    assert sum_after(reply, 3, 5) == -3.0
    assert sum_after({"choices": [{"logprobs": None}]}, 3, 5) is None
    with pytest.raises(TransientError):
        sum_after({"choices": [{"logprobs": given | {"tokens": ["a"]}}]}, 3, 5)


def test_an_option_lost_to_the_network_leaves_nothing_known(bench):
    bench.server.plan = {"*": ["ok", *["500"] * 6]}
    request = ChoiceRequest(
        item_id="item-a", messages=(Message("user", "item-a"),), continuations=(" 4", " 5")
    )
    output = bench.model("vllm").loglikelihood([request])[0]
    assert (output.choice_logprobs, output.error_kind) == (None, "network")


def test_chat_gives_no_log_probabilities(bench):
    assert "loglikelihood" in bench.model("vllm").capabilities
    assert "loglikelihood" not in bench.model("vllm", "&api=chat").capabilities
    with pytest.raises(UsageError, match=r"needs 'loglikelihood', .*use one of: .*vllm"):
        bench.run(solver="choose")
    assert bench.server.calls.total() == 0


def test_half_a_key_is_told_to_nobody_either(bench, monkeypatch):
    """A server shows the key where the shown part of its reply ends."""
    key = "k" * 64
    monkeypatch.setenv("MY_KEY", key)
    bench.server.plan = {"*": ["shows"]}
    bench.server.replies = {"shows": {"error": "x" * 150 + key}}
    output = bench.model(more="&key_env=MY_KEY").generate([bench.request()])[0]
    assert "holds no choices" in output.error
    assert "kk" not in output.error


def test_half_a_character_does_not_break_the_next_turn(bench):
    """What is stored of it, and sent back with it, can be written as UTF-8."""
    call = {"id": "c\ud800", "type": "function", "function": {
        "name": "add", "arguments": json.dumps({"a": "\ud800"}),
    }}  # fmt: skip
    message = {"role": "assistant", "content": "so \udfff", "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    bench.server.plan = {"*": ["half", "ok"]}
    bench.server.replies = {"half": {"model": "m1", "choices": [choice]}}
    model = bench.model()
    first = model.generate([bench.request()])[0]
    assert first.error is None
    turns = (Message("user", "item-a"), first.as_message())
    turns += tuple(Message("tool", "5", tool_call_id=c.id) for c in first.tool_calls)
    assert model.generate([bench.request(messages=turns)])[0].text == "4"


@pytest.mark.parametrize(
    "logprobs", [{"content": ["x"]}, {"content": [{"token": "4", "logprob": "a"}]}]
)
def test_broken_log_probabilities_are_the_networks_fault(bench, logprobs):
    choice = {"index": 0, "message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}
    bench.server.plan = {"*": ["odd"]}
    bench.server.replies = {"odd": {"model": "m1", "choices": [choice | {"logprobs": logprobs}]}}
    output = bench.model(more="&logprobs=1").generate([bench.request()])[0]
    assert (output.finish_reason, output.error_kind) == ("error", "network")
