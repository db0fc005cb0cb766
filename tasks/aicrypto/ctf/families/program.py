"""The programs of challenges: texts with a few values filled in, and what they print."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory
from typing import Any

from tasks.aicrypto.ctf.families.base import Made

LOOP = """
for line in sys.stdin.buffer:
    try:
        print(answer(line.decode("ascii").strip()), flush=True)
    except ValueError as error:
        print("error:", error, flush=True)
"""
"""How every server ends: one line of answer to a line, also where the line is rubbish."""

SERVER_IMPORTS = "\nimport secrets\nimport sys"
"""What a server imports beside ``json``."""


def fill(text: str, /, **values: object) -> bytes:
    """Fill the places ``$name`` of a program's text.

    Examples
    --------
    >>> fill("SIZE = $size", size=16)
    b'SIZE = 16'
    """
    return Template(text).substitute(values).encode()


def output_of(program: bytes, secret: Mapping[str, Any]) -> bytes:
    """Run a program with its ``secret.json`` beside it and give what it prints.

    So the ``main.py`` that an agent reads is the very code that made ``output.txt``.

    Raises
    ------
    CalledProcessError
        The program failed.
    """
    with TemporaryDirectory() as folder:
        Path(folder, "main.py").write_bytes(program)
        Path(folder, "secret.json").write_text(json.dumps(secret), encoding="utf-8")
        run = [sys.executable, "-I", "main.py"]
        return subprocess.run(run, cwd=folder, check=True, capture_output=True).stdout


def static(program: bytes, secret: Mapping[str, Any], /, **more: bytes) -> Made:
    """Give a challenge of files: program, output and `more` (by name, ``_`` for the dot)."""
    files = {name.replace("_", "."): data for name, data in more.items()}
    return Made(public={"main.py": program, "output.txt": output_of(program, secret), **files})


def dynamic(program: bytes, secret: Mapping[str, Any]) -> Made:
    """Give a challenge with a server: the agent reads its program, not its secret."""
    server = {"main.py": program, "secret.json": json.dumps(secret, indent=1).encode()}
    return Made(public={"main.py": program}, server=server)
