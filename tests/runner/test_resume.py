"""Whatever stops a run, going on gives the rows and numbers of a run that nothing stopped."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from harness.backends.mock import Mock
from harness.cli.main import main
from harness.core.errors import HarnessError, StoreError, UsageError
from harness.core.records import EventRecord, RunFinished, SampleRecord, ScoreRecord, decoder
from harness.runner.api import Run
from harness.runner.config import make_config
from harness.runner.lifecycle import resume, start
from harness.store.journal import journal_lines, read_records, started
from harness.store.layout import Store

ITEMS, BATCH = 80, 4
MODEL = "mock:noisy?accuracy=0.6&truncate=0.1&delay=0.01"
SECONDS = 60.0  # far more than anything here takes: a deadline, not a measure


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    """Items in upstream's layout."""
    folder = tmp_path_factory.mktemp("data")
    rows = (
        {"question": f"How much is {k} plus {k}?", "answer": f"Twice {k}.\n#### {2 * k}"}
        for k in range(1000, 1000 + ITEMS)
    )
    (folder / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def config(root: Path):
    return make_config(task="gsm8k", model=MODEL, data_root=root, batch_size=BATCH, epochs=2)


@pytest.fixture(scope="module")
def unbroken(root, tmp_path_factory) -> Run:
    store = Store.open(tmp_path_factory.mktemp("unbroken"))
    return Run(start(config(root), store).run_id, store)


def rows(run: Run) -> list[dict]:
    """Everything of every attempt but its time, its run and who holds its text."""
    own = ("run_id", "ts", "latency_ms", "reused_from", "text_id")
    return [{k: v for k, v in row.items() if k not in own} for row in run.samples().to_pylist()]


def check_equal(run: Run, unbroken: Run) -> None:
    one, other = run.summary(), unbroken.summary()
    assert rows(run) == rows(unbroken)
    assert len(rows(run)) == 2 * ITEMS
    for name in ("status", "n_planned", "n_scored", "n_counted", "counts", "unparsed", "open",
                 "metrics", "usage", "cached"):  # fmt: skip
        assert getattr(one, name) == getattr(other, name), name


def samples(store: Store, run_id: str) -> list[SampleRecord]:
    return [r for r in read_records(store.journal(run_id)) if isinstance(r, SampleRecord)]


@pytest.fixture
def calls(monkeypatch) -> list[str]:
    """The items that mocks are asked in this process, without their delay."""
    seen: list[str] = []
    generate = Mock.generate

    def counted(self, requests):
        seen.extend(r.item_id for r in requests)
        self._faults.pop("delay", None)
        return generate(self, requests)

    monkeypatch.setattr(Mock, "generate", counted)
    return seen


def go_on(store: Store, run_id: str, calls: list[str], unbroken: Run) -> None:
    """Resume, then check numbers, rows and that exactly the missing attempts were asked."""
    before = samples(store, run_id)
    resume(store, run_id)
    after = samples(store, run_id)
    assert len(calls) == 2 * ITEMS - len(before)
    assert after[: len(before)] == before
    assert len({r.key for r in after}) == len(after) == 2 * ITEMS
    assert len({(r.item_id, r.epoch) for r in after}) == 2 * ITEMS
    check_equal(Run(run_id, store), unbroken)


# --- a real process, really killed ---

Working = Callable[[Path, int], tuple[subprocess.Popen, Store, str]]


@pytest.fixture
def working(root) -> Iterator[Working]:
    """Start `harness run` and wait until its journal has k lines; kill it at the end at the latest."""
    begun: list[subprocess.Popen] = []

    def begin(folder: Path, lines: int) -> tuple[subprocess.Popen, Store, str]:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "harness.cli.main", "run", "--task", "gsm8k",
             "--model", MODEL, "--data-root", str(root), "--batch-size", str(BATCH),
             "--epochs", "2", "--store", str(folder)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder.parent,
            # A shell's background jobs ignore Ctrl-C and pass that on.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        )  # fmt: skip
        begun.append(process)
        store = Store(folder)
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            for run_id in store.run_ids():
                journal = store.journal(run_id)
                if journal.exists() and journal.read_bytes().count(b"\n") >= lines:
                    assert process.poll() is None, "the run was over before it could be stopped"
                    return process, store, run_id
            assert process.poll() is None, process.communicate()
            time.sleep(0.003)
        raise AssertionError("no journal of that length in time")

    yield begin
    for process in begun:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("lines", [2, *Random(5).sample(range(20, 300), 3)])
def test_kill_9_loses_nothing_and_nothing_is_called_twice(
    working, tmp_path, calls, unbroken, lines
):
    process, store, run_id = working(tmp_path / "store", lines)
    process.kill()
    assert process.wait(SECONDS) == -signal.SIGKILL
    assert 0 < 2 * ITEMS - len(samples(store, run_id)) < 2 * ITEMS
    go_on(store, run_id, calls, unbroken)


def test_another_process_may_not_go_on_while_a_run_works(working, tmp_path):
    _, store, run_id = working(tmp_path / "store", 10)
    with pytest.raises(StoreError, match="is being written by another process"):
        resume(store, run_id)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_stopped_by_hand_keeps_what_is_done_and_says_how_to_go_on(
    working, tmp_path, calls, unbroken, capsys, name
):
    process, store, run_id = working(tmp_path / "my store", 40)
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 1
    assert out == ""
    assert "Traceback" not in err
    command = re.search(r"harness (resume .*)", err)[1]
    assert command == f"resume {run_id} --store '{store.root}'"
    assert err.count("\n") == 1
    # Every record is whole, and the store knows of them already.
    done = samples(store, run_id)
    assert len(done) >= 10
    summary = Run(run_id, store).summary()
    assert (summary.status, summary.open) == ("partial", 2 * ITEMS - len(done))
    assert main([*command.split()[:2], "--store", str(store.root)]) == 0
    capsys.readouterr()
    assert len(calls) == 2 * ITEMS - len(done)
    check_equal(Run(run_id, store), unbroken)


# --- journals cut at chosen places ---


def lay(lines: list[bytes], folder: Path, unbroken: Run) -> tuple[Store, str]:
    """Make a store that holds the beginning of a run only."""
    store = Store.open(folder)
    journal = store.journal(unbroken.run_id)
    journal.parent.mkdir()
    journal.write_bytes(b"".join(lines))
    return store, unbroken.run_id


@pytest.fixture
def lines(unbroken) -> list[bytes]:
    return [line + b"\n" for line in journal_lines(unbroken.store.journal(unbroken.run_id))]


@pytest.mark.parametrize("seed", range(4))
def test_a_torn_last_line_is_put_aside(lines, tmp_path, calls, unbroken, seed):
    rng = Random(seed)
    at = rng.randrange(1, len(lines))
    torn = lines[at][: rng.randrange(1, len(lines[at]))]
    store, run_id = lay([*lines[:at], torn], tmp_path / "s", unbroken)
    go_on(store, run_id, calls, unbroken)
    aside = [json.loads(x) for x in store.quarantine(run_id).read_text().splitlines()]
    assert [x["line"] for x in aside] == [torn.decode()]


def test_killed_before_the_plan_was_written(lines, tmp_path, unbroken, capsys):
    store, run_id = lay([lines[0][:100]], tmp_path / "s", unbroken)
    with pytest.raises(UsageError, match="ended before its plan was written"):
        resume(store, run_id)
    for command, code in ((["show", "run", run_id], 1), (["list", "runs"], 0)):
        assert main([*command, "--store", str(store.root)]) == code
        assert capsys.readouterr().err.count("\n") <= 1


def test_an_output_without_its_verdict_is_scored_without_a_call(lines, tmp_path, calls, unbroken):
    kinds = [type(decoder.decode(line)) for line in lines]
    at = max(i for i, kind in enumerate(kinds) if kind is SampleRecord)
    assert kinds[at + 1] is ScoreRecord
    store, run_id = lay(lines[: at + 1], tmp_path / "s", unbroken)
    go_on(store, run_id, calls, unbroken)
    assert calls == []
    event = next(r for r in read_records(store.journal(run_id)) if isinstance(r, EventRecord))
    assert event.data == {"missing": 0, "unscored": 1}


def test_before_the_missing_verdict_the_run_is_not_called_done(lines, tmp_path, unbroken):
    """All attempts are there and nothing failed, but one verdict is missing: partial."""
    at = max(i for i, x in enumerate(lines) if isinstance(decoder.decode(x), SampleRecord))
    store, run_id = lay(lines[: at + 1], tmp_path / "s", unbroken)
    assert main(["store", "sync", "--store", str(store.root)]) == 0
    summary = Run(run_id, store).summary()
    assert (summary.status, summary.counts["unscored"], summary.open) == ("partial", 1, 0)


def test_killed_at_the_very_end_calls_nothing(lines, tmp_path, calls, unbroken):
    assert isinstance(decoder.decode(lines[-1]), RunFinished)
    store, run_id = lay(lines[:-1], tmp_path / "s", unbroken)
    go_on(store, run_id, calls, unbroken)
    assert calls == []


def test_going_on_with_a_finished_run_changes_nothing(lines, tmp_path, calls, unbroken):
    store, run_id = lay(lines, tmp_path / "s", unbroken)
    go_on(store, run_id, calls, unbroken)
    go_on(store, run_id, calls, unbroken)
    assert calls == []


def test_stopped_twice(house):
    limit = 4

    def answer(request):
        if len(house.calls) > limit:
            raise KeyboardInterrupt
        return house.solve(request)

    house.batch_size = 1
    house.answer = answer
    with pytest.raises(HarnessError, match="stopped"):
        house.run()
    (run_id,) = house.store.run_ids()
    limit = 9
    with pytest.raises(HarnessError, match="stopped"):
        house.resume(run_id)
    limit = 99
    assert house.resume(run_id).status == "done"
    assert len(house.calls) == 12 + 2  # one in flight each time
    assert len(house.records(run_id)) == 12
    assert house.closed == 3


# --- no longer the same run ---


def test_changed_data_are_refused(lines, tmp_path, root, unbroken, capsys, calls):
    folder = tmp_path / "data"
    folder.mkdir()
    text = (root / "test.jsonl").read_text()
    (folder / "test.jsonl").write_text(text)
    moved = [line.replace(str(root).encode(), str(folder).encode()) for line in lines[:50]]
    store, run_id = lay(moved, tmp_path / "s", unbroken)
    assert started(store, run_id).config["data_root"] == str(folder)
    before = store.journal(run_id).read_bytes()
    for change in (
        lambda: text.replace("1007 plus 1007", "1007 plus 1008"),
        lambda: text.replace("#### 2014", "#### 2015"),
        lambda: text + text.splitlines()[0].replace("1000", "900") + "\n",
        lambda: "".join(text.splitlines(keepends=True)[:-1]),
    ):
        (folder / "test.jsonl").write_text(change())
        assert main(["resume", run_id, "--store", str(store.root)]) == 2
        err = capsys.readouterr().err
        assert "gsm8k or its data changed" in err
        assert err.count("\n") == 1
    assert store.journal(run_id).read_bytes() == before
    assert calls == []
    (folder / "test.jsonl").write_text(text)
    assert main(["resume", run_id, "--store", str(store.root)]) == 0


@pytest.mark.parametrize("what", ["prompt", "version", "model"])
def test_a_changed_task_or_model_is_refused(house, what):
    def answer(request):
        if len(house.calls) > 5:
            raise KeyboardInterrupt
        return house.solve(request)

    house.answer = answer
    with pytest.raises(HarnessError):
        house.run()
    (run_id,) = house.store.run_ids()
    if what == "prompt":
        house.prompt += "!"
    elif what == "version":
        house.version = "2"
    else:
        from harness.core import registry

        made = house.backend

        def other(spec, options):
            one = made(spec, options)
            one.identity = type(one.identity)(backend="count", name="a", revision="new weights")
            return one

        registry.backend("count")(other)
    before = len(house.calls)
    with pytest.raises(UsageError, match="cannot go on"):
        house.resume(run_id)
    assert len(house.calls) == before


@pytest.mark.parametrize("name", ["nothing", "2"])
def test_an_unknown_or_ambiguous_run(unbroken, tmp_path, lines, name, capsys):
    store, run_id = lay(lines[:3], tmp_path / "s", unbroken)
    other = store.journal(run_id[:-1] + ("0" if run_id[-1] != "0" else "1"))
    other.parent.mkdir()
    other.write_bytes(b"")
    assert main(["resume", name, "--store", str(store.root)]) == 2
    err = capsys.readouterr().err
    assert ("unknown run" if name == "nothing" else "is ambiguous") in err
    assert err.count("\n") == 1
