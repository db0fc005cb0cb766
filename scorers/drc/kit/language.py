"""The part of Ruby that decks are mostly written in: assignments, calls, operators, literals.

Anything else is `Unsupported`, with its line: never a guess, since a deck half understood could pass.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

DEEPEST = 60
MOST_STATEMENTS = 2_000

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t]+|\#[^\n]*)
    |(?P<end>\n|;)
    |(?P<number>\d+(?:_\d+)*(?:\.\d+(?:_\d+)*)?(?:[eE][+-]?\d+)?)
    |(?P<string>"(?:[^"\\\n\#]|\\[^\n]|\#(?!\{))*"|'(?:[^'\\\n]|\\[^\n])*')
    |(?P<name>\$?[A-Za-z_][A-Za-z0-9_]*[?!]?)
    |(?P<op>\.\.\.|\.\.|&&|\|\||==|!=|<=|>=|<<|[-+*/&|^().,=<>])
    """,
    re.VERBOSE,
)
_WORDS = frozenset(
    [
        "if",
        "unless",
        "else",
        "elsif",
        "end",
        "while",
        "until",
        "for",
        "do",
        "begin",
        "rescue",
        "ensure",
        "def",
        "class",
        "module",
        "return",
        "yield",
        "case",
        "when",
        "then",
        "break",
        "next",
        "redo",
        "retry",
        "and",
        "or",
        "not",
        "in",
        "alias",
        "undef",
        "super",
        "self",
        "lambda",
        "proc",
        "loop",
        "require",
        "load",
        "eval",
        "exit",
        "raise",
        "true",
        "false",
    ]
)
# From loose to tight; all of them group to the left.
_LEVELS = (("..",), ("|", "^"), ("&",), ("+", "-"), ("*", "/"))


