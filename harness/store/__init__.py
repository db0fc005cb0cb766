"""The store: journals, the ingester, snapshots and the questions asked of them.

A run writes its `Journal`; `sync` (or an `Ingester` in the background) moves journals into the
database and publishes; readers ask `queries` over a `snapshot`. DuckDB is imported on first use.
"""

from __future__ import annotations

from harness.store.ingest import Ingester, SyncReport, sync
from harness.store.journal import Journal, read_records, tail
from harness.store.layout import Store, new_run_id
from harness.store.publish import publish, snapshot

__all__ = [
    "Ingester",
    "Journal",
    "Store",
    "SyncReport",
    "new_run_id",
    "publish",
    "read_records",
    "snapshot",
    "sync",
    "tail",
]
