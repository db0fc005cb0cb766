"""Where candidate decks are chosen from: they are run on layouts that a model's script makes.

Nothing here knows a label: the rule in words, the candidates and an engine are all that a way of choosing
is given. Own layouts with the gold deck's verdict (`own_layouts`) are for tests and upper bounds.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from random import Random
from types import TracebackType
from typing import Any, Self

import msgspec

from harness.core.errors import HarnessError
from harness.core.types import Sample, Tool, ToolCall
from harness.sandbox import LIMITS, Reply, Worker
from harness.solvers.environment import EnvironmentRequest, ToolResult
from harness.solvers.selection.base import MOST_TESTS, Case, Fault, Outcome, no_items
from harness.solvers.tools import cut_middle
from scorers.drc.deck import extract_deck
from scorers.drc.layout import BadLayoutError, as_text, open_layout
from scorers.drc.results import LayoutRun, UnsupportedError
from scorers.drc.scorer import Engine, make_engine, missing_engine

SCRIPT_S = 60.0
"""Seconds of a script that makes layouts, upstream's limit."""
MOST_SHAPES = 20_000
"""Flattened shapes of a layout; more could not be shown, and would cost hours to run."""
_LIMITS = msgspec.structs.replace(LIMITS["cell"], wall_s=SCRIPT_S, cpu_s=SCRIPT_S, file_mib=8)
_NAMES = [f"case_{k:04d}.gds" for k in range(4 * MOST_TESTS)]
_MANIFEST = "manifest.jsonl"
_GDS = b"\x00\x06\x00\x02"
_TRIES = 3
_SHOWN_BYTES = 4096
_RUN = """
import os, runpy
os.makedirs('out', exist_ok=True)
os.environ['OUTPUT_DIR'] = os.path.abspath('out')
try:
    runpy.run_path('make.py', run_name='__main__')
except SystemExit as ended:
    if ended.code not in (None, 0):
        raise
"""
ItemMaker = Callable[[Engine], tuple[Case, ...]]


