"""Rules for data answers: upstream's measured vectors, and the strict types beside them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.errors import UsageError
from harness.core.types import Output, Sample
from scorers.answer_types import matches, read_type
from scorers.data_answer import EMPTY, data_answer, exact_match, list_match, upstream_rule

steady = settings(deadline=None, derandomize=True)


# Measured with the benchmark's own rules.
@pytest.mark.parametrize(
    ("answer", "gold", "right"),
    [
        *((a, "@mean_fare[34.65]", True) for a in (
            "@mean_fare[34.65]", "@mean_fare[34.650]", "@mean_fare[$34.65]",
            "@mean_fare[34.65 or 99]", "@mean_fare [3.465e1]",
        )),
        *((a, "@mean_fare[34.65]", False) for a in (
            "@mean_fare[34.66]", "@Mean_fare[34.65]", "34.65", "@mean_fare[34.65] @n[1]", "",
        )),
        ("@a[1,999] @b[yes]", "@a[1,234] @b[yes]", True),
        ("@a[1234] @b[yes]", "@a[1,234] @b[yes]", False),
        ("@a[1,234] @b[Yes]", "@a[1,234] @b[yes]", False),
        ("@d[2018-12-31]", "@d[2018-01-26]", True),
        ("@x[904]", "@x[904, 916, 940]", True),
    ],
)  # fmt: skip
def test_upstreams_list_match(answer, gold, right):
    assert list_match(answer, gold) is right


@pytest.mark.parametrize(
    ("answer", "gold", "tolerance", "right"),
    [
        ("0.206", "0.20", 0.03, True), ("20", "20%", 0.03, False), ("5.36", "5.36%", 0.03, False),
        ("102.99", "100", 0.03, True), ("103", "100", 0.03, False), ("0.02", "0", 0.03, True),
        ("0.03", "0", 0.03, False), ("['A','b']", "['B','a']", 0.03, True),
        ("a, b", "['a', 'b']", 0.03, False), ("C)", "C", 0.03, False),
        ("1,000", "1000", 0.03, False), ("nan", "1", 0.03, False), ("inf", "1", 0.03, False),
        ("3.0", "3", 0.0, False), ("0.5", "0.50", 0.0, False), (" c ", "C", 0.0, True),
    ],
)  # fmt: skip
def test_upstreams_exact_match(answer, gold, tolerance, right):
    assert exact_match(answer, gold, tolerance) is right


@given(st.permutations(["@a[1]", "@b[x]", "@c[2.5]"]))
@steady
def test_list_match_ignores_the_order_of_pairs(parts):
    assert list_match(" ".join(parts), "@a[1] @b[x] @c[2.5]")


def test_upstreams_plain_rule():
    rule = upstream_rule("plain")
    assert rule(" nl ", "NL")
    assert not rule("NL.", "NL")
    with pytest.raises(UsageError, match="no_such"):
        upstream_rule("no_such")


@pytest.mark.parametrize(
    ("kind", "gold", "answer", "right"),
    [
        ("int", "1234", "1,234", True), ("int", "1234", "1234.0", True), ("int", "1234", "1234.5", False),
        ("int", "3", "3 of 7", False), ("int", "-5", "\u22125", True), ("int", "12", "1,2", False),
        ("float(2)", "34.65", "34.654", True), ("float(2)", "34.65", "34.656", False),
        # 0.5 * 10^-2 exactly, which binary floating point would miss
        ("float(2)", "34.65", "34.655", True), ("float(2)", "34.65", "$34.65", True),
        ("float(2)", "34.65", "34.65 or 99", False), ("float(2)", "34.65", "about that", False),
        ("float(2)", "1", "nan", False), ("float(2)", "1", "inf", False), ("float(2)", "1", "1e9999", False),
        ("float(1)", "0.5", ".5", True), ("float(0)", "1e3", "1000", True),
        ("rel(0.01)", "200", "202", True), ("rel(0.01)", "200", "202.1", False),
        ("rel(0.01)", "0", "0.01", True), ("rel(0.01)", "0", "0.02", False),
        ("percent(2)", "5.36%", "5.36", True), ("percent(2)", "5.36%", "5.36 %", True),
        ("percent(2)", "5.36%", "0.0536", False), ("percent(2)", "8.00", "8 %%", False),
        ("date", "2018-01-26", "January 26, 2018", True), ("date", "2018-01-26", "2018-12-31", False),
        ("date", "2018-01-26", "2018-01-26T00:00:00", True), ("date", "2018-01-26", "2018", False),
        ("date", "2023-04", "April 2023", True), ("date", "2023-04", "2023-04-01", False),
        ("label", "South", " south ", True), ("label", "South", "the south", False),
        ("label(case)", "South", "south", False), ("label", "South", "'South'", True),
        ("bool", "yes", "True", True), ("bool", "yes", "No", False), ("bool", "yes", "maybe", False),
        ("na", "Not Applicable", "not applicable", True), ("na", "Not Applicable", "n/a", False),
        ("empty", "", "", True), ("empty", "", "none", False),
        ("set(int)", "1, 2, 3", "[3, 2, 1]", True), ("set(int)", "1, 2, 3", "1, 1, 2, 3", True),
        ("set(int)", "1, 2, 3", "1, 2", False), ("set(int)", "1, 2", "1, 2, 3", False),
        ("multiset(int)", "1, 1, 2", "2, 1, 1", True), ("multiset(int)", "1, 1, 2", "1, 2, 2", False),
        ("list(label)", "a, b", "['a', 'b']", True), ("list(label)", "a, b", "b, a", False),
        ("set(date)", "2023-01-01, 2023-01-02", "2023-01-02, 2023-01-01", True),
        ("pairs(a=float(2), b=label)", "@a[1.25] @b[yes]", "@b[Yes], @a[1.25]", True),
        ("pairs(a=float(2), b=label)", "@a[1.25] @b[yes]", "@a[1.25]", False),
        ("pairs(a=float(2))", "@a[1.25]", "@a[1.25] @a[1.25]", False),
        ("pairs(a=list(int), b=int)", "@a[[1, 2]] @b[3]", "@a[[1, 2]] @b[3]", True),
        ("pairs(a=int)", "@a[1]", "@a[[1]", False),
    ],
)  # fmt: skip
def test_strict_types(kind, gold, answer, right):
    assert matches(answer, gold, read_type(kind)).right is right


@pytest.mark.parametrize(
    ("answer", "right"),
    [("C", True), ("c.", True), ("C)", True), ("(C)", True), ("C: it confounds", True),
     ("it confounds", True), ("B", False), ("it causes", False), ("Cause", False), ("", False)],
)  # fmt: skip
def test_a_letter_in_every_form_or_the_options_text(answer, right):
    options = ("it causes", "it mediates", "It confounds")
    assert matches(answer, "C", read_type("letter"), options).right is right


def test_what_is_no_type_is_refused():
    for wrong in ("", "number", "float", "float(x)", "set", "rel(much)", "int(2)", "pairs(a)"):
        with pytest.raises(UsageError, match="answer type"):
            read_type(wrong)


def test_a_huge_answer_is_not_compared_one_by_one():
    many = ", ".join(map(str, range(200_000)))
    assert matches(many, "1, 2", read_type("set(int)")).reason == "length"
    assert not matches("9" * 100_000, "1", read_type("float(2)")).right


def _sample(gold, rule, kind):
    return Sample(
        item_id="1", input="", target=(gold,), metadata={"rule": rule, "answer_type": kind}
    )


def test_both_verdicts_stand_side_by_side_and_one_leads():
    # A first-number rule takes the wrong day for right; the strict type doesn't.
    sample = _sample("@d[2018-01-26]", "list_match", "pairs(d=date)")
    output = Output(text="@d[2018-12-31]")
    strict, upstream = (
        data_answer()(sample, output),
        data_answer(headline="upstream")(sample, output),
    )
    assert strict.metrics == upstream.metrics == {"accuracy_upstream": 1.0, "accuracy_strict": 0.0}
    assert (strict.value, strict.reason, upstream.value) == (0.0, "d: value", 1.0)
    only = data_answer(profile="upstream")(sample, output)
    assert (only.value, only.metrics) == (1.0, {"accuracy_upstream": 1.0})


def test_nothing_handed_in_is_no_answer_and_an_empty_answer_is_one():
    sample = _sample(EMPTY, "plain", "empty")
    assert data_answer()(sample, Output(text=" ")).reason == "no_answer"
    assert data_answer()(sample, Output(text=EMPTY)).value == 1.0
    assert data_answer()(_sample("x", "plain", "label"), Output(text=EMPTY)).value == 0.0


def test_a_profile_that_is_none_is_refused():
    with pytest.raises(UsageError, match="profile=lenient"):
        data_answer(profile="lenient")
