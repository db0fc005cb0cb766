"""`harness export site`: a whole store as one folder of plain pages that opens from disk."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path

import msgspec
from msgspec import Struct

from harness.core.errors import StoreError, UsageError
from harness.store.layout import Store
from harness.store.publish import current, snapshot
from leaderboard.data import Board
from leaderboard.site import fits, models, runs, standings
from leaderboard.site.builder import NAVIGATION, Site
from leaderboard.site.parts import Code, Note, Page, Part

MANIFEST = "manifest.json"
_KIND = "harness-site"

# Questions that search engines read end in training data.
_ROBOTS = "User-agent: *\nDisallow: /samples/\nDisallow: /data/samples/\n"


class SiteFile(Struct, frozen=True):
    """Size and hash of a file."""

    bytes: int
    sha256: str


class Manifest(Struct, frozen=True, kw_only=True):
    """What an export holds; `manifest.json`.

    Attributes
    ----------
    kind : str
        Tells an export from other folders.
    generation, snapshot_sha256 : str or None
        The snapshot that all pages are of.
    tables : dict of str to int
        Rows by table.
    withheld : list of str
        Tasks whose prompts and answers are left out.
    files : dict of str to SiteFile
        By path, all but this one.
    """

    kind: str = _KIND
    schema: int = 1
    code_version: str
    generation: str | None
    snapshot_sha256: str | None
    tables: dict[str, int]
    withheld: list[str]
    files: dict[str, SiteFile]


def export_site(store: Store, out: Path, *, embed: bool = False) -> Manifest:
    """Write a store's newest snapshot as a static site.

    Parameters
    ----------
    store : Store
        One without results makes a site that says what to do.
    out : Path
        Missing, empty, or an earlier export, which is replaced as a whole when the new one is ready.
    embed : bool
        Leave the header out, for frames in other pages.

    Returns
    -------
    Manifest

    Raises
    ------
    UsageError
        The folder holds something else.
    StoreError
        The snapshot cannot be read, or the folder not be written.
    """
    out = out.resolve() if not out.is_symlink() else out
    _check(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
        try:
            manifest = _write(store, made, embed)
            made.chmod(0o755)
            _replace(made, out)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    except OSError as error:
        raise StoreError(f"cannot write {out}: {error.strerror or error}") from error
    return manifest


def _check(out: Path) -> None:
    """Refuse a folder in which there is anything that no export has written."""
    if not out.exists() and not out.is_symlink():
        return
    if not out.is_dir() or out.is_symlink():
        raise UsageError(f"{out} is not a folder; name one that is empty or not there yet")
    there = {path.relative_to(out).as_posix() for path in out.rglob("*") if not path.is_dir()}
    if not there:
        return
    try:
        earlier = msgspec.json.decode((out / MANIFEST).read_bytes(), type=Manifest)
    except (OSError, msgspec.MsgspecError) as error:
        raise UsageError(
            f"{out} is not empty and no earlier export; name another folder, or empty it"
        ) from error
    strange = there - set(earlier.files) - {MANIFEST}
    if earlier.kind != _KIND or strange:
        raise UsageError(
            f"{out} holds {min(strange, default=MANIFEST)}, which no export has written; "
            "move it away, or name another folder"
        )


def _replace(made: Path, out: Path) -> None:
    """Put the new folder in the place of the old one; a failure leaves the old one."""
    if not out.exists():
        made.rename(out)
        return
    old = made.with_name(f"{made.name}-old")
    out.rename(old)
    try:
        made.rename(out)
    except OSError:
        old.rename(out)
        raise
    shutil.rmtree(old)


def _write(store: Store, folder: Path, embed: bool) -> Manifest:
    state = Board(store).state()
    if state.kind == "unreadable":
        raise StoreError(state.what)
    if state.kind == "ready":
        now = current(store)
        generation = now.generation if now else None
        site = Site(snapshot(store), store, folder, generation, embed=embed)
        digest = _sha256(store.published / now.file) if now else None
        withheld = _pages(site)
    else:
        import duckdb

        site = Site(duckdb.connect(), store, folder, None, embed=embed)
        digest, withheld = None, []
        _empty(site)
    tables = site.write_tables()
    site.write("robots.txt", _ROBOTS.encode())
    files = {
        path.relative_to(folder).as_posix(): SiteFile(path.stat().st_size, _sha256(path))
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    manifest = Manifest(
        code_version=site.version, generation=site.generation, snapshot_sha256=digest,
        tables=tables, withheld=withheld, files=files,
    )  # fmt: skip
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    site.write(MANIFEST, text + b"\n")
    return manifest


def _pages(site: Site) -> list[str]:
    found = standings.leaderboard(site)
    standings.tasks(site)
    standings.tradeoff(site, found)
    listed = runs.runs(site)
    models.models(site, listed)
    models.comparisons(site, found.rows)
    fits.scales(site)
    fits.horizons(site)
    withheld = runs.withheld_tasks(site)
    runs.about(site, withheld)
    return withheld


def _empty(site: Site) -> None:
    """Write pages that say what to do."""
    parts: list[Part] = [
        Note("This store holds no published results yet. A first run makes some:"),
        Code("harness run --task gsm8k --model mock:gold"),
        Note("Then export again; a run that has been started shows here once it is published."),
        Code("harness store sync\nharness export site DIR"),
    ]
    for title, path in NAVIGATION:
        site.page(Page(path, title, parts))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
