"""A package of somebody else's adds one of everything, and a broken one says so in a line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parents[1] / "fixtures" / "plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The plug-in as pip installs it, in a folder of its own."""
    base = tmp_path_factory.mktemp("plugin")
    shutil.copytree(PLUGIN, base / "source")
    subprocess.run(
        [sys.executable, "-P", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
         "--no-build-isolation", "--disable-pip-version-check", "--target", base / "site",
         base / "source"],
        check=True, capture_output=True, cwd=base,
    )  # fmt: skip
    return base / "site"


def harness(site: Path, cwd: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "harness.cli.main", *args],
        env=os.environ | {"PYTHONPATH": str(site)}, cwd=cwd,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("tasks", "parrot/words"),
        ("backends", "parrot"),
        ("solvers", "twice"),
        ("scorers", "shouted"),
        ("strategies", "longest"),
    ],
)
def test_all_five_are_listed_beside_ours(installed, tmp_path, kind, name):
    done = harness(installed, tmp_path, "list", kind, "--json")
    names = [row["name"] for row in json.loads(done.stdout)]
    assert done.returncode == 0
    assert name in names
    assert len(names) > 1
    # The same command without the plug-in does not know it.
    assert name not in harness(tmp_path, tmp_path, "list", kind).stdout


def test_the_five_work_together(installed, tmp_path):
    def run(*args: str) -> dict:
        done = harness(installed, tmp_path, "run", "--task", "parrot/words", "--model", "parrot:x",
                       "--json", *args)  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["runs"][0]

    # The parrot repeats "ant", its scorer wants "ANT"; asked twice, it hears "ANT" the second time.
    once = run()
    assert (once["n_planned"], once["metrics"]["accuracy"]["value"]) == (3, 0.0)
    twice = run("--solver", "twice", "--strategy", "longest?n=2")
    assert (twice["n_planned"], twice["cached"]) == (6, 0)
    assert next(iter(twice["metrics"].items()))[0] == "longest?n=2"
    assert {m["value"] for m in twice["metrics"].values()} == {1.0}
    assert twice["usage"]["tokens_out"] == 12  # two calls of one token for each of six attempts
    shown = harness(installed, tmp_path, "show", "sample", twice["run_id"], "ant", "--json")
    assert json.loads(shown.stdout)["output"] == "ANT"


def test_what_the_plug_in_cannot_do_is_refused(installed, tmp_path):
    for args, match in (
        (["--strategy", "longest?n=two"], "cannot make 'longest?n=two'"),
        (["--strategy", "longest?m=2"], "it takes n"),
        (["--strategy", "longst"], "did you mean 'longest'"),
        (["--solver", "choose"], "use"),
    ):
        done = harness(installed, tmp_path, "run", "--task", "parrot/words", "--model", "parrot:x",
                       *args)  # fmt: skip
        assert done.returncode == 2
        assert match in done.stderr
        assert done.stderr.count("\n") == 1


BROKEN = {
    "no such module": "",
    "raises": "raise RuntimeError('two\\nlines')",
    "syntax": "TASKS = (",
    "no catalogue": "OTHER = ()",
    "not a list": "TASKS = 3",
    "strangers": "TASKS = ('a name',)",
    "twice": "from harness.core.registry import Entry\nTASKS = (Entry(name='gsm8k', target='x:y'),)",
}


def plant(site: Path, code: str, kind: str = "tasks") -> None:
    """Lay a package out by hand, as far as an importer looks."""
    facts = site / "broken-0.1.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 0.1\n")
    (facts / "entry_points.txt").write_text(f"[harness.{kind}]\nbroken = broken_parts:TASKS\n")
    if code:
        (site / "broken_parts.py").write_text(code + "\n")


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_catalogue_is_named_in_one_line(tmp_path, fault):
    plant(tmp_path / "site", BROKEN[fault])
    done = harness(tmp_path / "site", tmp_path, "list", "tasks")
    assert (done.returncode, done.stdout) == (1, "")
    assert "broken" in done.stderr
    assert done.stderr.count("\n") == 1
    # What does not look for tasks is not in its way.
    assert harness(tmp_path / "site", tmp_path, "list", "backends").returncode == 0


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        ("tasks", "no_such_module:f"),
        ("tasks", "broken_code:f"),
        ("tasks", "broken_parts:nothing"),
        ("backends", "broken_code:f"),
        ("solvers", "broken_code:f"),
    ],
)
def test_broken_code_behind_a_sound_catalogue_is_named_in_one_line(tmp_path, kind, target):
    entry = (
        f"from harness.core.registry import Entry\nTASKS = (Entry(name='odd', target='{target}'),)"
    )
    plant(tmp_path / "site", entry, kind)
    (tmp_path / "site" / "broken_code.py").write_text("def f(:\n")
    assert harness(tmp_path / "site", tmp_path, "list", kind).returncode == 0
    task, model, solver = (
        "odd" if kind == "tasks" else "gsm8k",
        "odd:x" if kind == "backends" else "mock:gold",
        "odd" if kind == "solvers" else "generate",
    )
    done = harness(tmp_path / "site", tmp_path, "run", "--task", task, "--model", model,
                   "--solver", solver)  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert "cannot load 'odd'" in done.stderr
    assert done.stderr.count("\n") == 1
