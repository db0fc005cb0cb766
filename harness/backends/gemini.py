"""Gemini models through Google's own package; retries, rate and faults are ours."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from harness.backends.base import LoadOptions
from harness.backends.catalogue import CAPABILITIES
from harness.backends.http import TransientError, is_local, media
from harness.backends.remote import Remote, whole
from harness.backends.stops import cut
from harness.backends.tools import answered_call, given_id, read_calls, sent_arguments
from harness.core.errors import MissingPackageError, UsageError
from harness.core.spec import ModelSpec
from harness.core.types import (
    FinishReason,
    GenerateRequest,
    Message,
    Output,
    TextPart,
    Usage,
    text_of,
)

INSTALL = "pip install -e '.[gemini]' (in the checkout)"
_REFUSED = (
    "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "MODEL_ARMOR",
)  # fmt: skip
_FINISH: dict[object, FinishReason] = {
    "STOP": "stop", "MAX_TOKENS": "length", **dict.fromkeys(_REFUSED, "content_filter"),
}  # fmt: skip
# Calls that the service could not read, or of no tool that was offered; the package leaves out
# what the model wrote.
_BAD_CALL = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL")


class Gemini(Remote):
    """A Gemini model; see `load` for its SPEC."""

    backend = "gemini"
    default_url = "https://generativelanguage.googleapis.com"
    key_env = "GEMINI_API_KEY"
    capabilities = CAPABILITIES["gemini"]

    def __init__(self, spec: ModelSpec, options: LoadOptions) -> None:
        try:
            import httpx2
            from google import genai
            from google.genai import errors, types
        except ImportError as error:
            raise MissingPackageError("backend gemini", "google-genai", INSTALL) from error
        super().__init__(spec, options, frozenset({"thinking"}))
        self._thinking = _budget(spec.args.get("thinking"), self._where)
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
            api_key=self._key or "none",
            vertexai=False,
            http_options=types.HttpOptions(
                base_url=self.url,
                timeout=round(self.caller.timeout * 1000),  # milliseconds there
                retry_options=types.HttpRetryOptions(attempts=1),
                httpx_client=self._http,
            ),
        )

    def describe(self) -> dict[str, Any]:
        """Say which service and package; the key is nowhere."""
        return super().describe() | {"google-genai": self._version}

    def close(self) -> None:
        """End all connections, those that wait for an answer too."""
        super().close()
        self._http.close()

    def _generate(self, request: GenerateRequest) -> Output:
        contents = self._contents([m for m in request.messages if m.role != "system"])
        config = self._config(request)
        return self.caller.call(
            lambda: self._send(contents, config, request),
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
        if request.tools:
            offered = [
                self._types.FunctionDeclaration(
                    name=t.name, description=t.description, parameters_json_schema=t.parameters
                )
                for t in request.tools
            ]
            fields["tools"] = [self._types.Tool(function_declarations=offered)]
        kept = {k: v for k, v in fields.items() if k not in self._omit}
        return self._types.GenerateContentConfig(**kept)

    def _contents(self, messages: Sequence[Message]) -> list[Any]:
        """Write turns; all results of one turn's calls go into one turn."""
        turns: list[Any] = []
        for role, group in groupby(enumerate(messages), key=lambda pair: pair[1].role):
            if role == "tool":
                results = [self._result(messages, at) for at, _ in group]
                turns.append(self._types.Content(role="user", parts=results))
            else:
                turns += [self._content(message) for _, message in group]
        return turns

    def _result(self, messages: Sequence[Message], at: int) -> Any:
        call = answered_call(messages, at)
        answer = self._types.FunctionResponse(
            id=given_id(call.id), name=call.name, response={"output": text_of(messages[at])}
        )
        return self._types.Part(function_response=answer)

    def _content(self, message: Message) -> Any:
        content = self._types.Content
        if message.native:
            return content.model_validate_json(message.native)
        role = "model" if message.role == "assistant" else "user"
        if not message.tool_calls:
            return content(role=role, parts=self._parts(message))
        calls = [
            self._types.Part(function_call=self._types.FunctionCall(
                id=given_id(call.id), name=call.name, args=sent_arguments(call)
            ))
            for call in message.tool_calls
        ]  # fmt: skip
        return content(role=role, parts=(self._parts(message) if message.content else []) + calls)

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

    def _send(self, contents: list[Any], config: Any, request: GenerateRequest) -> Output:
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
        self._check_model(reply.model_version)
        return self._read(reply, request, config.max_output_tokens)

    def _read(self, reply: Any, request: GenerateRequest, most: int) -> Output:
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
        found = [(c.id, c.name, c.args) for p in parts if (c := p.function_call)]
        kept, stopped = cut(text, request.generation.stop)
        calls = () if stopped else read_calls(found, request.turn)
        why = getattr(candidate.finish_reason, "name", None)
        known = "stop" if stopped else _FINISH.get(why)
        output = Output(
            text=kept,
            usage=read,
            reasoning=thinking or None,
            tool_calls=calls,
            # As it came: thoughts are signed, and calls without their signature are refused.
            native=candidate.content.model_dump_json(exclude_none=True) if calls else None,
        )
        if why in _BAD_CALL and not stopped:
            output.finish_reason, output.error_kind = "error", "model"
            output.error = f"the model's tool call cannot be used: {why}"
        else:
            output.finish_reason = self._why_ended(known, read, most, called=bool(calls))
        return output


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
