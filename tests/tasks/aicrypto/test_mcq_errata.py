"""aicrypto/mcq with errata: raw and corrected score side by side, and no attempt knows of it.

The items here are made up; what the errata say of the benchmark's own is in tests/upstream.
"""

from __future__ import annotations

import hashlib
import json
import runpy

import msgspec
import pytest

from harness.core import resources
from harness.core.keys import sample_hash
from harness.core.task import TaskRequest, build, make_task
from harness.core.types import Output
from harness.runner.audit_items import known_faults
from harness.runner.audit_subject import Subject
from harness.runner.config import make_config
from harness.runner.lifecycle import start
from harness.runner.plan import make_plan
from harness.runner.rescore import rescore
from harness.store.layout import Store
from tasks.aicrypto import mcq

NONE = "None of the above"
# 17 - 9 = 8 stands at 2, yet the key says 1; the second has its key right; the third is debatable.
ROWS = [
    {"id": 1, "question": "17 - 9?", "choice": ["6", "7", "8", "9", NONE], "answer": [1], "label": "x"},
    {"id": 2, "question": "5 + 1?", "choice": ["6", "7", "8", "9", NONE], "answer": [0], "label": "x"},
    {"id": 3, "question": "Pretty?", "choice": ["a", "b", "c"], "answer": [2], "label": "x"},
]  # fmt: skip
CHECK = "def minus(record):\n    return [record['choice'].index(str(17 - 9))]\n"


