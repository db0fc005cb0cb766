"""The Python API: the same as the command line, as functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.core.registry import listing
from harness.core.types import Score
from harness.runner.config import make_config
from harness.runner.lifecycle import start
from harness.runner.scoring import score_predictions
from harness.runner.summary import Summary, summarise
from harness.store.layout import Store
from harness.store.publish import snapshot

if TYPE_CHECKING:
    import pyarrow as pa


class Run:
    """A run in a store.

    Attributes
    ----------
    run_id : str
    store : Store
    """

    def __init__(self, run_id: str, store: Store) -> None:
        self.run_id = run_id
        self.store = store

    def __repr__(self) -> str:
        return f"Run({self.run_id!r})"

    def summary(self) -> Summary:
        """Counts, metrics with intervals and usage, read from the store."""
        return summarise(self.store, self.run_id)

    def samples(self) -> pa.Table:
        """Every attempt with its texts and headline score, one row each.

        Returns
        -------
        pyarrow.Table
            Columns `item_id`, `epoch`, `status`, `score_value`, `answer`, `prompt`, `output`, …
        """
        from harness.store.queries import samples_arrow

        return samples_arrow(snapshot(self.store), self.store, self.run_id)


def run(task: str, model: str, store: str | Path | None = None, **options: Any) -> Run:
    """Run one task on one model and keep every attempt.

    Parameters
    ----------
    task : str
        Task name, e.g. ``"aicrypto/mcq"``.
    model : str
        Model SPEC, e.g. ``"hf:tiny"`` or ``"mock:gold"``.
    store : path, optional
        Where results go; ``$HARNESS_STORE``, else ``./results`` by default.
    **options
        The options of ``harness run`` with underscores: `limit`, `epochs`, `seed`, `solver`,
        `args` (a dict), `data_root`, `data`, `max_tokens`, … (see `harness.runner.config.RunConfig`).

    Returns
    -------
    Run

    Raises
    ------
    harness.core.errors.UsageError
        The request is wrong; nothing was called.
    harness.core.errors.HarnessError
        The run had to stop; what was done is kept.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> done = run(task="gsm8k", model="mock:gold", store=folder, limit=5)
    >>> done.summary().metrics["accuracy"].value
    1.0
    >>> done.samples().num_rows
    5
    """
    opened = Store.open(store)
    summary = start(make_config(task=task, model=model, **options), opened)
    return Run(summary.run_id, opened)


def score(
    task: str,
    predictions: Iterable[Mapping[str, Any]],
    data_root: str | Path | None = None,
    seed: int = 0,
    args: Mapping[str, str] | None = None,
    data: str | None = None,
) -> list[Score]:
    """Score given outputs; see `harness.runner.scoring.score_predictions`."""
    return score_predictions(task, predictions, data_root, seed, args, data)


def tasks() -> list[dict[str, Any]]:
    """List the tasks that are known here.

    Returns
    -------
    list of dict
        See `harness.core.registry.listing`.
    """
    return listing("tasks")
