"""`harness fetch`: small real models and data sets, from their home or from a folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.output import note, print_json, print_table
from harness.core.errors import HarnessError, UsageError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from harness.fetching.sources import Source


def register(app: typer.Typer, line: str) -> None:
    """Add the verb to the application."""
    app.command("fetch", help=line)(fetch)


def fetch(
    name: Annotated[str | None, typer.Argument(help="What to get; without it: a list.")] = None,
    origin: Annotated[
        Path | None,
        typer.Option("--from", help="Take the files from this folder, not the network."),
    ] = None,
    path: Annotated[bool, typer.Option("--path", help="Get nothing; print where it lies.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Strict JSON on stdout.")] = False,
) -> int:
    """Get one thing whole, its hashes checked; or list what there is and what is here."""
    from harness.fetching.get import get
    from harness.fetching.sources import source_of, sources

    if name is None:
        if origin or path:
            raise UsageError("--from and --path need a NAME (see `harness fetch`)")
        _list([_row(source) for source in sources().values()], json)
        return 0
    source = source_of(name)
    if path:
        if not source.folder.is_dir():
            raise HarnessError(f"{name} is not here: `harness fetch {name}` gets it")
        print(source.folder)
        return 0
    note(f"{name}: {source.what}, {_megabytes(source.size)}; licence: {source.licence}")
    bar = _Bar()
    try:
        came = get(source, origin, bar)
    finally:
        bar.stop()
    notes = _transformers(source)
    if source.note:
        notes.append(source.note)
    state = "came whole" if came else "is here already"
    note(f"{name}: {state}, hashes agree; licence: {source.licence}")
    for line in notes:
        note(f"{name}: {line}")
    if json:
        print_json(_row(source) | {"came": came, "notes": notes})
    else:
        print(source.folder)
    return 0


def _transformers(source: Source) -> list[str]:
    """Make the form that `hf:NAME` reads, or say why not."""
    from harness.fetching.convert import (
        gguf_of,
        missing_packages,
        to_transformers,
        transformers_folder,
    )

    if gguf_of(source) is None or transformers_folder(source).is_dir():
        return []
    if missing := missing_packages():
        line = (
            f"gguf:{source.name} can run; for hf:{source.name} install {', '.join(missing)} "
            f"(pip install -e '.[hf,gguf]') and say `harness fetch {source.name}` again"
        )
        return [line]
    note(f"{source.name}: making the form that hf:{source.name} reads, once (half a minute)")
    to_transformers(source)
    return []


def _row(source: Source) -> dict[str, Any]:
    here = source.folder.is_dir()
    return {
        "name": source.name, "kind": source.kind.removesuffix("s"), "bytes": source.size,
        "licence": source.licence, "state": "here" if here else "not here",
        "folder": str(source.folder) if here else None, "what": source.what, "note": source.note,
    }  # fmt: skip


def _list(rows: list[dict[str, Any]], json: bool) -> None:
    if json:
        print_json(rows)
        return
    shown = []
    for row in rows:
        what = "; ".join(filter(None, (row["what"], row["note"])))
        shown.append([row["name"], _megabytes(row["bytes"]), row["licence"], row["state"], what])
    print_table("", ["name", "size", "licence", "state", "what"], shown, fold=["what"])


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 50_000 else f"{size / 1e3:.0f} kB"


class _Bar:
    """Progress on stderr, where that is a terminal."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, name: str, come: int, total: int) -> None:
        if not sys.stderr.isatty():
            return
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

            self._bar = Progress(
                TextColumn("{task.description}"), BarColumn(), DownloadColumn(),
                console=Console(stderr=True),
            )  # fmt: skip
            self._bar.start()
        if name not in self._tasks:
            self._tasks[name] = self._bar.add_task(name, total=total)
        self._bar.update(self._tasks[name], completed=come)

    def stop(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.stop()
