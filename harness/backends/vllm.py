"""vLLM's own server: completions in OpenAI's form, and log-probabilities of given continuations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.backends.base import Capability, LoadOptions, plain_text
from harness.backends.catalogue import CAPABILITIES
from harness.backends.http import TransientError
from harness.backends.openai import OpenAI, read_usage
from harness.core.errors import HarnessError
from harness.core.spec import ModelSpec
from harness.core.types import ChoiceRequest, Output, Usage


class Vllm(OpenAI):
    """A model that a vLLM server holds; see `load` for its SPEC."""

    backend = "vllm"
    default_url = "http://127.0.0.1:8000/v1"
    default_api = "completions"
    start_hint = "start one with: python -m vllm.entrypoints.openai.api_server --model {name}"
    capabilities: frozenset[Capability] = CAPABILITIES["vllm"]

    def __init__(self, spec: ModelSpec, options: LoadOptions) -> None:
        super().__init__(spec, options)
        if self.api == "chat":
            self.capabilities -= {"loglikelihood"}

    def loglikelihood(self, requests: Sequence[ChoiceRequest]) -> list[Output]:
        """Let the server echo context and continuation, and add up what the latter's tokens get."""
        return [self._compare(request) for request in requests]

    def _compare(self, request: ChoiceRequest) -> Output:
        prompt = plain_text(request.messages)
        # As lm-eval splits: blanks at the end of the context belong to the continuation's token.
        context = prompt.rstrip()
        blanks = prompt[len(context) :]
        logprobs: list[float] = []
        usages: list[Usage] = []
        for number, continuation in enumerate(request.continuations):
            output = self._score(context, blanks + continuation, request, number)
            if output.choice_logprobs is None:
                return output  # nothing is known of an item of which one option failed
            logprobs += output.choice_logprobs
            usages.append(output.usage)
        counts = [usage.tokens_in for usage in usages]
        total = None if None in counts else sum(c for c in counts if c is not None)
        return Output(
            text="", choice_logprobs=tuple(logprobs), prompt=prompt, usage=Usage(total, 0)
        )

    def _score(self, context: str, ending: str, request: ChoiceRequest, number: int) -> Output:
        # One token is drawn and left out: not every server takes max_tokens=0.
        body: dict[str, Any] = {
            "model": self._model, "prompt": context + ending, "echo": True, "logprobs": 1,
            "max_tokens": 1, "temperature": 0,
        }  # fmt: skip

        def send() -> Output:
            reply = self._post("/completions", body | self._extras)
            if isinstance(reply, Output):
                return reply
            value = sum_after(reply, len(context), len(context) + len(ending))
            if value is None:
                raise HarnessError(
                    f"{self._where} gives no log-probabilities of the prompt (echo with logprobs); "
                    "use --solver generate"
                )
            return Output(text="", choice_logprobs=(value,), usage=read_usage(reply.get("usage")))

        return self.caller.call(send, request.item_id, number, request.seed)


def sum_after(reply: Mapping[str, Any], begin: int, end: int) -> float | None:
    """Add up the log-probabilities of the tokens of an echoed text between two characters.

    Parameters
    ----------
    reply : mapping
        A completion with ``echo`` and ``logprobs``.
    begin, end : int
        Where the continuation begins and ends. A token that lies across `begin` is counted.

    Returns
    -------
    float or None
        Natural log; None when the server gave no log-probabilities.

    Examples
    --------
    >>> given = {"tokens": ["2+2=", "4", "5"], "token_logprobs": [None, -0.5, -3.0],
    ...          "text_offset": [0, 4, 5]}
    >>> sum_after({"choices": [{"text": "2+2=45", "logprobs": given}]}, 4, 5)
    -0.5
    """
    given = reply["choices"][0].get("logprobs")
    if not given or not given.get("token_logprobs"):
        return None
    try:
        values = [
            value
            for token, value, at in zip(
                given["tokens"], given["token_logprobs"], given["text_offset"], strict=True
            )
            if at < end and at + len(token) > begin
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise TransientError(f"the log-probabilities are unreadable: {error!r}") from error
    return None if not values or None in values else float(sum(values))


def load(spec: ModelSpec, options: LoadOptions) -> Vllm:
    """Make a model on a vLLM server from its SPEC; nothing is called yet.

    ``vllm:NAME?base_url=http://127.0.0.1:8000/v1``; other options as of `harness.backends.openai`.

    Raises
    ------
    UsageError
        Unknown option, bad address, no key for a server elsewhere.
    """
    return Vllm(spec, options)
