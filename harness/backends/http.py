"""What all models behind HTTP share: keys, retries, rate, faults, and letting go at once.

A request is tried up to `TRIES` times. What may pass is retried (network faults, 408, 409, 429,
5xx, unreadable replies); any other refusal would meet every item alike and stops the run.
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from harness.backends.base import LoadOptions
from harness.core.errors import HarnessError, UsageError
from harness.core.keys import unit_of
from harness.core.spec import ModelSpec
from harness.core.types import AudioPart, ImagePart, Output

T = TypeVar("T")

TRIES = 8  # about a minute: as long as most services count a rate
TRIES_UNREACHED = 4  # a server that never answered is most likely not there
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0
LONGEST_RETRY_AFTER_S = 300.0  # a server that asks for more is left alone: `resume` goes on later
CONNECTIONS = 16
TIMEOUT_S = 600.0
CONNECT_TIMEOUT_S = 20.0
MOST_BYTES = 64 * 2**20

_LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})
_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context length|prompt is too long|exceeds? the maximum number "
    r"of tokens",
    re.IGNORECASE,
)
_FILTERED = re.compile(r"content_filter|content_policy_violation", re.IGNORECASE)
_NO_MONEY = re.compile(r"insufficient_quota|billing_hard_limit", re.IGNORECASE)


class TransientError(Exception):
    """A try that failed by what may pass.

    Parameters
    ----------
    text : str
        What happened.
    retry_after : float or None
        Seconds that the server asks to wait.
    unreached : bool
        No connection was made at all.
    """

    def __init__(
        self, text: str, retry_after: float | None = None, *, unreached: bool = False
    ) -> None:
        super().__init__(text)
        self.retry_after = retry_after
        self.unreached = unreached


class Caller:
    """Makes the calls of one model: in turn, again after what may pass, and never after `close`.

    Parameters
    ----------
    where : str
        The server, for messages.
    key : str or None
        Taken out of every text that is kept.
    options : LoadOptions
        `max_connections`, `rpm`, `timeout`.
    start_hint : str
        What to do when no server answers.

    Attributes
    ----------
    sleep, clock, now : callable
        How time passes; tests put others in their place.
    seen : Counter
        Calls, retries and the names by which models answered, for the run's journal.
    """

    def __init__(
        self, where: str, key: str | None, options: LoadOptions, start_hint: str = ""
    ) -> None:
        if options.on_long == "truncate":
            raise UsageError(f"{where} cuts no prompts for us: use --on-long error or skip")
        self.where = where
        self._on_long = options.on_long
        self.timeout = options.timeout or TIMEOUT_S
        self.max_connections = options.max_connections or CONNECTIONS
        self.seen: Counter[str] = Counter()
        self._spacing = 60.0 / options.rpm if options.rpm else 0.0
        self._key = key
        self._hint = start_hint or "is the server running, and is base_url right?"
        self._answered = False
        self._next_start = 0.0
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._sockets: set[socket.socket] = set()
        self.sleep: Callable[[float], object] = self._closed.wait
        self.clock: Callable[[], float] = time.monotonic
        self.now: Callable[[], float] = time.time

    def call(self, send: Callable[[], Output], *seed: object) -> Output:
        """Make one call, again after what may pass.

        Parameters
        ----------
        send : callable
            One try; raises `TransientError` for what may pass.
        *seed
            What the jitter is drawn from: the same request waits the same time.

        Returns
        -------
        Output
            The answer, or an error of kind ``network`` when all tries failed.

        Raises
        ------
        HarnessError
            What would meet every request: a refused key, an unknown model, no server at all.
        """
        for attempt in range(1, TRIES + 1):
            self._wait_for_turn()
            if self._closed.is_set():
                return _network("the run was stopped")
            began = self.clock()
            self.count("calls")
            try:
                output = send()
            except TransientError as error:
                fault = error
            else:
                self._answered = True
                output.latency_s = self.clock() - began
                return output
            self._answered |= not fault.unreached
            pause = self._pause(attempt, fault, seed)
            most = TRIES_UNREACHED if fault.unreached and not self._answered else TRIES
            if attempt >= most or pause is None:
                break
            self.count("retries")
            self.sleep(pause)
        text = self.clean(str(fault))
        if fault.unreached and not self._answered and not self._closed.is_set():
            raise HarnessError(f"cannot reach {self.where} ({text}): {self._hint}")
        return _network(f"{text} (after {attempt} {'try' if attempt == 1 else 'tries'})")

    def refuse(self, status: int, headers: Mapping[str, str], body: str, key_env: str) -> Output:
        """Turn a reply that is no answer into what it means.

        Returns
        -------
        Output
            When the refusal is about this request alone: prompt too long, content filter.

        Raises
        ------
        TransientError
            408, 409, 429 and 5xx.
        HarnessError
            Everything else.
        """
        said = self.clean(body)
        if _NO_MONEY.search(body):
            raise HarnessError(f"{self.where}: the account has no credit left ({said})")
        if status in (408, 409, 429) or status >= 500:
            after = retry_after(_header(headers, "retry-after"), self.now())
            raise TransientError(f"HTTP {status}: {said}", after)
        if status == 400 and _FILTERED.search(body):
            return Output(text="", finish_reason="content_filter")
        if status in (400, 413, 422) and _TOO_LONG.search(body):
            skip = self._on_long == "skip"
            return Output(text="", finish_reason="skipped" if skip else "error",
                          error=f"too long: {said}", error_kind="model")  # fmt: skip
        if status in (401, 403):
            raise HarnessError(f"{self.where}: the key in ${key_env} was refused (HTTP {status})")
        if status == 404:
            raise HarnessError(f"{self.where}: no such model or address (HTTP 404): {said}")
        hint = "; omit=FIELD in the SPEC leaves a field out" if status in (400, 422) else ""
        raise HarnessError(f"{self.where} refused the request (HTTP {status}): {said}{hint}")

    def clean(self, text: str) -> str:
        """Make a text fit to be kept: one line, not long, and without the key."""
        if self._key:
            text = text.replace(self._key, "[key]")
        text = " ".join(text.split())
        return text if len(text) <= 300 else text[:299] + "…"

    def count(self, what: str) -> None:
        """Count something for the run's journal."""
        with self._lock:
            self.seen[what] += 1

    def observed(self) -> dict[str, int]:
        """Give what was counted since the last time this was asked."""
        with self._lock:
            seen, self.seen = dict(self.seen), Counter()
        return seen

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Remember each open socket (httpx's `trace` extension calls this)."""
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            opened = info["return_value"].get_extra_info("socket")
            with self._lock:
                self._sockets = {s for s in self._sockets if s.fileno() >= 0} | {opened}

    def mark(self, request: Any) -> None:
        """Let a request of httpx tell `trace` (an event hook for the SDKs' clients)."""
        request.extensions["trace"] = self.trace

    def close(self) -> None:
        """Wake every thread that waits: closing alone does not end a read that another began."""
        self._closed.set()
        with self._lock:
            open_now, self._sockets = self._sockets, set()
        for one in open_now:
            with contextlib.suppress(OSError):
                # Also for TLS the plain way: nothing is left to be said to the server.
                socket.socket.shutdown(one, socket.SHUT_RDWR)

    def _wait_for_turn(self) -> None:
        if not self._spacing:
            return
        with self._lock:
            now = self.clock()
            mine = max(now, self._next_start)
            self._next_start = mine + self._spacing
        if mine > now:
            self.sleep(mine - now)

    def _pause(self, attempt: int, fault: TransientError, seed: tuple[object, ...]) -> float | None:
        """Seconds to wait: doubled each time, half to all of it; None when too long is asked for."""
        jitter = 0.5 + 0.5 * unit_of("pause", attempt, *seed)
        pause = min(FIRST_PAUSE_S * 2.0 ** (attempt - 1), LONGEST_PAUSE_S) * jitter
        if fault.retry_after is None:
            return pause
        if fault.retry_after > LONGEST_RETRY_AFTER_S:
            return None
        # Not all of them at the same instant: the server would refuse all but the first again.
        return fault.retry_after + pause


class Lender(Generic[T]):
    """Lends a client to each request under way; there are never more than requests at once.

    One client for all would do, were its pool not searched through at every request: 2,000 requests
    over 200 connections took 14 s of processor time so, and 1.3 s with a client for each.

    Parameters
    ----------
    make : callable
        Makes a client of one connection.
    close : callable
        Closes one.
    """

    def __init__(self, make: Callable[[], T], close: Callable[[T], object]) -> None:
        self._make = make
        self._close = close
        self._free: deque[T] = deque()
        self._all: deque[T] = deque()

    @contextlib.contextmanager
    def lend(self) -> Iterator[T]:
        """Give a client that nobody else has, the one used last if there is a choice."""
        try:
            client = self._free.pop()
        except IndexError:
            client = self._make()
            self._all.append(client)
        try:
            yield client
        finally:
            self._free.append(client)

    def close(self) -> None:
        """Close all clients."""
        while self._all:
            self._close(self._all.pop())


def _network(text: str) -> Output:
    return Output(text="", finish_reason="error", error=text, error_kind="network")


def _header(headers: Mapping[str, str], name: str) -> str | None:
    return next((value for key, value in headers.items() if key.lower() == name), None)


def retry_after(text: str | None, now: float) -> float | None:
    """Read a ``Retry-After`` header, seconds or a date; None when there is none to be read.

    Parameters
    ----------
    text : str or None
    now : float
        Seconds since 1970.

    Examples
    --------
    >>> retry_after("7", 0.0), retry_after("Thu, 01 Jan 1970 00:01:00 GMT", 50.0)
    (7.0, 10.0)
    >>> retry_after("soon", 0.0) is None
    True
    """
    if text is None:
        return None
    if re.fullmatch(r"\d+(\.\d+)?", text.strip()):
        return float(text)
    try:
        then = parsedate_to_datetime(text)
    except ValueError:
        return None
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return max(0.0, (then - datetime.fromtimestamp(now, UTC)).total_seconds())


def base_url(spec: ModelSpec, default: str) -> str:
    """Give the server's address without a closing slash.

    Raises
    ------
    UsageError
        No address, or one that holds a name, a password or a query: it is stored with the run.
    """
    url = spec.args.get("base_url", default).rstrip("/")
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        fine = False
    if not fine:
        raise UsageError(
            f"{spec.backend}:{spec.name}: base_url must begin with http:// or https://"
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise UsageError(
            f"{spec.backend}:{spec.name}: base_url is stored with the run, so it may hold no name, "
            "password or query; keys come from the environment (?key_env=NAME)"
        )
    return url


def is_local(url: str) -> bool:
    """Tell whether an address is on this machine.

    Examples
    --------
    >>> is_local("http://127.0.0.1:8000/v1"), is_local("http://127.0.0.1.example.org")
    (True, False)
    """
    return urlsplit(url).hostname in _LOCAL


def read_key(spec: ModelSpec, default_env: str, url: str) -> tuple[str | None, str]:
    """Give the key and the name of its variable; local servers need none.

    Raises
    ------
    UsageError
        Not set, or not a key that fits into a header.
    """
    name = spec.args.get("key_env", default_env)
    key = os.environ.get(name, "").strip()
    if not key:
        if is_local(url) and "key_env" not in spec.args:
            return None, name
        raise UsageError(f"{spec.backend}:{spec.name} needs a key: export {name}=…")
    if not re.fullmatch(r"[!-~]+", key):
        raise UsageError(f"${name} holds blanks or letters that no key has: export it anew")
    return key, name


def media(part: ImagePart | AudioPart) -> tuple[str, str]:
    """Give an image's or a sound's media type and base64, read from disk or a ``data:`` address.

    Raises
    ------
    HarnessError
        The file cannot be read.
    """
    if part.source.startswith("data:"):
        head, _, data = part.source.partition(",")
        kind = head.removeprefix("data:").partition(";")[0] or part.media_type
        return kind, data
    try:
        raw = Path(part.source).read_bytes()
    except OSError as error:
        raise HarnessError(f"cannot read {part.source}: {error.strerror}") from error
    return part.media_type, base64.b64encode(raw).decode()
