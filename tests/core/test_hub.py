"""Data sets of a hub: spelling, a stand-in for the hub on this machine, and no hub at all."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from harness.core import hub
from harness.core.errors import MissingPackageError, UsageError
from harness.core.hub import DataSpec, parse_data, read_data_set

COMMIT, LATER = "a1" * 20, "b2" * 20
CARD = """---
configs:
- config_name: easy
  data_files: [{split: train, path: easy/train.jsonl}, {split: test, path: easy/test.jsonl}]
- config_name: hard
  data_files: [{split: test, path: hard/test.jsonl}]
---
"""


def rows(*numbers):
    return "".join(
        json.dumps({"question": f"{n} + {n}?", "answer": f"#### {2 * n}"}) + "\n" for n in numbers
    )


FILES = {
    COMMIT: {
        "README.md": CARD,
        "easy/train.jsonl": rows(5, 6, 7),
        "easy/test.jsonl": rows(1, 2),
        "hard/test.jsonl": rows(1000),
        "sums.py": "raise SystemExit('code of a data set was run')",
    },
    LATER: {"test.jsonl": rows(8)},
}


# --- spelling ---


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("hub:sums@v1", DataSpec("sums", "v1")),
        ("hub:org/sums@refs/pr/1", DataSpec("org/sums", "refs/pr/1")),
        ("hub:org/sums@v1?split=a&config=b", DataSpec("org/sums", "v1", "b", "a")),
    ],
)
def test_a_name_of_the_hub_has_a_revision(text, spec):
    assert parse_data(text) == spec
    assert parse_data(str(spec)) == spec


def test_a_folder_becomes_an_absolute_path(tmp_path, monkeypatch):
    (tmp_path / "org/sums").mkdir(parents=True)
    (tmp_path / "a@b").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    spec = DataSpec(str(tmp_path / "org/sums"), split="test")
    for name in ("org/sums", "./org/sums", "~/org/sums", f"{tmp_path}/org/sums"):
        assert parse_data(f"hub:{name}?split=test") == spec
    assert parse_data(str(spec)) == spec
    assert parse_data("hub:sums", tmp_path / "org").name == str(tmp_path / "org/sums")
    # A folder of the name does not stand in for a revision of the hub, unless it is said to.
    assert parse_data("hub:a@b") == DataSpec("a", "b")
    assert parse_data("hub:./a@b") == DataSpec(str(tmp_path / "a@b"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("gsm8k", "write hub:ID@REV or hub:DIR"),
        ("hf:org/sums@v1", "write hub:ID@REV or hub:DIR"),
        ("hub:", "write hub:ID@REV or hub:DIR"),
        ("hub:org/sums@", "write hub:ID@REV or hub:DIR"),
        ("hub:org/sums/more@v1", "write hub:ID@REV or hub:DIR"),
        ("hub:org/sums", "needs its revision, hub:org/sums@REV"),
        ("hub:org/sums@v1?spilt=test", "unknown option 'spilt'"),
        ("hub:./none", "there is no folder"),
    ],
)
def test_what_cannot_be_is_one_line(text, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=says) as error:
        parse_data(text)
    assert "\n" not in str(error.value)


def test_without_the_package_it_says_how_to_install_it(monkeypatch, tmp_path):
    monkeypatch.setattr(hub, "_NEED", hub.Need("package", "no_such_package", "pip install it"))
    with pytest.raises(MissingPackageError, match=r"needs no_such_package.*: pip install it"):
        read_data_set(DataSpec(str(tmp_path)), ["question"])


def test_the_library_is_not_imported_before_it_is_needed():
    code = (
        "import sys, harness, harness.cli.main\n"
        "from harness.core.task import TaskRequest, make_task\n"
        "make_task('gsm8k', TaskRequest())\n"
        "assert not {'datasets', 'huggingface_hub', 'pandas'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True)


# --- a stand-in for the hub ---


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(f"{self.command} {self.path}")
        path = self.path.partition("?")[0]
        if path.startswith("/api/datasets/org/sums/revision/"):
            revision = path.rpartition("/")[2]
            commit = self.server.tags.get(revision, revision)
            if commit not in FILES:
                return self.fail("RevisionNotFound")
            return self.json({"id": "org/sums", "sha": commit, "siblings": []})
        if path.startswith("/api/datasets/org/sums/tree/"):
            files = FILES[path.rpartition("/")[2]]
            listed = [
                {"type": "file", "path": name, "size": len(text), "oid": oid(text)}
                for name, text in files.items()
            ]
            return self.json(listed)
        if path.startswith("/datasets/org/sums/resolve/"):
            commit, _, name = path.removeprefix("/datasets/org/sums/resolve/").partition("/")
            text = FILES[commit][name]
            return self.send(200, text, {"ETag": f'"{oid(text)}"', "X-Repo-Commit": commit})
        return self.fail("RepoNotFound")

    def do_HEAD(self):
        self.do_GET()

    def fail(self, code):
        self.send(404, "{}", {"X-Error-Code": code})

    def json(self, value):
        self.send(200, json.dumps(value), {"Content-Type": "application/json"})

    def send(self, status, text, headers):
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(text))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(text.encode())

    def log_message(self, *args):
        pass


def oid(text):
    return hashlib.sha1(text.encode()).hexdigest()


@pytest.fixture
def server():
    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.asked, made.tags = [], {"v1": COMMIT}
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


@pytest.fixture
def show(tmp_path):
    """Ask for the task in a process of its own: the hub's address is read when it starts."""

    def call(port, data, **environment):
        done = subprocess.run(
            [sys.executable, "-P", "-m", "harness.cli.main", "show", "task", "gsm8k", "--json",
             "--data", data],
            cwd=tmp_path, capture_output=True, text=True, check=False,
            # Other tests of this process may have told the libraries to stay offline.
            env={**os.environ, "HF_HUB_OFFLINE": "0", "HF_ENDPOINT": f"http://127.0.0.1:{port}", "no_proxy": "127.0.0.1",
                 "HF_HOME": str(tmp_path / "hf"), **environment},
        )  # fmt: skip
        return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr

    return call


