"""Data sets of a hub or a folder, read through the library `datasets`: ``hub:ID@REV``, ``hub:DIR``.

The library is an optional extra and is imported when a data set is read, not before. Since its
version 4 it runs no code that comes with a data set.
"""

from __future__ import annotations

import logging
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from harness.core.errors import HarnessError, MissingPackageError, UsageError, unknown
from harness.core.registry import Need
from harness.core.resources import expanded
from harness.core.spec import Spec, only, parse_spec

_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_FORM = "write hub:ID@REV or hub:DIR, with ?config=NAME&split=NAME where needed"
_NEED = Need("package", "datasets", "pip install -e '.[data]' (in the checkout)")
_TIMEOUT_S = 5.0  # for the first request to the hub, which is not repeated


class DataSpec(Struct, frozen=True):
    """Which data set, spelt ``hub:NAME[@REV][?config=C&split=S]``.

    Attributes
    ----------
    name : str
        Id on the hub, or the absolute path of a folder.
    revision : str or None
        Commit, tag or branch on the hub; None for a folder.
    config, split : str or None
        None: the only one there is; of several splits, ``test``.
    """

    name: str
    revision: str | None = None
    config: str | None = None
    split: str | None = None

    def __str__(self) -> str:
        chosen = {"config": self.config, "split": self.split}
        name = f"hub:{self.name}" + (f"@{self.revision}" if self.revision else "")
        return str(Spec(name, {k: v for k, v in chosen.items() if v is not None}))


class DataSet(Struct, frozen=True, kw_only=True):
    """One split, read.

    Attributes
    ----------
    spec : DataSpec
        As it was asked for.
    rows : list of dict
        In the data set's order, with those of the columns asked for that are there.
    columns : list of str
        All columns that are there.
    split : str
        Its name; empty when it was saved without one.
    config : str or None
        Its configuration, where it has any.
    commit : str or None
        What the hub's revision stood for.
    """

    spec: DataSpec
    rows: list[dict[str, Any]]
    columns: list[str]
    split: str
    config: str | None
    commit: str | None


def parse_data(text: str, folder: Path | None = None) -> DataSpec:
    """Read ``hub:ID@REV`` or ``hub:DIR``; a path is made absolute.

    A name with a revision is one of the hub unless it begins with ``/``, ``./``, ``../`` or ``~``:
    what lies in the working folder by chance never stands in for it.

    Parameters
    ----------
    text : str
    folder : pathlib.Path, optional
        What a relative path is relative to; the working folder by default.

    Raises
    ------
    UsageError
        It is spelt otherwise, a hub's name has no revision, or there is no such folder.

    Examples
    --------
    >>> parse_data("hub:openai/gsm8k@main?split=test")
    DataSpec(name='openai/gsm8k', revision='main', config=None, split='test')
    """
    spec = parse_spec(text)
    scheme, colon, name = spec.name.partition(":")
    if scheme != "hub" or not colon or not name:
        raise UsageError(f"--data {text}: {_FORM}")
    only(spec.args, {"config", "split"}, f"--data {text}")
    head, at, revision = name.partition("@")
    if at and not name.startswith(("/", "./", "../", "~")):
        if not revision or not _ID.fullmatch(head):
            raise UsageError(f"--data {text}: {_FORM}")
        return DataSpec(head, revision, **spec.args)
    path = ((folder or Path()) / expanded(name)).absolute()
    if not path.is_dir():
        hub = f"; a data set of the hub needs its revision, hub:{name}@REV"
        raise UsageError(
            f"--data {text}: there is no folder {path}" + (hub if _ID.fullmatch(name) else "")
        )
    if "?" in str(path):
        raise UsageError(f"--data {text}: a folder with a ? in its path cannot be named here")
    return DataSpec(str(path), **spec.args)


def read_data_set(spec: DataSpec, columns: Sequence[str]) -> DataSet:
    """Read one split.

    Parameters
    ----------
    spec : DataSpec
    columns : sequence of str
        Those that are wanted; others are not decoded.

    Raises
    ------
    MissingPackageError
        `datasets` is not installed.
    UsageError
        No such data set, revision, config or split, or nothing in it that can be read.
    HarnessError
        The hub cannot be reached.
    """
    if _NEED.missing():
        raise MissingPackageError(f"--data {spec}", _NEED.name, _NEED.install)
    # The library's cache trusts a file's time stamp and, where the hub is out of reach, serves any
    # revision. So files are read anew each time, into a folder that does not stay.
    with _quiet(), tempfile.TemporaryDirectory(prefix="harness-data-") as scratch:
        with _as_asked():
            folder = _snapshot(spec) if spec.revision else Path(spec.name)
        try:
            split, found = _open(spec, folder, scratch)
            if found is None or not len(found):
                raise UsageError(
                    f"--data {spec}: {split or 'it'} has no rows: at least one is needed"
                )
            wanted = [name for name in columns if name in found.column_names]
            rows = found.select_columns(wanted).with_format("arrow")[:].to_pylist()
        except HarnessError:
            raise
        except Exception as error:  # whatever the library makes of a broken file
            raise UsageError(f"--data {spec}: it cannot be read: {_line(error)}") from error
    return DataSet(
        spec=spec,
        rows=rows,
        columns=found.column_names,
        split=split,
        config=found.info.config_name,
        commit=folder.name if spec.revision else None,
    )


def stay_offline() -> None:
    """Let a model's libraries ask the hub for nothing in this process, unless $HF_HUB_OFFLINE=0.

    A data set that is asked for by name is read from the hub all the same. The environment is left
    alone: what is set there is the user's word, and goes on to other programs.
    """
    from huggingface_hub import constants

    if "HF_HUB_OFFLINE" not in os.environ:
        constants.HF_HUB_OFFLINE = True


