"""Choice items: which options an answer names, and whether these are the right ones."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from string import ascii_uppercase

import msgspec

from harness.core.errors import UsageError
from harness.core.task import Scorer
from harness.core.types import Output, Sample, Score
from scorers.reasoning import remove_reasoning

CORRECTED = "accuracy_corrected"
"""The metric by corrected keys; the value beside it is by the benchmark's own."""

Key = tuple[int, ...] | None
"""Positions of the right options, in the order of the file; None: the item is left out."""

_PROFILES = ("strict", "upstream")

# `### Answer`, `## Answers:`, `**### Final Answer**`; what follows on the same line counts as the
# first line after it, but only behind a mark or as an index: "### Answer key" is no such heading.
_HEADING = re.compile(
    r"^[ \t>*_]*#{1,6}[ \t]*[*_]*(?:\d+[.)][ \t]*)?(?:final[ \t]+)?answer(?:s|\(s\))?[*_]*+[ \t]*+"
    r"(?:$|(?:[:=]|[-–—](?=\s))[*_]*[ \t]*(?P<marked>.*)$"
    r"|(?P<index>[\[(*_]*(?:\d.*|(?-i:[A-Z])[\])*_.]*))$)",
    re.IGNORECASE | re.MULTILINE,
)
_UPSTREAM_HEADING = re.compile(r"###[ \t]*[*_]*answers?", re.IGNORECASE)

# Full-width signs are plain ones in another width; 、 and 。 are a comma and a full stop.
_NARROW = {0xFF01 + i: 0x21 + i for i in range(94)} | {0x3000: 0x20, 0x3001: 0x2C, 0x3002: 0x2E}
_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})\w*\s*")
_BULLET = re.compile(r"^[-*+•]\s+")
_LATEX = re.compile(r"\\(?:boxed|text(?:bf|it|rm|tt)?|math(?:bf|it|rm|sf|tt))(?![A-Za-z])")
_GLUED = re.compile(r"\b(options?|choices?)(?=\d)", re.IGNORECASE)
# Any brackets; those with words in them, not the ones around a number or a letter.
_BRACKETS = re.compile(r"\([^()]*\)")
_REMARKS = re.compile(r"\((?!\W*[A-Za-z]\W*\))[^()A-Za-z]*[A-Za-z][^()]*\)")

_ONLY_DIGITS = re.compile(r"[\[({*`$]*\d+(?:(?:[\s,;&*`]|\band\b)+\d+)*[\])}*`$.\s]*")
_ONLY_LETTERS = re.compile(
    r"(?:options?\b)?(?:[^\w/-]|\band\b)*[A-Za-z](?:(?:[^\w/-]|\band\b)+[A-Za-z])*[^\w/-]*"
)
_COLONS = re.compile(r"(?<![\w.−-])(\d+)\s*:")
_LISTED = re.compile(r"(?:^|(?<=[\s(]))(\d+)\)(?=\W|$)")
_STARTS_LISTED = re.compile(r"\W*\d+\)")
# An index and something else behind it: "2, because 3 fails", "2. Option 3 fails", "2, not 3".
_INDEX_FIRST = re.compile(
    r"(?P<head>\D*\d+(?:(?:[\s,;&*`]|\band\b)+\d+)*[*_`$)\]}]*)"
    r"(?:[\s,;:]*\b(?:because|since|as|not|but|while|which)\b|[.;]\s+(?!\d)|\s+[-–—]\s+(?!\d)).*"
)
# Decimals, signs, ranges, fractions, powers, thousands, "1. 2", formulas; "not 2", "0 or 2". But "2 is
# not secure" is an answer, where that is the question.
_NO_INDICES = re.compile(
    r"\d\.\d|(?<!\d)[-−]\d|\d\s*[-–—−]\s*\d|\d[/^]|\d,\d{3}(?!\d)|^\W*\d+[.)]\s+\d|\\[A-Za-z]"
    r"|(?:\b(?:not|nor|neither|or|except)\b|n't\b)\D{0,40}\d",
    re.IGNORECASE,
)
_INDEX = re.compile(r"(?<![A-Za-z0-9])\d+(?![A-Za-z0-9])")
_SAYING = r"\b(?:the|so|correct|right|final|answers?|options?|choices?|is|are)\b"
_LEAD_IN = re.compile(rf"^(?:\W*{_SAYING})+[\s:]*", re.IGNORECASE)
_LEAD_OUT = re.compile(rf" (?:is|are)(?: {_SAYING}){{1,3}}\W*$", re.IGNORECASE)
_SAID = re.compile(rf"{_SAYING}|\band\b", re.IGNORECASE)
_NUMBERED = re.compile(r"\W*(?:\d+|[A-Z])(?:\W+(?:\d+|[A-Z]))*\W*")


