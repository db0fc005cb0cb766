"""Run a solution on what lies in ``public/`` and print the flag: how our own reference works in a box.

There the files ``solution.py`` (one of this folder) and ``tube.py`` lie beside this one.
"""

from __future__ import annotations

from pathlib import Path

if __name__ == "__main__":
    from solution import solve  # type: ignore[import-not-found]  # there only in the box
    from tube import connect  # type: ignore[import-not-found]  # likewise

    folder = Path("public")
    public = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    print(solve(public, connect))
