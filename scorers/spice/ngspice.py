"""Simulating sizings with ngspice: in boxes, one process each, as many at once as there are cores."""

from __future__ import annotations

import hashlib
import math
import os
import re
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import product
from pathlib import Path
from queue import SimpleQueue
from typing import Literal

import msgspec
from msgspec import Struct

from harness.core.errors import HarnessError
from harness.sandbox import LIMITS, Driver, Isolation, Job, JobResult, reach, run
from scorers.spice.circuit import Circuit, Sizing
from scorers.spice.netlist import Named, Netlist
from scorers.spice.technology import Technology, pruned

INSTALL = "apt-get install ngspice"
WALL_S = 60.0
_MAIN = Path(__file__).with_name("_ngspice_main.py")
_LIMITS = msgspec.structs.replace(
    LIMITS["engine"], wall_s=WALL_S + 10, cpu_s=100_000, memory_mib=1024, file_mib=64, output_kib=16
)
SHARED: dict[str, Simulation] = {}
"""What this process has simulated for attempts and verdicts: a verdict costs no second simulation."""
_TRIES = 3
_POINTS = 300
_MARK = re.compile(r"@m ([A-Za-z0-9_]+) (\S+)")
Status = Literal["ok", "failed", "timeout"]


class Simulation(Struct, frozen=True, kw_only=True):
    """What came of a sizing.

    Attributes
    ----------
    status : {"ok", "failed", "timeout"}
        ``ok``: exit status 0; a metric that could not be measured is not among them all the same.
    metrics : dict of str to float
        Finite figures that ngspice printed by their marks; never a default.
    missing : tuple of str
        Metrics that the bench should have printed.
    reason : str
        Why it failed, from the end of the log.
    cpu_s : float
    curve : tuple of (float, ...)
        Rows of the curve, where one was asked for.
    """

    status: Status
    metrics: dict[str, float] = msgspec.field(default_factory=dict)
    missing: tuple[str, ...] = ()
    reason: str = ""
    cpu_s: float = 0.0
    curve: tuple[tuple[float, ...], ...] = ()

    @property
    def valid(self) -> bool:
        """Whether ngspice ended well and every metric is there."""
        return self.status == "ok" and not self.missing


def missing_program() -> str:
    """Say that ngspice is missing, with the command that brings it; nothing where it is there."""
    import shutil

    return "" if shutil.which("ngspice") else f"ngspice is missing: {INSTALL}"


@cache
def ngspice_version() -> str:
    """Ask the program for its version, ``ngspice-39``.

    Raises
    ------
    HarnessError
        It is not there, with the command that brings it.
    """
    said = run(["ngspice", "--version"], limits=_LIMITS).stdout.text
    found = re.search(r"ngspice-\S+", said)
    if found is None:
        raise HarnessError(f"ngspice is missing: {INSTALL}")
    return found[0]


class Simulator:
    """Simulates sizings of circuits in one technology; safe to use from several threads.

    Parameters
    ----------
    technology : Technology
    sandbox : str or Isolation
        The level of isolation asked for.
    workers : int, optional
        Processes; as many as there are cores by default.
    prune : bool
        Leave out models that no size of the grid can reach: the same figures in less time.
    known : dict, optional
        Simulations by the hash of all they depend on, to share with other simulators; own by default.
    """

    def __init__(
        self, technology: Technology, sandbox: str | Isolation = "auto", *, workers: int | None = None,
        prune: bool = True, known: dict[str, Simulation] | None = None,
    ) -> None:  # fmt: skip
        self.technology = technology
        self.isolation = sandbox if isinstance(sandbox, Isolation) else reach(sandbox)
        self.workers = workers or len(os.sched_getaffinity(0))
        self._prune = prune
        self._known: dict[str, Simulation] = {} if known is None else known
        self._drivers: dict[str, SimpleQueue[Driver]] = {}
        self._all: list[Driver] = []
        self._lock = threading.Lock()

    def simulate(self, circuit: Circuit, sizings: Sequence[Sizing]) -> list[Simulation]:
        """Simulate sizings, equal ones once.

        Parameters
        ----------
        circuit : Circuit
        sizings : sequence of mapping
            Every variable with a value of its grid; see `scorers.spice.design.read_design`.

        Raises
        ------
        RuntimeError
            The sandbox failed, several times.
        """
        keys = [tuple(sizing[name] for name in circuit.variables) for sizing in sizings]
        distinct = dict(zip(keys, sizings, strict=True))
        with ThreadPoolExecutor(self.workers) as threads:
            done = threads.map(lambda sizing: self._measured(circuit, sizing), distinct.values())
            found = dict(zip(distinct, done, strict=True))
        return [found[key] for key in keys]

    def curve(self, circuit: Circuit, sizing: Sizing) -> Simulation:
        """Simulate a sizing with what prints its curve."""
        return self._one(circuit, netlist_text(circuit, sizing, self.technology, curve=True))

    def close(self) -> None:
        """End the processes; the next sizing starts them again."""
        with self._lock:
            drivers, self._all, self._drivers = self._all, [], {}
        for driver in drivers:
            driver.close()

    def _measured(self, circuit: Circuit, sizing: Sizing) -> Simulation:
        found = self._one(circuit, netlist_text(circuit, sizing, self.technology))
        if circuit.fallback and found.status == "ok" and found.missing:
            slower = msgspec.structs.replace(circuit, bench=circuit.fallback)
            found = self._one(circuit, netlist_text(slower, sizing, self.technology))
        return found

    def _one(self, circuit: Circuit, netlist: str) -> Simulation:
        parts = [netlist, circuit.version, self.technology.sha256, ngspice_version()]
        key = hashlib.sha256("\x1f".join(parts).encode()).hexdigest()
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _read(circuit, self._run(circuit, netlist))
        return known

    def _run(self, circuit: Circuit, netlist: str) -> JobResult:
        queue = self._queue(circuit)
        for _ in range(_TRIES):
            driver = queue.get()
            try:
                (result,) = driver.run([Job({"netlist": netlist, "wall_s": WALL_S})])
            finally:
                queue.put(driver)
            if result.status != "harness":
                return result
        raise RuntimeError(f"ngspice could not be run: {result.reason}")

    def _queue(self, circuit: Circuit) -> SimpleQueue[Driver]:
        """Give the processes of a circuit, each with the models that its grid can reach."""
        name = circuit.name if self._prune and self.technology.name == "sky130" else ""
        with self._lock:
            if name not in self._drivers:
                models = pruned(self.technology, sizes(circuit)) if name else self.technology
                files: dict[str, bytes | Path] = {
                    f"lib/{n}": t.encode() for n, t in models.files.items()
                }
                queue: SimpleQueue[Driver] = SimpleQueue()
                for _ in range(self.workers):
                    driver = Driver(
                        ["python3", "-I", "/box/main.py"], _LIMITS, files={**files, "main.py": _MAIN},
                        level=self.isolation,
                    )  # fmt: skip
                    queue.put(driver)
                    self._all.append(driver)
                self._drivers[name] = queue
            return self._drivers[name]


