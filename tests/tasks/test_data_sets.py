"""Rows of a data set on this disk: the same items as from files, the same checks, errors by row."""

from __future__ import annotations

import hashlib
import json

import datasets
import msgspec
import pytest

from harness.core.errors import UsageError
from harness.core.task import TaskRequest, build, make_task
from harness.core.types import Output
from tasks.readers import read_table

ROWS = [
    {
        "question": f"Ann has {n} pens and buys {n} more. How many?",
        "answer": f"{n}+{n}\n#### {2 * n}",
    }
    for n in (3, 5, 1000)
]
CHOICES = [
    {"id": 3, "question": "Which?", "choice": ["a", "b", "c"], "answer": [1], "label": "x"},
    {"id": 9, "question": "What?", "choice": ["d", "e"], "answer": [0, 1], "label": "y"},
]


@pytest.fixture(autouse=True)
def quiet():
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def as_lines(folder, rows):
    folder.mkdir()
    (folder / "test.jsonl").write_text(lines(rows))


def as_parquet(folder, rows):
    folder.mkdir()
    datasets.Dataset.from_list(rows).to_parquet(folder / "test-00000-of-00001.parquet")


def as_saved(folder, rows):
    datasets.Dataset.from_list(rows).save_to_disk(folder)


def as_saved_splits(folder, rows):
    other = [{**row, "question": "another one"} for row in rows]
    splits = {"train": other, "test": rows, "dev": other[:1]}
    made = {name: datasets.Dataset.from_list(of) for name, of in splits.items()}
    datasets.DatasetDict(made).save_to_disk(folder)


FORMS = [as_lines, as_parquet, as_saved, as_saved_splits]


def refused(task, data, **request):
    with pytest.raises(UsageError) as error:
        make_task(task, TaskRequest(data=data, **request))
    assert "\n" not in str(error.value)
    return str(error.value)


def values(task, text_of):
    score = build("scorers", task.scorer)
    return [score(sample, Output(text=text_of(sample))).value for sample in task.samples]


# --- the same as from files ---


@pytest.mark.parametrize("write", FORMS)
def test_gsm8k_is_the_same_task_from_a_data_set_and_from_its_file(write, tmp_path):
    (tmp_path / "test.jsonl").write_text(lines(ROWS))
    write(tmp_path / "set", ROWS)
    file = make_task("gsm8k", TaskRequest(data_root=tmp_path))
    read = make_task("gsm8k", TaskRequest(data=f"hub:{tmp_path / 'set'}"))
    assert list(read.samples) == list(file.samples)
    assert read.content_hash() == file.content_hash()
    assert values(read, read.gold) == [1.0] * 3
    assert values(read, lambda _: "#### 10") == values(file, lambda _: "#### 10") == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("write", FORMS)
def test_mcq_is_the_same_task_from_a_data_set_and_from_its_file(write, tmp_path):
    (tmp_path / "aicrypto_mcqs.json").write_text(json.dumps(CHOICES))
    write(tmp_path / "set", CHOICES)
    file = make_task("aicrypto/mcq", TaskRequest(data_root=tmp_path))
    read = make_task("aicrypto/mcq", TaskRequest(data=f"hub:{tmp_path / 'set'}"))
    assert list(read.samples) == list(file.samples)
    assert [s.item_id for s in read.samples] == ["mcq-003", "mcq-009"]
    assert values(read, read.gold) == [1.0, 1.0]


def test_a_csv_is_read_and_other_columns_are_left_alone(tmp_path):
    rows = [{**row, "item_id": f"x{n}", "extra": n} for n, row in enumerate(ROWS)]
    datasets.Dataset.from_list(rows).to_csv(tmp_path / "test.csv")
    task = make_task("gsm8k", TaskRequest(data=f"hub:{tmp_path}"))
    assert [s.item_id for s in task.samples] == ["x0", "x1", "x2"]
    assert [s.target for s in task.samples] == [("6",), ("10",), ("2000",)]


# --- what was read is said ---


