"""Stores for the site's tests, written as journals and ingested as a run's are; and pages over them.

Every store is made once a session and only read; those that change are made for each test.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from harness.core.records import RunFinished, RunStarted, SampleRecord, ScoreRecord, encoder
from harness.store import Store, new_run_id, sync
from harness.store.publish import publish
from harness.store.schema import connect

APP = Path(__file__).resolve().parents[2] / "leaderboard" / "script" / "app.py"
MANY = """
CREATE TEMP TABLE pairs AS
SELECT m, t, '20260301T10' || printf('%04d', t * 100 + m) || '000000-' || printf('%08x', t * 100 + m)
    AS run_id, 'v' || printf('%02d', m) AS variant_id, 'hf:m' || m AS model, 'many/task' || t AS task
FROM range(40) models(m), range(7) tasks(t);
INSERT INTO models (model_id, is_baseline) SELECT DISTINCT model, false FROM pairs;
INSERT INTO model_variants (variant_id, model_id, backend, name, dtype, identity_json)
SELECT DISTINCT variant_id, model, 'hf', model, 'float32', '{}' FROM pairs;
INSERT INTO tasks (task_id, version, benchmark, metric, higher_is_better)
SELECT DISTINCT task, '1', 'many', 'accuracy', true FROM pairs;
INSERT INTO items (task_id, version, item_id)
SELECT DISTINCT task, '1', 'demo-' || i FROM pairs, range(12) items(i);
INSERT INTO runs BY NAME
SELECT run_id, task AS task_id, '1' AS version, model, variant_id, false AS is_baseline,
    'single' AS strategy, 'generate' AS solver, 'exact' AS scorer, 'accuracy' AS metric, 7 AS seed,
    'wrong' AS errors, 1 AS epochs, 12 AS n_planned, 'done' AS status,
    TIMESTAMP '2026-03-01 10:00:00' + to_seconds(t * 100 + m) AS started, 2.5 AS seconds,
    '{}' AS config_json, '{}' AS env_json
FROM pairs;
INSERT INTO samples BY NAME
SELECT run_id, task AS task_id, '1' AS version, 'demo-' || i AS item_id, 0 AS epoch, 0 AS attempt,
    uuid() AS key, 'unscored' AS status, 10 AS tokens_in, 5 AS tokens_out, 20.0 AS latency_ms,
    1 + 2 * i AS text_id
FROM pairs, range(12) items(i);
INSERT INTO scores BY NAME
SELECT run_id, task AS task_id, '1' AS version, 'demo-' || i AS item_id, 0 AS epoch, 0 AS attempt,
    2 + 2 * i AS seq, 'exact' AS scorer, '1' AS scorer_version, 'accuracy' AS metric,
    'scored' AS status, (random() < (m + 1) / 42)::DOUBLE AS value
