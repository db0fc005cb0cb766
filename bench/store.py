"""Measure the store at a million attempts: rates, sizes, memory, and what readers wait for.

    nice .venv/bin/python -P bench/store.py [--runs 334] [--items 3000] [--folder DIR] [--json]

Runs of 40 variants over 7 tasks are written as journals, bytes from a template (not through the
runner), then ingested, published, compacted and asked. Each step is a process of its own; its CPU
time, wall time and peak memory are what the kernel and the step itself say. DIR needs 3 GB.
The text is made of phrases with Zipf's frequencies and numbers; how it compresses is printed, as
the size of the text parts means nothing without it.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

_VARIANTS, _TASKS = 40, 7
_STAMP = "2026-01-01T00:00:00.000000Z"
_SYLLABLES = ("ba", "co", "di", "fu", "ga", "lo", "mi", "pe", "ra", "st", "un", "ver", "tion", "ed")


class Bar(NamedTuple):
    """A figure beside its bar; `most` tells whether the bar is the most or the least allowed."""

    name: str
    value: float
    bar: float
    unit: str
    most: bool = True

    @property
    def met(self) -> bool:
        """Whether the figure is on the right side of its bar."""
        return self.value <= self.bar if self.most else self.value >= self.bar


def main() -> int:
    """Measure everything, print a table, exit 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=334)
    parser.add_argument("--items", type=int, default=3000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--step", choices=sorted(_STEPS), help="one step alone, by the bench itself"
    )
    options = parser.parse_args()
    if options.step:
        print(json.dumps(_STEPS[options.step](options.folder)))
        return 0
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        bars, facts = measure(Path(folder), options.runs, options.items)
    if options.json:
        print(json.dumps({"bars": [b._asdict() for b in bars], "facts": facts}, indent=2))
    else:
        for bar in bars:
            mark, limit = "ok  " if bar.met else "MISS", "<=" if bar.most else ">="
            print(f"{mark} {bar.name:<52} {bar.value:10.3f} {limit} {bar.bar:g} {bar.unit}")
        for name, value in facts.items():
            print(f"     {name:<52} {value:10.3f}")
    return 0 if all(bar.met for bar in bars) else 1


def measure(folder: Path, n_runs: int, n_items: int) -> tuple[list[Bar], dict[str, float]]:
    """Measure all bars in `folder`."""
    store = folder / "store"
    scale = n_runs * n_items / 1e6
    bars = journal_rates(folder)
    raw, zipped = write_journals(store, n_runs, n_items)
    facts = {"attempts": n_runs * n_items, "journals, MB": raw / 1e6,
             "journals, ratio to their gzip": raw / zipped}  # fmt: skip
    ingest = _step("ingest", store)
    publish = _step("publish", store)
    loose = _step("sizes", store)
    first = _step("read", store)
    compact = _step("compact", store)
    again = _step("publish", store)
    tight = _step("sizes", store)
    read = _step("read", store)
    _write_run(store, n_runs, n_items, 1000, random.Random(n_runs))
    one = _step("publish", store)
    plan = _step("plan", store)
    bars += [
        Bar("ingest, samples a second of CPU", n_runs * n_items / ingest["cpu"], 1e4, "1/s", most=False),
        Bar("ingest, peak memory", ingest["peak"], 600, "MB"),
        Bar("publish everything, peak memory", publish["peak"], 600, "MB"),
        Bar("compact, peak memory", compact["peak"], 600, "MB"),
        Bar("database after compact", tight["database"], 60 * scale, "MB"),
        Bar("database before, ratio to that", loose["database"] / tight["database"], 1.35, ""),
        Bar("text parts", tight["texts"], 250 * scale, "MB"),
        Bar("republish after a run of 1,000, CPU", one["cpu"], 1.0, "s"),
        Bar("republish after a run of 1,000, wall", one["wall"], 1.0, "s"),
        Bar("summaries of all runs, queries", read["summaries"], 0.1, "s"),
        Bar("model x task page, from samples, ratio", read["page_slow"] / read["page"], 20, "", most=False),
        Bar("answers to the keys of a run, with texts", plan["one_run"], 1.0, "s"),
        Bar("which of all keys have an answer", plan["all"], 1.0, "s"),
    ]  # fmt: skip
    facts |= {
        "ingest, CPU s": ingest["cpu"],
        "ingest, wall s": ingest["wall"],
        "publish everything, CPU s": publish["cpu"],
        "publish everything, wall s": publish["wall"],
        "compact, CPU s": compact["cpu"],
        "compact, wall s": compact["wall"],
        "publish after compact, wall s": again["wall"],
        "database as ingested, MB": loose["database"],
        "snapshot, MB": tight["snapshot"],
        "packed journals, MB": tight["packed"],
        "text in the parts, MB": tight["text_raw"],
        "text, ratio to the parts": tight["text_raw"] / tight["texts"],
        "text of a sample, bytes": tight["text_raw"] * 1e6 / (n_runs * n_items),
        "summaries before compact, s": first["summaries"],
        "model x task page, s": read["page"],
        "answers to as many keys of all runs, s": plan["scattered"],
        "copy of the snapshot, wall s": again["copy"],
    }
    return bars, facts


