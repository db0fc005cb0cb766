"""A run that was sent and imported is the same run, and says that it was imported."""

from __future__ import annotations

import json
import zipfile
from io import BytesIO

import msgspec
import pyarrow.parquet as pq
import pytest

from harness.core.errors import UsageError
from harness.core.records import EventRecord, RunFinished, SampleRecord, ScoreRecord
from harness.core.types import Score
from harness.exchange.rejected import RejectedError
from harness.exchange.submission import export_submission, read_submission
from harness.exchange.submission_import import import_submission
from harness.exchange.tables import _COLUMNS
from harness.runner.compare import compare
from harness.runner.config import make_config
from harness.runner.lifecycle import resume, start
from harness.runner.rescore import rescore
from harness.runner.summary import summarise
from harness.store import queries
from harness.store.care import rebuild, verify
from harness.store.difference import diff_runs
from harness.store.journal import read_records
from harness.store.layout import Store
from harness.store.publish import snapshot
from leaderboard.rows.board import board

NAMES = ["whole", "partial", "chosen"]


@pytest.fixture(scope="module")
def taken_in(sent, tmp_path_factory):
    """A store into which the whole run was imported, for tests that only look at it."""
    store = Store.open(tmp_path_factory.mktemp("taken") / "store")
    return store, import_submission(sent["whole"], store).run_id


def rows(store, run_id, table, columns="*"):
    query = f"SELECT {columns} FROM {table} WHERE run_id = ? ORDER BY ALL"
    return snapshot(store).execute(query, [run_id]).fetchall()


def found_version(store):
    ((version,),) = snapshot(store).execute("SELECT DISTINCT version FROM runs").fetchall()
    return version


@pytest.mark.parametrize("name", NAMES)
def test_totals_and_rows_come_out_the_same(runs, sent, mine, name):
    store, run_id = runs[0], runs[1][name]
    found = import_submission(sent[name], mine)
    assert (found.outcome, found.run_id, found.submitter) == ("imported", run_id, "Ada")
    before, after = summarise(store, run_id), found.summary
    told = {"store", "imported", "submitter"}
    assert {f: getattr(before, f) for f in before.__struct_fields__ if f not in told} == {
        f: getattr(after, f) for f in after.__struct_fields__ if f not in told
    }
    for table in ("samples", "scores", "events", "run_totals", "metric_totals"):
        assert rows(store, run_id, table) == rows(mine, run_id, table)
    texts = [queries.samples_arrow(snapshot(s), s, run_id).to_pylist() for s in (store, mine)]
    assert texts[0] == texts[1]
    one, two = (list(read_records(s.journal(run_id))) for s in (store, mine))
    assert one[1:] == two[1:]
    assert verify(mine) == []
    assert rebuild(mine).differences == []


def test_an_imported_run_is_compared_and_diffed_like_any(sent, mine):
    run_id = import_submission(sent["whole"], mine).run_id
    own = start(make_config(task="aicrypto/mcq", model="mock:gold", limit=12), mine).run_id
    found = compare(mine, own, run_id)
    assert found.n == 12
    assert not found.tasks[0].unlike
    diff = diff_runs(snapshot(mine), mine, own, run_id)
    assert diff.n_shared == 12
    assert {d.name for d in diff.differences if d.group == "environment"} >= {"submitter"}


def test_the_same_run_gives_the_same_bytes(runs, sent, tmp_path):
    store, run_ids = runs
    again = export_submission(store, run_ids["whole"], tmp_path / "again.zip", submitter="Ada")
    assert (tmp_path / "again.zip").read_bytes() == sent["whole"].read_bytes()
    assert again.attempts == again.scores == 12


def test_every_field_of_a_record_has_its_column():
    left_out = {"run_id", "schema"}
    for table, kind in (
        ("samples.parquet", SampleRecord),
        ("scores.parquet", ScoreRecord),
        ("events.parquet", EventRecord),
    ):
        assert set(_COLUMNS[table]) == set(kind.__struct_fields__) - left_out
    assert set(RunFinished.__struct_fields__) - {"seq", "ts"} - left_out == {
        "status", "seconds", "cached",
    }  # fmt: skip


def test_the_manifest_holds_no_path_of_the_sender(runs, sent):
    with zipfile.ZipFile(sent["whole"]) as file:
        manifest = json.loads(file.read("manifest.json"))
    assert manifest["run"]["config"]["data_root"] is None
    assert str(runs[0].root) not in json.dumps(manifest)
    assert manifest["counts"]["n_planned"] == 12


# --- what importing means ---


