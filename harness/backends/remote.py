"""From a SPEC to a model behind HTTP: what all of them do alike, whatever form their service has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from harness.backends.base import Capability, LoadOptions, ModelIdentity
from harness.backends.http import Caller, base_url, read_key
from harness.core.errors import HarnessError, UsageError
from harness.core.spec import ModelSpec, only
from harness.core.types import ChoiceRequest, FinishReason, GenerateRequest, Output, Usage


class Remote(ABC):
    """A model behind HTTP; a subclass knows its service's form.

    Parameters
    ----------
    spec : ModelSpec
    options : LoadOptions
    known : frozenset of str
        The SPEC's options beside those that all services have.
    start_hint : str
        What to do when no server answers.
    **fixed : str
        Further parts of the model's identity.
    """

    is_baseline = False
    batch_size = 1
    context_length: int | None = None
    backend: ClassVar[str]
    default_url: ClassVar[str]
    key_env: ClassVar[str]
    capabilities: frozenset[Capability]

    def __init__(
        self, spec: ModelSpec, options: LoadOptions, known: frozenset[str], start_hint: str = "",
        **fixed: str,
    ) -> None:  # fmt: skip
        self._where = f"{spec.backend}:{spec.name}"
        only(spec.args, {"base_url", "key_env", "any_model", "omit", *known}, self._where)
        self.url = base_url(spec, self.default_url)
        self._key, self._key_env = read_key(spec, self.key_env, self.url)
        self.identity = model_identity(spec, base_url=self.url, **fixed)
        self._model = spec.name
        self._any_model = spec.args.get("any_model") == "1"
        self._omit = set(filter(None, spec.args.get("omit", "").split(",")))
        self.caller = Caller(f"{self._where} at {self.url}", self._key, options, start_hint)
        self.max_connections = self.caller.max_connections

    def generate(self, requests: Sequence[GenerateRequest]) -> list[Output]:
        """Ask for each text, one after the other; the runner calls from several threads."""
        return [self._generate(request) for request in requests]

    def loglikelihood(self, requests: Sequence[ChoiceRequest]) -> list[Output]:
        """Refuse: such a service gives no log-probability of a given text."""
        raise UsageError(f"{self._where} cannot give the log-probability of a given continuation")

    def describe(self) -> dict[str, Any]:
        """Say which service and how it is asked; the key is nowhere."""
        return {
            "backend": self.backend, "base_url": self.url,
            "max_connections": self.max_connections, "timeout_s": self.caller.timeout,
        }  # fmt: skip

    def observed(self) -> dict[str, int]:
        """Give calls, retries and names of models that answered since this was last asked."""
        return self.caller.observed()

    def close(self) -> None:
        """End all connections, those that wait for an answer too."""
        self.caller.close()

    @abstractmethod
    def _generate(self, request: GenerateRequest) -> Output:
        """Ask for one text, through `caller`."""

    def _check_model(self, answered: object) -> None:
        """Count in whose name an answer came; refuse one of another model.

        ``NAME-…``, ``NAME:…`` and ``NAME@…`` are releases of the one that was asked for; ``gpt-4o``
        is none of ``gpt-4``.
        """
        asked = self._model
        if not isinstance(answered, str) or not answered:
            return
        name = self.caller.clean(answered)
        self.caller.count(f"answered as {name}")
        same = answered == asked or answered.startswith((f"{asked}-", f"{asked}:", f"{asked}@"))
        if not self._any_model and not same:
            raise HarnessError(
                f"{self.caller.where} answered as {name!r}; if that is the model you mean, name it "
                "so, or add any_model=1 to the SPEC"
            )

    def _why_ended(
        self, known: FinishReason | None, usage: Usage, most: int, *, called: bool
    ) -> FinishReason:
        """Say why an answer ended; where the server's word is missing or unknown, by its length.

        A cut answer must not pass for a whole one. Not every service has a word for an end at a
        tool call, so `called` (there is one) turns ``stop`` into ``tool_calls``.
        """
        if known is None:
            self.caller.count("finish_reason missing or unknown")
            cut_off = usage.tokens_out is not None and usage.tokens_out >= most
            known = "length" if cut_off else "stop"
        return "tool_calls" if called and known == "stop" else known


def model_identity(spec: ModelSpec, **fixed: str) -> ModelIdentity:
    """Give the identity of a model behind HTTP: all of its options but where the key is found."""
    args = {k: v for k, v in spec.args.items() if k != "key_env"} | fixed
    return ModelIdentity(
        backend=spec.backend, name=spec.name, revision=spec.revision or "", args=args
    )


def whole(*counts: object) -> Iterable[int | None]:
    """Give counts that are whole numbers, None for anything else."""
    return (c if isinstance(c, int) and not isinstance(c, bool) else None for c in counts)
