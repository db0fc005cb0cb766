"""Op-CAD: three rows of the benchmark's results and its split, as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasks.op_cad.loader import place_of, read_results, read_split

DATA = Path(__file__).resolve().parents[3] / "shared" / "upstream" / "opcad" / "data"


@pytest.fixture(autouse=True)
def _there():
    if not DATA.is_dir():
        pytest.skip("needs ../shared/upstream/opcad")


def test_requests_that_timed_out_are_faults_of_the_service():
    rows = read_results(DATA / "test.csv")
    assert len(rows) == 3
    assert {len(row) for row in rows} == {36 + 1}  # and the class
    assert {row["class"] for row in rows} == {"api_fault"}
    assert place_of(rows[0]["group_index"]) == ("02664_index_127", 63)


def test_the_split_is_read():
    split = read_split(DATA / "split_result.json")
    assert sum(map(len, split.values())) == 10