# --- the journal ---


def journal_rates(folder: Path, n: int = 4000) -> list[Bar]:
    """Write n records with a sync every 20 and with a sync each."""
    from harness.store import journal as writing

    rates: dict[int, list[float]] = {}
    for every in (1, writing.SYNC_RECORDS) * 3:
        rates.setdefault(every, []).append(
            _journal_rate(folder, every, n // (5 if every == 1 else 1))
        )
    few, each = (max(rates[every]) for every in (writing.SYNC_RECORDS, 1))
    return [
        Bar("journal, rows a second of a writer", few, 4000, "1/s", most=False),
        Bar("journal, ratio to a sync each record", few / each, 5, "", most=False),
    ]


def _journal_rate(folder: Path, every: int, n: int) -> float:
    from harness.core.records import SampleRecord
    from harness.store import journal as writing

    usual, writing.SYNC_RECORDS = writing.SYNC_RECORDS, every
    run_id = f"rate-{every}-{time.monotonic_ns()}"
    text = next(_texts(random.Random(0), 960))
    try:
        with writing.Journal(folder / run_id / "journal.jsonl", run_id) as journal:
            began = time.monotonic()
            for number in range(n):
                journal.append(SampleRecord(
                    seq=0, ts="", run_id=run_id, schema=1, item_id=f"i{number}", epoch=0,
                    attempt=0, key=f"{number:064x}", status="unscored", output=text,
                ))  # fmt: skip
            journal.flush()
            return n / (time.monotonic() - began)
    finally:
        writing.SYNC_RECORDS = usual


# --- a million attempts ---


def write_journals(store: Path, n_runs: int, n_items: int) -> tuple[int, int]:
    """Write the journals of n runs; give their bytes and, from a sample, what gzip makes of them."""
    raw = zipped = 0
    for number in range(n_runs):
        path = _write_run(store, number, n_items, n_items, random.Random(number))
        raw += path.stat().st_size
        if number < 3:
            zipped += len(zlib.compress(path.read_bytes(), 6))
    return raw, zipped * n_runs // min(3, n_runs)


def _write_run(store: Path, number: int, n_items: int, n: int, rng: random.Random) -> Path:
    """Write one finished run of n of a task's items, two lines an attempt."""
    pair = number % (_VARIANTS * _TASKS)
    variant, task = f"v{pair % _VARIANTS:02d}-{'0' * 20}", f"bench/task{pair // _VARIANTS}"
    run_id = f"20260101T{number:012d}-{rng.randrange(1 << 32):08x}"
    questions = iter(_questions(task, n))
    answers = _texts(rng, 440)
    ability = 0.2 + 0.7 * (pair % _VARIANTS) / _VARIANTS
    instruction = "Solve the problem. Think it through step by step, then give the result as a number on a line of its own after four hash signs. Do not write anything after that line, and no unit."
    lines = [_started(run_id, variant, task, n_items, n), *_attempts(run_id, n, rng, ability,
             lambda: f"{instruction}\\n\\n{next(questions)}", lambda: next(answers))]  # fmt: skip
    lines.append(f'{{"type":"run_finished","seq":{2 * n + 1},"ts":"{_STAMP}","run_id":"{run_id}",'
                 f'"schema":1,"status":"done","seconds":90.5}}')  # fmt: skip
    path = store / "runs" / run_id / "journal.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(lines) + "\n")
    return path


def _started(run_id: str, variant: str, task: str, n_items: int, n: int) -> str:
    items = [
        {"item_id": f"{task}-{i:05d}", "cluster_id": None, "category": None,
         "content_sha256": hashlib.sha256(f"{task}{i}".encode()).hexdigest()}
        for i in range(n_items)
    ]  # fmt: skip
    return json.dumps({
        "type": "run_started", "seq": 0, "ts": _STAMP, "run_id": run_id, "schema": 1,
        "task": task, "task_version": "1", "model": f"mock:{variant}", "is_baseline": True,
        "strategy": "single", "solver": "generate", "scorer": "exact", "metric": "accuracy",
        "seed": 0, "errors": "wrong", "config": {"limit": None}, "environment": {"dirty": False},
        "identity": {"variant_id": variant, "model_id": variant, "backend": "mock"},
        "task_info": {"benchmark": "bench"}, "items": items, "epochs": 1, "n_planned": n,
    })  # fmt: skip


def _attempts(
    run_id: str, n: int, rng: random.Random, ability: float,
    question: Callable[[], str], answer: Callable[[], str],
) -> Iterator[str]:  # fmt: skip
    task = int(run_id[9:21]) % (_VARIANTS * _TASKS) // _VARIANTS
    for i in range(n):
        ids = (f'"run_id":"{run_id}","schema":1,"item_id":"bench/task{task}-{i:05d}","epoch":0,'
               f'"attempt":0')  # fmt: skip
        result = rng.randrange(1000)
        yield (
            f'{{"type":"sample","seq":{2 * i + 1},"ts":"2026-01-01T00:{i // 60 % 60:02d}:{i % 60:02d}'
            f'.{rng.randrange(1000000):06d}Z",{ids},"key":"{rng.getrandbits(256):064x}",'
            f'"status":"unscored","prompt":"{question()}","output":"{answer()}\\n#### {result}",'
            f'"finish_reason":"stop","tokens_in":{rng.randrange(80, 140)},'
            f'"tokens_out":{rng.randrange(60, 180)},"latency_ms":{rng.expovariate(0.002):.3f}}}'
        )
        right = rng.random() < ability
        yield (
            f'{{"type":"score","seq":{2 * i + 2},"ts":"{_STAMP}",{ids},"scorer":"exact",'
            f'"scorer_version":"1","metric":"accuracy","status":"scored","value":{float(right)},'
            f'"passed":{str(right).lower()},"answer":"{result}"}}'
        )


def _texts(rng: random.Random, length: int) -> Iterator[str]:
    """Give texts of about so many characters without end: phrases by Zipf's law, and numbers."""
    phrases, weights = _phrases()
    while True:
        text, drawn = "", rng.choices(phrases, cum_weights=weights, k=400)
        for phrase in drawn:
            text += phrase.replace("#", str(rng.randrange(2, 200))) if "#" in phrase else phrase
            if len(text) >= length:
                yield text[:length].strip().capitalize() + "."
                text = ""


@functools.cache
def _questions(task: str, n: int) -> list[str]:
    return list(itertools.islice(_texts(random.Random(f"questions of {task}"), 300), n))


@functools.cache
def _phrases() -> tuple[list[str], list[float]]:
    rng = random.Random(7)
    words = ["".join(rng.choices(_SYLLABLES, k=rng.randrange(1, 4))) for _ in range(3000)]
    common = [1 / (rank + 3) for rank in range(len(words))]
    phrases, weights, total = [], [], 0.0
    for rank in range(6000):
        phrase = " ".join(rng.choices(words, common, k=rng.randrange(1, 5))) + " "
        phrases.append(
            phrase + "# " if rank % 7 == 3 else phrase[:-1] + ", " if rank % 11 == 5 else phrase
        )
        total += 1 / (rank + 10)
        weights.append(total)
    return phrases, weights


# --- steps, each a process of its own ---


def _step(name: str, store: Path) -> dict[str, float]:
    """Run one step in a child; give what it measured, and its peak memory in MB."""
    with tempfile.TemporaryFile("w+") as out:
        args = [sys.executable, "-P", __file__, "--step", name, "--folder", str(store)]
        pid = subprocess.Popen(args, stdout=out).pid
        _, status, used = os.wait4(pid, 0)
        if os.waitstatus_to_exitcode(status):
            raise SystemExit(f"step {name} failed")
        out.seek(0)
        found: dict[str, float] = json.load(out)
    found["peak"] = used.ru_maxrss / 1024
    print(name, {k: round(v, 3) for k, v in found.items()}, file=sys.stderr)
    return found


def _timed(work: Callable[[], Any]) -> dict[str, float]:
    cpu, wall = time.process_time(), time.monotonic()
    work()
    return {"cpu": time.process_time() - cpu, "wall": time.monotonic() - wall}


def _ingest(root: Path) -> dict[str, float]:
    import duckdb  # noqa: F401 - its start-up is not ingesting

    from harness.store import Store, sync

    return _timed(lambda: sync(Store.open(root), publish=False))


def _publish(root: Path) -> dict[str, float]:
    import shutil

    import duckdb  # noqa: F401

    from harness.store import Store, sync

    store = Store.open(root)
    taken = _timed(lambda: sync(store))
    copy = _timed(lambda: shutil.copyfile(store.database, root / "copy.tmp"))
    (root / "copy.tmp").unlink()
    return taken | {"copy": copy["wall"]}


def _compact(root: Path) -> dict[str, float]:
    import duckdb  # noqa: F401

    from harness.store import Store
    from harness.store.care import compact

    return _timed(lambda: compact(Store.open(root)))


def _sizes(root: Path) -> dict[str, float]:
    import duckdb

    from harness.store import Store
    from harness.store.publish import current

    store, now = Store.open(root), current(Store(root))
    assert now is not None
    with duckdb.connect() as con:
        row = con.execute(
            "SELECT sum(strlen(prompt) + strlen(output)) FROM read_parquet(?)",
            [str(store.runs / "*" / "text-*.parquet")],
        ).fetchone()
    assert row is not None
    return {
        "database": store.database.stat().st_size / 1e6,
        "snapshot": (store.published / now.file).stat().st_size / 1e6,
        "texts": sum(p.stat().st_size for p in store.runs.glob("*/text-*.parquet")) / 1e6,
        "packed": sum(p.stat().st_size for p in store.runs.glob("*/journal.parquet")) / 1e6,
        "text_raw": row[0] / 1e6,
    }


_PAGE = "SELECT variant_id, task_id, version, count(*), avg(mean) FROM {} GROUP BY ALL ORDER BY ALL"
_SLOW = (
    "(SELECT r.variant_id, v.task_id, v.version, v.item_id, avg(v.mean) AS mean "
    "FROM v_items_scored v JOIN runs r USING (run_id) GROUP BY ALL)"
)


def _read(root: Path) -> dict[str, float]:
    from harness.store import Store, snapshot

    con = snapshot(Store.open(root))
    page = [_timed(lambda: con.execute(_PAGE.format("item_scores")).fetchall()) for _ in range(5)]
    slow = _timed(lambda: con.execute(_PAGE.format(_SLOW)).fetchall())
    queries = [_timed(lambda: _ask_summaries(con)) for _ in range(5)]
    return {
        "summaries": statistics.median(t["cpu"] for t in queries),
        "page": statistics.median(t["cpu"] for t in page),
        "page_slow": slow["cpu"],
    }


def _ask_summaries(con: Any) -> None:
    from harness.store import queries

    queries.run_rows(con)
    queries.run_totals(con)


def _plan(root: Path) -> dict[str, float]:
    from harness.store import Store, snapshot
    from harness.store.texts import ANSWERED, answers_for_keys

    store = Store.open(root)
    con = snapshot(store)
    keys = con.execute("SELECT run_id, key FROM samples").fetchall()
    of_run = [_whole(key) for run_id, key in keys if run_id == keys[-2000][0]]
    scattered = [_whole(key) for _, key in random.Random(0).sample(keys, len(of_run))]

    def ask_all() -> None:
        con.execute("CREATE TEMP TABLE wanted AS SELECT key FROM samples")
        found = con.execute(f"SELECT count(*) FROM ({ANSWERED})").fetchone()
        assert found == (len(keys),)

    return {
        "one_run": _timed(lambda: answers_for_keys(con, store, of_run))["cpu"],
        "scattered": _timed(lambda: answers_for_keys(con, store, scattered))["cpu"],
        "all": _timed(ask_all)["cpu"],
    }


def _whole(key: Any) -> str:
    return f"{key.int:032x}{'0' * 32}"


_STEPS: dict[str, Callable[[Path], dict[str, float]]] = {
    "ingest": _ingest, "publish": _publish, "compact": _compact, "sizes": _sizes, "read": _read,
    "plan": _plan,
}  # fmt: skip

if __name__ == "__main__":
    sys.exit(main())
