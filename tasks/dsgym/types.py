"""The strict type of a reference that has none written beside it (see `scorers.answer_types`).

A rule for each benchmark, and for the few references of DAEval that no rule reads rightly a line of
their own: lists and dates whose first number alone upstream compares, and numbers whose decimals do
not tell how they are rounded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# original_id -> name -> type.
DAEVAL: dict[int, dict[str, str]] = {
    # What upstream's first-number rule would get wrong.
    77: {"Highest_Monthly_Average_Close_Price": "list(float(2))"},
    178: {"sex_encoded_count": "list(int)", "fare_after_scaling": "list(float(4))"},
    219: {"outlier_values": "multiset(float(2))", "site_identifiers": "set(label)"},
    528: {"outlier_ids": "set(int)"},
    550: {
        "distribution_type": "label", "min_max_scaler_scale": "label",
        "missing_values_handled": "label",
    },
    572: {"max_SPX_date": "date"},
    589: {"abandonment_rate": "percent(2)"},
    760: {"most_missing_station_name": "label(case)"},
    # Lists of names: any order, each once.
    207: {"missing_columns_in_object_type": "set(label)"},
    254: {"outlier_countries": "set(label)"},
    273: {"outlier_list": "empty"},
    # A whole number after rounding, which the decimals of the reference don't tell.
    55: {"mean_cases": "float(0)"},
    234: {"average_duration": "float(0)"},
    # Two decimals are asked for.
    73: {"correlation_coefficient": "float(2)"},
    663: {"correlation_coefficient": "float(2)"},
    # A name of digits, and one word for each of two variables.
    217: {"site_identifier": "label"},
    125: {"significant_predictor": "list(label)"},
}  # fmt: skip

_ROUNDED = re.compile(
    r"round(?:ed)?\b.*\bnearest (?:integer|whole number)", re.IGNORECASE | re.DOTALL
)
_NUMBER = re.compile(r"[-+]?\d+(?:\.(?P<decimals>\d+))?")
_DECIMALS = re.compile(r"round(?:ed)?\s+to\s+(\d+)\s+decimals?|(\d+)\s+decimal\s+places?")


def daeval_type(original_id: int, pairs: Sequence[tuple[str, str]]) -> str:
    """Give the type of DAEval's pairs.

    Examples
    --------
    >>> daeval_type(0, [("mean_fare", "34.65"), ("n", "3"), ("who", "Nigeria")])
    'pairs(mean_fare=float(2), n=int, who=label)'
    >>> daeval_type(0, [("is_normal", "False"), ("missing_percentage", "95.12")])
    'pairs(is_normal=bool, missing_percentage=percent(2))'
    """
    own = DAEVAL.get(original_id, {})
    kinds = [f"{name}={own.get(name) or _pair_type(name, value)}" for name, value in pairs]
    return f"pairs({', '.join(kinds)})"


def _pair_type(name: str, gold: str) -> str:
    if gold.strip().lower() in ("true", "false"):
        return "bool"
    kind = number_type(gold)
    return kind.replace("float", "percent") if "percent" in name.lower() else kind


def number_type(gold: str) -> str:
    """Give the type of a number by its decimals, ``percent`` with its sign; else ``label``.

    A whole number is taken for a count or a year.

    Examples
    --------
    >>> number_type("5.36%"), number_type("0.20"), number_type("3"), number_type("reject")
    ('percent(2)', 'float(2)', 'int', 'label')
    """
    text = gold.strip()
    found = _NUMBER.fullmatch(text.removesuffix("%"))
    if found is None:
        return "label"
    digits = len(found["decimals"] or "")
    if text.endswith("%"):
        return f"percent({digits})"
    return f"float({digits})" if digits else "int"


def qrdata_type(gold: str, question: str) -> str:
    """Give the type of a number of QRData; one that is rounded to an integer is no count.

    Examples
    --------
    >>> qrdata_type("30", "Estimate the median. Please round to the nearest integer.")
    'float(0)'
    """
    kind = number_type(gold)
    return "float(0)" if kind == "int" and _ROUNDED.search(question) else kind


def choice_type(gold: str) -> str:
    """Give the type of a choice: a letter, or the option's text."""
    return "letter" if re.fullmatch(r"[A-Z]", gold.strip()) else "label"


def dabstep_type(gold: str, guidelines: str) -> str:
    """Give the type of a DABStep reference by its guideline.

    Examples
    --------
    >>> dabstep_type("1, 2, 5", "Answer must be a list of values in comma separated list")
    'set(label)'
    """
    if gold.strip().lower() == "not applicable":
        return "na"
    if "comma separated list" in guidelines:
        return "set(label)" if gold.strip() else "empty"
    return _by_guideline(gold, guidelines)


def dsbio_type(gold: str | list[str] | float, guideline: str) -> str:
    """Give the type of a DSBio reference; its guidelines say where case matters.

    Examples
    --------
    >>> dsbio_type(["B", "A"], "a list of gene symbols, case-sensitive"), dsbio_type("39", "a number")
    ('set(label(case))', 'int')
    """
    case = "label(case)" if "case-sensitive" in guideline.lower() else "label"
    if isinstance(gold, list):
        return f"set({case})"
    kind = _by_guideline(str(gold), guideline)
    return case if kind == "label" or "provided options" in guideline else kind


def _by_guideline(gold: str, guideline: str) -> str:
    kind = number_type(gold)
    decimals = _DECIMALS.search(guideline.lower())
    if decimals and kind.startswith(("int", "float")):
        kind = f"float({decimals[1] or decimals[2]})"
    return kind.replace("float", "percent") if "percent" in guideline.lower() else kind
