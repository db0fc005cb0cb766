import pytest

from harness.core import registry
from harness.core.errors import HarnessError, UsageError
from harness.core.registry import Entry, Need


def test_unknown_names_are_answered_with_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'gsm8k'"):
        registry.find("tasks", "gsm8")
    with pytest.raises(UsageError, match="unknown strategy 'sampel': did you mean 'sample'"):
        registry.find("strategies", "sampel")


def test_a_group_is_all_its_tasks_once():
    names = [e.name for e in registry.expand_tasks(["gsm8k", "aicrypto", "aicrypto/mcq"])]
    assert names[0] == "gsm8k"
    assert "aicrypto/mcq" in names
    assert len(names) == len(set(names))


def test_state_tells_what_is_missing_and_how_to_get_it():
    program = Need("program", "no-such-program-anywhere", "sudo apt-get install it")
    assert Entry(name="x", target="m:o", needs=(program,)).state() == (
        "unavailable", "no-such-program-anywhere is missing: sudo apt-get install it",
    )  # fmt: skip
    assert Entry(name="x", target="m:o", needs=(Need("package", "json", ""),)).state()[0] == "ready"
    assert Entry(name="x", target="m:o", untested="no GPU here").state() == (
        "untested", "no GPU here",
    )  # fmt: skip


def test_a_broken_plug_in_is_named():
    with pytest.raises(HarnessError, match=r"cannot load 'x' from harness\.core\.spec:nothing"):
        Entry(name="x", target="harness.core.spec:nothing").load()


def test_decorated_objects_are_found(monkeypatch):
    monkeypatch.setattr(registry, "_decorated", {})

    @registry.scorer("local", summary="made here")
    def local():
        return None

    assert registry.find("scorers", "local").load() is local
    assert "local" in {row["name"] for row in registry.listing("scorers")}