def choice(profile: str = "strict", corrected: str = "") -> Scorer:
    r"""Make a scorer for items with options; gold is ``sample.correct``.

    Parameters
    ----------
    profile : {"strict", "upstream"}
        How a text is read. ``strict``: see `read_choice`; right if the set of indices equals the
        set of right ones. ``upstream``: every run of digits from the first ``### Answer`` heading
        to the end, and the sorted lists must be equal, so that "0 (option 0)" is wrong.
    corrected : str
        Keys that replace wrong ones, as `write_corrected` writes them. Every score then has the
        metric ``accuracy_corrected``; an item that is dropped has none.

    Returns
    -------
    Scorer
        An output that carries ``choice_logprobs`` (solver ``choose``) is judged by these instead:
        the likeliest option is the answer, the first of equals wins. Its metrics are ``acc`` (the
        value) and ``acc_norm``, which divides by the number of characters of the option.

    Raises
    ------
    UsageError
        For another profile, or corrections that cannot be read.

    Examples
    --------
    >>> sample = Sample(item_id="1", input="Broken by Shor?", choices=("RSA", "AES"), correct=(0,))
    >>> choice()(sample, Output(text="### Answer\n0 (option 0)")).value
    1.0
    >>> choice("upstream")(sample, Output(text="### Answer\n0 (option 0)")).value
    0.0
    >>> choice(corrected="1:1")(sample, Output(text="### Answer\n0")).metrics
    {'accuracy_corrected': 0.0}
    """
    if profile not in _PROFILES:
        raise UsageError(f"scorer choice: profile={profile} is not one of {', '.join(_PROFILES)}")
    from_text = _strict if profile == "strict" else _upstream
    keys = _read_corrected(corrected)

    def score(sample: Sample, output: Output) -> Score:
        if output.choice_logprobs is not None:
            return _by_logprob(sample, output.choice_logprobs)
        return from_text(sample, remove_reasoning(output.text))

    def score_twice(sample: Sample, output: Output) -> Score:
        made = again = score(sample, output)
        note = ""
        if sample.item_id in keys:
            key = keys[sample.item_id]
            if key is None:
                return made
            shown = shown_key(sample, key)
            again = score(msgspec.structs.replace(sample, correct=shown), output)
            note = f"; corrected key: {', '.join(map(str, shown))}"
        return msgspec.structs.replace(
            made,
            explanation=f"{made.explanation}{note}",
            metrics={**made.metrics, CORRECTED: again.value or 0.0},
        )

    return score_twice if keys else score


def shown_key(sample: Sample, key: Sequence[int]) -> tuple[int, ...]:
    """Give the places of a key in the order shown; ``metadata["order"]`` is place -> position.

    Examples
    --------
    >>> shown_key(Sample(item_id="1", input="?", choices=("c", "a"), metadata={"order": [2, 0]}), [2])
    (0,)
    """
    order = sample.metadata.get("order", range(len(sample.choices)))
    return tuple(place for place, position in enumerate(order) if position in key)


def write_corrected(keys: Mapping[str, Key]) -> str:
    """Write corrected keys as the option ``corrected`` of the scorer; see `choice`.

    Parameters
    ----------
    keys : mapping of str to tuple of int or None
        By item id (no ``:`` or ``,`` in it).

    Examples
    --------
    >>> write_corrected({"mcq-023": (2,), "mcq-130": (0, 2), "mcq-006": None})
    'mcq-023:2,mcq-130:0/2,mcq-006:drop'
    """
    return ",".join(
        f"{item}:{'drop' if key is None else '/'.join(map(str, key))}" for item, key in keys.items()
    )


def _read_corrected(text: str) -> dict[str, Key]:
    keys: dict[str, Key] = {}
    for part in text.split(",") if text else ():
        item, _, key = part.rpartition(":")
        if not item or not re.fullmatch(r"drop|\d+(?:/\d+)*", key):
            raise UsageError(
                f"scorer choice: cannot read {part!r} in corrected={text}: write ITEM:POSITION, "
                "ITEM:POSITION/POSITION or ITEM:drop, separated by commas"
            )
        keys[item] = None if key == "drop" else tuple(map(int, key.split("/")))
    return keys


