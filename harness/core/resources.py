"""Where data lie: the project's own (in the wheel, else the checkout) and what `fetch` has brought."""

from __future__ import annotations

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def data(name: str) -> Path:
    """Find a file or folder of the project's own data.

    Parameters
    ----------
    name : str
        Path below ``data/``, e.g. ``"gsm8k/own.jsonl"``.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    FileNotFoundError
        When it is not there: the installation is broken.
    """
    for root in (_PACKAGE / "_data", _PACKAGE.parent / "data"):
        path = root / name
        if path.exists():
            return path
    raise FileNotFoundError(f"own data {name!r} is missing: reinstall bridge-harness")


def expanded(text: str | Path) -> Path:
    """Read a path as a user writes it: ``~`` is home; of a user who is not there it stays as it is."""
    # Path.expanduser raises where there is no such user.
    return Path(os.path.expanduser(text))  # noqa: PTH111


def data_folder() -> Path:
    """Give the folder for fetched things: `$HARNESS_DATA`, else the user's data folder.

    Returns
    -------
    pathlib.Path
        It need not exist.
    """
    if chosen := os.environ.get("HARNESS_DATA"):
        return expanded(chosen).absolute()
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return expanded(base).absolute() / "bridge-harness"


def fetched(name: str, *kinds: str) -> Path | None:
    """Find what `harness fetch` has brought.

    A folder appears whole or not at all (it is renamed into place), so being there means complete.

    Parameters
    ----------
    name : str
        A name of ``data/sources.toml``.
    *kinds : str
        Where to look below the data folder: ``models`` and ``sets`` by default; ``transformers``
        holds models converted for that library.

    Returns
    -------
    pathlib.Path or None
        The folder, or None when it has not been fetched.
    """
    if not name or "/" in name or name.startswith("."):
        return None
    for kind in kinds or ("models", "sets"):
        folder = data_folder() / kind / name
        if folder.is_dir():
            return folder
    return None
