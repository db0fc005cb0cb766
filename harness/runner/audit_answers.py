"""Checks that answer a task without a model: gold, silence, constants, and what the options give away."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from harness.core.status import SCORER_FAULT
from harness.core.types import Sample, Score
from harness.runner.audit_subject import (
    FREE_CHANCE,
    LEVEL,
    Check,
    Subject,
    Verdict,
    in_range,
    key_of,
    needs_judge,
    share,
    some,
    tail,
    turns_of,
)
from harness.runner.audit_text import clean
from harness.runner.lifecycle import start
from harness.runner.plan import select
from harness.store.layout import Store

_A_FEW = 5
# What a model may say to everything; each is right only where the reference says the same.
_CONSTANTS = ("0", "1", "2", "yes", "no", "A", "none", "I do not know.")
_NO_JUDGE = "the scorer asks a judge, and none was named (--judge SPEC): nothing is known of it"
_NOT_ONE_TURN = "answers are made in several steps: only the whole path can score them"


def gold(subject: Subject) -> Check:
    """Gold of every item through the scorer scores 1, or what the task says."""
    if not subject.one_turn:
        return Check(name="gold", verdict="ok", value=None, why=f"{_NOT_ONE_TURN} (gold_path)")
    pairs = zip(subject.samples, subject.golds, strict=True)
    scores = [(sample, subject.score(sample, turns[0])) for sample, turns in pairs]
    if needs_judge(score for _, score in scores):
        return Check(name="gold", verdict="warn", value=None, why=_NO_JUDGE)
    wrong = [
        (sample.item_id, score)
        for sample, score in scores
        if score.value is None or abs(score.value - subject.expected(sample)) > 1e-9
    ]
    n = len(scores)
    value = (n - len(wrong)) / n
    if wrong:
        item, score = wrong[0]
        why = (
            f"gold does not score what it should in {share(len(wrong), n)}: "
            f"{some(i for i, _ in wrong)}; of {item} the scorer says: {score.explanation}"
        )
        return Check(name="gold", verdict="fail", value=value, why=why)
    return Check(name="gold", verdict="ok", value=value, why=f"gold of all {n} items scores right")


def gold_path(subject: Subject) -> Check:
    """`mock:gold` through plan, solver, scorer and store.

    All items where gold has several turns: nothing else scores it. Of a task with tools a few, since
    each takes a box and the time of its programs.
    """
    subject.close()  # the run loads the judges itself: never twice at once
    limit = _A_FEW if subject.one_turn or subject.task.environment is not None else None
    config = msgspec.structs.replace(subject.config, model="mock:gold", limit=limit)
    solvers = [subject.task.solver]
    if subject.task.continuations is not None and "choose" not in solvers:
        solvers.append("choose")
    samples = select(subject.task, config)
    wanted = sum(map(subject.expected, samples)) / len(samples)
    for solver in solvers:
        with tempfile.TemporaryDirectory() as folder:
            chosen = msgspec.structs.replace(config, solver=solver)
            summary = start(chosen, Store.open(Path(folder)))
        value = next(iter(summary.metrics.values())).value
        unjudged = subject.judges is None and summary.counts["unscored"] == len(samples)
        if value is None and unjudged:
            return Check(name="gold_path", verdict="warn", value=None, why=_NO_JUDGE)
        missing = summary.counts["unavailable"]
        if missing == len(samples):
            why = f"none of {missing} items tried can be asked here: `harness run` says what they miss"
            return Check(name="gold_path", verdict="warn", value=None, why=why)
        through = summary.n_counted + missing == len(samples)
        if value is None or abs(value - wanted) > 1e-9 or not through:
            shown = "nothing" if value is None else f"{value:.4g}"
            why = f"mock:gold through solver {solver} scores {shown} instead of {wanted:.4g}"
            why += f" on {some(s.item_id for s in samples)}"
            return Check(name="gold_path", verdict="fail", value=value, why=why)
    whole = len(subject.samples)
    shown = f"{len(samples)} of {whole} items" if len(samples) < whole else f"{whole} items"
    why = f"mock:gold through solver {' and '.join(solvers)} scores right on {shown}"
    why += f", of which {missing} cannot be asked here" if missing else ""
    return Check(name="gold_path", verdict="ok", value=wanted, why=why)


def empty_answer(subject: Subject) -> Check:
    """Saying nothing scores 0."""
    scores = [(sample.item_id, subject.score(sample, "")) for sample in subject.samples]
    n = len(scores)
    if needs_judge(score for _, score in scores):
        return Check(name="empty_answer", verdict="warn", value=None, why=_NO_JUDGE)
    value = sum(score.value or 0.0 for _, score in scores) / n
    faults = [item for item, score in scores if score.reason == SCORER_FAULT]
    paid = [item for item, score in scores if score.value]
    if faults:
        why = f"the scorer falls over an empty answer to {share(len(faults), n)}: {some(faults)}"
    elif paid:
        why = f"an empty answer scores in {share(len(paid), n)}: {some(paid)}"
    else:
        unread = sum(score.status == "error" for _, score in scores)
        why = f"all {n} empty answers score 0, {unread} of them as unparsed"
    verdict: Verdict = "fail" if faults or paid else "ok"
    return Check(name="empty_answer", verdict=verdict, value=value, why=why)


def constant_answer(subject: Subject) -> Check:
    """Always the same option; for free answers, always the same words."""
    if not subject.choice:
        return _constant_words(subject)
    answers = _option_answers(subject)
    right: Counter[int] = Counter()
    wrongly: list[str] = []
    for sample in subject.choice:
        for k in range(len(sample.choices)):
            by_key = set(sample.correct) == {k}
            scored = by_key if answers is None else subject.is_right(sample, answers(sample, k))
            right[k] += scored
            if scored != by_key and (by_key or k not in sample.correct):
                wrongly.append(sample.item_id)
    if wrongly:
        items = dict.fromkeys(wrongly)
        why = f"the scorer and the keys disagree about single options of {some(items)}"
        return Check(name="constant_answer", verdict="fail", value=None, why=why)
    n = len(subject.samples)
    best = max(right, key=lambda k: (right[k], -k))
    keys = Counter(sample.correct[0] for sample in subject.single)
    chance, odds = _against_chance(subject.single, keys[best], tries=len(right))
    why = f"always option {best} (from 0) is right in {share(right[best], n)}; {chance}"
    verdict: Verdict = "warn" if odds < LEVEL else "ok"
    return Check(name="constant_answer", verdict=verdict, value=right[best] / n, why=why)


def frequent_answer(subject: Subject) -> Check:
    """The option text that is right most often; for free answers, the most frequent reference."""
    if not subject.choice:
        return _frequent_reference(subject)
    offered: dict[str, list[Sample]] = defaultdict(list)
    for sample in subject.single:
        for text in dict.fromkeys(map(clean, sample.choices)):
            offered[text].append(sample)
    common = {text: samples for text, samples in offered.items() if len(samples) > 1}
    if not common:
        why = "no option stands in two items"
        return Check(name="frequent_answer", verdict="ok", value=None, why=why)
    right = {text: sum(key_of(s) == (text,) for s in items) for text, items in common.items()}
    odds = {t: _against_chance(common[t], right[t], tries=len(common))[1] for t in common}
    best = min(common, key=lambda text: (odds[text], -right[text], text))
    chance, lowest = _against_chance(common[best], right[best], tries=len(common))
    why = f"{_short(best)} is right in {share(right[best], len(common[best]))} that offer it; {chance}"
    return Check(
        name="frequent_answer",
        verdict="warn" if lowest < LEVEL else "ok",
        value=right[best] / len(subject.samples),
        why=why,
    )


def option_length(subject: Subject) -> Check:
    """Always the longest option, and always the shortest."""
    if not subject.single:
        why = "does not apply: no item has exactly one right option"
        return Check(name="option_length", verdict="ok", value=None, why=why)
    found = []
    lengths = [[len(option) for option in sample.choices] for sample in subject.single]
    for word, best in (("longest", max), ("shortest", min)):
        right = sum(
            each.index(best(each)) == sample.correct[0]
            for each, sample in zip(lengths, subject.single, strict=True)
        )
        chance, odds = _against_chance(subject.single, right, tries=2)
        found.append((odds, right, word, chance))
    odds, right, word, chance = min(found)
    n = len(subject.single)
    why = f"always the {word} option is right in {share(right, n)} with one right option; {chance}"
    verdict: Verdict = "warn" if odds < LEVEL else "ok"
    return Check(name="option_length", verdict=verdict, value=right / n, why=why)


def letter_balance(subject: Subject) -> Check:
    """Keys are spread over the positions as chance would: two-sided exact test of each position."""
    if not subject.single:
        why = "does not apply: no item has exactly one right option"
        return Check(name="letter_balance", verdict="ok", value=None, why=why)
    n = len(subject.single)
    keys = Counter(sample.correct[0] for sample in subject.single)
    positions = range(max(len(sample.choices) for sample in subject.single))
    found = []
    for k in positions:
        p = sum(1 / len(s.choices) for s in subject.single if in_range(s, k)) / n
        upper, lower = tail(keys[k], n, p), 1 - tail(keys[k] + 1, n, p)
        found.append((2 * min(upper, lower) * len(positions), k, n * p))
    odds, k, wanted = min(found)
    odds = min(1.0, odds)
    counts = ", ".join(str(keys[j]) for j in positions)
    why = f"keys stand at positions 0 to {positions[-1]} {counts} times; "
    why += f"the oddest is {k}, where {wanted:.1f} are to be expected (p = {odds:.2g})"
    verdict: Verdict = "warn" if odds < LEVEL else "ok"
    return Check(name="letter_balance", verdict=verdict, value=odds, why=why)


def _option_answers(subject: Subject) -> Callable[[Sample, int], str] | None:
    """Write an option as the task's own gold would; None where gold does not follow the key."""
    if not subject.one_turn:
        return None

    def answer(sample: Sample, k: int) -> str:
        other = msgspec.structs.replace(sample, correct=(k,), target=(sample.choices[k],))
        return turns_of(subject.task, other)[0]

    follows = any(
        len({answer(s, k) for k in range(len(s.choices))}) > 1 for s in subject.choice[:_A_FEW]
    )
    return answer if follows else None


