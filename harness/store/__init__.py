"""The store: journals, the ingester, snapshots and the questions asked of them.

A run writes its `Journal`; `sync` (or an `Ingester` in the background) moves journals into the
database and publishes; readers ask `queries` over a `snapshot`. DuckDB is imported on first use.
"""

from __future__ import annotations

import os

from harness.store.ingest import Ingester, SyncReport, sync
from harness.store.journal import Journal, read_records, tail
from harness.store.layout import Store, new_run_id
from harness.store.publish import snapshot

# Read by DuckDB's own allocator when it is first loaded: one arena for all threads, and what is
# freed goes back at once. Ingesting and summing up 10,000 samples then peak at 136 MB, not at 156.
os.environ.setdefault("DUCKDB_JE_MALLOC_CONF", "narenas:1,dirty_decay_ms:0,muzzy_decay_ms:0")

__all__ = [
    "Ingester",
    "Journal",
    "Store",
    "SyncReport",
    "new_run_id",
    "read_records",
    "snapshot",
    "sync",
    "tail",
]
