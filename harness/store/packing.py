"""Packing: a finished run's journal as one Parquet file, byte for byte the same lines.

`journal.parquet` holds one row a line and, in the file's own key-value metadata, the length and
sha256 of the whole journal. Where both forms exist the JSONL is the truth: so a crash at any step of
packing or unpacking leaves a whole journal.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from harness.core.errors import StoreError
from harness.store.layout import Store

_ROWS = 500
_BUFFER_BYTES = 4 << 20


def packed_path(path: Path) -> Path:
    """Give the packed sibling of a ``journal.jsonl``."""
    return path.with_suffix(".parquet")


def packed_lines(path: Path) -> Iterator[bytes]:
    """Read the lines of a ``journal.parquet`` in order, without newlines.

    Raises
    ------
    StoreError
        When the file is damaged.
    """
    import duckdb

    with duckdb.connect(config={"threads": 1}) as con:
        try:
            rows = con.execute("SELECT line FROM read_parquet(?)", [str(path)])
            while batch := rows.fetchmany(_ROWS):
                for (line,) in batch:
                    yield line
        except duckdb.Error as error:
            why = str(error).splitlines()[0]
            raise StoreError(f"packed journal {path} cannot be read: {why}") from error


def packed_facts(path: Path) -> tuple[int, str]:
    """Read what a ``journal.parquet`` says about itself.

    Returns
    -------
    bytes : int
        Length of the journal.
    sha256 : str
        Its hash.
    """
    import duckdb

    with duckdb.connect(config={"threads": 1}) as con:
        facts = {
            bytes(key).decode(): bytes(value).decode()
            for key, value in con.execute(
                "SELECT key, value FROM parquet_kv_metadata(?)", [str(path)]
            ).fetchall()
        }
    return int(facts["journal_bytes"]), facts["journal_sha256"]


def pack(store: Store, run_id: str) -> bool:
    """Pack a run's journal; the caller knows that the run is finished and wholly ingested.

    Returns
    -------
    bool
        False when there is nothing to pack: no JSONL, a torn or empty line, a line that cannot be
        read as text, or a writer at work.

    Raises
    ------
    StoreError
        When what was packed does not read back as the same bytes; the JSONL then stays.
    """
    import duckdb

    path = store.journal(run_id)
    try:
        fd = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return False
    try:
        size, sha256, longest = _facts(path)
        if not longest:
            return False
        new = packed_path(path).with_suffix(".parquet.tmp")
        try:
            _write_packed(path, new, size, sha256, longest)
        except duckdb.Error:
            # A line that no reader of text takes (damaged, or longer than the limit).
            new.unlink(missing_ok=True)
            return False
        _fsync(new)
        if _hash_of(new) != (size, sha256):
            new.unlink()
            raise StoreError(f"packing {path} did not give the same bytes back; it stays as it is")
        new.rename(packed_path(path))
        _fsync(path.parent)
        path.unlink()
        return True
    finally:
        os.close(fd)


def unpack(store: Store, run_id: str) -> None:
    """Turn a packed journal into a JSONL file again, to write on."""
    unpack_journal(store.journal(run_id))


def unpack_journal(path: Path) -> None:
    """Write ``journal.jsonl`` from its packed sibling, then remove that.

    Raises
    ------
    StoreError
        When the packed file is damaged.
    """
    packed = packed_path(path)
    new = path.with_name(f"journal.{secrets.token_hex(4)}.tmp")
    unpack_to(packed, new)
    try:
        # A link, not a rename: whoever comes second must not replace a journal already in use.
        os.link(new, path)
    except FileExistsError:
        return
    finally:
        new.unlink()
    _fsync(path.parent)
    packed.unlink(missing_ok=True)


def unpack_to(packed: Path, target: Path) -> None:
    """Write the bytes of a packed journal to a new file and check them.

    Raises
    ------
    StoreError
        When the hash is not the one noted at packing; `target` is then removed.
    """
    digest = hashlib.sha256()
    size = 0
    try:
        with target.open("wb") as file:
            for line in packed_lines(packed):
                digest.update(line + b"\n")
                size += file.write(line + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except (OSError, StoreError):
        target.unlink(missing_ok=True)
        raise
    if (size, digest.hexdigest()) != packed_facts(packed):
        target.unlink()
        raise StoreError(f"packed journal {packed} is damaged: its sha256 is not the one noted")


def _write_packed(path: Path, new: Path, size: int, sha256: str, longest: int) -> None:
    """Write the lines as one column; the reader streams, so memory does not grow with the journal.

    Every line is strict JSON, in which a control character cannot stand: U+0001 never splits one.
    """
    import duckdb

    with duckdb.connect(config={"threads": 1, "memory_limit": "400MB"}) as con:
        con.execute(
            f"COPY (SELECT encode(line) AS line FROM read_csv('{_quoted(path)}', "
            "auto_detect = false, header = false, columns = {'line': 'VARCHAR'}, delim = '\x01', "
            "quote = '', escape = '', comment = '', new_line = '\\n', "
            f"max_line_size = {longest + 1}, "
            f"buffer_size = {max(_BUFFER_BYTES, 2 * longest)})) "
            f"TO '{_quoted(new)}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 2048, "
            f"KV_METADATA {{journal_bytes: '{size}', journal_sha256: '{sha256}'}})"
        )


def _facts(path: Path) -> tuple[int, str, int]:
    """Give length, sha256 and longest line in bytes; 0 for that when a line is torn or empty."""
    digest = hashlib.sha256()
    size, longest, line, empty = 0, 0, b"", False
    with path.open("rb") as file:
        for line in file:
            digest.update(line)
            size += len(line)
            longest = max(longest, len(line))
            empty = empty or line == b"\n"
    return size, digest.hexdigest(), longest if line.endswith(b"\n") and not empty else 0


def _hash_of(packed: Path) -> tuple[int, str]:
    digest = hashlib.sha256()
    size = 0
    for line in packed_lines(packed):
        digest.update(line + b"\n")
        size += len(line) + 1
    return size, digest.hexdigest()


def _fsync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