class Unsupported(Exception):  # noqa: N818  it is what it says
    """A deck uses what is not part of the subset."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"line {line}: {what}")


@dataclass(frozen=True)
class Literal:
    """A number, a text or nil."""

    line: int
    value: float | int | str | None


@dataclass(frozen=True)
class Name:
    """A variable, or a call without arguments."""

    line: int
    name: str


@dataclass(frozen=True)
class Call:
    """A function, or a method of `of`."""

    line: int
    of: Node | None
    name: str
    args: tuple[Node, ...]


@dataclass(frozen=True)
class Binary:
    """An operator between two values."""

    line: int
    op: str
    left: Node
    right: Node


Node: TypeAlias = Literal | Name | Call | Binary


@dataclass(frozen=True)
class Statement:
    """An expression, and the variable that it is assigned to, if any."""

    line: int
    target: str | None
    value: Node


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    line: int
    spaced: bool  # a space stands before it


def parse(text: str) -> list[Statement]:
    """Read a deck.

    Raises
    ------
    Unsupported
        What stands there is not part of the subset, or no Ruby at all.
    """
    return _Parser(_tokens(text)).statements()


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    line, at, spaced = 1, 0, True
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise Unsupported(line, f"{text[at : at + 20].splitlines()[0]!r}")
        kind = match.lastgroup or ""
        if kind != "space":
            found.append(_Token(kind, match[0], line, spaced))
        spaced = kind in ("space", "end")
        line += match[0].count("\n")
        at = match.end()
    return [*found, _Token("end", "\n", line, spaced=True), _Token("over", "", line, spaced=True)]


class _Parser:
    """Recursive descent over the tokens."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def statements(self) -> list[Statement]:
        found: list[Statement] = []
        while self._now.kind != "over":
            if self._now.kind == "end":
                self._at += 1
                continue
            found.append(self._statement())
            if len(found) > MOST_STATEMENTS:
                raise Unsupported(self._now.line, f"more than {MOST_STATEMENTS} statements")
            if self._now.kind not in ("end", "over"):
                raise Unsupported(self._now.line, f"{self._now.text!r}")
        return found

    @property
    def _now(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        self._at += 1
        return self._tokens[self._at - 1]

    def _statement(self) -> Statement:
        first, second = self._tokens[self._at], self._tokens[self._at + 1]
        if first.kind == "name" and second.text == "=":
            if first.text.startswith("$") or first.text in _WORDS:
                raise Unsupported(first.line, f"assigning {first.text}")
            self._at += 2
            self._skip_ends()
            return Statement(first.line, first.text, self._expression())
        return Statement(first.line, None, self._expression())

    def _skip_ends(self) -> None:
        while self._now.kind == "end" and self._now.text == "\n":
            self._at += 1

    def _expression(self, level: int = 0) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            raise Unsupported(self._now.line, f"nested over {DEEPEST} deep")
        left = self._expression(level + 1) if level + 1 < len(_LEVELS) else self._chain()
        while self._now.text in _LEVELS[level] and self._now.kind == "op":
            op = self._take()
            self._skip_ends()
            right = self._expression(level + 1) if level + 1 < len(_LEVELS) else self._chain()
            left = Binary(op.line, op.text, left, right)
        self._depth -= 1
        return left

    def _chain(self) -> Node:
        """Read a value with the methods called on it, over lines where a dot joins them."""
        value = self._value()
        while self._joined():
            self._take()
            self._skip_ends()
            name = self._take()
            if name.kind != "name":
                raise Unsupported(name.line, f"{name.text!r} after a dot")
            value = Call(name.line, value, name.text, self._arguments())
        return value

    def _joined(self) -> bool:
        ahead = self._at
        while self._tokens[ahead].text == "\n":
            ahead += 1
        if self._tokens[ahead].text == ".":
            self._at = ahead
            return True
        return False

    def _arguments(self) -> tuple[Node, ...]:
        if self._now.text != "(" or self._now.spaced:
            follows = self._now
            if (
                follows.kind in ("number", "string", "name")
                and follows.line == self._tokens[self._at - 1].line
            ):
                raise Unsupported(follows.line, "a call without parentheses")
            return ()
        self._take()
        found: list[Node] = []
        self._skip_ends()
        while self._now.text != ")":
            found.append(self._expression())
            self._skip_ends()
            if self._now.text == ",":
                self._take()
                self._skip_ends()
            elif self._now.text != ")":
                raise Unsupported(self._now.line, f"{self._now.text!r} among arguments")
        self._take()
        return tuple(found)

    def _value(self) -> Node:
        token = self._take()
        if token.kind == "number":
            text = token.text.replace("_", "")
            if len(text) > 30 or (text.isdigit() and len(text) > 1 and text[0] == "0"):
                raise Unsupported(token.line, f"the number {token.text[:40]}")
            return Literal(token.line, float(text) if not text.isdigit() else int(text))
        if token.text == "-" and self._now.kind == "number":
            inner = self._value()
            assert isinstance(inner, Literal)
            assert isinstance(inner.value, int | float)
            return Literal(token.line, -inner.value)
        if token.kind == "string":
            return Literal(token.line, _unquoted(token))
        if token.text == "(":
            self._skip_ends()
            value = self._expression()
            self._skip_ends()
            if self._take().text != ")":
                raise Unsupported(token.line, "a parenthesis that is not closed")
            return value
        if token.kind != "name" or token.text in _WORDS:
            raise Unsupported(token.line, f"{token.text.strip() or 'the end'!r}")
        if token.text == "nil":
            return Literal(token.line, None)
        called = self._now.text == "(" and not self._now.spaced
        args = self._arguments() if called or not token.text.startswith("$") else ()
        return Call(token.line, None, token.text, args) if called else Name(token.line, token.text)


def _unquoted(token: _Token) -> str:
    body = token.text[1:-1]
    simple = {"\\\\": "\\", '\\"': '"', "\\'": "'"}
    if re.search(r"\\[^\\\"']", body):
        raise Unsupported(token.line, "an escape in a text")
    return re.sub(r"\\[\\\"']", lambda m: simple[m[0]], body)