def _sha256(record):
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def data(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/aicrypto_mcqs.json").write_text(json.dumps(ROWS))
    (tmp_path / "checks.py").write_text(CHECK)
    return tmp_path / "data"


@pytest.fixture
def errata(tmp_path, monkeypatch):
    """Put rows in the place of the project's errata: (item, action, key)."""

    def put(*rows):
        text = ""
        for item, action, key in rows:
            fields = {"benchmark": "aicrypto/mcq", "item": item, "action": action, "reason": "so",
                      "sha256": _sha256(ROWS[int(item[-1]) - 1])}  # fmt: skip
            if action == "fix":
                fields |= {"key": key, "check": f"{tmp_path}/checks.py:minus"}
            text += "[[erratum]]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in fields.items())
        path = tmp_path / "errata.toml"
        path.write_text(text)
        monkeypatch.setattr(mcq, "ERRATA", str(path))

    put()
    return put


FIX = ("mcq-001", "fix", [2])
DROP = ("mcq-003", "drop", None)


def _task(data, **request):
    return make_task("aicrypto/mcq", TaskRequest(data_root=data, **request))


def _scores(task, text_of):
    score = build("scorers", task.scorer)
    return {s.item_id: score(s, Output(text=text_of(s))) for s in task.samples}


def test_without_errata_there_is_no_second_score(data, errata):
    for task in (_task(data), make_task("aicrypto/mcq", TaskRequest())):
        assert task.scorer == "choice?profile=strict"
        assert all(not score.metrics for score in _scores(task, task.gold).values())
        assert task.info["known_faults"] == {}


def test_the_value_is_by_the_benchmarks_key_and_the_metric_by_the_corrected_one(data, errata):
    errata(FIX, DROP)
    task = _task(data)
    raw = _scores(task, task.gold)
    assert {item: s.value for item, s in raw.items()} == {"mcq-001": 1, "mcq-002": 1, "mcq-003": 1}
    assert [s.metrics for s in raw.values()] == [
        {"accuracy_corrected": 0.0}, {"accuracy_corrected": 1.0}, {}
    ]  # fmt: skip
    right = _scores(task, lambda s: f"### Answer\n{2 if s.item_id == 'mcq-001' else 0}")
    assert [(s.value, s.metrics) for s in right.values()] == [
        (0.0, {"accuracy_corrected": 1.0}), (1.0, {"accuracy_corrected": 1.0}), (0.0, {})
    ]  # fmt: skip
    assert right["mcq-001"].explanation.endswith("right: 1; corrected key: 2")
    # An unreadable answer is wrong by both.
    unread = _scores(task, lambda _: "no idea")["mcq-001"]
    assert (unread.value, unread.reason, unread.metrics) == (
        0.0, "no_answer", {"accuracy_corrected": 0.0}
    )  # fmt: skip


@pytest.mark.parametrize("reader", ["strict", "upstream"])
def test_the_corrected_key_is_shuffled_with_its_options(data, errata, reader):
    errata(FIX)
    places = set()
    for seed in range(8):
        task = _task(data, seed=seed, args={"shuffle": "on", "reader": reader})
        sample = task.samples[0]
        place = sample.choices.index("8")
        places.add(place)
        for j in range(5):
            score = _scores(task, lambda _, j=j: f"### Answer\n{j}")["mcq-001"]
            assert score.value == (sample.choices[j] == "7")
            assert score.metrics == {"accuracy_corrected": float(j == place)}
    assert len(places) > 1


def test_the_likeliest_option_is_judged_by_both_keys(data, errata):
    errata(FIX)
    task = _task(data, seed=4, args={"shuffle": "on"})
    score = build("scorers", task.scorer)
    sample = task.samples[0]
    for text, raw, corrected in (("7", 1.0, 0.0), ("8", 0.0, 1.0), ("9", 0.0, 0.0)):
        logprobs = tuple(-1.0 if choice == text else -2.0 for choice in sample.choices)
        made = score(sample, Output(text="", choice_logprobs=logprobs))
        assert (made.value, made.metrics["accuracy_corrected"]) == (raw, corrected)
        assert set(made.metrics) == {"acc", "acc_norm", "accuracy_corrected"}


def test_errata_are_no_part_of_an_item_or_an_attempt(data, errata):
    def seen():
        plan = make_plan(
            make_config(task="aicrypto/mcq", model="mock:gold", data_root=data), Still()
        )
        return [p.key for p in plan.attempts], [sample_hash(s) for s in plan.samples]

    before = seen()
    errata(FIX, DROP)
    assert seen() == before


class Still:
    """A model that is described and never asked."""

    capabilities = frozenset({"generate"})
    is_baseline = False
    context_length = None
    identity = "still"


def test_newer_errata_judge_stored_answers_again_and_no_model_is_asked(
    data, errata, tmp_path, monkeypatch
):
    """By hand: options 2, 0, 0 are right in one of three by the raw keys."""
    replies = tmp_path / "replies.jsonl"
    said = {"mcq-001": 2, "mcq-002": 0, "mcq-003": 0}
    replies.write_text(
        "".join(
            json.dumps({"item_id": i, "output": f"### Answer\n{k}"}) + "\n" for i, k in said.items()
        )
    )
    store = Store.open(tmp_path / "store")
    config = make_config(
        task="aicrypto/mcq", model=f"mock:script?file={replies}", data_root=data, first=3
    )
    run = start(config, store)
    assert {name: metric.value for name, metric in run.metrics.items()} == {
        "accuracy": pytest.approx(1 / 3)
    }
    replies.unlink()  # whoever asked the model now would get nothing
    errata(FIX, DROP)
    done = rescore(store, run.run_id)
    assert (done.n_rescored, done.changed) == (3, [])
    both = {name: (metric.value, metric.method) for name, metric in done.summary.metrics.items()}
    assert both == {
        "accuracy": (pytest.approx(1 / 3), "wilson"),
        "accuracy_corrected": (1.0, "wilson"),
    }
    assert (done.before.scorer, done.after.scorer) == (
        "choice?profile=strict",
        "choice?corrected=mcq-001:2,mcq-003:drop&profile=strict",
    )
    # A row that is taken back takes the second score with it.
    errata()
    assert list(rescore(store, run.run_id).summary.metrics) == ["accuracy"]


def test_the_audit_names_what_the_checks_find(data, errata):
    def known():
        subject = Subject(make_config(task="aicrypto/mcq", model="mock:gold", data_root=data))
        found = known_faults(subject)
        return found.verdict, found.value, found.why

    assert known()[0] == "ok"
    errata(FIX)
    verdict, value, why = known()
    assert (verdict, value) == ("warn", 1 / 3)
    assert why.endswith("mcq-001; mcq-001: fix: so; computed: 2")
    rows = [{**ROWS[0], "answer": [2]}, *ROWS[1:]]
    (data / "aicrypto_mcqs.json").write_text(json.dumps(rows))
    verdict, _, why = known()
    assert verdict == "warn"
    assert "mcq-001: an erratum (fix) is not applied, since it is about another record" in why


# --- the checks of the project's own errata, on records of our own ---


@pytest.fixture(scope="module")
def checks():
    return runpy.run_path(str(resources.data("make/aicrypto/errata_mcq.py")))


def test_congruences_are_solved_from_the_text_of_the_question(checks):
    # Sun Tzu's problem, third century: 23 is the least number that leaves 2, 3, 2 by 3, 5, 7.
    question = r"x &\equiv 2 \pmod{3}, x &\equiv 3 \pmod{5}, x &\equiv 2 \pmod{7}"
    options = ["22", "128", "$23$", NONE]
    assert checks["congruences"]({"question": question, "choice": options}) == [2]
    assert checks["congruences"]({"question": question, "choice": ["22", "24", NONE]}) == [2]


def test_every_maximum_length_sequence_is_looked_at(checks):
    """There are phi(2**n - 1) / n of them; 2**(n - r - 2) runs of r < n - 1 ones, one of n (Golomb 1967)."""
    for n, count in ((4, 2), (5, 6), (7, 18)):
        sequences = list(checks["maximum_length_sequences"](n))
        assert len(sequences) == count
        for bits in sequences:
            assert sum(bits) == 2 ** (n - 1)
            runs = [checks["runs_of_ones"](bits, r) for r in range(1, n + 1)]
            assert runs == [2 ** (n - r - 2) for r in range(1, n - 1)] + [0, 1]
    assert checks["ones_runs"]({"choice": ["1", "2", "n", "0"]}) == [3]


@pytest.mark.parametrize(("n", "count"), [(7, 2), (9, 2), (11, 4), (14, 2), (25, 8), (243, 54)])
def test_generators_are_counted(checks, n, count):
    """3 and 5 modulo 7; 2 and 5 modulo 9; 2, 6, 7, 8 modulo 11; 3 and 5 modulo 14; phi(phi(n)) beyond."""
    record = {"question": rf"\mathbb{{Z}}_{{{n}}}^*", "choice": ["1", str(count), NONE]}
    assert checks["generators"](record) == [1]
    assert checks["generators"](record | {"choice": ["1", "3", NONE]}) == [2]


def test_a_check_finds_a_key_by_what_the_option_says(checks):
    turned = {"question": r"\mathbb{Z}_{7}^*", "choice": [NONE, "3", "2"]}
    assert checks["generators"](turned) == [2]
    assert checks["generators"](turned | {"choice": ["3", NONE]}) == [1]


def test_records_are_left_as_they_are(data, errata):
    errata(FIX)
    before = msgspec.json.encode(_task(data).samples)
    errata()
    assert msgspec.json.encode(_task(data).samples) == before
