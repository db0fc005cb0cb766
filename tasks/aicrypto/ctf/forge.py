"""Make an instance of an own challenge, and take it only when our own solution has broken it.

`make_instance` does the work. `forge` does it in a process of its own: the lattice library takes over
signal handlers and is not made for threads, and a run must not wait for arithmetic.
"""

from __future__ import annotations

import base64
import functools
import importlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from harness.core.errors import HarnessError
from tasks.aicrypto.ctf.draw import Draw, flag_of
from tasks.aicrypto.ctf.families.base import Made
from tasks.aicrypto.ctf.families.catalogue import ITEMS, Item
from tasks.aicrypto.ctf.solutions.tube import Tube

TRIES = 20
"""Instances that are made of one draw before it is given up."""
TIME_S = 300
"""The limit that a challenge's config names, as most of upstream's do."""
_FORGE_S = 120.0
_RUBBISH = ("", "0", "1", "flag", "help", "00" * 16, "ff" * 32, "\x00~", "{}", "admin", "1,1", "-1")

Connect = Callable[[], Tube]


class Instance(Struct, frozen=True, kw_only=True):
    """A challenge as one attempt meets it.

    Attributes
    ----------
    item_id : str
    flag : str
    public, server : dict of str to bytes
        See `Made`.
    config : dict
        In the fields of upstream's ``config.yaml``.
    tries : int
        How many were made until one was taken.
    """

    item_id: str
    flag: str
    public: dict[str, bytes]
    server: dict[str, bytes]
    config: dict[str, str | int]
    tries: int


class NotSolvableError(HarnessError):
    """No instance of a draw was broken by our own solution: a fault of the family."""


def make_instance(item_id: str, draw: int, epoch: int = 0) -> Instance:
    """Make the instance of an item that a draw and a repeat give.

    Parameters
    ----------
    item_id : str
        Of `ITEMS`.
    draw : int
        The run's seed; the same draw gives the same files, byte for byte.
    epoch : int
        The repeat, from 0: numbers and flag are new in each.

    Returns
    -------
    Instance

    Raises
    ------
    NotSolvableError
        After `TRIES` instances of which none was taken, with why the last was not.
    """
    item = ITEMS[item_id]
    flag = flag_of(draw, item_id, epoch)
    fault = ""
    for number in range(TRIES):
        stream = Draw(item_id, draw, epoch, number)
        made = item.family.make(stream, item.level, item.kind, flag)
        found = fault_of(item, made, flag)
        if found is None:
            return Instance(
                item_id=item_id, flag=flag, public=made.public, server=made.server,
                config=_config(item, flag), tries=number + 1,
            )  # fmt: skip
        fault = found
    raise NotSolvableError(f"{item_id}: no instance of draw {draw} was taken: {fault}")


def _config(item: Item, flag: str) -> dict[str, str | int]:
    return {
        "category": item.family.folder.split("-", 1)[1],
        "flag": flag,
        "from": "own",
        "name": item.item_id.removeprefix("own-ctf-"),
        "time": TIME_S,
        "type": item.kind,
    }


def fault_of(item: Item, made: Made, flag: str) -> str | None:
    """Say why an instance is not taken, or None.

    It must hold its flag in no public file, have a server where it is to have one that does not
    give the flag for rubbish, and be broken by our own solution, which sees nothing but the public
    files and the server.
    """
    for name, data in made.public.items():
        if any(form in data for form in _forms(flag)):
            return f"public file {name} holds the flag"
    if bool(made.server) != (item.kind == "dynamic"):
        return "a server is there, or missing, against its kind"
    if made.server and flag in _rubbish_said(made.server):
        return "the server gives the flag to anyone"
    try:
        with _connections(made.server) as connect:
            answer = solution(item.family.name)(made.public, connect)
    except Exception as error:  # noqa: BLE001  whatever it is, the instance is not taken
        return f"the solution failed: {type(error).__name__}: {error}"
    return None if answer == flag else f"the solution found {answer!r}"


def solution(family: str) -> Callable[[Mapping[str, bytes], Connect], str]:
    """Give our own solution of a family."""
    module = importlib.import_module(f"tasks.aicrypto.ctf.solutions.{family}")
    solve: Callable[[Mapping[str, bytes], Connect], str] = module.solve
    return solve


def _forms(flag: str) -> tuple[bytes, ...]:
    raw = flag.encode()
    inner = raw[len("flag{") : -1]
    number = str(int.from_bytes(raw, "big")).encode()
    return inner, inner.hex().encode(), base64.b64encode(raw).rstrip(b"="), number


@contextmanager
def _connections(server: Mapping[str, bytes]) -> Iterator[Connect]:
    """Serve a challenge here: every connection is a process with pipes in place of the socket."""
    processes: list[subprocess.Popen[bytes]] = []

    def connect() -> Tube:
        if not server:
            raise ConnectionRefusedError("a static challenge has no server")
        process = subprocess.Popen(
            _PROGRAM, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=_ENVIRONMENT,
        )  # fmt: skip
        processes.append(process)
        assert process.stdin is not None
        assert process.stdout is not None
        return Tube(process.stdout, process.stdin)

    with _folder(server) as folder:
        try:
            yield connect
        finally:
            for process in processes:
                process.kill()
                with suppress(OSError, ValueError):  # its end is closed, or nobody read on
                    process.communicate()


def _rubbish_said(server: Mapping[str, bytes]) -> str:
    """Give all that a server says to somebody who has no idea."""
    with _folder(server) as folder:
        done = subprocess.run(
            _PROGRAM, cwd=folder, input="\n".join(_RUBBISH).encode() + b"\n", env=_ENVIRONMENT,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=_FORGE_S, check=False,
        )  # fmt: skip
    return done.stdout.decode(errors="replace")


_PROGRAM = [sys.executable, "-I", "main.py"]
_ENVIRONMENT = {"PYTHONUNBUFFERED": "1"}


@contextmanager
def _folder(files: Mapping[str, bytes]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, data in files.items():
            (folder / name).write_bytes(data)
        yield folder


@functools.lru_cache(maxsize=128)
def forge(item_id: str, draw: int, epoch: int = 0) -> Instance:
    """Make an instance as `make_instance` does, in a process of its own.

    Raises
    ------
    HarnessError
        A package is missing (with the command that installs it), no instance was taken, or it
        took too long.
    """
    command = [sys.executable, "-P", "-m", __name__, item_id, str(draw), str(epoch)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_FORGE_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise HarnessError(f"{item_id}: no instance was made in {_FORGE_S:g} s") from error
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        raise HarnessError(f"{item_id}: cannot make the challenge: {lines[-1]}")
    return msgspec.json.decode(done.stdout, type=Instance)


def main(argv: list[str]) -> int:
    """Make one instance and write it to standard output as JSON (bytes as base64)."""
    item_id, draw, epoch = argv[0], int(argv[1]), int(argv[2])
    try:
        instance = make_instance(item_id, draw, epoch)
    except ImportError as error:
        print(f"{error}: pip install 'bridge-harness[ctf]'", file=sys.stderr)
        return 1
    except NotSolvableError as error:
        print(error, file=sys.stderr)
        return 1
    sys.stdout.buffer.write(msgspec.json.encode(instance))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
