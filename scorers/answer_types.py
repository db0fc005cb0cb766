r"""Strict comparison of a data answer with its reference, by the type that the reference has.

A type is written as ``int``, ``float(2)``, ``rel(0.01)``, ``percent(2)``, ``date``, ``label``,
``label(case)``, ``letter``, ``bool``, ``na``, ``empty``, ``set(T)``, ``multiset(T)``, ``list(T)`` or
``pairs(name=T, other=T)``; `T` is any of the types before ``pairs``.

===========  ==========================================================================================
``int``      the same integer; thousands commas and ``.0`` are allowed
``float(d)`` one number x with abs(x - gold) <= 0.5 * 10^-d, by decimal arithmetic
``rel(t)``   one number x with abs(x - gold) <= t * abs(gold); for gold 0: abs(x) <= t
``percent``  as ``float``, after one ``%`` is taken off: 0.0536 is not 5.36 %
``date``     the whole date (or the month, where the gold is one), in ISO form or with the month's name
``label``    the same text without blanks around; case is ignored unless ``label(case)``
``letter``   ``C``, ``C.``, ``C)``, ``(C)``, ``C: text``, or the option's whole text; no other letter
``set`` …    elements separated by commas, or a Python list; ``multiset`` counts, ``list`` is ordered
``bool``     yes or no (true, false); ``na``: "Not Applicable"; ``empty``: nothing
``pairs``    ``@name[value]`` for every name and no other; brackets may nest
===========  ==========================================================================================

Where one number is asked for and several are given the answer is ambiguous, and wrong; so it is
where nan or ``x99`` stands beside the number. A percent sign is refused but by ``percent`` and where
the reference has one. No answer, whatever a model wrote, raises an error: only references do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from functools import cache
from string import ascii_uppercase

from msgspec import Struct

from harness.core.errors import UsageError
from scorers.answer_numbers import numbers
from scorers.answer_parts import literal_elements, read_pairs, split_outside

_TYPE = re.compile(r"(?P<name>[a-z]+)(?:\((?P<inside>.*)\))?", re.DOTALL)
_LETTER = re.compile(
    r"(?:(?P<letter>[A-Za-z])(?:[.):]|\Z)|[(\[](?P<bracketed>[A-Za-z])[)\]][.:]?)\s*(?P<rest>.*)",
    re.DOTALL,
)
# But for the article, which stands before a word.
_LONE_LETTER = re.compile(r"(?<![\w'])(?:[A-Zb-z]|a(?!\s+\w))(?![\w'])")
_MARKUP = str.maketrans("", "", '*`"\u201c\u201d')
_PERCENT_SIGN = re.compile("[%\uff05\u2030]")
_DATES = ("%Y-%m-%d", "%Y/%m/%d", "%d %B %Y", "%d %b %Y", "%B %d, %Y", "%b %d, %Y", "%B %d %Y")
_MONTHS = ("%Y-%m", "%Y/%m", "%B %Y", "%b %Y")
_YES_NO = {"yes": True, "true": True, "no": False, "false": False}


class Type(Struct, frozen=True):
    """A type as it was read.

    Attributes
    ----------
    name : str
    digits : int
        Decimals of ``float`` and ``percent``.
    share : str
        Tolerance of ``rel``, as written.
    case : bool
        Case matters in a ``label``.
    inner : Type or None
        Of ``set``, ``multiset`` and ``list``.
    fields : tuple of (str, Type)
        Of ``pairs``.
    """

    name: str
    digits: int = 0
    share: str = "0"
    case: bool = False
    inner: Type | None = None
    fields: tuple[tuple[str, Type], ...] = ()


class Match(Struct, frozen=True):
    """Whether an answer is right, and a short machine word for why not."""

    right: bool
    reason: str = ""


RIGHT = Match(right=True)


@cache
def read_type(text: str) -> Type:
    """Read a type as it is written.

    Raises
    ------
    UsageError
        For anything that is no type.

    Examples
    --------
    >>> read_type("set(float(2))").inner.digits
    2
    >>> [name for name, _ in read_type("pairs(mean=float(2), who=label)").fields]
    ['mean', 'who']
    """
    found = _TYPE.fullmatch(text.strip())
    name, inside = (found["name"], found["inside"]) if found else ("", None)
    try:
        if name in ("int", "date", "letter", "bool", "na", "empty") and inside is None:
            return Type(name)
        if name in ("float", "percent") and inside and re.fullmatch(r"[0-9]{1,2}", inside):
            return Type(name, digits=int(inside))
        if name == "rel" and inside is not None and 0 <= Decimal(inside) < 1:
            return Type(name, share=str(Decimal(inside)))
        if name == "label" and inside in (None, "case"):
            return Type(name, case=inside == "case")
        if name in ("set", "multiset", "list") and inside:
            return Type(name, inner=read_type(inside))
        if name == "pairs" and inside:
            parts = [part.partition("=") for part in split_outside(inside)]
            fields = tuple((name.strip(), read_type(inner)) for name, _, inner in parts)
            if "" in dict(fields) or len(dict(fields)) < len(fields):
                raise UsageError(f"answer type {text!r}: each name once, and none empty")
            return Type(name, fields=fields)
    except (ValueError, InvalidOperation) as error:
        raise UsageError(f"answer type {text!r}: {error}") from error
    raise UsageError(f"answer type {text!r} is none: see scorers/answer_types.py")


def matches(answer: str, gold: str, kind: Type, options: Sequence[str] = ()) -> Match:
    """Compare an answer with the reference.

    Parameters
    ----------
    answer, gold : str
    kind : Type
    options : sequence of str
        The texts of a choice question, for ``letter``.

    Examples
    --------
    >>> matches("1,234.0", "1234", read_type("int")).right
    True
    >>> matches("34.65 or 99", "34.65", read_type("float(2)"))
    Match(right=False, reason='ambiguous')
    """
    answer, gold = answer.strip(), gold.strip()
    match kind.name:
        case "int" | "float" | "rel":
            return _number(answer, gold, kind)
        case "percent":
            return _percent(answer, gold, kind)
        case "date":
            return _date(answer, gold)
        case "label":
            return _label(answer, gold, kind)
        case "letter":
            return _letter(answer, gold, options)
        case "bool":
            return _bool(answer, gold)
        case "na":
            return _when(answer.strip("'\" .").casefold() == "not applicable", "value")
        case "empty":
            return _when(answer.strip("'\"") in ("", "[]"), "value")
        case "pairs":
            return _pairs(answer, gold, kind)
        case _:
            return _collection(answer, gold, kind)


def _number(answer: str, gold: str, kind: Type) -> Match:
    wanted, *more = numbers(gold) or [Decimal("NaN")]
    if more or not wanted.is_finite():
        raise UsageError(f"reference {gold!r} is not one number")
    if _PERCENT_SIGN.search(answer) and not _PERCENT_SIGN.search(gold):
        return Match(right=False, reason="percent_sign")
    given = numbers(answer)
    if len(given) > 1:
        return Match(right=False, reason="ambiguous")
    if not given or not given[0].is_finite():
        return Match(right=False, reason="no_number")
    if kind.name == "int":
        return _when(given[0] == wanted, "value")
    if kind.name == "rel":
        most = Decimal(kind.share) * (abs(wanted) if wanted else 1)
    else:
        most = Decimal(5).scaleb(-kind.digits - 1)
    return _when(abs(given[0] - wanted) <= most, "value")


def _percent(answer: str, gold: str, kind: Type) -> Match:
    return _number(answer.replace("%", "", 1), gold.replace("%", ""), kind)


def _date(answer: str, gold: str) -> Match:
    wanted = _parsed_date(gold)
    if wanted is None:
        raise UsageError(f"reference {gold!r} is no date")
    given = _parsed_date(answer)
    return _when(given == wanted, "no_date" if given is None else "value")


def _parsed_date(text: str) -> tuple[int, ...] | None:
    text = text.strip("'\" .")
    try:
        moment = datetime.fromisoformat(text)
        return moment.year, moment.month, moment.day
    except ValueError:
        pass
    for forms, parts in ((_DATES, 3), (_MONTHS, 2)):
        for form in forms:
            try:
                day: date = datetime.strptime(text, form).date()  # noqa: DTZ007  a day has no zone
            except ValueError:
                continue
            return (day.year, day.month, day.day)[:parts]
    return None


def _label(answer: str, gold: str, kind: Type) -> Match:
    answer, gold = answer.strip("'\""), gold.strip("'\"")
    if not kind.case:
        answer, gold = answer.casefold(), gold.casefold()
    return _when(answer.strip() == gold.strip(), "value")


def _letter(answer: str, gold: str, options: Sequence[str]) -> Match:
    answer, wanted = _bare(answer), gold[:1].upper()
    texts = {letter: _bare(text) for letter, text in zip(ascii_uppercase, options, strict=False)}
    if answer and answer.casefold() == texts.get(wanted, "").casefold():
        return RIGHT
    read = _LETTER.fullmatch(answer)
    if read is None:
        return Match(right=False, reason="no_letter")
    letter = (read["letter"] or read["bracketed"]).upper()
    named, rest = _options_named(read["rest"], texts)
    named |= {found[0].upper() for found in _LONE_LETTER.finditer(rest)}
    choices = {wanted, *ascii_uppercase[: len(options) or 5]}
    if named & choices - {letter}:
        return Match(right=False, reason="ambiguous")
    return _when(letter == wanted, "value")


def _options_named(text: str, options: dict[str, str]) -> tuple[set[str], str]:
    """Find the options whose text is in a text, and give the text without them.

    The longest first: an option may name letters and hold the text of another one. Options that
    are letters themselves are found as letters.
    """
    long = sorted((o for o in options.items() if len(o[1]) > 1), key=lambda o: -len(o[1]))
    if not long:
        return set(), text
    either = "|".join(f"(?P<{letter}>{re.escape(words)})" for letter, words in long)
    pattern = re.compile(rf"(?<!\w)(?:{either})(?!\w)", re.IGNORECASE)
    named = {found.lastgroup or "" for found in pattern.finditer(text)}
    return named, pattern.sub(" ", text)


def _bare(text: str) -> str:
    """Take off quotes, asterisks, a full stop, and brackets around the whole."""
    text = text.translate(_MARKUP).strip(" \t\r\n'")
    for _ in range(3):
        if len(text) > 1 and text[0] + text[-1] in ("[]", "()", "{}"):
            text = text[1:-1].strip(" \t\r\n'")
    return text.removesuffix(".")


def _elements(text: str) -> list[str]:
    text = text.strip()
    elements = literal_elements(text)
    if elements is not None:
        return elements
    for ends in ("[]", "()", "{}"):
        if text[:1] == ends[0] and text[-1:] == ends[1]:
            text = text[1:-1]
    return [part for part in split_outside(text) if part]


def _collection(answer: str, gold: str, kind: Type) -> Match:
    assert kind.inner is not None
    given, wanted, inner = _elements(answer), _elements(gold), kind.inner
    if kind.name == "set":
        given = list(dict.fromkeys(given))
    # Also so that a hostile answer of a million elements, or a huge one, is not compared.
    most = 2 * len(wanted) + 10 if kind.name == "set" else len(wanted)
    longest = 10 * max(map(len, wanted), default=0) + 100
    if not (0 if kind.name == "set" else most) <= len(given) <= most:
        return Match(right=False, reason="length")
    if any(len(one) > longest for one in given):
        return Match(right=False, reason="value")
    if kind.name == "list":
        pairs = zip(given, wanted, strict=True)
        return _when(all(matches(a, g, inner).right for a, g in pairs), "value")
    if kind.name == "set":
        known = all(any(matches(a, g, inner).right for g in wanted) for a in given)
        whole = all(any(matches(a, g, inner).right for a in given) for g in wanted)
        return _when(known and whole, "value")
    for one in given:
        hit = next((i for i, g in enumerate(wanted) if matches(one, g, inner).right), None)
        if hit is None:
            return Match(right=False, reason="value")
        del wanted[hit]
    return RIGHT


def _bool(answer: str, gold: str) -> Match:
    given = _YES_NO.get(answer.strip("'\" .").casefold())
    if given is None:
        return Match(right=False, reason="no_bool")
    return _when(given == _YES_NO[gold.casefold()], "value")


def _pairs(answer: str, gold: str, kind: Type) -> Match:
    given, wanted = read_pairs(answer), dict(read_pairs(gold))
    names = [name for name, _ in kind.fields]
    if sorted(name for name, _ in given) != sorted(names):
        return Match(right=False, reason="names" if given else "no_pairs")
    values = dict(given)
    for name, inner in kind.fields:
        match = matches(values[name], wanted[name], inner)
        if not match.right:
            return Match(right=False, reason=f"{name}: {match.reason}")
    return RIGHT


def _when(right: bool, reason: str) -> Match:
    return RIGHT if right else Match(right=False, reason=reason)
