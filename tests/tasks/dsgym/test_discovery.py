"""A hypothesis through the real loop: asked, handed in, compared by a judge, with what is missing told."""

from __future__ import annotations

import json
import re

import pytest

from harness.backends.base import ModelIdentity
from harness.core import registry
from harness.core.errors import UsageError
from harness.core.records import SampleRecord, ScoreRecord
from harness.core.task import TaskRequest, make_task
from harness.core.types import Output
from harness.runner.config import make_config
from harness.runner.lifecycle import start
from harness.store.journal import read_records
from harness.store.layout import Store

PEN, INK = "data/discoverybench/shop/pen.csv", "data/discoverybench/shop/ink.csv"
GOLD = {
    f"/{PEN}": "In spring, price and colour go together; in autumn, price and size go together.",
    f"/{INK}": "In spring, price and weight go together.",
}


class Comparer:
    """A judge that goes by words: a claim is ``In CONTEXT, A and B RELATION``."""

    capabilities = frozenset({"generate"})
    is_baseline = False
    context_length = None
    batch_size = 4

    def __init__(self, spec, options) -> None:
        self.identity = ModelIdentity(backend="comparer", name=spec.name)

    def generate(self, requests):
        return [Output(text=self._say(request.messages[-1].content)) for request in requests]

    def _say(self, text: str) -> str:
        inside = re.search(r"BEGIN (\w+)\n(.*)\nEND \1", text, re.DOTALL)[2]
        if "True or False" in text:
            return str(f"# Reference hypothesis\n\n{inside}\n" in text)
        if "# Reference\n" in text:
            ours, theirs = (
                self._claims(text.split("# Handed in", maxsplit=1)[0]),
                self._claims(inside),
            )
            return json.dumps({"pairs": [self._pair(n, one, ours) for n, one in theirs.items()]})
        found = re.findall(r"[Ii]n (\w+), (\w+) and (\w+) ([\w ]+)", inside)
        claims = [{"context": c, "variables": [a, b], "relation": r} for c, a, b, r in found]
        return json.dumps({"hypotheses": claims})

    def _claims(self, text: str) -> dict[int, dict]:
        return {
            int(n): json.loads(row)
            for n, row in re.findall(r"^(\d+)\. ({.*})$", text, re.MULTILINE)
        }

    def _pair(self, number: int, one: dict, ours: dict[int, dict]) -> dict:
        at = next((n for n, other in ours.items() if other["context"] == one["context"]), None)
        if at is None:
            return {"answer": number, "reference": None, "shared": 0, "relation": 0}
        shared = len({*one["variables"]} & {*ours[at]["variables"]})
        relation = float(one["relation"] == ours[at]["relation"])
        return {"answer": number, "reference": at, "shared": shared, "relation": relation}

    def describe(self):
        return {"backend": "comparer"}

    def close(self) -> None:
        pass


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A folder in upstream's layout with two questions; the second's table is not there."""
    monkeypatch.setattr(registry, "_decorated", {})
    registry.backend("comparer")(Comparer)
    facts = {"domain": "shops", "domain_knowledge": "Prices are in cents.", "workflow_tags": "regression",
             "columns_info": "price: of a pen"}  # fmt: skip
    rows = [{"context": "Domain: shops", "question": "What goes with the price?", "answer": gold,
             "data": [path], "metadata": facts} for path, gold in GOLD.items()]  # fmt: skip
    questions = tmp_path / "data/task/discovery/discoverybench_test.json"
    table = tmp_path / "data" / PEN
    for path, text in ((questions, json.dumps(rows)), (table, "price,colour\n1,2\n")):
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def play(root, model, **options):
    store = Store.open(root / "store")
    config = make_config(
        task="dsgym/discoverybench", model=model, data_root=str(root), **options
    )  # fmt: skip
    run = start(config, store)
    records = list(read_records(store.journal(run.run_id)))
    samples = {r.item_id: r for r in records if isinstance(r, SampleRecord)}
    return run, samples, {r.item_id: r for r in records if isinstance(r, ScoreRecord)}


def said(root, *turns):
    script = root / "script.jsonl"
    script.write_text(json.dumps({"item_id": "discoverybench-000", "turns": turns}))
    return f"mock:script?file={script}"


def test_gold_is_right_and_an_item_without_its_table_is_unavailable(root):
    run, samples, scores = play(root, "mock:gold", judge="comparer:a")
    assert run.metrics["accuracy"].value == 1.0
    assert scores["discoverybench-000"].metrics["hms"] == 1.0
    assert samples["discoverybench-001"].status == "unavailable"
    assert "ink.csv is missing" in samples["discoverybench-001"].error


@pytest.mark.parametrize("metric", ["match", "hms"])
def test_a_part_of_the_hypothesis_has_a_part_of_the_points(root, metric):
    model = said(
        root,
        "<python>\nprint(open('/data/discoverybench/shop/pen.csv').read())\n</python>",
        "<answer>In spring, price and weight go together.</answer>",
    )
    _, _, scores = play(root, model, judge="comparer:a", first=1, args={"metric": metric})
    # By hand: one of two contexts, one of two variables on each side: 1/2 * (1/2 * 1) = 1/4.
    assert scores["discoverybench-000"].metrics["match"] == 0.0
    assert scores["discoverybench-000"].metrics["hms"] == pytest.approx(0.25)
    assert scores["discoverybench-000"].value == (0.0 if metric == "match" else 0.25)


def test_a_guess_is_wrong_and_a_judge_of_one_word_gives_no_hms(root):
    _, _, guessed = play(root, "mock:random", judge="comparer:a", first=1)
    assert guessed["discoverybench-000"].metrics["match"] == 0.0
    assert guessed["discoverybench-000"].metrics["hms"] == 0.0
    _, _, blind = play(root, "mock:gold", judge="mock:constant?text=True.", first=1)
    assert blind["discoverybench-000"].value == 1.0
    assert "hms" not in blind["discoverybench-000"].metrics


def test_without_a_judge_nothing_is_known(root):
    _, _, scores = play(root, "mock:gold", first=1)
    score = scores["discoverybench-000"]
    assert (score.value, score.status, score.reason) == (None, "unscored", "no_judge")


def test_the_prompt_has_all_that_upstream_shows_and_not_the_reference(root):
    _, samples, _ = play(root, "mock:gold", judge="comparer:a", first=1)
    prompt = samples["discoverybench-000"].prompt
    for part in ("What goes with the price?", "Prices are in cents.", "regression", "price: of a pen",
                 f"/{PEN}", "one to three sentences"):  # fmt: skip
        assert part in prompt
    assert "go together" not in prompt


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"turns": "0"}, "turns=0"),
        ({"metric": "f1"}, "metric=f1"),
        ({"run_last": "x"}, "run_last=x"),
    ],
)
def test_a_switch_that_cannot_be_read_is_refused(root, args, told):
    with pytest.raises(UsageError, match=told):
        make_task("dsgym/discoverybench", TaskRequest(data_root=root, args=args))


def test_it_needs_a_copy_of_upstream():
    with pytest.raises(UsageError, match="--data-root"):
        make_task("dsgym/discoverybench", TaskRequest())
