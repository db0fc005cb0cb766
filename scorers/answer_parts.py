"""The parts of an answer that a model wrote: elements of a list, ``@name[value]`` pairs."""

from __future__ import annotations

import ast
import re

_OPENING = re.compile(r"@([^@\[\]]+)\[")


def split_outside(text: str, mark: str = ",") -> list[str]:
    """Split at marks that stand in no bracket, parts without blanks around.

    Examples
    --------
    >>> split_outside("a=[1, 2], b=(3, 4)")
    ['a=[1, 2]', 'b=(3, 4)']
    """
    parts, depth, begin = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == mark and depth <= 0:
            parts.append(text[begin:at].strip())
            begin = at + 1
    return [*parts, text[begin:].strip()]


def read_pairs(text: str) -> list[tuple[str, str]]:
    """Read ``@name[value]`` pairs; brackets inside a value nest.

    Examples
    --------
    >>> read_pairs("@a[[1, 2]] and @b[x]")
    [('a', '[1, 2]'), ('b', 'x')]
    """
    pairs, at = [], 0
    while opening := _OPENING.search(text, at):
        depth, end = 1, opening.end()
        while end < len(text) and depth:
            depth += (text[end] == "[") - (text[end] == "]")
            end += 1
        if depth:
            break
        pairs.append((opening[1].strip(), text[opening.end() : end - 1].strip()))
        at = end
    return pairs


def literal_elements(text: str, *, only_lists: bool = False) -> list[str] | None:
    """Give the elements of a Python list, tuple or set as texts; None for anything else.

    In the order in which they are written, repeated ones too; a set as an object would have
    neither.

    Parameters
    ----------
    text : str
        May be anything: never raises.
    only_lists : bool
        None for a tuple and a set.

    Examples
    --------
    >>> literal_elements("{'b', 'a', 'b'}"), literal_elements("a, b"), literal_elements("[{[]}]")
    (['b', 'a', 'b'], None, None)
    """
    kinds = ast.List if only_lists else ast.List | ast.Tuple | ast.Set
    try:
        tree = ast.parse(text.lstrip(" \t"), mode="eval").body
        if not isinstance(tree, kinds):
            return None
        # An element that cannot be hashed, a number too long to be written out, …
        return [
            str(one.value if isinstance(one, ast.Constant) else ast.literal_eval(one))
            for one in tree.elts
        ]
    except (ValueError, SyntaxError, TypeError, ArithmeticError, MemoryError, RecursionError):
        return None
