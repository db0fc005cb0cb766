"""Any server that speaks OpenAI's HTTP form: hosted models, vLLM, llama.cpp, SGLang and others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx

from harness.backends.base import LoadOptions, plain_text
from harness.backends.catalogue import CAPABILITIES
from harness.backends.http import (
    CONNECT_TIMEOUT_S,
    MOST_BYTES,
    Lender,
    TransientError,
    is_local,
    media,
)
from harness.backends.remote import Remote, whole
from harness.backends.stops import cut
from harness.backends.tools import read_calls, sent_arguments
from harness.core.errors import UsageError
from harness.core.spec import ModelSpec
from harness.core.types import (
    AudioPart,
    FinishReason,
    GenerateRequest,
    ImagePart,
    Message,
    Output,
    TextPart,
    Tool,
    Usage,
)

STOPS_SENT = 4  # OpenAI takes no more; all of them are enforced here
_OPTIONS = frozenset({"api", "logprobs", "max_tokens_field", "reasoning_effort"})
_OURS = {"model", "messages", "prompt", "stream", "n", "tools"}
# How servers name the thoughts before a tool call; DeepSeek refuses a conversation without them.
_THOUGHTS = ("reasoning_content", "reasoning", "reasoning_details")
_FINISH: dict[object, FinishReason] = {
    "stop": "stop", "eos": "stop", "eos_token": "stop", "stop_sequence": "stop",
    "length": "length", "max_tokens": "length", "content_filter": "content_filter",
    "tool_calls": "tool_calls", "function_call": "tool_calls",
}  # fmt: skip
_BROKEN = {"abort", "error", "cancelled", "insufficient_system_resource"}


class OpenAI(Remote):
    """A model behind an OpenAI-style server; see `load` for its SPEC."""

    backend = "openai"
    default_url = "https://api.openai.com/v1"
    key_env = "OPENAI_API_KEY"
    default_api = "chat"
    start_hint = ""
    capabilities = CAPABILITIES["openai"]

    def __init__(self, spec: ModelSpec, options: LoadOptions) -> None:
        extras = {k for k in spec.args if k.startswith("body.")}
        self.api = spec.args.get("api", self.default_api)
        if self.api not in ("chat", "completions"):
            raise UsageError(
                f"{spec.backend}:{spec.name}: api={self.api} must be chat or completions"
            )
        hint = self.start_hint.format(name=spec.name)
        super().__init__(spec, options, _OPTIONS | extras, hint, api=self.api)
        self._logprobs = spec.args.get("logprobs") == "1"
        self._limit_field = spec.args.get("max_tokens_field", "max_tokens")
        self._extras = _extras(spec)
        if self._logprobs:
            self.capabilities |= {"token_logprobs"}
        if self.api == "completions":
            self.capabilities -= {"tools"}
        self._headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        self._ssl = httpx.create_ssl_context()  # costs more than all else of a client
        self._clients = Lender(self._client, httpx.Client.close)

    def _client(self) -> httpx.Client:
        return httpx.Client(
            headers=self._headers,
            timeout=httpx.Timeout(self.caller.timeout, connect=CONNECT_TIMEOUT_S),
            verify=self._ssl,
            trust_env=not is_local(self.url),  # no proxy on the way to this machine
        )

    def describe(self) -> dict[str, Any]:
        """Say which server and how it is asked; the key is nowhere."""
        return super().describe() | {"api": self.api, "httpx": httpx.__version__}

    def close(self) -> None:
        """End all connections, those that wait for an answer too."""
        super().close()
        self._clients.close()

    def _generate(self, request: GenerateRequest) -> Output:
        body = self._body(request)
        path = "/chat/completions" if self.api == "chat" else "/completions"

        def send() -> Output:
            reply = self._post(path, body)
            if isinstance(reply, Output):
                return reply
            output = self._read(reply, request)
            if self.api == "completions":
                output.prompt = body["prompt"]
            return output

        return self.caller.call(send, request.item_id, request.turn, request.seed)

    def _body(self, request: GenerateRequest) -> dict[str, Any]:
        generation = request.generation
        body: dict[str, Any] = {
            "model": self._model,
            "temperature": generation.temperature,
            "top_p": generation.top_p,
            self._limit_field: generation.max_tokens,
            "seed": request.seed % 2**31,  # some servers hold it in 32 bits
        }
        if generation.stop:
            body["stop"] = [s for s in generation.stop if s][:STOPS_SENT]
        if self.api == "chat":
            body["messages"] = [_message(m) for m in request.messages]
            if request.tools:  # an empty list is refused
                body["tools"] = [_tool(tool) for tool in request.tools]
        elif request.tools or any(m.tool_calls or m.tool_call_id for m in request.messages):
            raise UsageError(f"{self._where} takes tools with api=chat only")
        else:
            body["prompt"] = plain_text(request.messages)
        if self._logprobs:
            body["logprobs"] = True if self.api == "chat" else 1
        body = {k: v for k, v in body.items() if k not in self._omit}
        return body | self._extras

    def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any] | Output:
        """Send once; give the reply, or the output that a refusal amounts to."""
        deadline = self.caller.clock() + self.caller.timeout
        try:
            with (
                self._clients.lend() as client,
                client.stream(
                    "POST", self.url + path, json=body, extensions={"trace": self.caller.trace}
                ) as response,
            ):
                chunks = []
                size = 0
                for chunk in response.iter_bytes():
                    chunks.append(chunk)
                    size += len(chunk)
                    # A read times out only when nothing at all comes; a drip would go on for ever.
                    if self.caller.clock() > deadline or size > MOST_BYTES:
                        raise TransientError(f"the reply did not end ({size} bytes so far)")
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise TransientError(f"{type(error).__name__}: {error}", unreached=True) from error
        except httpx.RequestError as error:
            raise TransientError(f"{type(error).__name__}: {error}") from error
        raw = b"".join(chunks)
        if response.status_code != 200:
            said = raw.decode(errors="replace")
            return self.caller.refuse(response.status_code, response.headers, said, self._key_env)
        try:
            reply = json.loads(raw)
            if b"\\ud" in raw.lower():  # half a character could not be sent back in a later turn
                reply = json.loads(json.dumps(reply, ensure_ascii=False).encode(errors="replace"))
        except (ValueError, RecursionError) as error:
            raise TransientError(f"the reply is no JSON: {error}") from error
        if not isinstance(reply, dict) or not reply.get("choices"):
            # Cleaned before it is cut: half a key would not be known as one.
            said = self.caller.clean(raw.decode(errors="replace"))[:200]
            raise TransientError(f"the reply holds no choices: {said}")
        self._check_model(reply.get("model"))
        return reply

    def _read(self, reply: Mapping[str, Any], request: GenerateRequest) -> Output:
        """Make an output of a reply in chat or completions form."""
        try:
            choice = reply["choices"][0]
            message = choice["message"] if self.api == "chat" else choice
            text = (message.get("content") if self.api == "chat" else message["text"]) or ""
            reasoning = message.get("reasoning_content") or message.get("reasoning")
            usage = read_usage(reply.get("usage"))
            said = choice.get("finish_reason")
            if said in _BROKEN:
                raise TransientError(f"the server gave up: finish_reason {said}")
            kept, stopped = cut(text, request.generation.stop)
            calls = () if stopped else read_calls(_calls(message), request.turn)
            limit = request.generation.max_tokens
            finish = self._why_ended(_FINISH.get(said), usage, limit, called=bool(calls))
            if stopped:
                finish = "stop"
            elif message.get("refusal"):
                finish = "content_filter"
            output = Output(
                text=kept,
                finish_reason=finish,
                usage=usage,
                reasoning=reasoning if isinstance(reasoning, str) else None,
                tool_calls=calls,
                native=_thoughts(message) if calls else None,
            )
            output.token_logprobs = _logprobs(choice.get("logprobs"), len(kept))
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise TransientError(f"the reply is not in OpenAI's form: {error!r}") from error
        return output


def load(spec: ModelSpec, options: LoadOptions) -> OpenAI:
    """Make a model behind an OpenAI-style server from its SPEC; nothing is called yet.

    ``openai:NAME?base_url=…&api=chat|completions``. The key is read from ``$OPENAI_API_KEY``, or
    from the variable that ``key_env`` names; a server on this machine needs none. Further options:
    ``reasoning_effort=…`` and ``body.KEY=VALUE`` are sent along (VALUE as JSON where it is JSON);
    ``max_tokens_field=max_completion_tokens`` and ``omit=temperature,seed`` for models that refuse
    the usual fields; ``logprobs=1`` asks for token log-probabilities; ``any_model=1`` accepts
    answers in another model's name.

    Raises
    ------
    UsageError
        Unknown option, bad address, no key.
    """
    return OpenAI(spec, options)


def read_usage(usage: object) -> Usage:
    """Read OpenAI's token counts; what is not said is None, never an estimate.

    Examples
    --------
    >>> read_usage({"prompt_tokens": 3, "completion_tokens": 2})
    Usage(tokens_in=3, tokens_out=2, tokens_reasoning=None)
    >>> read_usage(None)
    Usage(tokens_in=None, tokens_out=None, tokens_reasoning=None)
    """
    if not isinstance(usage, dict):
        return Usage()
    details = usage.get("completion_tokens_details")
    reasoning = details.get("reasoning_tokens") if isinstance(details, dict) else None
    return Usage(*whole(usage.get("prompt_tokens"), usage.get("completion_tokens"), reasoning))


def _message(message: Message) -> dict[str, Any]:
    content: object = message.content
    if not isinstance(message.content, str):
        content = [_part(part) for part in message.content]
    made = {"role": message.role, "content": content}
    if message.tool_call_id is not None:
        made["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        made["content"] = content or None
        made["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {
                "name": call.name,
                "arguments": json.dumps(sent_arguments(call), ensure_ascii=False),
            }}
            for call in message.tool_calls
        ]  # fmt: skip
    return made | (json.loads(message.native) if message.native else {})


def _tool(tool: Tool) -> dict[str, Any]:
    about = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": about}


def _calls(message: Mapping[str, Any]) -> list[tuple[object, object, object]]:
    return [
        (call.get("id"), call["function"].get("name"), call["function"].get("arguments"))
        for call in message.get("tool_calls") or ()
    ]


def _thoughts(message: Mapping[str, Any]) -> str | None:
    """Keep the thoughts in the server's own fields, empty ones too."""
    kept = {name: message[name] for name in _THOUGHTS if message.get(name) is not None}
    return json.dumps(kept, ensure_ascii=False) if kept else None