def _constant_words(subject: Subject) -> Check:
    if not subject.one_turn:
        return Check(name="constant_answer", verdict="ok", value=None, why=_NOT_ONE_TURN)
    scores = {text: [subject.score(s, text) for s in subject.samples] for text in _CONSTANTS}
    best = max(scores, key=lambda text: _n_right(subject, scores[text]))
    return _free(subject, "constant_answer", best, scores[best], tries=len(_CONSTANTS))


def _frequent_reference(subject: Subject) -> Check:
    references = Counter(key_of(s) for s in subject.samples if s.target)
    if not references or not subject.one_turn:
        why = _NOT_ONE_TURN if references else "does not apply: references are not texts"
        return Check(name="frequent_answer", verdict="ok", value=None, why=why)
    best, _ = references.most_common(1)[0]
    at = next(i for i, sample in enumerate(subject.samples) if key_of(sample) == best)
    text = subject.golds[at][0]
    scores = [subject.score(sample, text) for sample in subject.samples]
    return _free(subject, "frequent_answer", best[0], scores, tries=1)


def _n_right(subject: Subject, scores: Sequence[Score]) -> int:
    return sum(map(subject.is_whole, subject.samples, scores))


def _free(subject: Subject, name: str, text: str, scores: Sequence[Score], tries: int) -> Check:
    """Judge a constant where there are no options: against a tenth, or 1 / different references."""
    if needs_judge(scores):
        return Check(name=name, verdict="warn", value=None, why=_NO_JUDGE)
    n = len(subject.samples)
    right = _n_right(subject, scores)
    different = len({key_of(s) for s in subject.samples if s.target}) or n
    chance = max(FREE_CHANCE, 1 / different)
    odds = min(1.0, tail(right, n, chance) * tries)
    why = (
        f"always {_short(text)} is right in {share(right, n)}; up to {100 * chance:.0f} % is common"
    )
    if ungraded := sum(score.status == "unscored" for score in scores):
        why += f"; {ungraded} could not be graded"
    verdict: Verdict = "warn" if odds < LEVEL else "ok"
    return Check(name=name, verdict=verdict, value=right / n, why=why)


def _against_chance(samples: Sequence[Sample], right: int, tries: int) -> tuple[str, float]:
    """Test a baseline against one over the number of options, exactly and one-sided.

    With unequal numbers of options the mean of their chances is used, which errs on the side of
    finding nothing.
    """
    n = len(samples)
    if n == 0:
        return "no item has exactly one right option to test it on", 1.0
    chance = sum(1 / len(sample.choices) for sample in samples) / n
    odds = min(1.0, tail(right, n, chance) * tries)
    return f"chance is {100 * chance:.1f} % (p = {odds:.2g} on {n} items, {tries} tries)", odds


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
