"""`harness doctor`: what works here, what is missing and how to get it, what is broken."""

from __future__ import annotations

import ctypes.util
import importlib
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import Struct, to_builtins

from harness.cli.output import note, print_json, print_table
from harness.core.errors import HarnessError
from harness.core.models import read_cards, user_file
from harness.core.registry import Entry, entries
from harness.core.resources import data_folder
from harness.store.layout import DEFAULT, VARIABLE

TIMEOUT = 20.0  # seconds for a program to say its version
DEEP_TOLERANCE = 1e-4  # nats; what packing may move a log-probability by

# Name, arguments that print a version, Debian package, what it is for.
PROGRAMS = (
    ("klayout", ("-v",), "klayout", "rules of chip layouts (Rule2DRC)"),
    ("ngspice", ("--version",), "ngspice", "circuit simulation (AMS-SizingBench)"),
    ("bwrap", ("--version",), "bubblewrap", "the sandbox for what a model wrote"),
    ("espeak-ng", ("--version",), "espeak-ng", "spoken prompts"),
)


class Check(Struct, kw_only=True):
    """One thing that was looked at.

    Attributes
    ----------
    name : str
    version : str or None
        As it says itself; None when it is missing or does not say.
    ok : bool
        It can be used.
    install : str
        The command that brings it; empty when it is there.
    broken : bool
        It is installed and does not work: the reason for exit code 1.
    why : str
        What is wrong, or what to know.
    """

    name: str
    version: str | None = None
    ok: bool
    install: str = ""
    broken: bool = False
    why: str = ""


def register(app: typer.Typer, line: str) -> None:
    """Add the verb to the application."""
    app.command("doctor", help=line)(doctor)


def doctor(
    store: Annotated[
        str | None, typer.Option(help="The store to look at [$HARNESS_STORE, ./results].")
    ] = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Run the test model: batch 1 must equal batch 8.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Strict JSON on stdout.")] = False,
) -> int:
    """Say what works here. Exit code 1 only for what is installed and broken, not for what is missing."""
    report: dict[str, Any] = {
        "isolation": isolation(),
        "engines": engines(),
        "backends": [backend(entry) for entry in entries("backends").values()],
        "models": models(),
        "disk": [disk("store", _store(store)), disk("data", data_folder())],
        "torch": torch_facts(),
        "checks": [cards(), *sandbox(), *([batches()] if deep else [])],
    }  # fmt: skip
    if json:
        print_json(report)
    else:
        _print(report)
    looked_at = [*report["engines"], *report["backends"], *report["checks"]]
    broken = [check for check in looked_at if check.broken]
    for check in broken:
        note(f"{check.name} is broken: {check.why}")
    return 1 if broken else 0


def isolation() -> dict[str, Any]:
    """Say how well code that a model wrote can be shut in here, by starting a program in a box.

    Returns
    -------
    dict
        `level` (``none`` where nothing works), `why`, `missing` (what keeps the machine from better),
        and the rest of `harness.sandbox.Isolation`.
    """
    from harness.sandbox import reach

    try:
        found = reach()
    except HarnessError as error:
        return {"level": "none", "why": str(error), "missing": [str(error)]}
    lacking = f"missing: {'; '.join(found.missing)}" if found.missing else "nothing is missing"
    return {**to_builtins(found), "why": f"a program ran in it; {lacking}"}


def sandbox() -> list[Check]:
    """Let the sandbox show that it holds; nothing where there is none.

    A fence that does not hold is broken, whatever is missing: programs would be run behind it.
    """
    from harness.sandbox import reach
    from harness.sandbox.selftest import self_test

    try:
        probes = self_test(reach())
    except HarnessError as error:
        return [Check(name="sandbox", ok=False, why=str(error))]
    return [Check(name=f"sandbox: {p.name}", ok=p.ok, broken=not p.ok, why=p.why) for p in probes]


