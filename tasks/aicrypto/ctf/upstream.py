"""Challenges in upstream's layout: ``data/CTF/<NN-Category>/<NN-name>/`` with ``config.yaml`` and ``public/``.

A challenge with a server has ``server/`` besides. ``solution/`` is never looked at. What is wrong with one
challenge makes that item unavailable, naming the file, and the others run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from harness.core.errors import HarnessError, MissingPackageError, UsageError
from harness.core.types import Sample
from harness.sandbox import LIMITS, Result, run
from harness.sandbox.files import odd
from harness.sandbox.run import last_line
from tasks.aicrypto.ctf.environment import Challenge

CONFIG = "config.yaml"
TIME_S = 300.0
"""Seconds of a challenge that names none; most of upstream's have this."""
TRIAL_S = 5.0
"""Seconds in which a server's program must have died to be called broken."""
INSTALL = "pip install 'bridge-harness[ctf]'"
INSTALL_SAGE = "pip install 'bridge-harness[sage]'"
_NUMBERED = re.compile(r"\d+-.+")
_YEAR = re.compile(r"(?<!\d)(19|20)\d\d(?!\d)")
_FLAG = re.compile(r"([^{}\s]*)\{.*\}", re.DOTALL)
_NO_INPUT = ("EOFError", "BrokenPipeError")
# Standard input as a connection has it: a socket, open for as long as the program runs.
_WAITING = """\
import os, socket
ours, theirs = socket.socketpair()
ours.set_inheritable(True)
os.dup2(theirs.fileno(), 0)
os.execvp("python", ["python", "main.py"])
"""


class Config(Struct, forbid_unknown_fields=True):
    """A challenge's ``config.yaml``.

    Attributes
    ----------
    category : str
        Spelt in many ways; the folder's name is what counts.
    flag : str
    type : {"static", "dynamic"}
    time : float
        Seconds, for a command; a limit, no human time.
    from_ : str
        Contest and year.
    name : str
    """

    flag: str
    type: Literal["static", "dynamic"]
    category: str = ""
    time: float = TIME_S
    from_: str = msgspec.field(default="", name="from")
    name: str = ""


class _BrokenError(HarnessError):
    """A challenge that cannot be used, with the file and the reason."""


def find_challenges(data_root: Path) -> list[Path]:
    """Give the folders of all challenges, in upstream's order.

    Raises
    ------
    UsageError
        There is none below the folder.
    """
    for place in ("data/CTF", "CTF", "."):
        categories = _numbered(data_root / place)
        found = [one for category in categories for one in _numbered(category)]
        found = [one for one in found if (one / CONFIG).exists() or (one / "public").is_dir()]
        if found:
            return found
    raise UsageError(
        f"no challenge NN-Category/NN-name/{CONFIG} in {data_root}, {data_root}/CTF or "
        f"{data_root}/data/CTF: give --data-root the folder of the upstream repository"
    )


