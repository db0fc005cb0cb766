"""Files of every form, recognised by what is in them."""

from __future__ import annotations

import json

import pytest

import irt
from irt.data import DataError, Responses

TABLE = {"model": ["a", "a", "b"], "item": ["p", "q", "q"], "k": [1, 0, 2], "n": [1, 1, 2]}
LONG = "model,item,k,n\nb,q,2,2\na,q,0,1\na,p,1,1\n"


@pytest.fixture
def expected():
    return Responses.from_table(TABLE).data_hash


def test_long_csv(tmp_path, expected):
    (tmp_path / "x.csv").write_text(LONG)
    assert irt.read(tmp_path / "x.csv").data_hash == expected


def test_long_csv_of_single_answers_needs_no_n(tmp_path):
    (tmp_path / "x.csv").write_text("k,item,model\n1,q,a\n0,p,a\n1,p,b\n")
    data = irt.read(tmp_path / "x.csv")
    assert (data.models, data.items) == (("a", "b"), ("p", "q"))
    assert (data.k.tolist(), data.n.tolist()) == ([[0, 1], [1, 0]], [[1, 1], [1, 0]])


def test_long_jsonl(tmp_path, expected):
    rows = [dict(zip(TABLE, row, strict=True)) for row in zip(*TABLE.values(), strict=True)]
    (tmp_path / "x.jsonl").write_text("\n\n".join(map(json.dumps, rows)))
    assert irt.read(tmp_path / "x.jsonl").data_hash == expected


def test_parquet(tmp_path, expected):
    import pyarrow as pa
    import pyarrow.parquet

    pa.parquet.write_table(pa.table(TABLE), tmp_path / "x.parquet")
    assert irt.read(tmp_path / "x.parquet").data_hash == expected


def test_wide_csv_and_pyirt_agree(tmp_path):
    (tmp_path / "x.csv").write_text("who,p,q\nb,,1\na,1,0\n")
    (tmp_path / "x.jsonl").write_text(
        '{"subject_id": "a", "responses": {"q": 0, "p": 1}}\n{"subject_id": "b", "responses": {"q": 1}}\n'
    )
    wide = irt.read(tmp_path / "x.csv")
    assert (wide.models, wide.items) == (("a", "b"), ("p", "q"))
    assert (wide.k.tolist(), wide.n.tolist()) == ([[1, 0], [0, 1]], [[1, 0], [1, 1]])
    assert wide.data_hash == irt.read(tmp_path / "x.jsonl").data_hash


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.csv", "model,item,k,n\na,p,2,1\n", "x.csv: k is more than n: row 1"),
        ("x.csv", "model,item,k\na,p\n", "x.csv: line 2 has 2 fields, the header has 3"),
        ("x.csv", "who,p\na,yes\n", "x.csv: a cell is not a number"),
        (
            "x.csv",
            "who,p\na,1\nb,nan\n",
            "x.csv: a cell is not a number: 'nan' in line 3; leave a cell empty",
        ),
        ("x.csv", "who,p\na, NaN\n", "x.csv: a cell is not a number: ' NaN' in line 2"),
        ("x.csv", "who,p\na,inf\n", "x.csv: not a finite number"),
        ("x.csv", "model,item,k\na,p,nan\n", "x.csv: not a finite number"),
        ("x.csv", "who\na\n", "x.csv: neither a long table"),
        ("x.csv", "", "x.csv: neither a long table"),
        ("x.csv", "who,p\na,0.5\n", "x.csv: not a whole number"),
        ("x.jsonl", "{", "x.jsonl: line 1 is not JSON"),
        ("x.jsonl", "[1]", "x.jsonl: line 1 is not a JSON object"),
        ("x.jsonl", '{"subject_id": "a"}', "x.jsonl: record 1 has no subject_id and responses"),
        ("x.jsonl", '{"subject_id": "a", "responses": {"p": 2}}', "x.jsonl: k is more than n"),
        ("x.txt", "", "x.txt: not one of .jsonl, .csv, .parquet"),
    ],
)
def test_faults_name_the_file(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=message):
        irt.read(tmp_path / name)


def test_fractions_from_a_file_when_declared(tmp_path):
    (tmp_path / "x.csv").write_text("who,p\na,0.5\n")
    assert irt.read(tmp_path / "x.csv", scores="fractional").k.tolist() == [[0.5]]


def test_pyirt_may_hold_declared_fractional_scores(tmp_path):
    lines = [
        json.dumps({"subject_id": f"m{j}", "responses": {"a": j / 4, "b": 0.5}}) for j in range(5)
    ]
    (tmp_path / "part.jsonl").write_text("\n".join(lines))
    found = irt.read(tmp_path / "part.jsonl", scores="fractional")
    assert (found.fractional, found.k.sum()) == (True, 5.0)


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.jsonl", '{"subject_id": "m", "responses": {"x": 1, "x": 0}}', "'x' stands twice"),
        ("a.csv", "model,item,k,k\nm,a,1,0\n", "a column stands twice"),
    ],
)
def test_what_stands_twice_is_not_dropped(tmp_path, name, text, why):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=why):
        irt.read(tmp_path / name)


def test_a_mark_of_byte_order_is_no_letter(tmp_path):
    rows = "model,item,k\n" + "".join(
        f"m{j},i{i},{(i + j) % 2}\n" for j in range(5) for i in range(3)
    )
    (tmp_path / "excel.csv").write_text("\ufeff" + rows, encoding="utf-8")
    assert irt.read(tmp_path / "excel.csv").n_cells == 15


def test_bytes_that_are_no_text_name_the_file(tmp_path):
    (tmp_path / "x.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match=r"cannot read x\.csv"):
        irt.read(tmp_path / "x.csv")
