"""Level ``container``: docker or podman behind the same `run` call, asked for by name only.

The job folder is the box's own on the host, shown at ``/box``, so that files go in and come out as
they do everywhere else. How the program ended is asked of the daemon afterwards: the client's exit
code mixes the program's with its own. For that the container must outlive the program, so it is
removed by name here and not by ``--rm``; one that a killed harness left is removed by the next one.
"""

from __future__ import annotations

import contextlib
import math
import os
import platform
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from harness.core.errors import HarnessError, UsageError
from harness.sandbox import files as job_files
from harness.sandbox import slots
from harness.sandbox.box import Network
from harness.sandbox.bwrap import environment, with_parent
from harness.sandbox.cgroup import Counters
from harness.sandbox.checks import check_command, checked_env, checked_mounts
from harness.sandbox.daemon import (
    IMAGE_VARIABLE,
    ask,
    client_env,
    find_client,
    image_name,
    podman_only,
)
from harness.sandbox.errors import SandboxUnavailable
from harness.sandbox.levels import Isolation
from harness.sandbox.levels import reach as reach_level
from harness.sandbox.limits import LIMITS, Limits
from harness.sandbox.output import Clipped
from harness.sandbox.process import BoxProcess
from harness.sandbox.run import (
    Result,
    Status,
    Streams,
    code_and_signal,
    last_line,
    out_of_cpu,
    verdict_of,
    wait_for_end,
)
from harness.sandbox.spawn import spawn

_PATH = "/usr/local/bin:/usr/bin:/bin"
_GRACE_S = 10  # how much longer the container's own clock runs, in case the harness is killed
_PATIENCE_S = 5.0  # for the client to hand over what a killed program printed
_NEVER = "0001-01-01"  # how daemons write the start of what never started
_MISSING = 127  # the exit code of a shell for a program that is not there
_BEGIN = 'command -v -- "$1" >/dev/null 2>&1 || exit 127; unset PWD OLDPWD SHLVL _; exec "$@"'
# What is in force is looked up inside, because a daemon may quietly leave a limit out.
_LOOK = (
    "cat in.txt > out.txt; grep -e Seccomp: /proc/self/status; "
    "for f in memory.max memory/memory.limit_in_bytes; do "
    "test -r /sys/fs/cgroup/$f && echo $f $(cat /sys/fs/cgroup/$f); done; true"
)


class _State(msgspec.Struct, rename="pascal"):
    """The part of ``inspect`` that says how a container ended."""

    exit_code: int = 0
    running: bool = False
    oom_killed: bool = msgspec.field(name="OOMKilled", default=False)
    started_at: str = _NEVER
    error: str = ""


class _Ended(msgspec.Struct):
    stopped: tuple[Status, str] | None
    state: _State | None
    stdout: Clipped
    stderr: Clipped
    wall_s: float


class _Container(msgspec.Struct, frozen=True):
    client: str
    name: str
    limits: Limits

    def counters(self) -> Counters:
        """Nothing is counted while it runs."""
        return Counters()


def reach() -> Isolation:
    """Find docker or podman, and see by a program in it what is in force.

    Returns
    -------
    Isolation

    Raises
    ------
    SandboxUnavailable
        There is none, its daemon does not answer, the image is not here, or no container starts.
    UsageError
        The image's name cannot be one.
    """
    client, image = find_client(), image_name()
    name = Path(client).name
    if ask(client, "image", "inspect", "--format", "{{.Id}}", image)[0]:
        raise SandboxUnavailable(
            f"sandbox level container needs the image {image}: get it with: {name} pull {image} "
            f"(or name another in {IMAGE_VARIABLE})"
        )
    plain = Isolation(
        level="container", uid=os.geteuid(), userns=False, seccomp=False, cgroup="none",
        net="none", kernel=platform.release(), bwrap_version="",
    )  # fmt: skip
    limits = LIMITS["function"]
    trial = _run_in(
        plain, ["sh", "-c", _LOOK], limits=limits, files={"in.txt": b"seen"}, collect=["out.txt"]
    )
    if trial.status != "ok":
        raise SandboxUnavailable(
            f"sandbox level container does not start here: {trial.reason or trial.status}"
        )
    if trial.files != {"out.txt": b"seen"}:
        why = last_line(trial.stderr.text) or "the daemon runs elsewhere?"
        raise SandboxUnavailable(f"{name} does not show its containers our folders: {why}")
    return _described(plain, trial.stdout.text, limits)


