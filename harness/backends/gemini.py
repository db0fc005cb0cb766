"""Gemini models through Google's own package; retries, rate and faults are ours."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from harness.backends.base import Capability, LoadOptions
from harness.backends.catalogue import CAPABILITIES
from harness.backends.http import (
    Caller,
    TransientError,
    base_url,
    is_local,
    media,
    read_key,
)
from harness.backends.openai import check_model, model_identity, whole, why_ended
from harness.backends.stops import cut
from harness.core.errors import MissingPackageError, UsageError
from harness.core.spec import ModelSpec, only
from harness.core.types import (
    ChoiceRequest,
    FinishReason,
    GenerateRequest,
    Message,
    Output,
    TextPart,
    Usage,
)

DEFAULT_URL = "https://generativelanguage.googleapis.com"
KEY_ENV = "GEMINI_API_KEY"
INSTALL = "pip install -e '.[gemini]' (in the checkout)"
_OPTIONS = {"base_url", "key_env", "any_model", "omit", "thinking"}
_REFUSED = (
    "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "MODEL_ARMOR",
)  # fmt: skip
_FINISH: dict[object, FinishReason] = {
    "STOP": "stop", "MAX_TOKENS": "length", **dict.fromkeys(_REFUSED, "content_filter"),
}  # fmt: skip


class Gemini:
    """A Gemini model; see `load` for its SPEC."""

    is_baseline = False
    batch_size = 1
    context_length = None
    capabilities: frozenset[Capability] = CAPABILITIES["gemini"]

    def __init__(self, spec: ModelSpec, options: LoadOptions) -> None:
        try:
            import httpx2
            from google import genai
            from google.genai import errors, types
        except ImportError as error:
            raise MissingPackageError("backend gemini", "google-genai", INSTALL) from error
        where = f"{spec.backend}:{spec.name}"
        only(spec.args, _OPTIONS, where)
        self.url = base_url(spec, DEFAULT_URL)
        key, self._key_env = read_key(spec, KEY_ENV, self.url)
        self.identity = model_identity(spec, base_url=self.url)
        self._model = spec.name
        self._any_model = spec.args.get("any_model") == "1"
        self._omit = set(filter(None, spec.args.get("omit", "").split(",")))
        self._thinking = _budget(spec.args.get("thinking"), where)
        self.caller = Caller(f"{where} at {self.url}", key, options)
        self.max_connections = self.caller.max_connections
        self._types, self._errors, self._web = types, errors, httpx2
        self._version = genai.__version__
        # One for all: a client of this package weighs 2 MB, more than its pool's slow search costs.
        self._http = httpx2.Client(
            limits=httpx2.Limits(max_connections=self.max_connections,
                                 max_keepalive_connections=self.max_connections),
            event_hooks={"request": [self.caller.mark]}, verify=httpx2.create_ssl_context(),
            trust_env=not is_local(self.url),
        )  # fmt: skip
        self._client = genai.Client(
            api_key=key or "none",
            vertexai=False,
            http_options=types.HttpOptions(
                base_url=self.url,
                timeout=round(self.caller.timeout * 1000),  # milliseconds there
                retry_options=types.HttpRetryOptions(attempts=1),
                httpx_client=self._http,
            ),
        )

    def generate(self, requests: Sequence[GenerateRequest]) -> list[Output]:
        """Ask for each text, one after the other; the runner calls from several threads."""
        return [self._generate(request) for request in requests]

    def loglikelihood(self, requests: Sequence[ChoiceRequest]) -> list[Output]:
        """Refuse: the service gives no log-probability of a given text."""
        raise UsageError(f"gemini:{self._model} gives no log-probability of a given continuation")

    def describe(self) -> dict[str, Any]:
        """Say which service and package; the key is nowhere."""
        return {
            "backend": "gemini", "base_url": self.url, "google-genai": self._version,
            "max_connections": self.max_connections, "timeout_s": self.caller.timeout,
        }  # fmt: skip

    def observed(self) -> dict[str, int]:
        """Give calls, retries and names of models that answered since this was last asked."""
        return self.caller.observed()

    def close(self) -> None:
        """End all connections, those that wait for an answer too."""
        self.caller.close()
        self._http.close()

    def _generate(self, request: GenerateRequest) -> Output:
        contents = [self._content(m) for m in request.messages if m.role != "system"]
        config = self._config(request)
        return self.caller.call(
            lambda: self._send(contents, config, request.generation.stop),
            request.item_id, request.turn, request.seed,
        )  # fmt: skip

    def _config(self, request: GenerateRequest) -> Any:
        generation = request.generation
        system = [m for m in request.messages if m.role == "system"]
        fields: dict[str, Any] = {
            "temperature": generation.temperature,
            "top_p": generation.top_p,
            "max_output_tokens": generation.max_tokens + max(self._thinking or 0, 0),
            "seed": request.seed % 2**31,  # 32 bits there
        }
        if stops := [s for s in generation.stop if s][:4]:
            fields["stop_sequences"] = stops
        if system:
            fields["system_instruction"] = [part for m in system for part in self._parts(m)]
        if self._thinking is not None:
            fields["thinking_config"] = {"thinking_budget": self._thinking}
        kept = {k: v for k, v in fields.items() if k not in self._omit}
        return self._types.GenerateContentConfig(**kept)

    def _content(self, message: Message) -> Any:
        role = "model" if message.role == "assistant" else "user"
        return self._types.Content(role=role, parts=self._parts(message))

    def _parts(self, message: Message) -> list[Any]:
        part = self._types.Part
        if isinstance(message.content, str):
            return [part(text=message.content)]
        made = []
        for one in message.content:
            if isinstance(one, TextPart):
                made.append(part(text=one.text))
            else:
                kind, data = media(one)
                made.append(part.from_bytes(data=base64.b64decode(data), mime_type=kind))
        return made

    def _send(self, contents: list[Any], config: Any, stop: Sequence[str]) -> Output:
        web = self._web
        try:
            reply = self._client.models.generate_content(
                model=self._model, contents=contents, config=config
            )
        except self._errors.APIError as error:
            headers = getattr(error.response, "headers", {})
            # The key's place is a 400 here: told apart by the service's own word.
            wrong_key = error.code == 400 and "API_KEY_INVALID" in str(error.details)
            code = 401 if wrong_key else error.code
            return self.caller.refuse(code, headers, str(error.details), self._key_env)
        except (web.ConnectError, web.ConnectTimeout) as error:
            raise TransientError(f"{type(error).__name__}: {error}", unreached=True) from error
        except (web.RequestError, ValueError) as error:  # a body that is no JSON, or not its form
            raise TransientError(f"{type(error).__name__}: {error}") from error
        check_model(self.caller, self._model, reply.model_version, any_model=self._any_model)
        return self._read(reply, stop, config.max_output_tokens)

    def _read(self, reply: Any, stop: Sequence[str], most: int) -> Output:
        usage = reply.usage_metadata
        counts = ("prompt_token_count", "candidates_token_count", "thoughts_token_count")
        tokens_in, answer, thoughts = whole(*(getattr(usage, name, None) for name in counts))
        # Thoughts are paid for and counted apart there; our tokens_out holds them, as elsewhere.
        tokens_out = None if answer is None else answer + (thoughts or 0)
        read = Usage(tokens_in, tokens_out, thoughts)
        if not reply.candidates:
            if getattr(reply.prompt_feedback, "block_reason", None):
                return Output(text="", finish_reason="content_filter", usage=read)
            raise TransientError("the reply holds no candidates")
        candidate = reply.candidates[0]
        parts = (candidate.content.parts if candidate.content else None) or []
        text = "".join(p.text for p in parts if p.text and not p.thought)
        thinking = "".join(p.text for p in parts if p.text and p.thought)
        kept, stopped = cut(text, stop)
        why = getattr(candidate.finish_reason, "name", None)
        known = "stop" if stopped else _FINISH.get(why)
        return Output(
            text=kept,
            finish_reason=why_ended(self.caller, known, read, most),
            usage=read,
            reasoning=thinking or None,
        )


def load(spec: ModelSpec, options: LoadOptions) -> Gemini:
    """Make a Gemini model from its SPEC; nothing is called yet.

    ``gemini:NAME``; the key is read from ``$GEMINI_API_KEY`` (or ``key_env``). Options:
    ``thinking=N`` (tokens to think with; 0 for none), ``omit=seed,top_p``, ``any_model=1``,
    ``base_url``.

    Raises
    ------
    UsageError
        Unknown option, bad address, no key.
    MissingPackageError
        The package is not installed.
    """
    return Gemini(spec, options)


def _budget(text: str | None, where: str) -> int | None:
    if text is None:
        return None
    try:
        return int(text)
    except ValueError as error:
        raise UsageError(f"{where}: thinking={text} must be a number of tokens") from error