FROM pairs, range(12) items(i);
INSERT INTO stale_runs SELECT run_id FROM pairs;
"""
STATUSES = ("scored", "error", "timeout", "truncated", "refused", "unscored", "unavailable")


def write_run(
    store: Store,
    values: Sequence[float | None],
    *,
    model: str = "hf:a",
    task: str = "demo/add",
    version: str = "1",
    statuses: Sequence[str] = (),
    clusters: Sequence[str | None] = (),
    finish: bool = True,
    quantisation: str | None = None,
    simulated: bool = False,
    strategy: str = "single",
    n_planned: int | None = None,
    run_id: str | None = None,
    text: Callable[[int], tuple[str, str]] | None = None,
    **changes,
) -> str:
    """Write the journal of one run: one item a value, `demo-0`, `demo-1`, …, the same in every task.

    Parameters
    ----------
    values : sequence of float or None
        Scores; None for an attempt that gets no verdict (then its status says why).
    statuses : sequence of str
        Of the attempts, where they are not `scored`: one each, "" for a scored one.
    finish : bool
        Write the end of the run; without it the run is running, or was killed.
    n_planned : int or None
        More than there are values: the rest is open.
    text : callable
        Prompt and output of an item by number.
    **changes
        Of the run's first record.
    """
    run_id = run_id or new_run_id()
    baseline = model.startswith("mock:")
    name = model + (f"-{quantisation}" if quantisation else "")
    variant = hashlib.sha256(name.encode()).hexdigest()[:24]
    planned = n_planned or len(values)
    items = [
        {"item_id": f"demo-{i}", "cluster_id": clusters[i] if clusters else None,
         "category": ("easy", "hard")[i % 2],
         "content_sha256": hashlib.sha256(f"{task}{i}".encode()).hexdigest()}
        for i in range(planned)
    ]  # fmt: skip
    started = {
        "seq": 0, "ts": "2026-03-01T10:00:00.000000Z", "run_id": run_id, "schema": 1, "task": task,
        "task_version": version, "model": model, "is_baseline": baseline, "strategy": strategy,
        "solver": "generate", "scorer": "exact", "metric": "accuracy", "seed": 7,
        "errors": "wrong", "config": {"task": task, "model": model, "limit": None},
        "identity": {
            "variant_id": variant, "model_id": model, "backend": model.split(":", maxsplit=1)[0],
            "name": model.split(":")[1], "revision": None, "dtype": "float32",
            "quantisation": quantisation, "is_baseline": baseline,
            "quant_simulated": simulated, "bits_w": 4 if quantisation else None,
        },
        "task_info": {
            "benchmark": task.split("/", maxsplit=1)[0], "license": "CC0-1.0", "source": "own",
            "metric": "accuracy", "dataset_sha256": "d" * 64, "prompt_sha256": "p" * 64,
            "scorer_sha256": "s" * 64, "higher_is_better": True,
        },
        "environment": {"git_commit": "abc1234", "dirty": False, "packages": {"duckdb": "2.0.1"}},
        "items": items, "epochs": 1, "n_planned": planned,
    }  # fmt: skip
    records: list = [RunStarted(**(started | changes))]
    for i, value in enumerate(values):
        status = (statuses[i] if statuses else "") or "scored"
        records += _attempt(run_id, i, value, status, (text or _text)(i))
    if finish:
        records.append(
            RunFinished(seq=0, ts="", run_id=run_id, schema=1, status="done", seconds=2.5)
        )
    # Not through Journal: its syncs to the disk are not what these tests are about.
    for seq, record in enumerate(records):
        record.seq, record.ts = seq, f"2026-03-01T10:00:{seq % 60:02d}.000000Z"
    path = store.journal(run_id)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"".join(encoder.encode(record) + b"\n" for record in records))
    return run_id


def _text(i: int) -> tuple[str, str]:
    return f"What is {i} + {i}?", f"It is {2 * i}."


def _attempt(run_id, i, value, status, text) -> list:
    solved = "unscored" if status in ("scored", "unscored") else status
    about = {"seq": 0, "ts": "", "run_id": run_id, "schema": 1, "item_id": f"demo-{i}",
             "epoch": 0, "attempt": 0}  # fmt: skip
    sample = SampleRecord(
        **about, key=hashlib.sha256(f"{run_id}/{i}".encode()).hexdigest(), status=solved,
        prompt=text[0], output=text[1], finish_reason="stop", tokens_in=10, tokens_out=5,
        latency_ms=10.0 + i, cost_usd=0.001,
        error_kind="model" if status in ("error", "timeout") else None,
    )  # fmt: skip
    verdict = status if status in ("scored", "truncated", "unscored") else None
    if verdict is None:
        return [sample]
    score = ScoreRecord(
        **about, scorer="exact", scorer_version="1", metric="accuracy", status=verdict,
        value=value, passed=None if value is None else value >= 1, answer=str(2 * i),
        explanation="compared as numbers",
    )  # fmt: skip
    return [sample, score]


@pytest.fixture(scope="session")
def write() -> Callable[..., str]:
    return write_run


@pytest.fixture
def store(tmp_path) -> Store:
    """An empty store of a test's own."""
    return Store.open(tmp_path / "store")


@pytest.fixture(scope="session")
def missing_store(tmp_path_factory) -> Store:
    return Store(tmp_path_factory.mktemp("missing") / "nowhere")


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory) -> Store:
    return Store.open(tmp_path_factory.mktemp("empty") / "store")


def _made(tmp_path_factory, name: str) -> Store:
    return Store.open(tmp_path_factory.mktemp(name) / "store")


@pytest.fixture(scope="session")
def one_store(tmp_path_factory) -> Store:
    """One run of four items, three right."""
    store = _made(tmp_path_factory, "one")
    write_run(store, [1.0, 0.0, 1.0, 1.0])
    sync(store)
    return store


@pytest.fixture(scope="session")
def partial_store(tmp_path_factory) -> Store:
    """A run with one attempt of every status, a fault of the network and two open ones.

    Planned 10: scored 1, error 1, timeout 1, truncated 1 (right), refused 1, unscored 1,
    unavailable 1, a fault 1, open 2. Five count (of these two right): scored, error, timeout,
    truncated, refused. Beside it: a whole run of another model and a baseline.
    """
    store = _made(tmp_path_factory, "partial")
    values = [1.0, None, None, 1.0, None, None, None]
    run_id = write_run(store, values, statuses=STATUSES, n_planned=10, finish=False)
    fault = SampleRecord(
        seq=50, ts="2026-03-01T10:01:00.000000Z", run_id=run_id, schema=1, item_id="demo-7",
        epoch=0, attempt=0, key="f" * 64, status="error", error_kind="network",
    )  # fmt: skip
    with store.journal(run_id).open("ab") as file:
        file.write(encoder.encode(fault) + b"\n")
    write_run(store, [1.0, 0.0] * 5, model="hf:b")
    write_run(store, [1.0] * 10, model="mock:gold")
    sync(store)
    return store


