"""`gguf`: llama.cpp in this process, through xllamacpp; for models quantised to GGUF files.

The server inside answers both by call and over a loopback port with a key of its own. Prompts are
rendered and tokenised over that port and completed by call, as token ids: so the text the model saw
can be recorded, BOS is counted, and what does not fit is noticed before it is asked.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from harness.backends.base import (
    Capability,
    LoadOptions,
    ModelIdentity,
    Preview,
    plain_text,
    require_packages,
)
from harness.backends.catalogue import CAPABILITIES
from harness.backends.gguf_header import Header, read_header
from harness.backends.stops import cut
from harness.core.errors import HarnessError, UsageError, unknown
from harness.core.resources import data_folder, expanded, fetched
from harness.core.spec import ModelSpec, only
from harness.core.types import ChoiceRequest, GenerateRequest, Message, Output, Usage, text_of

_OPTIONS = {"threads", "n_ctx"}
_HEAD = 16
_LONGEST = 8192  # positions by default: the cache of a long context takes memory at once
_MOST_THREADS = 8
_ONE_THREAD_BELOW = 1_000_000_000  # parameters
_SEEDS = 2**32 - 1  # the largest number of 32 bits means "draw one" to llama.cpp


class GgufBackend:
    """A GGUF model held in memory by llama.cpp; see `load`."""

    capabilities: frozenset[Capability] = CAPABILITIES["gguf"]
    is_baseline = False

    def __init__(self, spec: ModelSpec, options: LoadOptions) -> None:
        self._path = _file(spec)
        self._header = read_header(self._path)
        self._options = options
        self._templated = _use_template(self._header, options, spec.name)
        self.threads = _threads(spec, self._header)
        self.context_length: int | None = _context(spec, self._header)
        self.batch_size = options.batch_size or 1
        sha256 = _sha256(self._path)
        if spec.revision and not sha256.startswith(spec.revision):
            raise UsageError(
                f"gguf:{spec.name}@{spec.revision}: the file's sha256 is {sha256[:16]}…; "
                "the revision of a GGUF file is the beginning of its sha256"
            )
        self.identity = _identity(spec, self._path, self._header, sha256[:16])
        self._key = secrets.token_hex(16)
        self._server: Any = self._start()
        # xllamacpp's server waits for ever when it is closed before its loop has begun to turn, and
        # an answer is the one sign that it has.
        self._complete(prompt=self.encode("a"), n_predict=1, max_tokens=1, temperature=0.0)

    def _start(self) -> Any:
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(self._path)
        params.n_ctx = self.context_length
        params.n_parallel = 1
        params.cpuparams.n_threads = self.threads
        params.cpuparams_batch.n_threads = self.threads
        params.n_gpu_layers = 0
        params.warmup = False
        params.verbosity = 0
        params.api_keys = [self._key]
        params.endpoint_slots = False
        try:
            return xllamacpp.Server(params)
        except RuntimeError as error:
            raise UsageError(
                f"llama.cpp cannot load {self._path}: the file is torn, its architecture "
                f"({self._header.architecture}) is not known, or memory is short"
            ) from error

    def generate(self, requests: Sequence[GenerateRequest]) -> list[Output]:
        """Generate one after the other; an answer depends on its own request alone."""
        return [self._generate(request) for request in requests]

    def _generate(self, request: GenerateRequest) -> Output:
        generation = request.generation
        text = self.render(request.messages)
        ids, output = self._fit(text, self.encode(text), generation.max_tokens)
        if output.error:
            return output
        reply = self._complete(
            prompt=ids,
            n_predict=generation.max_tokens,
            max_tokens=generation.max_tokens,
            temperature=generation.temperature,
            top_p=generation.top_p,
            seed=request.seed % _SEEDS,
            stop=[stop for stop in generation.stop if stop],
            n_probs=1,
            logprobs=1,
        )
        if "error" in reply:
            return _failed(output, reply)
        choice = reply["choices"][0]
        output.text, stopped = cut(choice["text"], generation.stop)
        output.finish_reason = "stop" if stopped or choice["finish_reason"] == "stop" else "length"
        tokens = (choice.get("logprobs") or {}).get("content", [])
        output.token_logprobs = _logprobs_of(output.text, tokens)
        output.usage = Usage(len(ids), reply["usage"]["completion_tokens"])
        return output

    def loglikelihood(self, requests: Sequence[ChoiceRequest]) -> list[Output]:
        """Read one-token options off the whole distribution of the next token.

        Tokens that all options begin with (the line break after a chat template's last mark) join
        the context: what all options would lose or gain by them is left out.

        Raises
        ------
        UsageError
            An option has several tokens: llama.cpp gives no log-probability of a given text.
        """
        return [self._choose(request) for request in requests]

    def check(self, requests: Iterable[ChoiceRequest]) -> None:
        """Find options that cannot be compared, in a plan and not when their turn comes.

        Raises
        ------
        UsageError
            As of `loglikelihood`, naming item and option.
        """
        for request in requests:
            self._options_of(self.render(request.messages), request)

    def _choose(self, request: ChoiceRequest) -> Output:
        text = self.render(request.messages)
        context, options = self._options_of(text, request)
        ids, output = self._fit(text, context, 1)
        if output.error:
            return output
        reply = self._complete(
            prompt=ids, n_predict=1, max_tokens=1, temperature=0.0,
            n_probs=self._header.vocabulary, logprobs=self._header.vocabulary,
        )  # fmt: skip
        if "error" in reply:
            return _failed(output, reply)
        # By id, not by text: special tokens have none.
        (position,) = reply["choices"][0]["logprobs"]["content"]
        known = {entry["id"]: entry["logprob"] for entry in position["top_logprobs"]}
        output.choice_logprobs = tuple(known[option] for option in options)
        output.choice_greedy = tuple(option == position["id"] for option in options)
        output.usage = Usage(len(ids), 0)
        return output

    def _options_of(self, text: str, request: ChoiceRequest) -> tuple[list[int], list[int]]:
        """Give the context's tokens and the one token of each option."""
        pairs = [self.split(text, continuation) for continuation in request.continuations]
        context, tokens = pairs[0][0], [option for _, option in pairs]
        shared = 0
        while len(tokens) > 1 and len({tuple(option[: shared + 1]) for option in tokens}) == 1:
            shared += 1
            if shared == len(tokens[0]):
                break
        for option, continuation in zip(tokens, request.continuations, strict=True):
            if len(option) - shared != 1:
                raise UsageError(
                    f"gguf:{self.identity.name} compares options of one token only, and "
                    f"{continuation[:40]!r} of item {request.item_id} has {len(option)}; "
                    "use --solver generate, or the hf backend"
                )
        return context + tokens[0][:shared], [option[-1] for option in tokens]

    def render(self, messages: Sequence[Message]) -> str:
        """Write messages as the text the model sees: its chat template, or turns set apart."""
        if self._templated:
            chat = [{"role": m.role, "content": text_of(m)} for m in messages]
            text: str = self._ask("/apply-template", {"messages": chat})["prompt"]
            return text
        return plain_text(messages)

    def encode(self, text: str) -> list[int]:
        """Encode a prompt with at most one BOS, whether template or tokenizer brings it."""
        body = {"content": text, "add_special": True, "parse_special": True}
        ids: list[int] = self._ask("/tokenize", body)["tokens"]
        bos = self._header.bos
        while bos is not None and len(ids) > 1 and ids[0] == ids[1] == bos:
            ids = ids[1:]
        start = bos if bos is not None else self._header.eos
        return ids or [start if start is not None else 0]

    def split(self, context: str, continuation: str) -> tuple[list[int], list[int]]:
        """Split context and continuation into tokens as lm-eval does; see the hf backend."""
        kept = context.rstrip()
        continuation = context[len(kept) :] + continuation
        head = self.encode(kept)
        whole = self.encode(kept + continuation)
        if not kept and whole[:1] != head[:1]:
            return head, whole
        return head, whole[len(head) :] or whole[-1:]

    def describe(self) -> dict[str, Any]:
        """Versions, hardware and conventions behind an answer."""
        import xllamacpp

        template = self._header.chat_template if self._templated else None
        return {
            "xllamacpp": xllamacpp.__version__,
            "device": "cpu",
            "threads": self.threads,
            "architecture": self._header.architecture,
            "params": self._header.parameters,
            "source_weights": self._header.quantisation,
            "context_length": self.context_length,
            "batch_size": self.batch_size,
            "chat_template_sha256": hashlib.sha256(template.encode()).hexdigest()
            if template
            else None,
            "bos": self._header.bos,
            "on_long": self._options.on_long,
            "choices": "one-token options, read off the whole next-token distribution",
        }

    def close(self) -> None:
        """Stop the server and free the weights."""
        self._server = None

    def _complete(self, **body: Any) -> dict[str, Any]:
        """Ask for a completion; only temperature and top-p are left of llama.cpp's samplers.

        `cache_prompt` is off: with it, an answer may depend on what was asked before.
        """
        if self._server is None:
            raise HarnessError(f"gguf:{self.identity.name} is closed")
        plain = {"cache_prompt": False, "samplers": ["temperature", "top_p"], "repeat_penalty": 1.0}
        reply = self._server.handle_completions({**plain, **body})
        answer: dict[str, Any] = json.loads(reply) if isinstance(reply, str | bytes) else reply
        return answer

    def _ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Call the server's loopback port; no proxy of the environment is in the way."""
        if self._server is None:
            raise HarnessError(f"gguf:{self.identity.name} is closed")
        connection = http.client.HTTPConnection(urlsplit(self._server.listening_address).netloc)
        try:
            headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
            connection.request("POST", path, json.dumps(body), headers)
            answer: dict[str, Any] = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        if "error" in answer:
            raise RuntimeError(f"llama.cpp: {answer['error'].get('message', answer['error'])}")
        return answer

    def _fit(self, text: str, ids: list[int], max_tokens: int) -> tuple[list[int], Output]:
        """Make room for at least one new token, by the `--on-long` policy."""
        room = self.context_length
        output = Output(text="", prompt=text)
        if room is not None and len(ids) >= room:
            if self._options.on_long == "truncate":
                keep = max(2, room - max_tokens)
                output.prompt_truncated = len(ids) - keep
                # BOS stays in front: models are lost without it.
                head = ids[:1] if ids[0] == self._header.bos else []
                ids = [*head, *ids[len(ids) - keep + len(head) :]]
            else:
                output.error = (
                    f"the prompt has {len(ids)} tokens, the model holds {room}: see --on-long"
                )
                skip = self._options.on_long == "skip"
                output.finish_reason, output.error_kind = "skipped" if skip else "error", "model"
        output.prompt_token_ids_head = tuple(ids[:_HEAD])
        output.usage = Usage(len(ids))
        return ids, output


class _Unloaded(Preview, kw_only=True):
    spec: ModelSpec
    options: LoadOptions

    def check(self, requests: Iterable[ChoiceRequest]) -> None:
        # Only the loaded model can tell tokens. It costs a start, and is asked only when options
        # are compared in a command of several models, whose first must not run in vain.
        with contextlib.closing(GgufBackend(self.spec, self.options)) as model:
            model.check(requests)


def preview(spec: ModelSpec, options: LoadOptions) -> Preview:
    """Check package, file and options, and read the file's head; loads and hashes no weights."""
    require_packages("gguf")
    path = _file(spec)
    only(spec.args, _OPTIONS, f"gguf:{spec.name}")
    if options.dtype != "auto":
        raise UsageError(f"--dtype {options.dtype}: a GGUF file settles its own numbers; leave it")
    if options.device not in ("auto", "cpu"):
        raise UsageError(f"--device {options.device}: the gguf backend runs on the CPU")
    header = read_header(path)
    _use_template(header, options, spec.name)
    _threads(spec, header)
    return _Unloaded(
        spec=spec,
        options=options,
        identity=_identity(spec, path, header, spec.revision or ""),
        capabilities=GgufBackend.capabilities,
        context_length=_context(spec, header),
    )


def load(spec: ModelSpec, options: LoadOptions) -> GgufBackend:
    """Load ``gguf:smollm2`` or ``gguf:FILE.gguf`` (``?threads=N&n_ctx=N``).

    Raises
    ------
    MissingPackageError
        xllamacpp is not installed.
    UsageError
        No such file, or it is no GGUF file that can be loaded.
    """
    preview(spec, options)
    return GgufBackend(spec, options)


def _file(spec: ModelSpec) -> Path:
    folder = fetched(spec.name, "models")
    if folder is not None:
        found = sorted(folder.glob("*.gguf"))
        if found:
            return found[0]
    path = expanded(spec.name)
    if path.is_file():
        return path.resolve()
    if not path.suffix and path.name == spec.name:
        raise UsageError(
            f"gguf:{spec.name} is not in {data_folder()}: `harness fetch {spec.name}` gets it if "
            "`harness fetch` lists it; or name a file: gguf:FILE.gguf"
        )
    here = [f"gguf:{found}" for found in sorted(path.parent.glob("*.gguf"))]
    raise unknown("model", f"gguf:{spec.name}", here, "or gguf:smollm2, see `harness fetch`")


def _identity(spec: ModelSpec, path: Path, header: Header, revision: str) -> ModelIdentity:
    return ModelIdentity(
        backend="gguf",
        name=path.name if path.suffix and spec.name.endswith(path.suffix) else spec.name,
        revision=revision,
        quantisation=header.quantisation,
        # turns: how they are set apart without a chat template, since answers depend on it
        args={"n_ctx": str(_context(spec, header)), "turns": "2"},
    )


def _context(spec: ModelSpec, header: Header) -> int:
    trained = header.context_length or _LONGEST
    if "n_ctx" not in spec.args:
        return min(trained, _LONGEST)
    wanted = _positive(spec, "n_ctx")
    if wanted > trained:
        raise UsageError(f"n_ctx={wanted}: gguf:{spec.name} was trained for {trained} positions")
    return wanted


def _threads(spec: ModelSpec, header: Header) -> int:
    """Choose llama.cpp's threads: one for a small model, else as many as there are cores.

    Threads wait for each other by spinning. Measured with 135 million parameters on 2 cores: two
    generate 1.4 times as fast as one when the cores are free, 2.8 times as slowly when they are busy.
    """
    if "threads" in spec.args:
        return _positive(spec, "threads")
    if header.parameters < _ONE_THREAD_BELOW:
        return 1
    return min(len(os.sched_getaffinity(0)), _MOST_THREADS)


def _positive(spec: ModelSpec, name: str) -> int:
    text = spec.args[name]
    if not text.isdecimal() or not text.isascii() or int(text) < 1:
        raise UsageError(f"{name}={text} must be a positive whole number")
    return int(text)


def _use_template(header: Header, options: LoadOptions, name: str) -> bool:
    has = bool(header.chat_template)
    if options.chat_template == "on" and not has:
        raise UsageError(f"--chat-template on: gguf:{name} has no chat template; use auto or off")
    return has and options.chat_template != "off"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _failed(output: Output, reply: dict[str, Any]) -> Output:
    output.finish_reason, output.error_kind = "error", "harness"
    output.error = f"llama.cpp: {reply['error'].get('message', reply['error'])}"
    return output


def _logprobs_of(text: str, tokens: Sequence[dict[str, Any]]) -> tuple[float, ...]:
    """Give the log-probabilities of the tokens that the text needs, not of what a stop cut off."""
    wanted, come, kept = len(text.encode()), 0, []
    for token in tokens:
        if come >= wanted:
            break
        come += len(token["bytes"])
        kept.append(float(token["logprob"]))
    return tuple(kept)
