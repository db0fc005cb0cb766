"""Reading the head of a GGUF file: enough to plan, and to refuse a torn file before it is loaded."""

from __future__ import annotations

import math
import mmap
import struct
from pathlib import Path
from typing import Any

from msgspec import Struct

from harness.core.errors import UsageError

# https://github.com/ggml-org/ggml/blob/master/docs/gguf.md: types of values and of whole files.
_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_STRING, _ARRAY = 8, 9
_FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K",
    11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S",
    17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS",
    23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S",
    29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16",
}  # fmt: skip


class Header(Struct, frozen=True, kw_only=True):
    """What the head of a GGUF file says.

    Attributes
    ----------
    architecture : str
        ``llama``, ``qwen2``, …
    quantisation : str
        The file's type: ``Q4_1``, ``F16``, …
    context_length : int or None
        Positions the model was trained for.
    parameters : int
        Numbers in all tensors.
    vocabulary : int
        Tokens the tokenizer knows.
    bos, eos : int or None
        Token ids.
    chat_template : str
        Empty when the file has none.
    """

    architecture: str
    quantisation: str
    context_length: int | None
    parameters: int
    vocabulary: int
    bos: int | None
    eos: int | None
    chat_template: str


def read_header(path: Path) -> Header:
    """Read a GGUF file's head.

    Raises
    ------
    UsageError
        The file is no GGUF file, or is torn.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
            return _Reader(view).header()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"{path} is no whole GGUF file: {error}; get it again") from error
    except (struct.error, KeyError, OverflowError) as error:
        raise UsageError(f"{path} is no whole GGUF file: its head is torn; get it again") from error


class _Reader:
    def __init__(self, view: mmap.mmap) -> None:
        self._view = view
        self._at = 0

    def header(self) -> Header:
        if self._view[:4] != b"GGUF":
            raise ValueError("it does not begin with GGUF")
        self._at = 4
        version = self._take("I")
        if version not in (2, 3):
            raise ValueError(f"version {version} is not known")
        n_tensors, n_values = self._take("Q"), self._take("Q")
        values: dict[str, Any] = dict(self._pair() for _ in range(n_values))
        parameters, last = 0, 0
        for _ in range(n_tensors):
            size, offset = self._tensor()
            parameters, last = parameters + size, max(last, offset)
        if self._at + last >= len(self._view):
            raise ValueError("it ends before its last tensor begins")
        architecture = values["general.architecture"]
        kind = values.get("general.file_type", -1)
        return Header(
            architecture=architecture,
            quantisation=_FILE_TYPES.get(kind, f"type {kind}"),
            context_length=values.get(f"{architecture}.context_length"),
            parameters=parameters,
            vocabulary=values.get("tokenizer.ggml.tokens", 0),
            bos=values.get("tokenizer.ggml.bos_token_id"),
            eos=values.get("tokenizer.ggml.eos_token_id"),
            chat_template=values.get("tokenizer.chat_template", ""),
        )

    def _take(self, code: str) -> Any:
        (value,) = struct.unpack_from(f"<{code}", self._view, self._at)
        self._at += struct.calcsize(f"<{code}")
        return value

    def _text(self) -> str:
        length = self._take("Q")
        if length > len(self._view) - self._at:
            raise ValueError("a text in its head is longer than the file")
        text = self._view[self._at : self._at + length]
        self._at += length
        return text.decode(errors="replace")

    def _pair(self) -> tuple[str, Any]:
        return self._text(), self._value(self._take("I"))

    def _value(self, kind: int) -> Any:
        """Read a value; of an array only the length is wanted, and its items are passed over."""
        if kind == _STRING:
            return self._text()
        if kind != _ARRAY:
            return self._take(_SCALARS[kind])
        item, length = self._take("I"), self._take("Q")
        if item in (_STRING, _ARRAY):
            for _ in range(length):
                self._value(item)
        else:
            self._at += length * struct.calcsize(f"<{_SCALARS[item]}")
        return length

    def _tensor(self) -> tuple[int, int]:
        self._text()
        n_dimensions = self._take("I")
        if n_dimensions > 8:
            raise ValueError(f"a tensor has {n_dimensions} dimensions")
        size = math.prod([self._take("Q") for _ in range(n_dimensions)])
        self._take("I")
        return size, self._take("Q")