def read_choice(
    text: str, n: int, options: Sequence[str] = ()
) -> tuple[frozenset[int] | None, str]:
    r"""Read which of `n` options a text names, by the strict rules.

    The first line with words after the last ``### Answer`` heading is read, with the lines right
    below it where each is an item of a list; or the whole text where it is nothing but an answer.
    Indices count from 0; a remark in brackets such as "(option 0)" is ignored, as is what stands
    behind "2:" or "2, because". Letters (A is 0) are read where the line holds nothing else, and
    whole options by their text, but a number is always an index. One index out of range makes the
    whole line unreadable: an answer that names an option that does not exist is not to be mended.
    So do "0 or 2", "not 2", and an option behind another's number.

    Parameters
    ----------
    text : str
        The answer without its reasoning.
    n : int
        Number of options.
    options : sequence of str
        Their texts; without them only positions are read.

    Returns
    -------
    indices : frozenset of int or None
        None when there is no answer.
    rule : str
        What was read, or why nothing could be.

    Examples
    --------
    >>> read_choice("### Reasoning\n7 is prime.\n### Answer\n0, 2", 4)[0] == {0, 2}
    True
    >>> read_choice("It must be 2.", 4)
    (None, 'no "### Answer" heading')
    """
    text = text.replace("\r\n", "\n").translate(_NARROW)
    headings = list(_HEADING.finditer(text))
    if not headings:
        whole = text.strip()
        # Over several lines whole options are an echo of the question.
        if _is_answer(whole, () if "\n" in whole else options):
            return _read_line(whole, n, options, "the whole reply")
        return None, 'no "### Answer" heading'
    last = headings[-1]
    same_line = last["marked"] or last["index"] or ""
    lines = _first_lines([same_line, *text[last.end() :].splitlines()])
    if not lines:
        return None, 'nothing follows the last "### Answer" heading'
    where = 'the line after the last "### Answer" heading'
    found: frozenset[int] = frozenset()
    for line in lines:
        if found and not _is_answer(line, options):
            break
        indices, rule = _read_line(line, n, options, where)
        if indices is None:
            return None, rule
        found |= indices
        if not _is_answer(line, options):
            break
    return found, where


def _first_lines(lines: Iterable[str]) -> list[str]:
    """Give the first line that says something and those right below, marks of lists left out."""
    kept: list[str] = []
    for line in lines:
        if not re.search(r"\w", line) or _FENCE.fullmatch(line):
            if kept:
                break
            continue
        leads_in = line.rstrip(" \t*_").endswith(":") and not re.search(r"\d", line)
        if not kept and leads_in and not _ONLY_LETTERS.fullmatch(line):
            continue
        kept.append(_BULLET.sub("", line.strip()))
    return kept


def _is_answer(line: str, options: Sequence[str]) -> bool:
    """Tell whether a line is nothing but positions, or nothing but options."""
    pure = _ONLY_DIGITS.fullmatch(line) or _ONLY_LETTERS.fullmatch(line)
    return bool(pure) or bool(_by_text(line, options))


def _read_line(
    line: str, n: int, options: Sequence[str], where: str
) -> tuple[frozenset[int] | None, str]:
    named = _by_text(line, options)
    if named:
        return named, where
    if named is not None:
        return None, f"{where} puts an option behind the number of another: {_short(line)}"
    found: list[int] | None = []
    # Without brackets first: in "0 (1 is even)" they hold no answer, in "the answer is (2)" they do.
    for brackets in (_BRACKETS, _REMARKS):
        found = _positions(brackets.sub(" ", line))
        if found != []:
            break
    if found is None:
        return None, f"{where} holds something other than indices: {_short(line)}"
    if not found:
        return None, f"{where} names no option: {_short(line)}"
    beyond = [index for index in found if index >= n]
    if beyond:
        return None, f"{where} names option {beyond[0]}, and there are 0 to {n - 1}"
    return frozenset(found), where


