"""Level container, against a stand-in for docker that runs the program on this machine."""

import itertools
import json
import os
import shlex
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from harness.core.errors import UsageError
from harness.sandbox import LIMITS, SandboxUnavailable, container, daemon, levels, reach, run, slots

FAKE = Path(__file__).with_name("fake_docker.py")
SMALL = msgspec.structs.replace(LIMITS["function"], wall_s=20, output_kib=16)
NAMED = {
    "memory": "512m", "memory-swap": "512m", "pids-limit": "33", "shm-size": "16m", "cpus": "1",
    "tmpfs": "/tmp:size=16m,mode=1777,exec,nosuid,nodev", "network": "none", "cap-drop": "ALL",
    "security-opt": "no-new-privileges", "pull": "never", "workdir": "/box", "entrypoint": "",
    "ipc": "private", "log-driver": "none", "hostname": "box",
}  # fmt: skip


def forget():
    levels._attempt.cache_clear()
    daemon.find_client.cache_clear()
    daemon.podman_only.cache_clear()


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put the stand-in on PATH under a name, in front of what the machine has."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def go(name):
        state = tmp_path / name
        state.mkdir()
        (state / "image").write_text(daemon.IMAGE)
        words = shlex.join([sys.executable, "-I", "-S", str(FAKE), str(state)])
        (folder / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        (folder / name).chmod(0o755)
        return state

    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.delenv(daemon.IMAGE_VARIABLE, raising=False)
    forget()
    yield go
    forget()


@pytest.fixture
def docker(install):
    """The state of a docker that works; no container may be left in it, nor anything on the host."""
    state = install("docker")
    yield state
    assert not list(state.glob("*.json"))


def calls(state):
    return [json.loads(line) for line in (state / "calls").read_text().splitlines()]


def asked(state, verb):
    return [call["words"] for call in calls(state) if call["words"][0] == verb]


def go(command, **options):
    limits = msgspec.structs.replace(
        SMALL, **{k: options.pop(k) for k in list(options) if k in SMALL.__struct_fields__}
    )
    return run(command, limits=limits, level="container", **options)


def sh(line, **options):
    return go(["sh", "-c", line], **options)


def values(words, option):
    return [after for word, after in itertools.pairwise(words) if word == option]


@pytest.mark.usefixtures("nothing_left")
def test_every_limit_is_asked_for_and_no_secret_is_handed_on(docker, monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "planted-4711")
    monkeypatch.setenv("HTTPS_PROXY", "http://planted-4711")
    reach("container")
    result = sh("env", env={"GIVEN": "a b"})
    words = asked(docker, "run")[-1]
    options, inner = words[: words.index(daemon.IMAGE)], words[words.index(daemon.IMAGE) :]
    for name, value in NAMED.items():
        assert values(options, f"--{name}") == [value]
    assert sorted(values(options, "--ulimit")) == [
        "core=0", "cpu=8", "fsize=16777216", "memlock=0", "nofile=64",
    ]  # fmt: skip
    assert "--read-only" in options
    assert "--interactive" not in options
    assert values(options, "--user") == [f"{result.isolation.uid}:{result.isolation.uid}"]
    assert inner[1:4] == ["env", "-i", "--"]
    assert "planted-4711" not in (docker / "calls").read_text()
    # Neither the harness's nor the image's variables: the list of the specification alone.
    assert dict(line.split("=", 1) for line in result.stdout.text.splitlines()) | {"PWD": ""} == {
        "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/box", "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0",
        "GIVEN": "a b", "PWD": "",
    }  # fmt: skip


@pytest.mark.usefixtures("nothing_left")
def test_files_go_in_and_out(docker, tmp_path):
    (tmp_path / "data").mkdir()
    result = sh(
        "cat in/a.txt - > out.txt; echo said; echo wrong >&2; ln -s /etc/passwd link; exit 3",
        files={"in/a.txt": b"one "}, stdin=b"two", collect=["out.txt", "link", "no"],
        mounts={"/data": tmp_path / "data"},
    )  # fmt: skip
    assert (result.status, result.reason, result.exit_code) == ("error", "exit code 3", 3)
    assert (result.stdout.text, result.stderr.text) == ("said\n", "wrong\n")
    assert result.files == {"out.txt": b"one two"}
    assert result.refused == {"link": "a symlink", "no": "missing"}
    assert (result.cpu_s, result.peak_bytes, result.oom_kill) == (None, None, 0)
    words = asked(docker, "run")[-1]
    assert "--interactive" in words
    assert f"type=bind,source={tmp_path / 'data'},target=/data,readonly" in words


@pytest.mark.parametrize(
    ("line", "status", "reason"),
    [
        ("true", "ok", ""),
        ("kill -SEGV $$", "crash", "SIGSEGV"),
        ("kill -SYS $$", "denied", "forbidden system call"),
        ("kill -XFSZ $$", "error", "file size limit"),
        ("echo mine; exit 127", "error", "exit code 127"),
    ],
)
@pytest.mark.usefixtures("nothing_left", "docker")
def test_the_end_of_a_program(line, status, reason):
    result = sh(line)
    assert (result.status, result.reason) == (status, reason)
    assert result.isolation.level == "container"


@pytest.mark.usefixtures("docker")
def test_a_program_that_is_not_there():
    result = go(["no-such-program"])
    assert (result.status, result.reason) == ("error", "no such program")


@pytest.mark.usefixtures("nothing_left")
def test_the_wall_limit_kills_the_container_by_its_name(docker):
    reach("container")
    result = sh("echo before; sleep 1000", wall_s=1)
    assert (result.status, result.reason) == ("timeout", "1 s on the clock")
    assert (result.exit_code, result.signal) == (None, None)
    assert result.stdout.text == "before\n"
    assert result.wall_s < 10
    name = values(asked(docker, "run")[-1], "--name")[0]
    assert asked(docker, "kill") == [["kill", "--signal", "KILL", name]]
    # Its own clock outlasts the harness's, for a harness that is killed itself.
    words = asked(docker, "run")[-1]
    assert values(words, "KILL")[-1] == "11"


@pytest.mark.usefixtures("docker")
def test_a_kill_late_in_the_cpu_limit_is_for_cpu_time():
    result = sh("sleep 1; kill -KILL $$", cpu_s=1)
    assert (result.status, result.reason) == ("timeout", "1 CPU seconds")


def test_the_daemon_says_when_the_kernel_killed_for_memory(docker):
    reach("container")
    (docker / "oom").touch()
    result = sh("exit 0")  # a child was killed, the program itself ended well
    assert (result.status, result.oom_kill, result.exit_code) == ("memory", 1, 0)


@pytest.mark.usefixtures("nothing_left")
def test_output_is_kept_up_to_the_cap_and_a_flood_ends_the_program(docker):
    some = sh("head -c 100000 /dev/zero | tr '\\0' x")
    assert (some.status, some.stdout.bytes_total, some.stdout.bytes_cut) == (
        "ok", 100_000, 100_000 - 16 * 1024,
    )  # fmt: skip
    flood = sh("yes")
    assert (flood.status, flood.reason) == ("output_limit", "more than 256 KiB printed")
    assert len(asked(docker, "kill")) == 1


def test_a_container_that_does_not_start_is_the_harness_s_fault(docker):
    reach("container")
    (docker / "broken").touch()
    result = sh("true")
    assert result.status == "harness"
    assert result.reason == "docker: Error response from daemon: no space left on device"


def test_a_container_of_a_killed_harness_is_removed_first(docker):
    reach("container")
    first = f"{slots._CGROUP_PREFIX}0-{os.geteuid()}"
    (docker / f"{first}.json").write_text("{}")
    assert sh("true").status == "ok"
    assert values(asked(docker, "run")[-1], "--name") == [first]


@pytest.mark.usefixtures("nothing_left")
def test_several_at_once_have_names_and_folders_of_their_own(docker):
    reach("container")
    with ThreadPoolExecutor(3) as pool:
        jobs = [
            pool.submit(sh, f"echo {n} > r; sleep 0.3; cat r; test -e other", collect=["r"])
            for n in range(3)
        ]
        assert [job.result().files for job in jobs] == [{"r": f"{n}\n".encode()} for n in range(3)]
    names = [values(words, "--name")[0] for words in asked(docker, "run")[-3:]]
    assert len(set(names)) == 3


def test_no_client(tmp_path, monkeypatch):
    forget()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable, match="sudo apt-get install podman") as refusal:
        reach("container")
    assert "\n" not in str(refusal.value)
    forget()


