"""The turns of an attempt, as `harness show sample` prints them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec


def print_transcript(events: Iterable[Mapping[str, Any]]) -> None:
    """Print what the model said, what its tools gave back and what it was told, in order.

    Parameters
    ----------
    events : iterable of mapping
        Rows with `kind` and `json`, as `harness.store.queries.sample` gives them.
    """
    for event in events:
        data = msgspec.json.decode(event["json"]) if event["json"] else {}
        heading, lines = _shown(event["kind"], data)
        print(f"── {heading} " + "─" * max(0, 70 - len(heading)))
        for line in lines:
            print(line)


def _shown(kind: str, data: dict[str, Any]) -> tuple[str, list[str]]:
    turn = data.get("turn", 0) + 1 if isinstance(data.get("turn"), int) else ""
    if kind == "model_call":
        tokens = data.get("tokens_out")
        facts = [data.get("finish_reason"), f"{tokens} tokens" if tokens is not None else None]
        calls = [_call(call) for call in data.get("tool_calls") or ()]
        return f"turn {turn}: model ({_joined(facts)})", [_text(data.get("text")), *calls]
    if kind == "tool_call":
        call, peak = data.get("call") or {}, data.get("peak_bytes")
        facts = [
            data.get("status"), data.get("reason"), _seconds(data.get("wall_s"), "s"),
            _seconds(data.get("cpu_s"), "CPU s"), f"{peak / 2**20:.0f} MiB" if peak else None,
        ]  # fmt: skip
        heading = f"turn {turn}: {call.get('name')} ({_joined(facts)})"
        return heading, [_call(call), "→", _text(data.get("text"))]
    if kind == "told":
        return f"turn {turn}: told", [_text(data.get("text"))]
    return kind, [msgspec.json.encode(data).decode()]


def _call(call: Mapping[str, Any]) -> str:
    """Write a call with its arguments, long ones below it."""
    arguments = call.get("arguments")
    if not isinstance(arguments, dict):
        return f"{call.get('name')}: {_text(arguments)}"
    return "\n".join([f"{call.get('name')}:", *(f"{k} = {_text(v)}" for k, v in arguments.items())])


def _text(value: Any) -> str:
    """Give a text without what would steer a terminal."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return "".join(c if c in "\n\t" or c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def _seconds(value: float | None, unit: str) -> str | None:
    return None if value is None else f"{value:.2f} {unit}"


def _joined(facts: Iterable[str | None]) -> str:
    return ", ".join(fact for fact in facts if fact)
