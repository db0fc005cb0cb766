"""Numbers as text: no more digits than their standard error supports."""

from __future__ import annotations

import math


def digits(value: float | None, se: float | None) -> str:
    """Write a number down to the second significant digit of its standard error.

    Parameters
    ----------
    value : float or None
        The number.
    se : float or None
        Its standard error, in the same unit. None or 0 says nothing about the number: three
        significant digits then.

    Returns
    -------
    str
        An en dash where there is no number.

    Examples
    --------
    >>> digits(0.456789, 0.0123), digits(0.456789, 0.123), digits(12345.6, 340)
    ('0.457', '0.46', '12350')
    >>> digits(0.5, 0.0999), digits(1, 0), digits(None, None)
    ('0.50', '1', '–')
    """
    if value is None or not math.isfinite(value):
        return "–"
    if not se or not math.isfinite(se):
        return f"{value:.3g}"
    # Of the rounded error: 0.0999 is 0.10, and its second digit is one place further left.
    exponent = int(f"{abs(se):.1e}".partition("e")[2])
    places = 1 - exponent
    rounded = round(value, places) + 0.0  # + 0.0: no minus before a zero
    return f"{rounded:.{max(places, 0)}f}"
