"""Which items say nearly the same: word 5-grams compared by Jaccard, exactly, without trying all pairs."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

RUN = 5  # words in a row that are compared
_WORD = re.compile(r"\w+|[^\w\s]")
_LETTERED = re.compile(r"\w*[^\W\d_]\w*")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")

Shingles = frozenset[tuple[str, ...]]


def clean(text: str) -> str:
    r"""Normalise what no reader sees: the form of accents and the width of white space.

    Case stays: in a cipher or a formula it makes another question.

    Examples
    --------
    >>> clean(" What  is\n2 + 2? ")
    'What is 2 + 2?'
    """
    return " ".join(unicodedata.normalize("NFC", text).split())


def numbers(text: str) -> tuple[str, ...]:
    """List the numbers of a text in order, as written.

    Examples
    --------
    >>> numbers("3 boxes of 1,200 at 2.50")
    ('3', '1,200', '2.50')
    """
    return tuple(_NUMBER.findall(text))


def n_words(text: str) -> int:
    """Count the words that hold a letter.

    Examples
    --------
    >>> n_words("Buy 3 pens, x = 4?")
    3
    """
    return len(_LETTERED.findall(text))


def shingles(text: str, *, mask: bool = False) -> Shingles:
    """Give the set of all runs of five words (signs count as words; case does not matter).

    Parameters
    ----------
    text : str
        A text of fewer words is one run.
    mask : bool
        Write ``#`` for every number, so that one template with other numbers is one text.

    Examples
    --------
    >>> len(shingles("one two three four five six"))
    2
    >>> shingles("buy 3 pens", mask=True) == shingles("Buy 17 pens", mask=True)
    True
    """
    if mask:
        text = _NUMBER.sub("#", text)
    words = _WORD.findall(text.casefold())
    return frozenset(tuple(words[i : i + RUN]) for i in range(max(1, len(words) - RUN + 1)))


def jaccard(a: Shingles, b: Shingles) -> float:
    """Share of runs that two texts have in common, of all runs of either."""
    return len(a & b) / len(a | b)


def similar_pairs(sets: Sequence[Shingles], threshold: float = 0.5) -> list[tuple[int, int, float]]:
    """Find all pairs whose Jaccard similarity is at least `threshold`.

    Exact, by prefix filtering (Chaudhuri, Ganti & Kaushik 2006; Bayardo, Ma & Srikant 2007): two
    sets that are so similar share one of their rarest elements, so only those are indexed.

    Parameters
    ----------
    sets : sequence of frozenset
        None of them empty.
    threshold : float
        In (0, 1].

    Returns
    -------
    list of (i, j, similarity)
        With i < j, in order.
    """
    found = [
        (min(i, j), max(i, j), similarity)
        for i, j in _candidates(sets, threshold)
        if (similarity := jaccard(sets[i], sets[j])) >= threshold
    ]
    return sorted(found)


def similar_groups(sets: Sequence[Shingles], threshold: float = 0.5) -> list[list[int]]:
    """Put together what a chain of similar pairs connects; see `similar_pairs`.

    Returns
    -------
    list of list of int
        Groups of at least two, each in order, by their first members.
    """
    # Equal sets are one set: a template with a thousand fillings costs one comparison.
    members: dict[Shingles, list[int]] = defaultdict(list)
    for index, one in enumerate(sets):
        members[one].append(index)
    different = list(members)
    parent = list(range(len(different)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for i, j in _candidates(different, threshold):
        a, b = root(i), root(j)
        if a != b and jaccard(different[i], different[j]) >= threshold:
            parent[a] = b
    groups: dict[int, list[int]] = defaultdict(list)
    for i, one in enumerate(different):
        groups[root(i)] += members[one]
    return sorted(sorted(group) for group in groups.values() if len(group) > 1)


def _candidates(sets: Sequence[Shingles], threshold: float) -> Iterator[tuple[int, int]]:
    """Give each pair once that may be similar enough."""
    frequency = Counter(element for one in sets for element in one)
    rank = {e: r for r, (e, _) in enumerate(sorted(frequency.items(), key=lambda x: (x[1], x[0])))}
    index: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for i in sorted(range(len(sets)), key=lambda i: len(sets[i])):
        size = len(sets[i])
        least = math.ceil(threshold * size - 1e-9)
        prefix = sorted(sets[i], key=rank.__getitem__)[: size - least + 1]
        seen: set[int] = set()
        for element in prefix:
            for j in index[element]:
                if j not in seen and len(sets[j]) >= least:
                    yield j, i
                seen.add(j)
            index[element].append(i)
