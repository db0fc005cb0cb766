"""The pictures that a verdict came with, as files."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.core.errors import UsageError

_ENDINGS = {
    "image/svg+xml": "svg",
    "image/png": "png",
    "application/vnd.vegalite+json": "vl.json",
    "application/vnd.plotly.v1+json": "plotly.json",
}


def save_pictures(pictures: Sequence[Mapping[str, Any]], folder: Path) -> list[Path]:
    """Write pictures into a folder, which is made if need be.

    Parameters
    ----------
    pictures : sequence of mapping
        `name`, `media_type` and `data` (base64), as ``harness show sample --json`` gives them.
    folder : pathlib.Path

    Returns
    -------
    list of pathlib.Path
        ``01-NAME.svg`` and so on, in order.

    Raises
    ------
    UsageError
        The folder cannot be written.
    """
    paths = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, picture in enumerate(pictures, 1):
            # A name is for people and may hold anything.
            name = re.sub(r"[^A-Za-z0-9]+", "-", picture["name"]).strip("-").lower()[:60]
            path = folder / f"{number:02d}-{name}.{_ENDINGS[picture['media_type']]}"
            path.write_bytes(base64.b64decode(picture["data"]))
            paths.append(path)
    except OSError as error:
        raise UsageError(f"cannot write {error.filename or folder}: {error.strerror}") from error
    return paths