def run(
    command: Sequence[str],
    *,
    limits: Limits,
    files: Mapping[str, bytes | Path] | None = None,
    mounts: Mapping[str, Path] | None = None,
    collect: Sequence[str] = (),
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    network: Network | None = None,
) -> Result:
    """Run a program in a container of its own and remove the container.

    Parameters
    ----------
    command, limits, files, mounts, collect, stdin, env
        As of `harness.sandbox.run`; the program is looked for in the image.
    network : None
        This level has none.

    Returns
    -------
    Result
        CPU seconds and peak memory are None, because nobody counts them.

    Raises
    ------
    SandboxUnavailable
        The level cannot be had, or a network was asked for.
    """
    if network is not None:
        raise SandboxUnavailable("sandbox level container has no network for a service")
    isolation = reach_level("container")
    try:
        return _run_in(
            isolation, command, limits=limits, files=files, mounts=mounts, collect=collect,
            stdin=stdin, env=env,
        )  # fmt: skip
    except SandboxUnavailable as error:
        return Result(status="harness", reason=str(error), isolation=isolation)
    except HarnessError as error:
        return Result(status="error", reason=str(error), isolation=isolation)


def arguments(
    name: str, limits: Limits, user: tuple[int, int], job: Path, mounts: Mapping[str, Path]
) -> list[str]:
    """Give the arguments of ``docker run`` up to the image; podman understands the same.

    Parameters
    ----------
    name : str
        Of the container.
    limits : Limits
        Memory, processes and temporary folders are the container's, the rest is each process's.
    user : tuple of int
        User and group of the program.
    job : Path
        The host folder that becomes ``/box``.
    mounts : mapping
        Path inside to path on the host, read-only.
    """
    words = [
        "run", "--pull", "never", "--name", name, "--entrypoint", "", "--network", "none",
        "--read-only", "--user", f"{user[0]}:{user[1]}", "--cap-drop", "ALL",
        "--security-opt", "no-new-privileges", "--ipc", "private", "--log-driver", "none",
        "--hostname", "box", "--workdir", "/box",
        "--tmpfs", f"/tmp:size={limits.job_mib}m,mode=1777,exec,nosuid,nodev",  # noqa: S108  its own
        "--shm-size", f"{limits.job_mib}m", "--cpus", "1",
        "--memory", f"{limits.memory_mib}m", "--memory-swap", f"{limits.memory_mib}m",
        "--pids-limit", str(limits.pids + 1),  # one is the container's own clock
        "--ulimit", f"cpu={math.ceil(limits.cpu_s)}",
        "--ulimit", f"fsize={limits.file_mib * 2**20}",
        "--ulimit", f"nofile={limits.nofile}", "--ulimit", "core=0", "--ulimit", "memlock=0",
        "--mount", f"type=bind,source={job},target=/box",
    ]  # fmt: skip
    for inside, outside in sorted(mounts.items()):
        words += ["--mount", f"type=bind,source={outside},target={inside},readonly"]
    return words


def _inside(limits: Limits, env: Mapping[str, str], command: Sequence[str]) -> list[str]:
    """Give what runs in the container: only our environment, a clock, then the program.

    The image's own variables go, too. The clock is process 1, which the program cannot kill; it
    ends the container when the harness was killed and nobody else can.
    """
    variables = {**environment({}), "PATH": _PATH, **env}
    clock = ["timeout", "-s", "KILL", str(math.ceil(limits.wall_s) + _GRACE_S)]
    words = [f"{name}={value}" for name, value in variables.items()]
    return ["env", "-i", "--", *words, *clock, "sh", "-c", _BEGIN, "sh", *command]


def _run_in(
    isolation: Isolation,
    command: Sequence[str],
    *,
    limits: Limits,
    files: Mapping[str, bytes | Path] | None = None,
    mounts: Mapping[str, Path] | None = None,
    collect: Sequence[str] = (),
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
) -> Result:
    check_command(command)
    shown = _plain_mounts(checked_mounts(mounts or {}, isolation))
    inner = _inside(limits, checked_env(env or {}), command)
    image = image_name()
    try:
        with _place(limits, files or {}) as (slot, user, job):
            # The slot is ours alone, so what has its name is of a harness that was killed. Users
            # count their slots each for themselves and may share a daemon.
            container = _Container(find_client(), f"{slot.cgroup_name}-{os.geteuid()}", limits)
            line = [
                container.client, *arguments(container.name, limits, user, slot.job, shown),
                *podman_only(container.client), *(["--interactive"] if stdin else []),
                image, *inner,
            ]  # fmt: skip
            _remove(container)
            try:
                ended = _watch(container, line, stdin)
            finally:
                _remove(container)
            # Only now, so that nothing changes the results while they are read.
            found, refused = job_files.collect(job, collect, limits.file_mib * 2**20)
    except OSError as error:
        raise SandboxUnavailable(f"the container cannot be made: {error}") from error
    isolation = msgspec.structs.replace(isolation, uid=user[0])
    return _result(isolation, limits, ended, found, refused)


