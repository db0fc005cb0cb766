"""Where everything of a store lies on disk.

::

    STORE/
      store.duckdb                    live database; opened only by the holder of store.lock
      store.lock
      runs/<run_id>/journal.jsonl     or journal.parquet once packed
                    text-000.parquet … quarantine.jsonl
      published/results-<generation>.duckdb   current.json
"""

from __future__ import annotations

import os
import secrets
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from harness.core.errors import StoreError, UsageError, unknown

DEFAULT = "results"
VARIABLE = "HARNESS_STORE"


def new_run_id() -> str:
    """Name a run: UTC time with microseconds and 8 random hex digits.

    Names sort by time and are unique without asking anyone.
    """
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{secrets.token_hex(4)}"


class Store:
    """The paths of one store; touches nothing by itself.

    Parameters
    ----------
    root : Path
        The store's folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def __repr__(self) -> str:
        return f"Store({str(self.root)!r})"

    @classmethod
    def open(cls, path: str | Path | None = None, create: bool = True) -> Store:
        """Find the store and make sure that it can be used.

        Parameters
        ----------
        path : str, Path or None
            What `--store` said; None means ``$HARNESS_STORE``, else ``./results``.
        create : bool
            Make the folders and write a file to prove that writing works. Without it the store
            must exist and is only read.

        Raises
        ------
        StoreError
            When there is no store (`create` false) or it cannot be written.
        """
        store = cls(Path(path or os.environ.get(VARIABLE) or DEFAULT))
        if not create:
            if not store.runs.is_dir():
                raise StoreError(f"no store at {store.root}; choose another with --store DIR")
            return store
        try:
            store.runs.mkdir(parents=True, exist_ok=True)
            store.published.mkdir(exist_ok=True)
            # Permissions alone do not tell: a full disk and a read-only mount show on writing.
            with tempfile.TemporaryFile(dir=store.root) as probe:
                probe.write(b"harness\n" * 512)
                probe.flush()
                os.fsync(probe.fileno())
        except OSError as error:
            raise StoreError(
                f"cannot write to store {store.root}: {error.strerror or error}; "
                "choose another with --store DIR"
            ) from error
        return store

    @property
    def database(self) -> Path:
        """The live database file."""
        return self.root / "store.duckdb"

    @property
    def lock_file(self) -> Path:
        """The file whose lock elects the ingester."""
        return self.root / "store.lock"

    @property
    def runs(self) -> Path:
        """The folder of all runs."""
        return self.root / "runs"

    @property
    def published(self) -> Path:
        """The folder of snapshots for readers."""
        return self.root / "published"

    @property
    def current_file(self) -> Path:
        """The file that names the newest snapshot."""
        return self.published / "current.json"

    def run_dir(self, run_id: str) -> Path:
        """Give the folder of a run."""
        return self.runs / run_id

    def journal(self, run_id: str) -> Path:
        """Give the path of a run's journal in its written form (it may be packed instead)."""
        return self.run_dir(run_id) / "journal.jsonl"

    def packed_journal(self, run_id: str) -> Path:
        """Give the path of a run's journal in its packed form."""
        return self.run_dir(run_id) / "journal.parquet"

    def quarantine(self, run_id: str) -> Path:
        """Give the path of the lines of a journal that could not be read."""
        return self.run_dir(run_id) / "quarantine.jsonl"

    def texts(self, run_id: str) -> list[Path]:
        """List the text parts of a run, in order."""
        return sorted(self.run_dir(run_id).glob("text-*.parquet"))

    def run_ids(self) -> list[str]:
        """List all runs that have a journal, oldest first."""
        if not self.runs.is_dir():
            return []
        return sorted(
            entry.name
            for entry in os.scandir(self.runs)
            if self.journal(entry.name).exists() or self.packed_journal(entry.name).exists()
        )


def find_run(store: Store, name: str) -> str:
    """Find a run by its id, the beginning of one, or its random part; ``last`` is the newest.

    Raises
    ------
    UsageError
        No such run, or several.
    """
    run_ids = store.run_ids()
    if name == "last" and run_ids:
        return run_ids[-1]
    matches = [r for r in run_ids if r.startswith(name) or r.endswith(f"-{name}")]
    if len(matches) == 1 or name in matches:
        return name if name in matches else matches[0]
    if matches:
        raise UsageError(f"run {name!r} is ambiguous: {', '.join(matches[:5])}")
    raise unknown("run", name, run_ids, "see `harness list runs`")
