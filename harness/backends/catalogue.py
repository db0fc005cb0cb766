"""The backends that come with the project, and what each can do."""

from __future__ import annotations

from harness.backends.base import Capability
from harness.core.registry import Entry, Need

_HF = "pip install -e '.[hf]' (in the checkout)"

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
)

CAPABILITIES: dict[str, frozenset[Capability]] = {
    "mock": frozenset({"generate", "samples", "loglikelihood"}),
    "hf": frozenset({"generate", "samples", "token_logprobs", "loglikelihood"}),
}
