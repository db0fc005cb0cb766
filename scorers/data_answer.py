"""Answers to questions about data: the benchmark's own rules, faults included, beside strict ones."""

from __future__ import annotations

import re
from collections.abc import Callable

from harness.core.errors import UsageError
from harness.core.task import Scorer
from harness.core.types import Output, Sample, Score
from scorers.answer_parts import literal_elements
from scorers.answer_types import Match, matches, read_type

PROFILES = ("both", "upstream", "strict")
EMPTY = '""'
"""How an empty answer is handed over, since an empty text stands for none at all."""
RULES = ("list_match", "exact_match", "exact_match_0", "plain")

_FIRST_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def data_answer(profile: str = "both", headline: str = "strict") -> Scorer:
    """Make a scorer for the answer of a data question.

    Reads from the sample: ``target[0]``, the reference; ``metadata["rule"]``, the benchmark's rule
    (`upstream_rule`); ``metadata["answer_type"]``, the strict type (`scorers.answer_types`);
    ``metadata["options"]``, texts of a choice question. An empty output is no answer; an empty
    answer, and an empty reference, are written as `EMPTY`.

    Parameters
    ----------
    profile : {"both", "upstream", "strict"}
        Which rules are applied; each that is gives a metric, ``accuracy_upstream`` and
        ``accuracy_strict``.
    headline : {"strict", "upstream"}
        Whose verdict is the value, where both are applied.

    Raises
    ------
    UsageError
        For another profile or headline.

    Examples
    --------
    >>> item = Sample(item_id="1", input="Mean fare?", target=("@fare[34.65]",),
    ...     metadata={"rule": "list_match", "answer_type": "pairs(fare=float(2))"})
    >>> score = data_answer()(item, Output(text="@fare[34.65 or 99]"))
    >>> score.value, score.metrics
    (0.0, {'accuracy_upstream': 1.0, 'accuracy_strict': 0.0})
    """
    if profile not in PROFILES or headline not in PROFILES[1:]:
        raise UsageError(
            f"scorer data_answer: profile={profile} is not one of {', '.join(PROFILES)}"
        )
    leads = headline if profile == "both" else profile

    def score(sample: Sample, output: Output) -> Score:
        answer, gold, facts = output.text.strip(), sample.target[0], sample.metadata
        if not answer:
            return Score.no_answer("nothing was handed in")
        answer, gold = ("" if text == EMPTY else text for text in (answer, gold))
        verdicts: dict[str, Match] = {}
        if profile != "strict":
            right = upstream_rule(facts["rule"])(answer, gold)
            verdicts["upstream"] = Match(right, "" if right else "value")
        if profile != "upstream":
            kind = read_type(facts["answer_type"])
            verdicts["strict"] = matches(answer, gold, kind, facts.get("options", ()))
        verdict = verdicts[leads]
        why = {name: match.reason or "right" for name, match in verdicts.items()}
        return Score(
            value=float(verdict.right),
            passed=verdict.right,
            answer=answer,
            reason=verdict.reason or None,
            explanation="; ".join(f"{name}: {text}" for name, text in why.items())
            + f"; reference: {gold}",
            metrics={f"accuracy_{name}": float(m.right) for name, m in verdicts.items()},
        )

    return score


def upstream_rule(name: str) -> Callable[[str, str], bool]:
    """Give one of the benchmark's rules: (answer, reference) -> right.

    ``list_match`` (DAEval), ``exact_match`` (QRData, within 3 %), ``exact_match_0`` (DSBio, within
    0 %, so that no two numbers are equal unless their texts are) and ``plain`` (DABStep).

    Raises
    ------
    UsageError
        For another name.
    """
    rules: dict[str, Callable[[str, str], bool]] = {
        "list_match": list_match,
        "exact_match": lambda answer, gold: exact_match(answer, gold, 0.03),
        "exact_match_0": lambda answer, gold: exact_match(answer, gold, 0.0),
        "plain": lambda answer, gold: answer.strip().lower() == gold.strip().lower(),
    }
    if name not in rules:
        raise UsageError(f"rule {name!r} is not one of {', '.join(RULES)}")
    return rules[name]


def list_match(answer: str, gold: str) -> bool:
    """Compare ``@key[value]`` pairs as DSGym does for DAEval: all or nothing.

    As many pairs, the same keys, and for each key: where both values hold a number, equal first
    numbers (a comma ends one, so 1,234 and 1,999 are equal); else equal texts.

    Examples
    --------
    >>> list_match("@a[1,999] @b[yes]", "@a[1,234] @b[yes]"), list_match("@A[1]", "@a[1]")
    (True, False)
    """
    given, wanted = _pairs(answer), _pairs(gold)
    if len(given) != len(wanted) or dict(given).keys() != dict(wanted).keys():
        return False
    values = dict(given)
    return all(_same_value(values[key], value) for key, value in wanted)


def _pairs(text: str) -> list[tuple[str, str]]:
    r"""Find ``@([^[]+)\[([^]]*)]`` from left to right; as a pattern it takes quadratic time."""
    pairs, at = [], text.find("@")
    while at >= 0:
        opening = text.find("[", at + 1)
        closing = text.find("]", opening + 1)
        if opening < 0 or closing < 0:
            # Nor can a later pair be whole.
            break
        if opening > at + 1:
            pairs.append((text[at + 1 : opening].strip(), text[opening + 1 : closing].strip()))
        at = text.find("@", closing + 1 if opening > at + 1 else opening)
    return pairs


def _same_value(answer: str, gold: str) -> bool:
    given, wanted = _FIRST_NUMBER.search(answer), _FIRST_NUMBER.search(gold)
    if given and wanted:
        return float(given[0]) == float(wanted[0])
    return answer == gold


def exact_match(answer: str, gold: str, tolerance: float) -> bool:
    """Compare two texts as DSGym does for QRData and DSBio.

    Equal without case and blanks around; else, where both are Python lists, equal as sets; else,
    where both are numbers, a relative difference strictly below the tolerance.

    Examples
    --------
    >>> exact_match("102.99", "100", 0.03), exact_match("103", "100", 0.03)
    (True, False)
    >>> exact_match("3.0", "3", 0.0)
    False
    """
    answer, gold = answer.strip().lower(), gold.strip().lower()
    if answer == gold:
        return True
    given, wanted = (literal_elements(text, only_lists=True) for text in (answer, gold))
    if given is not None and wanted is not None:
        return {one.lower() for one in given} == {one.lower() for one in wanted}
    try:
        x, g = float(answer), float(gold)
    except ValueError:
        return False
    return abs(x - g) / abs(g) < tolerance if g else abs(x) < tolerance
