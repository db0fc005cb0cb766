"""Questions that need the long texts, which lie in Parquet parts beside each run's journal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec
from msgspec import Struct

from harness.core.errors import UsageError
from harness.core.types import FinishReason, Status
from harness.store.layout import Store
from harness.store.redact import was_cut
from harness.store.rows import dicts

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

_TEXT_COLUMNS = (
    "prompt, output, reasoning, tool_log, prompt_ids_head, prompt_truncated, choice_logprobs, error"
)

OF_VERDICTS = ("judged", "picture")
"""Kinds of events that belong to a verdict, not to the attempt's course."""

# Which of the keys in the temporary table `wanted` have an answer, and where; of several the latest.
# What others sent is theirs: it never stands for an answer that was paid for here.
ANSWERED = """
SELECT s.key, s.run_id, s.text_id, coalesce(s.reused_from, s.run_id) AS origin, s.status,
    s.finish_reason, s.tokens_in, s.tokens_out, s.tokens_reasoning, s.latency_ms, s.peak_mem_bytes,
    s.cost_usd, s.isolation
FROM samples s JOIN wanted USING (key)
ANTI JOIN (FROM runs WHERE submitter IS NOT NULL) imported ON imported.run_id = s.run_id
WHERE s.status IN ('unscored', 'truncated', 'refused')
QUALIFY row_number() OVER (PARTITION BY s.key ORDER BY s.ts DESC, s.text_id DESC) = 1
"""


class StoredAnswer(Struct, kw_only=True):
    """A whole answer of an earlier run: everything that is needed to write its record again.

    `run_id` is where it was first paid for. `status` is ``unscored`` (waits for its score),
    ``truncated`` or ``refused``.
    """

    run_id: str
    status: Status
    prompt: str
    output: str
    reasoning: str | None
    tool_log: str | None
    finish_reason: FinishReason | None
    tokens_in: int | None
    tokens_out: int | None
    tokens_reasoning: int | None
    prompt_ids_head: tuple[int, ...]
    prompt_truncated: int
    choice_logprobs: tuple[float, ...] | None
    latency_ms: float | None
    peak_mem_bytes: int | None
    cost_usd: float | None
    isolation: str | None


def answers_for_keys(
    con: DuckDBPyConnection, store: Store, keys: Sequence[str]
) -> dict[str, StoredAnswer]:
    """Find answers that earlier runs already paid for.

    Only what a model really answered is found (stored as ``unscored``, ``truncated`` or
    ``refused``): errors, timeouts and items that were unavailable are tried again. An answer whose
    text was cut for its size, or whose text part is gone, is not whole and is not found either.

    Parameters
    ----------
    con : DuckDBPyConnection
    store : Store
    keys : sequence of str
        Content keys, 64 hex digits; matched by their first 128 bits.

    Returns
    -------
    dict of str to StoredAnswer
        By the keys as given; of several answers the latest.
    """
    by_uuid = {UUID(key[:32]): key for key in keys}
    if not by_uuid:
        return {}
    con.execute(
        "CREATE OR REPLACE TEMP TABLE wanted AS SELECT unnest(?::UUID[]) AS key", [list(by_uuid)]
    )
    found = dicts(con.execute(ANSWERED))
    con.execute("DROP TABLE wanted")
    by_run: dict[str, dict[int, dict[str, Any]]] = {}
    for row in found:
        by_run.setdefault(row.pop("run_id"), {})[row.pop("text_id")] = row
    answers: dict[str, StoredAnswer] = {}
    for run_id, rows in by_run.items():
        for text_id, text in _texts(con, store, run_id, list(rows), _TEXT_COLUMNS).items():
            if not any(was_cut(text[name]) for name in ("output", "reasoning", "tool_log")):
                row = rows[text_id]
                answers[by_uuid[row.pop("key")]] = _answer(row, text)
    return answers


def sample(
    con: DuckDBPyConnection, store: Store, run_id: str, item_id: str, epoch: int | None = None
) -> dict[str, Any]:
    """Give one item whole: its latest attempt with texts, and all its scores in order.

    Parameters
    ----------
    con : DuckDBPyConnection
    store : Store
    run_id, item_id : str
    epoch : int or None
        Which repeat; None means the first that there is.

    Returns
    -------
    dict
        The columns of `v_attempts`, the texts, ``scores`` (each with ``explanation``), ``events``
        (of this item) and ``shown``: what its verdicts rest on (``kind`` "judged") and the pictures
        they came with ("picture"), each with the ``score`` it belongs to; oldest first.

    Raises
    ------
    UsageError
        When the run has no such item or epoch.
    """
    which = {"run": run_id, "item": item_id, "epoch": epoch}
    rows = dicts(
        con.execute(
            "SELECT * EXCLUDE (policy) FROM v_attempts WHERE run_id = $run AND item_id = $item "
            "AND ($epoch IS NULL OR epoch = $epoch) ORDER BY epoch LIMIT 1",
            which,
        )
    )
    if not rows:
        what = f"item {item_id!r}" + ("" if epoch is None else f" epoch {epoch}")
        raise UsageError(f"run {run_id} has no attempt at {what} (see `harness show run {run_id}`)")
    row = rows[0]
    which["epoch"] = row["epoch"]
    of_item = "WHERE run_id = $run AND item_id = $item AND epoch = $epoch ORDER BY seq"
    scores = dicts(con.execute(f"SELECT * FROM scores {of_item}, metric", which))
    events = dicts(con.execute(f"SELECT seq, kind, ts, attempt, json FROM events {of_item}", which))
    seqs = [row["text_id"], *(s["seq"] for s in scores), *(e["seq"] for e in events)]
    texts = _texts(con, store, run_id, seqs, f"{_TEXT_COLUMNS}, explanation, answer, data")
    own = texts.get(row["text_id"], {})
    row |= {name: own.get(name) for name in _TEXT_COLUMNS.split(", ")}
    for score in scores:
        long = texts.get(score["seq"], {})
        score["explanation"] = long.get("explanation")
        score["answer"] = long.get("answer") or score["answer"]
    for event in events:
        event["json"] = texts.get(event["seq"], {}).get("data") or event["json"]
    shown = [e for e in events if e["kind"] in OF_VERDICTS]
    return row | {
        "scores": scores,
        "events": [e for e in events if e["kind"] not in OF_VERDICTS],
        "shown": [{"kind": e["kind"], **msgspec.json.decode(e["json"])} for e in shown],
    }