def _by_text(line: str, options: Sequence[str]) -> frozenset[int] | None:
    """Read a line that holds nothing but whole options, with their own numbers or letters or none.

    Returns None where it says something else, and an empty set where the only other thing it says
    is another number or letter.
    """
    if _ONLY_DIGITS.fullmatch(line):
        return None
    rest, found = " ".join(line.split()), set()
    for j in sorted(range(len(options)), key=lambda j: -len(options[j])):
        text = " ".join(options[j].split())
        own = "|".join(filter(None, (str(j), ascii_uppercase[j : j + 1])))
        # "3" or "C" alone is a position, whatever the options say; a single word may be a code, in
        # which upper and lower case differ.
        needed = "" if re.fullmatch(r"\W*(?:\d+|\w)\W*", text) else "?"
        pattern = (
            rf"(?:(?<!\w)(?:{own})(?!\w)[\s.:)\]=(*–—-]*){needed}(?<!\w){re.escape(text)}(?!\w)"
        )
        rest, times = re.subn(pattern, " ", rest, flags=re.IGNORECASE if " " in text else 0)
        if times:
            found.add(j)
    rest = _SAID.sub(" ", rest)
    if found and not re.search(r"\w", rest):
        return frozenset(found)
    return frozenset() if found and _NUMBERED.fullmatch(rest) else None


def _positions(line: str) -> list[int] | None:
    """List the positions that a line names; None where its numbers are something else."""
    line = _GLUED.sub(r"\1 ", " ".join(_LATEX.sub("", line).split()))
    labels = _COLONS.findall(line)
    if not labels and _STARTS_LISTED.match(line):
        labels = _LISTED.findall(line)
    if labels:
        return [_integer(digits) for digits in labels]
    first = _INDEX_FIRST.fullmatch(line)
    head = first["head"] if first else line
    if _NO_INDICES.search(head):
        return None
    if found := _INDEX.findall(head):
        return [_integer(digits) for digits in found]
    rest = _LEAD_OUT.sub("", _LEAD_IN.sub("", head)).strip(" -")
    if not _ONLY_LETTERS.fullmatch(rest):
        return []
    return [ascii_uppercase.index(letter.upper()) for letter in re.findall(r"\b[A-Za-z]\b", rest)]


def _strict(sample: Sample, text: str) -> Score:
    indices, rule = read_choice(text, len(sample.choices), sample.choices)
    if indices is None:
        return Score.no_answer(f"strict: {rule}")
    return _verdict(sorted(indices), sorted(set(sample.correct)), f"strict: {rule}")


def _upstream(sample: Sample, text: str) -> Score:
    heading = _UPSTREAM_HEADING.search(text)
    if heading is None:
        return Score.no_answer('upstream: no "### Answer" heading')
    found = sorted(_integer(d) for d in re.findall(r"\d+", text[heading.end() :]))
    if not found:
        return Score.no_answer('upstream: no number after the first "### Answer" heading')
    rule = 'upstream: every number after the first "### Answer" heading'
    return _verdict(found, sorted(sample.correct), rule)


def _verdict(found: list[int], gold: list[int], rule: str) -> Score:
    right = found == gold
    return Score(
        value=float(right),
        passed=right,
        answer=", ".join(map(str, found)),
        explanation=f"{rule}; right: {', '.join(map(str, gold))}",
    )


def _by_logprob(sample: Sample, logprobs: Sequence[float]) -> Score:
    if len(logprobs) != len(sample.choices) or any(math.isnan(p) for p in logprobs):
        raise ValueError(
            f"item {sample.item_id!r}: {len(logprobs)} log-probabilities for "
            f"{len(sample.choices)} options, or one of them is not a number"
        )
    best = _argmax(logprobs)
    # The continuation is " option": the blank before it is not counted, as in lm-eval.
    lengths = [max(1, len(option)) for option in sample.choices]
    best_norm = _argmax([p / length for p, length in zip(logprobs, lengths, strict=True)])
    right = best in sample.correct
    return Score(
        value=float(right),
        passed=right,
        answer=str(best),
        explanation=f"likeliest option (first of equals); a character: {best_norm}; "
        f"right: {', '.join(map(str, sample.correct))}",
        metrics={"acc": float(right), "acc_norm": float(best_norm in sample.correct)},
    )


def _argmax(values: Sequence[float]) -> int:
    return max(range(len(values)), key=values.__getitem__)


def _integer(digits: str) -> int:
    # Python refuses to read thousands of digits; no index needs more than nine.
    return int(digits.lstrip("0")[:9] or "0")


def _short(line: str) -> str:
    return repr(line if len(line) <= 60 else line[:57] + "...")
