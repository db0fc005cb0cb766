"""What a container may hold, and the tricks that one may try."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

import pytest

from harness.core.errors import UsageError
from harness.exchange import container, tables
from harness.exchange.container import MEMBERS, read_container, write_container
from harness.exchange.rejected import RejectedError
from harness.exchange.submission import read_submission
from harness.exchange.submission_import import import_submission

GOOD = {name: name.encode() for name in MEMBERS}


def zipped(path: Path, members: list[tuple[str, bytes]], **options) -> Path:
    with zipfile.ZipFile(path, "w", **options) as file:
        for name, raw in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = file.compression
            file.writestr(info, raw)
    return path


def reasons_of(path: Path) -> tuple[str, ...]:
    with pytest.raises(RejectedError) as refused:
        read_container(path)
    return refused.value.reasons


def test_what_was_written_is_read(tmp_path):
    write_container(tmp_path / "x.zip", GOOD)
    members, sha256 = read_container(tmp_path / "x.zip")
    assert members == GOOD
    assert len(sha256) == 64
    assert [p.name for p in tmp_path.iterdir()] == ["x.zip"]


def test_the_bytes_depend_on_the_members_alone(tmp_path):
    write_container(tmp_path / "x.zip", GOOD)
    write_container(tmp_path / "y.zip", dict(reversed(GOOD.items())))
    assert (tmp_path / "x.zip").read_bytes() == (tmp_path / "y.zip").read_bytes()


def test_any_unzip_reads_it(tmp_path):
    write_container(tmp_path / "x.zip", GOOD)
    with zipfile.ZipFile(tmp_path / "x.zip") as file:
        assert file.testzip() is None
        assert file.namelist() == list(MEMBERS)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../../etc/passwd", "a member is a path"),
        ("/etc/passwd", "a member is a path"),
        ("runs/x/journal.jsonl", "a member is a path"),
        ("..\\evil.dll", "a member is a path"),
        ("notes.txt", "a member is unknown"),
    ],
)
def test_no_other_member_may_be_there(tmp_path, name, reason):
    path = zipped(tmp_path / "x.zip", [*GOOD.items(), (name, b"!")])
    assert reasons_of(path)[0].startswith(reason)


def test_a_member_stands_once(tmp_path):
    with pytest.warns(UserWarning, match="Duplicate name"):
        path = zipped(tmp_path / "x.zip", [*GOOD.items(), ("manifest.json", b"another")])
    assert reasons_of(path)[0].startswith("a member stands twice: manifest.json")


def test_a_missing_member_is_named(tmp_path):
    path = zipped(tmp_path / "x.zip", list(GOOD.items())[:-1])
    assert reasons_of(path)[0].startswith("a member is missing: events.parquet")


def test_a_zip_bomb_is_not_unfolded(tmp_path):
    """A megabyte of nothing becomes a thousand bytes; whatever is compressed is refused unread."""
    bomb = [(name, bytes(1 << 20)) for name in MEMBERS]
    path = zipped(tmp_path / "x.zip", bomb, compression=zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 10_000
    assert reasons_of(path)[0].startswith("a member is compressed")


def test_a_member_that_says_it_is_huge_is_not_read(tmp_path):
    path = tmp_path / "x.zip"
    write_container(path, GOOD)
    raw = bytearray(path.read_bytes())
    entry = raw.index(b"PK\x01\x02")
    raw[entry + 20 : entry + 28] = struct.pack("<II", (1 << 31), (1 << 31))
    path.write_bytes(raw)
    assert reasons_of(path)[0].startswith("a member is too large: manifest.json (2147483648 bytes")


def test_a_large_member_is_refused_by_its_size(tmp_path, monkeypatch):
    write_container(tmp_path / "x.zip", GOOD)
    monkeypatch.setattr(container, "MEMBER_BYTES", 5)
    assert reasons_of(tmp_path / "x.zip")[0].startswith("a member is too large")


@pytest.mark.parametrize("where", ["before", "after", "comment"])
def test_nothing_hides_beside_the_members(tmp_path, where):
    path = tmp_path / "x.zip"
    write_container(path, GOOD)
    if where == "comment":
        with zipfile.ZipFile(path, "a") as file:
            file.comment = b"my key is in here"
    else:
        raw = path.read_bytes()
        path.write_bytes(b"#!/bin/sh\n" + raw if where == "before" else raw + b"\0" * 10)
    (reason,) = reasons_of(path)
    assert reason.startswith(("the container holds more", "the file is no readable"))


@pytest.mark.parametrize("raw", [b"", b"no zip", b"PK\x05\x06" + bytes(3)])
def test_what_is_no_zip_is_said(tmp_path, raw):
    (tmp_path / "x.zip").write_bytes(raw)
    assert reasons_of(tmp_path / "x.zip")[0].startswith("the file is no readable submission")


def test_a_cut_file_is_said(sent, tmp_path):
    raw = sent["whole"].read_bytes()
    for part in (0.2, 0.9):
        (tmp_path / "x.zip").write_bytes(raw[: int(len(raw) * part)])
        assert "no readable submission" in reasons_of(tmp_path / "x.zip")[0]


def test_a_missing_file_is_the_users_slip(tmp_path):
    with pytest.raises(UsageError, match="cannot read"):
        read_container(tmp_path / "none.zip")


@pytest.mark.parametrize("name", MEMBERS)
def test_a_changed_byte_is_found(sent, tmp_path, name):
    """In the middle of a member: by the zip's own checksum."""
    raw = bytearray(sent["whole"].read_bytes())
    with zipfile.ZipFile(sent["whole"]) as file:
        info = file.getinfo(name)
    raw[info.header_offset + 30 + len(name) + info.file_size // 2] ^= 1
    (tmp_path / "x.zip").write_bytes(raw)
    with pytest.raises(RejectedError):
        read_submission(tmp_path / "x.zip")


def test_the_hash_of_a_member_is_compared(taken_apart, tmp_path, mine):
    """A value is changed and the manifest left as it was."""
    forgery = taken_apart()
    said = dict(forgery.manifest["members"]["scores.parquet"])
    forgery.rows["scores.parquet"][0]["value"] = 0.5
    members = forgery.members()
    forgery.manifest["members"]["scores.parquet"] = said
    import json

    write_container(
        tmp_path / "x.zip", members | {"manifest.json": json.dumps(forgery.manifest).encode()}
    )
    with pytest.raises(RejectedError, match="the hash of a member is another: scores"):
        import_submission(tmp_path / "x.zip", mine)


def test_the_number_of_rows_is_compared(taken_apart, tmp_path, mine):
    forgery = taken_apart()
    members = forgery.members()
    forgery.manifest["members"]["samples.parquet"]["rows"] = 13
    import json

    write_container(
        tmp_path / "x.zip", members | {"manifest.json": json.dumps(forgery.manifest).encode()}
    )
    with pytest.raises(RejectedError, match="12 rows, the manifest says 13"):
        import_submission(tmp_path / "x.zip", mine)


def test_a_table_that_unfolds_too_far_is_not_read(sent, monkeypatch):
    """Parquet is compressed inside: its own list of sizes is looked at before a row is."""
    monkeypatch.setattr(tables, "TABLE_BYTES", 1000)
    with pytest.raises(RejectedError, match="a table is too large: samples"):
        read_submission(sent["whole"])


def test_a_table_that_is_no_parquet_is_said(taken_apart, tmp_path):
    import hashlib
    import json

    forgery = taken_apart()
    members = forgery.members() | {"scores.parquet": b"PAR1 not at all PAR1"}
    raw = members["scores.parquet"]
    forgery.manifest["members"]["scores.parquet"] |= {
        "sha256": hashlib.sha256(raw).hexdigest(), "bytes": len(raw),
    }  # fmt: skip
    write_container(
        tmp_path / "x.zip", members | {"manifest.json": json.dumps(forgery.manifest).encode()}
    )
    with pytest.raises(RejectedError, match="a table cannot be read: scores"):
        read_submission(tmp_path / "x.zip")
