"""Checks of the items themselves: references, duplicates, what a prompt gives away."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict

import msgspec

from harness.core.errors import UsageError
from harness.core.status import SCORER_FAULT
from harness.core.task import build
from harness.core.types import Sample, prompt_text
from harness.runner.audit_subject import (
    Check,
    Subject,
    identity,
    in_range,
    key_of,
    question,
    rendered,
    share,
    some,
)
from harness.runner.audit_text import (
    RUN,
    clean,
    n_words,
    numbers,
    shingles,
    similar_groups,
    similar_pairs,
)
from harness.runner.prompt import Prompt, Shots

_SHOTS = 3
SIMILAR = 0.5
# Items of one template are no independent questions: beyond this share an interval is too narrow.
TEMPLATED = 0.1
_MARK = (
    r"(?:answers?|solutions?|results?|keys?|correct|right)(?:\s+(?:options?|choices?|answers?))?"
)


def items(subject: Subject) -> Check:
    """Every item has an id of its own and a question."""
    ids = Counter(sample.item_id for sample in subject.samples)
    twice = [item for item, n in ids.items() if n > 1 or not item]
    blank = [s.item_id for s in subject.samples if not question(s)]
    faults = []
    if twice:
        faults.append(f"ids that stand twice or are empty: {some(twice)}")
    if blank:
        faults.append(f"items without a question: {some(blank)}")
    n = len(subject.samples)
    why = "; ".join(faults) or f"all {n} items have an id of their own and a question"
    return Check(
        name="items",
        verdict="fail" if faults else "ok",
        value=float(len(twice) + len(blank)),
        why=why,
    )


def references(subject: Subject) -> Check:
    """Every key points at an option, options differ, and the scorer can read each reference."""
    numeric = sum(_is_number(t) for s in subject.samples for t in s.target[:1])
    numeric_task = numeric > len(subject.samples) / 2
    anywhere = any(sample.target for sample in subject.samples)
    faults: dict[str, list[str]] = defaultdict(list)
    for at, sample in enumerate(subject.samples):
        if sample.choices:
            for fault in _key_faults(sample):
                faults[fault].append(sample.item_id)
        elif anywhere and not any(map(clean, sample.target)):
            faults["no reference"].append(sample.item_id)
        if numeric_task and any(_is_infinite(text) for text in sample.target):
            faults["a reference that is not finite"].append(sample.item_id)
        if subject.one_turn:
            score = subject.score(sample, subject.golds[at][0])
            if score.reason == SCORER_FAULT:
                faults["a reference that the scorer cannot read"].append(sample.item_id)
    affected = {item for found in faults.values() for item in found}
    n = len(subject.samples)
    why = "; ".join(f"{fault}: {some(found)}" for fault, found in faults.items())
    return Check(
        name="references",
        verdict="fail" if faults else "ok",
        value=len(affected) / n,
        why=why or f"the references of all {n} items can be read",
    )


def known_faults(subject: Subject) -> Check:
    """Items that the task itself lists as faulty (``info["known_faults"]``: item id -> why)."""
    listed = subject.task.info.get("known_faults", {})
    found = [s.item_id for s in subject.samples if s.item_id in listed]
    n = len(subject.samples)
    why = f"the task lists as faulty {share(len(found), n)}: {some(found)}"
    why += "".join(f"; {item}: {listed[item]}" for item in found)
    return Check(
        name="known_faults",
        verdict="warn" if found else "ok",
        value=len(found) / n,
        why=why if found else "the task lists no item as faulty",
    )


def duplicates(subject: Subject) -> Check:
    """No question stands twice; with different keys at least one of them is wrong."""
    groups: dict[object, list[int]] = defaultdict(list)
    for at, sample in enumerate(subject.samples):
        groups[identity(sample)].append(at)
    same: list[str] = []
    contrary: list[str] = []
    for group in (g for g in groups.values() if len(g) > 1):
        found = [subject.samples[at] for at in group]
        names = " = ".join(sample.item_id for sample in found)
        # What a template adds from elsewhere may make one question two (another table, a hint).
        alike = [
            msgspec.structs.replace(s, choices=tuple(sorted(s.choices, key=clean))) for s in found
        ]
        asked = {
            (clean(text), key_of(s))
            for text, s in zip(rendered(subject.task, alike), found, strict=True)
        }
        differ = len({key for _, key in asked}) > 1
        clash = differ and len({text for text, _ in asked}) < len(asked)
        (contrary if clash else same).append(names)
    n_more = sum(len(g) - 1 for g in groups.values())
    parts = [f"the same question with different keys: {some(contrary)}"] if contrary else []
    parts += [f"the same question twice: {some(same)}"] if same else []
    return Check(
        name="duplicates",
        verdict="fail" if contrary else "warn" if same else "ok",
        value=n_more / len(subject.samples),
        why="; ".join(parts) or "no question stands twice",
    )


def near_duplicates(subject: Subject) -> Check:
    """No two items with the same numbers share half of their runs of five words."""
    buckets: dict[tuple[str, ...], dict[object, tuple[str, str]]] = defaultdict(dict)
    for sample in subject.samples:
        text = _whole(sample)
        # Exact duplicates are told elsewhere: one of each is enough here.
        buckets[numbers(text)].setdefault(identity(sample), (sample.item_id, text))
    pairs = []
    for bucket in buckets.values():
        names = [item for item, _ in bucket.values()]
        sets = [shingles(text) for _, text in bucket.values()]
        pairs += [
            (-j, f"{names[a]} ~ {names[b]} ({j:.2f})") for a, b, j in similar_pairs(sets, SIMILAR)
        ]
    shown = some(text for _, text in sorted(pairs))
    why = f"{len(pairs)} pairs with the same numbers say nearly the same: {shown}"
    return Check(
        name="near_duplicates",
        verdict="warn" if pairs else "ok",
        value=float(len(pairs)),
        why=why if pairs else "no two items with the same numbers share half of their 5-word runs",
    )


def templates(subject: Subject) -> Check:
    """Items that are one text with other numbers: no duplicates, but no independent items either."""
    # Without words there is no text to fill: "12 + 45" and "1987" are numbers and nothing else.
    samples = [sample for sample in subject.samples if n_words(_whole(sample)) >= RUN]
    texts = [_whole(sample) for sample in samples]
    found = []
    for group in similar_groups([shingles(text, mask=True) for text in texts], SIMILAR):
        if len({numbers(texts[at]) for at in group}) > 1:
            found.append([samples[at] for at in group])
    n = len(subject.samples)
    count = sum(map(len, found))
    if not found:
        why = "no two items are one text with other numbers"
        return Check(name="templates", verdict="ok", value=0.0, why=why)
    loose = [
        group for group in found
        if len({sample.cluster_id for sample in group}) > 1 or group[0].cluster_id is None
    ]  # fmt: skip
    shown = some(" ~ ".join(s.item_id for s in group[:2]) for group in found)
    texts_ = "one text" if len(found) == 1 else f"{len(found)} texts"
    why = f"{share(count, n)} are {texts_} with other numbers ({shown}): no duplicates; "
    warn = sum(map(len, loose)) / n > TEMPLATED
    if warn:
        why += "as they share no cluster_id, intervals take them for independent"
    else:
        why += "too few to matter" if loose else "their cluster_id says so, and intervals heed it"
    return Check(name="templates", verdict="warn" if warn else "ok", value=count / n, why=why)


def no_data(subject: Subject) -> Check:
    """`--no-data` takes the question out of every prompt."""
    samples = subject.bare.samples
    if [s.item_id for s in samples] != [s.item_id for s in subject.samples]:
        why = "with --no-data the task has other items, so nothing can be compared"
        return Check(name="no_data", verdict="fail", value=None, why=why)
    bare = rendered(subject.bare, samples)
    n = len(samples)
    changed = sum(a != b for a, b in zip(subject.prompts, bare, strict=True))
    if not changed and subject.task.withholds:
        why = f"--no-data keeps every prompt and withholds {subject.task.withholds}"
        return Check(name="no_data", verdict="ok", value=None, why=why)
    if not changed:
        why = "--no-data changes no prompt: an ablation would measure nothing"
        return Check(name="no_data", verdict="warn", value=0.0, why=why)
    held = [
        sample.item_id
        for sample, full, rest in zip(subject.samples, subject.prompts, bare, strict=True)
        if full == rest or _still_there(question(sample), clean(full), clean(rest))
    ]
    why = f"--no-data leaves the question in {share(len(held), n)}: {some(held)}"
    return Check(
        name="no_data",
        verdict="fail" if held else "ok",
        value=1 - len(held) / n,
        why=why if held else f"--no-data takes the question out of all {n} prompts",
    )


def leaks(subject: Subject) -> Check:
    """No prompt says its answer: gold's last line, gold as a whole, or "answer: …"."""
    found: dict[str, list[str]] = defaultdict(list)
    for at, sample in enumerate(subject.samples):
        for text in _giveaways(sample, subject.golds[at], subject.prompts[at]):
            found[text].append(sample.item_id)
    # An example of the form of an answer stands in every prompt and tells nothing of one item.
    n = len(subject.samples)
    for text in [t for t in found if n > 1 and all(t in prompt for prompt in subject.prompts)]:
        del found[text]
    told = dict.fromkeys(item for names in found.values() for item in names)
    if told:
        text = next(iter(found))
        why = f"the prompt says the answer of {share(len(told), n)}: {some(told)}; it holds {text[:60]!r}"
    else:
        why = f"none of {n} prompts holds its answer behind a mark, or the last line of its gold"
    return Check(name="leaks", verdict="fail" if told else "ok", value=len(told) / n, why=why)


