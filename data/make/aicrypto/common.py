"""What the five label modules share: the random stream, the item record, its checks.

An item is a function of one integer, the draw. Its module gives a `Draft`: the question, the right
options, wrong options that each come from a named typical error, and a function that works out the
right options once more by another route. `build` turns a draft into an `Item` with ordered options,
`faults` says what is wrong with an item.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeVar

T = TypeVar("T")
Role = Literal["plain", "offer", "key"]

NONE = "None of the above"
"""The option that always stays last."""

MOST_OPTIONS = 5
_TRIES = 200


class Stream:
    """Random numbers of one item in one draw.

    Only `getrandbits` of a generator seeded with an integer is used, because Python keeps that
    sequence the same in every version; `shuffle` and `choice` it may change.

    Parameters
    ----------
    name
        Item id; hashed together with the draw.
    draw
        The integer that fixes every choice; 0 is the public default instance.

    Examples
    --------
    >>> Stream("own-mcq-C01", 3).below(10) == Stream("own-mcq-C01", 3).below(10)
    True
    """

    def __init__(self, name: str, draw: int) -> None:
        digest = hashlib.sha256(f"{name}/{draw}".encode()).digest()
        self._random = random.Random(int.from_bytes(digest, "big"))
        self.draw = draw

    @property
    def default(self) -> bool:
        """Whether this is draw 0, whose numbers are fixed by hand."""
        return self.draw == 0

    def below(self, n: int) -> int:
        """Return an even choice from 0 to n - 1 (by rejection, so without bias)."""
        bits = n.bit_length()
        while (value := self._random.getrandbits(bits)) >= n:
            pass
        return value

    def between(self, low: int, high: int) -> int:
        """Return an even choice from low to high, both included."""
        return low + self.below(high - low + 1)

    def choice(self, values: Sequence[T]) -> T:
        """Return one of the values."""
        return values[self.below(len(values))]

    def shuffled(self, values: Sequence[T]) -> list[T]:
        """Return the values in random order (Fisher-Yates)."""
        out = list(values)
        for i in range(len(out) - 1, 0, -1):
            j = self.below(i + 1)
            out[i], out[j] = out[j], out[i]
        return out


@dataclass(frozen=True)
class Draft:
    """Content of one item before its options are ordered.

    Parameters
    ----------
    question
        Text shown to the model.
    right
        Text of the right option, or of all right options where `several` holds.
    wrong
        Name of a typical error -> the option it leads to. Options that happen to equal the key
        or each other in a draw are dropped by `build`.
    again
        Works out `right` by another route.
    several
        Whether the question asks for all right options.
    """

    question: str
    right: tuple[str, ...]
    wrong: Mapping[str, str]
    again: Callable[[], tuple[str, ...]]
    several: bool = False


Maker = Callable[[Stream], Draft]


@dataclass(frozen=True)
class Item:
    """One finished item: a draft with its options in their order and the indices of the key."""

    item_id: str
    label: str
    draft: Draft
    choice: tuple[str, ...]
    answer: tuple[int, ...]

    def record(self, number: int) -> dict[str, object]:
        """Return the item in upstream's field layout, with `item_id` added.

        Parameters
        ----------
        number
            Position in the file, upstream's `id`.
        """
        return {
            "id": number,
            "item_id": self.item_id,
            "question": self.draft.question,
            "choice": list(self.choice),
            "answer": list(self.answer),
            "label": self.label,
        }


def canonical(option: str) -> str:
    r"""Return a form in which two spellings of the same option are equal.

    LaTeX marks, spaces and thousands separators go, numbers become reduced fractions. Case stays,
    because it carries meaning in Base64.

    Examples
    --------
    >>> canonical(r"$\frac{26}{110}$") == canonical("13/55")
    True
    >>> canonical("$2^{10}$") == canonical("1,024")
    True
    """
    text = re.sub(r"\\frac\{(\d+)\}\{(\d+)\}", r"\1/\2", option.replace("\u2212", "-"))
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)
    text = re.sub(r"[\s${}\\]", "", text)
    text = re.sub(
        r"(?<![\w.])(\d{1,4})\^(\d{1,4})(?!\w)", lambda m: str(int(m[1]) ** int(m[2])), text
    )
    return re.sub(r"(?<![\w./])\d+(?:\.\d+|/0*[1-9]\d*)?(?![\d./])", _reduced, text)


def _reduced(match: re.Match[str]) -> str:
    return str(Fraction(match[0]))


def usable_wrong(draft: Draft) -> list[str]:
    """Return the wrong options of a draft that differ from the key and from each other."""
    seen = {canonical(text) for text in draft.right}
    out = []
    for text in draft.wrong.values():
        form = canonical(text)
        if form not in seen:
            seen.add(form)
            out.append(text)
    return out


def _content(draft: Draft) -> tuple[str, frozenset[str]]:
    return draft.question, frozenset((*draft.right, *draft.wrong.values()))


def build(item_id: str, label: str, maker: Maker, draw: int, role: Role) -> Item:
    """Make one item.

    Parameters
    ----------
    item_id, label
        Stable id and upstream's label.
    maker
        Function from a stream to a draft. It is called again on the same stream while too many of
        its wrong options coincide, or while another draw than 0 repeats the public instance.
    draw
        The draw.
    role
        `plain`: no "None of the above"; `offer`: it is the last, wrong option; `key`: the right
        option is left out and "None of the above" is the key.

    Raises
    ------
    ValueError
        If no draft with enough distinct wrong options was found.
    """
    stream = Stream(item_id, draw)
    public = None if draw == 0 else _content(maker(Stream(item_id, 0)))
    for _ in range(_TRIES):
        draft = maker(stream)
        wrong = usable_wrong(draft)
        enough = len(wrong) >= MOST_OPTIONS - (len(draft.right) if draft.several else 1)
        if enough and _content(draft) != public:
            break
    else:
        raise ValueError(f"{item_id}, draw {draw}: too few distinct wrong options; add an error")
    right = [] if role == "key" else list(draft.right)
    size = MOST_OPTIONS if draft.several or role != "plain" else stream.between(4, MOST_OPTIONS)
    tail = [] if role == "plain" else [NONE]
    shown = right + stream.shuffled(wrong)[: size - len(right) - len(tail)]
    choice = stream.shuffled(shown) + tail
    keys = right or [NONE]
    answer = tuple(sorted(choice.index(text) for text in keys))
    return Item(item_id, label, draft, tuple(choice), answer)


def faults(item: Item) -> list[str]:
    """Return what is wrong with an item, as one line each; empty if it is sound.

    The right options are worked out by the draft's second route and compared with the options
    that the key points at.

    Parameters
    ----------
    item
        The item to check.
    """
    found = []
    expected = {canonical(text) for text in item.draft.again()}
    forms = [canonical(text) for text in item.choice]
    keyed = {forms[i] for i in item.answer}
    none = canonical(NONE)
    if {canonical(text) for text in item.draft.right} != expected:
        found.append(f"{item.item_id}: the two routes disagree")
    if len(set(forms)) != len(forms):
        found.append(f"{item.item_id}: two options are equal")
    if not 4 <= len(forms) <= MOST_OPTIONS:
        found.append(f"{item.item_id}: {len(forms)} options")
    if none in forms[:-1]:
        found.append(f"{item.item_id}: {NONE!r} is not last")
    if keyed == {none}:
        if expected & set(forms):
            found.append(f"{item.item_id}: a right option is offered, yet the key is {NONE!r}")
    elif keyed != expected:
        found.append(f"{item.item_id}: the key does not mark the right options")
    return found


def primes(low: int, high: int) -> list[int]:
    """Return the primes from low to high, both included.

    Examples
    --------
    >>> primes(10, 20)
    [11, 13, 17, 19]
    """
    return [
        n for n in range(max(low, 2), high + 1) if all(n % d for d in range(2, int(n**0.5) + 1))
    ]


def factor(n: int) -> dict[int, int]:
    """Return prime -> exponent by trial division.

    Examples
    --------
    >>> factor(720)
    {2: 4, 3: 2, 5: 1}
    """
    out: dict[int, int] = {}
    d = 2
    while n > 1:
        while n % d == 0:
            out[d] = out.get(d, 0) + 1
            n //= d
        d = d + 1 if d * d <= n else max(n, d + 1)
    return out


def euclid(a: int, b: int) -> tuple[int, int]:
    """Return x, y with ax + by = gcd(a, b).

    Examples
    --------
    >>> euclid(17, 3120)
    (-367, 2)
    """
    x, y, next_x, next_y = 1, 0, 0, 1
    while b:
        quotient = a // b
        a, b = b, a % b
        x, next_x = next_x, x - quotient * next_x
        y, next_y = next_y, y - quotient * next_y
    return x, y


def phi(n: int) -> int:
    """Return Euler's totient by the product formula.

    Examples
    --------
    >>> phi(720)
    192
    """
    for p in factor(n):
        n -= n // p
    return n


def tenths(value: int) -> str:
    """Return log2 of a positive integer to one decimal, by integer arithmetic only.

    value**20 has floor(20 log2 value) + 1 bits, so halving that rounds log2 to the nearest tenth.

    Examples
    --------
    >>> tenths(62**8)
    '47.6'
    """
    t = (value**20).bit_length() // 2
    return f"{t // 10}.{t % 10}"