@contextmanager
def _as_asked() -> Iterator[None]:
    """Be offline where the user's environment says so, whatever `stay_offline` did before."""
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    asked = os.environ.get("HF_HUB_OFFLINE") or os.environ.get("TRANSFORMERS_OFFLINE") or ""
    constants.HF_HUB_OFFLINE = asked.upper() in ("1", "ON", "YES", "TRUE")
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


def _snapshot(spec: DataSpec) -> Path:
    """Bring a data set's files into the hub library's own cache, or find them there.

    A commit never changes, so one that lies there whole is taken without asking the hub; a tag or
    branch only where $HF_HUB_OFFLINE asks for it.
    """
    from huggingface_hub import HfApi, constants, snapshot_download
    from huggingface_hub.errors import (
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    assert spec.revision is not None
    try:
        if constants.HF_HUB_OFFLINE or _COMMIT.fullmatch(spec.revision):
            with suppress(LocalEntryNotFoundError):
                return _files(snapshot_download, spec.name, spec.revision, here=True)
        # One plain request: the downloading functions would repeat theirs for half a minute.
        HfApi().dataset_info(spec.name, revision=spec.revision, timeout=_TIMEOUT_S)
        return _files(snapshot_download, spec.name, spec.revision, here=False)
    except RepositoryNotFoundError as error:
        why = "the hub has no data set of this name, or shows it only with a token ($HF_TOKEN)"
        raise UsageError(f"--data {spec}: {why}") from error
    except RevisionNotFoundError as error:
        raise UsageError(f"--data {spec}: there is no revision {spec.revision!r}") from error
    except Exception as error:  # of httpx, the hub's library or the disk
        raise HarnessError(
            f"--data {spec}: cannot reach or read the hub ({_line(error)}); give --data-root DIR "
            "or a local data set, hub:DIR"
        ) from error


def _files(download: Any, name: str, revision: str, *, here: bool) -> Path:
    return Path(download(name, repo_type="dataset", revision=revision, local_files_only=here))


def _open(spec: DataSpec, folder: Path, scratch: str) -> tuple[str, Any]:
    """Give the split's name and its rows; None for no rows. Other splits are left alone."""
    import datasets

    if any((folder / name).is_file() for name in ("dataset_dict.json", "state.json")):
        return _saved(spec, folder)
    config = _config(spec, folder)
    builder = datasets.load_dataset_builder(str(folder), config, cache_dir=scratch)
    builder.download_and_prepare()
    sizes = {name: info.num_examples for name, info in builder.info.splits.items()}
    split = _choose(spec, sorted(sizes))
    return split, builder.as_dataset(split, in_memory=True) if sizes[split] else None


def _saved(spec: DataSpec, folder: Path) -> tuple[str, Any]:
    """Read what `save_to_disk` wrote: one data set, or a folder for each split."""
    import datasets

    if spec.config is not None:
        raise UsageError(f"--data {spec}: what save_to_disk wrote has no configs")
    listed = folder / "dataset_dict.json"
    split = None
    if listed.is_file():
        split = _choose(spec, msgspec.json.decode(listed.read_bytes())["splits"])
        folder = folder / split
    try:
        found = datasets.load_from_disk(str(folder))
    except IndexError:  # of a split that was saved without any rows
        return split or "", None
    return _choose(spec, [str(found.split or "")]) if split is None else split, found


def _config(spec: DataSpec, folder: Path) -> str | None:
    import datasets

    names = datasets.get_dataset_config_names(str(folder))
    if spec.config is not None and spec.config not in names:
        raise unknown("config", spec.config, names, f"--data {spec}")
    default = datasets.get_dataset_default_config_name(str(folder))
    if spec.config is None and len(names) > 1 and default is None:
        raise UsageError(f"--data {spec}: say ?config=NAME, one of {', '.join(names)}")
    return spec.config


def _choose(spec: DataSpec, splits: list[str]) -> str:
    if spec.split is not None:
        if spec.split not in splits:
            raise unknown("split", spec.split, filter(None, splits), f"--data {spec}")
        return spec.split
    if len(splits) > 1 and "test" not in splits:
        names = ", ".join(sorted(splits))
        raise UsageError(f"--data {spec}: say ?split=NAME, one of {names}")
    return splits[0] if len(splits) == 1 else "test"


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep bars, warnings and counting of uses off, and leave the libraries as they were."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    import datasets
    import huggingface_hub.utils

    hub: Any = huggingface_hub.utils
    bars = (datasets.are_progress_bars_disabled(), hub.are_progress_bars_disabled())
    levels = (datasets.logging.get_verbosity(), hub.logging.get_verbosity())
    datasets.disable_progress_bars()
    hub.disable_progress_bars()
    datasets.logging.set_verbosity(logging.CRITICAL)  # what goes wrong is said in one line, here
    hub.logging.set_verbosity(logging.CRITICAL)
    try:
        yield
    finally:
        datasets.logging.set_verbosity(levels[0])
        hub.logging.set_verbosity(levels[1])
        if not bars[0]:
            datasets.enable_progress_bars()
        if not bars[1]:
            hub.enable_progress_bars()


def _line(error: Exception) -> str:
    """Give the deepest reason there is, in one line: the outer ones only say that it failed."""
    while isinstance(error.__cause__, Exception):
        error = error.__cause__
    if isinstance(error, StopIteration):
        return "a file of it has no rows"
    # An address may hold a name and a password.
    lines = re.sub(r"//[^/@\s]+@", "//", str(error)).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
