"""`harness doctor`: what is missing is said with its cure, what is broken gives exit code 1."""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from harness.cli import doctor
from harness.cli.main import main
from harness.core.registry import Entry, Need


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A PATH of our own: give a program's name and the body of its shell script."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def add(name: str, body: str) -> None:
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)

    return add


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a Python module that can be imported."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def add(name: str, body: str) -> None:
        (tmp_path / f"{name}.py").write_text(body)

    return add


def test_the_report_is_strict_json_with_the_keys_of_the_contract(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HARNESS_DATA", str(tmp_path / "data"))
    code = main(["doctor", "--json", "--store", str(tmp_path / "store")])
    report = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert code == 0
    assert {"isolation", "engines", "backends"} <= set(report)
    assert report["isolation"]["level"] in ("none", "userns", "full-nocg", "full")
    assert isinstance(report["isolation"]["missing"], list)
    assert report["isolation"]["why"]
    engines = {engine["name"]: engine for engine in report["engines"]}
    assert set(engines) == {"python", "duckdb", "klayout", "ngspice", "bwrap", "espeak-ng", "libGL"}
    for engine in engines.values():
        assert set(engine) >= {"name", "version", "ok", "install"}
        assert engine["ok"] or engine["install"].startswith("sudo apt-get install ")
    assert engines["python"]["version"] == ".".join(map(str, sys.version_info[:3]))
    assert engines["duckdb"]["version"] == version("duckdb")
    backends = {backend["name"]: backend for backend in report["backends"]}
    assert backends["mock"]["ok"]
    assert version("torch") in backends["hf"]["version"]
    models = {model["name"]: model for model in report["models"]}
    assert models["hf:tiny"]["state"] == "ready"
    assert models["gguf:smollm2"]["state"] == "unavailable"
    folders = {disk["name"]: disk for disk in report["disk"]}
    assert folders["store"]["folder"] == str(tmp_path / "store")
    assert (folders["data"]["exists"], folders["data"]["free_bytes"] > 0) == (False, True)
    assert report["torch"]["version"] == version("torch")
    assert not (tmp_path / "store").exists()  # looking makes nothing


def test_a_program_says_its_version_or_how_to_get_it(programs):
    programs("ngspice", "echo '******'; echo '** ngspice-45.2 : Circuit level simulation'")
    found = doctor.program("ngspice", ("--version",), "ngspice")
    assert (found.version, found.ok, found.broken) == ("45.2", True, False)
    missing = doctor.program("bwrap", ("--version",), "bubblewrap")
    assert (missing.ok, missing.broken) == (False, False)
    assert missing.install == "sudo apt-get install bubblewrap"


def test_a_program_that_is_there_and_fails_is_broken(programs, monkeypatch):
    programs("ngspice", "echo 'libX.so.6: cannot open' >&2; exit 127")
    found = doctor.program("ngspice", ("--version",), "ngspice")
    assert (found.ok, found.broken, found.why) == (False, True, "libX.so.6: cannot open")
    monkeypatch.setattr(doctor, "TIMEOUT", 0.2)
    programs("klayout", "while :; do :; done")
    assert "no answer within 0.2 s" in doctor.program("klayout", ("-v",), "klayout").why


@pytest.fixture
def look_again():
    """Forget which sandbox works here, before and after."""
    from harness.sandbox import levels

    for step in (1, 2):
        levels._attempt.cache_clear()
        levels._automatic.cache_clear()
        if step == 1:
            yield


def test_isolation_is_what_was_tried(programs, look_again):
    found = doctor.isolation()  # on a PATH with nothing
    assert found["level"] == "none"
    assert "sudo apt-get install bubblewrap" in found["why"]
    assert [(check.ok, check.broken) for check in doctor.sandbox()] == [(False, False)]


def test_isolation_that_does_not_start_is_none(programs, look_again):
    # On PATH is not enough: where user namespaces are forbidden it cannot work.
    import shutil

    for name in ("bash", "prlimit", "setpriv", "unshare", "nsenter", "mount", "cat"):
        programs(name, f'exec {shutil.which(name, path="/usr/bin:/bin")} "$@"')
    programs("bwrap", "echo 'bwrap: No permissions to create a new namespace' >&2; exit 1")
    found = doctor.isolation()
    assert found["level"] == "none"
    assert "No permissions" in found["why"]


def test_the_sandbox_shows_that_it_holds():
    checks = doctor.sandbox()
    if doctor.isolation()["level"] == "none":
        assert [check.ok for check in checks] == [False]
        return
    assert [check.name.removeprefix("sandbox: ") for check in checks] == [
        "empty program", "Python cell", "memory limit", "network refused", "file hidden",
    ]  # fmt: skip
    assert all(check.ok for check in checks), checks


def test_a_fence_that_does_not_hold_is_broken():
    """Planted fault: at level limits a program reads the machine's files."""
    from harness.sandbox import reach
    from harness.sandbox.selftest import self_test

    probes = {probe.name: probe.ok for probe in self_test(reach("limits"))}
    assert (probes["empty program"], probes["memory limit"]) == (True, True)
    assert not probes["file hidden"]


def test_a_package_is_there_missing_or_broken(module):
    module("half_installed_a", "import half_installed_b_which_is_not_there")
    module("half_installed_c", "raise OSError('libcudart.so: cannot open')")
    good, missing, needs, raises = (
        doctor.package(name, "pip install x")
        for name in ("msgspec", "not_there_at_all", "half_installed_a", "half_installed_c")
    )
    assert (good.ok, good.version) == (True, version("msgspec"))
    assert (missing.ok, missing.broken, missing.install) == (False, False, "pip install x")
    assert (needs.broken, raises.broken) == (True, True)
    assert "half_installed_b_which_is_not_there" in needs.why
    assert "libcudart" in raises.why


def test_a_backend_tells_what_it_lacks_and_what_is_broken(module):
    module("half_installed_d", "raise OSError('torn')")
    need = Need("package", "not_there_at_all", "pip install x")
    lacking = doctor.backend(Entry(name="a", target="json:loads", needs=(need,)))
    assert (lacking.ok, lacking.broken, lacking.install) == (False, False, "pip install x")
    torn = Need("package", "half_installed_d", "pip install y")
    assert doctor.backend(Entry(name="b", target="json:loads", needs=(torn,))).broken
    gone = doctor.backend(Entry(name="c", target="json:lods"))
    assert (gone.broken, "lods" in gone.why) == (True, True)
    assert doctor.backend(Entry(name="d", target="json:loads")).ok


@pytest.mark.parametrize("broken", [False, True])
def test_the_exit_code_is_about_what_is_installed(programs, capsys, monkeypatch, broken):
    monkeypatch.setattr(doctor, "entries", lambda _kind: {})
    monkeypatch.setattr(doctor, "torch_facts", lambda: None)
    if broken:
        programs("ngspice", "exit 3")
    assert main(["doctor"]) == int(broken)
    out, err = capsys.readouterr()
    assert "sudo apt-get install klayout" in out
    assert ("ngspice is broken" in err) is broken


def test_a_broken_file_of_model_cards_shows(tmp_path, monkeypatch):
    path = tmp_path / "models.toml"
    path.write_text('["hf:tiny"]\nparms = 1\n')
    monkeypatch.setenv("HARNESS_MODELS", str(path))
    found = doctor.cards()
    assert (found.broken, "unknown key 'parms'" in found.why) == (True, True)


def test_batches_agree_and_a_planted_fault_is_seen(monkeypatch):
    from harness.backends.hf import HfBackend

    assert doctor.batches().ok
    generate, loglikelihood = HfBackend.generate, HfBackend.loglikelihood

    def padded_on_the_wrong_side(self, requests):
        outputs = generate(self, requests)
        if len(requests) > 1:
            outputs[0].text = outputs[-1].text + "."
        return outputs

    monkeypatch.setattr(HfBackend, "generate", padded_on_the_wrong_side)
    found = doctor.batches()
    assert (found.broken, found.why) == (True, "other texts: padding is wrong")
    monkeypatch.setattr(HfBackend, "generate", generate)

    def leaking(self, requests):
        outputs = loglikelihood(self, requests)
        for output in outputs if len(requests) > 1 else ():
            output.choice_logprobs = tuple(x + 2e-4 for x in output.choice_logprobs)
        return outputs

    monkeypatch.setattr(HfBackend, "loglikelihood", leaking)
    assert doctor.batches().broken


def test_doctor_imports_nothing_heavy_before_it_is_asked():
    source = Path(doctor.__file__).read_text(encoding="utf-8")
    head = source.split("class Check", 1)[0]
    assert "torch" not in head
