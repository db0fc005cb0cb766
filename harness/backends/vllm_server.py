"""A vLLM server of our own: started at the first question, ended with the backend or with us."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import msgspec

from harness.backends.base import LoadOptions
from harness.core.errors import HarnessError, MissingPackageError, UsageError, unknown
from harness.core.resources import expanded, fetched
from harness.core.spec import ModelSpec

GRACE_S = 20.0  # between SIGTERM and SIGKILL
START_S = 900.0  # large weights from a network disk take their time
NOTE_S = 30.0
OWN = frozenset({"dtype", "start_timeout"})
_DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
_OURS = {
    "host", "port", "uds", "api-key", "model", "served-model-name", "revision", "dtype", "config",
    "root-path", "ssl-keyfile", "ssl-certfile", "headless", "hf-token",  # a command line can be read
}  # fmt: skip
_INSTALL = (
    "pip install vllm (in an environment of its own whose bin folder is then put on PATH), or give "
    "base_url=http://…/v1 of a running server"
)
# (EngineCore pid=7) ERROR 11-30 20:30:53 [core.py:1510] ValueError: what went wrong
_PREFIX = re.compile(r"^(\([^)]*\) )?([A-Z]+ \d\d-\d\d \d\d:\d\d:\d\d \[[^\]]*\] )?")
_RAISED = re.compile(r"^[\w.]*(Error|Exception): \S")


class VllmServer:
    """``vllm serve`` in a process group of its own, on a free port of 127.0.0.1.

    Parameters
    ----------
    spec : ModelSpec
        ``vllm:NAME`` or ``vllm:FOLDER``, with ``dtype``, ``start_timeout`` and ``serve.…``.
    options : LoadOptions

    Attributes
    ----------
    folder : Path or None
        Where the weights lie, when that is known.
    key : str
        Made anew for each server: others on this machine must not be able to use it.
    dtype : str
        As vLLM calls it; ``auto`` when it is vLLM's to choose.
    passed : dict
        What is handed on to ``vllm serve``, name to value.
    version : str or None
        vLLM's, known once it runs.

    Raises
    ------
    UsageError
        An option that cannot be, or a folder that holds no model.
    MissingPackageError
        There is no program `vllm`.
    """

    def __init__(self, spec: ModelSpec, options: LoadOptions) -> None:
        self.name = spec.name
        self.where = f"{spec.backend}:{spec.name}"
        self.dtype = _dtype(spec, options)
        self.passed = _passed(spec)
        self.timeout = _seconds(spec)
        self.folder = _folder(spec)
        self.revision = spec.revision
        self.program = _program()
        self.key = secrets.token_hex(24)
        self.url = ""
        self.version: str | None = None
        self._log = Path()
        self._guard: subprocess.Popen[bytes] | None = None
        self._failure: HarnessError | None = None
        self._starting = threading.Lock()  # held for as long as it takes
        self._changing = threading.Lock()  # held for moments, so that closing need not wait
        self._closed = threading.Event()

    @property
    def context_length(self) -> int | None:
        """Positions, as far as they are known before the server runs."""
        if (told := self.passed.get("max-model-len", "")).isdecimal():
            return int(told)
        if self.folder is None:
            return None
        with contextlib.suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode((self.folder / "config.json").read_bytes(), type=_Config
                                       ).max_position_embeddings  # fmt: skip
        return None

    def start(self) -> bool:
        """Be running: start if needed, and wait. Several threads may ask; one does it.

        Returns
        -------
        bool
            True for the one that started it.

        Raises
        ------
        HarnessError
            It did not start, has died since, or serves something else; one line with its log.
        """
        with self._starting:
            if self._failure is not None:
                raise self._failure
            try:
                if self._guard is None:
                    self._launch()
                    self._wait()
                    self._check()
                    return True
                if self._guard.poll() is not None and not self._closed.is_set():
                    raise HarnessError(self._died("ended"))
            except HarnessError as error:
                self._failure = error
                self._end()
                raise
        return False

    def close(self) -> None:
        """Stop the server and all it started; safe to call twice, and while it starts."""
        with self._changing:
            self._closed.set()
            failed = self._guard is None or self._guard.poll() is not None
        self._end()
        if not failed and self._failure is None:
            shutil.rmtree(self._log.parent, ignore_errors=True)

    def arguments(self, port: int) -> list[str]:
        """Give the whole command; the key is not in it, since everyone can read that."""
        # No penalties and cuts of the model's own but what a run asks for, and no line a request.
        extra = {"generation-config": "vllm", "uvicorn-log-level": "warning"} | self.passed
        words = [
            self.program, "serve", str(self.folder or self.name), "--host=127.0.0.1",
            f"--port={port}", f"--served-model-name={self.name}",
        ]  # fmt: skip
        words += [f"--dtype={self.dtype}"] if self.dtype != "auto" else []
        words += [f"--revision={self.revision}"] if self.revision and not self.folder else []
        switches = {"on": "--", "off": "--no-"}
        return words + [
            switches[value] + name if value in switches else f"--{name}={value}"
            for name, value in extra.items()
        ]

    def _launch(self) -> None:
        port = _free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._log = Path(tempfile.mkdtemp(prefix="harness-vllm-")) / "server.log"
        guard = [sys.executable, "-P", "-m", "harness.backends.guard", str(os.getpid())]
        with self._log.open("wb") as log, self._changing:
            if self._closed.is_set():
                raise HarnessError(f"{self.where} is closed")
            self._guard = subprocess.Popen(
                [*guard, str(GRACE_S), *self.arguments(port)], stdin=subprocess.PIPE, stdout=log,
                stderr=subprocess.STDOUT, env=_environment(self.key), start_new_session=True,
            )  # fmt: skip
        _say(f"{self.where}: starting vLLM; its log: {self._log}")

    def _wait(self) -> None:
        assert self._guard is not None
        began = time.monotonic()
        told = 0.0
        while (status := self._get("/health")[0]) != http.HTTPStatus.OK:
            waited = time.monotonic() - began
            if self._closed.is_set():
                raise HarnessError(f"{self.where} was stopped while it started")
            if self._guard.poll() is not None:
                raise HarnessError(self._died("ended before it was ready"))
            if waited > self.timeout:
                answered = f" (it answers HTTP {status})" if status else ""
                raise HarnessError(
                    f"{self.where}: vLLM was not ready after {self.timeout:g} s{answered}; "
                    f"start_timeout=SECONDS in the SPEC gives it longer; {self._last_words()}"
                )
            if waited - told >= NOTE_S:
                told = waited
                _say(f"{self.where}: still starting after {waited:.0f} s")
            self._closed.wait(0.2)
        _say(f"{self.where}: ready after {time.monotonic() - began:.0f} s")

    def _check(self) -> None:
        """See that it is ours and serves the model: another may have been faster at the port."""
        status, body = self._get("/v1/models")
        served = [one.get("id") for one in body.get("data", [])] if status == 200 else []
        if self.name not in served:
            what = f"serves {', '.join(map(str, served))}" if served else f"answers HTTP {status}"
            raise HarnessError(
                f"{self.where}: the server at {self.url} {what} and not {self.name}; "
                f"{self._last_words()}"
            )
        self.version = self._get("/version")[1].get("version")

    def _get(self, path: str) -> tuple[int, dict[str, Any]]:
        """Ask our own server; 0 when it cannot be reached. No proxy is asked."""
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=5)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.key}"})
            reply = connection.getresponse()
            text = reply.read()
        except (OSError, http.client.HTTPException):
            return 0, {}
        finally:
            connection.close()
        with contextlib.suppress(ValueError):
            if isinstance(found := json.loads(text), dict):
                return reply.status, found
        return reply.status, {}

    def _died(self, how: str) -> str:
        assert self._guard is not None
        return (
            f"{self.where}: vLLM {how} (exit code {self._guard.returncode}); {self._last_words()}"
        )

    def _last_words(self) -> str:
        with contextlib.suppress(OSError):
            said = last_words(self._log.read_text(errors="replace")).replace(self.key, "[key]")
            if said:
                return f"the log says: {said} (whole log: {self._log})"
        return f"its log is empty: {self._log}"

    def _end(self) -> None:
        with self._changing:
            guard = self._guard
        if guard is None:
            return
        assert guard.stdin is not None
        with contextlib.suppress(OSError):
            guard.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            guard.wait(GRACE_S + 10.0)


class _Config(msgspec.Struct):
    max_position_embeddings: int | None = None


def last_words(log: str) -> str:
    """Find the line of vLLM's log that says why it ended, without time and process.

    An engine that dies in a process of its own is named last by one that only points to it: then
    the first exception is the cause.

    Examples
    --------
    >>> print(last_words('''INFO 11-30 20:30:51 [a.py:1] loading
    ... (Worker pid=7) ERROR 11-30 20:30:51 [b.py:9] ValueError: no memory
    ... RuntimeError: Engine core initialization failed. See root cause above.
    ... '''))
    ValueError: no memory
    """
    lines = [_PREFIX.sub("", line).strip() for line in log.splitlines()]
    raised = [line for line in lines if _RAISED.match(line)]
    if raised:
        said = raised[0] if "root cause" in raised[-1] else raised[-1]
    else:
        said = next((line for line in reversed(lines) if line), "")
    return said if len(said) <= 400 else said[:399] + "…"


def files_hash(folder: Path) -> str:
    """Hash a model's files: with other weights or another tokenizer it is another model."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.is_file():
            digest.update(path.name.encode())
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def _program() -> str:
    """Find `vllm`: on PATH, or beside our own interpreter when its environment is not activated.

    vLLM settles its own versions of torch and transformers, so it mostly lives in another
    environment than ours; only the program can be reached there, a module could not.
    """
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)])
    found = shutil.which("vllm", path=path)
    if found is None:
        raise MissingPackageError("vllm: without base_url", "the program vllm", _INSTALL)
    return found


