"""The generic tools, over a worker that answers as the sandbox's does but runs nothing."""

from types import SimpleNamespace

import pytest

import harness.sandbox
from harness.core.types import Tool, ToolCall
from harness.sandbox import Isolation, SandboxUnavailable
from harness.solvers import tools
from harness.solvers.tools import Workbench, checked

HERE = Isolation(
    level="full", uid=200000, userns=False, seccomp=True, cgroup="v2", net="none", kernel="6",
    bwrap_version="0.8.0",
)  # fmt: skip


def stream(text=""):
    return SimpleNamespace(text=text, raw=text.encode(), bytes_total=len(text), bytes_cut=0)


def reply(status="ok", value=None, stdout="", stderr="", error=None, plots=(), reason=None):
    return SimpleNamespace(
        status=status, value=value, stdout=stream(stdout), stderr=stream(stderr), error=error,
        plots=plots, wall_s=0.1, reason=reason,
    )  # fmt: skip


class Box:
    """Every worker that was started, and what the next calls give back."""

    def __init__(self) -> None:
        self.workers: list[SimpleNamespace] = []
        self.replies: list = []
        self.ran: list[tuple[str, float]] = []

    def worker(self, limits, **how):
        made = SimpleNamespace(limits=limits, how=how, alive=True, closed=0)

        def execute(code, wall_s=None):
            self.ran.append((code, wall_s))
            given = self.replies.pop(0) if self.replies else reply()
            made.alive = given.status in ("ok", "error")
            return given

        def close():
            made.closed += 1

        made.execute, made.close = execute, close
        self.workers.append(made)
        return made


@pytest.fixture
def box(monkeypatch):
    made = Box()
    monkeypatch.setattr("harness.sandbox.worker.Worker", made.worker)
    monkeypatch.setattr(harness.sandbox, "reach", lambda level: HERE)
    return made


def call(name, **arguments):
    return ToolCall("c", name, arguments)


def test_one_worker_for_all_calls_and_none_left(box):
    with Workbench(level="userns", files={"a.csv": b"1"}, preload=("math",)) as bench:
        assert box.workers == []  # started by the first call that needs it
        for _ in range(3):
            bench.call(call("python", code="1"), 5.0)
        (worker,) = box.workers
        assert worker.how == {
            "mounts": {}, "files": {"a.csv": b"1"}, "preload": ("math",), "level": "userns",
            "network": None,
        }  # fmt: skip
        assert worker.limits == harness.sandbox.LIMITS["cell"]
    assert worker.closed == 1


def test_the_wall_is_the_smaller_of_the_two(box):
    with Workbench() as bench:
        bench.call(call("python", code="1"), 5.0)
        bench.call(call("python", code="1"), 500.0)
    assert [wall for _, wall in box.ran] == [5.0, 60.0]  # 60: of one cell, specification


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (reply(stdout="4\n"), "4\n"),
        (reply(value="4"), "4\n"),
        (reply(stdout="a\n", value="4"), "a\n[value]\n4\n"),
        (reply(stdout="a", stderr="warn"), "a\n[stderr]\nwarn\n"),
        (reply(), "[no output]\n"),
        (reply(plots=(b"", b"")), "[2 plots, which cannot be shown]\n"),
        (
            reply("error", error=SimpleNamespace(name="KeyError", message="'x'", trace="line 1")),
            "[error]\nline 1\n",
        ),
        (
            reply("error", error=SimpleNamespace(name="KeyError", message="'x'", trace="")),
            "[error]\nKeyError: 'x'\n",
        ),
        (reply("timeout", stdout="a\n"), "a\n[The time limit was reached.]\n"),
        (reply("memory", reason="oom_kill"), "[no output]\n[Ended: oom_kill.]\n"),
    ],
)
def test_what_the_model_is_shown(box, given, text):
    box.replies = [given]
    with Workbench() as bench:
        result = bench.call(call("python", code="…"), 9.0)
    assert (result.text, result.status) == (text, given.status)
    assert result.isolation["level"] == "full"
    assert result.submitted is None


