"""What every model behind HTTP does with a server that misbehaves: right status, right calls."""

import email.utils
import threading

import pytest

from harness.backends.base import LoadOptions, load
from harness.backends.http import TRIES, TRIES_UNREACHED, Caller, TransientError, base_url
from harness.core.errors import HarnessError, UsageError
from harness.core.spec import parse_model
from harness.core.types import Output, Usage

KEY = "sk-planted-0123456789"
KINDS = ["openai", "anthropic", "gemini"]


@pytest.fixture(params=KINDS)
def kind(request):
    if request.param != "openai":
        pytest.importorskip({"anthropic": "anthropic", "gemini": "google.genai"}[request.param])
    return request.param


@pytest.mark.parametrize(
    ("plan", "finish", "calls"),
    [
        (["ok"], "stop", 1),
        (["500", "500", "ok"], "stop", 3),
        (["503", "408", "409", "ok"], "stop", 4),
        (["429", "ok"], "stop", 2),
        (["cut", "ok"], "stop", 2),
        (["json", "ok"], "stop", 2),
        (["form", "ok"], "stop", 2),
        (["close", "ok"], "stop", 2),
        (["html", "ok"], "stop", 2),
        (["length"], "length", 1),
        (["empty"], "length", 1),
        (["filter"], "content_filter", 1),
        (["toolong"], "error", 1),
        (["500"], "error", TRIES),
        (["cut"], "error", TRIES),
    ],
)
def test_each_fault_gets_its_status_and_its_number_of_calls(bench, kind, plan, finish, calls):
    output = bench.ask(*plan, kind=kind)
    assert output.finish_reason == finish
    assert bench.server.calls["item-a"] == calls
    assert len(bench.slept) == calls - 1
    assert output.text == ("4" if finish == "stop" or plan == ["length"] else "")
    if finish == "error":
        assert output.error_kind == ("model" if plan == ["toolong"] else "network")
        assert output.error.startswith("too long" if plan == ["toolong"] else "")
        assert output.error


def test_tokens_are_those_that_the_server_counts(bench, kind):
    assert bench.ask("ok", kind=kind).usage == Usage(11, 7, None)
    assert bench.ask("nousage", kind=kind).usage == Usage(None, None, None)
    thinking = bench.ask("think", kind=kind)
    assert thinking.usage == Usage(11, 7, 5)
    assert (thinking.text, thinking.reasoning) == ("4", "two and two")


def test_a_missing_reason_to_end_is_told_by_the_length(bench, kind):
    """The server counts 7 tokens: a whole answer under a limit of 8, a cut one under 7."""
    bench.server.plan = {"*": ["nofinish"]}
    model = bench.model(kind)
    outputs = model.generate([bench.request(max_tokens=8), bench.request(max_tokens=7)])
    assert [o.finish_reason for o in outputs] == ["stop", "length"]
    assert model.observed()["finish_reason missing or unknown"] == 2


def test_what_meets_every_item_stops_the_run_with_one_line(bench, kind, monkeypatch):
    variable = f"{kind.upper()}_API_KEY"
    monkeypatch.setenv(variable, KEY)
    for plan, said in (
        ("401", f"the key in ${variable} was refused"),
        ("404", "no such model or address"),
        ("400", "HTTP 400.*temperature must be 1"),
        ("quota", "no credit left"),
        ("wrong", "answered as 'other-model'.*any_model=1"),
        ("echo400", "HTTP 400"),
    ):
        bench.server.calls.clear()
        with pytest.raises(HarnessError, match=said.replace("$", r"\$")) as caught:
            bench.ask(plan, kind=kind)
        assert bench.server.calls["item-a"] == 1
        assert "\n" not in str(caught.value)
        assert KEY not in str(caught.value)
    assert bench.ask("wrong", kind=kind, more="&any_model=1").text == "4"


def test_the_key_is_sent_and_told_to_nobody(bench, kind, monkeypatch):
    monkeypatch.setenv("MY_KEY", f" {KEY}\n")
    model = bench.model(kind, "&key_env=MY_KEY")
    bench.server.plan = {"*": ["echo"]}
    output = model.generate([bench.request()])[0]
    assert KEY in str(bench.server.headers[0].values())
    told = [output, model.identity, model.describe(), model.observed()]
    assert KEY not in repr(told)
    assert "[key]" in output.error
    assert model.identity == bench.model(kind).identity  # where the key is found is no part of it


def test_a_missing_or_broken_key_is_one_line(kind, server, monkeypatch):
    variable = f"{kind.upper()}_API_KEY"
    with pytest.raises(UsageError, match=f"export {variable}="):
        load(f"{kind}:m1")
    with pytest.raises(UsageError, match="export OTHER="):
        load(f"{kind}:m1?base_url={server.url}&key_env=OTHER")
    monkeypatch.setenv(variable, f"{KEY}\nmore")
    with pytest.raises(UsageError, match="blanks or letters") as caught:
        load(f"{kind}:m1")
    assert KEY not in str(caught.value)


