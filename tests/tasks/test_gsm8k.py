"""gsm8k: own items, their results found again from the text of the question alone."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import cycle, islice
from pathlib import Path
from random import Random

import jinja2
import pytest

from harness.core.errors import UsageError
from harness.core.registry import entries
from harness.core.task import TaskRequest, build, make_task
from harness.core.types import Output

ROOT = Path(__file__).resolve().parents[2]
OWN = [json.loads(line) for line in (ROOT / "data/gsm8k/own.jsonl").read_text().splitlines()]


# --- a second computation of every result: by counting, dealing and trying ---------------------
def discount(n, p, m, q, off):
    prices = [p] * n + [q] * m
    return sum(Fraction(price * (100 - off), 100) for price in prices)


def two_machines(slow, more, hours, late):
    return sum(slow + (slow + more if hour >= late else 0) for hour in range(hours))


def ages(times, years, total):
    return times * _only(y for y in range(1, 100) if (y + years) + (times * y + years) == total)


def coins(n, big, small, cents):
    return _only(b for b in range(n + 1) if b * big + (n - b) * small == cents)


def there_and_back(km, out, rest, back):
    def ride(speed):
        minutes, metres = 0, Fraction(0)
        while metres < km * 1000:
            minutes, metres = minutes + 1, metres + Fraction(speed * 1000, 60)
        return minutes

    return ride(out) + rest + ride(back)


def left_over(packs, each, broken, groups):
    things = packs * [each]
    things = sum(things) - broken
    while things >= groups:
        things -= groups
    return things


def fence(long, short, gate, gate_price, metre):
    boundary = [*range(long), *range(short), *range(long), *range(short)]
    return gate_price + metre * len(boundary[gate:])


def percent_of_rest(n, p, q):
    return Fraction(n) * (100 - p) / 100 * (100 - q) / 100


def average(done, mean, all_, target):
    scores = [mean] * done
    assert all_ == done + 1
    return _only(x for x in range(1000) if Fraction(sum([*scores, x]), all_) == target)


def timetable(hour, minute, parts, each, gap, noon):
    clock = datetime(2026, 1, 1, hour, minute)  # noqa: DTZ001 - a clock on the wall
    for minutes in islice(cycle([each, gap]), 2 * parts - 1):
        clock += timedelta(minutes=minutes)
    return (clock - clock.replace(hour=noon, minute=0)) // timedelta(minutes=1)


def recipe(people, grams, guests, size, price):
    need, spent = Fraction(grams, people) * guests, 0
    while need > 0:
        need, spent = need - size, spent + price
    return spent


def savings(has, price, first, more):
    weeks, rate = 0, first
    while has < price:
        weeks, has, rate = weeks + 1, has + rate, rate + more
    return weeks


def backwards(spent, one, part, left):
    return _only(
        m for m in range(1000) if (Fraction(m, 2) - spent) * (1 - Fraction(one, part)) == left
    )


def tank(full, start, brought, lost):
    minutes = 0
    while start < full:
        minutes, start = minutes + 1, start + brought - lost
    return minutes if start == full else None


def collections(base, times, fewer, lost):
    people = {"b": base, "a": 0, "c": 0}
    for _ in range(times):
        people["a"] += people["b"]
    people["c"] = people["a"] - fewer
    people["c"] -= lost
    return sum(people.values())


def _only(values):
    (value,) = values
    return value


# The words by which a family is known, and its second computation; numbers in order of the text.
FAMILIES = {
    "off the whole bill": discount,
    "was switched on": two_machines,
    "times as old as": ages,
    "The coins are worth": coins,
    "comes back the same way": there_and_back,
    "are shared out among": left_over,
    "of the boundary": fence,
    "Of the remaining ones": percent_of_rest,
    "raise the average": average,
    "after 12 noon": timetable,
    "A recipe of": recipe,
    "enough money for the first time": savings,
    "spends half of the money": backwards,
    "litres a minute are lost": tank,
    "have together now": collections,
}


@pytest.mark.parametrize("row", OWN, ids=lambda row: row["item_id"])
def test_each_result_is_found_again_from_the_question(row):
    (solve,) = [solve for words, solve in FAMILIES.items() if words in row["question"]]
    numbers = [int(digits) for digits in re.findall(r"\d+", row["question"])]
    assert solve(*numbers) == int(row["answer"].split("#### ")[1])


@pytest.mark.parametrize("row", OWN, ids=lambda row: row["item_id"])
def test_each_step_of_a_worked_answer_is_true(row):
    steps = re.findall(r"([\d ()x+*/-]*\d[\d ()x+*/-]*) = (\d+)", row["answer"])
    assert len(steps) >= 2
    for expression, result in steps:
        assert eval(expression.replace("x", "*")) == int(result), expression  # our own file


def test_own_items_are_many_distinct_and_well_spread():
    assert len(OWN) == entries("tasks")["gsm8k"].n == 60
    assert [row["item_id"] for row in OWN] == [f"own-gsm8k-{i:03d}" for i in range(1, 61)]
    assert len({row["question"] for row in OWN}) == 60
    families = Counter(words for row in OWN for words in FAMILIES if words in row["question"])
    assert set(families.values()) == {4}
    results = Counter(row["answer"].split("#### ")[1] for row in OWN)
    assert max(results.values()) <= 3
    # No result is given away as the last or the largest number of the question.
    for pick in (lambda numbers: numbers[-1], max):
        numbers = [[int(d) for d in re.findall(r"\d+", row["question"])] for row in OWN]
        hits = sum(
            pick(n) == int(r["answer"].split("#### ")[1]) for n, r in zip(numbers, OWN, strict=True)
        )
        assert hits <= 2


def test_the_file_is_what_the_script_makes(tmp_path):
    script = ROOT / "data/make/gsm8k.py"
    check = [sys.executable, "-P", str(script), "--check"]
    assert subprocess.run(check, check=False).returncode == 0
    # A changed file is noticed: the same script beside a file with one digit changed.
    (tmp_path / "make").mkdir()
    (tmp_path / "gsm8k").mkdir()
    copy = tmp_path / "make" / "gsm8k.py"
    copy.write_text(script.read_text())
    own = (ROOT / "data/gsm8k/own.jsonl").read_text()
    (tmp_path / "gsm8k/own.jsonl").write_text(own.replace("#### 180", "#### 181"))
    changed = subprocess.run(
        [sys.executable, "-P", str(copy), "--check"], check=False, capture_output=True
    )
    assert changed.returncode == 1


# --- the task ----------------------------------------------------------------------------------
def _scores(task, text_of):
    score = build("scorers", task.scorer)
    return [score(sample, Output(text=text_of(sample))) for sample in task.samples]


def test_gold_scores_one_and_nothing_scores_zero():
    task = make_task("gsm8k", TaskRequest())
    assert {s.value for s in _scores(task, task.gold)} == {1.0}
    empty = _scores(task, lambda _: "")
    assert {(s.value, s.reason) for s in empty} == {(0.0, "no_answer")}


def test_a_constant_scores_its_share():
    task = make_task("gsm8k", TaskRequest())
    share = sum(row["answer"].endswith("#### 12") for row in OWN)
    assert share == 2
    assert sum(s.value for s in _scores(task, lambda _: "The answer is 12.")) == share


def test_guesses_are_readable():
    task = make_task("gsm8k", TaskRequest())
    scores = _scores(task, lambda sample: task.guess(sample, Random(sample.item_id)))
    assert {s.status for s in scores} == {"scored"}
    assert len({s.answer for s in scores}) > 20


def test_the_prompt_shows_the_question_and_the_form():
    task = make_task("gsm8k", TaskRequest())
    template = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(task.prompt)
    sample = task.samples[0]
    prompt = template.render(input=sample.input)
    assert sample.input in prompt
    assert prompt.endswith("#### number")
    assert sample.target[0] not in prompt.replace(sample.input, "")


def test_no_data_withholds_the_question():
    task = make_task("gsm8k", TaskRequest(no_data=True))
    assert {sample.input for sample in task.samples} == {"(question withheld)"}
    assert {s.value for s in _scores(task, task.gold)} == {1.0}


def test_it_says_where_it_comes_from():
    info = make_task("gsm8k", TaskRequest()).info
    assert info["license"] == "Apache-2.0"
    assert len(info["dataset_sha256"]) == 64


def test_it_takes_no_switches():
    with pytest.raises(UsageError, match="unknown option 'shuffle'"):
        make_task("gsm8k", TaskRequest(args={"shuffle": "on"}))


# --- files of others ---------------------------------------------------------------------------
def _root(folder, *rows):
    (folder / "test.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    return TaskRequest(data_root=folder)


GOOD = {"question": "2 + 2?", "answer": "2 + 2 = <<2+2=4>>4\n#### 4"}


def test_upstream_rows_are_named_by_their_number(tmp_path):
    task = make_task("gsm8k", _root(tmp_path, GOOD, {**GOOD, "answer": "#### 1,450"}))
    assert [s.item_id for s in task.samples] == ["test-0001", "test-0002"]
    assert task.samples[1].target == ("1450",)
    assert task.info["license"] == "MIT"


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"question": "2 + 2?"}, ":2: field 'answer' is missing"),
        ({**GOOD, "answer": "4"}, ":2: field 'answer': has no line \"#### number\""),
        ({**GOOD, "answer": "#### four"}, ":2: field 'answer': has no line \"#### number\""),
        ({**GOOD, "answer": 4}, ":2: field 'answer': expected str, got int"),
        ({**GOOD, "item_id": "test-0001"}, ":2 (item test-0001): field 'item_id': is used twice"),
    ],
)
def test_planted_faults_are_named(tmp_path, row, why):
    with pytest.raises(UsageError) as caught:
        make_task("gsm8k", _root(tmp_path, GOOD, row))
    assert str(caught.value) == f"{tmp_path / 'test.jsonl'}{why}"


def test_a_folder_without_the_file_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"cannot read .*test\.jsonl: No such file"):
        make_task("gsm8k", TaskRequest(data_root=tmp_path))