@contextlib.contextmanager
def _place(
    limits: Limits, files: Mapping[str, bytes | Path]
) -> Iterator[tuple[slots.Slot, tuple[int, int], int]]:
    """Make the job folder; gives its slot, the user and group of the program, and a handle."""
    slot = slots.claim()
    job = -1
    try:
        root = os.geteuid() == 0
        user = (slot.uid, slot.uid) if root else (os.geteuid(), os.getegid())
        slot.job.mkdir(mode=0o755)
        if root:
            size = f"size={limits.job_mib}m,nr_inodes={limits.job_files}"
            slots.mount_tmpfs(slot.job, f"{size},mode=0755,uid={user[0]},gid={user[1]}")
        job = os.open(slot.job, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        job_files.put(job, files, user[0] if root else None)
        yield slot, user, job
    finally:
        if job >= 0:
            os.close(job)
        try:
            slot.clear()
        finally:
            slot.release()


def _watch(container: _Container, line: Sequence[str], stdin: bytes) -> _Ended:
    """Start the client, feed it, wait for the end or for a limit."""
    begin = time.monotonic()
    process = BoxProcess(
        spawn(
            [*with_parent(), *line], env=client_env(),
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
        ),
        -1, -1, -1, -1,
    )  # fmt: skip
    try:
        streams = Streams(process, container.limits.output_kib * 1024, stdin)
        try:
            stopped = wait_for_end(container, streams, begin + container.limits.wall_s)
            wall = time.monotonic() - begin
            if stopped:
                ask(container.client, "kill", "--signal", "KILL", container.name)
                _hand_over(streams)
            process.end()
            streams.drain()
        finally:
            streams.close()
    finally:
        process.close()
    out, err = streams.kept.values()
    return _Ended(stopped, _state(container), out.clipped(), err.clipped(), wall)


def _hand_over(streams: Streams) -> None:
    """Wait for what the client still holds of a killed program's output."""
    deadline = time.monotonic() + _PATIENCE_S
    while (left := deadline - time.monotonic()) > 0 and not streams.flooded():
        if streams.step(left):
            return


def _state(container: _Container) -> _State | None:
    """Ask how it ended; None when there is no such container."""
    code, said, _ = ask(
        container.client, "container", "inspect", "--format", "{{json .State}}", container.name
    )
    if code:
        return None
    try:
        return msgspec.json.decode(said, type=_State)
    except msgspec.MsgspecError as error:
        raise SandboxUnavailable(
            f"{container.client} inspect is not understood: {error}"
        ) from error


def _result(
    isolation: Isolation,
    limits: Limits,
    ended: _Ended,
    files: dict[str, bytes],
    refused: dict[str, str],
) -> Result:
    state = ended.state
    exit_code = number = None
    if ended.stopped:
        status, reason = ended.stopped
    elif state is None or state.started_at.startswith(_NEVER):
        said = (state.error if state else "") or ended.stderr.text
        status, reason = "harness", last_line(said) or "the container did not start"
    elif state.running:
        status, reason = "harness", last_line(ended.stderr.text) or "the client ended early"
    else:
        exit_code, number = code_and_signal(state.exit_code, isolation)
        silent = not ended.stdout.bytes_total and not ended.stderr.bytes_total
        began = "missing" if exit_code == _MISSING and silent else "ready"
        status, reason = verdict_of(exit_code, number, began)
        if spent := out_of_cpu(limits, number, None, ended.wall_s):
            status, reason = spent
    oom = state is not None and state.oom_killed
    if oom and status != "harness":
        status, reason = "memory", "killed for memory"
    return Result(
        status=status, reason=reason, exit_code=exit_code, signal=number, stdout=ended.stdout,
        stderr=ended.stderr, files=files, refused=refused, wall_s=ended.wall_s,
        oom_kill=int(oom), isolation=isolation,
    )  # fmt: skip


def _described(plain: Isolation, said: str, limits: Limits) -> Isolation:
    """Read what `_LOOK` printed inside."""
    found = dict(line.split(maxsplit=1) for line in said.splitlines() if len(line.split()) == 2)
    memory = str(limits.memory_mib * 2**20)
    files = {"memory.max": "v2", "memory/memory.limit_in_bytes": "v1"}
    cgroup = next((files[name] for name in files if found.get(name) == memory), "none")
    missing = ["counts of CPU seconds and of peak memory"]
    if found.get("Seccomp:") != "2":
        missing.append("a filter of system calls")
    if cgroup == "none":
        missing.append("a limit of memory that can be seen to hold")
    if os.geteuid() != 0:
        missing.append("a limit of the job folder's size (needs root)")
    return msgspec.structs.replace(
        plain, seccomp=found.get("Seccomp:") == "2", cgroup=cgroup, missing=tuple(missing)
    )


def _plain_mounts(mounts: Mapping[str, Path]) -> dict[str, Path]:
    """Give the mounts with host paths resolved; ``--mount`` is a line of comma-separated values."""
    resolved = {inside: outside.resolve() for inside, outside in mounts.items()}
    for path in (*resolved, *map(str, resolved.values())):
        if any(mark in path for mark in ',"\n\r'):
            raise UsageError(
                f"mount {path!r} of the sandbox: level container takes no comma, quote or new line"
            )
    return resolved


def _remove(container: _Container) -> None:
    ask(container.client, "rm", "--force", "--volumes", container.name)
