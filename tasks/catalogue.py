"""The tasks that come with the project; `n` counts own items, the ones used without `--data-root`."""

from __future__ import annotations

from harness.core.registry import Entry

TASKS: tuple[Entry, ...] = (
    Entry(
        name="gsm8k",
        target="tasks.gsm8k.task:gsm8k",
        version="1",
        group="gsm8k",
        n=60,
        summary="grade-school word problems, answered by one number",
    ),
    Entry(
        name="aicrypto/mcq",
        target="tasks.aicrypto.mcq:mcq",
        version="1",
        group="aicrypto",
        n=50,
        summary="cryptography as choice questions, one or several options right",
    ),
)
