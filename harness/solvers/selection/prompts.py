"""What the selectors are asked, in our own words; the kind of program is told by the bench's texts."""

from __future__ import annotations

from collections.abc import Sequence

from harness.solvers.selection.base import Outcome

SYSTEM = """\
You are an engineer who examines programs that check designs against a rule. Reply in exactly the \
form that is asked for."""

_EXPECTS = """\
The first line of the script says what a right program must find on it, and is either of
# EXPECTED: PASS
# EXPECTED: VIOLATION
"""

UNREAD = """

Your last reply could not be read: it must hold exactly one tag of those named above, a decision with \
nothing but the number."""


def suite(rule: str, how: str) -> str:
    """Ask for the script of a whole suite."""
    return f"""\
{rule}

Programs are being written for this rule, and some of them are wrong. Write a Python script that makes \
test inputs for them: just inside and just outside every limit of the rule, and the special cases in \
which programs go wrong. Work out for each what a right program must say.

{how}
Reply with one block of Python and nothing else."""


def split(rule: str, how: str, decks: Sequence[str]) -> str:
    """Ask for the script of one test input that tells equal programs apart."""
    return f"""\
{rule}

These programs said the same on all test inputs so far:

{candidates(decks)}

Find where they are likely to differ, from each other or from the rule, and write a Python script that \
makes one test input on which they do.

{how}
{_EXPECTS}Reply with one block of Python and nothing else."""


def pick(rule: str, decks: Sequence[str], evidence: Sequence[str]) -> str:
    """Ask which of a few programs is right, by where they differ."""
    told = "\n\n".join(evidence) or "They said the same on every test input that was made."
    return f"""\
{rule}

Exactly one of these programs is to be taken:

{candidates(decks)}

Where they differ:

{told}

Work out what the rule says of these inputs, and which program is right. Reply with its number alone: \
{_numbers(len(decks))}."""


def best(rule: str, decks: Sequence[str]) -> str:
    """Ask which of a few programs is right, by their text alone."""
    return f"""\
{rule}

{candidates(decks)}

Which of these programs is right by the rule? Reply with its number alone: {_numbers(len(decks))}; \
-1 if you cannot tell them apart."""


def first_probe(rule: str, how: str, decks: Sequence[str]) -> str:
    """Ask for the first test input of an examination in rounds."""
    return f"""\
{rule}

These programs are left to choose from:

{candidates(decks)}

Write a Python script that makes one test input which helps to find the right one. You will see what \
each says of it.

{how}
Reply with one block of Python and nothing else."""


def probe(rule: str, how: str, decks: Sequence[str], script: str, told: str, left: int) -> str:
    """Show what came of a test input and ask for a decision, or for another one."""
    decide = f"<decision>NUMBER</decision> to take that program: {_numbers(len(decks))}"
    more = "This was the last test input."
    if left:
        more = f"""\
<generator>SCRIPT</generator> to look at another test input, made by this Python script

{how}
{left} more can be looked at."""
    return f"""\
{rule}

These programs are left to choose from:

{candidates(decks)}

The latest test input was made by this script:
```python
{script.rstrip()}
```

{told}

Reply with exactly one tag:
{decide}
{more}"""


def between(rule: str, how: str, decks: Sequence[str], shown: str) -> str:
    """Ask for a further test input that tells two programs apart which differ on a known one."""
    return f"""\
{rule}

Two programs differ:

{candidates(decks)}

They do on this test input:

{shown}

Write a Python script that makes one further test input on which they differ too, as simple as can be, \
so that it can be worked out which of them is right.

{how}
Reply with one block of Python and nothing else."""


def duel(rule: str, decks: Sequence[str], evidence: Sequence[str]) -> str:
    """Ask which of two programs is right on the test inputs on which they differ."""
    told = "\n\n".join(evidence)
    return f"""\
{rule}

Two programs differ:

{candidates(decks)}

They do on these test inputs:

{told}

Work out what the rule says of them. Reply with the number of the program that is right, alone: 0 or 1; \
2 if neither is better."""


def again(script: str, fault: str) -> str:
    """Show a script that failed and what came of it."""
    return f"""


Your last script was
```python
{script.rstrip()}
```
and this came of it:
{fault}
Write it again, whole."""


def candidates(decks: Sequence[str]) -> str:
    """Write programs with their numbers, from 0."""
    return "\n\n".join(f"Program {k}:\n```\n{deck.rstrip()}\n```" for k, deck in enumerate(decks))


def difference(name: str, shown: str, outcomes: Sequence[Outcome]) -> str:
    """Write a test input with what each program said of it."""
    said = "\n".join(f"Program {k}: {_said(one)}" for k, one in enumerate(outcomes))
    return f"Test input {name}:\n{shown}\n{said}"


def _said(outcome: Outcome) -> str:
    fired = [name for name, bit in outcome.bits.items() if bit]
    return outcome.verdict + (f" ({', '.join(fired)})" if fired and len(outcome.bits) > 1 else "")


def _numbers(n: int) -> str:
    return "0 or 1" if n == 2 else f"0 to {n - 1}"