class DrcBench:
    """The environment of a choice among decks; see `harness.solvers.selection.Bench`.

    Parameters
    ----------
    key : str
        The item; by it the engine puts layouts in order.
    rule : str
        What the decks should do, in words.
    categories : sequence of str
    layers : mapping of str to (int, int)
    candidates : sequence of str
        Decks, or replies that hold them.
    engine : {"klayout", "regions"}
    level : str
        The isolation asked for.
    maker : callable, optional
        Makes own layouts; without it there are none.
    """

    tools: tuple[Tool, ...] = ()

    def __init__(
        self,
        *,
        key: str,
        rule: str,
        categories: Sequence[str],
        layers: Mapping[str, Sequence[int]],
        candidates: Sequence[str],
        engine: str = "klayout",
        level: str = "auto",
        maker: ItemMaker | None = None,
    ) -> None:
        self.candidates = tuple(extract_deck(text) or "" for text in candidates)
        self.isolation: str | None = None
        self._key, self._rule = key, rule
        self._categories = tuple(categories)
        self._layer_names = {(at[0], at[1]): name for name, at in layers.items()}
        self._engine_name, self._level, self._maker = engine, level, maker
        self._engine: Engine | None = None
        self._worker: Worker | None = None
        self._known: dict[tuple[int, bytes], Outcome] = {}
        self._n_runs = 0
        self._killed = False
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        """Start the engine.

        Raises
        ------
        HarnessError
            It is missing, with the command that brings it.
        """
        if why := missing_engine(self._engine_name):
            raise HarnessError(why)
        self._engine = make_engine(self._engine_name, self._level)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End engine and scripts."""
        self._end()

    def call(self, call: ToolCall, wall_s: float) -> ToolResult:
        """Refuse: there are no tools."""
        return ToolResult(text="There are no tools.", status="denied", reason="bad_call")

    def kill(self) -> None:
        """End what runs, from any thread."""
        with self._lock:
            self._killed = True
        self._end()

    def rule(self) -> str:
        """Give the rule in words, with layers, categories and documentation."""
        return self._rule

    def how_to_make(self, n: int) -> str:
        """Say how a script must be written that makes `n` layouts."""
        names = ", ".join(f'"{name}": 0 or 1' for name in self._categories)
        what = (
            f"It writes up to {n} layouts, {_NAMES[0]}, {_NAMES[1]} and so on, and a file "
            f"{_MANIFEST} with one JSON object a line for each of them:\n"
            f'{{"filename": "{_NAMES[0]}", "expected": {{{names}}}, "intent": "a few words"}}\n'
            "where 1 means that a right deck reports the category.\n"
            if n > 1
            else f"It writes one layout, {_NAMES[0]}.\n"
        )
        return (
            "The script uses `import pya` (KLayout's classes: Layout, Box, Polygon, Path, Trans, …) and "
            "the standard library, nothing else. The environment variables OUTPUT_DIR, NUM_CASES and "
            f"SEED say where to write, how many layouts and the seed of anything random. {what}"
            "Every layout is GDS with exactly one top cell, small, and easy to read. The script has "
            f"{SCRIPT_S:g} seconds.\n"
        )

    def suite(self, script: str, seed: int) -> tuple[Case, ...] | Fault:
        """Run a script that makes a suite; layouts beyond 8 are dropped, and rows without a layout."""
        made = self._made(script, MOST_TESTS, seed)
        if isinstance(made, Fault):
            return made
        files, said = made
        if _MANIFEST not in files:
            return Fault(f"it wrote no {_MANIFEST}\n{said}")
        rows, faults = read_manifest(files[_MANIFEST], self._categories)
        cases = []
        for name in sorted(name for name in files if name != _MANIFEST)[:MOST_TESTS]:
            row = rows.get(name)
            if row is None:
                continue
            if why := unusable(files[name], name):
                faults.append(why)
                continue
            cases.append(Case(name=name, data=files[name], expected=row[0], intent=row[1]))
        if not cases:
            told = "\n".join(faults[:5]) or "no row of the manifest names a layout that is there"
            return Fault(f"nothing usable: {told}\n{said}")
        return tuple(cases)

    def layout(self, script: str, seed: int) -> Case | Fault:
        """Run a script that makes one layout."""
        made = self._made(script, 1, seed)
        if isinstance(made, Fault):
            return made
        files, said = made
        name = _NAMES[0]
        if name not in files:
            return Fault(f"it wrote no {name}\n{said}")
        why = unusable(files[name], name)
        return Fault(why) if why else Case(name=name, data=files[name])

    def run(self, which: Sequence[int], cases: Sequence[Case]) -> list[list[Outcome]]:
        """Run candidates on layouts, each pair once."""
        hashes = [sha256(case.data).digest() for case in cases]

        def run(k: int) -> None:
            new = {h: case.data for h, case in zip(hashes, cases, strict=True)}
            new = {h: data for h, data in new.items() if (k, h) not in self._known}
            if new:
                said = self._run_deck(self.candidates[k], list(new.values()))
                with self._lock:
                    self._n_runs += len(new)
                    self._known |= {(k, h): one for h, one in zip(new, said, strict=True)}

        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
            list(threads.map(run, dict.fromkeys(which)))
        return [[self._known[k, h] for h in hashes] for k in which]

    def runs(self) -> int:
        """Give how often a deck was run on a layout."""
        return self._n_runs

    def show(self, case: Case) -> str:
        """Write a layout as text."""
        return as_text(case.data, self._layer_names)

    def items(self) -> tuple[Case, ...]:
        """Give own layouts with what the gold deck says of each, in an order by the item's hash."""
        if self._maker is None:
            raise no_items()
        cases = list(self._maker(self._opened()))
        Random(sha256(self._key.encode()).digest()).shuffle(cases)
        return tuple(cases)

    def _opened(self) -> Engine:
        assert self._engine is not None  # set on entering
        return self._engine

    def _end(self) -> None:
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()
        if self._engine is not None:
            self._engine.close()

    def _run_deck(self, deck: str, layouts: Sequence[bytes]) -> list[Outcome]:
        if self._killed:
            raise RuntimeError("stopped")
        try:
            found = self._opened().run(deck, layouts, key=self._key)
        except UnsupportedError:
            return [Outcome(verdict="ERROR")] * len(layouts)
        self.isolation = (found.isolation or {}).get("level", self.isolation)
        if found.stateful:  # what it says of a layout depends on the others
            return [Outcome(verdict="ERROR")] * len(layouts)
        return [outcome_of(one, self._categories) for one in found.runs]

    def _made(self, script: str, n: int, seed: int) -> tuple[dict[str, bytes], str] | Fault:
        """Run a script; give the files that it wrote and what it printed."""
        env = {"NUM_CASES": str(n), "SEED": str(seed)}
        for _ in range(_TRIES):
            reply, files = self._execute(script, env)
            if reply.status != "harness":
                break
        else:
            raise RuntimeError(f"the script could not be run: {reply.reason}")
        said = cut_middle(f"{reply.stdout.text}{reply.stderr.text}", _SHOWN_BYTES).strip()
        if reply.status == "ok":
            return {name.removeprefix("out/"): data for name, data in files.items()}, said
        parts = [f"the script ended with {reply.reason or reply.status}", said]
        if reply.error is not None:
            told = reply.error.trace or f"{reply.error.name}: {reply.error.message}"
            parts.append(cut_middle(told, _SHOWN_BYTES))
        return Fault("\n".join(part for part in parts if part))

    def _execute(self, script: str, env: Mapping[str, str]) -> tuple[Reply, dict[str, bytes]]:
        """Run a script in a box of its own that holds nothing else."""
        files = {"make.py": script.encode("utf-8", "replace")}
        with Worker(_LIMITS, files=files, env=env, level=self._level) as worker:
            with self._lock:
                if self._killed:
                    raise RuntimeError("stopped")
                self._worker = worker
            self.isolation = worker.isolation.level
            reply = worker.execute(_RUN)
            wanted = [f"out/{name}" for name in (*_NAMES, _MANIFEST)]
            found, _refused = worker.collect(wanted)
        if self._killed:
            raise RuntimeError("stopped")
        return reply, found


