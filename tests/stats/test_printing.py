"""Numbers as text."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.stats.printing import digits


@pytest.mark.parametrize(
    ("value", "se", "text"),
    [
        (0.456789, 0.0123, "0.457"),
        (0.456789, 0.00123, "0.4568"),
        (0.456789, 0.123, "0.46"),
        (0.5, 0.0999, "0.50"),  # the error is 0.10
        (12.3456, 1.2, "12.3"),
        (123.456, 12, "123"),
        (12345.6, 340, "12350"),
        (12345.6, 9960, "12000"),  # the error is 10000
        (-0.001, 0.1, "0.00"),
        (1 / 3, None, "0.333"),
        (1.0, 0.0, "1"),
        (None, 0.1, "–"),
        (float("nan"), 0.1, "–"),
        (0.25, float("nan"), "0.25"),
    ],
)
def test_vectors(value, se, text):
    assert digits(value, se) == text


@settings(deadline=None, derandomize=True)
@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e4))
def test_what_is_cut_is_less_than_a_tenth_of_the_error(value, se):
    """Two significant digits of the error: the last place is from 1/100 to 1/10 of it."""
    assert abs(Decimal(digits(value, se)) - Decimal(value)) <= Decimal(se) * Decimal("0.0503")
