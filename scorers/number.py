"""Final numbers: the one reader of numeric answers, and the scorer that compares them by value."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation, localcontext

from harness.core.errors import UsageError
from harness.core.task import Scorer
from harness.core.types import Output, Sample, Score
from scorers.reasoning import remove_reasoning

# --- what a number looks like ------------------------------------------------------------------
_SIGN = r"[-−–+]"
_CURRENCY = r"(?:\\?[$€£¥₹]|\b(?:USD|EUR|GBP|INR|Rs\.?))"
_PLAIN = r"\d+(?:,\d{3})*(?:\.\d+)?"
_DIGITS = (
    r"(?:\d{1,3}(?:,\d{3})+(?![\d]|,\d)(?:\.\d+)?"  # 3,000.50
    r"|\d{1,2}(?:,\d{2})+,\d{3}(?!\d)(?:\.\d+)?"  # 12,34,567 (Indian grouping)
    r"|\d+(?:\.\d+)?|(?<!\w)\.\d+)"
)
_EXPONENT = (
    r"(?:[eE](?P<exp>[-+−]?\d{1,3})(?![\d.])"  # 1.5e3
    r"|\s*(?:×|x|\*|·|\\times|\\cdot)\s*10\s*(?:\^|\*\*)\s*\{?(?P<ten>[-+−]?\d{1,3})\}?)"  # 1.5 × 10^3
)
_ANY_DIGIT = re.compile(r"\d")
_BARE = re.compile(r"-?\d{1,30}(?:\.\d{1,30})?", re.ASCII)
_NUMBER = re.compile(
    rf"""
    # Most characters of a text start no number: turn them away before anything is tried.
    (?=[\d.\\^$€£¥₹+\-−–] | \b[^\W\d_]+_?\d | \b(?:USD|EUR|GBP|INR|Rs))
    (?:
      # Digits of a name (m2, x1), of an exponent or of an ordinal are no answers.
      (?P<other> (?:(?!USD|EUR|GBP|INR|Rs)\b[^\W\d_]+_? | \^\{{?-?) \d+(?:[.,]\d+)*
               | \b\d+(?:st|nd|rd|th)\b)
    | (?:(?<![\w)\]}}])(?P<sign>{_SIGN}))?
      (?:{_CURRENCY}\s?(?P<inner_sign>{_SIGN})?)?
      (?: # \frac{{1}}{{2}}, 1\frac{{1}}{{2}}, \frac12
          (?:(?P<whole>\d+)\s?)? \\[dt]?frac\s*
          (?: \{{\s*(?P<up>{_PLAIN})\s*\}}\s*\{{\s*(?P<down>{_PLAIN})\s*\}}
            | (?P<up1>\d)(?P<down1>\d))
        | # 1 1/2
          (?P<mixed>\d+)\s(?P<mixed_up>\d+)/(?P<mixed_down>\d+)(?![\d/])
        | # 3,000.50, 1.5e3, 9/2
          (?P<body>{_DIGITS}) {_EXPONENT}?
          (?:\s?/\s? {_CURRENCY}? (?P<over>{_DIGITS})(?![\d/]))?
      )
    )""",
    re.VERBOSE,
)

# Blanks group digits for sure only in an amount of money: "$12 000", but "rooms 12 100".
_BLANKS = re.compile(r"(?<=[$€£])\d{1,3}(?: \d{3})+(?!\d)")

# --- where the answer stands -------------------------------------------------------------------
_MARKERS = re.compile(
    r"^[ \t*_]*\#{1,6}[ \t]*[*_]*(?:final[ \t]+)?answers?[*_]*[ \t]*$"
    r"|(?P<hashes>\#{4})"
    r"|\banswers?\b(?:[ \t]+(?:to|for|of)\b[^.\n:=]{0,80}?)?[\s*_\"'`]*"
    r"(?:\b(?:is|are|was|equals|would[ ]be|will[ ]be|should[ ]be|must[ ]be|comes[ ]to)\b|[:=])"
    r"|^[ \t*_]*A:"
    r"|\\boxed\s*\{",
    re.IGNORECASE | re.MULTILINE,
)
_BOLD = re.compile(r"(?:\*\*|__)(?P<inside>[^*_\n]{1,60})(?:\*\*|__)")
_BOLD_NUMBER = re.compile(
    rf"\s*{_SIGN}?\s?{_CURRENCY}?\s?[\d.,/]*\d\s?[^\W\d_%°]*[^.:=\d]*[.!]?\s*"
)
_NEXT_QUESTION = re.compile(
    r"^[#*>_ \t]*(?:next[ \t]+)?(?:question|problem|exercise|q|human|user)[ \t]*\d*[ \t]*[*_]*:",
    re.IGNORECASE | re.MULTILINE,
)
_SENTENCE_END = re.compile(r"\n|[.!?](?=\s|$)")
# Between a marker and its number: markup, and words that say nothing about the value.
_OPENING = re.compile(r"(?:[\s*_:$`>]|\\[\[(])*")
_FILLER = re.compile(
    r"(?:[\s*_`\"'(){}\[\]:=~≈$,]|\\[\[(,;! ]|\\approx|approximately|about|exactly|equal to|simply|just|therefore|thus)*",
    re.IGNORECASE,
)
# "16 - 3 - 4 = ", "x = ": a calculation whose result stands behind its last equals sign.
_CALCULATION = re.compile(r"[\d\s.,$€£+\-−–*/×÷x()<>%\\{}]*(?:\b[A-Za-z]\s*)?=")


def number(tolerance: str = "0") -> Scorer:
    """Make a scorer that compares the final number of an answer with ``sample.target[0]`` by value.

    Parameters
    ----------
    tolerance : str
        Largest absolute difference that still counts as right, in the unit of the answer.

    Raises
    ------
    UsageError
        For a tolerance that is not a number of at least 0.

    Examples
    --------
    >>> sample = Sample(item_id="1", input="6000 / 2?", target=("3000",))
    >>> number()(sample, Output(text="That makes $3,000.00 in total.")).value
    1.0
    """
    try:
        allowed = Decimal(tolerance)
    except InvalidOperation:
        allowed = Decimal(-1)
    if not allowed.is_finite() or allowed < 0:
        raise UsageError(f"scorer number: tolerance={tolerance} is not a number of at least 0")

    def score(sample: Sample, output: Output) -> Score:
        expected = _reference(sample.target[0])
        if expected is None:
            raise ValueError(f"item {sample.item_id!r}: no number in {sample.target[0]!r}")
        found = extract_number(output.text)
        if found is None:
            return Score.no_answer("no number in the answer")
        right = _near(found, expected, allowed)
        return Score(
            value=float(right),
            passed=right,
            answer=_plain(found),
            explanation=f"read {_plain(found)}, expected {_plain(expected)}",
        )

    return score


def extract_number(text: str) -> Decimal | None:
    r"""Read the final number of an answer.

    Reasoning is removed, and the text is cut where the model goes on to invent a next question.
    Then the number behind the last explicit marker is read (``#### 18``, ``The answer is 18``,
    ``Answer: 18``, ``\boxed{18}``), else the last number in bold, else the last number. Behind a
    marker the number that follows at once is meant, or the result of a calculation that follows;
    otherwise the last number of that sentence.

    Parameters
    ----------
    text : str
        The output as generated.

    Returns
    -------
    decimal.Decimal or None
        The value; ``50%`` is 50, ``1/2`` is 0.5. None when there is no number.

    Examples
    --------
    >>> extract_number("16 - 3 - 4 = 9, and 9 * 2 = 18, so the answer is $18.")
    Decimal('18')
    >>> extract_number("She pays $3,000.50 for 2 weeks.\n#### −1/2")
    Decimal('-0.5')
    >>> extract_number("I do not know.")
    """
    text = _cut_next_question(_normalise(remove_reasoning(text)))
    # A marker's reach ends at the next one: a text of nothing but markers is read in linear time.
    end = len(text)
    for marker in reversed(list(_MARKERS.finditer(text))):
        found = _behind(text, marker, end)
        if found is not None:
            return found
        end = marker.start()
    for bold in reversed(list(_BOLD.finditer(text))):
        if _BOLD_NUMBER.fullmatch(bold["inside"]):
            found = _first(bold["inside"])
            if found is not None:
                return found
    return _last(text)


def _reference(target: str) -> Decimal | None:
    """Read the reference, which is nearly always a bare number and then needs no search."""
    return Decimal(target) if _BARE.fullmatch(target) else extract_number(target)


def _normalise(text: str) -> str:
    r"""Bring spellings of one number together: 1{,}000, 1\,000, 1_000, $1 000."""
    text = _BLANKS.sub(lambda amount: amount[0].replace(" ", ","), text)
    text = re.sub(r"(?<=\d)(?:\{,\}|,?\\[,!;]|[_\u00a0\u2009\u202f'])(?=\d{3}(?!\d))", ",", text)
    return re.sub(r"\\(?:text|mathrm|mathbf|textbf|mbox|bf)\s*\{", "{", text)


def _cut_next_question(text: str) -> str:
    """Cut at a line that starts a further question, once there has been a number to answer with."""
    digit = re.search(r"\d", text)
    line = _NEXT_QUESTION.search(text, digit.end()) if digit else None
    return text[: line.start()] if line else text


def _behind(text: str, marker: re.Match[str], end: int) -> Decimal | None:
    """Read the number that a marker announces, in the text up to `end`."""
    if marker[0].endswith("{"):
        segment = _braced(text, marker.end(), end)
    else:
        # The line of the marker, or the next one that is not empty.
        opening = _OPENING.match(text, marker.end(), end)
        segment = text[opening.end() if opening else marker.end() : end].split("\n", 1)[0]
    start = 0
    while calculation := _CALCULATION.match(segment, start):
        start = calculation.end()
    filler = _FILLER.match(segment, start)
    start = filler.end() if filler else start
    at_once = _NUMBER.match(segment, start)
    if at_once and not at_once["other"]:
        return _value(at_once)
    if marker["hashes"]:
        # "#### Step 3: …" is a heading, not an answer.
        return None
    sentence = _SENTENCE_END.split(segment[start:], maxsplit=1)[0]
    return _last(sentence)


def _braced(text: str, start: int, end: int) -> str:
    r"""Give what stands in the braces that open before `start` (``\boxed{\frac{1}{2}}``)."""
    depth = 1
    for position in range(start, end):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0:
            return text[start:position]
    return text[start:end]


def _first(text: str) -> Decimal | None:
    return next((v for m in _NUMBER.finditer(text) if (v := _value(m)) is not None), None)


def _last(text: str) -> Decimal | None:
    glued = None
    # Line by line from the end: the rest of a long text need not be looked at.
    for line in reversed(text.split("\n")):
        for match in reversed(list(_NUMBER.finditer(line))):
            if not match["other"] and (value := _value(match)) is not None:
                return value
            glued = glued or match["other"]
    # Nothing but numbers glued to words ("is18"): better than no answer.
    digits = re.search(_DIGITS, glued) if glued else None
    return _decimal(digits[0]) if digits else None


def _value(match: re.Match[str]) -> Decimal | None:
    """Give the value of one match of `_NUMBER`; None for a division by zero."""
    if match["other"]:
        return None
    whole, up, down = Decimal(0), Decimal(0), Decimal(1)
    if match["mixed"]:
        whole, up, down = map(_decimal, match.group("mixed", "mixed_up", "mixed_down"))
        if up >= down:
            # "rows 12 16/2": two numbers side by side, not a mixed one.
            whole = Decimal(0)
    elif match["body"]:
        up = _decimal(match["body"])
        if exponent := match["exp"] or match["ten"]:
            up = up.scaleb(int(exponent.replace("−", "-")))
        down = _decimal(match["over"] or "1")
    else:
        whole = _decimal(match["whole"] or "0")
        up = _decimal(match["up"] or match["up1"])
        down = _decimal(match["down"] or match["down1"])
    if down == 0:
        return None
    # Whole numbers of any length stay exact: only a true fraction is divided.
    value = up if down == 1 else up / down
    if whole:
        value += whole
    sign = match["sign"] or match["inner_sign"] or "+"
    return value.copy_negate() if sign != "+" and value else value


def _decimal(digits: str) -> Decimal:
    return Decimal(digits.replace(",", ""))


def _near(a: Decimal, b: Decimal, allowed: Decimal) -> bool:
    if a == b:
        return True
    with localcontext(prec=60):
        return abs(a - b) <= allowed


def _plain(value: Decimal) -> str:
    """Write a value for readers: 18 for 18.00, no exponent unless it would fill the line."""
    if value and abs(value.adjusted()) > 40:
        return f"{value:.12E}"
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
