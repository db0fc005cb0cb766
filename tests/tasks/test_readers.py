"""Broken item files: each fault is named with file, row and field, in one line."""

from __future__ import annotations

import hashlib
import json

import msgspec
import pytest

from harness.core.errors import UsageError
from tasks.readers import read_rows, row_error


class Row(msgspec.Struct):
    id: int
    question: str
    tags: list[str]


GOOD = {"id": 1, "question": "why?", "tags": ["a"]}


def _jsonl(folder, *lines):
    path = folder / "test.jsonl"
    path.write_text("\n".join(x if isinstance(x, str) else json.dumps(x) for x in lines))
    return path


def _json(folder, value):
    path = folder / "items.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value, indent=2))
    return path


def _message(path, row=Row):
    with pytest.raises(UsageError) as caught:
        read_rows(path, row)
    text = str(caught.value)
    assert "\n" not in text
    assert str(path) in text
    return text.removeprefix(f"cannot read {path}").removeprefix(str(path))


def test_lines_and_lists_read_the_same(tmp_path):
    lines, _ = read_rows(_jsonl(tmp_path, GOOD, GOOD), Row)
    listed, _ = read_rows(_json(tmp_path, [GOOD, GOOD]), Row)
    assert lines == listed == [Row(1, "why?", ["a"])] * 2


def test_the_digest_is_that_of_the_bytes(tmp_path):
    path = _jsonl(tmp_path, GOOD)
    assert read_rows(path, Row)[1] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_extra_fields_empty_lines_byte_order_marks_and_line_ends_are_fine(tmp_path):
    path = tmp_path / "test.jsonl"
    text = json.dumps({**GOOD, "year": 2026})
    path.write_bytes(b"\xef\xbb\xbf" + f"{text}\r\n\r\n  \n{text}".encode())
    assert len(read_rows(path, Row)[0]) == 2
    path = _json(tmp_path, [{**GOOD, "year": 2026}])
    assert len(read_rows(path, Row)[0]) == 1


MISSING = {"id": 1, "tags": []}
FAULTS = [
    (MISSING, "field 'question' is missing"),
    ({**GOOD, "question": 3}, "field 'question': expected str, got int"),
    ({**GOOD, "question": None}, "field 'question': expected str, got null"),
    ({**GOOD, "id": "1"}, "field 'id': expected int, got str"),
    ({**GOOD, "id": True}, "field 'id': expected int, got bool"),
    ({**GOOD, "tags": "a"}, "field 'tags': expected array, got str"),
    ({**GOOD, "tags": ["a", 2]}, "field 'tags[1]': expected str, got int"),
    ([1], "expected object, got array"),
]


@pytest.mark.parametrize(("row", "why"), FAULTS)
def test_a_bad_line_is_named(tmp_path, row, why):
    assert _message(_jsonl(tmp_path, GOOD, "", row, GOOD)) == f":3: {why}"


@pytest.mark.parametrize(("row", "why"), FAULTS)
def test_a_bad_row_of_a_list_is_named_with_its_id(tmp_path, row, why):
    name = f" (item {row['id']})" if isinstance(row, dict) else ""
    assert _message(_json(tmp_path, [GOOD, row, GOOD])) == f": row 2{name}: {why}"


def test_a_rows_own_name_goes_before_its_number(tmp_path):
    path = _json(tmp_path, [{**MISSING, "item_id": "own-7"}])
    assert _message(path) == ": row 1 (item own-7): field 'question' is missing"


def test_broken_json_is_named_by_line(tmp_path):
    assert _message(_jsonl(tmp_path, GOOD, '{"id": 2,')).startswith(":2: not valid JSON: ")
    assert _message(_json(tmp_path, '[\n{"id": 1},\n{"id": 2;}\n]')).startswith(
        ":3: not valid JSON: "
    )


def test_a_file_that_is_no_list_is_refused(tmp_path):
    assert _message(_json(tmp_path, GOOD)) == ":1: expected array, got object"


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "test.jsonl"
    path.write_bytes(b'{"id": 1, "question": "\xff", "tags": []}')
    assert _message(path) == ":1: not UTF-8 text"
    path = tmp_path / "items.json"
    path.write_bytes(b'[\n{"id": 1, "question": "\xff", "tags": []}]')
    assert _message(path) == ":2: not UTF-8 text"


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_a_file_without_rows_is_refused(tmp_path, text):
    assert "has no rows" in _message(_jsonl(tmp_path, text))
    assert "has no rows" in _message(_json(tmp_path, "[]"))


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    assert _message(tmp_path / "none.jsonl") == ": No such file or directory"
    assert _message(tmp_path) == ": Is a directory"


def test_faults_of_content_are_placed_like_faults_of_type(tmp_path):
    path = _jsonl(tmp_path, "", GOOD, "", GOOD)
    assert str(row_error(path, 1, "a-2", "id", "is used twice")) == (
        f"{path}:4 (item a-2): field 'id': is used twice"
    )
    path = _json(tmp_path, [GOOD, GOOD])
    assert str(row_error(path, 1, None, "id", "is used twice")) == (
        f"{path}: row 2: field 'id': is used twice"
    )
