"""The page Compare: the numbers of ``harness compare``, its refusals, and answers side by side."""

from __future__ import annotations

import re

import msgspec
import numpy as np
import pytest
from scipy.stats import norm, sem
from statsmodels.stats.contingency_tables import mcnemar

from harness.core.errors import UsageError
from harness.runner.compare import compare
from harness.store import snapshot, sync
from leaderboard.rows.compare import answer, compared
from leaderboard.rows.subjects import subjects

A = [1.0] * 14 + [0.0] * 6
B = [0.0] * 5 + [1.0] * 9 + [1.0] + [0.0] * 5


def pair(store, a="hf:a", b="hf:b", **options):
    con = snapshot(store)
    known = {s.model: s for s in subjects(con)}
    return compared(con, store, known[a], known[b], **options)


def test_one_task_by_hand(store, write):
    write(store, A)
    write(store, B, model="hf:b")
    sync(store)
    found = pair(store)
    (row,) = found.rows
    assert (row.gained, row.lost, row.n_shared) == (5, 1, 20)
    assert row.diff == pytest.approx(4 / 20)
    exact = mcnemar([[0, 5], [1, 0]], exact=True).pvalue
    assert (row.p, row.p_adj, row.mcnemar_p) == pytest.approx((exact,) * 3)
    assert found.overall is None
    assert [f.item for f in found.flips if f.better == "B"] == ["demo-14"]


def test_the_numbers_of_the_command(store, write):
    for task, values in (("demo/add", A), ("demo/mul", A[::-1])):
        write(store, values, task=task)
        write(store, B, task=task, model="hf:b")
    sync(store)
    ours, theirs = pair(store), compare(store, "hf:a", "hf:b")
    for row, one in zip(ours.rows, theirs.tasks, strict=True):
        assert (row.task, row.n_shared, row.gained, row.lost) == (
            one.task, one.n, len(one.flips.gained), len(one.flips.lost),
        )  # fmt: skip
        assert (row.diff, row.diff_lo, row.diff_hi, row.p, row.p_adj, row.mde) == pytest.approx(
            (one.diff, one.lo, one.hi, one.p, one.p_adj, one.mde)
        )
    assert ours.overall is not None
    assert (ours.overall.diff, ours.overall.lo, ours.overall.hi, ours.overall.p) == pytest.approx(
        (theirs.diff, theirs.lo, theirs.hi, theirs.p)
    )


def test_over_tasks_by_hand(store, write):
    c = [1.0] * 18 + [0.0] * 2
    for task, values in (("demo/add", A), ("demo/mul", c)):
        write(store, values, task=task)
        write(store, B, task=task, model="hf:b")
    sync(store)
    overall = pair(store).overall
    differences = [np.subtract(values, B) for values in (A, c)]
    mean = np.mean([d.mean() for d in differences])
    se = np.sqrt(sum(sem(d) ** 2 for d in differences)) / 2
    assert overall is not None
    assert (overall.diff, overall.lo, overall.hi) == pytest.approx(
        (mean, *norm.interval(0.95, mean, se))
    )
    assert overall.p == pytest.approx(2 * norm.sf(mean / se))


CONFIG = {"task": "demo/add", "model": "hf:b", "limit": None}
UNLIKE = {
    "solver": {"solver": "choose"},
    "fewshot": {"config": CONFIG | {"fewshot": 5}},
    "system": {"config": CONFIG | {"system": "Be brief."}},
    "errors": {"errors": "exclude", "config": CONFIG | {"errors": "exclude"}},
    "version": {"version": "2"},
    "prompt_sha256": {"task_info": {"metric": "accuracy", "prompt_sha256": "q" * 64}},
    "args": {"config": CONFIG | {"args": {"shuffle": "yes"}}},
}


@pytest.mark.parametrize("name", UNLIKE)
def test_what_the_command_refuses_is_refused(store, write, name):
    write(store, A)
    write(store, B, model="hf:b", **UNLIKE[name])
    sync(store)
    with pytest.raises(UsageError, match=name):
        compare(store, "hf:a", "hf:b")
    found = pair(store)
    assert found.rows == []
    ((reason,),) = [r.reasons for r in found.refused]
    assert reason.startswith(f"{name} (")
    # Versions have other items: those are never mixed, whatever is asked.
    rows = pair(store, different=True).rows
    assert len(rows) == (name != "version")
    assert all(row.unlike == (reason,) for row in rows)


