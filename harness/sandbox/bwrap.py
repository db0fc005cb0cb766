"""The command lines that put a program into its box, one list for each level."""

from __future__ import annotations

import functools
import math
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from harness.sandbox.levels import AUTOMATIC, Isolation
from harness.sandbox.limits import Limits

_OWN_PACKAGES = ("harness", "tasks", "scorers", "irt", "leaderboard")
_SYSTEM = "/usr/local/bin:/usr/bin:/bin"

# Runs inside, last before the program: tells the parent on descriptor 9 that everything before it
# worked ("r"), or that there is no such program ("n"). From then on what fails is the program's.
_ANNOUNCE = (
    'command -v -- "$1" >/dev/null 2>&1 || { printf n >&9; exit 127; }; printf r >&9; '
    'exec 9>&-; unset PWD OLDPWD SHLVL _; exec "$@"'
)


def environment(extra: Mapping[str, str], home: str = "/box") -> dict[str, str]:
    """Give the whole environment of a program; nothing comes from the harness's own.

    Parameters
    ----------
    extra : mapping
        What the caller adds.
    home : str
        The job folder as the program sees it.
    """
    python = [str(Path(prefix, "bin")) for prefix in interpreter() if prefix == sys.prefix]
    return {
        "PATH": ":".join([*python, _SYSTEM]),
        "HOME": home,
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
        **extra,
    }


@functools.cache
def interpreter() -> list[str]:
    """Give the folders of the running Python that lie outside ``/usr`` and can be read."""
    found = dict.fromkeys([sys.base_prefix, sys.prefix])
    return [p for p in found if not _below(p, "/usr") and os.access(p, os.R_OK | os.X_OK)]


@functools.cache
def hidden() -> list[str]:
    """Give what must not show though it lies in the interpreter's folders.

    An installed harness carries the answers of its own items, and its own folder of data may lie in
    the virtual environment.
    """
    shown = ["/usr", *interpreter()]
    places = {Path(entry) for entry in sys.path if any(_below(entry, folder) for folder in shown)}
    found = {Path(prefix, "data") for prefix in interpreter()}
    for place in places:
        found |= {place / name for name in _OWN_PACKAGES}
        found |= set(place.glob("bridge_harness-*.dist-info"))
    return sorted(str(path) for path in found if path.is_dir())


def bwrap_arguments(
    isolation: Isolation,
    limits: Limits,
    job: Path,
    mounts: Mapping[str, Path],
    env: Mapping[str, str],
    seccomp_fd: int | None,
) -> list[str]:
    """Give the arguments of bwrap up to ``--``, in the order in which it obeys them.

    Parameters
    ----------
    isolation : Isolation
        The level, whether there is a filter, and the network (``"none"`` takes it away).
    limits : Limits
        Sizes of the temporary folder and of shared memory.
    job : Path
        The host folder that becomes ``/box``.
    mounts : mapping
        Path in the box to path on the host, read-only.
    env : mapping
        The whole environment.
    seccomp_fd : int or None
        Descriptor of the filter.
    """
    size = str(limits.job_mib * 2**20)
    made = {"/"}  # folders that exist in the box so far
    arguments = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    arguments += ["--die-with-parent", "--cap-drop", "ALL"]
    if isolation.net == "none":
        arguments.append("--unshare-net")
    if isolation.userns:
        arguments += ["--unshare-user", "--uid", "65534", "--gid", "65534", "--disable-userns"]
    else:
        for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"):
            arguments += ["--cap-add", capability]
    arguments += _system()
    arguments += ["--proc", "/proc", "--dev", "/dev"]
    if isolation.userns:
        # Where root started it, the program's user is root outside, to whom the kernel's settings
        # below /proc/sys (core_pattern, say) are open.
        arguments += ["--remount-ro", "/proc"]
        # The program's user made /dev, a file system in memory that nothing else bounds.
        arguments += ["--remount-ro", "/dev"]
    arguments += ["--perms", "1777", "--size", size, "--tmpfs", "/tmp"]  # noqa: S108  the box's own
    arguments += ["--perms", "1777", "--size", size, "--tmpfs", "/dev/shm"]  # noqa: S108
    made |= {"/usr", "/etc", "/proc", "/dev", "/dev/shm", "/tmp"}  # noqa: S108
    for prefix in interpreter():
        arguments += [*_parents(prefix, made), "--ro-bind", prefix, prefix]
    for path in hidden():
        arguments += ["--perms", "0755", "--size", "4096", "--tmpfs", path, "--remount-ro", path]
    bound = {inside: str(outside.resolve()) for inside, outside in sorted(mounts.items())}
    for inside in (path for path in bound if not _below(path, "/box")):
        arguments += [*_parents(inside, made), "--ro-bind", bound[inside], inside]
    arguments += ["--bind", str(job), "/box", "--chdir", "/box", "--hostname", "box"]
    made |= {"/box"}
    for inside in (path for path in bound if _below(path, "/box")):
        arguments += [*_parents(inside, made), "--ro-bind", bound[inside], inside]
    arguments.append("--clearenv")
    for name, value in env.items():
        arguments += ["--setenv", name, value]
    arguments += ["--remount-ro", "/"]
    if seccomp_fd is not None:
        arguments += ["--seccomp", str(seccomp_fd)]
    return arguments


