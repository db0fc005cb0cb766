import math
from collections import Counter
from random import Random

import pytest

from harness.backends.base import load
from harness.core.errors import UsageError
from harness.core.types import ChoiceRequest, GenerateRequest, Generation, Message, Oracle

ORACLE = Oracle(("4",), (1,), lambda rng: str(rng.randrange(10)))


def _request(item_id="a", seed=0, turn=0, oracle=ORACLE):
    return GenerateRequest(
        item_id=item_id, messages=(Message("user", "2+2?"),), generation=Generation(), seed=seed,
        turn=turn, oracle=oracle,
    )  # fmt: skip


def _text(spec, **fields):
    return load(spec).generate([_request(**fields)])[0].text


def test_each_mock_says_what_its_name_promises(tmp_path):
    script = tmp_path / "s.jsonl"
    script.write_text(
        '{"item_id": "a", "output": ["one", "two"]}\n{"item_id": "b", "output": "x"}\n'
    )
    assert _text("mock:gold") == "4"
    assert _text("mock:empty") == ""
    assert _text("mock:constant?text=C") == "C"
    assert _text("mock:random", seed=3) == str(Random(3).randrange(10))
    assert [_text(f"mock:script?file={script}", turn=t) for t in (0, 1, 2)] == ["one", "two", ""]
    assert _text(f"mock:script?file={script}", item_id="b") == "x"


def test_noisy_is_right_at_the_stated_rate_in_any_order():
    mock = load("mock:noisy?accuracy=0.6")
    requests = [_request(item_id=str(i), seed=i) for i in range(2000)]
    texts = [o.text for o in mock.generate(requests)]
    right = sum(t == "4" for t in texts)
    # binomial(2000, 0.6): 99 % lies within 2.576 standard deviations
    assert abs(right - 1200) <= 2.576 * math.sqrt(2000 * 0.6 * 0.4)
    assert [o.text for o in reversed(mock.generate(requests[::-1]))] == texts
    assert len(Counter(texts)) > 5


def test_log_probabilities_follow_the_same_rules():
    def choice(spec):
        request = ChoiceRequest(
            item_id="a", messages=(Message("user", "?"),), continuations=(" A", " B", " C"),
            oracle=ORACLE,
        )  # fmt: skip
        return load(spec).loglikelihood([request])[0].choice_logprobs

    assert choice("mock:gold")[1] == 0.0
    assert choice("mock:constant?text=C")[2] == 0.0
    for spec, preferred in (("mock:gold", 1), ("mock:constant?text=C", 2)):
        others = [v for j, v in enumerate(choice(spec)) if j != preferred]
        assert all(-11.0 < v <= -10.0 for v in others)
    assert all(v <= -10.0 for v in choice("mock:empty"))


def test_planted_faults_strike_at_their_share():
    mock = load("mock:gold?fail=0.1&truncate=0.2&refuse=0.3")
    outputs = mock.generate([_request(item_id=str(i)) for i in range(3000)])
    seen = Counter(o.finish_reason for o in outputs)
    for reason, share in (("error", 0.1), ("length", 0.2), ("content_filter", 0.3)):
        assert abs(seen[reason] - 3000 * share) < 3.3 * math.sqrt(3000 * share * (1 - share))
    assert {o.error_kind for o in outputs if o.finish_reason == "error"} == {"network"}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("mock:golf", "did you mean 'mock:gold'"),
        ("mock:noisy?acc=1", "it takes accuracy"),
        ("mock:noisy?accuracy=1.5", "between 0 and 1"),
        ("mock:noisy?accuracy=high", "between 0 and 1"),
        ("mock:script", "needs \\?file="),
        ("mock:script?file=/nowhere/x.jsonl", "cannot read script"),
        ("mok:gold", "unknown backend 'mok': did you mean 'mock'"),
    ],
)
def test_bad_specs_are_one_clear_line(spec, message):
    with pytest.raises(UsageError, match=message) as caught:
        load(spec)
    assert "\n" not in str(caught.value)


def test_a_broken_script_names_file_and_line(tmp_path):
    script = tmp_path / "s.jsonl"
    script.write_text('{"item_id": "a", "output": "x"}\n{"item_id": "a"}\n')
    with pytest.raises(UsageError, match=r"s\.jsonl:2: .*output"):
        load(f"mock:script?file={script}")


def test_changing_a_script_makes_another_model(tmp_path):
    script = tmp_path / "s.jsonl"
    script.write_text('{"item_id": "a", "output": "x"}\n')
    first = load(f"mock:script?file={script}").identity.variant_id
    script.write_text('{"item_id": "a", "output": "y"}\n')
    assert load(f"mock:script?file={script}").identity.variant_id != first
