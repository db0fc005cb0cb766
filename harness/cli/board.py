"""`harness board`: the site over a store, on this machine only."""

from __future__ import annotations

import os
import socket
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.output import note
from harness.core.errors import MissingPackageError, UsageError
from harness.store.ingest import refresh
from harness.store.layout import DEFAULT, VARIABLE, Store

ADDRESS = "127.0.0.1"


def register(app: typer.Typer, line: str) -> None:
    """Add the verb to the application."""
    app.command("board", help=line)(board)


def board(
    store: Annotated[
        str | None, typer.Option(help="The store [$HARNESS_STORE, ./results]; only read.")
    ] = None,
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1; 0 takes a free one.")] = 8501,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Open no browser.")] = False,
) -> int:
    """Serve the site until Ctrl-C; it shows what is in the store, and runs while they go."""
    for package in ("streamlit", "altair", "pandas", "vl_convert"):
        if find_spec(package) is None:
            raise MissingPackageError("the site", package, "pip install 'bridge-harness[board]'")
    root = Path(store or os.environ.get(VARIABLE) or DEFAULT).absolute()
    port = _free_port(port)
    if Store(root).runs.is_dir():
        # What a run or an older package left unpublished: the site itself writes nothing.
        refresh(Store(root))
    note(f"the site is at http://{ADDRESS}:{port} (store {root}); Ctrl-C ends it")
    sys.stdout.flush()
    # In our place, not as a child: whatever ends us ends the site.
    os.execve(  # noqa: S606 - our own interpreter and arguments
        sys.executable, command(port, browser=not no_browser), environment(root)
    )


def command(port: int, *, browser: bool) -> list[str]:
    """Give the command that serves the site.

    The other settings (no telemetry, themes) stand in a file beside the script.

    Parameters
    ----------
    port : int
    browser : bool
        Open one, where there is a screen.
    """
    import leaderboard

    script = Path(leaderboard.__file__).with_name("script") / "app.py"
    screen = sys.platform == "darwin" or os.environ.keys() & {"DISPLAY", "WAYLAND_DISPLAY"}
    # -P: a folder `tasks` or `data` of the user must not stand before ours.
    return [
        sys.executable, "-P", "-m", "streamlit", "run", str(script), "--server.port", str(port),
        "--server.address", ADDRESS, "--browser.gatherUsageStats", "false",
        "--server.showEmailPrompt", "false",
        "--server.headless", "false" if browser and screen else "true",
    ]  # fmt: skip


def environment(root: Path) -> dict[str, str]:
    """Give the environment that the site runs in.

    One thread for matrix products: they are small, and where the cores are busy OpenBLAS with two
    takes thirty times the time of one.
    """
    return {**os.environ, VARIABLE: str(root), "OPENBLAS_NUM_THREADS": "1"}


def _free_port(port: int) -> int:
    with socket.socket() as probe:
        # As the server does: a port that another has just left is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except (OSError, OverflowError) as error:
            raise UsageError(
                f"port {port} of {ADDRESS} cannot be had ({error}); choose another with --port N, "
                "or --port 0 for any"
            ) from error
        return int(probe.getsockname()[1])