def inner_command(
    isolation: Isolation, limits: Limits, uid: int | None, command: Sequence[str]
) -> list[str]:
    """Give what runs inside: drop the user, set the limits, announce, become the program.

    Parameters
    ----------
    isolation : Isolation
        With a cgroup the address space is a backstop of four times the memory; without one it is
        the limit itself.
    limits : Limits
        The limits of each process.
    uid : int or None
        User and group to become; None keeps them.
    command : sequence of str
        The program with its arguments.
    """
    memory = limits.memory_mib * 2**20
    space = memory if isolation.cgroup == "none" else 4 * memory
    drop = []
    if uid is not None:
        drop = [
            "/usr/bin/setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups",
            "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs",
        ]  # fmt: skip
    if isolation.level in AUTOMATIC:
        # A session of the program alone. With --new-session bwrap's own inner process would be in it,
        # out of reach of a kill of the group that bwrap was started in.
        drop = ["/usr/bin/setsid", *drop]
    else:
        # After the change of user, which clears the signal that a parent's end sends.
        drop += with_parent()
    # A warning first, whose signal tells that it was the CPU limit; a second later the kernel kills.
    seconds = math.ceil(limits.cpu_s)
    limit = [
        "/usr/bin/prlimit", f"--as={space}", f"--cpu={seconds}:{seconds + 1}",
        f"--fsize={limits.file_mib * 2**20}", f"--nofile={limits.nofile}",
        f"--nproc={limits.pids}", "--core=0", "--memlock=0", "--msgqueue=0", "--",
    ]  # fmt: skip
    return [*drop, *limit, "/bin/sh", "-c", _ANNOUNCE, "sh", *command]


def with_parent() -> list[str]:
    """Give the command line that makes what follows die with its parent."""
    return ["/usr/bin/setpriv", "--pdeathsig", "KILL", "--"]


def _system() -> list[str]:
    """Show the host's programs and libraries, and of its settings only what they need to start."""
    arguments = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "lib", "lib32", "lib64", "libx32", "sbin"):
        path = Path("/", name)
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            arguments += ["--ro-bind", str(path), str(path)]
    arguments += ["--perms", "0755", "--dir", "/etc"]
    for name in ("ld.so.cache", "alternatives", "fonts"):
        arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return arguments


def _parents(inside: str, made: set[str]) -> list[str]:
    """Make the folders above a mount point; those that bwrap makes by itself nobody else can read."""
    arguments = []
    for folder in reversed(PurePosixPath(inside).parents):
        path = str(folder)
        # What lies below a read-only bind cannot be made, and is there already or never.
        if path in made or any(_below(path, bind) for bind in ("/usr", *interpreter())):
            continue
        arguments += ["--perms", "0755", "--dir", path]
        made.add(path)
    return arguments


def _below(path: str, folder: str) -> bool:
    return PurePosixPath(path).is_relative_to(folder)
