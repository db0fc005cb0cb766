"""Whole runs against a server that misbehaves: nothing lost, nothing paid twice, nothing told."""

import os
import random
import re
import signal
import subprocess
import sys
from collections import Counter

import pytest

from harness.backends import http
from harness.core.errors import HarnessError
from harness.core.records import EventRecord, SampleRecord
from harness.core.types import Sample
from harness.runner.api import Run

KEY = "sk-planted-0123456789"


def _items(n):
    return [Sample(item_id=f"item-{k}", input=f"item-{k}: 2 + 2?", target=("4",)) for k in range(n)]


def test_with_faults_everywhere_each_item_is_paid_once(bench):
    rng = random.Random(3)
    bench.samples = _items(150)
    faults = ["500", "429:1", "cut", "json", "close", "503"]
    for sample in bench.samples:
        plan = []
        while rng.random() < 0.3:
            plan.append(rng.choice(faults))
        bench.server.plan[sample.item_id] = [*plan, "ok"]
    run = bench.run(max_connections=20)
    assert (run.status, run.n_scored, run.metrics["accuracy"].value) == ("done", 150, 1.0)
    assert bench.server.answered == Counter(s.item_id for s in bench.samples)
    assert bench.server.calls == {i: len(plan) for i, plan in bench.server.plan.items()}
    again = bench.run(max_connections=20)
    assert (again.cached, bench.server.answered.total()) == (150, 150)


def test_two_hundred_open_requests_and_none_lost(bench):
    bench.samples = _items(400)
    bench.server.plan = {"*": ["together:200"]}
    run = bench.run(max_connections=200)
    assert (run.status, run.n_scored) == ("done", 400)
    assert bench.server.most == 200
    assert sorted(r.item_id for r in bench.records(SampleRecord)) == sorted(
        s.item_id for s in bench.samples
    )
    assert set(bench.server.calls.values()) == {1}


def test_no_more_are_open_than_were_allowed(bench):
    bench.server.plan = {"*": ["together:3"]}
    assert bench.run(max_connections=3).status == "done"
    assert bench.server.most == 3


def test_lost_items_are_open_and_resume_asks_for_them_alone(bench):
    bench.server.plan = {"item-3": ["500"] * (3 * http.TRIES) + ["ok"], "item-4": ["length"]}
    run = bench.run()
    assert (run.status, run.counts["error_harness"], run.counts["truncated"]) == ("partial", 1, 1)
    assert bench.server.calls["item-3"] == 3 * http.TRIES
    (event,) = [e for e in bench.records(EventRecord) if e.kind == "backend"]
    assert event.data == {
        "calls": 19 + 3 * http.TRIES, "retries": 3 * (http.TRIES - 1), "answered as m1": 19,
    }  # fmt: skip
    done = bench.resume(run.run_id)
    assert (done.status, done.n_counted) == ("done", 20)
    assert bench.server.answered.total() == 20


def test_options_are_compared_over_http(bench):
    """The server charges more for a later letter, so ' 4' is likelier than ' 5'."""
    run = bench.run(kind="vllm", solver="choose")
    assert run.status == "done"
    for record in bench.records(SampleRecord):
        assert record.choice_logprobs == pytest.approx((-0.84, -0.85))
    assert set(bench.server.calls.values()) == {2}


def test_the_key_is_nowhere_in_the_store(bench, monkeypatch, capfd):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    bench.server.plan = {"item-1": ["echo"], "item-2": ["echo", "ok"]}
    run = bench.run()
    assert run.counts["error_harness"] == 1
    assert any(KEY in str(headers) for headers in bench.server.headers)  # it was sent
    assert any("[key]" in (r.error or "") for r in bench.records(SampleRecord))
    files = [path for path in bench.store.root.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []
    # Compressed files hide it from a look at their bytes.
    assert KEY not in repr([bench.records(SampleRecord), bench.records(EventRecord)])
    assert KEY not in repr(Run(run.run_id, bench.store).samples().to_pylist())
    assert KEY not in "".join(capfd.readouterr())


def test_a_refused_key_stops_at_once_and_keeps_what_is_there(bench, monkeypatch):
    # What is asked beside the refused one is left hanging, so that nothing else can end first.
    later = {f"item-{k}": ["hang"] for k in range(6, 20)}
    bench.server.plan = {"item-5": ["401"], **later}
    with pytest.raises(HarnessError, match=r"was refused .*go on with: harness resume") as caught:
        bench.run(max_connections=2)
    assert "\n" not in str(caught.value)
    assert bench.server.calls.total() <= 5 + 1 + 1
    kept = {r.item_id for r in bench.records(SampleRecord)}
    # Whichever was under way on the other connection may not have been kept.
    assert len({f"item-{k}" for k in range(5)} - kept) <= 1
    (run_id,) = bench.store.run_ids()
    bench.server.plan = {}
    done = bench.resume(run_id)
    assert (done.status, done.n_scored) == ("done", 20)
    # Only what was under way beside the refused one may have been asked twice.
    assert bench.server.answered.total() <= 20 + 1


@pytest.mark.parametrize("n", [1, 200])
def test_a_dead_endpoint_is_one_line(bench, n, monkeypatch, capsys):
    from harness.cli.main import main

    monkeypatch.setattr(http, "FIRST_PAUSE_S", 0.0)
    spec = bench.spec()
    bench.server.shutdown()
    bench.server.server_close()
    monkeypatch.setattr(sys, "argv", [
        "harness", "run", "--task", "gsm8k", "--model", spec, "--store", str(bench.store.root),
        "--max-connections", str(n), "--first", "60",
    ])  # fmt: skip
    code = main()
    said = capsys.readouterr().err.strip().splitlines()
    assert code == 1
    assert [line for line in said if "cannot reach" in line] == said[-1:]
    assert "Traceback" not in "".join(said)
    assert len(said) <= 3


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_waits_for_no_request_that_hangs(bench, signum):
    """Five answers, then silence: stopping keeps the five and does not wait for the rest."""
    bench.server.plan = {"*": ["ok"] * 5 + ["hang"]}
    bench.server.answer = lambda item: "#### 4"
    command = [
        sys.executable, "-P", "-m", "harness.cli.main", "run", "--task", "gsm8k", "--model",
        bench.spec(), "--store", str(bench.store.root), "--max-connections", "4",
    ]  # fmt: skip
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={k: v for k, v in os.environ.items() if k != "OPENAI_API_KEY"},
        # A shell's background jobs ignore Ctrl-C and pass that on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )  # fmt: skip
    try:
        bench.server.wait_for(9)  # the last four were started after the five were kept
        process.send_signal(signum)
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 1
    assert re.search(r"stopped; what is done is kept. Go on with: harness resume", said)
    assert "Traceback" not in said
    assert len(bench.records(SampleRecord)) == 5
    assert bench.server.answered.total() == 5