def _folder(spec: ModelSpec) -> Path | None:
    if (made := fetched(spec.name, "transformers")) is not None:
        return made
    folder = expanded(spec.name)
    if not folder.is_dir():
        if spec.name.startswith(("/", ".", "~")):
            raise UsageError(f"vllm:{spec.name}: there is no such folder")
        return None  # a name of the model hub, in the hub's cache on this machine
    if not (folder / "config.json").is_file():
        raise UsageError(f"vllm:{spec.name}: the folder has no config.json, so it is no model")
    if spec.revision:
        raise UsageError(f"vllm:{spec.name}@{spec.revision}: a folder has no revisions")
    return folder.resolve()


def _passed(spec: ModelSpec) -> dict[str, str]:
    passed = {}
    for name, value in spec.args.items():
        if not name.startswith("serve."):
            continue
        key = name.removeprefix("serve.").replace("_", "-")
        if key in _OURS:
            raise UsageError(f"vllm:{spec.name}: {name} is ours to set")
        if not re.fullmatch(r"[a-z][a-z0-9.+-]*", key) or not value:
            raise UsageError(
                f"vllm:{spec.name}: write serve.OPTION=VALUE with an option of `vllm serve`, e.g. "
                "serve.max-model-len=2048, and on or off for a switch"
            )
        passed[key] = value
    return passed


def _dtype(spec: ModelSpec, options: LoadOptions) -> str:
    if options.device != "auto":
        raise UsageError(f"--device {options.device}: an installation of vLLM knows one; leave it")
    wanted = spec.args.get("dtype", options.dtype)
    known = {"auto", *_DTYPES, *_DTYPES.values()}
    if wanted not in known:
        raise unknown("dtype", wanted, known)
    return _DTYPES.get(wanted, wanted)


def _seconds(spec: ModelSpec) -> float:
    text = spec.args.get("start_timeout", str(START_S))
    if not re.fullmatch(r"\d+(\.\d+)?", text) or float(text) <= 0:
        raise UsageError(f"start_timeout={text} must be a number of seconds")
    return float(text)


def _environment(key: str) -> dict[str, str]:
    # Nothing is downloaded during a run, unless HF_HUB_OFFLINE=0 says that it may.
    offline = {"HF_HUB_OFFLINE": "1"}
    quiet = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    return offline | dict(os.environ) | quiet | {"VLLM_API_KEY": key}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
