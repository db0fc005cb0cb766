"""Whatever a model writes gets a verdict: no error, no hedge, no lost sign, no quadratic time."""

from __future__ import annotations

import re
import time
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.errors import UsageError
from harness.core.types import Output, Sample
from scorers.answer_numbers import numbers
from scorers.answer_parts import literal_elements
from scorers.answer_types import matches, read_type
from scorers.data_answer import RULES, data_answer, list_match, upstream_rule

steady = settings(deadline=None, derandomize=True)

# A type of each name, with a reference that is right against itself.
TYPES = {
    "int": "12", "float(2)": "34.65", "rel(0.01)": "200", "percent(2)": "5.36%", "date": "2018-01-26",
    "label": "South", "label(case)": "South", "letter": "B", "bool": "yes", "na": "Not Applicable",
    "empty": "", "set(int)": "1, 2", "multiset(float(1))": "1.5, 1.5", "list(label)": "['a', 'b']",
    "set(date)": "2023-01-01, 2023-01-02", "pairs(a=float(2), b=list(int))": "@a[1.25] @b[[1, 2]]",
}  # fmt: skip
HOSTILE = (
    "{[]}", "{{}: 1}", "{([],)}", "[{[]}]", "[0x" + "f" * 20_000 + "]", "[0x" + "f" * 400 + " + 1j]",
    "[1e999, nan]", "[" * 5000, "-" * 20_000 + "1", "1+" * 4_000 + "1", "9" * 20_000, "1e" + "9" * 5000,
    ".", "-", "1.", "[.5, 5.]", "\x00", "\ud800", "[\ud800]", "\u0663\u0664", "\u00b2", "@[", "@a[", "@a[]", "@a[1]]",
    "@a[\u0663] @b[{[]}]", "\u221e", "0000-00-00", "9999999-01-01", "2023-02-30", "%%%", "[]", "()", "{}", "''", "\n",
)  # fmt: skip


@pytest.mark.parametrize("answer", HOSTILE)
def test_a_hostile_answer_is_wrong_and_raises_nothing(answer):
    for kind, gold in TYPES.items():
        if kind != "empty":
            assert not matches(answer, gold, read_type(kind), ("no", "it")).right, kind
        if not kind.startswith("pairs"):
            inside = read_type(f"pairs(x={kind})")
            assert matches(f"@x[{answer}]", f"@x[{gold}]", inside).right in (True, False)
    for rule in RULES:
        assert not upstream_rule(rule)(answer, "@a[12] @b[x]"), rule
        assert upstream_rule(rule)(f"@a[{answer}]", "@a[12]") in (True, False), rule
    # List against list is where a set is built of what a model wrote.
    assert not upstream_rule("exact_match")(answer, "['a', 'b']")


_PARTS = st.sampled_from(
    [*"[](){}@,.:-%'\"*\\ \n", "12", "34.65", "e5", "nan", "0x", "B", "1j", "a", "\u2013", "[]"]
)


@given(st.one_of(st.text(), st.lists(_PARTS).map("".join)))
@steady
def test_any_text_gets_a_verdict_of_every_type_and_rule(answer):
    for kind, gold in TYPES.items():
        assert matches(answer, gold, read_type(kind), ("no", "it")).right in (True, False)
        for rule in RULES:
            assert upstream_rule(rule)(answer, gold) in (True, False)


@pytest.mark.parametrize("kind", TYPES)
def test_each_reference_is_right_against_itself(kind):
    assert matches(TYPES[kind], TYPES[kind], read_type(kind), ("no", "it")).right


def test_the_scorer_gives_a_hostile_answer_zero_and_says_why():
    item = Sample(item_id="1", input="", target=("['a', 'b']",),
                  metadata={"rule": "exact_match", "answer_type": "set(label)"})  # fmt: skip
    score = data_answer()(item, Output(text="[{[]}]"))
    assert (score.value, score.metrics) == (0.0, {"accuracy_upstream": 0.0, "accuracy_strict": 0.0})
    assert score.explanation == "upstream: value; strict: value; reference: ['a', 'b']"
    leads = data_answer(headline="upstream")(item, Output(text="[{[]}]"))
    assert leads.reason == "value"
    right = data_answer()(item, Output(text="['b', 'a']"))
    assert right.explanation == "upstream: right; strict: right; reference: ['a', 'b']"


