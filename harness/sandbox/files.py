"""Putting files into a job folder and taking results out, by folder handle and without trust."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from harness.core.errors import UsageError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Non-blocking: opening a FIFO must not wait for its other end.
_RESULT = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def put(folder: int, files: Mapping[str, bytes | Path], owner: int | None) -> None:
    """Write files below a folder, readable and executable for everyone, writable for nobody.

    Parameters
    ----------
    folder : int
        Handle of the job folder.
    files : mapping
        Relative name to content, or to a file of the host which is copied.
    owner : int or None
        Owner of the folders that are made on the way; None keeps the caller.

    Raises
    ------
    UsageError
        A name that is not a plain relative path, or a source that cannot be read.
    OSError
        The files do not fit into the job folder.
    """
    for name, content in files.items():
        if why := odd(name):
            raise UsageError(
                f"file name {name!r} for the sandbox {why}: give a plain relative path"
            )
        if isinstance(content, Path):
            try:
                content = content.read_bytes()  # noqa: PLW2901  bytes from here on
            except OSError as error:
                raise UsageError(f"file {name!r} for the sandbox: {error}") from error
        try:
            _put_one(folder, PurePosixPath(name), content, owner)
        except (FileExistsError, NotADirectoryError) as error:
            raise UsageError(f"file name {name!r} for the sandbox is taken by another") from error


def collect(folder: int, names: Sequence[str], cap: int) -> tuple[dict[str, bytes], dict[str, str]]:
    """Read results by name; what is not a plain file is named with the reason.

    Parameters
    ----------
    folder : int
        Handle of the job folder.
    names : sequence of str
        Relative names.
    cap : int
        Bytes of one file at most.

    Returns
    -------
    files : dict
        Name to content.
    refused : dict
        Name to reason, in a few words; a file that is not there is ``"missing"``.
    """
    files: dict[str, bytes] = {}
    refused: dict[str, str] = {}
    for name in names:
        if why := odd(name):
            refused[name] = why
            continue
        try:
            files[name] = _read(folder, PurePosixPath(name), cap)
        except FileNotFoundError:
            refused[name] = "missing"
        except _RefusedError as error:
            refused[name] = str(error)
        except OSError as error:
            refused[name] = _reason(folder, PurePosixPath(name), error)
    return files, refused


def odd(name: str) -> str:
    """Say what is wrong with a file name, or give an empty text.

    Examples
    --------
    >>> odd("out/a.csv"), odd("../a"), odd("/etc/passwd")
    ('', 'leaves the folder', 'is absolute')
    """
    if not name or name in (".", "/"):
        return "is empty"
    if "\0" in name:
        return "holds a NUL byte"
    if name.startswith("/"):
        return "is absolute"
    if ".." in name.split("/"):
        return "leaves the folder"
    try:
        parts = [os.fsencode(part) for part in name.split("/")]
    except UnicodeEncodeError:
        return "cannot be written as bytes"
    if max(map(len, parts)) > 255 or sum(map(len, parts)) + len(parts) > 4096:
        return "is too long"
    return "ends in a slash" if name.endswith("/") else ""


class _RefusedError(Exception):
    pass


def _put_one(folder: int, name: PurePosixPath, content: bytes, owner: int | None) -> None:
    with _walk(folder, name.parts[:-1], make_for=(owner,)) as parent:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(name.name, flags, 0o555, dir_fd=parent)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        os.fchmod(handle, 0o555)  # whatever the umask


@contextlib.contextmanager
def _walk(
    folder: int, parts: Sequence[str], make_for: tuple[int | None] | None = None
) -> Iterator[int]:
    """Open the folder below `folder`, one step at a time, through no symlink."""
    at = os.dup(folder)
    try:
        for part in parts:
            if make_for is not None:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=at)
                    if make_for[0] is not None:
                        os.chown(part, make_for[0], make_for[0], dir_fd=at)
            below = os.open(part, _FOLDER, dir_fd=at)
            os.close(at)
            at = below
        yield at
    finally:
        os.close(at)


def _read(folder: int, name: PurePosixPath, cap: int) -> bytes:
    with _walk(folder, name.parts[:-1]) as parent:
        handle = os.open(name.name, _RESULT, dir_fd=parent)
    try:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode):
            raise _RefusedError(_kind(info.st_mode))
        if info.st_nlink != 1:
            raise _RefusedError("has several links")
        if info.st_size > cap:
            raise _RefusedError(f"{info.st_size} bytes, {cap} at most")
        # It may still be growing: its size a moment ago is no promise.
        content = bytearray()
        while len(content) <= cap and (
            part := os.read(handle, min(1 << 20, cap + 1 - len(content)))
        ):
            content += part
    finally:
        os.close(handle)
    if len(content) > cap:
        raise _RefusedError(f"more than {cap} bytes")
    return bytes(content)


def _reason(folder: int, name: PurePosixPath, error: OSError) -> str:
    try:
        with _walk(folder, name.parts[:-1]) as parent:
            mode = os.stat(name.name, dir_fd=parent, follow_symlinks=False).st_mode
    except OSError:
        return error.strerror or "cannot be opened"
    return (error.strerror or "cannot be opened") if stat.S_ISREG(mode) else _kind(mode)


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFLNK: "a symlink", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a FIFO",
        stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
    }  # fmt: skip
    return kinds.get(stat.S_IFMT(mode), "not a plain file")
