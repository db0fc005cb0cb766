"""Start-up time and memory: what is imported when."""

from __future__ import annotations

WATCHED = "print(sorted({'duckdb', 'pyarrow', 'numpy', 'pandas'} & set(sys.modules)))"
INGEST = """
import sys
from pathlib import Path
from harness.store import Store, snapshot, sync
from harness.store import queries
store = Store(Path(sys.argv[1]))
sync(store)
con = snapshot(store)
run = store.run_ids()[0]
queries.counts(con, run), queries.attempts(con, run), queries.usage(con, run)
queries.item_values(con, run, "accuracy"), queries.sample(con, store, run, "i0")
queries.answers_for_keys(con, store, ["0" * 64])
"""


def test_importing_the_store_imports_no_database(python):
    code = f"import sys, harness.store, harness.store.care, harness.store.queries; {WATCHED}"
    assert python(code).communicate()[0] == "[]\n"


def test_a_run_needs_neither_arrow_nor_numpy(store, build, python):
    build.run(store)
    out, err = python(INGEST + WATCHED, store.root).communicate()
    assert out == "['duckdb']\n", err