def test_an_imported_run_is_marked(runs, taken_in):
    mine, run_id = taken_in
    summary = summarise(mine, run_id)
    assert (summary.imported, summary.submitter) == (True, "Ada")
    assert rows(mine, run_id, "runs", "submitter") == [("Ada",)]
    assert not summarise(runs[0], runs[1]["whole"]).imported
    started = next(iter(read_records(mine.journal(run_id))))
    assert started.environment["imported"]["scores_recomputed"] == 12
    assert started.environment["imported"]["scores_not_recomputed"] == {}


def test_importing_twice_does_nothing(sent, taken_in):
    mine, run_id = taken_in
    journal = mine.journal(run_id).read_bytes()
    second = import_submission(sent["whole"], mine)
    assert (second.outcome, second.run_id, second.scores) == ("here already", run_id, None)
    assert mine.journal(run_id).read_bytes() == journal
    assert rows(mine, run_id, "samples", "count(*)") == [(12,)]


def test_the_senders_own_store_has_it_already(runs, sent):
    found = import_submission(sent["partial"], runs[0])
    assert found.outcome == "here already"
    assert not summarise(runs[0], found.run_id).imported


def test_a_run_id_with_other_content_is_refused(taken_in, forge):
    mine, run_id = taken_in
    journal = mine.journal(run_id).read_bytes()
    forged = forge(lambda f: f.rows["samples.parquet"][0].update(latency_ms=1e9))
    with pytest.raises(RejectedError, match="a run of this id with other content"):
        import_submission(forged, mine)
    assert mine.journal(run_id).read_bytes() == journal


def test_an_imported_run_sent_on_keeps_its_submitter(taken_in, tmp_path):
    mine, run_id = taken_in
    export_submission(mine, run_id, tmp_path / "on.zip", submitter="Somebody else")
    assert read_submission(tmp_path / "on.zip").manifest.submitter == "Ada"


def test_others_answers_never_serve_as_ours(sent, mine):
    import_submission(sent["whole"], mine)
    own = start(make_config(task="aicrypto/mcq", model="mock:noisy?accuracy=0.6", limit=12), mine)
    assert own.cached == 0
    # The keys are the same, so an answer of the run made here would have served.
    again = start(make_config(task="aicrypto/mcq", model="mock:noisy?accuracy=0.6", limit=12), mine)
    assert again.cached == 12


def test_what_was_made_here_stands_before_what_was_sent(sent, mine, forge, tmp_path):
    """The answer with the same key counts once: ours, though the imported run is the newer one."""

    def newer(f):
        f.manifest["run"]["run_id"] = "29990101T000000000000-00000000"

    own = start(make_config(task="aicrypto/mcq", model="mock:noisy?accuracy=0.6", limit=12), mine)
    query = "SELECT item_id, n, k FROM item_scores ORDER BY ALL"
    before = snapshot(mine).execute(query).fetchall()
    import_submission(forge(newer), mine)
    assert snapshot(mine).execute(query).fetchall() == before
    assert sum(n for _, n, _ in before) == own.n_counted


def test_only_who_made_a_run_goes_on_with_it(taken_in):
    mine, run_id = taken_in
    with pytest.raises(UsageError, match="imported from Ada"):
        resume(mine, run_id)


def test_a_file_names_no_judge_to_be_asked_later(mine, forge):
    """Scoring again would load it, and send it texts and a key."""

    def judged(f):
        f.manifest["run"]["config"]["judge"] = "openai:x?base_url=http://somewhere.invalid"

    run_id = import_submission(forge(judged), mine).run_id
    assert next(iter(read_records(mine.journal(run_id)))).config["judge"] is None


def test_an_imported_run_can_be_scored_again_here(sent, mine):
    run_id = import_submission(sent["whole"], mine).run_id
    found = rescore(mine, run_id)
    assert (found.n_rescored, found.changed) == (12, [])
    assert found.summary.imported
    # And the file is still known.
    assert import_submission(sent["whole"], mine).outcome == "here already"


# --- what may be sent ---


def test_a_run_that_has_not_ended_is_not_sent(runs, tmp_path):
    store, run_ids = runs
    other = Store.open(tmp_path / "other")
    run_id = run_ids["whole"]
    lines = store.journal(run_id).read_bytes().splitlines(keepends=True)
    other.run_dir(run_id).mkdir()
    other.journal(run_id).write_bytes(b"".join(lines[:-1]))
    with pytest.raises(UsageError, match="only one that has ended can be sent: harness resume"):
        export_submission(other, run_id, tmp_path / "x.zip")
    assert not (tmp_path / "x.zip").exists()