def engines() -> list[Check]:
    """Look at the interpreter, the database and the programs that judge a model's work."""
    found = [Check(name="python", version=platform.python_version(), ok=True)]
    found.append(package("duckdb", "pip install bridge-harness"))
    return [
        *found,
        *(program(*row) for row in PROGRAMS),
        library("GL", "libgl1", "CAD programs (Op-CAD)"),
    ]


def library(name: str, debian: str, use: str) -> Check:
    """Look for one of the system's libraries."""
    if ctypes.util.find_library(name) is None:
        return Check(
            name=f"lib{name}", ok=False, install=f"sudo apt-get install {debian}",
            why=f"not installed; for {use}",
        )  # fmt: skip
    return Check(name=f"lib{name}", ok=True, why=use)


def program(name: str, args: Sequence[str], debian: str, use: str = "") -> Check:
    """Look at one program: is it there, and does it say its version."""
    if shutil.which(name) is None:
        return Check(
            name=name, ok=False, install=f"sudo apt-get install {debian}",
            why=f"not installed; for {use}" if use else "not installed",
        )  # fmt: skip
    code, text = _ask([name, *args])
    if code != 0:
        why = text or f"`{name} {' '.join(args)}` ended with code {code}"
        return Check(name=name, ok=False, broken=True, why=why)
    number = re.search(r"\d+(\.\d+)*", text)
    return Check(name=name, version=number.group() if number else None, ok=True, why=use)


def package(name: str, install: str) -> Check:
    """Look at one Python package by importing it."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name:
            return Check(name=name, ok=False, install=install, why="not installed")
        return Check(name=name, ok=False, broken=True, why=str(error))
    except Exception as error:  # noqa: BLE001  a broken package may raise anything when imported
        return Check(name=name, ok=False, broken=True, why=f"{type(error).__name__}: {error}")
    return Check(name=name, version=_version(name), ok=True)


def backend(entry: Entry) -> Check:
    """Look at one backend: the packages that it needs, and its own code."""
    state, why = entry.state()
    if state == "unavailable":
        needs = [need.install for need in entry.needs if need.missing()]
        return Check(name=entry.name, ok=False, install=(needs or [""])[0], why=why)
    parts = [package(n.name, n.install) for n in entry.needs if n.kind == "package"]
    if bad := [part for part in parts if not part.ok]:
        return Check(name=entry.name, ok=False, broken=True, why=f"{bad[0].name}: {bad[0].why}")
    try:
        entry.load()
    except HarnessError as error:
        return Check(name=entry.name, ok=False, broken=True, why=str(error))
    versions = ", ".join(f"{part.name} {part.version}" for part in parts if part.version)
    return Check(name=entry.name, version=versions or None, ok=True, why=why)


def models() -> list[dict[str, Any]]:
    """List the models with a card and whether they are here."""
    from harness.cli.list import model_rows

    return [
        {"name": row["name"], "state": row["state"], "why": row["why"]}
        for row in model_rows()
        if not row["baseline"] and "*" not in row["name"] and "?" not in row["name"]
    ]


def disk(name: str, folder: Path) -> dict[str, Any]:
    """Say where a folder is and how much room it has.

    Returns
    -------
    dict
        `name`, `folder`, `exists`, `free_bytes` (of the nearest folder that exists).
    """
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(there).free
    return {"name": name, "folder": str(folder), "exists": folder.is_dir(), "free_bytes": free}


def torch_facts() -> dict[str, Any] | None:
    """Say what torch would use; None where it is not installed or cannot be imported."""
    if not package("torch", "").ok:
        return None
    import torch

    return {
        "version": str(torch.__version__),
        "threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name(0) if torch.cuda.is_available() else None,
    }


def cards() -> Check:
    """Read the user's model cards: a mistake there shows here, not in the middle of a run."""
    try:
        path = user_file()
        n = len(read_cards(path)) if path else 0
    except HarnessError as error:
        return Check(name="model cards", ok=False, broken=True, why=str(error))
    where = f"{n} of your own in {path}" if path else "none of your own"
    return Check(name="model cards", ok=True, why=where)


