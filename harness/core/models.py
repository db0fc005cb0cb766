"""Model cards: facts about a model that no answer depends on, and what its tokens cost.

Ours are in ``data/models.toml``; a user's file overrides them field by field. Nothing of a card is
part of an attempt's key.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Mapping
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from harness.core.errors import UsageError
from harness.core.resources import data

VARIABLE = "HARNESS_MODELS"
_PRICES = ("price_in", "price_out", "price_reasoning")


class Card(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is known of a model; None and "" mean: not known.

    Attributes
    ----------
    family : str
        Models that share it are versions or sizes of one another.
    params : int or None
        Number of parameters.
    release_date : datetime.date or None
        First public release.
    context : int or None
        Tokens that prompt and answer may have together.
    price_in, price_out : float or None
        Price of a million tokens of prompt and of answer.
    price_reasoning : float or None
        Price of a million reasoning tokens; None: they cost as much as the answer's.
    currency : {"USD"}
        Of all prices.
    price_date : datetime.date or None
        When the prices were looked up.
    price_source : str
        Where.
    license, source : str
        Of the weights.
    source_weights : str
        What a reader must know of the weights' own precision.
    bridge : str
        Its name in BRIDGE's published table of models, where it stands under another one there.
    note : str
        Anything else.
    """

    family: str = ""
    params: int | None = None
    release_date: date | None = None
    context: int | None = None
    price_in: float | None = None
    price_out: float | None = None
    price_reasoning: float | None = None
    currency: Literal["USD"] = "USD"
    price_date: date | None = None
    price_source: str = ""
    license: str = ""
    source: str = ""
    source_weights: str = ""
    bridge: str = ""
    note: str = ""

    def cost(
        self, tokens_in: int | None, tokens_out: int | None, tokens_reasoning: int | None = None
    ) -> float | None:
        """Give what a call cost, or None where a price or a count is not known.

        Parameters
        ----------
        tokens_in, tokens_out : int or None
            As the backend counted them; `tokens_out` includes the reasoning tokens.
        tokens_reasoning : int or None
            How many of `tokens_out` were reasoning; only needed when these have their own price.

        Returns
        -------
        float or None
            US dollars.

        Examples
        --------
        >>> card = Card(price_in=2.0, price_out=8.0)
        >>> card.cost(1000, 500), card.cost(None, 500)
        (0.006, None)
        """
        if self.price_in is None or self.price_out is None:
            return None
        if tokens_in is None or tokens_out is None:
            return None
        if self.price_reasoning is None:
            return (tokens_in * self.price_in + tokens_out * self.price_out) / 1e6
        if tokens_reasoning is None or tokens_reasoning > tokens_out:
            return None  # not told apart, or counts that contradict each other
        answer = (tokens_out - tokens_reasoning) * self.price_out
        reasoning = tokens_reasoning * self.price_reasoning
        return (tokens_in * self.price_in + answer + reasoning) / 1e6

    def most_cost(self, tokens_in: int, tokens_out: int) -> float | None:
        """Give what so many tokens can cost at most: all of the answer at its dearest price."""
        if self.price_in is None or self.price_out is None:
            return None
        dearest = max(self.price_out, self.price_reasoning or 0.0)
        return (tokens_in * self.price_in + tokens_out * dearest) / 1e6

    def facts(self) -> dict[str, Any]:
        """Give what is known, ready for JSON."""
        known = {k: v for k, v in msgspec.structs.asdict(self).items() if v not in (None, "")}
        if not any(name in known for name in _PRICES):
            del known["currency"]
        facts: dict[str, Any] = msgspec.to_builtins(known)
        return facts


def user_file() -> Path | None:
    """Find the user's own file of cards: ``$HARNESS_MODELS``, else in the user's config folder.

    Raises
    ------
    UsageError
        When ``$HARNESS_MODELS`` names a file that is not there.
    """
    named = os.environ.get(VARIABLE)
    if named:
        if not Path(named).is_file():
            raise UsageError(f"${VARIABLE} names {named}, which is no file")
        return Path(named)
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    path = home / "bridge-harness" / "models.toml"
    return path if path.is_file() else None


def read_cards(path: Path) -> dict[str, dict[str, Any]]:
    """Read and check a file of cards.

    Returns
    -------
    dict
        SPEC pattern to the fields that the file gives, as checked values.

    Raises
    ------
    UsageError
        Broken TOML, an unknown key, a wrong type, a price without date and source: with file,
        table and key.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not valid TOML: {error}") from error
    return {pattern: _checked(path, pattern, table) for pattern, table in tables.items()}


def all_cards() -> dict[str, Card]:
    """Give the cards of every pattern that our file or the user's names, ours first."""
    layers = _layers()
    names = dict.fromkeys(pattern for layer in layers for pattern in layer)
    return {pattern: _joined(pattern, layers) for pattern in names}


def card_of(spec: str) -> Card:
    """Give what is known of a model: of all patterns that fit its SPEC, joined.

    A longer pattern overrides a shorter one, and the user's file overrides ours, each field by
    field. Options of the SPEC (``?k=v``) are not looked at; a revision may be named or left out.

    Raises
    ------
    UsageError
        A file of cards that cannot be read.
    """
    return _joined(spec.partition("?")[0], _layers())


def _layers() -> list[Mapping[str, Mapping[str, Any]]]:
    layers: list[Mapping[str, Mapping[str, Any]]] = [read_cards(data("models.toml"))]
    if (own := user_file()) is not None:
        layers.append(read_cards(own))
    return layers


def _joined(name: str, layers: list[Mapping[str, Mapping[str, Any]]]) -> Card:
    fields: dict[str, Any] = {}
    bare = name.partition("@")[0]
    for layer in layers:
        fitting = [p for p in layer if fnmatchcase(name, p) or fnmatchcase(bare, p)]
        # Whole names last, so that they override; then the more a pattern says, the later.
        for pattern in sorted(fitting, key=lambda p: (p in (name, bare), len(p))):
            fields.update(layer[pattern])
    return Card(**fields)


def _checked(path: Path, pattern: str, table: object) -> dict[str, Any]:
    where = f"{path}: table [{pattern!r}]"
    if not isinstance(table, dict):
        raise UsageError(f'{path}: {pattern!r} is no table: write ["backend:name"]')
    if ":" not in pattern:
        raise UsageError(f'{where}: a card\'s name is a SPEC: write ["backend:name"]')
    for key in table:
        if key not in Card.__struct_fields__:
            known = ", ".join(Card.__struct_fields__)
            raise UsageError(f"{where}: unknown key {key!r}: a card takes {known}")
    try:
        card = msgspec.convert(table, Card)
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: {_said(error)}") from error
    for key in (*_PRICES, "params", "context"):
        value = getattr(card, key)
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise UsageError(f"{where}: {key} must be a number of at least 0, not {value}")
    priced = [key for key in _PRICES if key in table]
    for key in ("price_date", "price_source"):
        if priced and not table.get(key):
            raise UsageError(f"{where}: {priced[0]} needs {key}: prices change")
    return {key: getattr(card, key) for key in table}


def _said(error: msgspec.ValidationError) -> str:
    """Put the key first: ``params: expected int, got str``."""
    text, _, place = str(error).partition(" - at `$.")
    key = re.sub(r"`$", "", place)
    return f"{key}: {text[0].lower()}{text[1:]}" if key else text
