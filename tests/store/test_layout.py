from __future__ import annotations

import errno
import tempfile

import pytest

from harness.core.errors import StoreError
from harness.store import Store, new_run_id


def test_store_is_option_then_variable_then_results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_STORE", str(tmp_path / "variable"))
    assert Store.open(str(tmp_path / "option")).root == tmp_path / "option"
    assert Store.open(None).root == tmp_path / "variable"
    monkeypatch.delenv("HARNESS_STORE")
    assert Store.open().root.resolve() == tmp_path / "results"


def test_store_that_is_only_read_must_exist(tmp_path):
    with pytest.raises(StoreError, match=r"no store at .*--store DIR"):
        Store.open(tmp_path / "none", create=False)
    assert not (tmp_path / "none").exists()


def test_folder_that_cannot_be_made_is_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match=r"cannot write to store .*choose another") as error:
        Store.open(tmp_path / "file" / "store")
    assert "\n" not in str(error.value)


def test_full_disk_is_found_by_writing(tmp_path, monkeypatch):
    def full(**_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(StoreError, match="No space left on device"):
        Store.open(tmp_path / "store")


def test_run_ids_sort_by_time_and_differ():
    ids = [new_run_id() for _ in range(200)]
    assert len(set(ids)) == 200
    assert [i[:21] for i in ids] == sorted(i[:21] for i in ids)


def test_only_folders_with_a_journal_are_runs(store, build):
    run_id = build.run(store)
    (store.runs / "empty").mkdir()
    assert store.run_ids() == [run_id]
