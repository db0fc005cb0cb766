"""The list of what can be fetched: ``data/sources.toml``, read and checked."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from harness.core.errors import unknown
from harness.core.resources import data, data_folder


class File(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file of a source.

    Attributes
    ----------
    path : str
        Where it is kept, below the source's folder.
    home : str
        A URL, or ``pypi:NAME==VERSION``.
    sha256, size : str, int
        Of the file as it is kept; size in bytes.
    archive, archive_sha256, archive_size, member : str, str, int, str
        For a packed file: the archive's name, hash and size, and the member to take out.
    """

    path: str
    home: str
    sha256: str
    size: int
    archive: str = ""
    archive_sha256: str = ""
    archive_size: int = 0
    member: str = ""


class Source(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model or data set with its files, licence and whatever a reader must know of it."""

    name: str
    kind: Literal["models", "sets"]
    what: str
    licence: str
    files: tuple[File, ...]
    note: str = ""

    @property
    def size(self) -> int:
        """Bytes that have to be brought here."""
        plain = sum(file.size for file in self.files if not file.archive)
        return plain + sum(self.archives.values())

    @property
    def archives(self) -> dict[str, int]:
        """The packed files by name, with their bytes; several files may lie in one."""
        return {file.archive: file.archive_size for file in self.files if file.archive}

    @property
    def folder(self) -> Path:
        """Where it is kept; need not exist."""
        return data_folder() / self.kind / self.name


class _Sources(Struct, forbid_unknown_fields=True):
    source: tuple[Source, ...]


def sources() -> dict[str, Source]:
    """Read the list.

    Returns
    -------
    dict of str to Source

    Examples
    --------
    >>> sources()["gsm8k"].licence
    'MIT'
    """
    read = msgspec.toml.decode(data("sources.toml").read_bytes(), type=_Sources)
    return {source.name: source for source in read.source}


def source_of(name: str) -> Source:
    """Look one source up.

    Raises
    ------
    UsageError
        For an unknown name.
    """
    known = sources()
    if name not in known:
        raise unknown("source", name, known, "see `harness fetch`")
    return known[name]
