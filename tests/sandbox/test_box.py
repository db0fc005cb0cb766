"""Boxes: several programs in one, pipes, threads, forks, and an end that leaves nothing."""

import os
import threading

import pytest

from harness.core.errors import UsageError
from harness.sandbox import Box, SandboxUnavailable, reach

pytestmark = pytest.mark.usefixtures("nothing_left")


def finish(process):
    """Wait for the end and give what was printed."""
    out = process.stdout.read().decode()
    assert process.wait(20) == 0, process.stderr.read().decode()
    process.close()
    return out


def test_programs_share_the_folder_one_after_the_other(small, level):
    with Box(small, level=level, files={"in.txt": b"hello"}) as box:
        finish(box.start(["sh", "-c", "cat in.txt > out.txt"]))
        assert finish(box.start(["cat", "out.txt"])) == "hello"
        assert box.collect(["out.txt"]) == ({"out.txt": b"hello"}, {})


def test_a_folder_that_a_program_shut_does_not_hinder_the_next(small, level):
    with Box(small, level=level) as box:
        finish(box.start(["sh", "-c", "echo x > out; chmod 0 ."]))
        assert finish(box.start(["cat", "out"])) == "x\n"
        assert box.collect(["out"]) == ({"out": b"x\n"}, {})


def test_programs_share_the_folder_at_once(small, level):
    with Box(small, level=level) as box:
        first = box.start(["sh", "-c", "until [ -e go ]; do sleep 0.01; done; echo went"])
        finish(box.start(["sh", "-c", "touch go"]))
        assert finish(first) == "went\n"


def test_pipes_and_nothing_but_pipes(small, level):
    with Box(small, level=level) as box:
        process = box.start(["sh", "-c", "ls /proc/$$/fd; cat <&3 >&4"], pipes=True)
        os.write(process.request, b"a request\n")
        assert os.read(process.reply, 100) == b"a request\n"
        os.close(process.request)
        process.request = -1
        # dash itself opens none; ls is a child and does not show in its parent's table
        assert finish(process).split() == ["0", "1", "2", "3", "4"]


def test_without_pipes_only_the_three(small, level):
    with Box(small, level=level) as box:
        assert finish(box.start(["sh", "-c", "ls /proc/$$/fd"])).split() == ["0", "1", "2"]


def test_began_tells_the_boxs_faults_from_the_programs(small, level):
    with Box(small, level=level) as box:
        process = box.start(["sleep", "1000"])
        assert process.began() == "ready"
        assert process.began(0) == "ready"
        process.kill()
        assert box.start(["nosuchprogram"]).began(20) == "missing"


def test_a_box_outlives_the_thread_that_started_it(small, level):
    """The parent-death signal comes when a thread ends, not when a process does."""
    with Box(small, level=level) as box:
        started = []
        thread = threading.Thread(target=lambda: started.append(box.start(["cat"], stdin=True)))
        thread.start()
        thread.join()
        process = started[0]
        assert process.began() == "ready"
        process.stdin.write(b"still here")
        process.stdin.close()
        assert finish(process) == "still here"


def test_killing_is_final(small, level):
    with Box(small, level=level) as box:
        code = "trap '' TERM INT HUP; (setsid sleep 1000 &) ; sleep 1000"
        processes = [box.start(["sh", "-c", code]) for _ in range(3)]
        assert [process.began() for process in processes] == ["ready"] * 3
        box.kill()
        assert all(process.poll() not in (None, 0) for process in processes)
        assert finish(box.start(["echo", "alive"])) == "alive\n"


def test_closing_twice_and_using_a_closed_box(small, level):
    box = Box(small, level=level)
    box.start(["sleep", "1000"])
    box.close()
    box.close()
    with pytest.raises(SandboxUnavailable, match="closed"):
        box.start(["true"])
    assert box.collect(["a"]) == ({}, {"a": "the box is closed"})
    assert not box.full()
    box.kill()


def test_counters_stay_after_the_end(small, counted):
    with Box(small, level=counted) as box:
        finish(box.start(["sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"]))
        during = box.counters()
    assert box.counters().cpu_s >= during.cpu_s > 0
    assert box.counters().peak_bytes >= during.peak_bytes > 0


def test_each_box_has_a_user_of_its_own(small, counted):
    with Box(small, level=counted) as a, Box(small, level=counted) as b:
        seen = [int(finish(box.start(["id", "-u"]))) for box in (a, b)]
        assert seen == [a.isolation.uid, b.isolation.uid]
        assert len(set(seen)) == 2
        assert 0 not in seen


def test_a_fork_of_the_harness_does_not_end_its_boxes(small, level):
    with Box(small, level=level) as box:
        pid = os.fork()
        if pid == 0:
            box.close()
            os._exit(0)
        os.waitpid(pid, 0)
        assert finish(box.start(["echo", "alive"])) == "alive\n"


def test_a_fork_can_have_boxes_of_its_own(small, level):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            with Box(small, level=level) as box:
                code = int(finish(box.start(["echo", "alive"])) != "alive\n")
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0


def test_the_environment_is_the_callers_and_the_list(small, isolated):
    with Box(small, level=isolated, env={"LANG": "de", "X": "a=b c\n"}) as box:
        lines = finish(box.start(["env", "-0"])).split("\0")
        assert {"LANG=de", "X=a=b c\n", "HOME=/box"} <= set(lines)


@pytest.mark.parametrize("env", [{"": "x"}, {"A=B": "x"}, {"A": "\0"}])
def test_variables_that_cannot_be_set(small, level, env):
    with pytest.raises(UsageError, match="cannot be set"):
        Box(small, level=level, env=env)


def test_inputs_cannot_be_written(small, level):
    with Box(small, level=level, files={"d/in.txt": b"hello"}) as box:
        out = finish(
            box.start(["sh", "-c", "echo x > d/new; echo x 2>/dev/null > d/in.txt || cat d/in.txt"])
        )
        if level != "userns" and os.geteuid() == 0:
            assert out == "hello"


def test_levels_without_a_root_of_their_own_have_no_mounts(small, tmp_path):
    for level in ("unshare", "limits"):
        try:
            isolation = reach(level)
        except SandboxUnavailable:
            continue
        with pytest.raises(UsageError, match="no file system of its own"):
            Box(small, level=isolation, mounts={"/data": tmp_path})


def test_a_box_that_cannot_be_made_leaves_nothing(small, level):
    with pytest.raises((UsageError, SandboxUnavailable)):
        Box(small, level=level, files={"a": b"", "../b": b""})
