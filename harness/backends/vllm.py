"""vLLM's own server: completions in OpenAI's form, and log-probabilities of given continuations.

It is reached where ``base_url`` says, or started here (`harness.backends.vllm_server`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from harness.backends.base import Capability, LoadOptions, ModelIdentity, plain_text
from harness.backends.catalogue import CAPABILITIES
from harness.backends.http import Caller, TransientError
from harness.backends.openai import OpenAI, read_usage
from harness.backends.vllm_server import OWN, VllmServer, files_hash
from harness.core.errors import HarnessError, UsageError
from harness.core.spec import ModelSpec
from harness.core.types import ChoiceRequest, GenerateRequest, Output, Usage


class Vllm(OpenAI):
    """A model that a vLLM server holds; see `load` for its SPEC."""

    backend = "vllm"
    default_url = "http://127.0.0.1:8000/v1"
    default_api = "completions"
    start_hint = (
        "start one with: python -m vllm.entrypoints.openai.api_server --model {name} (or leave "
        "base_url out, and one is started for the run)"
    )
    capabilities: frozenset[Capability] = CAPABILITIES["vllm"]

    def __init__(self, spec: ModelSpec, options: LoadOptions) -> None:
        mine = {k for k in spec.args if k in OWN or k.startswith("serve.")}
        self.server: VllmServer | None = None
        if "base_url" not in spec.args:
            if "key_env" in spec.args:
                raise UsageError(f"vllm:{spec.name}: key_env goes with base_url; leave it")
            self.server = VllmServer(spec, options)
        elif mine:
            raise UsageError(
                f"vllm:{spec.name}: {min(mine)} is for a server that is started here; leave it or "
                "base_url out"
            )
        rest = {k: v for k, v in spec.args.items() if k not in mine}
        super().__init__(msgspec.structs.replace(spec, args=rest), options)
        if self.api == "chat":
            self.capabilities -= {"loglikelihood"}
        if self.server is not None:
            self._belong_to(self.server, spec, options)

    def _belong_to(self, server: VllmServer, spec: ModelSpec, options: LoadOptions) -> None:
        self._headers = {"Authorization": f"Bearer {server.key}"}
        self.caller = Caller(self._where, server.key, options)
        self.context_length = server.context_length
        told = {k: v for k, v in spec.args.items() if k not in OWN}
        self.identity = ModelIdentity(
            backend=spec.backend, name=spec.name, revision=spec.revision or "",
            dtype="" if server.dtype == "auto" else server.dtype, args=told | {"api": self.api},
        )  # fmt: skip

    def generate(self, requests: Sequence[GenerateRequest]) -> list[Output]:
        """Ask for each text; the first call starts the server where that is ours to do."""
        self._start()
        return super().generate(requests)

    def loglikelihood(self, requests: Sequence[ChoiceRequest]) -> list[Output]:
        """Let the server echo context and continuation, and add up what the latter's tokens get."""
        self._start()
        return [self._compare(request) for request in requests]

    def describe(self) -> dict[str, Any]:
        """Say which server and how it is asked; the key is nowhere."""
        said = super().describe()
        if self.server is not None:
            del said["base_url"]  # a port that was free
            said |= {"server": "vllm serve, started by harness", "dtype": self.server.dtype,
                     "serve": self.server.passed}  # fmt: skip
        return said

    def close(self) -> None:
        """End all connections, and the server if it is ours."""
        super().close()
        if self.server is not None:
            self.server.close()

    def _start(self) -> None:
        if self.server is None:
            return
        started = self.server.start()
        self.url = f"{self.server.url}/v1"  # by every thread: another's start may be news to it
        if started:
            self.caller.count(f"started vLLM {self.server.version}")

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
        def send() -> Output:
            reply = self._echo(context + ending)
            if isinstance(reply, Output):
                return reply
            try:
                value = sum_after(reply, len(context), len(context) + len(ending))
                if value is None:
                    value = self._sum_by_count(reply, context)
            except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
                raise TransientError(f"the reply is not in vLLM's form: {error!r}") from error
            if value is None:
                raise HarnessError(
                    f"{self._where} gives no log-probabilities of the prompt (echo with logprobs); "
                    "use --solver generate"
                )
            return Output(text="", choice_logprobs=(value,), usage=read_usage(reply.get("usage")))

        return self.caller.call(send, request.item_id, number, request.seed)

    def _echo(self, prompt: str) -> dict[str, Any] | Output:
        # One token is drawn and left out: not every server takes max_tokens=0.
        body: dict[str, Any] = {
            "model": self._model, "prompt": prompt, "echo": True, "logprobs": 1,
            "max_tokens": 1, "temperature": 0,
        }  # fmt: skip
        return self._post("/completions", body | self._extras)

    def _sum_by_count(self, reply: Mapping[str, Any], context: str) -> float | None:
        """Tell option from context by the number of tokens, where the tokens do not spell it.

        Some tokenizers lose the blank in front when a token is written alone. It costs one more
        request.
        """
        whole = _prompt_tokens(reply)
        head = self._echo(context) if whole and context else {}
        if isinstance(head, Output):
            raise TransientError(f"the context alone was refused: {head.error}")
        n = len(_prompt_tokens(head)) if head else 1  # an empty context is BOS alone
        values = [value for _, value in whole[n:] or whole[-1:]]
        return None if not values or None in values else sum(v for v in values if v is not None)