def fewshot(subject: Subject) -> Check:
    """Worked examples are never the item that is asked."""
    task = subject.task
    pool = subject.samples if task.shots is None else task.shots
    prompt = Prompt(task)
    n_shots = min(_SHOTS, len({identity(s) for s in pool}) - 1)
    if n_shots < 1:
        why = "does not apply: there are not two different items to draw from"
        return Check(name="fewshot", verdict="ok", value=None, why=why)
    config = msgspec.structs.replace(subject.config, fewshot=n_shots)
    solver = build("solvers", subject.config.solver or task.solver)
    try:
        shots = Shots(task, config, prompt, solver)
    except UsageError as error:
        return Check(name="fewshot", verdict="ok", value=None, why=f"does not apply: {error}")
    same = {prompt_text(prompt.turns(s)[-1:]): identity(s) for s in pool}
    seen = [
        sample.item_id
        for sample in subject.samples
        if identity(sample) in {same.get(prompt_text((turn,))) for turn in shots.before(sample)}
    ]
    n = len(subject.samples)
    why = f"with --fewshot {n_shots}, {share(len(seen), n)} see their own question: {some(seen)}"
    return Check(
        name="fewshot",
        verdict="fail" if seen else "ok",
        value=len(seen) / n,
        why=why if seen else f"with --fewshot {n_shots} no item sees its own question",
    )


