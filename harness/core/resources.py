"""The one way to read the project's own data: in the wheel under `harness/_data`, else the checkout."""

from __future__ import annotations

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