def read_manifest(
    data: bytes, categories: Sequence[str]
) -> tuple[dict[str, tuple[dict[str, int], str]], list[str]]:
    r"""Read what a script says of its layouts: by file name what is expected, and the intent.

    Strict: a row has a file name of the form asked for, exactly the task's categories with 0 or 1,
    and an intent or none. Any other is left out, and said.

    Examples
    --------
    >>> row = b'{"filename": "case_0000.gds", "expected": {"W": 1}, "intent": "thin"}\n'
    >>> read_manifest(row, ["W"])
    ({'case_0000.gds': ({'W': 1}, 'thin')}, [])
    >>> read_manifest(row + b"{}", ["W"])[1]
    ['line 2 of manifest.jsonl: no file name of the form case_0000.gds']
    """
    rows: dict[str, tuple[dict[str, int], str]] = {}
    faults = []
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row: Any = msgspec.json.decode(line)
        except (ValueError, RecursionError):
            row = None
        why = _row_fault(row, categories, rows)
        if why:
            faults.append(f"line {number} of {_MANIFEST}: {why}")
        else:
            rows[row["filename"]] = (row["expected"], row.get("intent") or "")
    return rows, faults


def _row_fault(row: Any, categories: Sequence[str], known: Mapping[str, object]) -> str:
    if not isinstance(row, dict):
        return "no JSON object"
    if row.get("filename") not in _NAMES:
        return f"no file name of the form {_NAMES[0]}"
    if row["filename"] in known:
        return f"{row['filename']} stands twice"
    expected = row.get("expected")
    if not isinstance(expected, dict) or sorted(expected) != sorted(categories):
        return f"expected must have exactly the categories {', '.join(categories)}"
    if any(type(bit) is not int or bit not in (0, 1) for bit in expected.values()):
        return "an expected value that is neither 0 nor 1"
    if not isinstance(row.get("intent", ""), str | None):
        return "an intent that is no text"
    return ""


