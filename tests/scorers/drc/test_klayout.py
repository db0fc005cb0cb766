"""Decks in KLayout: whatever one does, the right layouts fail, and nothing else."""

from __future__ import annotations

import os

import pytest

from harness.core.types import Output, Sample
from harness.sandbox import LIMITS
from scorers.drc import drc
from scorers.drc import klayout as module
from scorers.drc.verdict import verdict

HEAD = 'source($input)\nreport("test", $output)\na = input(1, 0)\n'
CHECK = 'a.width(0.14.um).output("W")\n'
A = (1, 0)


@pytest.fixture(scope="module")
def strips(gds):
    """Four strips, of 139, 140, 139 and 141 units, of which two are too thin."""
    return [gds({A: [(0, 0, width, 2000)]}) for width in (139, 140, 139, 141)]


LABELS = [[1], [0], [1], [0]]


def judged(klayout, deck, layouts, **options):
    return verdict(klayout.run(deck, layouts, key="item", **options), ["W"], LABELS)


def statuses(found):
    return [row.status for row in found.rows]


def test_a_right_deck_is_right_and_says_where(klayout, strips):
    run = klayout.run(HEAD + CHECK, strips, key="item")
    assert verdict(run, ["W"], LABELS).success
    assert run.version.startswith("KLayout 0.")
    assert run.starts == 1
    (marker,) = run.runs[0].markers
    assert marker.kind == "edge_pair"
    assert {x for line in marker.points for x, _ in line} == {0.0, 0.139}
    # The same deck on the same layouts is not run again.
    assert klayout.run(HEAD + CHECK, strips, key="item") is run


def test_a_hang_ends_alone(klayout, strips, monkeypatch):
    monkeypatch.setattr(module, "_LIMITS", LIMITS["engine"].__class__(**{
        **{f: getattr(module._LIMITS, f) for f in module._LIMITS.__struct_fields__}, "wall_s": 2,
    }))  # fmt: skip
    deck = f"{HEAD}{CHECK}loop {{ }} if a.area < 0.1395 * 2.0 - 0.0005 && a.area > 0.27\n"
    found = judged(klayout, deck, strips, audit=False)
    assert statuses(found) == ["timeout", "ok", "timeout", "ok"]
    assert found.reason == "deck_timeout"


def test_a_crash_takes_its_own_layout_only(klayout, strips):
    deck = f"{HEAD}{CHECK}Process.kill(:KILL, Process.pid) if a.area < 0.279\n"
    run = klayout.run(deck, strips, key="item", audit=False)
    assert [one.status for one in run.runs] == ["crash", "ok", "crash", "ok"]
    assert run.starts >= 2
    assert verdict(run, ["W"], LABELS).partial == 0.5


@pytest.mark.parametrize(
    ("deck", "status", "reason"),
    [
        (f'{HEAD}{CHECK}raise "done"\n', "error", "deck_error"),
        (f"{HEAD}{CHECK}exit\n", "ok", ""),
        (f"{HEAD}exit\n{CHECK}", "ok", "wrong_layouts"),
        (f"source($input)\na = input(1, 0)\n{CHECK}", "no_report", "deck_no_report"),
        ('source($input)\na = input(1, 0)\na.output("W", "text")\n', "error", "deck_error"),
        ("x = 1\n", "no_report", "deck_no_report"),
        ("this is no Ruby (\n", "error", "deck_error"),
        (f'{HEAD}{CHECK}a.width(0.14.um).output("W2")\n', "ok", "unknown_category"),
        ('File.write($output, "<report-database>" + "x" * 99)\n', "bad_report", "deck_bad_report"),
        ('File.write($output, "<!DOCTYPE a><report-database/>")\n', "bad_report", "deck_bad_report"),
        ('File.symlink("/etc/hostname", $output)\n', "no_report", "deck_no_report"),
        ('system("true"); File.read("/etc/shadow")\n', "error", "deck_error"),
    ],
)  # fmt: skip
def test_how_a_deck_ends(klayout, strips, deck, status, reason):
    found = judged(klayout, deck, strips)
    assert set(statuses(found)) == {status}
    assert found.reason == reason


