"""`harness audit` on the benchmarks' own files, against facts counted from the raw files."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

from harness.runner.audit import audit
from harness.runner.audit_text import numbers, shingles

UPSTREAM = Path(__file__).resolve().parents[3] / "shared" / "upstream"
GSM8K = UPSTREAM / "gsm8k"
AICRYPTO = UPSTREAM / "aicrypto"


def checks(task, folder):
    if not folder.is_dir():
        pytest.skip(f"needs ../shared/upstream/{folder.name}")
    return {check.name: check for check in audit(task, data_root=str(folder)).checks}


@pytest.fixture(scope="module")
def gsm8k():
    return checks("gsm8k", GSM8K)


@pytest.fixture(scope="module")
def rows(gsm8k):
    return [json.loads(line) for line in (GSM8K / "test.jsonl").read_text().splitlines()]


def test_gsm8k_is_sound(gsm8k):
    assert [c.why for c in gsm8k.values() if c.verdict != "ok"] == []


def test_the_most_frequent_reference_is_that_of_the_raw_file(gsm8k, rows):
    keys = Counter(row["answer"].rsplit("####", 1)[1].strip() for row in rows)
    text, count = keys.most_common(1)[0]
    assert f"always {text!r} is right in {count} of 1319" in gsm8k["frequent_answer"].why
    assert gsm8k["constant_answer"].value == max(keys[t] for t in "012") / 1319


def test_templates_are_those_of_all_869_221_comparisons(gsm8k, rows):
    sets = [shingles(row["question"], mask=True) for row in rows]
    pairs = [
        (i, j)
        for (i, a), (j, b) in combinations(enumerate(sets), 2)
        if not a.isdisjoint(b) and len(a & b) / len(a | b) >= 0.5
    ]
    near = [
        (i, j) for i, j in pairs if numbers(rows[i]["question"]) == numbers(rows[j]["question"])
    ]
    items = {i for pair in pairs for i in pair}
    assert gsm8k["templates"].value == len(items) / 1319
    assert gsm8k["near_duplicates"].value == len(near)
    for i, j in pairs:
        assert f"test-{i + 1:04d} ~ test-{j + 1:04d}" in gsm8k["templates"].why


def test_a_planted_twin_is_found_among_all_of_them(tmp_path, rows):
    """A copy with its first letter dropped, and a copy with another key."""
    copy = rows[700] | {"question": rows[700]["question"][1:]}
    clash = rows[900] | {"answer": re.sub(r"#### .*", "#### 123456", rows[900]["answer"])}
    text = "\n".join(json.dumps(row) for row in [*rows, copy, clash])
    (tmp_path / "test.jsonl").write_text(text)
    found = checks("gsm8k", tmp_path)
    assert found["near_duplicates"].verdict == "warn"
    assert "test-0701 ~ test-1320" in found["near_duplicates"].why
    assert found["duplicates"].verdict == "fail"
    assert "different keys: test-0901 = test-1321" in found["duplicates"].why


def test_the_sample_of_aicrypto_counted_from_the_raw_file():
    """One right option: ids 0, 23, 67, 71, 82, 109 with keys 3, 3, 2, 2, 2, 1; two others several."""
    found = checks("aicrypto/mcq", AICRYPTO)
    raw = json.loads((AICRYPTO / "data/mcqs/aicrypto_mcqs.json").read_text())
    keys = Counter(row["answer"][0] for row in raw if len(row["answer"]) == 1)
    best, count = max(keys.items(), key=lambda x: (x[1], -x[0]))
    assert found["constant_answer"].value == count / len(raw)
    assert f"always option {best} (from 0) is right in {count} of 8" in found["constant_answer"].why
    assert (best, count) == (2, 3)
    longest = sum(
        max(range(len(r["choice"])), key=lambda k, r=r: len(r["choice"][k])) == r["answer"][0]
        for r in raw
        if len(r["answer"]) == 1
    )
    shortest = sum(
        min(range(len(r["choice"])), key=lambda k, r=r: len(r["choice"][k])) == r["answer"][0]
        for r in raw
        if len(r["answer"]) == 1
    )
    assert found["option_length"].value in (
        longest / sum(keys.values()),
        shortest / sum(keys.values()),
    )
    assert found["gold"].value == 1.0


def test_the_three_keys_that_are_wrong_are_named():
    """Recomputed by others' mathematics: 89 mod 273; runs of an m-sequence; phi(phi(243)) = 54."""
    found = checks("aicrypto/mcq", AICRYPTO)["known_faults"]
    assert (found.verdict, found.value) == ("warn", 3 / 8)
    assert "3 of 8 (37.5 %): mcq-023, mcq-071, mcq-109" in found.why
