"""Whatever is changed in a submission is found, and named; nothing of it reaches the store.

The forger is careful: unless a test says otherwise, hashes, lengths and numbers of rows fit again.
"""

from __future__ import annotations

import math

import pytest

from harness.core.keys import sha256_of
from harness.exchange.rejected import RejectedError
from harness.exchange.submission_import import import_submission

SAMPLES, SCORES, EVENTS = "samples.parquet", "scores.parquet", "events.parquet"
SECRET = "sk-" + "a1B2" * 8


def wrong(forgery):
    """Find a verdict that is wrong."""
    return next(row for row in forgery.rows[SCORES] if row["value"] == 0.0)


def sample_of(forgery, score):
    return next(row for row in forgery.rows[SAMPLES] if row["item_id"] == score["item_id"])


def value_changed(forgery):
    wrong(forgery).update(value=1.0, passed=True)


def value_and_totals_changed(forgery):
    """The totals are made to fit too: only the scorer tells."""
    value_changed(forgery)
    ((_, total),) = forgery.manifest["totals"].items()
    total["value"] += 1 / 12


def output_changed(forgery):
    sample_of(forgery, wrong(forgery))["output"] = "A whole other answer."


def item_hash_changed(forgery):
    forgery.manifest["run"]["items"][0]["content_sha256"] = sha256_of("another item")


def cluster_changed(forgery):
    forgery.manifest["run"]["items"][0]["cluster_id"] = "a cluster that narrows the interval"


def item_swapped(forgery):
    forgery.manifest["run"]["items"][0]["item_id"] = "no-such-item"


def key_changed(forgery):
    forgery.rows[SAMPLES][0]["key"] = sha256_of("another attempt")


def model_renamed(forgery):
    """The keys were made for a mock, not for this model."""
    run = forgery.manifest["run"]
    run["model"] = run["config"]["model"] = "mock:gold"
    run["identity"] |= {"name": "gold", "model_id": "gold", "args": {}}


def temperature_changed(forgery):
    forgery.manifest["run"]["config"]["temperature"] = 0.7
    forgery.manifest["run"]["task_info"]["generation"]["temperature"] = 0.7


def row_left_out(forgery):
    score = wrong(forgery)
    forgery.rows[SAMPLES].remove(sample_of(forgery, score))
    forgery.rows[SCORES].remove(score)


def score_left_out(forgery):
    """Without a verdict the wrong answer would leave the denominator."""
    forgery.rows[SCORES].remove(wrong(forgery))


def score_without_attempt(forgery):
    forgery.rows[SAMPLES].remove(sample_of(forgery, wrong(forgery)))


def wrong_called_unavailable(forgery):
    """Another way out of the denominator."""
    score = wrong(forgery)
    forgery.rows[SCORES].remove(score)
    sample_of(forgery, score)["status"] = "unavailable"


def wrong_called_unscored(forgery):
    wrong(forgery).update(value=None, passed=None, status="unscored", reason="judge_unreadable")


def row_doubled(forgery):
    rows = forgery.rows[SAMPLES]
    rows.append(rows[-1] | {"seq": 10_000})


def seq_doubled(forgery):
    rows = forgery.rows[SAMPLES]
    rows.append(dict(rows[-1]))


def row_of_another_item(forgery):
    rows = forgery.rows[SAMPLES]
    rows.append(rows[-1] | {"seq": 10_000, "item_id": "own-mcq-X99"})


def row_of_another_repeat(forgery):
    rows = forgery.rows[SAMPLES]
    rows.append(rows[-1] | {"seq": 10_000, "epoch": 1})


def counts_changed(forgery):
    forgery.manifest["counts"]["n_scored"] -= 1


def totals_changed(forgery):
    ((_, total),) = forgery.manifest["totals"].items()
    total["lo"] += 0.1


def plan_changed(forgery):
    forgery.manifest["run"]["n_planned"] = 11


def repeats_changed(forgery):
    forgery.manifest["run"]["config"]["epochs"] = 1_000_000_000


def not_a_number(forgery):
    wrong(forgery)["value"] = math.nan


def infinite_metric(forgery):
    wrong(forgery)["metrics"] = [("length", math.inf)]


def cost_not_finite(forgery):
    forgery.rows[SAMPLES][0]["cost_usd"] = -math.inf