def test_a_deck_sees_no_name_no_label_and_no_other_layout(klayout, strips):
    spy = HEAD + CHECK + (
        'raise "names: " + Dir.glob("/box/**/*").sort.map { |f| File.basename(f) }'
        '.reject { |f| f =~ /\\A\\h{32}\\.lyrdb\\z/ }.join(" ") + " " + $input\n'
    )  # fmt: skip
    (message,) = {row.message for row in judged(klayout, spy, strips).rows}
    assert message == "RuntimeError: names: deck.drc driver.rb layout.gds /box/layout.gds"


def test_state_between_layouts_shows(klayout, strips):
    twice = (
        "$calls = ($calls || 0) + 1\nsource($input)\nreport('t', $output)\n"
        'source.extent.output("W") if $calls.even?\n'
    )
    assert judged(klayout, twice, strips).reason == "stateful"


def test_reports_written_ahead_or_forged_replies_count_for_nothing(klayout, strips):
    ahead = (
        f"{HEAD}{CHECK}"
        "$kept ||= File.dirname($output)\n"
        '(0..99).each { |k| File.write("/box/%032x.lyrdb" % k, "<report-database/>") }\n'
    )
    assert judged(klayout, ahead, strips).success
    forged = (
        f'out = IO.for_fd(4, "w", autoclose: false)\nout.syswrite("{{}}\\n" * 3)\n{HEAD}{CHECK}'
    )
    found = judged(klayout, forged, strips, audit=False)
    assert not found.success
    assert "ok" not in statuses(found)


def test_forks_of_a_deck_change_nothing(klayout, strips):
    deck = f"{HEAD}4.times {{ fork {{ sleep 60 }} }}\n{CHECK}"
    assert judged(klayout, deck, strips, audit=False).success


def test_bare_integers_are_database_units(klayout, gds):
    fine = [gds({A: [(0, 0, w, 4000)]}, dbu=0.0005) for w in (279, 280, 279, 281)]
    assert judged(klayout, HEAD + CHECK, fine).success
    assert not judged(klayout, HEAD + CHECK.replace("0.14.um", "140"), fine).success


def test_broken_layouts_fail_by_themselves(klayout, gds, strips):
    layouts = [strips[0], b"no layout", gds({A: [(0, 0, 9, 9)]}, tops=2), strips[3]]
    run = klayout.run(HEAD + CHECK, layouts, key="item", audit=False)
    assert [one.status for one in run.runs] == ["ok", "error", "error", "ok"]


def test_the_scorer_tells_how_it_went(klayout, strips):
    sample = Sample(
        item_id="s", input="", metadata={
            "layouts": [{"gds": g, "labels": v} for g, v in zip(strips, LABELS, strict=True)],
            "categories": ["W"], "layers": {"a": [1, 0]},
        },
    )  # fmt: skip
    scorer = drc()
    try:
        right = scorer(sample, Output(text=f"```ruby\n{HEAD}{CHECK}```"))
        raises = scorer(sample, Output(text=f"{HEAD}{CHECK}raise 'x' if a.area > 0.279"))
        nothing = scorer(sample, Output(text="```ruby\n```"))
    finally:
        scorer.close()
    assert (right.value, right.passed, right.status) == (1.0, True, "scored")
    assert right.facts["layouts"][0]["bits"] == [1]
    assert right.facts["version"].startswith("KLayout")
    assert right.isolation in ("full", "full-nocg", "userns")
    assert len(right.pictures) == 4
    assert (raises.value, raises.status, raises.reason) == (0.0, "error", "deck_error")
    assert raises.metrics["compile_rate"] == 0.5
    assert raises.metrics["upstream_success"] == 1.0
    assert nothing.reason == "no_answer"


def test_without_the_program_nothing_is_judged(monkeypatch, strips):
    monkeypatch.setenv("PATH", os.devnull)
    sample = Sample(
        item_id="s", input="", metadata={"layouts": [], "categories": ["W"], "layers": {}}
    )
    score = drc()(sample, Output(text=HEAD + CHECK))
    assert (score.value, score.status) == (None, "unavailable")
    assert "apt-get install klayout" in score.explanation