def unusable(data: bytes, name: str) -> str:
    """Say why a layout that a model made cannot be used; empty where it can."""
    if not data.startswith(_GDS):  # packed forms can hold far more than their size says
        return f"{name} is no GDS file"
    try:
        layout = open_layout(data, name)
    except BadLayoutError as error:
        return str(error)
    left = MOST_SHAPES
    for layer in layout.layer_indexes():
        shapes = layout.top_cell().begin_shapes_rec(layer)
        while not shapes.at_end():
            left -= 1
            if left < 0:
                return f"{name} has more than {MOST_SHAPES:,} shapes"
            shapes.next()
    return ""


def outcome_of(run: LayoutRun, categories: Sequence[str]) -> Outcome:
    """Say what a deck's run on a layout comes to."""
    if run.status != "ok":
        return Outcome(verdict="ERROR")
    return Outcome(
        verdict="VIOLATION" if any(run.counts.values()) else "PASS",
        bits={name: int(run.counts.get(name, 0) > 0) for name in categories},
        unknown=any(n and name not in categories for name, n in run.counts.items()),
    )


def own_layouts(sample: Sample, engine: Engine) -> tuple[Case, ...]:
    """Make layouts of our own for an item: its layouts mirrored and moved, with the gold deck's verdicts.

    None but an empty one is a file that the choice is judged on. What is right of it comes from running
    the gold deck, for a rule may look at places.
    """
    about = sample.metadata
    made = [_moved(row["gds"]) for row in about["layouts"]]
    found = engine.run(sample.target[0], made, key=sample.item_id)
    said = [outcome_of(one, about["categories"]) for one in found.runs]
    return tuple(
        Case(name=f"own-{k}", data=data, expected=one.bits, intent="own layout")
        for k, (data, one) in enumerate(zip(made, said, strict=True))
        if one.verdict != "ERROR"
    )


def _moved(data: bytes) -> bytes:
    """Exchange x and y and move all by 1 µm each way."""
    import klayout.db as db

    layout = open_layout(data)
    by = round(1.0 / layout.dbu)
    layout.transform(db.Trans.M45)
    layout.transform(db.Trans(by, by))
    options = db.SaveLayoutOptions()
    options.format = "GDS2"
    options.gds2_write_timestamps = False
    return bytes(layout.write_bytes(options))


def rule_of(sample: Sample) -> str:
    """Write an item's rule as a maker of layouts and a judge see it: no label, no layout, no gold."""
    about = sample.metadata
    layers = "\n".join(f"{name} = ({at[0]}, {at[1]})" for name, at in about["layers"].items())
    rules = "\n".join(f'{rule["text"]} -> category "{rule["category"]}"' for rule in about["rules"])
    docs = about.get("docs")
    parts = [
        f"<documentation>\n{docs}\n</documentation>" if docs else "",
        f"Design rule: {about['title']}\n{sample.input}",
        f"Layers, as name = (layer, datatype):\n{layers}",
        f"Rules, each with the category that its violations are reported under:\n{rules}" if rules else "",
        "Programs for it are KLayout DRC decks: PASS means no report on a layout, VIOLATION a report.",
    ]  # fmt: skip
    return "\n\n".join(part for part in parts if part)


def make_bench(
    sample: Sample, candidates: Sequence[str], request: EnvironmentRequest, engine: str = "klayout"
) -> DrcBench:
    """Make the bench of an item of `rule2drc/script` and of candidates for it.

    Labels stay outside; the gold deck is reached through `DrcBench.items` alone.
    """
    about = sample.metadata
    return DrcBench(
        key=sample.item_id,
        rule=rule_of(sample),
        categories=about["categories"],
        layers=about["layers"],
        candidates=candidates,
        engine=engine,
        level=request.level,
        maker=(lambda engine: own_layouts(sample, engine)) if sample.target else None,
    )
