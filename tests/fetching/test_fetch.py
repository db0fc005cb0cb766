"""`harness fetch` against a server on this machine: whole with the right hashes, or not at all."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from harness.cli.main import main
from harness.core.errors import HarnessError, UsageError
from harness.core.resources import data_folder, fetched
from harness.fetching.get import get, is_whole
from harness.fetching.sources import File, Source, sources

BODY = bytes(range(256)) * 12_000  # 3 MB, so that several chunks come


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/missing":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY[:1_500_000] if self.path == "/cut" else BODY)

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def home():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return tmp_path / "data"


def source(home, name="thing", body=BODY, **changed):
    fields = {
        "path": "part/thing.bin", "home": home, "size": len(body),
        "sha256": hashlib.sha256(body).hexdigest(),
    }  # fmt: skip
    files = (File(**(fields | changed)),)
    return Source(name=name, kind="sets", what="w", licence="MIT", files=files)


def quiet(name, come, total):
    pass


def left_in(folder):
    return [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"]


def test_a_file_comes_whole_and_is_told_of_on_the_way(home, folder):
    told = []
    wanted = source(f"{home}/thing")
    assert get(wanted, None, lambda *step: told.append(step))
    assert (folder / "sets/thing/part/thing.bin").read_bytes() == BODY
    assert fetched("thing") == folder / "sets/thing"
    assert told[-1] == ("part/thing.bin", len(BODY), len(BODY))
    assert [come for _, come, _ in told] == sorted(come for _, come, _ in told)
    assert left_in(folder) == [folder / "sets/thing/part/thing.bin"]


def test_what_is_here_is_not_brought_again(home):
    assert get(source(f"{home}/thing"), None, quiet)
    assert get(source("http://127.0.0.1:1/gone"), None, quiet) is False


def test_a_spoilt_copy_is_replaced(home, folder):
    wanted = source(f"{home}/thing")
    get(wanted, None, quiet)
    path = folder / "sets/thing/part/thing.bin"
    path.write_bytes(b"x" + BODY[1:])
    assert not is_whole(wanted)
    assert get(wanted, None, quiet)
    assert path.read_bytes() == BODY
    assert left_in(folder) == [path]


@pytest.mark.parametrize(
    ("page", "changed", "says"),
    [
        ("/thing", {"sha256": "0" * 64}, [hashlib.sha256(BODY).hexdigest(), "0" * 64]),
        ("/thing", {"size": len(BODY) - 1}, [f"larger than the {len(BODY) - 1} bytes"]),
        ("/cut", {}, [f"1500000 of {len(BODY)} bytes"]),
        ("/missing", {}, ["404", "/missing", "--from DIR"]),
    ],
)
def test_what_is_wrong_leaves_nothing_behind(home, folder, page, changed, says):
    with pytest.raises(HarnessError) as error:
        get(source(home + page, **changed), None, quiet)
    assert all(part in str(error.value) for part in says)
    assert "\n" not in str(error.value)
    assert left_in(folder) == []
    assert fetched("thing") is None


def test_a_dead_host_is_named_with_the_way_out(folder):
    with pytest.raises(HarnessError, match=r"http://127\.0\.0\.1:1/thing.*fetch thing --from DIR"):
        get(source("http://127.0.0.1:1/thing"), None, quiet)
    assert left_in(folder) == []


def test_a_good_first_file_is_not_kept_without_the_second(home, folder):
    good, bad = source(f"{home}/thing"), source(f"{home}/cut", path="b.bin")
    both = Source(name="two", kind="sets", what="w", licence="MIT", files=good.files + bad.files)
    with pytest.raises(HarnessError):
        get(both, None, quiet)
    assert left_in(folder) == []


def test_a_folder_can_stand_in_for_the_network(tmp_path, folder):
    origin = tmp_path / "stick"
    origin.mkdir()
    wanted = source("http://127.0.0.1:1/gone")
    with pytest.raises(UsageError, match=r"there is no part/thing\.bin or thing\.bin in it"):
        get(wanted, origin, quiet)
    (origin / "thing.bin").write_bytes(b"x" + BODY[1:])
    with pytest.raises(HarnessError, match="another file than the one known"):
        get(wanted, origin, quiet)
    assert left_in(folder) == []
    (origin / "thing.bin").write_bytes(BODY)
    assert get(wanted, origin, quiet)
    assert (folder / "sets/thing/part/thing.bin").read_bytes() == BODY
    with pytest.raises(UsageError, match="no such folder"):
        get(wanted, tmp_path / "nowhere", quiet)


def test_a_member_is_taken_out_of_an_archive_with_both_hashes_checked(tmp_path, folder):
    archive = tmp_path / "a.whl"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("inside/thing.bin", BODY)
    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    packing = {"archive": "a.whl", "archive_size": 1, "member": "inside/thing.bin"}
    with pytest.raises(HarnessError, match="0" * 64):
        get(source("pypi:a==1", archive_sha256="0" * 64, **packing), tmp_path, quiet)
    assert left_in(folder) == []
    assert get(source("pypi:a==1", archive_sha256=sha256, **packing), tmp_path, quiet)
    assert (folder / "sets/thing/part/thing.bin").read_bytes() == BODY


FULL = """
import hashlib, pathlib, resource, sys
from harness.core.errors import HarnessError
from harness.fetching.get import get
from harness.fetching.sources import File, Source
origin = pathlib.Path(sys.argv[1])
body = (origin / "thing.bin").read_bytes()
file = File(path="thing.bin", home="http://127.0.0.1:1/", size=len(body),
            sha256=hashlib.sha256(body).hexdigest())