def test_a_daemon_that_does_not_answer(install):
    (install("docker") / "down").touch()
    (install("podman") / "down").touch()
    with pytest.raises(SandboxUnavailable, match="Cannot connect to the Docker daemon") as refusal:
        go(["true"])
    assert "start it with: sudo systemctl start docker" in str(refusal.value)
    assert "podman info" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_podman_where_docker_does_not_answer(install):
    (install("docker") / "down").touch()
    podman = install("podman")
    assert go(["true"]).status == "ok"
    assert asked(podman, "run")


def test_the_image_must_be_there(docker, monkeypatch):
    monkeypatch.setenv(daemon.IMAGE_VARIABLE, "mine:1")
    with pytest.raises(SandboxUnavailable, match="get it with: docker pull mine:1") as refusal:
        reach("container")
    assert "\n" not in str(refusal.value)
    assert not asked(docker, "run")
    assert not asked(docker, "pull")
    forget()
    (docker / "image").write_text("mine:1")
    assert go(["true"]).status == "ok"


@pytest.mark.usefixtures("docker")
def test_what_cannot_be_asked_for(tmp_path, monkeypatch):
    comma = tmp_path / "a,readonly=false"
    comma.mkdir()
    result = go(["true"], mounts={"/data": comma})
    assert (result.status, "takes no comma" in result.reason) == ("error", True)
    with pytest.raises(SandboxUnavailable, match="no network"):
        go(["true"], network=object())
    monkeypatch.setenv(daemon.IMAGE_VARIABLE, "--privileged")
    forget()
    with pytest.raises(UsageError, match="is no image"):
        go(["true"])


def test_it_is_never_taken_by_itself():
    assert "container" not in levels.AUTOMATIC


def test_what_is_in_force_is_what_was_seen_inside(docker):
    plain = reach("container")
    memory = 512 * 2**20
    good = container._described(plain, f"Seccomp:\t2\nmemory.max {memory}\n", LIMITS["function"])
    assert (good.seccomp, good.cgroup) == (True, "v2")
    assert "a filter of system calls" not in good.missing
    v1 = f"Seccomp:\t2\nmemory/memory.limit_in_bytes {memory}\n"
    assert container._described(plain, v1, LIMITS["function"]).cgroup == "v1"
    bad = container._described(plain, "Seccomp:\t0\nmemory.max max\n", LIMITS["function"])
    assert (bad.seccomp, bad.cgroup) == (False, "none")
    assert {"a filter of system calls", "a limit of memory that can be seen to hold"} <= set(
        bad.missing
    )