def test_a_secret_that_the_journal_did_not_know_is_redacted(runs, tmp_path, monkeypatch):
    """It is one of this machine's by now, and stands in every prompt."""
    store, run_ids = runs
    prompt = next(
        r.prompt for r in read_records(store.journal(run_ids["whole"]))
        if isinstance(r, SampleRecord)
    )  # fmt: skip
    monkeypatch.setenv("ANY_API_KEY", prompt[:20])
    made = export_submission(store, run_ids["whole"], tmp_path / "x.zip")
    assert made.attempts == 12
    with zipfile.ZipFile(tmp_path / "x.zip") as file:
        prompts = pq.read_table(BytesIO(file.read("samples.parquet")))["prompt"].to_pylist()
    assert not any(prompt[:20] in p for p in prompts)


def test_a_task_that_changed_since_is_not_sent(runs, tmp_path, monkeypatch):
    store, run_ids = runs
    from harness.core import registry

    entry = registry.find("tasks", "aicrypto/mcq").load()

    def changed(request):
        return msgspec.structs.replace(entry(request), system="Another system turn.")

    monkeypatch.setattr(registry, "_decorated", {})
    registry.task("aicrypto/mcq", n=50)(changed)
    with pytest.raises(RejectedError) as refused:
        export_submission(store, run_ids["whole"], tmp_path / "x.zip")
    assert any("the key of an attempt is another" in r for r in refused.value.reasons)
    assert not (tmp_path / "x.zip").exists()


# --- scores that cannot be given again ---


def test_what_cannot_be_scored_again_is_said(runs, sent, mine, monkeypatch):
    """A judge is wanted here, so nothing is recomputed; the marks say so."""
    from harness.core import registry
    from harness.core.spec import parse_spec
    from harness.core.task import TaskRequest, make_task

    name = parse_spec(make_task("aicrypto/mcq", TaskRequest()).scorer).name

    def judged(judge, profile=""):
        return lambda sample, output: Score(value=0.0)

    monkeypatch.setattr(registry, "_decorated", {})
    registry.scorer(name)(judged)
    found = import_submission(sent["whole"], mine)
    assert found.scores.n_equal == 0
    ((why, n),) = found.scores.not_recomputed.items()
    assert "may ask a judge" in why
    assert n == 12
    started = next(iter(read_records(mine.journal(found.run_id))))
    assert started.environment["imported"]["scores_not_recomputed"] == {why: 12}


def test_another_version_of_the_scorer_is_no_reason_but_is_said(sent, mine, monkeypatch):
    from harness.core import registry

    monkeypatch.setattr(registry, "_decorated", {})
    registry.scorer("choice", version="99")(lambda profile: lambda sample, output: Score(value=0.0))
    found = import_submission(sent["whole"], mine)
    ((why, n),) = found.scores.not_recomputed.items()
    assert "version 99" in why
    assert n == 12
    # Whoever sends it chooses the version: so the number is marked wherever it shows.
    assert found.summary.unchecked == 12
    (row,) = board(snapshot(mine), (("aicrypto/mcq", found_version(mine)),)).rows
    assert {"imported", "scores unchecked"} <= set(row.flags)


def test_a_checked_submission_has_no_such_mark(sent, mine):
    found = import_submission(sent["whole"], mine)
    assert found.summary.unchecked == 0
    (row,) = board(snapshot(mine), (("aicrypto/mcq", found_version(mine)),)).rows
    assert "imported" in row.flags
    assert "scores unchecked" not in row.flags


def test_a_name_that_an_import_would_refuse_is_not_written(runs, tmp_path):
    store, run_id = runs[0], runs[1]["whole"]
    with pytest.raises(RejectedError, match="name"):
        export_submission(store, run_id, tmp_path / "x.zip", submitter="")
    assert not (tmp_path / "x.zip").exists()


def test_a_run_over_the_benchmarks_own_files_needs_them_here(runs, mine, tmp_path):
    """What a file names is never opened: whoever imports it says where theirs lie."""
    rows = [
        {"question": f"What is {k} + 1?", "answer": f"It is one more.\n#### {k + 1}"}
        for k in range(4)
    ]
    for folder in ("theirs", "ours"):
        path = tmp_path / folder
        path.mkdir()
        (path / "test.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    sender = Store.open(tmp_path / "sender")
    config = make_config(task="gsm8k", model="mock:gold", data_root=tmp_path / "theirs")
    run_id = start(config, sender).run_id
    file = tmp_path / "x.zip"
    export_submission(sender, run_id, file)
    with pytest.raises(RejectedError, match="--data-root DIR"):
        import_submission(file, mine)
    found = import_submission(file, mine, data_root=str(tmp_path / "ours"))
    assert found.summary.metrics["accuracy"].value == 1.0
    (tmp_path / "ours" / "test.jsonl").write_text(json.dumps(rows[0]) + "\n")
    with pytest.raises(RejectedError) as refused:
        import_submission(file, Store.open(tmp_path / "x"), data_root=str(tmp_path / "ours"))
    assert any("an item is none of the plan's" in r for r in refused.value.reasons)