resource.setrlimit(resource.RLIMIT_FSIZE, (1_200_000, 1_200_000))
try:
    get(Source(name="thing", kind="sets", what="w", licence="MIT", files=(file,)), origin,
        lambda *step: None)
except HarnessError as error:
    sys.exit(str(error))
"""


def test_a_full_disk_leaves_nothing_behind(tmp_path, folder):
    # The limit on the size of a file stands in for the full disk: the kernel refuses the write.
    (tmp_path / "thing.bin").write_bytes(BODY)
    done = subprocess.run(
        [sys.executable, "-P", "-c", FULL, str(tmp_path)], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith(
        f"cannot write {folder / 'sets/thing'}: File too large; nothing was kept"
    )
    assert left_in(folder) == []


def test_the_list_is_sound():
    for name, known in sources().items():
        assert known.name == name
        assert known.licence
        for file in known.files:
            assert file.home.startswith(("https://", "pypi:"))
            assert len(bytes.fromhex(file.sha256)) == 32
            assert file.size > 0
            assert bool(file.archive) == bool(file.member) == file.home.startswith("pypi:")
            assert not file.archive or len(bytes.fromhex(file.archive_sha256)) == 32


def test_the_data_folder_is_the_one_named_or_the_users(monkeypatch, tmp_path):
    assert data_folder() == tmp_path / "data"
    monkeypatch.delenv("HARNESS_DATA")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    assert data_folder() == tmp_path / "xdg/bridge-harness"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_folder() == tmp_path / ".local/share/bridge-harness"


@pytest.mark.parametrize("name", ["", "..", ".", "/etc", "a/b"])
def test_only_a_plain_name_is_looked_for(name):
    assert fetched(name) is None


@pytest.fixture
def listed(home, monkeypatch):
    """Let the command line know one small thing only."""
    monkeypatch.setattr(
        "harness.fetching.sources.sources", lambda: {"thing": source(f"{home}/thing")}
    )


def test_the_command_shows_the_licence_before_and_after(listed, capsys, folder):
    assert main(["fetch", "thing", "--path"]) == 1
    assert "`harness fetch thing` gets it" in capsys.readouterr().err
    assert main(["fetch", "thing"]) == 0
    shown = capsys.readouterr()
    before, after = shown.err.splitlines()
    assert before == "thing: w, 3.1 MB; licence: MIT"
    assert after == "thing: came whole, hashes agree; licence: MIT"
    assert shown.out == f"{folder / 'sets/thing'}\n"
    assert main(["fetch", "thing", "--path"]) == 0
    assert capsys.readouterr().out == f"{folder / 'sets/thing'}\n"
    assert main(["fetch", "thing", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["came"], row["folder"]) == (False, str(folder / "sets/thing"))


def test_the_list_says_what_is_here(capsys):
    assert main(["fetch", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["smollm2"]["bytes"] == 92_871_040
    assert rows["gsm8k"]["state"] == "not here"
    assert main(["fetch"]) == 0
    assert "Apache-2.0" in capsys.readouterr().out


def test_a_misspelt_name_is_refused_with_the_nearest(capsys):
    assert main(["fetch", "smolm2"]) == 2
    assert "did you mean 'smollm2'?" in capsys.readouterr().err
    assert main(["fetch", "--path"]) == 2


def test_pips_refusal_is_one_line(folder, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    wanted = source("pypi:no-such-thing==1", archive="a.whl", archive_sha256="0" * 64, member="m")
    with pytest.raises(HarnessError, match=r"pypi:no-such-thing==1: ERROR.*--from DIR") as error:
        get(wanted, None, quiet)
    assert "\n" not in str(error.value)
    assert left_in(folder) == []


def test_two_files_of_one_archive_bring_it_once(tmp_path, folder, monkeypatch):
    archive = tmp_path / "thing-1-py3-none-any.whl"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr(
            "thing-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1\n"
        )
        packed.writestr("thing-1.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        packed.writestr("thing-1.dist-info/RECORD", "")
        packed.writestr("inside/a.bin", BODY)
        packed.writestr("inside/b.bin", BODY)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    size = archive.stat().st_size
    packing = {
        "archive": archive.name, "archive_size": size,
        "archive_sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
    }  # fmt: skip
    pair = [
        source("pypi:thing==1", path=f"{name}.bin", member=f"inside/{name}.bin", **packing).files[0]
        for name in "ab"
    ]
    both = Source(name="two", kind="sets", what="w", licence="MIT", files=tuple(pair))
    assert both.size == size
    told = []
    assert get(both, None, lambda *step: told.append(step))
    assert told.count((archive.name, 0, size)) == 1
    assert sorted(path.name for path in left_in(folder)) == ["a.bin", "b.bin"]
