"""A box: the folder, user, cgroup and namespaces in which programs run, and their end."""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from harness.sandbox import files as job_files
from harness.sandbox import slots
from harness.sandbox.bwrap import bwrap_arguments, environment, inner_command, with_parent
from harness.sandbox.cgroup import Cgroup, Counters
from harness.sandbox.checks import check_command, checked_env, checked_mounts
from harness.sandbox.closing import Closing
from harness.sandbox.errors import SandboxUnavailable
from harness.sandbox.holder import Holder
from harness.sandbox.levels import AUTOMATIC, Isolation, program, reach
from harness.sandbox.limits import Limits
from harness.sandbox.process import BoxProcess
from harness.sandbox.seccomp import filter_bytes
from harness.sandbox.spawn import close_all, high, in_memory, pipe, spawn
from harness.sandbox.strays import kill_strays

_READY = 9  # the program's descriptor of `bwrap._ANNOUNCE`, gone before the program begins
_open_boxes: set[Box] = set()
_swept = threading.Lock()
_sweep_done = False


class Network(Protocol):
    """A network namespace that several boxes of one attempt share.

    At level ``userns`` it belongs to a user namespace of the same user, which `enter` enters first.
    """

    @property
    def enter(self) -> Sequence[str]:
        """The command line, with its closing ``--``, that runs what follows in the namespace."""


