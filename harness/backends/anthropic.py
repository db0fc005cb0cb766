"""Claude models through Anthropic's own package; retries, rate and faults are ours."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from harness.backends.base import LoadOptions
from harness.backends.catalogue import CAPABILITIES
from harness.backends.http import CONNECT_TIMEOUT_S, Lender, TransientError, is_local, media
from harness.backends.remote import Remote, whole
from harness.backends.stops import cut
from harness.backends.tools import read_calls, sent_arguments
from harness.core.errors import MissingPackageError, UsageError
from harness.core.spec import ModelSpec
from harness.core.types import (
    AudioPart,
    FinishReason,
    GenerateRequest,
    ImagePart,
    Message,
    Output,
    TextPart,
    Usage,
)

INSTALL = "pip install -e '.[anthropic]' (in the checkout)"
_FINISH: dict[object, FinishReason] = {
    "end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "refusal": "content_filter",
    "model_context_window_exceeded": "length", "tool_use": "tool_calls", "pause_turn": "length",
}  # fmt: skip


class Anthropic(Remote):
    """A Claude model; see `load` for its SPEC."""

    backend = "anthropic"
    default_url = "https://api.anthropic.com"
    key_env = "ANTHROPIC_API_KEY"
    capabilities = CAPABILITIES["anthropic"]

    def __init__(self, spec: ModelSpec, options: LoadOptions) -> None:
        try:
            import anthropic
            import httpx2
        except ImportError as error:
            raise MissingPackageError("backend anthropic", "anthropic", INSTALL) from error
        super().__init__(spec, options, frozenset({"thinking"}))
        self._thinking = _budget(spec.args.get("thinking"), self._where)
        self._sdk = anthropic
        self._web, self._ssl = httpx2, httpx2.create_ssl_context()
        self._clients = Lender(self._client, lambda client: client.close())

    def _client(self) -> Any:
        web = self._web
        return self._sdk.Anthropic(
            api_key=self._key or "none", base_url=self.url, max_retries=0,
            timeout=web.Timeout(self.caller.timeout, connect=CONNECT_TIMEOUT_S),
            http_client=web.Client(
                event_hooks={"request": [self.caller.mark]}, verify=self._ssl,
                trust_env=not is_local(self.url),
            ),
        )  # fmt: skip

    def describe(self) -> dict[str, Any]:
        """Say which service and package; the key is nowhere."""
        return super().describe() | {"anthropic": self._sdk.__version__}

    def close(self) -> None:
        """End all connections, those that wait for an answer too."""
        super().close()
        self._clients.close()

    def _generate(self, request: GenerateRequest) -> Output:
        body = self._body(request)
        return self.caller.call(
            lambda: self._send(body, request), request.item_id, request.turn, request.seed
        )

    def _body(self, request: GenerateRequest) -> dict[str, Any]:
        generation = request.generation
        system = [m for m in request.messages if m.role == "system"]
        body: dict[str, Any] = {
            "model": self._model,
            "max_tokens": generation.max_tokens,
            "messages": _turns([m for m in request.messages if m.role != "system"]),
        }
        if request.tools:
            body["tools"] = [
                {"name": t.name, "description": t.description, "input_schema": t.parameters}
                for t in request.tools
            ]
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

    def _send(self, body: dict[str, Any], request: GenerateRequest) -> Output:
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
        self._check_model(getattr(reply, "model", None))
        return self._read(reply, request, body["max_tokens"])

    def _read(self, reply: Any, request: GenerateRequest, most: int) -> Output:
        try:
            blocks = list(reply.content)
            text = "".join(b.text for b in blocks if b.type == "text")
            thinking = "".join(b.thinking for b in blocks if b.type == "thinking")
            found = [(b.id, b.name, b.input) for b in blocks if b.type == "tool_use"]
        except (AttributeError, TypeError) as error:
            raise TransientError(f"the reply is not in Anthropic's form: {error!r}") from error
        usage = getattr(reply, "usage", None)
        details = getattr(usage, "output_tokens_details", None)
        kept, stopped = cut(text, request.generation.stop)
        calls = () if stopped else read_calls(found, request.turn)
        read = Usage(*whole(
            _tokens_in(usage), getattr(usage, "output_tokens", None),
            getattr(details, "thinking_tokens", None),
        ))  # fmt: skip
        known = "stop" if stopped else _FINISH.get(reply.stop_reason)
        return Output(
            text=kept,
            finish_reason=self._why_ended(known, read, most, called=bool(calls)),
            usage=read,
            reasoning=thinking or None,
            tool_calls=calls,
            native=_blocks(blocks) if calls else None,
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


def _blocks(blocks: Sequence[Any]) -> str:
    """Keep a turn as it came: thoughts are signed, and refused when they are missing or changed."""
    # The service writes empty text at times, but takes none back.
    whole_ones = [b.to_dict() for b in blocks if b.type != "text" or b.text.strip()]
    return json.dumps(whole_ones, ensure_ascii=False)


def _turns(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Write turns; all results of one turn's calls, and what the user adds, go into one turn."""
    turns: list[dict[str, Any]] = []
    after_result = False
    for message in messages:
        content = _content(message)
        if not content:
            continue  # an answer of nothing
        if after_result and message.role != "assistant":
            turns[-1]["content"] += content
        else:
            role = "assistant" if message.role == "assistant" else "user"
            turns.append({"role": role, "content": content})
        after_result = message.role == "tool" or (after_result and message.role == "user")
    return turns


def _content(message: Message) -> list[dict[str, Any]]:
    if message.native:
        blocks: list[dict[str, Any]] = json.loads(message.native)
        return blocks
    parts = _parts(message)
    if message.role == "user":
        return parts
    # Blank text is refused, but models say it and tools give it back.
    parts = [part for part in parts if part["type"] != "text" or part["text"].strip()]
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": message.tool_call_id, "content": parts}]
    return parts + [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": sent_arguments(call)}
        for call in message.tool_calls
    ]


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