@pytest.fixture(scope="session")
def ties_store(tmp_path_factory) -> Store:
    """Six models with the same answers on two tasks: nothing tells them apart."""
    store = _made(tmp_path_factory, "ties")
    for task in ("demo/add", "demo/mul"):
        for name in "abcdef":
            write_run(store, [1.0, 0.0] * 20, model=f"hf:{name}", task=task)
    sync(store)
    return store


@pytest.fixture(scope="session")
def many_store(tmp_path_factory) -> Store:
    """40 models and 7 tasks of 12 items: `hf:m0` to `hf:m39`, by and by better, by chance.

    Put into the tables directly: 280 journals would take a minute. So there are no texts.
    """
    store = _made(tmp_path_factory, "many")
    with connect(store.database) as con:
        con.execute("SELECT setseed(0.5)")
        con.execute(MANY)
    publish(store)
    return store


@pytest.fixture(scope="session")
def fit_store(tmp_path_factory) -> Store:
    """Twelve models on 60 items, fitted, with human minutes for every second item."""
    from harness.runner.fitting import fit_store as fit
    from harness.runner.human_minutes import read_minutes

    store = _made(tmp_path_factory, "fit")
    for m in range(12):
        rng = random.Random(m)
        values = [float(rng.random() < 1 / (1 + 2 ** (i / 10 - m / 2))) for i in range(60)]
        write_run(store, values, model=f"hf:m{m}", task="demo/add")
    sync(store)
    minutes = store.root.parent / "minutes.csv"
    lines = [f"demo/add/demo-{i},{2 ** (i / 10):.4f}" for i in range(0, 60, 2)]
    minutes.write_text("item,human_minutes\n" + "\n".join(lines) + "\n")
    fit(store, minutes=read_minutes(minutes, None, None, "ols"))
    return store


@pytest.fixture
def running_store(tmp_path) -> Store:
    """A run that goes on: journal only, nothing published; 3 of 8 attempts made."""
    store = Store.open(tmp_path / "running")
    write_run(store, [1.0, 0.0, 1.0], n_planned=8, finish=False)
    return store


@pytest.fixture
def newer_store(tmp_path) -> Store:
    """A store whose snapshot a newer package wrote."""
    import duckdb

    from harness.store.publish import current

    store = Store.open(tmp_path / "newer")
    write_run(store, [1.0])
    sync(store)
    now = current(store)
    assert now is not None
    with duckdb.connect(str(store.published / now.file)) as con:
        con.execute("UPDATE schema_meta SET version = 999")
    return store


@pytest.fixture(scope="session")
def unscored_store(tmp_path_factory) -> Store:
    """A task whose answers nobody judged: no number at all."""
    store = _made(tmp_path_factory, "unscored")
    write_run(store, [None] * 3, statuses=["unscored"] * 3)
    sync(store)
    return store


@pytest.fixture
def changed(tmp_path) -> Callable[..., Store]:
    """Copy a store and change it by SQL: ``changed(store, "DELETE FROM …")``."""

    def changed_(store: Store, *statements: str) -> Store:
        root = tmp_path / "changed"
        shutil.copytree(store.root, root)
        copy = Store.open(root)
        with connect(copy.database) as con:
            for statement in statements:
                con.execute(statement)
        publish(copy)
        return copy

    return changed_


@pytest.fixture
def open_page(monkeypatch) -> Callable[..., AppTest]:
    """Open a page of the site over a store: ``open_page("runs", store)``.

    Further arguments are values of widgets by key, as an address would bring them; `address` is the
    address's own, for widgets that read it themselves.
    """

    def open_(name: str, store: Store, address: dict[str, str] | None = None, **values) -> AppTest:
        monkeypatch.setenv("HARNESS_STORE", os.fspath(store.root))
        app = AppTest.from_file(str(APP), default_timeout=60)
        # AppTest finds pages by the path of their file; ours are functions, found by their address.
        app._page_hash = "" if name == "leaderboard" else calc_hash(name)
        for key, value in (address or {}).items():
            app.query_params[key] = value
        for key, value in values.items():
            app.session_state[key] = value
        return app.run()

    return open_


@pytest.fixture
def pictures(monkeypatch) -> list[dict]:
    """The charts of a page as its files have them: on the page title and subtitle stand beside."""
    module = importlib.import_module("leaderboard.ui.chart")
    there, found = module._words, []

    def spy(spec):
        found.append(spec)
        return there(spec)

    monkeypatch.setattr(module, "_words", spy)
    return found


@pytest.fixture(params=["missing", "empty", "one", "partial", "ties", "many", "fit", "unscored"])
def any_store(request) -> Store:
    """Each of the stores in turn."""
    return request.getfixturevalue(f"{request.param}_store")


@pytest.fixture(scope="session")
def browser():
    """Chromium as the system brings it: one for all tests, as only one can be driven at a time."""
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("needs chromium (apt-get install chromium fonts-dejavu-core)")
    with api.sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"]
        )
        yield found
        found.close()