class Box(Closing):
    """A place for the programs of one attempt; `close` leaves nothing behind.

    Inside, ``/box`` is the working folder: a file system of its own in memory. Several programs may
    run in it, one after the other or at once; they share the folder, the user and the memory.

    Parameters
    ----------
    limits : Limits
        What all of them may use together, except CPU seconds, file size and descriptors, which
        count for each process.
    files : mapping
        Name below ``/box`` to content or host file; read-only inside.
    mounts : mapping
        Absolute path inside to host path; read-only. Never a folder with sockets or answers.
    level : str or Isolation
        See `reach`.
    env : mapping
        Added to the environment, which holds nothing of the harness's own.
    network : Network, optional
        Instead of no network at all.

    Raises
    ------
    SandboxUnavailable
        The level cannot be had, or the box cannot be made.
    UsageError
        A name or a path that no box can have.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        files: Mapping[str, bytes | Path] | None = None,
        mounts: Mapping[str, Path] | None = None,
        level: str | Isolation = "auto",
        env: Mapping[str, str] | None = None,
        network: Network | None = None,
    ) -> None:
        isolation = level if isinstance(level, Isolation) else reach(level)
        if isolation.level == "container":
            raise SandboxUnavailable("sandbox level container runs whole programs only: use run()")
        self.limits = limits
        self._mounts = checked_mounts(mounts or {}, isolation)
        self._env = checked_env(env or {})
        self._network = network
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._processes: list[BoxProcess] = []
        self._job = -1
        self._holder: Holder | None = None
        self._cgroup: Cgroup | None = None
        self._last = Counters()
        _sweep_once()
        self._closed = False
        self.isolation = isolation
        self._slot: slots.Slot | None = slots.claim(alone=isolation.level == "limits")
        _open_boxes.add(self)
        try:
            self.isolation = self._described(isolation)
            self._make(files or {})
        except OSError as error:
            self.close()
            raise SandboxUnavailable(f"the sandbox cannot be made: {error}") from error
        except BaseException:
            self.close()
            raise

    def start(
        self, command: Sequence[str], *, pipes: bool = False, stdin: bool = False
    ) -> BoxProcess:
        """Start a program.

        Parameters
        ----------
        command : sequence of str
            The program, by name or path inside, with its arguments.
        pipes : bool
            Give it a descriptor 3 to read requests from and a descriptor 4 to write replies to.
        stdin : bool
            Give it a pipe; otherwise its input is empty.

        Raises
        ------
        UsageError
            The command is empty or cannot be written as bytes.
        SandboxUnavailable
            The box is closed, or the machine cannot start a process.
        """
        check_command(command)
        with self._lock:
            if self._closed:
                raise SandboxUnavailable("the box is closed")
            # A program may have shut its folder; the next one's start must not fail for that.
            os.fchmod(self._job, 0o755)
            self._forget_ended()
            process = self._start(command, pipes=pipes, stdin=stdin)
            self._processes.append(process)
            return process

    def kill(self) -> None:
        """Kill whatever runs in it (SIGKILL only) and wait until it is gone."""
        with self._lock:
            for process in self._processes:
                process.end()
            if self._cgroup is not None:
                self._cgroup.kill()
            if self.isolation.level == "limits" and self._slot is not None:
                kill_strays(self._slot.uid, self._slot.job)

    def counters(self) -> Counters:
        """Read CPU seconds, peak memory and memory kills of the box; its last ones once closed."""
        with self._lock:
            if self._cgroup is not None:
                self._last = self._cgroup.counters()
            return self._last

    def collect(self, names: Sequence[str]) -> tuple[dict[str, bytes], dict[str, str]]:
        """Read results from ``/box`` by name.

        Parameters
        ----------
        names : sequence of str
            Relative names; nothing else is looked at.

        Returns
        -------
        files : dict
            Name to content, of plain files with one link and at most ``file_mib``.
        refused : dict
            Name to reason for the rest.
        """
        with self._lock:
            if self._job < 0:
                return {}, dict.fromkeys(names, "the box is closed")
            return job_files.collect(self._job, names, self.limits.file_mib * 2**20)

    def full(self) -> bool:
        """Tell whether the job folder has no room left, for bytes or for entries."""
        with self._lock:
            if self._job < 0:
                return False
            room = os.fstatvfs(self._job)
        return bool(room.f_blocks and (room.f_bavail == 0 or room.f_favail == 0))

    def close(self) -> None:
        """End everything and remove it; may be called more than once."""
        with self._lock:
            self._closed = True
            slot = self._slot
            # A fork of the harness holds copies of boxes that are not its own.
            if slot is None or os.getpid() != self._pid:
                return
            # Every step may be taken twice: one that was interrupted is taken again at exit.
            for process in self._processes:
                process.close()
            if self.isolation.level == "limits":
                kill_strays(slot.uid, slot.job)
            if self._cgroup is not None:
                self._cgroup.kill()
                self.counters()
                self._cgroup.remove()
                self._cgroup = None
            job, self._job = self._job, -1
            if job >= 0:
                os.close(job)
            if self._holder is not None:
                self._holder.close()
            slot.clear()
            slot.release()
            self._slot = None
            self._processes.clear()
            _open_boxes.discard(self)

    def _described(self, isolation: Isolation) -> Isolation:
        assert self._slot is not None
        changes: dict[str, object] = {}
        if self._drops_user(isolation):
            changes["uid"] = self._slot.uid
        if self._network is not None and isolation.net == "none":
            changes["net"] = "private"
        return msgspec.structs.replace(isolation, **changes)

    @staticmethod
    def _drops_user(isolation: Isolation) -> bool:
        return os.geteuid() == 0 and not isolation.userns

    def _make(self, files: Mapping[str, bytes | Path]) -> None:
        assert self._slot is not None
        slot, level = self._slot, self.isolation.level
        owner = slot.uid if self._drops_user(self.isolation) else None
        slot.job.mkdir(mode=0o755)
        if level == "limits":
            slot.folder.chmod(0o711)
        options = f"size={self.limits.job_mib}m,nr_inodes={self.limits.job_files},mode=0755"
        if owner is not None:
            slots.mount_tmpfs(slot.job, f"{options},uid={owner},gid={owner}")
        if self.isolation.userns:
            entry = self._network.enter if self._network is not None else None
            self._holder = Holder(slot.job, options, entry)
        path = self._holder.seen(slot.job) if self._holder else slot.job
        self._job = high(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        job_files.put(self._job, files, owner)
        if self.isolation.cgroup != "none":
            self._cgroup = Cgroup(slot.cgroup_name)
            self._cgroup.make(self.limits)

    def _start(self, command: Sequence[str], *, pipes: bool, stdin: bool) -> BoxProcess:
        opened: list[int] = []  # the program's ends, closed here once it has them
        ours: list[int] = []
        try:
            ready, ready_in = pipe()
            ours.append(ready)
            opened.append(ready_in)
            moves = {_READY: ready_in}
            request = reply = -1
            if pipes:
                request_in, request = pipe()
                reply, reply_in = pipe()
                ours += [request, reply]
                opened += [request_in, reply_in]
                moves |= {3: request_in, 4: reply_in}
            info = -1
            if self.isolation.level in AUTOMATIC:
                info, info_in = pipe()
                ours.append(info)
                opened.append(info_in)
                line, keep = self._bwrap_line(command, info_in, opened)
                folder = None
            else:
                line, keep, folder = self._plain_line(command), [], self._job
            popen = spawn(
                line,
                descriptors=moves,
                keep=keep,
                folder=folder,
                entrances=[str(path) for path in self._cgroup.entrances()] if self._cgroup else [],
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                env=None if self.isolation.level in AUTOMATIC else self._environment(),
            )
        except BaseException:
            close_all(*ours)
            raise
        finally:
            close_all(*opened)
        return BoxProcess(popen, ready, info, request, reply)

    def _environment(self) -> dict[str, str]:
        assert self._slot is not None
        homes = {"unshare": "/tmp", "limits": str(self._slot.job)}  # noqa: S108  a mount of its own
        return environment(self._env, homes.get(self.isolation.level, "/box"))

    def _plain_line(self, command: Sequence[str]) -> list[str]:
        """Give the command line of the levels without bubblewrap."""
        inner = self._inner(command)
        if self.isolation.level == "limits":
            return inner
        return [*self._enter(), *with_parent(), *_unshare(self.isolation), *inner]

    def _bwrap_line(
        self, command: Sequence[str], info: int, opened: list[int]
    ) -> tuple[list[str], list[int]]:
        """Give the command line, and the descriptors that it names; those made here go to `opened`."""
        assert self._slot is not None
        seccomp = None
        if self.isolation.seccomp and (program_of_filter := filter_bytes()) is not None:
            opened.append(seccomp := in_memory(program_of_filter))
        arguments = bwrap_arguments(
            self.isolation, self.limits, self._slot.job, self._mounts, self._environment(), seccomp
        )
        arguments += ["--info-fd", str(info)]
        opened.append(words := in_memory(b"".join(os.fsencode(w) + b"\0" for w in arguments)))
        line = [*self._enter(), program("bwrap"), "--args", str(words), "--", *self._inner(command)]
        return line, [fd for fd in (seccomp, words, info) if fd is not None]

    def _inner(self, command: Sequence[str]) -> list[str]:
        assert self._slot is not None
        uid = self._slot.uid if self._drops_user(self.isolation) else None
        return inner_command(self.isolation, self.limits, uid, command)

    def _enter(self) -> list[str]:
        if self._holder is not None:
            return self._holder.enter()
        return list(self._network.enter) if self._network is not None else []

    def _forget_ended(self) -> None:
        """Close what has ended and was closed by its user, so that a long trajectory does not pile up."""
        self._processes = [process for process in self._processes if not process.closed]


def _unshare(isolation: Isolation) -> list[str]:
    """Give the command line of level ``unshare``: the job folder stands in for ``/tmp``."""
    network = ["--net"] if isolation.net == "none" else []
    # The shell stays as process 1, which the kernel shields from most signals; a program is not.
    show = 'mount --bind . /tmp && cd /tmp || exit 1; "$@"; exit $?'
    return [
        program("unshare"), "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc",
        "--ipc", "--uts", *network, "--", "/bin/sh", "-c", show, "sh",
    ]  # fmt: skip


def _sweep_once() -> None:
    """Clear away, once a process, what killed harness processes have left."""
    global _sweep_done  # noqa: PLW0603  once a process
    with _swept:
        if not _sweep_done:
            slots.sweep()
            _sweep_done = True


os.register_at_fork(after_in_child=_open_boxes.clear)


@atexit.register
def _close_all() -> None:
    for box in list(_open_boxes):
        with contextlib.suppress(OSError):
            box.close()
