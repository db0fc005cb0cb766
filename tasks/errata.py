"""Faults of other people's items: which are known, whether they are in these data, what follows.

A row of an errata file names an item by benchmark, id and the hash of its record, so nothing of the
record is passed on and a row touches no other record. A wrong key is not just listed: the row names
a check that works the key out from the record. Corrected keys reach the scorer by its options, not by
the items: an attempt's key and an item's hash stay what they are, and `harness rescore` judges stored
answers by newer errata.
"""

from __future__ import annotations

import hashlib
import runpy
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from harness.core import resources
from harness.core.errors import UsageError
from harness.core.keys import sha256_of

Record = Mapping[str, Any]
Action = Literal["fix", "drop", "flag"]
State = Literal["applied", "flagged", "does_not_fit", "refuted"]
Position = Annotated[int, Meta(ge=0)]


class Erratum(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row of an errata file.

    Attributes
    ----------
    benchmark, item : str
        Task name and item id.
    sha256 : str
        `record_sha256` of the record that the row is about.
    action : {"fix", "drop", "flag"}
        ``fix``: `key` is right. ``drop``: no key is, so the item is left out of the corrected score.
        ``flag``: worth knowing, and no change of any score.
    key : tuple of int
        For ``fix``: the right options, 0-based, in the order of the record.
    reason : str
        Why, for a reader, in own words.
    check : str
        ``PATH:FUNCTION`` below ``data/``: from a record to the positions that are right. Required for
        ``fix``, possible for ``drop``.
    """

    benchmark: Annotated[str, Meta(min_length=1)]
    item: Annotated[str, Meta(pattern=r"^[\w.-]+$")]
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    action: Action
    reason: Annotated[str, Meta(min_length=1)]
    key: tuple[Position, ...] = ()
    check: Annotated[str, Meta(pattern=r"^(?:.+\.py:\w+)?$")] = ""


class Finding(Struct, frozen=True, kw_only=True):
    """What became of a row in some data.

    Attributes
    ----------
    item, action, reason
        Of the row.
    state : {"applied", "flagged", "does_not_fit", "refuted"}
        ``does_not_fit``: the item is there with another record, so nothing is known of it.
        ``refuted``: the check does not give what the row says. Neither is ever applied.
    key : tuple of int or None
        What the item's key is replaced by; None where it is not.
    computed : tuple of int or None
        What the check gave; None where none was run.
    """

    item: str
    action: Action
    state: State
    reason: str
    key: tuple[int, ...] | None = None
    computed: tuple[int, ...] | None = None

    def __str__(self) -> str:
        """Say it in one line, for an audit."""
        if self.state == "does_not_fit":
            return f"an erratum ({self.action}) is not applied, since it is about another record of this id"
        if self.state == "refuted":
            return (
                f"an erratum ({self.action}) is not applied, since its check gives {self.computed}"
            )
        found = "" if self.computed is None else f"; computed: {_listed(self.computed)}"
        return f"{self.action}: {self.reason}{found}"


class Errata(Struct, frozen=True, kw_only=True):
    """What the errata say of some data.

    Attributes
    ----------
    sha256 : str
        Hex digest of the errata file.
    findings : list of Finding
        In the order of the file; rows about items that are not in the data are left out.
    """

    sha256: str
    findings: list[Finding]

    @property
    def keys(self) -> dict[str, tuple[int, ...] | None]:
        """Corrected keys by item, in the order of the record; None: the item is dropped."""
        return {
            finding.item: finding.key if finding.action == "fix" else None
            for finding in self.findings
            if finding.state == "applied"
        }

    @property
    def faults(self) -> dict[str, str]:
        """Say of each item what is known, in one line: a task's ``info["known_faults"]``."""
        said: dict[str, list[str]] = {}
        for finding in self.findings:
            said.setdefault(finding.item, []).append(str(finding))
        return {item: "; ".join(lines) for item, lines in said.items()}

    @property
    def info(self) -> dict[str, Any]:
        """Give all of it, JSON-ready, for a task's `info`: so a stored run says what was known."""
        return {"sha256": self.sha256, "rows": msgspec.to_builtins(self.findings)}


def record_sha256(row: Struct) -> str:
    """Hash a record as it was read: the canonical JSON of its fields, those it lacks left out.

    Parameters
    ----------
    row : Struct
        With the names of the file's own fields; a field that the file lacks is None.

    Returns
    -------
    str
        Of a file whose fields are all known, the sha256 of the record's own JSON with sorted keys
        and no blanks.
    """
    return sha256_of(record_of(row))


def record_of(row: Struct) -> Record:
    """Give a row as the record it was read from; see `record_sha256`."""
    fields: dict[str, Any] = msgspec.to_builtins(row)
    return {name: value for name, value in fields.items() if value is not None}


def read_errata(path: Path) -> list[Erratum]:
    """Read an errata file: TOML, a list of tables ``[[erratum]]``.

    Raises
    ------
    UsageError
        A row that cannot be read or contradicts itself or another, naming file, row and field.
    """
    try:
        rows = tomllib.loads(path.read_text(encoding="utf-8")).get("erratum", [])
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    errata: list[Erratum] = []
    corrected = set()
    for number, row in enumerate(rows, 1):
        try:
            erratum = msgspec.convert(row, Erratum)
        except msgspec.ValidationError as error:
            raise UsageError(f"{path}: erratum {number}: {error}") from error
        why = _contradiction(erratum)
        about = (erratum.benchmark, erratum.item, erratum.sha256)
        if erratum.action != "flag":
            why = "corrects a record that another row corrects" if about in corrected else why
            corrected.add(about)
        if why:
            raise UsageError(f"{path}: erratum {number} ({erratum.item}): {why}")
        errata.append(erratum)
    return errata


def _contradiction(erratum: Erratum) -> str:
    if erratum.action == "fix" and not (erratum.key and erratum.check):
        return "a fix needs key and check"
    if erratum.action != "fix" and erratum.key:
        return f"a {erratum.action} has no key"
    if erratum.action == "flag" and erratum.check:
        return "a flag has no check"
    return ""


def apply_errata(name: str, benchmark: str, rows: Mapping[str, Struct]) -> Errata:
    """Find out which errata are about these data, and run their checks.

    Parameters
    ----------
    name : str
        The errata file below ``data/``.
    benchmark : str
        Task name.
    rows : mapping of str to Struct
        The rows as read, by item id, with the key in the field ``answer``.

    Returns
    -------
    Errata

    Raises
    ------
    UsageError
        For an errata file that cannot be read.
    """
    path = resources.data(name)
    errata = [e for e in read_errata(path) if e.benchmark == benchmark and e.item in rows]
    hashes = {erratum.item: record_sha256(rows[erratum.item]) for erratum in errata}
    fitting = {erratum.item for erratum in errata if erratum.sha256 == hashes[erratum.item]}
    findings = []
    for erratum in errata:
        if erratum.sha256 == hashes[erratum.item]:
            findings.append(_find(erratum, record_of(rows[erratum.item])))
        elif erratum.item not in fitting:
            findings.append(_finding(erratum, "does_not_fit"))
    return Errata(sha256=hashlib.sha256(path.read_bytes()).hexdigest(), findings=findings)


def _find(erratum: Erratum, record: Record) -> Finding:
    if erratum.action == "flag":
        return _finding(erratum, "flagged")
    if not erratum.check:
        return _finding(erratum, "applied")
    computed = tuple(sorted(_load(erratum.check)(record)))
    given = tuple(sorted(record["answer"]))
    # A drop says that the key is wrong, a fix also what is right.
    holds = computed != given and (
        erratum.action == "drop" or computed == tuple(sorted(erratum.key))
    )
    state: State = "applied" if holds else "refuted"
    return _finding(erratum, state, computed)


def _finding(erratum: Erratum, state: State, computed: tuple[int, ...] | None = None) -> Finding:
    return Finding(
        item=erratum.item,
        action=erratum.action,
        state=state,
        reason=erratum.reason,
        key=erratum.key if erratum.action == "fix" and state == "applied" else None,
        computed=computed,
    )


def _load(check: str) -> Callable[[Record], Sequence[int]]:
    """Load a check; it is a script beside the data, not a module of the project."""
    script, _, function = check.rpartition(":")
    loaded: Callable[[Record], Sequence[int]] = runpy.run_path(str(resources.data(script)))[
        function
    ]
    return loaded


def _listed(positions: Sequence[int]) -> str:
    return ", ".join(map(str, positions)) or "none"