def sum_after(reply: Mapping[str, Any], begin: int, end: int) -> float | None:
    """Add up the log-probabilities of an echoed prompt's last tokens, from a character on.

    The server's offsets count what it puts in front (BOS) and lose count in letters of several
    tokens, so the tokens are walked through from the end of the prompt.

    Parameters
    ----------
    reply : mapping
        A completion of one token with ``echo`` and ``logprobs``; the drawn token is left out.
    begin, end : int
        Where the continuation begins in the prompt, and where it and the prompt end. A token that
        lies across `begin` is counted.

    Returns
    -------
    float or None
        Natural log; None when there are no log-probabilities or the tokens do not spell the text.

    Examples
    --------
    >>> given = {"tokens": ["<s>", "2+2=", "4", "5"], "token_logprobs": [None, -1.0, -0.5, -3.0]}
    >>> sum_after({"choices": [{"text": "2+2=45", "logprobs": given}]}, 4, 5)
    -0.5
    """
    tokens = _prompt_tokens(reply)
    at, length = len(tokens), 0
    while at and length < end - begin:
        at -= 1
        length += len(tokens[at][0])
    while at and not tokens[at - 1][0]:
        at -= 1  # of a letter of several tokens the last one bears it, the others are empty
    said = "".join(token for token, _ in tokens[at:])
    if not said.endswith(reply["choices"][0].get("text", said)[begin:end]):
        return None
    values = [value for _, value in tokens[at:]]
    return None if not values or None in values else sum(v for v in values if v is not None)


def _prompt_tokens(reply: Mapping[str, Any]) -> list[tuple[str, float | None]]:
    """Give the tokens of an echoed prompt with their log-probabilities; none if it has none."""
    given = reply["choices"][0].get("logprobs")
    if not given or not given.get("token_logprobs"):
        return []
    try:
        return list(zip(given["tokens"], given["token_logprobs"], strict=True))[:-1]
    except (KeyError, TypeError, ValueError) as error:
        raise TransientError(f"the log-probabilities are unreadable: {error!r}") from error


def preview(spec: ModelSpec, options: LoadOptions) -> Vllm:
    """Check options, folder and program; starts nothing and hashes no weights.

    Raises
    ------
    UsageError
        As of `load`.
    MissingPackageError
        As of `load`.
    """
    return Vllm(spec, options)


def load(spec: ModelSpec, options: LoadOptions) -> Vllm:
    """Make a model on a vLLM server from its SPEC; nothing is called yet.

    ``vllm:NAME?base_url=http://127.0.0.1:8000/v1`` reaches a server; ``vllm:FOLDER`` and
    ``vllm:NAME`` (of the model hub's cache) start one at the first question. ``serve.OPTION=VALUE``
    is an option of ``vllm serve`` (``serve.max-model-len=2048``; on and off for switches),
    ``dtype=fp32|bf16|fp16``, ``start_timeout=SECONDS``. Other options as of
    `harness.backends.openai`.

    Raises
    ------
    UsageError
        Unknown option, bad address, no such folder, no key for a server elsewhere.
    MissingPackageError
        A server is to be started and vLLM is not installed.
    """
    model = Vllm(spec, options)
    if model.server is not None and model.server.folder is not None:
        revision = files_hash(model.server.folder)
        model.identity = msgspec.structs.replace(model.identity, revision=revision)
    return model