def netlist_text(
    circuit: Circuit, sizing: Sizing, technology: Technology, *, curve: bool = False
) -> str:
    """Write the netlist that is simulated, bench and all.

    Raises
    ------
    ValueError
        A size that no device can have.
    """
    netlist = Netlist()
    circuit.build(netlist, sizing)
    header = technology.header.replace('"models.spice"', '"/box/lib/models.spice"')
    after = _curve_lines(circuit) if curve else ""
    control = f".control\n{circuit.bench}{after}quit\n.endc\n"
    return f"* {circuit.name}\n{header}{netlist.text()}\n{control}.end\n"


def readable_netlist(circuit: Circuit) -> str:
    """Write a circuit's devices with names in place of numbers, for a prompt."""
    netlist = Netlist()
    circuit.build(netlist, {name: Named(value, name) for name, value in circuit.middle.items()})
    return netlist.text()


def _curve_lines(circuit: Circuit) -> str:
    """Print about 300 points of a curve, each with its mark."""
    if circuit.curve is None:
        return ""
    vectors = [f"real({circuit.curve.x})", *(f"real({y})" for y in circuit.curve.y.values())]
    named = [(f"column{k}", vector) for k, vector in enumerate(vectors)]
    return "\n".join([
        *(f"let {name} = {vector}" for name, vector in named),
        "let points = length(column0)",
        f"let stride = floor(points/{_POINTS})+1",
        "let row = 0",
        "dowhile row < points",
        *(f"let cell{k} = {name}[row]" for k, (name, _) in enumerate(named)),
        'echo "@c ' + " ".join(f"$&cell{k}" for k in range(len(named))) + '"',
        "let row = row+stride",
        "end\n",
    ])  # fmt: skip


def sizes(circuit: Circuit) -> set[tuple[str, float, float]]:
    """List kind, width and length of every transistor that a circuit's grid can lead to.

    Each variable is taken through its grid alone, then all widths are joined with all lengths of a kind:
    more than can be, never less.
    """
    found: dict[str, tuple[set[float], set[float]]] = {}
    for name, values in circuit.variables.items():
        for value in values:
            netlist = Netlist()
            circuit.build(netlist, {**circuit.middle, name: value})
            for line in netlist.text().splitlines():
                match = re.fullmatch(r"x\d+ .* (nch|pch) w=(\S+) l=(\S+) m=\S+", line)
                if match:
                    widths, lengths = found.setdefault(match[1], (set(), set()))
                    widths.add(float(match[2]))
                    lengths.add(float(match[3]))
    return {(kind, *size) for kind, sides in found.items() for size in product(*sides)}


def _read(circuit: Circuit, result: JobResult) -> Simulation:
    wanted = [metric.name for metric in circuit.metrics]
    if result.status == "timeout":
        return Simulation(status="timeout", missing=tuple(wanted), reason="it took over a minute")
    if result.status != "ok":
        return Simulation(
            status="failed", missing=tuple(wanted), reason=f"{result.status}: {result.reason}"
        )
    said = result.value
    metrics: dict[str, float] = {}
    rows = []
    for line in said["marked"]:
        match = _MARK.fullmatch(line.strip())
        value = _finite(match[2]) if match else None
        if match and value is not None and match[1] in wanted:
            metrics[match[1]] = value
        elif line.startswith("@c "):
            numbers = [_finite(text) for text in line.split()[1:]]
            if None not in numbers:
                rows.append(tuple(n for n in numbers if n is not None))
    missing = tuple(name for name in wanted if name not in metrics)
    status: Status = "ok" if said["code"] == 0 else "timeout" if said["code"] is None else "failed"
    return Simulation(
        status=status, metrics=metrics, missing=missing, cpu_s=round(said["cpu_s"], 4),
        reason="" if status == "ok" and not missing else _why(said["log"], missing), curve=tuple(rows),
    )  # fmt: skip


def _finite(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _why(log: str, missing: Mapping[str, float] | Sequence[str]) -> str:
    """Find the line of a log that says most; else name what was not measured."""
    for pattern in (
        r"could not find a valid modelname",
        r"singular matrix",
        r"[Nn]o convergence",
        r"Timestep too small",
    ):
        found = re.search(rf".*{pattern}.*", log)
        if found:
            return found[0].strip()[:300]
    return f"not measured: {', '.join(missing)}" if missing else log.strip().splitlines()[-1][:300]
