import json
import math

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.core.keys import AttemptKeys, canonical, sample_hash, seed_of, sha256_of, unit_of
from harness.core.types import Message, Output, Sample, Score, TextPart, ToolCall


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_score_must_be_finite(bad):
    with pytest.raises(ValueError, match="finite"):
        Score(value=bad)
    with pytest.raises(ValueError, match="finite"):
        Score(value=1.0, metrics={"x": bad})


def test_a_score_without_a_value_must_say_why():
    with pytest.raises(ValueError, match="unscored"):
        Score(value=None)
    assert Score(value=None, status="unscored", reason="judge_unreadable").value is None


def test_sha256_is_the_published_one_and_ignores_the_order_of_keys():
    # sha256 of the two bytes {} as computed by coreutils' sha256sum
    assert sha256_of({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert sha256_of({"a": 1, "b": [2]}) == sha256_of({"b": [2], "a": 1})


def test_each_part_of_a_key_counts():
    shared = {"task": "t", "model": "m", "seed": 0, "generation": {"temperature": 0.0}}
    messages = (Message("user", "2+2?"),)
    base = AttemptKeys(shared).key("a", 0, messages, None)
    others = [
        AttemptKeys({**shared, "task": "u"}).key("a", 0, messages, None),
        AttemptKeys({**shared, "model": "n"}).key("a", 0, messages, None),
        AttemptKeys({**shared, "seed": 1}).key("a", 0, messages, None),
        AttemptKeys({**shared, "generation": {"temperature": 1.0}}).key("a", 0, messages, None),
        AttemptKeys(shared).key("b", 0, messages, None),
        AttemptKeys(shared).key("a", 1, messages, None),
        AttemptKeys(shared).key("a", 0, (Message("user", "2+3?"),), None),
        AttemptKeys(shared).key("a", 0, (Message("system", "2+2?"),), None),
        AttemptKeys(shared).key("a", 0, messages, ["choices"]),
    ]
    assert len({base, *others}) == len(others) + 1
    assert AttemptKeys(dict(reversed(shared.items()))).key("a", 0, messages, None) == base


def test_an_items_hash_covers_its_reference():
    one = Sample(item_id="a", input="2+2?", target=("4",))
    assert sample_hash(one) != sample_hash(Sample(item_id="a", input="2+2?", target=("5",)))


def test_seeds_are_non_negative_63_bit_numbers():
    assert seed_of("f" * 64) == 2**63 - 1
    assert seed_of("0" * 64) == 0


def test_unit_of_is_uniform():
    draws = [unit_of("u", i) for i in range(4000)]
    assert all(0 <= u < 1 for u in draws)
    # mean of n uniforms: 1/2 with standard error 1/sqrt(12 n)
    assert abs(sum(draws) / 4000 - 0.5) < 4 / math.sqrt(12 * 4000)


def test_messages_without_tools_are_written_as_before_there_were_tools():
    """Else every stored answer would be asked for, and paid, again."""
    messages = (Message("user", "2+2?"), Message("assistant", (TextPart("4"),)))
    assert canonical(messages) == (
        b'[{"role":"user","content":"2+2?"},'
        b'{"role":"assistant","content":[{"type":"text","text":"4"}]}]'
    )


def test_messages_with_tools_are_written_and_read_whole():
    output = Output(text="", tool_calls=(ToolCall("c", "now", {"x": [None]}),), native="[1]")
    turns = (output.as_message(), Message("tool", "12:00", tool_call_id="c"))
    written = msgspec.json.encode(turns)
    assert json.loads(written) == [
        {"role": "assistant", "content": "", "native": "[1]",
         "tool_calls": [{"id": "c", "name": "now", "arguments": {"x": [None]}}]},
        {"role": "tool", "content": "12:00", "tool_call_id": "c"},
    ]  # fmt: skip
    assert msgspec.json.decode(written, type=tuple[Message, ...]) == turns


@given(st.text(st.characters() | st.sampled_from('{}[]":,1\ud800')))
@example("\ud800")
@example('{"city": "\ud800"}')
def test_whatever_a_model_writes_as_arguments_can_be_stored(text):
    call = ToolCall.read("c", "now", text)
    assert (call.fault is None) == isinstance(call.arguments, dict)
    assert msgspec.json.decode(msgspec.json.encode(call), type=ToolCall) == call


@given(st.dictionaries(st.text(), st.none() | st.integers() | st.text() | st.lists(st.booleans())))
def test_arguments_are_read_as_pythons_own_parser_reads_them(arguments):
    call = ToolCall.read("c", "now", json.dumps(arguments))
    assert (call.arguments, call.fault) == (arguments, None)
