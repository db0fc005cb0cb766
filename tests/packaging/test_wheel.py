"""What people install: the wheel holds what it must, nothing else, and works from anywhere."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Hidden folders but Streamlit's, which holds the settings of the site.
LEFT_OUT = (".[!s]*", "__pycache__", "results", "dist", "build", "shared")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy, with rubbish in it that must not get into a wheel."""
    base = tmp_path_factory.mktemp("wheel")
    copy = base / "copy"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
    (copy / "harness" / "__pycache__").mkdir()
    (copy / "harness" / "__pycache__" / "main.cpython-311.pyc").write_bytes(b"old")
    subprocess.run(
        [sys.executable, "-P", "-m", "build", "--wheel", "--no-isolation", "--outdir", base, copy],
        check=True, capture_output=True, cwd=base,
    )  # fmt: skip
    (found,) = base.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def members(wheel) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


@pytest.fixture(scope="module")
def site(wheel, tmp_path_factory) -> Path:
    target = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-P", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
         "--disable-pip-version-check", "--target", target, wheel],
        check=True, capture_output=True, cwd=target,
    )  # fmt: skip
    return target


def test_it_holds_code_data_types_and_licence(members):
    for name in ("harness/py.typed", "harness/cli/main.py", "harness/store/sql/views.sql",
                 "harness/_data/gsm8k/own.jsonl", "harness/_data/aicrypto/mcq.json",
                 "harness/_data/tiny/model.safetensors", "tasks/gsm8k/task.py",
                 "tasks/gsm8k/README.md", "scorers/number.py", "irt/joint.py", "irt/py.typed",
                 "leaderboard/script/app.py", "leaderboard/script/.streamlit/config.toml"):  # fmt: skip
        assert name in members
    assert any(name.endswith("dist-info/licenses/LICENSE") for name in members)
    assert any(name.endswith("dist-info/entry_points.txt") for name in members)


def test_every_source_file_of_the_packages_is_in_it(members):
    for package in ("harness", "tasks", "scorers", "irt", "leaderboard"):
        for path in (ROOT / package).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                assert path.relative_to(ROOT).as_posix() in members
    for path in (ROOT / "data").rglob("*"):
        if path.is_file() and not {"__pycache__", "make"} & set(path.parts):
            assert f"harness/_data/{path.relative_to(ROOT / 'data').as_posix()}" in members


def test_it_holds_nothing_else(members):
    top = {name.split("/")[0] for name in members}
    assert {name for name in top if not name.endswith(".dist-info")} == {
        "harness", "tasks", "scorers", "irt", "leaderboard",
    }  # fmt: skip
    for name in members:
        parts = name.split("/")
        assert "__pycache__" not in parts
        assert not name.endswith(".pyc")
        assert not any(part.startswith(("test_", "conftest")) or part == "tests" for part in parts)


def test_it_runs_from_an_empty_folder(site, tmp_path):
    env = os.environ | {"PYTHONPATH": str(site)}

    def python(*args: str) -> str:
        done = subprocess.run(
            [sys.executable, "-P", *args], env=env, cwd=tmp_path, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    # It must be the wheel that answers, not the checkout beside it.
    where = (
        "import harness, tasks, scorers; print(harness.__file__, tasks.__file__, scorers.__file__)"
    )
    for place in python("-c", where).split():
        assert Path(place).is_relative_to(site)
    data = python("-c", "from harness.core.resources import data; print(data('gsm8k/own.jsonl'))")
    assert Path(data.strip()).is_relative_to(site / "harness" / "_data")

    out = python("-m", "harness.cli.main", "run", "--task", "gsm8k", "--model", "mock:gold",
                 "--limit", "3", "--json")  # fmt: skip
    (run,) = json.loads(out)["runs"]
    assert (run["n_scored"], run["metrics"]["accuracy"]["value"]) == (3, 1.0)
    names = [row["name"] for row in json.loads(python("-m", "harness.cli.main", "list", "tasks",
                                                      "--json"))]  # fmt: skip
    assert {"aicrypto/mcq", "gsm8k"} <= set(names)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["results"]