def verdict_shown(
    row: dict[str, Any], scores: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Take what the standing verdict of an item rests on, and its pictures, out of `sample`'s row.

    Where a strategy chose among draws, what its choice rests on stands under ``strategy``.

    Parameters
    ----------
    row : dict
        As `sample` gives it; ``shown`` is taken out.
    scores : sequence of mapping
        Its ``scores``.
    """
    by_strategy = [s["seq"] for s in scores if s["scorer"].startswith("strategy:")]
    facts: dict[str, Any] = {}
    pictures = []
    for one in row.pop("shown"):
        if one["kind"] == "judged" and one["score"] == row["score_seq"]:
            facts |= one["facts"]
        elif one["kind"] == "judged" and one["score"] == max(by_strategy, default=None):
            facts["strategy"] = one["facts"]
        elif one["kind"] == "picture" and one["score"] == row["score_seq"]:
            pictures.append(one)
    return facts, pictures


def attempts_with_text(
    con: DuckDBPyConnection, store: Store, run_id: str
) -> Iterable[dict[str, Any]]:
    """Give the latest attempts of a run with prompt, output and the rest, ordered by item.

    Yields
    ------
    dict
        The columns of `v_attempts` and the texts.
    """
    con = con.cursor()
    result = con.execute(*_joined(store, run_id))
    names = [column[0] for column in result.description or ()]
    while rows := result.fetchmany(500):
        for row in rows:
            yield dict(zip(names, row, strict=True))


def samples_arrow(con: DuckDBPyConnection, store: Store, run_id: str) -> pa.Table:
    """Give the latest attempts of a run, texts included, as an Arrow table ordered by item."""
    query, params = _joined(store, run_id)
    return con.sql(query, params=params).to_arrow_table()


def _joined(store: Store, run_id: str) -> tuple[str, dict[str, Any]]:
    paths = [str(path) for path in store.texts(run_id)]
    columns = "a.* EXCLUDE (text_id, score_seq, policy)"
    order = "ORDER BY a.item_id, a.epoch"
    if not paths:
        empty = ", ".join(f"NULL AS {name}" for name in _TEXT_COLUMNS.split(", "))
        query = f"SELECT {columns}, {empty} FROM v_attempts a WHERE a.run_id = $run {order}"
        return query, {"run": run_id}
    texts = ", ".join(f"t.{name}" for name in _TEXT_COLUMNS.split(", "))
    query = f"""
        SELECT {columns}, {texts}
        FROM v_attempts a LEFT JOIN (
            SELECT * FROM read_parquet($paths)
            QUALIFY row_number() OVER (PARTITION BY text_id) = 1
        ) t USING (text_id)
        WHERE a.run_id = $run {order}
    """
    return query, {"run": run_id, "paths": paths}


def _texts(
    con: DuckDBPyConnection, store: Store, run_id: str, seqs: list[int], columns: str
) -> dict[int, dict[str, Any]]:
    """Read rows of a run's text parts by seq; a rebuild that was cut short may leave twins."""
    paths = [str(path) for path in store.texts(run_id)]
    if not paths:
        return {}
    rows = dicts(
        con.execute(
            f"SELECT text_id, {columns} FROM read_parquet($paths) "
            "WHERE text_id IN (SELECT unnest($seqs::BIGINT[]))",
            {"paths": paths, "seqs": seqs},
        )
    )
    return {row["text_id"]: row for row in rows}


def _answer(row: dict[str, Any], text: dict[str, Any]) -> StoredAnswer:
    logprobs = text["choice_logprobs"]
    return StoredAnswer(
        run_id=row["origin"],
        status=row["status"],
        prompt=text["prompt"] or "",
        output=text["output"] or "",
        reasoning=text["reasoning"],
        tool_log=text["tool_log"],
        finish_reason=row["finish_reason"],
        tokens_in=row["tokens_in"],
        tokens_out=row["tokens_out"],
        tokens_reasoning=row["tokens_reasoning"],
        prompt_ids_head=tuple(text["prompt_ids_head"] or ()),
        prompt_truncated=text["prompt_truncated"] or 0,
        choice_logprobs=None if logprobs is None else tuple(logprobs),
        latency_ms=row["latency_ms"],
        peak_mem_bytes=row["peak_mem_bytes"],
        cost_usd=row["cost_usd"],
        isolation=row["isolation"],
    )
