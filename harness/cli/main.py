"""`harness`: finds the verb, imports that verb alone, and turns errors into one line.

Only the verb that was asked for is imported, so `harness --help` costs no torch, no DuckDB and no
tables. Exit codes: 0 all done and saved, 1 failed or partial, 2 usage.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

import typer

from harness.core.errors import HarnessError, unknown

VERBS = {
    "run": "Run tasks on models and keep every attempt.",
    "list": "List tasks, models, runs, backends, solvers, …",
    "show": "Show one task, run or sample whole, or diff two runs.",
    "resume": "Go on with what is missing of a run.",
    "score": "Score given outputs; no model is called.",
    "rescore": "Score stored outputs again; no model is called.",
    "compare": "Compare two models or runs, paired by item.",
    "fit": "Put models and items on one scale (item response theory).",
    "audit": "Is a task itself sound? Gold, baselines, duplicates, leaks; no model but a judge.",
    "board": "Look at results in the browser, and at runs while they go.",
    "store": "Care for the store: sync, verify, rebuild, compact.",
    "fetch": "Get small real models and data sets, or list them.",
    "doctor": "Say what works here and what to install.",
    "export": "Write results out: tables, or a run as one file for others.",
    "import": "Take others' results in, checked and marked.",
}

_MODULES = {"import": "import_"}  # a module cannot bear a keyword's name


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the program's name; those of the process by default.

    Returns
    -------
    int
        The exit code.
    """
    args = list(sys.argv[1:] if argv is None else argv)
    signal.signal(signal.SIGTERM, _terminate)
    try:
        code = _dispatch(args)
        # What is still buffered must meet a closed pipe here, not in the interpreter's last steps.
        sys.stdout.flush()
        return code
    except HarnessError as error:
        print(f"harness: {' '.join(str(error).split())}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("harness: interrupted", file=sys.stderr)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        # Of a path that is no path, a disk, a permission: whatever met it could not say it better.
        print(f"harness: {error}", file=sys.stderr)
        return 1


def app(verb: str | None) -> typer.Typer:
    """Make the application with one verb filled in and the others as their help lines only."""
    application = typer.Typer(
        name="harness",
        help="Find out what a language model can really do.",
        add_completion=False,
        # Boxes and colours cost half of the start-up time: a verb's options get them, this page not.
        rich_markup_mode="rich" if verb else None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    application.callback()(_version)
    for name, line in VERBS.items():
        if name == verb:
            importlib.import_module(f"harness.cli.{_MODULES.get(name, name)}").register(
                application, line
            )
        else:
            application.command(name, help=line)(_placeholder)
    return application


def _dispatch(args: list[str]) -> int:
    verb = next((a for a in args if not a.startswith("-")), None)
    if verb is not None and verb not in VERBS:
        raise unknown("verb", verb, VERBS, "see `harness --help`")
    if not args:
        args = ["--help"]
    try:
        code: Any = app(verb)(args, standalone_mode=False, prog_name="harness")
    except typer.Exit as done:
        return done.exit_code
    except typer.TyperException as error:
        # Typer's own box is pretty; one line is kinder to a terminal and to a log.
        print(f"{' '.join(['harness', verb or '']).strip()}: {_one_line(error)}", file=sys.stderr)
        return 2
    except typer.Abort:
        print("harness: interrupted", file=sys.stderr)
        return 1
    return code if isinstance(code, int) else 0


def _one_line(error: Exception) -> str:
    format_message = getattr(error, "format_message", None)
    text = format_message() if format_message else str(error)
    return " ".join(text.split())


def _placeholder() -> None:
    """Stand for a verb that was not asked for."""


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version as installed

        print(f"harness {installed('bridge-harness')}")
        raise typer.Exit


def _version(
    version: bool = typer.Option(
        False,
        "--version",
        callback=_print_version,
        is_eager=True,
        help="Print the version and exit.",
    ),
) -> None:
    # The option is met before a verb is looked for: `harness --version` needs none.
    del version


def _terminate(_signal: int, _frame: object) -> None:
    # A scheduler's SIGTERM is handled as Ctrl-C is: keep what is done, say how to go on.
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
