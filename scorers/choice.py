"""Choice items: which options an answer names, and whether these are the right ones."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from harness.core.errors import UsageError
from harness.core.task import Scorer
from harness.core.types import Output, Sample, Score
from scorers.reasoning import remove_reasoning

_PROFILES = ("strict", "upstream")

# `### Answer`, `## Answers:`, `**### Final Answer**`; what follows on the same line counts as the
# first line after it, but only behind a colon or as a digit: "### Answer key" is no such heading.
_HEADING = re.compile(
    r"^[ \t>*_]*#{1,6}[ \t]*[*_]*(?:final[ \t]+)?answers?[*_]*[ \t]*"
    r"(?:$|:[*_]*[ \t]*(?P<colon>.*)$|(?P<digit>[\[(*_]*\d.*)$)",
    re.IGNORECASE | re.MULTILINE,
)
_UPSTREAM_HEADING = re.compile(r"###[ \t]*[*_]*answers?", re.IGNORECASE)

_PARENTHETICAL = re.compile(r"\([^()]*\)")
_LABELLED = re.compile(r"(?<!\d)(\d+)\s*:")
_NOT_AN_INDEX = re.compile(r"\d\.\d|(?<!\d)[-−]\d")
_LETTERS = re.compile(
    r"(?:options?\b)?(?:[^\w-]|\band\b)*[A-Z](?:(?:[^\w-]|\band\b)+[A-Z])*[^\w-]*"
)
_ONLY_DIGITS = re.compile(r"[\[({*`$]*\d+(?:(?:[\s,;&*`]|\band\b)+\d+)*[\])}*`$.\s]*")


def choice(profile: str = "strict") -> Scorer:
    r"""Make a scorer for items with options; gold is ``sample.correct``.

    Parameters
    ----------
    profile : {"strict", "upstream"}
        How a text is read. ``strict``: see `read_choice`; right if the set of indices equals the
        set of right ones. ``upstream``: every run of digits from the first ``### Answer`` heading
        to the end, and the sorted lists must be equal, so that "0 (option 0)" is wrong.

    Returns
    -------
    Scorer
        An output that carries ``choice_logprobs`` (solver ``choose``) is judged by these instead:
        the likeliest option is the answer, the first of equals wins. Its metrics are ``acc`` (the
        value) and ``acc_norm``, which divides by the number of characters of the option.

    Raises
    ------
    UsageError
        For another profile.

    Examples
    --------
    >>> sample = Sample(item_id="1", input="Broken by Shor?", choices=("RSA", "AES"), correct=(0,))
    >>> choice()(sample, Output(text="### Answer\n0 (option 0)")).value
    1.0
    >>> choice("upstream")(sample, Output(text="### Answer\n0 (option 0)")).value
    0.0
    """
    if profile not in _PROFILES:
        raise UsageError(f"scorer choice: profile={profile} is not one of {', '.join(_PROFILES)}")
    from_text = _strict if profile == "strict" else _upstream

    def score(sample: Sample, output: Output) -> Score:
        if output.choice_logprobs is not None:
            return _by_logprob(sample, output.choice_logprobs)
        return from_text(sample, remove_reasoning(output.text))

    return score


def read_choice(text: str, n: int) -> tuple[frozenset[int] | None, str]:
    r"""Read which of `n` options a text names, by the strict rules.

    The first non-empty line after the last ``### Answer`` heading is read, or the whole text where
    it is nothing but indices. Indices count from 0; a remark in brackets such as "(option 0)" is
    ignored; in "2: some text" only the index before the colon counts. Letters (A is 0) are read
    where the line holds nothing else. One index out of range makes the whole line unreadable: an
    answer that names an option that does not exist is not to be mended.

    Parameters
    ----------
    text : str
        The answer without its reasoning.
    n : int
        Number of options.

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
    text = text.replace("\r\n", "\n")
    headings = list(_HEADING.finditer(text))
    if not headings:
        whole = text.strip()
        if _ONLY_DIGITS.fullmatch(whole) or _LETTERS.fullmatch(whole):
            return _read_line(whole, n, "the whole reply")
        return None, 'no "### Answer" heading'
    last = headings[-1]
    same_line = last["colon"] or last["digit"] or ""
    lines = [same_line, *text[last.end() :].splitlines()]
    line = next((line.strip() for line in lines if line.strip(" \t*_`>")), "")
    if not line:
        return None, 'nothing follows the last "### Answer" heading'
    return _read_line(line, n, 'the line after the last "### Answer" heading')


def _read_line(line: str, n: int, where: str) -> tuple[frozenset[int] | None, str]:
    bare = _PARENTHETICAL.sub(" ", line)
    # "(2)" or "(B)": the brackets hold the answer itself.
    body = bare if re.search(r"\w", bare) else line
    if _NOT_AN_INDEX.search(body):
        return None, f"{where} holds something other than indices: {_short(line)}"
    found = [_integer(d) for d in _LABELLED.findall(body) or re.findall(r"\d+", body)]
    if not found and _LETTERS.fullmatch(body.strip(" -")):
        found = [ord(letter) - ord("A") for letter in re.findall(r"\b[A-Z]\b", body)]
    if not found:
        return None, f"{where} names no option: {_short(line)}"
    beyond = [index for index in found if index >= n]
    if beyond:
        return None, f"{where} names option {beyond[0]}, and there are 0 to {n - 1}"
    return frozenset(found), where


def _strict(sample: Sample, text: str) -> Score:
    indices, rule = read_choice(text, len(sample.choices))
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
