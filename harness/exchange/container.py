"""The container of a submission: a zip of four members, stored as they are.

Nothing is compressed at this level (the Parquet inside is), so the bytes depend on the content alone and
a small file cannot unfold into a large one. Members are read by name into memory; nothing is unpacked to
a path that the file names.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path

from harness.core.errors import UsageError
from harness.exchange.rejected import Reasons

MANIFEST, SAMPLES, SCORES, EVENTS = (
    "manifest.json", "samples.parquet", "scores.parquet", "events.parquet",
)  # fmt: skip
MEMBERS = (MANIFEST, SAMPLES, SCORES, EVENTS)
MEMBER_BYTES = 1 << 30
_EPOCH = (1980, 1, 1, 0, 0, 0)
_AGAIN = "ask the sender to write it anew with `harness export submission`"


def write_container(path: Path, members: Mapping[str, bytes]) -> None:
    """Write a submission's file whole or not at all; the same members give the same bytes.

    Parameters
    ----------
    path : Path
    members : mapping of str to bytes
        By name; all of `MEMBERS`.
    """
    new = path.with_name(path.name + ".tmp")
    try:
        with zipfile.ZipFile(new, "w", zipfile.ZIP_STORED) as file:
            for name in MEMBERS:
                info = zipfile.ZipInfo(name, _EPOCH)
                info.create_system = 3  # the same on every machine
                info.external_attr = 0o644 << 16
                file.writestr(info, members[name])
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def read_container(path: Path) -> tuple[dict[str, bytes], str]:
    """Read the members of a submission after looking at what the container says of them.

    Returns
    -------
    members : dict of str to bytes
    sha256 : str
        Of the whole file.

    Raises
    ------
    UsageError
        The file cannot be opened.
    RejectedError
        It is no such container, or holds anything that does not belong in it.
    """
    reasons = Reasons()
    try:
        with path.open("rb") as raw:
            sha256 = hashlib.file_digest(raw, "sha256").hexdigest()
            try:
                with zipfile.ZipFile(raw) as file:
                    _look(file, path, reasons)
                    reasons.stop()
                    return {name: file.read(name) for name in MEMBERS}, sha256
            except (zipfile.BadZipFile, NotImplementedError, EOFError, ValueError) as error:
                reasons.add("the file is no readable submission", f"{path} ({error})", _AGAIN)
                reasons.stop()
                raise
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error


def _look(file: zipfile.ZipFile, path: Path, reasons: Reasons) -> None:
    """Find what does not belong, from the list of members alone."""
    names = [info.filename for info in file.infolist()]
    for info in file.infolist():
        name = info.filename
        if name not in MEMBERS:
            kind = "is a path" if {"/", "\\"} & set(name) or ".." in name else "is unknown"
            reasons.add(f"a member {kind}", repr(name), _AGAIN)
        elif names.count(name) > 1:
            reasons.add("a member stands twice", name, _AGAIN)
        elif info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            reasons.add("a member is compressed in the container", name, _AGAIN)
        elif info.flag_bits & 1:
            reasons.add("a member is encrypted", name, _AGAIN)
        elif info.file_size > MEMBER_BYTES:
            size = f"{name} ({info.file_size} bytes, {MEMBER_BYTES} are allowed)"
            reasons.add("a member is too large", size, "send the run in parts (--ids, --limit)")
    for name in MEMBERS:
        if name not in names:
            reasons.add("a member is missing", name, _AGAIN)
    # A local header, an entry of the list and the list's end, with nothing before, between or after.
    expected = sum(i.file_size + 76 + 2 * len(i.filename) for i in file.infolist()) + 22
    if not reasons and path.stat().st_size != expected:
        reasons.add("the container holds more than its members", str(path), _AGAIN)