def _numbered(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(p for p in folder.iterdir() if _NUMBERED.fullmatch(p.name) and p.is_dir())


def to_sample(folder: Path) -> Sample:
    """Make the item of a challenge; a broken one says why in ``metadata["unavailable"]``.

    Raises
    ------
    MissingPackageError
        YAML cannot be read here.
    """
    item_id = f"ctf-{_name(folder).replace('/', '-')}"
    category = folder.parent.name
    metadata: dict[str, Any] = {
        "folder": _name(folder), "from": "", "kind": "static", "time_s": TIME_S, "mask": "***",
    }  # fmt: skip
    try:
        config = read_config(folder / CONFIG)
        metadata |= _described(config)
        challenge = read_challenge(folder, config)
    except _BrokenError as error:
        metadata["unavailable"] = str(error)
        said = f"Nothing is known of challenge {_name(folder)}."
        return Sample(item_id=item_id, input=said, category=category, metadata=metadata)
    metadata |= {"files_sha256": _hash_of(challenge), **_sage_file(challenge)}
    return Sample(
        item_id=item_id,
        input=_listed(challenge.public),
        target=(challenge.flag,),
        category=category,
        # Challenges of one contest come from the same people, and one write-up tells of all of them.
        cluster_id=config.from_ or None,
        metadata=metadata,
    )


def read_config(path: Path) -> Config:
    """Read a challenge's ``config.yaml``.

    Raises
    ------
    HarnessError
        It cannot be read, or has no flag or an unknown type; the message names the file.
    MissingPackageError
        YAML cannot be read here.
    """
    try:
        import yaml
    except ImportError as error:
        raise MissingPackageError("aicrypto/ctf with --data-root", "PyYAML", INSTALL) from error
    where = _where(path, path.parent)
    try:
        # This loader makes nothing but texts: a flag of mere digits must stay as it is written.
        read = yaml.load(path.read_bytes(), Loader=yaml.BaseLoader)  # noqa: S506
    except OSError as error:
        raise _BrokenError(f"{where}: {error.strerror}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _BrokenError(f"{where}: no YAML: {' '.join(str(error).split())}") from error
    if not isinstance(read, dict):
        raise _BrokenError(f"{where}: give fields `name: value`, one a line")
    try:
        config = msgspec.convert(read, Config, strict=False)
    except msgspec.ValidationError as error:
        raise _BrokenError(f"{where}: {_fault(read, str(error))}") from error
    if not config.flag.strip():
        raise _BrokenError(f"{where}: the flag is empty")
    if not 0 < config.time < float("inf"):
        raise _BrokenError(f"{where}: time is {config.time:g}; give seconds above 0")
    return config


def _fault(read: Mapping[str, Any], otherwise: str) -> str:
    """Say in words what is wrong with a config, for the faults that are known to happen."""
    if "flag" not in read:
        return "it has no flag"
    if "type" not in read:
        return "it has no type: give static or dynamic"
    if read["type"] not in ("static", "dynamic"):
        return f"type is {read['type']!r}: give static or dynamic"
    known = {field.encode_name for field in msgspec.structs.fields(Config)}
    if unknown := sorted(set(read) - known):
        return f"unknown field {unknown[0]!r}"
    if otherwise.endswith("`$.time`"):
        return f"time is {read['time']!r}: give seconds"
    return otherwise


def read_challenge(folder: Path, config: Config) -> Challenge:
    """Read the files of a challenge.

    Raises
    ------
    HarnessError
        Files are missing, cannot be read, or have a name or place that no box can have; the message
        names the file.
    """
    public = _read_folder(folder / "public")
    server = _read_folder(folder / "server") if config.type == "dynamic" else {}
    if config.type == "dynamic" and "main.py" not in server:
        program = _where(folder / "server" / "main.py", folder)
        raise _BrokenError(f"{program} is missing, and the type is dynamic")
    return Challenge(flag=config.flag.strip(), public=public, server=server)


def _read_folder(folder: Path) -> dict[str, bytes]:
    """Read all files below a folder; a link may lead to a file inside it and nowhere else."""
    where = _where(folder, folder.parent)
    if not folder.is_dir():
        raise _BrokenError(f"{where} is missing")
    home = folder.resolve()
    files: dict[str, bytes] = {}
    for place, folders, names in os.walk(folder):
        linked = [name for name in folders if Path(place, name).is_symlink()]
        for name in sorted((*names, *linked)):
            path = Path(place, name)
            inside = path.relative_to(folder).as_posix()
            if odd(inside) or not inside.isprintable() or "\\" in inside:
                raise _BrokenError(f"{where}: odd file name {inside!r}")
            if not (path.resolve().is_relative_to(home) and path.is_file()):
                raise _BrokenError(f"{where}/{inside} is no file, or a link out of its folder")
            try:
                files[inside] = path.read_bytes()
            except OSError as error:
                raise _BrokenError(f"{where}/{inside}: {error.strerror}") from error
    if not files:
        raise _BrokenError(f"{where} is empty")
    return files


def open_challenge(folder: Path, sample: Sample) -> Challenge:
    """Read the files of an item again, for an attempt.

    Raises
    ------
    HarnessError
        The challenge is broken, is not what it was, or needs Sage, which is not installed.
    """
    if why := sample.metadata.get("unavailable"):
        raise _BrokenError(why)
    challenge = read_challenge(folder, read_config(folder / CONFIG))
    if _hash_of(challenge) != sample.metadata["files_sha256"]:
        raise _BrokenError(
            f"{_where(folder, folder)}: its files have changed since the run was planned"
        )
    sage = sample.metadata.get("sage")
    if sage and not has_sage():
        raise MissingPackageError(_where(folder / sage, folder), "Sage", INSTALL_SAGE)
    return challenge


def try_server(folder: Path, server: Mapping[str, bytes], level: str) -> None:
    """Run a server's program once, alone, and see whether it lives long enough to be attacked.

    Many sound programs end with an error when their input ends at once. One that does so is run again
    with input that never comes, and is broken if it ends all the same.

    Parameters
    ----------
    folder : Path
        Of the challenge, for the message.
    server : mapping of str to bytes
        Files beside and with ``main.py``.
    level : str
        The isolation asked for.

    Raises
    ------
    HarnessError
        It dies within `TRIAL_S` seconds; the message names it and the last line of its errors.
    """
    limits = msgspec.structs.replace(LIMITS["server"], wall_s=TRIAL_S, output_kib=64)
    for command in (["python", "main.py"], ["python", "-c", _WAITING]):
        result = run(
            command, files=server, limits=limits, level=level, env={"PYTHONUNBUFFERED": "1"}
        )
        if not _died(result):
            return
    said = last_line(result.stderr.text)
    raise _BrokenError(
        f"{_where(folder / 'server' / 'main.py', folder)} ends before it is asked anything ({result.reason})"
        + (f": {said}" if said else ", with no output")
    )


def _died(result: Result) -> bool:
    """Tell whether a program ended with an error that is its own: silently, or with a traceback."""
    if result.status not in ("error", "crash", "denied", "memory"):
        return False
    if last_line(result.stderr.text).startswith(_NO_INPUT):
        return False
    return not result.stdout.text or "Traceback (most recent call last)" in result.stderr.text


def _where(path: Path, challenge: Path) -> str:
    """Name a file from its category on.

    Where somebody's copy lies is no part of an item, whose hash holds the message, nor of a record.
    """
    return path.relative_to(challenge.parent.parent).as_posix()


def has_sage() -> bool:
    """Tell whether an agent's box has Sage: the wheels in Python's folder, or the whole program."""
    return importlib.util.find_spec("sage") is not None or shutil.which("sage") is not None


def _described(config: Config) -> dict[str, Any]:
    """Give the covariates of a challenge, and what its prompt says."""
    parts = _FLAG.fullmatch(config.flag.strip())
    year = _YEAR.search(config.from_)
    return {
        "from": config.from_,
        "name": config.name,
        "kind": config.type,
        "time_s": config.time,
        "mask": f"{parts[1]}{{***}}" if parts else "***",
        **({"year": int(year[0])} if year else {}),
    }


def _sage_file(challenge: Challenge) -> dict[str, str]:
    folders = {"public": challenge.public, "server": challenge.server}
    found = [
        f"{at}/{name}" for at, files in folders.items() for name in files if name.endswith(".sage")
    ]
    return {"sage": found[0]} if found else {}


def _hash_of(challenge: Challenge) -> str:
    """Hash the files of a challenge, names and all."""
    digest = hashlib.sha256()
    for at, files in (("public", challenge.public), ("server", challenge.server)):
        for name, data in sorted(files.items()):
            digest.update(f"{at}/{name}\0{len(data)}\0".encode())
            digest.update(data)
    return digest.hexdigest()


def _listed(files: Mapping[str, bytes]) -> str:
    names = ", ".join(f"{name} ({len(data)} bytes)" for name, data in sorted(files.items()))
    return f"Files in ./public: {names}."


def _name(folder: Path) -> str:
    return f"{folder.parent.name}/{folder.name}"
