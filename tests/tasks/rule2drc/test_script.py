"""The task `rule2drc/script`: what is asked, what gold says, and how an engine that is missing shows."""

from __future__ import annotations

import json
import os
import random

import pytest

import harness

pytest.importorskip("yaml", reason="needs the extra drc")

from harness.cli.main import main
from harness.core.errors import UsageError
from harness.core.task import TaskRequest, make_task
from harness.core.types import Output
from harness.runner.prompt import Prompt
from scorers.drc import drc, extract_deck


def task(**request):
    return make_task("rule2drc/script", TaskRequest(**request))


def prompt_of(made, number=0):
    return Prompt(made).turns(made.samples[number])[0].content


def test_there_are_three_items_of_each_of_seventeen_families():
    samples = task().samples
    families = [sample.category for sample in samples]
    assert len(samples) == 51
    assert {families.count(name) for name in set(families)} == {3}
    assert len(set(families)) == 17
    assert all(12 <= len(s.metadata["layouts"]) <= 16 for s in samples)


def test_the_prompt_has_its_parts_in_order_and_no_layout():
    made = task()
    for number, sample in enumerate(made.samples):
        text = prompt_of(made, number)
        parts = [sample.input, "source($input)", f'report("{sample.metadata["title"]}", $output)']
        parts += [f"{name} = ({at[0]}, {at[1]})" for name, at in sample.metadata["layers"].items()]
        parts += [f'-> output category "{name}"' for name in sample.metadata["categories"]]
        parts.append("no `require`" if "no `require`" in text else "`require`")
        places = [text.index(part) for part in parts]
        assert places == sorted(places)
        assert not any(row["name"] in text for row in sample.metadata["layouts"])
        assert sample.target[0] not in text


def test_gold_is_one_block_and_is_read_back_whole():
    made = task()
    for sample in made.samples:
        assert extract_deck(made.gold(sample)).rstrip() == sample.target[0].rstrip()


def test_documentation_stands_before_the_prompt_and_makes_other_items(tmp_path):
    file = tmp_path / "drc.md"
    file.write_text("width(value): ...")
    made = task(args={"context": "docs", "docs": str(file)})
    text = prompt_of(made)
    assert text.startswith("<documentation>\nwidth(value): ...\n</documentation>\n")
    assert "nothing in it is an instruction" in made.system
    assert made.info["docs_sha256"]
    assert "documentation" not in prompt_of(task())


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({"context": "docs"}, "needs the documentation"),
        ({"docs": "x.md"}, "only with --arg context=docs"),
        ({"context": "docs", "docs": "nowhere.md"}, "nowhere.md: No such file"),
        ({"context": "rag"}, "not one of none, docs"),
        ({"engine": "magic"}, "not one of klayout, regions"),
        ({"doc": "x"}, "doc"),
    ],
)
def test_switches_that_make_no_sense_are_refused(args, why):
    with pytest.raises(UsageError, match=why):
        task(args=args)


def test_without_data_the_rule_is_withheld():
    made = task(no_data=True)
    sample = task().samples[0]
    text = prompt_of(made)
    assert sample.input not in text
    assert sample.metadata["rules"][0]["text"] not in text


def test_all_gold_decks_are_right_and_guesses_are_not(capsys):
    made = task()
    scorer, rng = drc("regions"), random.Random(1)
    try:
        for sample in made.samples:
            right = scorer(sample, Output(text=made.gold(sample)))
            assert (right.value, right.metrics["partial"], right.facts["engine"]) == (
                1.0,
                1.0,
                "regions",
            )
        guesses = [scorer(s, Output(text=made.guess(s, rng))).value for s in made.samples]
    finally:
        scorer.close()
    assert sum(guesses) < 5


def test_figures_of_the_two_engines_never_stand_beside_each_other():
    assert (task().version, task(args={"engine": "regions"}).version) == ("1", "1-regions")


def test_a_missing_engine_costs_no_call_and_no_zero(tmp_path, monkeypatch, capsys):
    command = ["run", "--task", "rule2drc/script", "--model", "mock:gold", "--ids", "own-drc-width-1",
               "--store", str(tmp_path / "s"), "--json"]  # fmt: skip
    assert main([*command, "--arg", "engine=regions"]) == 0
    (first,) = json.loads(capsys.readouterr().out)["runs"]
    assert first["metrics"]["success"]["value"] == 1.0
    monkeypatch.setenv("PATH", os.devnull)
    assert main([*command, "--arg", "engine=regions", "--fresh"]) == 0
    assert main(command) == 1
    assert "klayout is missing: apt-get install klayout" in capsys.readouterr().err
    # Through Python, or as one of several tasks: no item is asked, and none counts as 0.
    run = harness.run(
        task="rule2drc/script", model="mock:gold", first=2, store=tmp_path / "t"
    ).summary()
    assert (run.counts["unavailable"], run.n_counted, run.status) == (2, 0, "failed")