def test_after_a_kill_the_next_observation_says_what_is_lost(box):
    box.replies = [reply("timeout"), reply(stdout="new\n"), reply(stdout="same\n")]
    with Workbench() as bench:
        texts = [bench.call(call("python", code="…"), 9.0).text for _ in range(3)]
    assert [text.startswith("[The earlier process is gone") for text in texts] == [
        False,
        True,
        False,
    ]
    assert [worker.closed for worker in box.workers] == [1, 1]


def test_a_killed_bench_starts_nothing_any_more(box):
    with Workbench() as bench:
        bench.call(call("python", code="1"), 9.0)
        bench.kill()
        assert box.workers[0].closed == 1
        assert bench.call(call("python", code="1"), 9.0).status == "harness"
    assert len(box.workers) == 1


def test_a_submission_needs_no_box(box):
    with Workbench() as bench:
        assert bench.call(call("submit", answer="42"), 9.0).submitted == "42"
    assert box.workers == []


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", "", "."])
def test_files_stay_in_the_working_folder(box, path):
    with Workbench() as bench:
        result = bench.call(call("create_file", path=path, content="x"), 9.0)
    assert (result.status, box.ran) == ("denied", [])


def test_a_file_is_written_as_it_is(box, tmp_path, monkeypatch):
    content = "ünï\r\n'''\\ \"quoted\" {braces}\n"
    with Workbench() as bench:
        assert bench.call(call("create_file", path="a/b.txt", content=content), 9.0).text == (
            "a/b.txt is written."
        )
    monkeypatch.chdir(tmp_path)
    scope: dict = {}
    assert eval(box.ran[0][0], scope) == len(content)
    assert set(scope) == {"__builtins__"}  # the model's names are left alone
    assert (tmp_path / "a/b.txt").read_bytes() == content.encode()


def test_a_shell_line_gives_output_and_exit_code(box, capfd):
    box.replies = [reply(stdout="hi\n", value="3")]
    with Workbench() as bench:
        result = bench.call(call("bash", command="echo 'it'\"'\"'s'; echo e >&2; exit 3"), 9.0)
    assert result.text == "hi\n[exit code 3]\n"
    assert eval(box.ran[0][0], {}) == 3
    assert capfd.readouterr() == ("it's\n", "e\n")


def test_a_slow_shell_line_ends_before_its_box(box):
    box.replies = [reply(value="'timeout'")]
    with Workbench() as bench:
        result = bench.call(call("bash", command="sleep 60 & sleep 60"), 0.2)
        again = bench.call(call("bash", command="true"), 9.0)
    assert (result.status, "time limit" in result.text) == ("timeout", True)
    assert "earlier process" not in again.text
    assert eval(box.ran[0][0], {}) == "timeout"  # within 0.1 s, children and all


def test_without_isolation_nothing_is_entered(monkeypatch):
    def reach(level):
        raise SandboxUnavailable("no sandbox; install it with: sudo apt-get install bubblewrap")

    monkeypatch.setattr(harness.sandbox, "reach", reach)
    with pytest.raises(SandboxUnavailable, match="apt-get"), Workbench():
        pass


TYPED = Tool(
    "t", "", {"properties": {"n": {"type": "integer"}, "x": {"type": "number"}, "b": {"type": "boolean"},
                             "s": {"type": "string"}, "any": {}}, "required": ["n"]},
)  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"n": "3"}, {"n": 3}),
        ({"n": 3, "x": "2.5", "b": "true"}, {"n": 3, "x": 2.5, "b": True}),
        ({"n": 3, "s": {"a": 1}, "any": [1]}, {"n": 3, "s": '{"a":1}', "any": [1]}),
        ({"n": "three"}, "must be a integer"),
        ({}, "needs the argument 'n'"),
        ({"n": 1, "m": 2}, "no argument 'm'"),
    ],
)
def test_arguments_are_checked_and_read(arguments, expected):
    made = checked(ToolCall("c", "t", arguments), TYPED, {"t": TYPED})
    if isinstance(expected, dict):
        assert made.arguments == expected
    else:
        assert expected in made.text


def test_every_tool_is_offered_by_its_own_name():
    assert {name: tool.name for name, tool in tools.TOOLS.items()} == {
        name: name for name in ("python", "bash", "create_file", "submit")
    }
