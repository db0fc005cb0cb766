"""Suite files: many runs in one TOML file, read and checked before the first of them begins.

``[[run]]`` tables hold the options of `harness run` by their long names with underscores,
``[defaults]`` what all of them share. Options on the command line override both.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from harness.cli.jobs import Job, limits_of, make_jobs, run_options
from harness.core.errors import UsageError, unknown
from harness.core.hub import parse_data
from harness.core.resources import expanded
from harness.core.spec import Spec, parse_spec
from harness.runner.config import RunConfig, is_bank_file, make_config
from harness.runner.judging import split_judges
from harness.runner.limits import Limits, Meter

KEYS = frozenset(RunConfig.__struct_fields__) - {"args"} | {"arg", "store"}
# Of each pair, one given anew takes the place of the other.
_EITHER = (("limit", "first"), ("data_root", "data"))


def suite_jobs(path: Path, overrides: Mapping[str, Any]) -> list[Job]:
    """Read a suite file and make its jobs, in its order.

    Parameters
    ----------
    path : pathlib.Path
        Paths in the file are relative to its folder: `data_root`, `data`, `store`, a `bank`'s file, an option ``file=`` of a
        SPEC, and a model folder written with a leading ``./`` or ``../``.
    overrides : mapping
        Options given on the command line. Limits among them count for the whole suite; limits in
        the file count for their ``[[run]]``.

    Raises
    ------
    UsageError
        Broken TOML, an unknown key, a wrong type or value: with file and table.
    """
    defaults, tables = _read(path)
    # Types are checked table by table, so that the message names the place where it is wrong.
    with _at(path, "[defaults]"):
        _check(defaults)
    limits = limits_of(overrides)
    meter = Meter(Limits(**limits)) if limits else None
    jobs = []
    for number, table in enumerate(tables, 1):
        with _at(path, f"[[run]] {number}"):
            _check(table)
            jobs += make_jobs(_joined(defaults, table, overrides), meter)
    return jobs


def _read(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read suite file {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not valid TOML: {error}") from error
    for key in content:
        if key not in ("defaults", "run"):
            raise UsageError(f"{path}: unknown key {key!r}: a suite has [defaults] and [[run]]")
    defaults, tables = content.get("defaults", {}), content.get("run", [])
    if not isinstance(defaults, dict):
        raise UsageError(f"{path}: defaults is no table: write [defaults]")
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise UsageError(f"{path}: run is no list of tables: write [[run]]")
    if not tables:
        raise UsageError(f"{path} has no [[run]] table: nothing to run")
    folder = path.absolute().parent
    return _anchored(defaults, folder), [_anchored(table, folder) for table in tables]


def _anchored(table: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Read relative paths from the file's folder, wherever the command is given."""
    anchored = dict(table)
    for key in ("data_root", "store"):
        if isinstance(table.get(key), str):
            anchored[key] = str(folder / expanded(table[key]))
    if isinstance(table.get("bank"), str) and is_bank_file(table["bank"]):
        anchored["bank"] = str(folder / expanded(table["bank"]))
    if isinstance(table.get("data"), str):
        with suppress(UsageError):  # said once more, and with its place, when the table is checked
            anchored["data"] = str(parse_data(table["data"], folder))
    for key in ("model", "judge"):
        value = table.get(key)
        if isinstance(value, str):
            anchored[key] = _anchored_specs(key, value, folder)
        elif isinstance(value, list):
            anchored[key] = [
                _anchored_specs(key, v, folder) if isinstance(v, str) else v for v in value
            ]
    return anchored


def _anchored_specs(key: str, text: str, folder: Path) -> str:
    """Anchor a model, or each of the judges that one text names."""
    specs = split_judges(text) if key == "judge" else [text]
    return ",".join(_anchored_spec(spec, folder) for spec in specs)


def _anchored_spec(text: str, folder: Path) -> str:
    spec = parse_spec(text)
    backend, colon, name = spec.name.partition(":")
    if name.startswith(("./", "../")):
        name = str((folder / name).resolve())
    args = dict(spec.args)
    if "file" in args:
        args["file"] = str(folder / args["file"])
    anchored = str(Spec(backend + colon + name, args))
    return text if (name, args) == (spec.name.partition(":")[2], spec.args) else anchored


def _check(table: Mapping[str, Any]) -> None:
    for key in table:
        if key not in KEYS:
            raise unknown("key", key, KEYS)
    options = run_options(table)
    for key in ("task", "model", "store"):
        del options[key]
    make_config(task="any", model="any", **options)


def _joined(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Let later layers override earlier ones, option by option."""
    joined: dict[str, Any] = {}
    for layer in layers:
        for pair in _EITHER:
            if any(name in layer for name in pair):
                joined = {k: v for k, v in joined.items() if k not in pair}
        joined.update(layer)
    return joined


@contextmanager
def _at(path: Path, table: str) -> Iterator[None]:
    """Put file and table in front of what is wrong."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{path}: {table}: {error}") from error