def test_a_key_that_gemini_calls_a_bad_request(bench):
    pytest.importorskip("google.genai")
    with pytest.raises(HarnessError, match=r"the key in \$GEMINI_API_KEY was refused"):
        bench.ask("badkey", kind="gemini")


def test_retry_after_is_obeyed_in_seconds_and_as_a_date(bench, kind):
    model = bench.model(kind)
    model.caller.now = lambda: 1_000_000_000.0
    date = email.utils.formatdate(1_000_000_090.0, usegmt=True)
    bench.server.plan = {"*": ["429:7", f"429:{date}", "ok"]}
    assert model.generate([bench.request()])[0].text == "4"
    first, second = bench.slept
    assert 7.25 <= first <= 7.5  # and half to all of the first pause of 0.5 s
    assert 90.5 <= second <= 91.0  # … and of the second of 1 s
    bench.server.calls.clear()
    bench.server.plan = {"*": ["429:3600", "ok"]}
    output = model.generate([bench.request()])[0]
    assert (output.error_kind, bench.server.calls["item-a"]) == ("network", 1)


def test_pauses_double_and_depend_on_the_request_alone(bench):
    bench.ask("500")
    first = list(bench.slept)
    assert all(0.25 * 2**k <= pause <= 0.5 * 2**k for k, pause in enumerate(first))
    bench.slept.clear()
    bench.server.calls.clear()
    bench.ask("500")
    assert bench.slept == first
    bench.slept.clear()
    bench.model().generate([bench.request("item-b")])
    assert bench.slept != first


def test_requests_a_minute_are_spaced():
    time = [100.0]
    caller = Caller("here", None, LoadOptions(rpm=120))
    caller.clock = lambda: time[0]
    slept = []
    caller.sleep = slept.append
    for _ in range(3):
        caller.call(lambda: Output(text=""))
    assert slept == pytest.approx([0.5, 1.0])  # the clock stands, so each waits for its own start
    time[0] = 110.0
    caller.call(lambda: Output(text=""))
    assert len(slept) == 2


@pytest.mark.parametrize("kind", [*KINDS, "vllm"])
def test_no_server_at_all_is_one_line(bench, kind):
    if kind in ("anthropic", "gemini"):
        pytest.importorskip({"anthropic": "anthropic", "gemini": "google.genai"}[kind])
    model = bench.model(kind)
    bench.server.shutdown()
    bench.server.server_close()
    bench.slept.clear()
    hint = r"python -m vllm\S+ --model m1" if kind == "vllm" else "is the server running"
    with pytest.raises(HarnessError, match=f"cannot reach {kind}:m1 .*{hint}") as caught:
        model.generate([bench.request()])
    assert "\n" not in str(caught.value)
    assert len(bench.slept) == TRIES_UNREACHED - 1


def test_a_server_that_goes_away_later_is_a_fault_of_the_network():
    caller = Caller("here", None, LoadOptions())
    caller.sleep = lambda _: None
    caller.call(lambda: Output(text=""))

    def send():
        raise TransientError("refused", unreached=True)

    assert caller.call(send).error_kind == "network"


def test_closing_ends_a_request_that_hangs(bench, kind):
    bench.server.plan = {"*": ["hang"]}
    model = bench.model(kind)
    outputs = []
    thread = threading.Thread(target=lambda: outputs.extend(model.generate([bench.request()])))
    thread.start()
    bench.server.wait_for(1)
    model.close()
    thread.join(timeout=20)
    assert not thread.is_alive()
    assert outputs[0].error_kind == "network"
    assert bench.server.calls["item-a"] == 1  # nothing is tried again after closing
    model.close()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://x", "must begin with http"),
        ("127.0.0.1:80", "must begin with http"),
        ("http://me:secret@x/v1", "may hold no name"),
        ("http://x/v1%3Fkey=secret", "may hold no name"),
        ("http://x:port/", "must begin with http"),
    ],
)
def test_an_address_that_cannot_be_stored_is_refused(url, said):
    with pytest.raises(UsageError, match=said) as caught:
        base_url(parse_model(f"openai:m?base_url={url}"), "")
    assert "secret" not in str(caught.value)


def test_prompts_are_cut_by_nobody(kind, bench):
    with pytest.raises(UsageError, match="--on-long error or skip"):
        bench.model(kind, on_long="truncate")
    bench.server.plan = {"*": ["toolong"]}
    output = bench.model(kind, on_long="skip").generate([bench.request()])[0]
    assert output.finish_reason == "skipped"
