"""`hf`: transformers on CPU or GPU. Offline: reads local folders, never the network.

Chat template, BOS and context length are settled here, once, for generation and log-likelihood.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.backends.base import (
    Capability,
    LoadOptions,
    ModelIdentity,
    Preview,
    plain_text,
    require_packages,
)
from harness.backends.catalogue import CAPABILITIES
from harness.core.errors import UsageError, unknown
from harness.core.hub import stay_offline
from harness.core.resources import data, expanded, fetched
from harness.core.spec import ModelSpec, only
from harness.core.types import ChoiceRequest, GenerateRequest, Message, Output, Usage, text_of

if TYPE_CHECKING:
    from harness.backends.hf_packed import Layout, Pair

_SHIPPED = {"tiny": "tiny"}
_DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
_OPTIONS = {"dtype", "device", "threads"}
_HEAD = 16
_CPU_BATCH, _GPU_BATCH = 16, 64
_ONE_THREAD_BELOW = 20_000_000  # parameters


class HfBackend:
    """A causal language model held in memory by transformers; see `load`."""

    capabilities: frozenset[Capability] = CAPABILITIES["hf"]
    is_baseline = False

    def __init__(self, spec: ModelSpec, options: LoadOptions) -> None:
        folder = _folder(spec)
        torch = _torch()
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.device = _device(torch, spec.args.get("device", options.device))
        dtype = _dtype(spec.args.get("dtype", options.dtype), self.device)
        try:
            self.tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            model: Any = AutoModelForCausalLM.from_pretrained(
                folder, dtype=getattr(torch, _DTYPES[dtype]), local_files_only=True
            )
        except Exception as error:  # torn weights or a foreign config may raise anything
            line = (
                str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            )
            raise UsageError(f"cannot load hf:{spec.name} from {folder}: {line}") from error
        self.model = model.to(self.device).eval()
        _set_threads(torch, spec.args.get("threads"), model.num_parameters())
        self.context_length: int | None = getattr(model.config, "max_position_embeddings", None)
        self.batch_size = options.batch_size or (_CPU_BATCH if self.device == "cpu" else _GPU_BATCH)
        self._options = options
        self._templated = _use_template(self.tokenizer, options, spec.name)
        files = _files_hash(folder)
        self.identity = ModelIdentity(
            backend="hf",
            name=spec.name if spec.name in _SHIPPED else folder.name,
            revision=spec.revision or files,
            dtype=dtype,
            args={"files": files, "tokenizer": _tokenizer_hash(self.tokenizer)},
        )

    def generate(self, requests: Sequence[GenerateRequest]) -> list[Output]:
        """Generate for a batch; prompts that do not fit are answered by the `--on-long` policy."""
        from harness.backends.hf_decode import decode

        outputs: list[Output | None] = [None] * len(requests)
        rows: list[tuple[int, list[int], int]] = []
        for i, request in enumerate(requests):
            text = self.render(request.messages)
            ids, dropped, refusal = self._fit(self.encode(text), request.generation.max_tokens)
            outputs[i] = Output(
                text="",
                prompt=text,
                prompt_token_ids_head=tuple(ids[:_HEAD]),
                prompt_truncated=dropped,
                usage=Usage(len(ids)),
            )
            if refusal:
                _refuse(outputs[i], refusal, self._options.on_long)
            else:
                rows.append((i, ids, dropped))
        for same in _by_generation(requests, rows):
            answers = decode(self, [requests[i] for i, _, _ in same], [ids for _, ids, _ in same])
            for (i, ids, _), answer in zip(same, answers, strict=True):
                output = outputs[i]
                assert output is not None
                output.text, output.finish_reason = answer.text, answer.finish_reason
                output.token_logprobs = answer.logprobs
                output.usage = Usage(len(ids), answer.n_tokens)
        return [output for output in outputs if output is not None]

    def loglikelihood(self, requests: Sequence[ChoiceRequest]) -> list[Output]:
        """Sum the log-probability of every continuation; see `hf_packed` for how."""
        from harness.backends.hf_packed import score

        texts = [self.render(request.messages) for request in requests]
        items = self._split_all(
            [(t, r.continuations) for t, r in zip(texts, requests, strict=True)]
        )
        outputs = []
        whole: list[tuple[Output, list[Pair]]] = []
        for text, pairs in zip(texts, items, strict=True):
            fitted, dropped, refusal = self._fit_pairs(pairs)
            output = Output(
                text="",
                prompt=text,
                prompt_token_ids_head=tuple(fitted[0][0][:_HEAD]),
                prompt_truncated=dropped,
                usage=Usage(len(fitted[0][0]), 0),
            )
            if not all(continuation for _, continuation in fitted):
                output.error = "a continuation is empty: there is no token to score"
                output.finish_reason, output.error_kind = "error", "harness"
            elif refusal:
                _refuse(output, refusal, self._options.on_long)
            else:
                whole.append((output, fitted))
            outputs.append(output)
        scores = score(self.model, [pairs for _, pairs in whole], self._layout)
        for (output, _), scored in zip(whole, scores, strict=True):
            output.choice_logprobs = tuple(s.logprob for s in scored)
            output.choice_greedy = tuple(s.greedy for s in scored)
        return outputs

    def loglikelihood_rolling(
        self, texts: Sequence[str], *, add_bos: bool | None = None
    ) -> list[float]:
        """Give log p of whole texts, in nats.

        As in lm-eval: the first token is foretold by BOS (EOS where there is none), and texts longer
        than the context are cut into windows that share one token of context, the last window
        reaching back as far as it can.

        Parameters
        ----------
        texts : sequence of str
        add_bos : bool, optional
            Whether the text's own tokens begin with special tokens. None: as the tokenizer does by
            default, which is lm-eval's default and, where the tokenizer adds a BOS, counts
            log p(BOS | BOS) into the sum. False: the text alone.

        Returns
        -------
        list of float
            Divide by tokens, words or bytes for the usual perplexities; 0 for a text of no tokens.
        """
        from harness.backends.hf_packed import score, windows

        special = {} if add_bos is None else {"add_special_tokens": add_bos}
        items = []
        owners = []
        for i, text in enumerate(texts):
            for pair in windows(self._ids([text], **special)[0], self._prefix, self.context_length):
                items.append([pair])
                owners.append(i)
        sums = [0.0] * len(texts)
        for i, (scored,) in zip(owners, score(self.model, items, self._layout), strict=True):
            sums[i] += scored.logprob
        return sums

    def render(self, messages: Sequence[Message]) -> str:
        """Write messages as the text the model sees: its chat template, or turns set apart."""
        if self._templated:
            chat = [{"role": m.role, "content": text_of(m)} for m in messages]
            text: str = self.tokenizer.apply_chat_template(
                chat, tokenize=False, add_generation_prompt=True
            )
            return text
        return plain_text(messages)

    def encode(self, text: str) -> list[int]:
        """Encode a prompt with at most one BOS, whether template or tokenizer brings it."""
        return self._ids([text])[0] or [self._prefix]

    def split(self, context: str, continuation: str) -> tuple[list[int], list[int]]:
        """Split context and continuation into tokens as lm-eval does.

        Trailing spaces of the context move to the continuation; both are encoded together and cut
        at the length of the context's own encoding, so that a space before the answer cannot shift
        a score. An empty context is BOS (EOS where there is none).
        """
        return self._split_all([(context, (continuation,))])[0][0]

    def _split_all(self, items: Sequence[tuple[str, Sequence[str]]]) -> list[list[Pair]]:
        """Split many contexts with their continuations, tokenised in one go."""
        kept = [context.rstrip() for context, _ in items]
        heads = self._ids(kept)
        wholes = iter(self._ids([context + c for context, cs in items for c in cs]))
        return [
            [self._cut(head, next(wholes)) for _ in continuations]
            for head, (_, continuations) in zip(heads, items, strict=True)
        ]

    def _cut(self, head: list[int], whole: list[int]) -> Pair:
        if whole == head:
            return head or [self._prefix], []
        if not head:
            head = [self._prefix]
            whole = whole if whole[0] == self._prefix else head + whole
        if len(whole) > len(head):
            return head, whole[len(head) :]
        # The whole continuation merged into the last token: that token is what can be scored.
        return whole[:-1] or [self._prefix], whole[-1:]

    def _ids(self, texts: Sequence[str], **options: bool) -> list[list[int]]:
        if not texts:
            return []
        found: list[list[int]] = self.tokenizer(list(texts), **options)["input_ids"]
        bos = self.tokenizer.bos_token_id
        for ids in found:
            while bos is not None and len(ids) > 1 and ids[0] == ids[1] == bos:
                del ids[0]
        return found

    @property
    def _prefix(self) -> int:
        for token in (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id):
            if token is not None:
                return int(token)
        raise UsageError("the tokenizer has neither BOS nor EOS: nothing can stand for no text")

    @cached_property
    def _layout(self) -> Layout:
        from harness.backends.hf_packed import CPU_TOKENS, GPU_TOKENS, Layout, widest_window

        return Layout(
            tokens=CPU_TOKENS if self.device == "cpu" else GPU_TOKENS,
            rows=self._options.batch_size,
            window=widest_window(self.model),
        )

    def describe(self) -> dict[str, Any]:
        """Versions, hardware and conventions behind an answer."""
        import torch
        import transformers

        return {
            "torch": str(torch.__version__),
            "transformers": transformers.__version__,
            "device": self.device,
            "threads": torch.get_num_threads(),
            "params": sum(p.numel() for p in self.model.parameters()),
            "context_length": self.context_length,
            "batch_size": self.batch_size,
            "padding_side": "left",
            "choice_layout": self._layout._asdict(),
            "bos": self.tokenizer.bos_token,
            "chat_template_sha256": _sha(str(self.tokenizer.chat_template))
            if self._templated
            else None,
            "on_long": self._options.on_long,
            "test_model": self.identity.name == "tiny",
        }

    def close(self) -> None:
        """Let the weights go."""
        self.model = None

    def _fit(self, ids: list[int], max_tokens: int) -> tuple[list[int], int, str]:
        """Make room for at least one new token: (ids, tokens dropped, why it is refused or '')."""
        room = self.context_length
        if room is None or len(ids) < room:
            return ids, 0, ""
        if self._options.on_long != "truncate":
            return ids, 0, _too_long(len(ids), room)
        keep = max(1, room - max_tokens)
        return self._last(ids, keep), len(ids) - keep, ""

    def _fit_pairs(self, pairs: list[Pair]) -> tuple[list[Pair], int, str]:
        """Do the same for contexts with continuations, whose last token is never fed in."""
        longest = max(len(context) + len(continuation) - 1 for context, continuation in pairs)
        room = self.context_length
        if room is None or longest <= room:
            return pairs, 0, ""
        over = longest - room
        if self._options.on_long != "truncate" or over >= min(len(c) for c, _ in pairs):
            return pairs, 0, _too_long(longest, room)
        # All options lose the same, so that they are still compared in one context.
        return [(self._last(c, len(c) - over), k) for c, k in pairs], over, ""

    def _last(self, ids: list[int], keep: int) -> list[int]:
        """Keep the last tokens of a prompt, and its BOS in front: models are lost without it."""
        if keep > 1 and ids[0] == self.tokenizer.bos_token_id:
            return [ids[0], *ids[-(keep - 1) :]]
        return ids[-keep:]


def preview(spec: ModelSpec, options: LoadOptions) -> Preview:
    """Check packages, folder and options, and read the context length; loads no weights."""
    require_packages("hf")
    folder = _folder(spec)
    only(spec.args, _OPTIONS, f"hf:{spec.name}")
    dtype = _dtype(spec.args.get("dtype", options.dtype), "cpu")
    try:
        config = msgspec.json.decode((folder / "config.json").read_bytes(), type=_Config)
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(
            f"cannot load hf:{spec.name}: {folder / 'config.json'}: {error}"
        ) from error
    return Preview(
        identity=ModelIdentity(backend="hf", name=spec.name, dtype=dtype),
        capabilities=HfBackend.capabilities,
        context_length=config.max_position_embeddings,
    )


class _Config(msgspec.Struct):
    max_position_embeddings: int | None = None


def load(spec: ModelSpec, options: LoadOptions) -> HfBackend:
    """Load ``hf:tiny`` or ``hf:FOLDER`` (``?dtype=fp32|bf16|fp16&device=cpu|cuda&threads=N``).

    Raises
    ------
    MissingPackageError
        torch or transformers is not installed.
    UsageError
        No such model here, or its folder cannot be read.
    """
    preview(spec, options)
    return HfBackend(spec, options)


def _folder(spec: ModelSpec) -> Path:
    if spec.name in _SHIPPED:
        return data(_SHIPPED[spec.name])
    if (made := fetched(spec.name, "transformers")) is not None:
        return made
    if fetched(spec.name, "models") is not None:
        raise UsageError(
            f"hf:{spec.name} is here as a GGUF file only: `harness fetch {spec.name}` makes the "
            f"form that hf reads (or use gguf:{spec.name})"
        )
    folder = expanded(spec.name)
    if not folder.exists():
        raise unknown(
            "model",
            f"hf:{spec.name}",
            [f"hf:{n}" for n in _SHIPPED],
            "or hf:FOLDER, a local folder; `harness fetch` lists models to get",
        )
    if not (folder / "config.json").is_file():
        raise UsageError(f"hf:{spec.name}: the folder has no config.json, so it is no model")
    return folder.resolve()


def _torch() -> Any:
    stay_offline()
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import torch
    from transformers.utils import logging

    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    return torch


def _set_threads(torch: Any, wanted: str | None, parameters: int) -> None:
    """Choose torch's threads; one is best for a tiny model.

    Its matrix products are so short that threads mostly wait for each other: measured on 2 busy
    cores, two threads took 13 times as long as one.
    """
    if wanted is None:
        if parameters < _ONE_THREAD_BELOW:
            torch.set_num_threads(1)
        return
    if not wanted.isdigit() or int(wanted) < 1:
        raise UsageError(f"threads={wanted} must be a positive whole number")
    torch.set_num_threads(int(wanted))


def _device(torch: Any, wanted: str) -> str:
    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if wanted.startswith("cuda") and not torch.cuda.is_available():
        raise UsageError(f"--device {wanted}: torch sees no GPU here; use --device cpu")
    if wanted.split(":", maxsplit=1)[0] not in ("cpu", "cuda"):
        raise UsageError(f"--device {wanted} is not one of auto, cpu, cuda")
    return wanted


def _dtype(wanted: str, device: str) -> str:
    """Choose the dtype: fp32 on CPU (exact and as fast there), bf16 on GPU."""
    if wanted == "auto":
        return "fp32" if device == "cpu" else "bf16"
    if wanted not in _DTYPES:
        raise unknown("dtype", wanted, _DTYPES)
    return wanted


def _use_template(tokenizer: Any, options: LoadOptions, name: str) -> bool:
    has = bool(getattr(tokenizer, "chat_template", None))
    if options.chat_template == "on" and not has:
        raise UsageError(f"--chat-template on: hf:{name} has no chat template; use auto or off")
    return has and options.chat_template != "off"


def _files_hash(folder: Path) -> str:
    """Hash weights and configuration: a changed file is another model, whatever its name says."""
    digest = hashlib.sha256()
    for pattern in ("*.safetensors", "*.bin", "config.json", "generation_config.json"):
        for path in sorted(folder.glob(pattern)):
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def _tokenizer_hash(tokenizer: Any) -> str:
    """Hash all that turns text into ids and back: merges and templates too, not the words alone."""
    fast = getattr(tokenizer, "backend_tokenizer", None)
    rules = fast.to_str() if fast is not None else sorted(tokenizer.get_vocab().items())
    return _sha(f"{rules}{tokenizer.chat_template}")[:16]


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _too_long(tokens: int, room: int) -> str:
    return f"the prompt has {tokens} tokens, the model holds {room}: see --on-long"


def _refuse(output: Output | None, why: str, policy: str) -> None:
    assert output is not None
    output.error = why
    output.finish_reason = "skipped" if policy == "skip" else "error"
    output.error_kind = "model"


def _by_generation(
    requests: Sequence[GenerateRequest], rows: list[tuple[int, list[int], int]]
) -> list[list[tuple[int, list[int], int]]]:
    """Group rows that are drawn in the same way; within a run that is nearly always all of them."""
    groups: dict[Any, list[tuple[int, list[int], int]]] = {}
    for row in rows:
        groups.setdefault(requests[row[0]].generation, []).append(row)
    return list(groups.values())