def test_the_task_says_what_was_read(tmp_path):
    as_saved_splits(tmp_path / "set", ROWS)
    text = f"hub:{tmp_path / 'set'}?split=dev"
    task = make_task("gsm8k", TaskRequest(data=text))
    assert [s.item_id for s in task.samples] == ["dev-0001"]
    assert task.info["source"] == text
    assert task.info["data"] == {
        "name": str(tmp_path / "set"), "revision": None, "commit": None, "config": None,
        "split": "dev",
    }  # fmt: skip
    answer = ROWS[0]["answer"]
    row = {"answer": answer, "cluster_id": None, "item_id": None, "question": "another one"}
    written = json.dumps([row], separators=(",", ":"))  # keys in order, no spaces: canonical
    assert task.info["dataset_sha256"] == hashlib.sha256(written.encode()).hexdigest()
    assert "MIT" not in task.info["license"]


def test_the_digest_is_of_the_rows_and_not_of_their_form(tmp_path):
    digests = set()
    for write in FORMS:
        write(tmp_path / write.__name__, ROWS)
        task = make_task("gsm8k", TaskRequest(data=f"hub:{tmp_path / write.__name__}"))
        digests.add(task.info["dataset_sha256"])
    assert len(digests) == 1
    as_lines(tmp_path / "other", [*ROWS[1:], ROWS[0]])
    task = make_task("gsm8k", TaskRequest(data=f"hub:{tmp_path / 'other'}"))
    assert task.info["dataset_sha256"] not in digests


def test_a_file_that_changes_under_the_same_time_stamp_is_read_anew(tmp_path):
    import os

    as_lines(tmp_path / "set", ROWS)
    path = tmp_path / "set/test.jsonl"
    stamp = path.stat()
    first = make_task("gsm8k", TaskRequest(data=f"hub:{tmp_path / 'set'}"))
    path.write_text(lines(ROWS).replace("Ann", "Eva"))
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    second = make_task("gsm8k", TaskRequest(data=f"hub:{tmp_path / 'set'}"))
    assert first.samples[0].input.startswith("Ann")
    assert second.samples[0].input.startswith("Eva")


# --- which split ---


def test_the_only_split_is_taken_and_of_several_the_test_split(tmp_path):
    (tmp_path / "rows.jsonl").write_text(lines(ROWS))
    task = make_task("gsm8k", TaskRequest(data=f"hub:{tmp_path}"))
    assert [s.item_id for s in task.samples] == ["train-0001", "train-0002", "train-0003"]
    (tmp_path / "rows.jsonl").rename(tmp_path / "train.jsonl")
    (tmp_path / "validation.jsonl").write_text(lines(ROWS[:1]))
    assert refused("gsm8k", f"hub:{tmp_path}").endswith("say ?split=NAME, one of train, validation")
    (tmp_path / "test.jsonl").write_text(lines(ROWS[:2]))
    task = make_task("gsm8k", TaskRequest(data=f"hub:{tmp_path}"))
    assert [s.item_id for s in task.samples] == ["test-0001", "test-0002"]


def test_a_missing_split_is_named(tmp_path):
    as_saved_splits(tmp_path / "set", ROWS)
    said = refused("gsm8k", f"hub:{tmp_path / 'set'}?split=tset")
    assert "unknown split 'tset': did you mean 'test'?" in said
    as_saved(tmp_path / "plain", ROWS)
    assert "unknown split 'test'" in refused("gsm8k", f"hub:{tmp_path / 'plain'}?split=test")
    assert "has no configs" in refused("gsm8k", f"hub:{tmp_path / 'plain'}?config=main")


# --- planted faults ---


def test_a_wrong_column_is_named_with_those_that_are_there(tmp_path):
    as_lines(tmp_path / "set", [{"problem": "2+2", "answer": "#### 4"}])
    data = f"hub:{tmp_path / 'set'}"
    assert refused("gsm8k", data) == (
        f"--data {data}, split test has no column 'question': its columns are problem, answer"
    )


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"question": None}, "field 'question': expected str, got null"),
        ({"answer": "4"}, "field 'answer': has no line \"#### number\""),
        ({"item_id": "a"}, " (item a): field 'item_id': is used twice"),
    ],
)
def test_a_bad_row_is_named(row, why, tmp_path):
    good = {**ROWS[0], "item_id": "a"}
    as_lines(tmp_path / "set", [good, {**ROWS[1], "item_id": None, **row}])
    data = f"hub:{tmp_path / 'set'}"
    said = refused("gsm8k", data)
    assert said.startswith(f"--data {data}, split test: row 2")
    assert said.endswith(why)


