"""The protocol of a backend: what a run needs to know of a model, and the two ways to ask it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

from msgspec import Struct

from harness.core.errors import MissingPackageError, UsageError
from harness.core.keys import sha256_of
from harness.core.registry import entries, find
from harness.core.spec import ModelSpec, parse_model
from harness.core.types import ChoiceRequest, GenerateRequest, Message, Output, text_of

Capability = Literal[
    "generate", "samples", "token_logprobs", "next_token_full", "loglikelihood", "logits",
    "hidden_states", "tools",
]  # fmt: skip


class ModelIdentity(Struct, frozen=True, kw_only=True):
    """Exactly which model answers: backend + name + revision + dtype + quantisation.

    Attributes
    ----------
    revision : str
        Revision, or sha256 of the weights for a local file: a changed model is another model.
    args : dict
        Whatever else of the SPEC changes answers (a mock's accuracy, an endpoint, …).
    """

    backend: str
    name: str
    revision: str = ""
    dtype: str = ""
    quantisation: str = ""
    args: dict[str, str] = {}

    @property
    def variant_id(self) -> str:
        """A short content id of the whole identity."""
        return sha256_of(self)[:16]


class LoadOptions(Struct, frozen=True, kw_only=True):
    """How a model is loaded; answers must not depend on `batch_size` and `device`.

    `max_connections`, `rpm` and `timeout` (seconds) are for models behind HTTP.
    """

    dtype: str = "auto"
    device: str = "auto"
    batch_size: int | None = None
    max_connections: int | None = None
    rpm: int | None = None
    timeout: float | None = None
    chat_template: Literal["auto", "on", "off"] = "auto"
    on_long: Literal["error", "skip", "truncate"] = "error"


@runtime_checkable
class Backend(Protocol):
    """A loaded model.

    Attributes
    ----------
    identity : ModelIdentity
        Part of every attempt's key.
    capabilities : frozenset of Capability
        What it can do; checked before anything is called.
    is_baseline : bool
        A mock: marked wherever it shows, and the only kind that receives an `Oracle`.
    batch_size : int
        How many requests it likes at once.
    context_length : int or None
        Positions it can hold, None when unlimited or unknown.

    A backend may also have ``max_connections: int``: above 1, that many calls of one request each
    are made side by side, from threads. And it may have ``check(requests)``, which is shown every
    `ChoiceRequest` of a plan and raises `UsageError` for one that it could never answer.
    """

    identity: ModelIdentity
    capabilities: frozenset[Capability]
    is_baseline: bool
    batch_size: int
    context_length: int | None

    def generate(self, requests: Sequence[GenerateRequest]) -> list[Output]:
        """Answer requests for text, in order."""
        ...

    def loglikelihood(self, requests: Sequence[ChoiceRequest]) -> list[Output]:
        """Give each request's `choice_logprobs` (natural log, summed over a continuation)."""
        ...

    def describe(self) -> dict[str, Any]:
        """Give what a reader needs to reproduce an answer; JSON-ready, no secrets."""
        ...

    def close(self) -> None:
        """Free memory and processes; safe to call twice."""
        ...


BackendFactory = Callable[[ModelSpec, LoadOptions], Backend]


def load(text: str, options: LoadOptions | None = None) -> Backend:
    """Load the model that a SPEC names.

    Parameters
    ----------
    text : str
        ``backend:name[@revision][?k=v&k=v]``.
    options : LoadOptions, optional

    Raises
    ------
    UsageError
        Unknown backend, model or option.
    MissingPackageError
        Its packages are not installed.

    Examples
    --------
    >>> load("mock:empty").is_baseline
    True
    """
    spec: ModelSpec = parse_model(text)
    backend: Backend = find("backends", spec.backend).load()(spec, options or LoadOptions())
    return backend


class Preview(Struct, kw_only=True):
    """What is known of a model before its weights are loaded: enough to plan, not to answer."""

    identity: ModelIdentity
    capabilities: frozenset[Capability]
    is_baseline: bool = False
    batch_size: int = 1
    context_length: int | None = None

    def generate(self, requests: Sequence[GenerateRequest]) -> list[Output]:
        """Refuse: nothing is loaded."""
        raise RuntimeError(f"{self.identity.name} is not loaded")

    def loglikelihood(self, requests: Sequence[ChoiceRequest]) -> list[Output]:
        """Refuse: nothing is loaded."""
        raise RuntimeError(f"{self.identity.name} is not loaded")

    def describe(self) -> dict[str, Any]:
        """Say nothing."""
        return {}

    def close(self) -> None:
        """Nothing to free."""


def preview(text: str, options: LoadOptions | None = None) -> Backend:
    """Check a SPEC and say what is known of the model, without loading weights where it can.

    A backend's module may offer ``preview(spec, options)``; one that does not is loaded.

    Raises
    ------
    UsageError
        Unknown backend, model or option.
    MissingPackageError
        Its packages are not installed.
    """
    spec = parse_model(text)
    entry = find("backends", spec.backend)
    module = inspect.getmodule(entry.load())
    look: BackendFactory | None = getattr(module, "preview", None)
    return look(spec, options or LoadOptions()) if look else load(text, options)


def require_packages(backend: str) -> None:
    """Refuse a backend whose packages are not installed.

    Raises
    ------
    MissingPackageError
        Naming the first one and the command that brings it.
    """
    for need in find("backends", backend).needs:
        if need.missing():
            raise MissingPackageError(f"backend {backend}", need.name, need.install)


def plain_text(messages: Sequence[Message]) -> str:
    r"""Write messages as one text for a model without a chat template: turns set apart.

    An answer that begins with a space continues its question directly, as an option that is
    compared does.

    Examples
    --------
    >>> turns = [Message("user", "2+2?"), Message("assistant", " 4"), Message("user", "3+3?")]
    >>> plain_text(turns)
    '2+2? 4\n\n3+3?'
    """
    text = ""
    for message in messages:
        part = text_of(message)
        joined = message.role == "assistant" and part.startswith(" ")
        text += part if joined or not text else f"\n\n{part}"
    return text


def require(backend: Backend, capability: Capability, wanted_by: str) -> None:
    """Refuse a run that needs what the backend cannot do, before anything is called.

    Raises
    ------
    UsageError
        Naming the capability and the backends that have it.
    """
    if capability in backend.capabilities:
        return
    able = sorted(
        name
        for name, entry in entries("backends").items()
        if capability in getattr(entry.target, "capabilities", _declared(name))
    )
    identity = backend.identity
    api = f" with api={identity.args['api']}" if "api" in identity.args else ""
    raise UsageError(
        f"{wanted_by} needs {capability!r}, which backend {identity.backend!r} cannot do{api}; "
        f"use one of: {', '.join(able)}"
    )


def _declared(name: str) -> frozenset[Capability]:
    from harness.backends.catalogue import CAPABILITIES

    return CAPABILITIES.get(name, frozenset())
