"""Any server that speaks OpenAI's HTTP form: hosted models, vLLM, llama.cpp, SGLang and others."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import httpx

from harness.backends.base import Capability, LoadOptions, ModelIdentity, plain_text
from harness.backends.catalogue import CAPABILITIES
from harness.backends.http import (
    CONNECT_TIMEOUT_S,
    MOST_BYTES,
    Caller,
    Lender,
    TransientError,
    base_url,
    is_local,
    media,
    read_key,
)
from harness.backends.stops import cut
from harness.core.errors import HarnessError, UsageError
from harness.core.spec import ModelSpec, only
from harness.core.types import (
    AudioPart,
    ChoiceRequest,
    FinishReason,
    GenerateRequest,
    Generation,
    ImagePart,
    Message,
    Output,
    TextPart,
    Usage,
)

DEFAULT_URL = "https://api.openai.com/v1"
KEY_ENV = "OPENAI_API_KEY"
STOPS_SENT = 4  # OpenAI takes no more; all of them are enforced here
_OPTIONS = {
    "base_url", "api", "key_env", "any_model", "logprobs", "omit", "max_tokens_field",
    "reasoning_effort",
}  # fmt: skip
_OURS = {"model", "messages", "prompt", "stream", "n"}
_FINISH: dict[object, FinishReason] = {
    "stop": "stop", "eos": "stop", "eos_token": "stop", "stop_sequence": "stop",
    "length": "length", "max_tokens": "length", "content_filter": "content_filter",
    "tool_calls": "tool_calls", "function_call": "tool_calls",
}  # fmt: skip
_BROKEN = {"abort", "error", "cancelled", "insufficient_system_resource"}


class OpenAI:
    """A model behind an OpenAI-style server; see `load` for its SPEC."""

    is_baseline = False
    batch_size = 1
    context_length = None
    backend = "openai"
    default_url: ClassVar[str] = DEFAULT_URL
    default_api = "chat"
    start_hint = ""
    capabilities: frozenset[Capability] = CAPABILITIES["openai"]

    def __init__(self, spec: ModelSpec, options: LoadOptions) -> None:
        self._where = f"{spec.backend}:{spec.name}"
        extras = {k for k in spec.args if k.startswith("body.")}
        only(spec.args, _OPTIONS | extras, self._where)
        self.url = base_url(spec, self.default_url)
        self.api = spec.args.get("api", self.default_api)
        if self.api not in ("chat", "completions"):
            raise UsageError(f"{self._where}: api={self.api} must be chat or completions")
        key, self._key_env = read_key(spec, KEY_ENV, self.url)
        self.identity = model_identity(spec, base_url=self.url, api=self.api)
        self._model = spec.name
        self._any_model = spec.args.get("any_model") == "1"
        self._logprobs = spec.args.get("logprobs") == "1"
        self._limit_field = spec.args.get("max_tokens_field", "max_tokens")
        self._omit = set(filter(None, spec.args.get("omit", "").split(",")))
        self._extras = _extras(spec)
        if self._logprobs:
            self.capabilities |= {"token_logprobs"}
        hint = self.start_hint.format(name=spec.name)
        self.caller = Caller(f"{self._where} at {self.url}", key, options, hint)
        self.max_connections = self.caller.max_connections
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._ssl = httpx.create_ssl_context()  # costs more than all else of a client
        self._clients = Lender(self._client, httpx.Client.close)

    def _client(self) -> httpx.Client:
        return httpx.Client(
            headers=self._headers,
            timeout=httpx.Timeout(self.caller.timeout, connect=CONNECT_TIMEOUT_S),
            verify=self._ssl,
            trust_env=not is_local(self.url),  # no proxy on the way to this machine
        )

    def generate(self, requests: Sequence[GenerateRequest]) -> list[Output]:
        """Ask for each text, one after the other; the runner calls from several threads."""
        return [self._generate(request) for request in requests]

    def loglikelihood(self, requests: Sequence[ChoiceRequest]) -> list[Output]:
        """Refuse: these servers give no log-probability of a given text."""
        raise UsageError(f"{self._where} cannot give the log-probability of a given continuation")

    def describe(self) -> dict[str, Any]:
        """Say which server and how it is asked; the key is nowhere."""
        return {
            "backend": self.backend, "base_url": self.url, "api": self.api,
            "httpx": httpx.__version__, "max_connections": self.max_connections,
            "timeout_s": self.caller.timeout,
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
        path = "/chat/completions" if self.api == "chat" else "/completions"

        def send() -> Output:
            reply = self._post(path, body)
            if isinstance(reply, Output):
                return reply
            output = self._read(reply, request.generation)
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
        except ValueError as error:
            raise TransientError(f"the reply is no JSON: {error}") from error
        if not isinstance(reply, dict) or not reply.get("choices"):
            raise TransientError(
                f"the reply holds no choices: {raw[:200].decode(errors='replace')}"
            )
        self._check_model(reply.get("model"))
        return reply

    def _check_model(self, answered: object) -> None:
        check_model(self.caller, self._model, answered, any_model=self._any_model)

    def _read(self, reply: Mapping[str, Any], generation: Generation) -> Output:
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
            finish = why_ended(self.caller, _FINISH.get(said), usage, generation.max_tokens)
            kept, stopped = cut(text, generation.stop)
            if stopped:
                finish = "stop"
            elif message.get("refusal"):
                finish = "content_filter"
            output = Output(
                text=kept,
                finish_reason=finish,
                usage=usage,
                reasoning=reasoning if isinstance(reasoning, str) else None,
            )
            output.token_logprobs = _logprobs(choice.get("logprobs"), len(kept))
        except (AttributeError, IndexError, KeyError, TypeError) as error:
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


def model_identity(spec: ModelSpec, **fixed: str) -> ModelIdentity:
    """Give the identity of a model behind HTTP: all of its options but where the key is found."""
    args = {k: v for k, v in spec.args.items() if k != "key_env"} | fixed
    return ModelIdentity(
        backend=spec.backend, name=spec.name, revision=spec.revision or "", args=args
    )


def check_model(caller: Caller, asked: str, answered: object, *, any_model: bool) -> None:
    """Count in whose name an answer came; refuse one of another model.

    ``NAME-…``, ``NAME:…`` and ``NAME@…`` are releases of the one that was asked for; ``gpt-4o`` is
    none of ``gpt-4``.

    Raises
    ------
    HarnessError
        Another model answered and `any_model` does not allow it.
    """
    if not isinstance(answered, str) or not answered:
        return
    caller.count(f"answered as {caller.clean(answered)}")
    same = answered == asked or answered.startswith((f"{asked}-", f"{asked}:", f"{asked}@"))
    if not any_model and not same:
        raise HarnessError(
            f"{caller.where} answered as {caller.clean(answered)!r}; if that is the model you mean, "
            "name it so, or add any_model=1 to the SPEC"
        )


def why_ended(caller: Caller, known: FinishReason | None, usage: Usage, most: int) -> FinishReason:
    """Say why an answer ended; where the server's word is missing or unknown, by its length.

    A cut answer must not pass for a whole one.
    """
    if known is not None:
        return known
    caller.count("finish_reason missing or unknown")
    return "length" if usage.tokens_out is not None and usage.tokens_out >= most else "stop"


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


def whole(*counts: object) -> Iterable[int | None]:
    """Give counts that are whole numbers, None for anything else."""
    return (c if isinstance(c, int) and not isinstance(c, bool) else None for c in counts)


def _message(message: Message) -> dict[str, Any]:
    if isinstance(message.content, str):
        return {"role": message.role, "content": message.content}
    return {"role": message.role, "content": [_part(part) for part in message.content]}


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
