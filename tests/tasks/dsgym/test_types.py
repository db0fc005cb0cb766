"""The strict types that references get: a count is an integer, a rounded number is not."""

from __future__ import annotations

import pytest

from scorers.answer_types import matches, read_type
from tasks.dsgym.types import (
    DAEVAL,
    choice_type,
    dabstep_type,
    daeval_type,
    dsbio_type,
    number_type,
    qrdata_type,
)


@pytest.mark.parametrize(
    ("gold", "kind"),
    [("0", "int"), ("-3", "int"), ("2010", "int"), ("1.0", "float(1)"), ("-0.20", "float(2)"), ("5.36%", "percent(2)"),
     ("60%", "percent(0)"), ("1,234", "label"), ("reject", "label"), ("", "label")],
)  # fmt: skip
def test_a_number_has_its_own_decimals_and_a_whole_one_is_an_integer(gold, kind):
    assert number_type(gold) == kind


@pytest.mark.parametrize(("gold", "answer"), [("0", "0.5"), ("2", "2.4"), ("2010", "2010.5")])
def test_half_a_count_is_wrong(gold, answer):
    # The benchmark's first-number rule refuses them: the strict one must not be laxer.
    kind = read_type(daeval_type(0, [("n", gold)]))
    assert not matches(f"@n[{answer}]", f"@n[{gold}]", kind).right
    assert matches(f"@n[{gold}.0]", f"@n[{gold}]", kind).right


@pytest.mark.parametrize(
    ("number", "name", "gold", "answer", "right"),
    [
        # Rounded to a whole number: what was not rounded yet is right.
        (55, "mean_cases", "2081990", "2081990.17", True),
        (234, "average_duration", "364", "363.8", True), (234, "average_duration", "364", "363.4", False),
        # A site's name, which is digits.
        (217, "site_identifier", "57", "57", True), (217, "site_identifier", "57", "57.0", False),
        # Two decimals asked for, one in the reference.
        (73, "correlation_coefficient", "1.0", "1.00", True), (73, "correlation_coefficient", "1.0", "0.96", False),
        (663, "correlation_coefficient", "1.0", "0.99", False),
        (125, "significant_predictor", "yes,yes", "yes, yes", True),
        (125, "significant_predictor", "yes,yes", "yes,no", False),
        (125, "significant_predictor", "yes,yes", "yes", False),
        (589, "abandonment_rate", "6.25", "6.25%", True), (589, "abandonment_rate", "6.25", "0.0625", False),
        # A date of which upstream compares the year.
        (572, "max_SPX_date", "2018-01-26", "2018-12-31", False),
    ],
)  # fmt: skip
def test_references_with_a_line_of_their_own(number, name, gold, answer, right):
    assert name in DAEVAL[number]
    kind = read_type(daeval_type(number, [(name, gold)]))
    assert matches(f"@{name}[{answer}]", f"@{name}[{gold}]", kind).right is right


def test_truth_values_and_percentages_of_daeval():
    kind = daeval_type(
        0, [("ok", "False"), ("yes", "true"), ("missing_percentage", "95.12"), ("sure", "No")]
    )
    assert kind == "pairs(ok=bool, yes=bool, missing_percentage=percent(2), sure=label)"
    gold = "@ok[False] @yes[true] @missing_percentage[95.12] @sure[No]"
    assert matches(gold, gold, read_type(kind)).right
    assert matches(
        "@ok[no] @yes[True] @missing_percentage[95.12%] @sure[no]", gold, read_type(kind)
    ).right
    assert not matches(
        "@ok[no] @yes[True] @missing_percentage[0.9512] @sure[no]", gold, read_type(kind)
    ).right


def test_every_own_line_is_a_type():
    for kinds in DAEVAL.values():
        assert all(read_type(kind) for kind in kinds.values())


@pytest.mark.parametrize(
    ("gold", "question", "kind"),
    [
        ("1691", "How many people took part?", "int"), ("2", "How many degrees of freedom?", "int"),
        ("3", "Please answer with an integer.", "int"), ("30", "Please round to the nearest integer.", "float(0)"),
        ("255051", "Please round the result to the nearest integer.", "float(0)"),
        ("12", "Rounded to the nearest whole number?", "float(0)"), ("0.20", "Round to the nearest integer.", "float(2)"),
        ("5.36%", "Round to the nearest hundredth of a percent.", "percent(2)"),
        ("4", "About how many rounds are fought?", "int"),
    ],
)  # fmt: skip
def test_qrdata_tells_a_count_from_a_rounded_number(gold, question, kind):
    assert qrdata_type(gold, question) == kind


@pytest.mark.parametrize(
    ("gold", "guideline", "kind"),
    [
        ("39", "a single numeric value", "int"), ("3", "a number rounded to 2 decimal places", "float(2)"),
        ("0.5", "a numeric value rounded to 4 decimal places", "float(4)"),
        ("100.0", "a numeric percentage rounded to 1 decimal place", "percent(1)"),
        ("60%", "one of the provided options, case-sensitive", "label(case)"), ("LP", "a name, case-sensitive", "label(case)"),
        (["b", "a"], "a list of names", "set(label)"),
    ],
)  # fmt: skip
def test_dsbio_by_its_guideline(gold, guideline, kind):
    assert dsbio_type(gold, guideline) == kind


@pytest.mark.parametrize(
    ("gold", "guideline", "kind"),
    [
        ("Not Applicable", "yes or no", "na"), ("1, 2", "a comma separated list", "set(label)"),
        ("", "a comma separated list", "empty"), ("7", "just a number", "int"), ("NL", "the country code", "label"),
        ("7", "a number rounded to 6 decimals", "float(6)"),
    ],
)  # fmt: skip
def test_dabstep_by_its_guideline(gold, guideline, kind):
    assert dabstep_type(gold, guideline) == kind


def test_a_choice_is_a_letter_or_a_text():
    assert [choice_type(gold) for gold in ("A", "reject", "AB")] == ["letter", "label", "label"]
