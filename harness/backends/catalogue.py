"""The backends that come with the project, and what each can do."""

from __future__ import annotations

from harness.backends.base import Capability
from harness.core.registry import Entry, Need

_HF = "pip install -e '.[hf]' (in the checkout)"
_GGUF = "pip install -e '.[gguf]' (in the checkout)"
_ANTHROPIC = "pip install -e '.[anthropic]' (in the checkout)"
_GEMINI = "pip install -e '.[gemini]' (in the checkout)"

BACKENDS: tuple[Entry, ...] = (
    Entry(
        name="mock",
        target="harness.backends.mock:load",
        summary="baselines: gold, empty, constant, random, noisy, script",
    ),
    Entry(
        name="hf",
        target="harness.backends.hf:load",
        needs=(Need("package", "torch", _HF), Need("package", "transformers", _HF)),
        summary="transformers on CPU or GPU: hf:tiny, a local folder",
    ),
    Entry(
        name="gguf",
        target="harness.backends.gguf:load",
        needs=(Need("package", "xllamacpp", _GGUF),),
        summary="llama.cpp on CPU: gguf:smollm2, gguf:FILE.gguf",
    ),
    Entry(
        name="openai",
        target="harness.backends.openai:load",
        summary="any OpenAI-style server: openai:NAME?base_url=…",
    ),
    Entry(
        name="anthropic",
        target="harness.backends.anthropic:load",
        needs=(Need("package", "anthropic", _ANTHROPIC),),
        summary="Claude models through Anthropic's package: anthropic:NAME",
    ),
    Entry(
        name="gemini",
        target="harness.backends.gemini:load",
        # `google` is shared by many packages: asked for first, since its child cannot be without it
        needs=(Need("package", "google", _GEMINI), Need("package", "google.genai", _GEMINI)),
        summary="Gemini models through Google's package: gemini:NAME",
    ),
    Entry(
        name="vllm",
        target="harness.backends.vllm:load",
        # No need of `vllm` here: with base_url nothing has to be installed.
        summary="vLLM: vllm:FOLDER starts a server, vllm:NAME?base_url=… reaches one (tested with "
        "0.32.0 on a CPU, never on a GPU)",
    ),
)

CAPABILITIES: dict[str, frozenset[Capability]] = {
    "mock": frozenset({"generate", "samples", "loglikelihood", "tools"}),
    "hf": frozenset({"generate", "samples", "token_logprobs", "loglikelihood"}),
    "gguf": frozenset(
        {"generate", "samples", "token_logprobs", "next_token_full", "loglikelihood"}
    ),
    "openai": frozenset({"generate", "samples", "tools"}),
    "anthropic": frozenset({"generate", "samples", "tools"}),
    "gemini": frozenset({"generate", "samples", "tools"}),
    # either, by the API that is asked: loglikelihood with completions, tools with chat
    "vllm": frozenset({"generate", "samples", "loglikelihood", "tools"}),
}
