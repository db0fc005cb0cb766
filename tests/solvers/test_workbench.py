"""The generic tools in a real box, and gold through the loop with them."""

from __future__ import annotations

import json
import threading
import time

import pytest

from harness.core import registry
from harness.core.task import Task
from harness.core.types import Sample, ToolCall
from harness.runner.config import make_config
from harness.runner.lifecycle import start
from harness.sandbox import Network, SandboxUnavailable, Service, reach
from harness.solvers.tools import Workbench, gold_call
from harness.store.layout import Store


@pytest.fixture(scope="module")
def level():
    try:
        return reach("auto").level
    except SandboxUnavailable as error:
        pytest.skip(str(error))


def say(bench, name, wall_s=60.0, **arguments):
    return bench.call(ToolCall("c", name, arguments), wall_s)


def test_python_shell_and_files_share_one_box(level):
    with Workbench(files={"in.csv": b"1,2\n"}) as bench:
        first = say(bench, "python", code="x = 6 * 7\nprint(open('in.csv').read())\nx")
        assert (first.text, first.isolation["level"]) == ("1,2\n\n[value]\n42\n", level)
        assert say(bench, "create_file", path="d/a.txt", content='it\'s "ü"\n').status == "ok"
        assert (
            say(bench, "bash", command="cat d/a.txt; exit 3").text == 'it\'s "ü"\n[exit code 3]\n'
        )
        assert say(bench, "python", code="len(open('d/a.txt').read()) + x").text == "51\n"


def test_a_slow_line_costs_nothing_and_a_slow_program_its_state(level):
    with Workbench() as bench:
        say(bench, "python", code="x = 1")
        slow = say(bench, "bash", 1.0, command="sleep 600")
        assert (slow.status, say(bench, "python", code="x").text) == ("timeout", "1\n")
        assert say(bench, "python", 0.5, code="while True: pass").status == "timeout"
        after = say(bench, "python", code="'x' in globals()").text
        assert after.startswith("[The earlier process is gone")
        assert after.endswith("False\n")


def test_files_of_the_working_folder_are_read_from_outside(level):
    with Workbench(files={"in.csv": b"1,2\n"}) as bench:
        assert bench.collect(["in.csv"]) == ({}, {"in.csv": "missing"})  # no box yet
        say(bench, "bash", command="echo 3 > out.txt; ln -s out.txt link")
        files, refused = bench.collect(["out.txt", "link", "../x"])
        assert files == {"out.txt": b"3\n"}
        assert refused == {"link": "a symlink", "../x": "leaves the folder"}


def test_kill_ends_a_call_under_way(level):
    with Workbench() as bench:
        say(bench, "python", code="1")
        began = time.monotonic()
        threading.Timer(0.2, bench.kill).start()
        ended = say(bench, "python", code="import time; time.sleep(50)")
        assert ended.status == "harness"
        assert time.monotonic() - began < 30


@pytest.mark.parametrize("protocol", ["tools", "fenced", "tags"])
def test_gold_works_in_the_box_and_scores_one(level, protocol, tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_decorated", {})

    @registry.task("own/box", n=2)
    def box(request):
        return Task(
            name="own/box", version="1", prompt="{{ input }}", scorer="exact", solver="agent",
            samples=[Sample(item_id=f"i{k}", input="How long is in.txt?", target=(str(k),)) for k in (3, 4)],
            guess=lambda sample, rng: "0",
            environment=lambda sample, request: Workbench(
                level=request.level, files={"in.txt": b"x" * int(sample.target[0])}
            ),
            gold=lambda sample: (
                gold_call("bash", command="wc -c < in.txt"),
                gold_call("submit", answer=sample.target[0]),
            ),
        )  # fmt: skip

    store = Store.open(tmp_path)
    config = make_config(task="own/box", model="mock:gold", solver=f"agent?protocol={protocol}")
    run = start(config, store)
    assert (run.status, run.metrics["accuracy"].value) == ("done", 1.0)

    from harness.core.records import SampleRecord
    from harness.store.journal import read_records

    records = list(read_records(store.journal(run.run_id)))
    assert {r.isolation for r in records if isinstance(r, SampleRecord)} == {level}
    shown = {r.item_id: r.data["text"] for r in records
             if getattr(r, "kind", "") == "tool_call" and r.data["call"]["name"] == "bash"}  # fmt: skip
    assert shown == {"i3": "3\n[exit code 0]\n", "i4": "4\n[exit code 0]\n"}


class Capture(Workbench):
    """A challenge to capture a flag: a service of its own for each attempt, and a box beside it."""

    def __init__(self, flag, request):
        self.flag, self.level = flag, request.level

    def __enter__(self):
        self.network = Network(self.level)
        files = {"main.py": b"if input() == 'sesame': print(open('flag.txt').read())"}
        files["flag.txt"] = self.flag.encode()
        self.service = Service(files, ["python", "main.py"], network=self.network)
        self.service.wait_ready()
        super().__init__(level=self.level, network=self.network)
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self.service.close()
        self.network.close()


def test_a_model_captures_a_flag_from_a_service(level, tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_decorated", {})
    flags = {"a": "flag{of-a}", "b": "flag{of-b}"}

    @registry.task("own/capture", n=2)
    def capture(request):
        return Task(
            name="own/capture", version="1", prompt="{{ input }}", scorer="exact", solver="agent",
            samples=[Sample(item_id=k, input="127.0.0.1:1337", target=(v,)) for k, v in flags.items()],
            guess=lambda sample, rng: "flag{guess}",
            environment=lambda sample, request: Capture(sample.target[0], request),
            gold=lambda sample: (gold_call("submit", answer=sample.target[0]),),
        )  # fmt: skip

    code = (
        "import socket\n"
        "with socket.create_connection(('127.0.0.1', 1337), 20) as s:\n"
        "    s.sendall(b'sesame\\n')\n"
        "    print(s.makefile().read())"
    )
    # The script is the same for both items and submits the flag of the first: what the service of
    # an attempt gives away is its own flag and no other.
    turns = [
        {"tool_calls": [{"name": "python", "arguments": {"code": code}}]},
        {"tool_calls": [{"name": "submit", "arguments": {"answer": flags["a"]}}]},
    ]
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"item_id": "*", "turns": turns}) + "\n")
    store = Store.open(tmp_path / "store")
    run = start(make_config(task="own/capture", model=f"mock:script?file={script}"), store)
    assert (run.status, run.metrics["accuracy"].value) == ("done", 0.5)

    from harness.store.journal import read_records

    records = list(read_records(store.journal(run.run_id)))
    shown = {r.item_id: r.data["text"].strip() for r in records
             if getattr(r, "kind", "") == "tool_call" and r.data["call"]["name"] == "python"}  # fmt: skip
    assert shown == flags