def _part(part: TextPart | ImagePart | AudioPart) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, ImagePart) and part.source.startswith(("http://", "https://")):
        return {"type": "image_url", "image_url": {"url": part.source}}
    kind, data = media(part)
    if isinstance(part, ImagePart):
        return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}}
    sound = {"audio/mpeg": "mp3", "audio/x-wav": "wav", "audio/wave": "wav"}.get(kind)
    return {
        "type": "input_audio",
        "input_audio": {"data": data, "format": sound or kind.removeprefix("audio/")},
    }


def _extras(spec: ModelSpec) -> dict[str, Any]:
    extras: dict[str, Any] = {}
    for name, text in spec.args.items():
        if not name.startswith("body."):
            continue
        key = name.removeprefix("body.")
        if key in _OURS:
            raise UsageError(f"{spec.backend}:{spec.name}: {name} is ours to set")
        try:
            extras[key] = json.loads(text)
        except ValueError:
            extras[key] = text
    if effort := spec.args.get("reasoning_effort"):
        extras["reasoning_effort"] = effort
    return extras


def _logprobs(given: object, length: int) -> tuple[float, ...] | None:
    """Read the log-probability of each token that begins within the text kept."""
    if not isinstance(given, dict):
        return None
    if isinstance(given.get("content"), list):  # chat
        pairs = [(one["token"], one["logprob"]) for one in given["content"]]
    elif isinstance(given.get("token_logprobs"), list):  # completions
        pairs = list(zip(given["tokens"], given["token_logprobs"], strict=True))
    else:
        return None
    kept = []
    at = 0
    for token, logprob in pairs:
        if at >= length or logprob is None:
            break
        kept.append(float(logprob))
        at += len(token)
    return tuple(kept)
