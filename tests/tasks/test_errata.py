"""The errata overlay: rows apply to exactly their record, and only while their check agrees."""

from __future__ import annotations

import hashlib
import json

import msgspec
import pytest

from harness.core import resources
from harness.core.errors import UsageError
from tasks.errata import apply_errata, read_errata, record_sha256

RECORD = {"question": "Which is 6 · 7?", "choice": ["41", "42", "43"], "answer": [0]}
CHECK = """
def product(record):
    return [record["choice"].index(str(6 * 7))]

def same_as_the_key(record):
    return record["answer"]
"""


class Row(msgspec.Struct):
    question: str
    choice: list[str]
    answer: list[int]
    item_id: str | None = None


def _sha256(record):
    """The hash as anyone can make it, without a line of ours."""
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def write(tmp_path):
    """Write an errata file of one row or more; a row is a working fix with some fields changed."""
    (tmp_path / "checks.py").write_text(CHECK)
    fix = {
        "benchmark": "toy", "item": "t-1", "sha256": _sha256(RECORD), "action": "fix", "key": [1],
        "check": f"{tmp_path}/checks.py:product", "reason": "6 times 7 is 42",
    }  # fmt: skip

    def make(*changes):
        path = tmp_path / "errata.toml"
        text = ""
        for change in changes:
            row = {name: value for name, value in (fix | change).items() if value is not None}
            text += "[[erratum]]\n"
            text += "".join(f"{k} = {json.dumps(v)}\n" for k, v in row.items())
        path.write_text(text)
        return path

    return make


def _found(path, record=RECORD, benchmark="toy", item="t-1"):
    return apply_errata(str(path), benchmark, {item: msgspec.convert(record, Row)})


DROP = {"action": "drop", "key": None, "check": None}
FLAG = {"action": "flag", "key": None, "check": None, "reason": "the unit is missing"}


def test_the_hash_is_that_of_the_records_own_json():
    assert record_sha256(msgspec.convert(RECORD, Row)) == _sha256(RECORD)
    named = RECORD | {"item_id": "naïve ∑"}
    assert record_sha256(msgspec.convert(named, Row)) == _sha256(named)


def test_a_fix_that_fits_is_applied_and_says_why(write):
    path = write({})
    errata = _found(path)
    assert errata.keys == {"t-1": (1,)}
    assert errata.faults == {"t-1": "fix: 6 times 7 is 42; computed: 1"}
    assert errata.info == {
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "rows": [{"item": "t-1", "action": "fix", "state": "applied", "reason": "6 times 7 is 42",
                  "key": (1,), "computed": (1,)}],
    }  # fmt: skip


@pytest.mark.parametrize(
    "change", [{"answer": [1]}, {"question": "Which is 6 x 7?"}, {"choice": ["42", "41", "43"]}]
)
@pytest.mark.parametrize("row", [{}, DROP, FLAG])
def test_planted_a_row_whose_hash_does_not_fit_is_reported_and_never_applied(write, change, row):
    errata = _found(write(row), RECORD | change)
    assert errata.keys == {}
    assert [f.state for f in errata.findings] == ["does_not_fit"]
    assert "is not applied, since it is about another record" in errata.faults["t-1"]


def test_planted_a_row_that_its_check_refutes_is_reported_and_never_applied(write, tmp_path):
    same = f"{tmp_path}/checks.py:same_as_the_key"
    for row in ({"key": [2]}, {"check": same, "key": [0]}, {**DROP, "check": same}):
        errata = _found(write(row))
        assert errata.keys == {}, row
        assert [f.state for f in errata.findings] == ["refuted"]
        assert "its check gives" in errata.faults["t-1"]


def test_a_drop_needs_no_check(write):
    assert _found(write(DROP)).keys == {"t-1": None}
    assert _found(write(DROP | {"check": None, "reason": "two are right"})).faults == {
        "t-1": "drop: two are right"
    }


def test_a_flag_changes_no_key(write):
    errata = _found(write({}, FLAG))
    assert errata.keys == {"t-1": (1,)}
    assert errata.faults["t-1"].endswith("computed: 1; flag: the unit is missing")
    assert _found(write(FLAG)).keys == {}


def test_other_benchmarks_and_items_that_are_not_there_are_nobodys_business(write):
    path = write({})
    assert _found(path, benchmark="other").findings == []
    assert _found(path, item="t-2").findings == []


def test_of_two_rows_for_two_versions_of_a_record_the_other_is_not_reported(write):
    """The same item stands in two copies of the data, and only one of them is here."""
    errata = _found(write({"sha256": "0" * 64}, {}))
    assert [f.state for f in errata.findings] == ["applied"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"key": None}, r"erratum 1 \(t-1\): a fix needs key and check"),
        ({"check": None}, r"erratum 1 \(t-1\): a fix needs key and check"),
        ({"action": "drop"}, "a drop has no key"),
        ({"action": "flag", "check": None}, "a flag has no key"),
        ({"action": "flag", "key": None}, "a flag has no check"),
        ({"action": "mend"}, r"erratum 1: Invalid enum value 'mend' - at `\$.action`"),
        ({"sha256": "abc"}, r"at `\$.sha256`"),
        ({"key": [-1]}, r"at `\$.key\[0\]`"),
        ({"item": "a:b"}, r"at `\$.item`"),
        ({"reason": ""}, r"at `\$.reason`"),
        ({"reason": None}, "missing required field `reason`"),
        ({"question": "Which?"}, "contains unknown field `question`"),
    ],
)
def test_a_row_that_makes_no_sense_is_refused(write, change, why):
    path = write(change)
    with pytest.raises(UsageError, match=why) as caught:
        read_errata(path)
    assert str(caught.value).startswith(str(path))


def test_two_corrections_of_one_record_are_refused(write):
    with pytest.raises(UsageError, match=r"erratum 2 \(t-1\): corrects a record that another row"):
        read_errata(write({}, DROP))


def test_a_file_that_is_no_toml_is_refused(tmp_path):
    path = tmp_path / "errata.toml"
    path.write_text("[[erratum]\n")
    with pytest.raises(UsageError, match=r"cannot read .*errata\.toml"):
        read_errata(path)


def test_the_errata_that_come_with_the_project_can_be_read():
    rows = read_errata(resources.data("aicrypto/errata.toml"))
    assert [(row.item, row.action) for row in rows] == [
        ("mcq-023", "fix"), ("mcq-071", "fix"), ("mcq-109", "fix"), ("mcq-109", "flag")
    ]  # fmt: skip
    for row in rows:
        if row.check:
            script, _, function = row.check.rpartition(":")
            assert f"def {function}(" in resources.data(script).read_text()