def unknown_status(forgery):
    forgery.rows[SAMPLES][0]["status"] = "brilliant"


def scored_status(forgery):
    forgery.rows[SAMPLES][0]["status"] = "scored"


def negative_seq(forgery):
    forgery.rows[SAMPLES][0]["seq"] = -1


def time_is_no_time(forgery):
    forgery.rows[SAMPLES][0]["ts"] = "yesterday"


def long_text(forgery):
    forgery.rows[SAMPLES][0]["output"] = "x" * (1 << 21)


def secret_in_output(forgery):
    forgery.rows[SAMPLES][0]["output"] += f" key {SECRET}"


def secret_in_event(forgery):
    forgery.rows[EVENTS].append(
        {"seq": 10_000, "ts": forgery.rows[EVENTS][-1]["ts"], "kind": "backend", "item_id": None,
         "epoch": None, "attempt": None, "data": f'{{"header": "Bearer {SECRET}"}}'}
    )  # fmt: skip


def secret_in_config(forgery):
    forgery.manifest["run"]["environment"]["note"] = SECRET


def task_changed(forgery):
    forgery.manifest["task"]["content_sha256"] = sha256_of("another prompt")


def dataset_changed(forgery):
    forgery.manifest["task"]["dataset_sha256"] = sha256_of("another data set")


def version_changed(forgery):
    forgery.manifest["run"]["task_version"] = "0"


def task_unknown(forgery):
    forgery.manifest["run"]["task"] = forgery.manifest["run"]["config"]["task"] = "no/such/task"


def solver_changed(forgery):
    forgery.manifest["task"]["solver_version"] = "99"


def policy_changed(forgery):
    forgery.manifest["run"]["errors"] = "exclude"


def id_is_a_path(forgery):
    forgery.manifest["run"]["run_id"] = "../../../escaped"


def submitter_is_odd(forgery):
    forgery.manifest["submitter"] = "\x1b[2Jgone"


def newer_schema(forgery):
    forgery.manifest["schema"] = 2


def other_kind(forgery):
    forgery.manifest["kind"] = "holiday-pictures"


def unknown_field(forgery):
    forgery.manifest["trust_me"] = True


def adaptive(forgery):
    forgery.manifest["run"]["config"]["adaptive"] = True


def no_end(forgery):
    forgery.rows[EVENTS].clear()


def column_left_out(forgery):
    table = forgery.tables[SCORES]
    forgery.tables[SCORES] = table.drop_columns(["scorer_version"])
    for row in forgery.rows[SCORES]:
        del row["scorer_version"]


def local_data(forgery):
    """A file must not make its reader open or fetch anything."""
    forgery.manifest["data_from"] = "data root"


def data_named(forgery):
    forgery.manifest["run"]["config"]["data"] = "hub:somebody/else@main"


