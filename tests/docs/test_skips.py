"""Nothing is skipped in silence: whatever may skip is listed, with the reason."""

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXTERNAL = tomllib.loads((ROOT / "tests/external.toml").read_text(encoding="utf-8"))["external"]
SKIPS = {"skip", "skipif", "skipTest", "importorskip", "skipUnless", "SkipTest"}


def skips(source):
    """Tell whether a test file can skip: a name, or the last part of one, says so."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in SKIPS:
            return True
        if isinstance(node, ast.ImportFrom) and {alias.name for alias in node.names} & SKIPS:
            return True
    return False


def test_a_skip_is_seen_however_it_is_written():
    assert skips("import pytest\ntorch = pytest.importorskip('torch')")
    assert skips("import pytest\n@pytest.mark.skipif(True, reason='')\ndef test(): ...")
    assert skips("from pytest import skip as leave\nleave('')")
    assert not skips("text = 'pytest.skip'\nx = text.split()  # pytest.skip")


def test_every_file_that_can_skip_is_listed():
    able = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if skips(path.read_text(encoding="utf-8"))
    ]
    listed = [entry["files"] for entry in EXTERNAL]
    assert not [path for path in able if not any(fnmatch(path, files) for files in listed)]


def test_no_doctest_is_skipped():
    sources = [
        p
        for folder in ("harness", "tasks", "scorers", "irt")
        for p in (ROOT / folder).rglob("*.py")
    ]
    assert not [p for p in sources if "doctest: +SKIP" in p.read_text(encoding="utf-8")]


def test_every_entry_says_what_why_and_who():
    for entry in EXTERNAL:
        assert set(entry) == {"files", "what", "why", "who"}
        assert all(len(text) > 10 for text in entry.values())


@pytest.mark.parametrize(
    ("folder", "ci", "n_failures"),
    [("other", "true", 3), ("other", "", 0), ("upstream", "true", 0)],
)
def test_a_skip_that_is_not_listed_fails_in_ci(tmp_path, folder, ci, n_failures):
    tests = tmp_path / "tests" / folder
    tests.mkdir(parents=True)
    planted = {
        "test_inside": "import pytest\ndef test_it():\n    pytest.skip('planted')\n",
        "test_whole": "import pytest\npytest.skip('planted', allow_module_level=True)\n",
        "test_mark": "import pytest\n@pytest.mark.skip(reason='planted')\ndef test_it(): ...\n",
        "test_sound": "import pytest\ndef test_it(): ...\n"
        "@pytest.mark.xfail\ndef test_expected(): assert False\n",
    }
    for name, source in planted.items():
        (tests / f"{name}.py").write_text(source, encoding="utf-8")
    for name in ("conftest.py", "external.toml"):
        shutil.copy(ROOT / "tests" / name, tmp_path / "tests" / name)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    options = ["-q", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", *options, "tests"], cwd=tmp_path, text=True,
        capture_output=True, check=False, env={**os.environ, "CI": ci},
    )  # fmt: skip
    assert done.returncode == bool(n_failures), done.stdout
    assert done.stdout.count("was skipped in CI and is not in tests/external.toml") >= n_failures
    assert ("not in tests/external.toml" in done.stdout) == bool(n_failures)
    assert "1 passed" in done.stdout
    assert "1 xfailed" in done.stdout


def test_a_missing_package_fails_in_ci_though_it_is_listed(tmp_path):
    tests = tmp_path / "tests" / "backends"
    tests.mkdir(parents=True)
    (tests / "test_hf.py").write_text("import pytest\npytest.importorskip('no_such_package')\n")
    for name in ("conftest.py", "external.toml"):
        shutil.copy(ROOT / "tests" / name, tmp_path / "tests" / name)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    for ci, said in (("true", True), ("", False)):
        done = subprocess.run(
            [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
            cwd=tmp_path, text=True, capture_output=True, check=False,
            env={**os.environ, "CI": ci},
        )  # fmt: skip
        assert ("where what it needs must be installed" in done.stdout) == said
        assert ("1 skipped" in done.stdout) != said
