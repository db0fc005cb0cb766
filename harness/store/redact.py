"""Secrets never reach a journal, and no text field grows without bound.

The common case must cost next to nothing: a record is encoded first and its bytes are searched for
the fixed beginnings of known keys; only where one is found are the strings inside it rewritten.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from harness.core.records import Record, SampleRecord, encoder

TEXT_LIMIT = 1 << 20
REDACTED = "[redacted]"
CUT_MARK = "\n[cut by the journal: "

_NAMES = ("_API_KEY", "_TOKEN", "_SECRET")
_MIN_SECRET = 8
# Each shape begins with fixed characters, which makes the search of a clean line a plain memchr.
_SHAPES = (
    ("sk-", r"sk-[A-Za-z0-9_-]{20,}"),
    ("hf_", r"hf_[A-Za-z0-9]{20,}"),
    ("AKIA", r"AKIA[0-9A-Z]{16}"),
    ("AIza", r"AIza[0-9A-Za-z_-]{30,}"),
    ("ghp_", r"ghp_[A-Za-z0-9]{20,}"),
    ("github_pat_", r"github_pat_[A-Za-z0-9_]{20,}"),
    ("xox", r"xox[bp]-[A-Za-z0-9-]{10,}"),
    ("Bearer ", r"Bearer [A-Za-z0-9._~+/=-]{16,}"),
)
# What identifies a record is made by the harness and is needed to find it again.
_KEPT = frozenset(
    (
        *("type", "schema", "seq", "ts", "run_id", "item_id", "epoch", "attempt", "key"),
        *("status", "items", "finish_reason", "error_kind", "metric", "kind"),
    )
)
_TEXTS = ("prompt", "output", "reasoning", "tool_log")


def _cut(text: str) -> str:
    raw = text.encode("utf-8", "replace")
    if len(raw) <= TEXT_LIMIT:
        return text
    head = raw[:TEXT_LIMIT].decode(errors="ignore")
    return f"{head}{CUT_MARK}{len(raw)} bytes, sha256 {hashlib.sha256(raw).hexdigest()}]"


def cut_texts(record: SampleRecord) -> None:
    """Cut text fields over 1 MiB, in place, and note the whole text's length and sha256."""
    for name in _TEXTS:
        text = getattr(record, name)
        # A character has at most four bytes: shorter texts need no encoding to be known short.
        if text is not None and len(text) > TEXT_LIMIT // 4:
            setattr(record, name, _cut(text))


def was_cut(text: str | None) -> bool:
    """Tell whether a stored text is only the head of what a model wrote."""
    return text is not None and CUT_MARK in text[-200:]


class Redactor:
    """Replaces keys and tokens in records by ``[redacted]``.

    Parameters
    ----------
    environment : mapping or None
        Where the secrets of this machine are looked up: variables whose names end in ``_API_KEY``,
        ``_TOKEN`` or ``_SECRET`` with 8 characters or more. None means ``os.environ``.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        environment = os.environ if environment is None else environment
        secrets = sorted(
            {v for k, v in environment.items() if k.endswith(_NAMES) and len(v) >= _MIN_SECRET},
            key=len,
            reverse=True,
        )
        self._known = tuple(msgspec.json.encode(_utf8(secret))[1:-1] for secret in secrets)
        self._shapes = tuple((head.encode(), re.compile(p.encode())) for head, p in _SHAPES)
        shapes = "|".join(pattern for _, pattern in _SHAPES)
        parts = [*map(re.escape, secrets), rf"(?<![A-Za-z0-9])(?:{shapes})"]
        self._pattern = re.compile("|".join(parts))

    def hits(self, line: bytes) -> bool:
        """Tell whether an encoded record may hold a secret."""
        # Plain loops: a generator would double the cost of a clean line.
        for secret in self._known:
            if secret in line:
                return True
        for head, pattern in self._shapes:  # noqa: SIM110
            if head in line and pattern.search(line):
                return True
        return False

    def text(self, text: str) -> str:
        """Replace the secrets in a text.

        Examples
        --------
        >>> Redactor({}).text("key sk-abcdefghijklmnopqrstuvwx, but risk-adjusted-returns-2024")
        'key [redacted], but risk-adjusted-returns-2024'
        """
        return self._pattern.sub(REDACTED, _utf8(text))

    def encode(self, record: Record) -> bytes:
        """Encode a record with every string in it cleaned, its identity left alone."""
        fields = {
            name: value if name in _KEPT else self._clean(value)
            for name, value in msgspec.structs.asdict(record).items()
        }
        return encoder.encode(type(record)(**fields))

    def _clean(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self._clean(key): self._clean(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self._clean(item) for item in value)
        return value


def _utf8(text: str) -> str:
    """Replace lone surrogates (half of a pair, as some services send them): JSON cannot hold them."""
    return text.encode("utf-8", "replace").decode()
