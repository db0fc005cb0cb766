"""Claude models through Anthropic's own package; retries, rate and faults are ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.backends.base import Capability, LoadOptions
from harness.backends.catalogue import CAPABILITIES
from harness.backends.http import (
    CONNECT_TIMEOUT_S,
    Caller,
    Lender,
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
    AudioPart,
    ChoiceRequest,
    FinishReason,
    GenerateRequest,
    ImagePart,
    Message,
    Output,
    TextPart,
    Usage,
)

DEFAULT_URL = "https://api.anthropic.com"
KEY_ENV = "ANTHROPIC_API_KEY"
INSTALL = "pip install -e '.[anthropic]' (in the checkout)"
_OPTIONS = {"base_url", "key_env", "any_model", "omit", "thinking"}
_FINISH: dict[object, FinishReason] = {
    "end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "refusal": "content_filter",
    "model_context_window_exceeded": "length", "tool_use": "tool_calls", "pause_turn": "length",
}  # fmt: skip


class Anthropic:
    """A Claude model; see `load` for its SPEC."""

    is_baseline = False
    batch_size = 1
    context_length = None
    capabilities: frozenset[Capability] = CAPABILITIES["anthropic"]

    def __init__(self, spec: ModelSpec, options: LoadOptions) -> None:
        try:
            import anthropic
            import httpx2
        except ImportError as error:
            raise MissingPackageError("backend anthropic", "anthropic", INSTALL) from error
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
        self._sdk = anthropic
        self._key = key or "none"
        self._web, self._ssl = httpx2, httpx2.create_ssl_context()
        self._clients = Lender(self._client, lambda client: client.close())

    def _client(self) -> Any:
        web = self._web
        return self._sdk.Anthropic(
            api_key=self._key, base_url=self.url, max_retries=0,
            timeout=web.Timeout(self.caller.timeout, connect=CONNECT_TIMEOUT_S),
            http_client=web.Client(
                event_hooks={"request": [self.caller.mark]}, verify=self._ssl,
                trust_env=not is_local(self.url),
            ),
        )  # fmt: skip

    def generate(self, requests: Sequence[GenerateRequest]) -> list[Output]:
        """Ask for each text, one after the other; the runner calls from several threads."""
        return [self._generate(request) for request in requests]

    def loglikelihood(self, requests: Sequence[ChoiceRequest]) -> list[Output]:
        """Refuse: the service gives no log-probabilities."""
        raise UsageError(f"anthropic:{self._model} gives no log-probabilities")

    def describe(self) -> dict[str, Any]:
        """Say which service and package; the key is nowhere."""
        return {
            "backend": "anthropic", "base_url": self.url, "anthropic": self._sdk.__version__,
            "max_connections": self.max_connections, "timeout_s": self.caller.timeout,
        }  # fmt: skip

    def observed(self) -> dict[str, int]:
        """Give calls, retries and names of models that answered since this was last asked."""
        return self.caller.observed()

    def close(self) -> None:
        """End all connections, those that wait for an answer too."""
        self.caller.close()
        self._clients.close()

    def _generate(self, request: GenerateRequest) -> Output:
        body = self._body(request)
        return self.caller.call(
            lambda: self._send(body, request.generation.stop),
            request.item_id, request.turn, request.seed,
        )  # fmt: skip

    def _body(self, request: GenerateRequest) -> dict[str, Any]:
        generation = request.generation
        system = [m for m in request.messages if m.role == "system"]
        body: dict[str, Any] = {
            "model": self._model,
            "max_tokens": generation.max_tokens,
            "messages": [_message(m) for m in request.messages if m.role != "system"],
        }
        # The package knows these no longer, since newer models take none; older ones still do.
        drawing = {"temperature": 1 if self._thinking else generation.temperature}
        if generation.top_p < 1:  # both at once are refused
            drawing["top_p"] = generation.top_p
        body["extra_body"] = {k: v for k, v in drawing.items() if k not in self._omit}
        if system:
            body["system"] = [part for m in system for part in _parts(m)]
        # The service takes no stop string of blanks only; all of them are enforced by `cut`.
        if stops := [s for s in generation.stop if s.strip()][:4]:
            body["stop_sequences"] = stops
        if self._thinking:
            body["thinking"] = {"type": "enabled", "budget_tokens": self._thinking}
            # The budget is part of max_tokens there (and only temperature 1 is taken).
            body["max_tokens"] += self._thinking
        return body

    def _send(self, body: dict[str, Any], stop: Sequence[str]) -> Output:
        sdk = self._sdk
        try:
            with self._clients.lend() as client:
                reply = client.messages.create(**body)
        except sdk.APIStatusError as error:
            said = error.response.text
            headers = error.response.headers
            return self.caller.refuse(error.status_code, headers, said, self._key_env)
        except sdk.APIConnectionError as error:
            cause = error.__cause__ or error
            unreached = type(cause).__name__ in ("ConnectError", "ConnectTimeout")
            text = f"{type(cause).__name__}: {cause}"
            raise TransientError(text, unreached=unreached) from error
        except (sdk.APIError, ValueError) as error:  # a body that is no JSON
            raise TransientError(f"{type(error).__name__}: {error}") from error
        check_model(
            self.caller, self._model, getattr(reply, "model", None), any_model=self._any_model
        )
        return self._read(reply, stop, body["max_tokens"])

    def _read(self, reply: Any, stop: Sequence[str], most: int) -> Output:
        try:
            blocks = list(reply.content)
            text = "".join(b.text for b in blocks if b.type == "text")
            thinking = "".join(b.thinking for b in blocks if b.type == "thinking")
        except (AttributeError, TypeError) as error:
            raise TransientError(f"the reply is not in Anthropic's form: {error!r}") from error
        usage = getattr(reply, "usage", None)
        details = getattr(usage, "output_tokens_details", None)
        kept, stopped = cut(text, stop)
        read = Usage(*whole(
            _tokens_in(usage), getattr(usage, "output_tokens", None),
            getattr(details, "thinking_tokens", None),
        ))  # fmt: skip
        known = "stop" if stopped else _FINISH.get(reply.stop_reason)
        return Output(
            text=kept,
            finish_reason=why_ended(self.caller, known, read, most),
            usage=read,
            reasoning=thinking or None,
        )


def load(spec: ModelSpec, options: LoadOptions) -> Anthropic:
    """Make a Claude model from its SPEC; nothing is called yet.

    ``anthropic:NAME``; the key is read from ``$ANTHROPIC_API_KEY`` (or ``key_env``). Options:
    ``thinking=N`` (tokens to think with, beyond the answer's limit), ``omit=temperature`` (for models
    that take none), ``any_model=1``, ``base_url``. The service takes no seed.

    Raises
    ------
    UsageError
        Unknown option, bad address, no key.
    MissingPackageError
        The package is not installed.
    """
    return Anthropic(spec, options)


def _budget(text: str | None, where: str) -> int:
    if text is None:
        return 0
    if not text.isdecimal() or int(text) < 1024:
        raise UsageError(f"{where}: thinking={text} must be a number of tokens, 1024 or more")
    return int(text)


def _tokens_in(usage: Any) -> int | None:
    """All that was read: the service counts what came from its cache apart."""
    counted: int | None = getattr(usage, "input_tokens", None)
    if counted is None:
        return None
    cached = ("cache_creation_input_tokens", "cache_read_input_tokens")
    return counted + sum(getattr(usage, name, None) or 0 for name in cached)


def _message(message: Message) -> dict[str, Any]:
    role = "assistant" if message.role == "assistant" else "user"
    return {"role": role, "content": _parts(message)}


def _parts(message: Message) -> list[dict[str, Any]]:
    if isinstance(message.content, str):
        return [{"type": "text", "text": message.content}]
    return [_part(part) for part in message.content]


def _part(part: TextPart | ImagePart | AudioPart) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, AudioPart):
        raise UsageError("backend anthropic takes no sound: use gemini or openai")
    kind, data = media(part)
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}