def _whole(sample: Sample) -> str:
    """Give question and options as one text, options in an order of their own."""
    asked, options = identity(sample)
    return "\n".join((asked, *options))


def _key_faults(sample: Sample) -> list[str]:
    faults = []
    if not sample.correct:
        faults.append("no right option")
    if not all(in_range(sample, j) for j in sample.correct):
        faults.append("a key beyond the options")
    if len(set(sample.correct)) < len(sample.correct):
        faults.append("a key that stands twice")
    if len(set(map(clean, sample.choices))) < len(sample.choices):
        faults.append("two options that are equal")
    return faults


def _still_there(asked: str, full: str, rest: str) -> bool:
    """Tell whether a prompt without data still holds the question, or half of its 5-word runs."""
    if 0 < full.count(asked) <= rest.count(asked):
        return True
    runs = shingles(asked)
    if len(runs) < 2:  # a question that short may share its words with the template
        return False
    return len(runs & shingles(rest)) >= len(runs) / 2


def _giveaways(sample: Sample, gold: tuple[str, ...], prompt: str) -> list[str]:
    """Give the texts of a prompt that say the answer."""
    found = []
    last = next((line.strip() for line in reversed(gold[-1].splitlines()) if line.strip()), "")
    answers = {clean(text) for text in sample.target} - {""}
    lines = {line.strip() for line in prompt.splitlines()}
    # The last line of gold counts where it says more than the bare answer: a mark before it.
    if len(last.split()) > 1 and last not in answers and last in lines:
        found.append(last)
    if len(gold[-1].split()) >= 5 and clean(gold[-1]) in clean(prompt):
        found.append(clean(gold[-1]))
    if sample.choices:
        places = [j for j in sample.correct if in_range(sample, j)]
        answers |= {str(j) for j in places} | {chr(ord("A") + j) for j in places if j < 26}
    for answer in sorted(answers):
        marked = rf"\b{_MARK}\s*(?:is|are|=|:)[\s\"'(*$]*{re.escape(answer)}(?![\w.,]*\w)"
        found += [match[0] for match in re.finditer(marked, prompt, re.IGNORECASE)]
    return found


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return False
    return True


def _is_infinite(text: str) -> bool:
    return _is_number(text) and not math.isfinite(float(text.replace(",", "")))
