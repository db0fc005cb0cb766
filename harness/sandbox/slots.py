"""Numbered places for boxes, claimed across processes by a lock file each.

A slot gives a box its own uid, because the kernel counts processes per uid, and a folder. The lock
goes when its process dies, however that happens, so whoever claims a slot next knows that what lies
there is a dead box's and clears it away.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import os
import stat
import subprocess
from pathlib import Path

from harness.sandbox import cgroup
from harness.sandbox.errors import SandboxUnavailable
from harness.sandbox.strays import has_processes, kill_strays

FIRST_UID = 200_000
_SLOTS = 2000
_CGROUP_PREFIX = "bridge-harness-"
_MS_NOSUID, _MS_NODEV, _MNT_DETACH = 2, 4, 2


class Slot:
    """A claimed place: `number`, `uid`, and a `folder` that only this user can enter."""

    def __init__(self, number: int, lock: int) -> None:
        self.number = number
        self.uid = FIRST_UID + number
        self.folder = _state() / str(number)
        self.cgroup_name = f"{_CGROUP_PREFIX}{number}"
        self._lock = lock

    @property
    def job(self) -> Path:
        """The folder that becomes ``/box``, on the host."""
        return self.folder / "job"

    def clear(self) -> bool:
        """Remove processes, mount, folder and cgroup of this slot; tell whether nothing is left."""
        gone = cgroup.Cgroup(self.cgroup_name).remove() if cgroup.parents().folders else True
        if not self.folder.exists():
            return gone
        while is_mount(self.job):
            unmount(self.job)
        _remove_tree(self.folder)
        return gone and not self.folder.exists()

    def bury(self) -> bool:
        """Do what `clear` does for a box whose harness is dead; at level ``limits`` some may live."""
        if self.folder.exists():
            kill_strays(self.uid, self.job)
        return self.clear()

    def release(self) -> None:
        """Give the number back."""
        lock, self._lock = self._lock, -1
        if lock >= 0:
            os.close(lock)


def claim(*, alone: bool = False) -> Slot:
    """Claim the lowest free slot and clear what a dead box left there.

    Parameters
    ----------
    alone : bool
        Pass by slots whose user has processes, ended ones that nobody has buried included: the
        kernel counts them, too, against the limit of the next box.

    Raises
    ------
    SandboxUnavailable
        When all are taken.
    """
    for number in range(_SLOTS):
        if (slot := _try(number)) is None:
            continue
        try:
            # What cannot be cleared stays claimed for as long as this process lives: never shared.
            if not slot.bury():
                continue
            if not (alone and has_processes(slot.uid)):
                slot.folder.mkdir(mode=0o700)
                return slot
        except BaseException:
            slot.release()
            raise
        slot.release()
    raise SandboxUnavailable(
        f"all {_SLOTS} sandbox slots are taken: close boxes or other runs first"
    )


def sweep() -> int:
    """Clear what harness processes that are dead have left; give the number of slots cleared."""
    numbers = {int(path.name) for path in _state().iterdir() if path.name.isdigit()}
    numbers |= {int(name.rpartition("-")[2]) for name in cgroup.leftovers(f"{_CGROUP_PREFIX}[0-9]")
                if name.rpartition("-")[2].isdigit()}  # fmt: skip
    cleared = 0
    for number in sorted(numbers):
        if (slot := _try(number)) is not None:
            slot.bury()
            slot.release()
            cleared += 1
    return cleared


def mount_tmpfs(folder: Path, options: str) -> None:
    """Mount a tmpfs; `options` as of mount(8).

    Raises
    ------
    OSError
        When the kernel refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    flags = ctypes.c_ulong(_MS_NOSUID | _MS_NODEV)
    if libc.mount(b"none", os.fsencode(folder), b"tmpfs", flags, options.encode()):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(folder))


def unmount(folder: Path) -> None:
    """Take a mount away at once, in use or not."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.umount2(os.fsencode(folder), _MNT_DETACH):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(folder))


def is_mount(folder: Path) -> bool:
    """Tell whether something is mounted on `folder`."""
    try:
        return folder.stat().st_dev != folder.parent.stat().st_dev
    except OSError:
        return False


def _try(number: int) -> Slot | None:
    handle = os.open(
        _state() / f"{number}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
    )
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return Slot(number, handle)


@functools.cache
def _state() -> Path:
    """Give the folder of all slots of this user: the same for every process, whatever its environment."""
    uid = os.geteuid()
    places = [Path(f"/tmp/bridge-harness-{uid}/sandbox")]  # noqa: S108  owner and mode are checked
    if uid == 0:
        places.insert(0, Path("/run/bridge-harness/sandbox"))
    for place in places:
        with contextlib.suppress(OSError):
            place.parent.mkdir(mode=0o711, exist_ok=True)
            place.mkdir(mode=0o711, exist_ok=True)
            if all(_private(folder, uid) for folder in (place.parent, place)):
                return place
    raise SandboxUnavailable(
        f"no private folder for the sandbox: {places[-1].parent} must be writable, yours and of mode 0711"
    )


def _private(folder: Path, uid: int) -> bool:
    info = folder.lstat()
    return stat.S_ISDIR(info.st_mode) and info.st_uid == uid and not info.st_mode & 0o066


def _remove_tree(folder: Path) -> None:
    # rm, because a program may have nested folders deeper than Python can recurse.
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        (folder / "job").rmdir()
        folder.rmdir()
    except OSError:
        subprocess.run(["chmod", "-R", "u+rwx", "--", str(folder)], check=False, **quiet)  # type: ignore[call-overload]
        subprocess.run(["rm", "-rf", "--one-file-system", "--", str(folder)], check=False, **quiet)  # type: ignore[call-overload]
