"""What a caller, or a model, may ask of a box: paths, variables and commands that it can have."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from harness.core.errors import UsageError
from harness.sandbox.levels import AUTOMATIC, Isolation

_LONGEST_COMMAND = 100_000  # bytes; the kernel takes 128 KiB for one argument


def checked_mounts(mounts: Mapping[str, Path], isolation: Isolation) -> dict[str, Path]:
    """Give the mounts, all of which a box can have.

    Parameters
    ----------
    mounts : mapping
        Absolute path inside to host path.
    isolation : Isolation
        A level without a file system of its own can have none.

    Raises
    ------
    UsageError
        A path that is not plain, is the box's own, or is not there.
    """
    having = (*AUTOMATIC, "container")
    if mounts and isolation.level not in having:
        raise UsageError(
            f"sandbox level {isolation.level} has no file system of its own and shows no data "
            f"folders: use one of {', '.join(having)}"
        )
    for inside, outside in mounts.items():
        path = PurePosixPath(inside)
        plain = path.is_absolute() and ".." not in path.parts and str(path) == inside
        taken = {"/", "/box", "/usr", "/etc", "/proc", "/dev", "/tmp"}  # noqa: S108
        if not plain or inside in taken or "\0" in inside:
            raise UsageError(f"mount {inside!r} of the sandbox: give an absolute path of its own")
        if not Path(outside).exists():
            raise UsageError(f"mount {inside!r} of the sandbox: {outside} is not there")
    return {inside: Path(outside) for inside, outside in mounts.items()}


def checked_env(env: Mapping[str, str]) -> dict[str, str]:
    """Give the variables, all of which can be set.

    Parameters
    ----------
    env : mapping
        Name to value.

    Raises
    ------
    UsageError
        A name or a value that no environment can hold.
    """
    for name, value in env.items():
        if not name or "=" in name or "\0" in name + value:
            raise UsageError(f"environment variable {name!r} of the sandbox cannot be set")
    return dict(env)


def check_command(command: Sequence[str]) -> None:
    """See that the kernel can take a command.

    Parameters
    ----------
    command : sequence of str
        A program with its arguments.

    Raises
    ------
    UsageError
        It is empty, too long, or cannot be written as bytes.
    """
    if isinstance(command, str) or not command or not command[0]:
        raise UsageError("a command of the sandbox is a list that begins with a program")
    for word in command:
        try:
            os.fsencode(word)
        except UnicodeEncodeError as error:
            raise UsageError(
                f"argument {word!r} of the sandbox cannot be written as bytes"
            ) from error
        if "\0" in word:
            raise UsageError(f"argument {word!r} of the sandbox holds a NUL byte")
    if sum(len(os.fsencode(word)) + 1 for word in command) > _LONGEST_COMMAND:
        raise UsageError("the command of the sandbox is too long: put it into a file")