def batches() -> Check:
    """Answer 8 prompts of unequal length one by one and all at once: nothing may differ."""
    name = "hf:tiny, batch 1 against 8"
    if entries("backends")["hf"].state()[0] == "unavailable":
        return Check(name=name, ok=False, why="backend hf is not installed")
    one, eight = (_answers(batch_size) for batch_size in (1, 8))
    if one[0] != eight[0]:
        return Check(name=name, ok=False, broken=True, why="other texts: padding is wrong")
    pairs = [
        (a, b) for x, y in zip(one[1], eight[1], strict=True) for a, b in zip(x, y, strict=True)
    ]
    gap = max(abs(a - b) for a, b in pairs)
    why = f"same texts, log-probabilities within {gap:.1e}"
    return Check(name=name, ok=gap < DEEP_TOLERANCE, broken=gap >= DEEP_TOLERANCE, why=why)


def _answers(batch_size: int) -> tuple[list[str], list[tuple[float, ...]]]:
    """Ask the test model: texts and log-probabilities of 8 prompts, so many at a time."""
    from harness.backends.base import LoadOptions, load
    from harness.core.types import ChoiceRequest, GenerateRequest, Generation, Message

    model = load("hf:tiny", LoadOptions(batch_size=batch_size))
    asked = [(Message("user", "Question: " + "What is 3 + 4? " * n),) for n in range(1, 9)]
    texts: list[str] = []
    logprobs: list[tuple[float, ...]] = []
    generation = Generation(max_tokens=16)
    for at in range(0, len(asked), batch_size):
        part = asked[at : at + batch_size]
        texts += [o.text for o in model.generate([
            GenerateRequest(item_id=str(i), messages=m, generation=generation)
            for i, m in enumerate(part)
        ])]  # fmt: skip
        logprobs += [o.choice_logprobs or () for o in model.loglikelihood([
            ChoiceRequest(item_id=str(i), messages=m, continuations=(" 7", " 8", " seven"))
            for i, m in enumerate(part)
        ])]  # fmt: skip
    model.close()
    return texts, logprobs


def _ask(command: Sequence[str]) -> tuple[int, str]:
    """Run a program shortly; exit code and the first line that says something."""
    try:
        done = subprocess.run(
            [*command], capture_output=True, text=True, errors="replace", timeout=TIMEOUT,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return -1, f"no answer within {TIMEOUT:g} s"
    except OSError as error:
        return -1, str(error.strerror or error)
    lines = [x.strip(" *\t") for x in (done.stdout + "\n" + done.stderr).splitlines()]
    speaking = [x for x in lines if any(c.isalnum() for c in x)]
    return done.returncode, speaking[0] if speaking else ""


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        found = getattr(sys.modules.get(name), "__version__", None)
        return None if found is None else str(found)


def _store(chosen: str | None) -> Path:
    return Path(chosen or os.environ.get(VARIABLE) or DEFAULT).absolute()


def _print(report: dict[str, Any]) -> None:
    columns = ["", "version", "state", "what to know"]
    for title, checks in (
        ("Engines", report["engines"]), ("Backends", report["backends"]),
        ("Checks", report["checks"]),
    ):  # fmt: skip
        print_table(title, columns, [[
            c.name, c.version, "ok" if c.ok else "broken" if c.broken else "missing",
            f"{c.install}  ({c.why})" if not c.ok and c.install else c.why,
        ] for c in checks])  # fmt: skip
    models = [[m["name"], m["state"], m["why"]] for m in report["models"]]
    print_table("Models", ["", "state", "what to know"], models)
    rows = [["isolation", f"{report['isolation']['level']}: {report['isolation']['why']}"]]
    rows += [
        [f"room for {d['name']}", f"{d['free_bytes'] / 2**30:.1f} GiB free at {d['folder']}"]
        for d in report["disk"]
    ]
    if torch := report["torch"]:
        rows.append(["torch", f"{torch['threads']} threads, GPU: {torch['gpu'] or 'none'}"])
    print_table("Machine", ["", ""], rows)