def commit_is_odd(forgery):
    forgery.manifest["run"]["environment"]["dirty"] = "perhaps"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (value_changed, "a score is not what the scorer gives: item"),
        (value_and_totals_changed, "a score is not what the scorer gives: item"),
        (output_changed, "a score is not what the scorer gives: item"),
        (item_hash_changed, "the content_sha256 of an item is another: item"),
        (cluster_changed, "the cluster_id of an item is another: item"),
        (item_swapped, "an item is none of the plan's: item no-such-item"),
        (item_swapped, "an item of the plan is missing"),
        (key_changed, "the key of an attempt is another: item"),
        (model_renamed, "the key of an attempt is another: item"),
        (model_renamed, "the run contradicts its own options: variant_id"),
        (temperature_changed, "the key of an attempt is another: item"),
        (row_left_out, "rows are missing of a run that is done: 1 of 12 attempts"),
        (score_left_out, "an answer has no score: item"),
        (score_without_attempt, "a score has no attempt: item"),
        (wrong_called_unavailable, "a status is not what the answer's end says: item"),
        (wrong_called_unscored, "a score is not what the scorer gives: item"),
        (row_doubled, "an attempt stands twice: item"),
        (seq_doubled, "two rows have one seq"),
        (row_of_another_item, "a row is none of the plan's: item own-mcq-X99 epoch 0"),
        (row_of_another_repeat, "a row is none of the plan's: item"),
        (counts_changed, "a count is not what the rows say: n_scored 11, from the rows 12"),
        (totals_changed, "a total is not what the rows say: accuracy"),
        (plan_changed, "the plan does not add up"),
        (repeats_changed, "the plan does not add up"),
        (not_a_number, "a number is not finite: scores.parquet seq"),
        (infinite_metric, "a number is not finite: scores.parquet seq"),
        (cost_not_finite, "a number is not finite: samples.parquet seq"),
        (unknown_status, "a row is no record: samples.parquet seq"),
        (scored_status, "a status is not what the answer's end says: item"),
        (negative_seq, "a row has no place in the journal: samples.parquet seq -1"),
        (time_is_no_time, "a row has no place in the journal"),
        (long_text, "a text is longer than a journal keeps"),
        (secret_in_output, "a secret stands in a row: item"),
        (secret_in_event, "a secret stands in a row: seq 10000"),
        (secret_in_config, "a secret stands in the manifest"),
        (task_changed, "the task's content_sha256 is another"),
        (dataset_changed, "the task's dataset_sha256 is another"),
        (version_changed, "the task is another: aicrypto/mcq 0, here aicrypto/mcq 1"),
        (task_unknown, "the run cannot be planned here: task no/such/task"),
        (solver_changed, "the task's solver_version is another: 99, here 1"),
        (policy_changed, "the run contradicts its own options: errors"),
        (id_is_a_path, "the run's id is none that a run gets: '../../../escaped'"),
        (submitter_is_odd, "the submitter's name cannot be shown"),
        (newer_schema, "a newer package wrote the file"),
        (other_kind, "the file is no submission"),
        (unknown_field, "the manifest cannot be read"),
        (no_end, "the run has not ended"),
        (adaptive, "an adaptive run rests on an item bank"),
        (column_left_out, "the columns of a table are others: scores.parquet (scorer_version)"),
        (data_named, "the file says where data are read from: config data"),
        (commit_is_odd, "a value cannot be stored"),
        (local_data, "the items come from elsewhere: a data root"),
    ],
)
def test_each_change_is_refused_with_its_reason(forge, mine, change, reason):
    before = sorted(mine.root.rglob("*"))
    with pytest.raises(RejectedError) as refused:
        import_submission(forge(change), mine)
    assert [r for r in refused.value.reasons if r.startswith(reason)], refused.value.reasons
    assert all("\n" not in r and "; " in r for r in refused.value.reasons)
    assert refused.value.exit_code == 1
    assert sorted(mine.root.rglob("*")) == before


def test_all_reasons_are_listed_at_once(forge, mine):
    def several(forgery):
        key_changed(forgery)
        value_changed(forgery)
        item_hash_changed(forgery)
        secret_in_config(forgery)

    with pytest.raises(RejectedError) as refused:
        import_submission(forge(several), mine)
    assert len(refused.value.reasons) >= 4


def test_unchanged_a_forgery_is_no_forgery(forge, mine):
    """The forger's tools change nothing by themselves: what the tests find is what they changed."""
    assert import_submission(forge(lambda _: None), mine).outcome == "imported"


def test_a_partial_run_may_have_rows_missing_but_must_count_them(forge, mine):
    """A row left out of a partial run shows as open, so the counts no longer fit."""

    def left_out(forgery):
        forgery.rows[SAMPLES].pop(0)
        score = forgery.rows[SCORES][0]
        if score["item_id"] == forgery.rows[SAMPLES][0]["item_id"]:
            forgery.rows[SCORES].remove(score)

    with pytest.raises(RejectedError) as refused:
        import_submission(forge(left_out, "partial"), mine)
    assert any(r.startswith(("a count is not", "a score has no")) for r in refused.value.reasons)


def test_a_manifest_with_a_nan_is_no_json(taken_apart, tmp_path, mine):
    from harness.exchange.container import write_container

    members = taken_apart().members()
    members["manifest.json"] = members["manifest.json"].replace(b'"seed": 0', b'"seed": NaN', 1)
    assert b"NaN" in members["manifest.json"]
    write_container(tmp_path / "x.zip", members)
    with pytest.raises(RejectedError, match="the manifest cannot be read"):
        import_submission(tmp_path / "x.zip", mine)