def test_columns_of_a_wrong_type_are_refused(tmp_path):
    as_parquet(tmp_path / "numbers", [{"question": "2+2", "answer": 4}])
    said = refused("gsm8k", f"hub:{tmp_path / 'numbers'}?split=test")
    assert said.endswith("?split=test: row 1: field 'answer': expected str, got int")
    as_parquet(tmp_path / "choices", [{**CHOICES[0], "answer": ["1"]}])
    said = refused("aicrypto/mcq", f"hub:{tmp_path / 'choices'}")
    assert said.endswith("row 1 (item 3): field 'answer[0]': expected int, got str")


def test_what_types_cannot_say_is_checked_too(tmp_path):
    as_parquet(tmp_path / "far", [CHOICES[0], {**CHOICES[1], "answer": [2]}])
    said = refused("aicrypto/mcq", f"hub:{tmp_path / 'far'}")
    assert said.endswith("row 2 (item 9): field 'answer': index 2 is out of range 0 to 1")
    as_parquet(tmp_path / "twice", [CHOICES[0], {**CHOICES[1], "id": 3}])
    said = refused("aicrypto/mcq", f"hub:{tmp_path / 'twice'}")
    assert said.endswith("row 2 (item 3): field 'id': 3 is used twice")


def test_not_a_number_is_no_number(tmp_path):
    class Row(msgspec.Struct):
        minutes: float

    as_parquet(tmp_path / "set", [{"minutes": 1.5}, {"minutes": float("nan")}])
    with pytest.raises(UsageError, match=r"row 2: field 'minutes': expected float, got null"):
        read_table(TaskRequest(data=f"hub:{tmp_path / 'set'}"), Row, "", lambda root: root)


def test_nothing_to_read_is_said(tmp_path, capfd):
    text = datasets.Value("string")
    features = datasets.Features({"question": text, "answer": text})
    nothing = datasets.Dataset.from_dict({"question": [], "answer": []}, features=features)
    nothing.save_to_disk(tmp_path / "saved")
    assert "it has no rows" in refused("gsm8k", f"hub:{tmp_path / 'saved'}")
    folder = tmp_path / "folder"
    folder.mkdir()
    assert "cannot be read" in refused("gsm8k", f"hub:{folder}")
    (folder / "test.jsonl").write_text("")
    assert "has no rows" in refused("gsm8k", f"hub:{folder}")
    (folder / "test.jsonl").write_text('{"question": ')
    assert "JSON" in refused("gsm8k", f"hub:{folder}")
    assert capfd.readouterr() == ("", "")


def test_an_empty_split_is_named_and_does_not_spoil_the_others(tmp_path):
    whole = datasets.Dataset.from_list(ROWS)
    splits = datasets.DatasetDict({"test": whole, "dev": whole.select([])})
    splits.save_to_disk(tmp_path / "saved")
    (tmp_path / "parquet").mkdir()
    for name, of in splits.items():
        of.to_parquet(tmp_path / f"parquet/{name}.parquet")
    (tmp_path / "parquet/dev.parquet").rename(tmp_path / "parquet/validation.parquet")
    for form, empty in (("saved", "dev"), ("parquet", "validation")):
        data = f"hub:{tmp_path / form}"
        assert len(make_task("gsm8k", TaskRequest(data=data)).samples) == 3
        said = refused("gsm8k", f"{data}?split={empty}")
        assert said == f"--data {data}?split={empty}: {empty} has no rows: at least one is needed"


def test_code_beside_the_data_is_not_run(tmp_path):
    as_lines(tmp_path / "set", ROWS)
    (tmp_path / "set/set.py").write_text("raise SystemExit('code of a data set was run')")
    assert "scripts are no longer supported" in refused("gsm8k", f"hub:{tmp_path / 'set'}")


# --- who takes data sets ---


def test_a_task_that_takes_none_refuses(tmp_path, monkeypatch):
    from harness.core import registry
    from harness.core.task import Task

    def plain(request):
        return Task(
            name="plain", version="1", samples=[], prompt="", gold=str, guess=str, scorer="exact"
        )

    monkeypatch.setattr(registry, "_decorated", {})
    registry.task("plain")(plain)
    assert refused("plain", f"hub:{tmp_path}") == (
        "task 'plain' reads no data sets: leave --data out"
    )


def test_two_places_at_once_are_refused(tmp_path):
    assert "not both" in refused("gsm8k", f"hub:{tmp_path}", data_root=tmp_path)
