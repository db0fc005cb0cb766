"""The snapshot handle: states of a store, answers kept by generation, and the live file left alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import msgspec
import pytest

from harness.core.errors import StoreError
from harness.store import Store, sync
from leaderboard.columns import COLUMNS, cells, column, interval_text, rank_text, text
from leaderboard.data import MOST_ANSWERS, Board
from leaderboard.exports import table_bytes

ROOT = Path(__file__).resolve().parents[2]


def count_runs(con, more=0):
    count_runs.calls += 1
    return con.execute("SELECT count(*) FROM runs").fetchone()[0] + more


@pytest.fixture(autouse=True)
def _fresh_counter():
    count_runs.calls = 0


@pytest.mark.parametrize(
    ("name", "kind", "says"),
    [
        ("missing_store", "missing", "harness run --task"),
        ("empty_store", "empty", "harness run --task"),
        ("running_store", "waiting", "harness store sync"),
        ("newer_store", "unreadable", "pip install -U bridge-harness"),
        ("one_store", "ready", ""),
    ],
)
def test_every_state_says_what_to_do(request, name, kind, says):
    state = Board(request.getfixturevalue(name)).state()
    assert state.kind == kind
    assert says in f"{state.what} {state.command}"


def test_a_broken_pointer_and_a_broken_snapshot_are_words(store, write):
    write(store, [1.0])
    sync(store)
    good = store.current_file.read_bytes()
    store.current_file.write_bytes(b"{")
    assert Board(store).state().kind == "unreadable"
    store.current_file.write_bytes(good)
    name = msgspec.json.decode(good)["file"]
    (store.published / name).write_bytes(b"not a database at all" * 1000)
    state = Board(store).state()
    assert state.kind == "unreadable"
    assert "\n" not in state.what


def test_the_same_question_is_asked_once_a_generation(store, write):
    write(store, [1.0])
    sync(store)
    board = Board(store)
    assert [board.ask(count_runs), board.ask(count_runs), board.ask(count_runs, more=1)] == [
        1,
        1,
        2,
    ]
    assert count_runs.calls == 2
    write(store, [1.0])
    sync(store)
    assert [board.ask(count_runs), board.ask(count_runs, more=1)] == [2, 3]
    assert count_runs.calls == 4


def test_answers_do_not_pile_up(one_store):
    board = Board(one_store)
    for i in range(MOST_ANSWERS + 10):
        board.ask(count_runs, i)
    assert len(board._answers) == MOST_ANSWERS
    board.ask(count_runs, MOST_ANSWERS + 9)  # used last: still there
    board.ask(count_runs, 0)  # used first: gone
    assert count_runs.calls == MOST_ANSWERS + 11


def test_an_older_connection_goes_on_with_its_own_generation(store, write):
    write(store, [1.0])
    sync(store)
    board = Board(store)
    old = board.connect()
    write(store, [1.0])
    sync(store)
    assert (count_runs(old), count_runs(board.connect())) == (1, 2)


def test_the_live_database_is_not_opened_and_may_be_held_by_a_writer(store, write):
    write(store, [1.0])
    sync(store)
    # Another process holds the live file for writing: whoever opened it would fail.
    code = (
        "import duckdb, sys; con = duckdb.connect(sys.argv[1]); print('held', flush=True); input()"
    )
    held = subprocess.Popen(
        [sys.executable, "-P", "-c", code, str(store.database)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert held.stdout.readline() == "held\n"
        with pytest.raises(duckdb.IOException):
            duckdb.connect(str(store.database), read_only=True)
        board = Board(store)
        assert board.state().kind == "ready"
        assert board.ask(count_runs) == 1
    finally:
        held.communicate("\n")


def test_no_module_of_the_site_names_the_live_database():
    for path in (ROOT / "leaderboard").rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        assert "store.duckdb" not in source, path
        assert ".database" not in source, path


def test_asking_without_a_snapshot_is_an_error_in_words(empty_store):
    with pytest.raises(StoreError, match="no published results yet"):
        Board(empty_store).ask(count_runs)


def test_a_store_that_appears_later_is_seen(tmp_path, write):
    board = Board(Store(tmp_path / "later"))
    assert board.state().kind == "missing"
    store = Store.open(tmp_path / "later")
    assert board.state().kind == "empty"
    write(store, [1.0])
    assert board.state().kind == "waiting"
    sync(store)
    assert board.state().kind == "ready"


def test_columns_say_what_they_are():
    for name, what in COLUMNS.items():
        assert what.title, name
        assert what.help.endswith((".", "…")), name
    assert column("latency_ms").tooltip() == "Median time of a call. In ms. Lower is better."
    assert column("many/task0").title == "many/task0"


def test_cells_are_written_for_people():
    row = {
        "rank_lo": 3,
        "rank_hi": 3,
        "value": 1.0,
        "lo": 0.9,
        "hi": 1.1,
        "n_planned": 8,
        "error": 2,
    }
    assert rank_text(row) == "3"
    assert interval_text(row) == "90.0 – 100.0"
    assert interval_text(row | {"lo": None}) == "–"
    # a share of nothing is no number
    assert cells([row, row | {"n_planned": 0}], ["error_rate"]) == {"error_rate": [0.25, None]}
    assert text(1234.5, "number") == "1,234"


def test_files_hold_the_same_values():
    import io

    import pyarrow.parquet as pq

    rows = [
        {"model": 'a "quoted", name', "value": 0.1 + 0.2, "n": 3, "flags": ["x", "y"]},
        {"model": "zwei\nZeilen", "value": None, "n": 0, "flags": []},
    ]
    facts = {"generation": "7"}
    as_json = msgspec.json.decode(table_bytes(rows, "json", facts=facts))
    as_parquet = pq.read_table(io.BytesIO(table_bytes(rows, "parquet", facts=facts))).to_pylist()
    assert as_json == as_parquet == [row | facts for row in rows]
    import csv

    lines = list(
        csv.DictReader(io.StringIO(table_bytes(rows, "csv", facts=facts).decode(), newline=""))
    )
    assert [line["model"] for line in lines] == [row["model"] for row in rows]
    assert float(lines[0]["value"]) == rows[0]["value"]
    assert (lines[0]["flags"], lines[1]["value"], lines[1]["generation"]) == ("x; y", "", "7")
    with pytest.raises(ValueError, match="csv, parquet or json"):
        table_bytes(rows, "xls")
