"""SPECs: models, solvers, scorers and strategies are all spelt ``name?k=v&k=v``."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl, quote

from msgspec import Struct

from harness.core.errors import UsageError


class Spec(Struct, frozen=True):
    """A name with its options, e.g. ``vote?n=8``."""

    name: str
    args: dict[str, str] = {}

    def __str__(self) -> str:
        query = "&".join(f"{k}={quote(v, safe='/:,.')}" for k, v in sorted(self.args.items()))
        return self.name + (f"?{query}" if query else "")


class ModelSpec(Struct, frozen=True):
    """A model SPEC: ``backend:name[@revision][?k=v&k=v]``."""

    backend: str
    name: str
    revision: str | None = None
    args: dict[str, str] = {}

    def __str__(self) -> str:
        name = self.name + (f"@{self.revision}" if self.revision else "")
        return str(Spec(f"{self.backend}:{name}", self.args))


def parse_args(query: str, where: str) -> dict[str, str]:
    """Read ``k=v&k=v`` (percent signs decoded, ``+`` left alone) into a dict.

    Raises
    ------
    UsageError
        For a part without ``=`` or a key given twice.
    """
    args: dict[str, str] = {}
    try:
        pairs = parse_qsl(query.replace("+", "%2B"), keep_blank_values=True, strict_parsing=True)
    except ValueError as error:
        raise UsageError(f"cannot read the options of {where!r}: write k=v&k=v") from error
    for key, value in pairs:
        if key in args:
            raise UsageError(f"option {key!r} is given twice in {where!r}")
        args[key] = value
    return args


def parse_spec(text: str) -> Spec:
    """Read ``name?k=v&k=v``.

    Examples
    --------
    >>> parse_spec("vote?n=8")
    Spec(name='vote', args={'n': '8'})
    """
    name, _, query = text.partition("?")
    if not name:
        raise UsageError(f"empty name in {text!r}: write NAME or NAME?k=v&k=v")
    return Spec(name, parse_args(query, text) if query else {})


def parse_model(text: str) -> ModelSpec:
    """Read a model SPEC.

    Examples
    --------
    >>> parse_model("hf:org/name@v2?dtype=bf16")
    ModelSpec(backend='hf', name='org/name', revision='v2', args={'dtype': 'bf16'})
    >>> str(parse_model("mock:constant?text=the answer is 4"))
    'mock:constant?text=the%20answer%20is%204'
    """
    head, _, query = text.partition("?")
    backend, colon, name = head.partition(":")
    if not colon or not backend or not name:
        raise UsageError(
            f"cannot read model {text!r}: write backend:name[@revision][?k=v&k=v], e.g. hf:tiny"
        )
    name, _, revision = name.partition("@")
    return ModelSpec(backend, name, revision or None, parse_args(query, text) if query else {})


def only(args: Mapping[str, str], known: set[str], where: str) -> None:
    """Refuse options that nobody reads: a misspelt option must not change nothing in silence.

    Raises
    ------
    UsageError
        Naming the first unknown option and the known ones.
    """
    for key in args:
        if key not in known:
            names = ", ".join(sorted(known)) or "none"
            raise UsageError(f"unknown option {key!r} of {where}: it takes {names}")
