"""The tables of a whole store: the same numbers in every form, each with how it was made."""

from __future__ import annotations

import csv
import json

import pyarrow.parquet as pq
import pytest
from statsmodels.stats.proportion import proportion_confint

from harness.exchange.results import write_results
from harness.exchange.submission_import import import_submission
from harness.store.publish import snapshot

TABLES = ("totals", "item_scores", "scores")


def strict(text):
    def refuse(word):
        raise ValueError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture(scope="module")
def written(runs, tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    return write_results(runs[0], out, ("parquet", "json", "csv")), out


def test_every_form_holds_the_same(written):
    counts, out = written
    about = strict((out / "results.json").read_text())
    assert set(counts) == set(about["tables"]) == set(TABLES)
    for name in TABLES:
        rows = pq.read_table(out / f"{name}.parquet").to_pylist()
        assert strict((out / f"{name}.json").read_text()) == rows
        with (out / f"{name}.csv").open(newline="") as file:
            table = list(csv.DictReader(file))
        assert [{k: "" if v is None else str(v) for k, v in row.items()} for row in rows] == table
        assert len(rows) == counts[name] == about["tables"][name]["rows"] > 0


def test_an_interval_says_how_it_was_made(runs, written):
    """A share over items that stand alone is Wilson's, as statsmodels gives it at that level."""
    rows = pq.read_table(written[1] / "totals.parquet").to_pylist()
    (row,) = [r for r in rows if r["run_id"] == runs[1]["whole"]]
    n = row["n_items"]
    lo, hi = proportion_confint(round(row["value"] * n), n, alpha=1 - row["level"], method="wilson")
    assert (row["lo"], row["hi"], row["method"]) == (
        pytest.approx(lo, abs=1e-9), pytest.approx(hi, abs=1e-9), "wilson",
    )  # fmt: skip
    assert row["code_version"]
    assert (row["is_headline"], row["is_baseline"], row["imported"]) == (True, True, False)
    # The statuses are exclusive and sum to the plan.
    names = ("n_scored", "error", "error_harness", "timeout", "truncated", "refused", "unscored",
             "unavailable", "open")  # fmt: skip
    for one in rows:
        assert sum(one[name] for name in names) == one["n_planned"]


def test_scores_and_item_scores_are_the_stores(runs, written):
    con = snapshot(runs[0])
    scores = pq.read_table(written[1] / "scores.parquet").to_pylist()
    assert len(scores) == con.execute("SELECT count(*) FROM scores").fetchone()[0]
    items = pq.read_table(written[1] / "item_scores.parquet").to_pylist()
    values: dict[tuple[str, str], float] = {}
    for score in scores:
        if score["metric"] == "accuracy" and score["task_id"] == "aicrypto/mcq":
            at = (score["variant_id"], score["item_id"])
            values[at] = values.get(at, 0.0) + score["value"]
    of_task = [row for row in items if row["task_id"] == "aicrypto/mcq"]
    assert {(row["variant_id"], row["item_id"]): row["k"] for row in of_task} == values
    assert {r["model"] for r in items} == {
        "mock:noisy?accuracy=0.6", "mock:noisy?accuracy=0.5&fail=0.1&truncate=0.15&refuse=0.15",
    }  # fmt: skip


def test_imported_runs_are_marked_in_every_table(sent, mine, tmp_path):
    import_submission(sent["whole"], mine)
    write_results(mine, tmp_path / "out", ("json",))
    (total,) = strict((tmp_path / "out" / "totals.json").read_text())
    assert (total["imported"], total["submitter"]) == (True, "Ada")
    assert {r["imported"] for r in strict((tmp_path / "out" / "scores.json").read_text())} == {True}


def test_an_empty_store_writes_empty_tables(mine, tmp_path):
    assert write_results(mine, tmp_path / "out", ("parquet", "json", "csv")) == dict.fromkeys(
        TABLES, 0
    )
    assert strict((tmp_path / "out" / "totals.json").read_text()) == []
    assert strict((tmp_path / "out" / "scores.json").read_text()) == []
    table = pq.read_table(tmp_path / "out" / "totals.parquet")
    assert (table.num_rows, "level" in table.column_names) == (0, True)