@pytest.mark.parametrize(
    ("gold", "answer", "reason"),
    [
        *(("0.113", sign + "0.113", "value") for sign in (
            "-", "\u2013", "\u2014", "\u2212", "\u2010", "- ", "minus ", "Minus", "negative ", "-$", "-USD ", "USD -",
            "x = -", "USD-", "\u2013 \u20ac",
        )),
        *(("-0.113", sign + "0.113", "") for sign in ("\u2013", "\u2014", "\u2212", "- ", "minus ", "-$", "x=-", ": -")),
        *(("0.113", sign + "0.113", "no_number") for sign in ("\u00b1", "+/-", "\u00b1 ")),
        *(("34.65", "34.65 or " + hedge, "ambiguous") for hedge in (
            "1e999", "nan", "inf", "Infinity", "-inf", "\u221e", "x99", "1.2.3", "99x", "34.65", "1e-999", "\u0663",
        )),
        ("1.2", "1.2.3", "no_number"), ("1.2", "1..2", "no_number"), ("34.65", "nan", "no_number"),
        ("34.65", "USD34.65", ""), ("34.65", "34.65USD", ""), ("34.65", "$34.65.", ""), ("34.65", "+34.65", ""),
        ("34.65", "34.65, and no other", ""), ("34.65", "3,465e-2", ""), ("34.65", "34,65", "ambiguous"),
        ("3", "1-3", "ambiguous"), ("0.123", "0,123", "ambiguous"), ("1234.5", "1,234.50", ""),
        ("5", "5%", "percent_sign"), ("5", "5 \u2030", "percent_sign"), ("5%", "5%", ""), ("5%", "5", ""),
        ("5", "info: 5", ""), ("5", "nanny 5", ""), ("5", "terminus 5", ""),
    ],
)  # fmt: skip
def test_signs_count_and_hedges_are_refused(gold, answer, reason):
    match = matches(answer, gold, read_type("float(2)"))
    assert (match.right, match.reason) == (not reason, reason)


def test_a_percent_sign_is_refused_by_types_without_one():
    for kind in ("int", "float(0)", "rel(0.01)"):
        assert not matches("5%", "5", read_type(kind)).right
    assert matches("5%", "5", read_type("percent(0)")).right
    assert not matches("5%\u2030", "5%", read_type("percent(0)")).right


@given(st.decimals(min_value=-(10**9), max_value=10**9, places=3))
@steady
def test_a_number_written_by_python_is_read_back(value):
    for text in (f"{value}", f"{value:,}", f"it is {value:,}.", f"USD {value}", f"[{value:e}]"):
        assert numbers(text) == [value]


OPTIONS = ("it harms", "it helps a patient", "no difference: A and B cancel")


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        *((a, True) for a in (
            "B", '"B"', "[B]", "**B**", "(B)", "`b`", "'B'", "B.", "(B) it helps a patient", "**B.** it helps",
            "B: it helps a patient.", "[B] yes", "B\n", "**B: it helps a patient**", '"it helps a patient"',
            "It helps a patient.", "B: because a patient recovers", "\u201cB\u201d",
        )),
        *((a, False) for a in (
            "B. C.", "B) C)", "B.\nC.\nA.", "B: or C", "B: or c", "B: or a", "B. it harms", "B: A is wrong", "(B",
            "B]", "[B", "B or C", "B, C", "A", "A: it helps a patient", "(A) and (B)", "B: it helps a patient or (A)",
            "B: no difference: A and B cancel", "", "it helps a patient, or it harms", "Bb",
        )),
    ],
)  # fmt: skip
def test_one_letter_and_no_other(answer, right):
    assert matches(answer, "B", read_type("letter"), OPTIONS).right is right


