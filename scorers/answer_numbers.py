"""The numbers in a text that a model wrote, with nothing overlooked that could hedge or turn one."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

# A run of digits, points and commas is cut in code: as one pattern it takes quadratic time.
_TOKEN = re.compile(
    r"(?P<body>\.?\d[\d.,]*)(?P<power>[eE][-+]?\d+)?"
    r"|(?<!\w)(?:nan|inf(?:inity)?)(?!\w)|\u221e",
    re.IGNORECASE,
)
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?")
_PLAIN = re.compile(r"\d+(?:\.\d*)?|\.\d+")
_CURRENCY = re.compile(r"(?:[A-Z]{3}|[$\u20ac\u00a3\u00a5])\Z")
_MINUS_WORD = re.compile(r"(?:^|\W)(?:minus|negative)\Z", re.IGNORECASE)
# Hyphen-minus, the hyphens and dashes of typography, the minus sign and its wide forms.
_DASHES = tuple("-\u2010\u2011\u2012\u2013\u2014\u2212\ufe63\uff0d")
_EITHER_SIGN = ("\u00b1", "+/-", "+-")
_NO_NUMBER = Decimal("NaN")


def numbers(text: str) -> list[Decimal]:
    r"""Find the numbers of a text, in time linear in its length.

    A thousands comma is part of a number, and so is a dash or the word "minus" before it, unless
    the dash joins it to another number. Letters may touch one. What stands for a number and is
    none to compare with counts as NaN, lest it hides beside a right one: nan, inf, ``1.2.3``, a
    number with both signs, and one beyond 10^400.

    Examples
    --------
    >>> numbers("from 1,234.5 to -2e3, 3-4, \u20135, minus 6, USD7")
    ... # doctest: +NORMALIZE_WHITESPACE
    [Decimal('1234.5'), Decimal('-2E+3'), Decimal('3'), Decimal('4'), Decimal('-5'), Decimal('-6'),
     Decimal('7')]
    >>> numbers("1.2.3 or inf")
    [Decimal('NaN'), Decimal('NaN')]
    """
    found: list[Decimal] = []
    end = 0
    for token in _TOKEN.finditer(text):
        # Without the comma or full stop of the sentence, which parts numbers.
        gap = text[end : token.start()]
        end = token.start() + len(token[0].rstrip(".,"))
        if not token["body"]:
            found.append(_NO_NUMBER)
            continue
        first, *others = _values(token["body"], token["power"] or "")
        found += [_signed(first, gap, follows=bool(found)), *others]
    return found


def _values(body: str, power: str) -> list[Decimal]:
    if not power:
        body = body.rstrip(".,")
    if _THOUSANDS.fullmatch(body):
        return [_value(body.replace(",", "") + power)]
    *parts, last = body.split(",")
    texts = [*parts, last + power]
    plain = [bool(_PLAIN.fullmatch(part)) for part in (*parts, last)]
    return [_value(t) if ok else _NO_NUMBER for t, ok in zip(texts, plain, strict=True)]


def _value(text: str) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return _NO_NUMBER
    # An exponent of a thousand digits is no number that anybody counted.
    return value if value == 0 or abs(value.adjusted()) < 400 else _NO_NUMBER


def _signed(value: Decimal, gap: str, *, follows: bool) -> Decimal:
    """Give the number the sign that stands in the gap before it."""
    before = gap.rstrip()
    before = _CURRENCY.sub("", before[-8:]).rstrip()
    if before.endswith(_EITHER_SIGN):
        return _NO_NUMBER
    joined = follows and gap.strip() in _DASHES
    if (before.endswith(_DASHES) and not joined) or _MINUS_WORD.search(before):
        return value.copy_negate()
    return value