def test_every_run_of_a_side_counts(store, write):
    write(store, A, solver="choose")
    write(store, A)
    write(store, B, model="hf:b")
    sync(store)
    (refused,) = pair(store).refused
    assert refused.reasons == ("solver (choose, generate / generate)",)


def test_items_with_other_content_are_refused(store, write):
    write(store, A)
    run_id = write(store, B, model="hf:b")
    journal = store.journal(run_id)
    journal.write_bytes(journal.read_bytes().replace(b'"content_sha256":"', b'"content_sha256":"0'))
    sync(store)
    (refused,) = pair(store).refused
    assert refused.reasons[0].startswith("content of 20 shared items")


def test_an_item_is_one_of_its_task(store, write):
    write(store, [1.0] * 4)
    write(store, [0.0] * 4, model="hf:b", task="demo/mul")
    write(store, [1.0] * 4, model="hf:b")
    sync(store)
    (row,) = pair(store).rows
    # By item_id alone B would be at one half.
    assert (row.task, row.mean_b, row.gained) == ("demo/add", 1.0, 0)


def test_baselines_and_open_runs_are_said(partial_store):
    (row,) = pair(partial_store, "hf:a", "mock:gold").rows
    assert {"A is not whole", "B is a baseline"} <= set(row.flags)
    assert (row.n_shared, row.only_a, row.only_b) == (5, 0, 5)


def test_both_answers_whole(store, write):
    write(store, A, text=lambda i: (f"Question {i}", f"A says {i}"))
    write(store, B, model="hf:b", text=lambda i: (f"Question {i}", f"B says {i}"))
    write(store, B, model="hf:b", task="demo/mul", text=lambda i: ("other", "other"))
    sync(store)
    con = snapshot(store)
    found = [answer(con, store, s, "demo/add", "1", "demo-14") for s in subjects(con)]
    assert [one.output for one in found] == ["A says 14", "B says 14"]
    assert {one.prompt for one in found} == {"Question 14"}


def test_the_page_on_every_store(any_store, open_page):
    app = open_page("compare", any_store)
    assert not app.exception
    assert app.title


def test_the_page_shows_both_answers(store, write, open_page):
    write(store, A, text=lambda i: (f"Question {i}", f"A says {i}"))
    write(store, B, model="hf:b", text=lambda i: (f"Question {i}", f"B says {i}"))
    sync(store)
    app = open_page("compare", store, a="hf:a float32", b="hf:b float32", item="demo-14")
    codes = [code.value for code in app.code]
    assert "Question 14" in codes
    assert codes.index("A says 14") < codes.index("B says 14")


def test_what_a_model_wrote_is_no_markup(store, write, open_page):
    """A picture in an answer would make the visitor's browser ask another machine for it."""
    picture = "![x](//elsewhere.example/x.png)"
    for values, model in ((A, f"hf:{picture}"), (B, "hf:b")):
        journal = store.journal(write(store, values, model=model))
        lines = [msgspec.json.decode(line) for line in journal.read_bytes().splitlines()]
        for line in lines:
            if line["type"] == "score":
                line |= {"answer": picture, "explanation": picture}
        journal.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    sync(store)
    app = open_page("compare", store, item="demo-14")
    assert not app.exception
    parts = (app.caption, app.markdown, app.info)
    # What stands in backticks is no markup.
    said = [re.sub("`[^`]*`", "", element.value) for part in parts for element in part]
    assert sum("elsewhere" in text for text in said) >= 4  # a label, answers, explanations
    assert not [text for text in said if re.search(r"(?<!\\)\[x", text)]


def test_the_page_says_why_it_refuses(store, write, open_page):
    write(store, A)
    write(store, B, model="hf:b", solver="choose")
    sync(store)
    app = open_page("compare", store)
    (frame,) = [frame.value for frame in app.dataframe]
    assert list(frame["reasons"]) == ["solver (generate / choose)"]


def test_texts_that_are_not_there_are_said(many_store, open_page):
    app = open_page("compare", many_store)
    assert "The text is not in this store." in [caption.value for caption in app.caption]
