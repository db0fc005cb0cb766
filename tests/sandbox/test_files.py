"""Files in and results out: by plain names only, through no symlink, and never outside the folder."""

import os
import socket
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.errors import UsageError
from harness.sandbox.files import collect, odd, put


@pytest.fixture
def job(tmp_path):
    folder = tmp_path / "job"
    folder.mkdir()
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    yield folder, handle
    os.close(handle)


def test_files_are_read_only_and_programs(job):
    folder, handle = job
    source = folder.parent / "source"
    source.write_bytes(b"from the host")
    put(handle, {"a/b/c.txt": b"text", "copied": source}, None)
    assert (folder / "a/b/c.txt").read_bytes() == b"text"
    assert (folder / "copied").read_bytes() == b"from the host"
    assert (folder / "a/b/c.txt").stat().st_mode & 0o7777 == 0o555


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "/",
        "/etc/passwd",
        "../x",
        "a/../../x",
        "a\0b",
        "x" * 256,
        "a/",
        "\ud800",
        "a/" * 2500 + "b",
    ],
)
def test_odd_names_are_refused_both_ways(job, name):
    folder, handle = job
    assert odd(name)
    with pytest.raises(UsageError, match="plain relative path"):
        put(handle, {name: b"x"}, None)
    files, refused = collect(handle, [name], 10)
    assert (files, list(refused)) == ({}, [name])
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("names", [["a", "a/b"], ["a", "./a"], ["a/b", "a"]])
def test_names_that_are_in_each_others_way(job, names):
    with pytest.raises(UsageError, match="taken by another"):
        put(job[1], dict.fromkeys(names, b"x"), None)


@given(
    st.dictionaries(
        st.text(string.printable + "\0é漢\ud800/.", max_size=12), st.binary(max_size=4), max_size=3
    )
)
def test_whatever_the_names_nothing_lands_outside(tmp_path_factory, files):
    root = tmp_path_factory.mktemp("names")
    folder = root / "job"
    folder.mkdir()
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        put(handle, files, None)
    except UsageError:
        pass
    else:
        assert collect(handle, list(files), 10) == (files, {})
    finally:
        os.close(handle)
    assert [path.name for path in root.iterdir()] == ["job"]


def test_only_plain_files_come_out(job):
    folder, handle = job
    (folder / "good").write_bytes(b"1234")
    (folder / "big").write_bytes(b"12345")
    (folder / "link").symlink_to("/etc/passwd")
    (folder / "dangling").symlink_to("/nowhere")
    (folder / "shortcut").symlink_to("/etc")
    os.mkfifo(folder / "fifo")
    (folder / "folder").mkdir()
    (folder / "twice").write_bytes(b"1")
    os.link(folder / "twice", folder / "again")
    (folder / "sparse").write_bytes(b"")
    os.truncate(folder / "sparse", 2**40)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(folder / "socket"))
    names = ["good", "big", "link", "dangling", "fifo", "folder", "twice", "socket", "sparse", "no"]
    files, refused = collect(handle, [*names, "shortcut/passwd", "good/x"], 4)
    assert files == {"good": b"1234"}
    assert refused == {
        "big": "5 bytes, 4 at most", "link": "a symlink", "dangling": "a symlink",
        "fifo": "a FIFO", "folder": "a folder", "twice": "has several links", "socket": "a socket",
        "sparse": f"{2**40} bytes, 4 at most", "no": "missing",
        "shortcut/passwd": "Not a directory", "good/x": "Not a directory",
    }  # fmt: skip


def test_a_file_that_has_grown_since_its_size_was_read(job, monkeypatch):
    folder, handle = job
    (folder / "small").write_bytes(b"1234")
    (folder / "grown").write_bytes(b"12345")
    real = os.fstat

    def before(number):
        info = list(real(number))
        info[6] = 0  # st_size, of os.stat_result
        return os.stat_result(info)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", before)
        found = collect(handle, ["small", "grown"], 4)
    assert found == ({"small": b"1234"}, {"grown": "more than 4 bytes"})


def test_a_device_is_refused(job, counted):
    folder, handle = job
    os.mknod(folder / "null", 0o666 | 0o020000, os.makedev(1, 3))
    assert collect(handle, ["null"], 4) == ({}, {"null": "a device"})


def test_a_source_that_is_not_there_is_named(job):
    with pytest.raises(UsageError, match=r"'a'.*No such file"):
        put(job[1], {"a": Path("/nowhere/at/all")}, None)
