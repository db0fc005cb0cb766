"""What the own contests share: what is drawn of one, what is said of it, and small draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from stream import Stream
from table import to_csv

Cell = str | int | float
"""Of a table: a word, a number, or an empty text where nothing is known."""


@dataclass(frozen=True)
class Drawn:
    """The tables of a contest.

    Parameters
    ----------
    inputs
        The columns that a prediction can rest on; those of one row of `train` and `test` each.
    train, target
        What may be learned from, a row a prediction.
    test
        By id, in the order of the file.
    truth
        By id: what is withheld, as written.
    noiseless
        By id: the best that anybody can predict, the noise being unknowable.
    files
        ``train.csv`` and ``test.csv``, as a model finds them.
    """

    inputs: tuple[str, ...]
    train: Sequence[Sequence[Cell]]
    target: Sequence[float]
    test: Mapping[str, Sequence[Cell]]
    truth: Mapping[str, str]
    noiseless: Mapping[str, float]
    files: Mapping[str, bytes]


@dataclass(frozen=True)
class Contest:
    """A contest: how it is drawn and what a model is told.

    Parameters
    ----------
    name, title, story
        ``own-rent``, and what it is about.
    data
        The columns, one a line.
    metric, direction, measured
        See ``scorers/contest.py``; `measured` tells it in words.
    target
        Name of the column to be predicted.
    domain, keywords
    make
        draw -> tables.
    """

    name: str
    title: str
    story: str
    data: str
    metric: str
    direction: str
    measured: str
    target: str
    domain: str
    keywords: tuple[str, ...]
    make: Callable[[int], Drawn]


def whole(stream: Stream, low: int, high: int) -> int:
    """Draw a whole number from `low` to `high`, both included, from the high bits of a value.

    Examples
    --------
    >>> whole(Stream(0), 1, 6)
    4
    """
    return low + (stream.value() * (high - low + 1) >> 15)


def one_of(stream: Stream, words: Sequence[str]) -> str:
    """Draw one of the words."""
    return words[whole(stream, 0, len(words) - 1)]


def ids(stream: Stream, n: int, first: int = 1) -> list[str]:
    """Give `n` numbers in an order that says nothing: Fisher and Yates' shuffle.

    Examples
    --------
    >>> sorted(ids(Stream(0), 4))
    ['1', '2', '3', '4']
    """
    numbers = list(range(first, first + n))
    for at in range(n - 1, 0, -1):
        other = whole(stream, 0, at)
        numbers[at], numbers[other] = numbers[other], numbers[at]
    return [str(number) for number in numbers]


def flat(
    inputs: tuple[str, ...],
    target: str,
    names: Sequence[str],
    rows: Sequence[tuple[Sequence[Cell], str, float]],
    n_train: int,
) -> Drawn:
    """Make a contest of independent rows.

    Parameters
    ----------
    inputs, target
        Names of the columns.
    names
        An id for each row. Both files are sorted by it, so that their order says nothing either.
    rows
        (inputs, target as written, what is known without the noise).
    n_train
        The first rows are given, the others withheld.
    """
    numbered = list(zip(names, rows, strict=True))
    given = sorted(numbered[:n_train], key=lambda pair: int(pair[0]))
    withheld = sorted(numbered[n_train:], key=lambda pair: int(pair[0]))
    return Drawn(
        inputs=inputs,
        train=[row[0] for _, row in given],
        target=[float(row[1]) for _, row in given],
        test={name: row[0] for name, row in withheld},
        truth={name: row[1] for name, row in withheld},
        noiseless={name: row[2] for name, row in withheld},
        files={
            "train.csv": to_csv(
                ("id", *inputs, target), [(name, *row[0], row[1]) for name, row in given]
            ),
            "test.csv": to_csv(("id", *inputs), [(name, *row[0]) for name, row in withheld]),
        },
    )