def test_an_options_own_text_may_name_other_letters():
    kind = read_type("letter")
    assert matches("C: no difference: A and B cancel", "C", kind, OPTIONS).right
    nested = ("there is a difference", "a difference")
    assert matches("A. There is a difference", "A", kind, nested).right
    assert not matches("B. There is a difference", "B", kind, nested).right


def test_elements_keep_their_order_and_number_in_every_bracket():
    assert literal_elements("{'b', 'a', 'b'}") == ["b", "a", "b"]
    assert literal_elements("(1, 2.5, True)") == ["1", "2.5", "True"]
    assert literal_elements("{1: 2}") is None
    assert matches("{1, 1, 2}", "1, 1, 2", read_type("multiset(int)")).right
    assert matches("{'a', 'b'}", "a, b", read_type("list(label)")).right
    assert not matches("{'b', 'a'}", "a, b", read_type("list(label)")).right
    # The benchmark compares lists alone.
    assert not upstream_rule("exact_match")("('a', 'b')", "['a', 'b']")


@given(st.text(alphabet="@[]ab1 ", max_size=40))
@steady
def test_pairs_are_those_of_the_benchmarks_pattern(text):
    found = re.findall(r"@([^\[]+)\[([^\]]*)\]", text)
    as_gold = " ".join(f"@{key}[{value}]" for key, value in found)
    # A key with an @ in it is the first pair of its rendering, as the pattern reads it.
    assert re.findall(r"@([^\[]+)\[([^\]]*)\]", as_gold) == found
    if len({key.strip() for key, _ in found}) == len(found):
        assert list_match(text, as_gold)
        assert list_match(as_gold, text)
        assert not list_match(f"{as_gold} @z[1]", text)


@pytest.mark.parametrize(
    "answer",
    ["1," + "111," * 50_000 + "1", "1," * 100_000, "@" * 200_000, "@a[" * 66_000, "@[" * 100_000, "1" * 200_000,
     "@a[1]" * 40_000, "1.1." * 50_000, "- " * 100_000, "[" * 200_000, "a " * 100_000, "A: " + "b. " * 66_000,
     "[" + "0," * 100_000 + "]", "-" + " " * 200_000 + "1", "1 " * 100_000, "(" * 100_000 + ")" * 100_000,
     "$ " * 100_000, "e1" * 100_000, "@" + "a" * 200_000, "@a[" + "[" * 200_000],
)  # fmt: skip
def test_200_kilobytes_take_no_quadratic_time(answer):
    # Generous: some took 15 s and more for half of the length, and take a tenth of a second.
    begun = time.process_time()
    for kind in ("float(2)", "letter", "set(int)", "pairs(a=int)", "date"):
        assert not matches(answer, TYPES.get(kind, "@a[7]"), read_type(kind), OPTIONS).right
    for rule in ("list_match", "exact_match", "plain"):
        assert not upstream_rule(rule)(answer, "@a[7]")
    assert time.process_time() - begun < 5


def test_one_huge_element_is_not_compared_with_each_of_the_reference():
    gold = ", ".join(map(str, range(500)))
    begun = time.process_time()
    assert matches("1 " * 100_000 + ", 2", gold, read_type("set(int)")).reason == "value"
    assert time.process_time() - begun < 5
    assert matches(", ".join(["1"] * 1000), "1", read_type("set(int)")).right


@pytest.mark.parametrize(
    "wrong",
    ["float(-2)", "float(1e3)", "float( 2)", "percent(-1)", "float(\u0662)", "rel(-0.1)", "rel(nan)", "rel(inf)", "rel(1)",
     "pairs(a=int, a=label)", "pairs(=int)", "set(float(-2))"],
)  # fmt: skip
def test_a_type_with_impossible_parts_is_refused(wrong):
    with pytest.raises(UsageError, match="answer type"):
        read_type(wrong)


def test_a_reference_that_is_no_number_is_the_makers_fault():
    for gold in ("nan", "1 or 2", "none"):
        with pytest.raises(UsageError, match="not one number"):
            matches("1", gold, read_type("int"))
    assert numbers("9" * 399) == [Decimal("9" * 399)]