def test_a_data_set_of_the_hub_is_read_at_its_revision_and_kept(server, show):
    port = server.server_port
    code, task, err = show(port, "hub:org/sums@v1?config=easy")
    assert (code, err) == (0, "")
    assert task["n"] == 2  # of train and test, test
    assert task["first_item"]["input"] == "1 + 1?"
    assert task["data"] == {
        "name": "org/sums", "revision": "v1", "commit": COMMIT, "config": "easy", "split": "test",
    }  # fmt: skip
    # The tag moves: what is asked for is read, not what was kept.
    server.tags["v1"] = LATER
    code, task, _ = show(port, "hub:org/sums@v1")
    assert (task["first_item"]["input"], task["data"]["commit"]) == ("8 + 8?", LATER)
    # A commit that is here whole is taken without a question.
    server.asked.clear()
    code, task, _ = show(port, f"hub:org/sums@{COMMIT}?config=hard&split=test")
    assert (code, task["first_item"]["input"]) == (0, "1000 + 1000?")
    assert server.asked == []
    # Without the hub a tag stands for what it last was, and another revision is not replaced by
    # the last one, as the library would do.
    code, task, _ = show(port, "hub:org/sums@v1", HF_HUB_OFFLINE="1")
    assert (code, task["data"]["commit"]) == (0, LATER)
    code, _, err = show(port, "hub:org/sums@v2?config=easy", HF_HUB_OFFLINE="1")
    assert (code, err.count("\n")) == (1, 1)
    assert "cannot reach or read the hub" in err
    assert server.asked == []


AFTER_A_MODEL = """
from harness.core.hub import parse_data, read_data_set, stay_offline
stay_offline()
rows = read_data_set(parse_data("hub:org/sums@v1?config=easy"), ["question"]).rows
from huggingface_hub import constants
print(len(rows), constants.HF_HUB_OFFLINE)
"""


def test_a_model_that_keeps_the_libraries_offline_does_not_keep_the_data_set_away(server, tmp_path):
    done = subprocess.run(
        [sys.executable, "-P", "-c", AFTER_A_MODEL], capture_output=True, text=True, check=True,
        env={**{k: v for k, v in os.environ.items() if "OFFLINE" not in k},
             "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}", "no_proxy": "127.0.0.1",
             "HF_HOME": str(tmp_path / "hf")},
    )  # fmt: skip
    assert done.stdout == "2 True\n"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ("hub:org/sums@v2", "there is no revision 'v2'"),
        ("hub:org/gone@v1", "the hub has no data set of this name"),
        ("hub:org/sums@v1", "say ?config=NAME, one of easy, hard"),
        ("hub:org/sums@v1?config=hart", "unknown config 'hart': did you mean 'hard'?"),
        ("hub:org/sums@v1?config=easy&split=dev", "unknown split 'dev': there are test, train"),
    ],
)
def test_what_the_hub_does_not_have_is_one_line(server, show, data, says):
    code, out, err = show(server.server_port, data)
    assert (code, out, err.count("\n")) == (2, None, 1)
    assert says in err


def test_a_dead_hub_is_one_line_with_the_ways_out(show, tmp_path):
    code, out, err = show(1, "hub:openai/gsm8k@main?config=main")
    assert (code, out, err.count("\n")) == (1, None, 1)
    assert "cannot reach or read the hub" in err
    assert "give --data-root DIR or a local data set, hub:DIR" in err
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_hub_that_hangs_up_is_not_asked_again_and_again(server, show, monkeypatch):
    """The libraries alone repeat their question six times, for 23 s."""
    hung_up = []

    def hang_up(request, address):
        hung_up.append(address)
        server.shutdown_request(request)

    monkeypatch.setattr(server, "process_request", hang_up)
    code, out, err = show(server.server_port, "hub:openai/gsm8k@main?config=main")
    assert (code, out, err.count("\n")) == (1, None, 1)
    assert len(hung_up) == 1
