"""What runs in the box of a `Worker`: reads cells from descriptor 3, writes replies to descriptor 4.

It imports nothing of the harness, which the box does not show. The cells share its process, so it
can vouch for nothing: whoever reads its replies treats them as claims.
"""

# ruff: noqa: PTH109, PTH118, SIM105
# Every module that is imported here delays each start: no pathlib, no contextlib.

from __future__ import annotations

import ast
import base64
import importlib
import io
import json
import linecache
import os
import sys
import traceback
import types
import warnings
from typing import Any

_LONGEST_REPLY = 2**20 - 4096  # room for the names around the texts
_LONGEST_VALUE = 64 * 1024  # characters
_LONGEST_TRACE = 8 * 1024
_FRAMES = 30
_HERE = (lambda: None).__code__.co_filename


def main() -> None:
    """Carry out one request after the other until the pipe closes."""
    os.set_inheritable(3, False)
    os.set_inheritable(4, False)
    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = module
    sys.path.insert(0, os.getcwd())
    sys.argv = [""]
    os.environ.setdefault("MPLBACKEND", "Agg")
    os.environ.setdefault("MPLCONFIGDIR", os.path.join(os.environ["HOME"], ".matplotlib"))
    warnings.filterwarnings("ignore", message=".*is non-interactive, and thus cannot be shown")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace", line_buffering=True)
    count, own = 0, os.getpid()
    with open(3, encoding="utf-8", closefd=False) as requests:
        for line in requests:
            request = json.loads(line)
            reply: dict[str, Any] = {"n": request["n"], "value": None, "error": None}
            if "preload" in request:
                reply["error"] = _imported(request["preload"])
            else:
                count += 1
                reply |= _cell(request["code"], f"<cell {count}>", module.__dict__)
                if os.getpid() != own:  # a fork that the cell did not end: it must not reply, too
                    _flush()
                    os._exit(0)
                reply["plots"] = _plots(_LONGEST_REPLY - len(json.dumps(reply)))
            _flush()
            _send(json.dumps(reply).encode() + b"\n")


def _imported(names: list[str]) -> dict[str, str] | None:
    try:
        for name in names:
            importlib.import_module(name)
    except BaseException as error:  # noqa: BLE001  whatever an import raises is told
        return _told(error)
    return None


def _cell(code: str, name: str, scope: dict[str, Any]) -> dict[str, Any]:
    """Run a cell; its last expression is the value."""
    try:
        tree: Any = compile(code, name, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec", dont_inherit=True), scope)  # noqa: S102  what the box is for
        if last is None:
            return {}
        expression = compile(ast.Expression(last.value), name, "eval", dont_inherit=True)
        found = eval(expression, scope)  # noqa: S307
        return {} if found is None else {"value": _short(repr(found), _LONGEST_VALUE)}
    except BaseException as error:  # noqa: BLE001  sys.exit is an error of the cell, not an end
        return {"error": _told(error)}


def _told(error: BaseException) -> dict[str, str]:
    """Tell of an error without the frames of this file; even its text may raise."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == _HERE:
        trace = trace.tb_next
    try:
        lines = traceback.format_exception(type(error), error, trace, limit=-_FRAMES)
        message = str(error)
    except BaseException:  # noqa: BLE001  a hostile __str__
        lines, message = [], ""
    return {
        "name": _short(type(error).__name__, 200),
        "message": _short(message, _LONGEST_TRACE),
        "trace": _short("".join(lines), _LONGEST_TRACE),
    }


def _plots(room: int) -> list[str]:
    """Take the open figures as PNG in base64, as many as there is room for, and close them."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return []
    taken: list[str] = []
    try:
        for number in pyplot.get_fignums():
            file = io.BytesIO()
            pyplot.figure(number).savefig(file, format="png")
            image = base64.b64encode(file.getvalue()).decode()
            room -= len(image) + 4
            if room < 0:
                sys.stderr.write("[a plot is too large to be shown]\n")
                break
            taken.append(image)
        pyplot.close("all")
    except BaseException as error:  # noqa: BLE001  a figure that cannot be drawn is the cell's affair
        sys.stderr.write(f"[a plot cannot be drawn: {_told(error)['message']}]\n")
    return taken


def _short(text: str, most: int) -> str:
    """Keep both ends of a text, `most` characters of it (each up to twelve bytes in JSON)."""
    text = text.encode("utf-8", "backslashreplace").decode()
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters cut]\n{text[-half:]}"


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:  # noqa: BLE001, S110  a cell may have closed or replaced it
            pass


def _send(data: bytes) -> None:
    while data:
        data = data[os.write(4, data) :]


if __name__ == "__main__":
    main()
