"""The verdict: what is right by our rules, what upstream's say beside it, and the faults it had."""

from __future__ import annotations

import pytest

from scorers.drc.results import DeckRun, LayoutRun
from scorers.drc.verdict import Confusion, metrics_of, verdict


def deck_run(*said, stateful=False):
    """A result a layout: a dict of counts, or a status."""
    runs = tuple(
        LayoutRun(index=i, status="ok", counts=one)
        if isinstance(one, dict)
        else LayoutRun(index=i, status=one, message="why")
        for i, one in enumerate(said)
    )
    return DeckRun(runs=runs, engine="klayout", version="test", stateful=stateful)


@pytest.mark.parametrize(
    ("counts", "f1", "upstream"),
    [
        ((3, 1, 0), 0.857143, 0.857143),
        ((0, 0, 0), 1.0, 0.0),
        ((1, 0, 0), 1.0, 1.0),
        ((0, 1, 2), 0.0, 0.0),
    ],
)
def test_f1_is_that_of_the_textbook_with_its_empty_case(counts, f1, upstream):
    found = Confusion(*counts, 0)
    assert round(found.f1, 6) == f1
    assert round(found.upstream_f1, 6) == upstream


def test_all_right_is_a_success_by_both():
    found = verdict(deck_run({"W": 2}, {"W": 0}), ["W"], [[1], [0]])
    assert (found.success, found.upstream, found.partial, found.reason) == (True, True, 1.0, "")
    assert found.f1 == {"W": 1.0}


def test_a_missing_category_is_no_violation_and_one_item_too_many_is():
    assert verdict(deck_run({}, {"W": 1}), ["W"], [[0], [1]]).success
    found = verdict(deck_run({"W": 1}, {"W": 1}), ["W"], [[0], [1]])
    assert (found.success, found.partial, found.reason) == (False, 0.5, "wrong_layouts")


# The five cases of upstream's scorer that decide wrongly, and what we say.


def test_a_deck_that_raises_exactly_on_clean_layouts_is_wrong():
    found = verdict(deck_run({"W": 1}, "error"), ["W"], [[1], [0]])
    assert (found.success, found.reason, found.compile_rate) == (False, "deck_error", 0.5)
    assert found.upstream  # an error counts as "no violation" there
    assert found.partial == 0.5


def test_a_right_deck_on_clean_layouts_alone_is_right():
    found = verdict(deck_run({"W": 0}, {}), ["W"], [[0], [0]])
    assert (found.success, found.upstream) == (True, False)


def test_a_dotted_name_is_the_category_that_it_names():
    found = verdict(deck_run({"M1.W.1": 1}, {"M1.W.1": 0}), ["M1.W.1"], [[1], [0]])
    assert (found.success, found.upstream) == (True, False)


def test_an_unknown_category_fails_with_items_and_not_without():
    assert verdict(deck_run({"W": 1, "X": 0}), ["W"], [[1]]).success
    found = verdict(deck_run({"W": 1, "X": 1}), ["W"], [[1]])
    assert (found.success, found.reason, found.rows[0].unknown) == (
        False,
        "unknown_category",
        ["X"],
    )


def test_timeout_and_crash_are_told_apart_and_the_worst_names_the_reason():
    assert verdict(deck_run("timeout", "error"), ["W"], [[1], [0]]).reason == "deck_timeout"
    assert verdict(deck_run("crash", {}), ["W"], [[1], [0]]).reason == "deck_crash"
    assert verdict(deck_run("no_report", {}), ["W"], [[0], [0]]).reason == "deck_no_report"


def test_a_deck_whose_result_depends_on_the_order_is_worth_nothing():
    found = verdict(deck_run({"W": 1}, {}, stateful=True), ["W"], [[1], [0]])
    assert (found.success, found.partial, found.reason) == (False, 0.0, "stateful")


def test_several_categories_are_judged_each_for_itself():
    found = verdict(deck_run({"W": 1}, {"S": 1}), ["W", "S"], [[1, 0], [1, 1]])
    assert found.partial == 0.5
    assert found.f1 == {"W": pytest.approx(2 / 3), "S": 1.0}
    assert metrics_of(found)["f1"] == pytest.approx(5 / 6)


@pytest.mark.parametrize("labels", [[], [[1]], [[1, 0], [1, 0]]])
def test_labels_that_do_not_fit_are_refused(labels):
    with pytest.raises(ValueError, match="labels"):
        verdict(deck_run({}, {}), ["W"], labels)
