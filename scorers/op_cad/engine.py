"""CadQuery in boxes: one warm process for programs of a model, one for the truth and for measuring.

A program of a model never shares a process with a truth: a forked child sees what its parent once held.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec

from harness.sandbox import LIMITS, ForkPool, Isolation, JobResult, reach
from scorers.op_cad.results import Built, Fault, FaultClass, Measured

KIT = Path(__file__).parent / "kit"
PACKAGES = ("cadquery", "trimesh", "manifold3d")
INSTALL = "pip install 'bridge-harness[cad]' (and the system's libGL: apt-get install libgl1)"
_PRELOAD = ("op_cad_kit.program", "op_cad_kit.measure", "trimesh", "manifold3d")
_ENDED: dict[str, FaultClass] = {
    "timeout": "timeout", "memory": "memory", "crash": "crash", "output_limit": "crash",
    "denied": "forbidden",
}  # fmt: skip
_TRIES = 3


def missing_engine() -> str:
    """Say what is missing for CAD programs to run, with the command that brings it; else nothing."""
    import ctypes.util
    import importlib.util

    lacking = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if lacking:
        return f"{', '.join(lacking)} is missing: {INSTALL}"
    if ctypes.util.find_library("GL") is None:
        return "libGL.so.1 is missing, which CadQuery needs: apt-get install libgl1"
    return ""


def engine_version() -> str:
    """Name the kernel's packages with their versions."""
    found = []
    for name in ("cadquery", "cadquery-ocp", "trimesh", "manifold3d"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} missing")
    return ", ".join(found)


class CadEngine:
    """Runs programs and measures solids; for the programs of one model and run.

    Parameters
    ----------
    sandbox : str or Isolation
        The level of isolation asked for.
    wall_s, memory_mib
        Limits of one program (upstream: 120 s).

    Examples
    --------
    >>> engine = CadEngine()
    >>> engine.starts  # nothing is started before it is needed
    0
    """

    def __init__(
        self, sandbox: str | Isolation = "auto", *, wall_s: float = 120.0, memory_mib: int = 2048
    ) -> None:
        self.isolation = sandbox if isinstance(sandbox, Isolation) else reach(sandbox)
        # Beside a program's own memory the box holds its parent's, some 500 MB of kernel.
        self._limits = msgspec.structs.replace(
            LIMITS["engine"], wall_s=wall_s, cpu_s=wall_s, memory_mib=memory_mib
        )
        self._pools: dict[str, ForkPool] = {}
        self._built: dict[str, Built] = {}
        self._lock = threading.Lock()

    @property
    def starts(self) -> int:
        """How many processes were started so far."""
        return sum(pool.starts for pool in self._pools.values())

    def build(self, code: str, before: str = "", names: Sequence[str] = ("result",)) -> Built:
        """Run a program of a model.

        Parameters
        ----------
        code, before, names
            See `scorers.op_cad.kit.program.build`.

        Raises
        ------
        RuntimeError
            The engine itself failed, several times.
        """
        return self._build("program", code, before, names, swapped=False)

    def truth(
        self, code: str, before: str = "", names: Sequence[str] = ("result",), *,
        swapped: bool = False,
    ) -> Built:  # fmt: skip
        """Run the true program, apart from those of a model; see `build`."""
        return self._build("measure", code, before, names, swapped=swapped)

    def measure(
        self,
        predicted: Mapping[str, str],
        true: Mapping[str, str],
        calls: tuple[Sequence[Any], Sequence[Any]] = ((), ()),
        other: str | None = None,
        **cloud: Any,
    ) -> Measured:
        """Measure what a program made; see `scorers.op_cad.kit.measure.measure`.

        Raises
        ------
        RuntimeError
            The engine itself failed, several times.
        """
        given = {"predicted": dict(predicted), "true": dict(true), "calls": calls, "other": other}
        result = self._run("measure", "op_cad_kit.measure.measure(**args)", {**given, **cloud})
        seconds = round(result.wall_s, 3)
        fault = _fault_of(result)
        if fault is not None:
            told = f"the kernel cannot measure it: {fault.message}"
            return Measured(fault=Fault("unmeasurable", told), seconds=seconds)
        found = dict(result.value)
        return Measured(
            engines=found.pop("engines"), orientation=found.pop("orientation"), figures=found,
            seconds=seconds,
        )  # fmt: skip

    def floor(self, brep: str, **cloud: Any) -> float:
        """Give the Chamfer distance of a true solid from itself."""
        result = self._run("measure", "op_cad_kit.measure.floor(**args)", {"brep": brep, **cloud})
        if result.status != "ok":
            raise RuntimeError(f"a truth cannot be measured: {result.error or result.reason}")
        return float(result.value)

    def close(self) -> None:
        """End the processes; the next program starts them again."""
        with self._lock:
            pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            pool.close()

    def _build(
        self, where: str, code: str, before: str, names: Sequence[str], *, swapped: bool
    ) -> Built:
        args = {"code": code, "before": before, "names": list(names), "swapped": swapped}
        key = hashlib.sha256(msgspec.json.encode([where, args])).hexdigest()
        if key not in self._built:
            result = self._run(where, "op_cad_kit.program.build(**args)", args)
            self._built[key] = _built_of(result)
        return self._built[key]

    def _run(self, where: str, code: str, args: Any) -> JobResult:
        """Run a job; a fault of the sandbox is tried again."""
        for _ in range(_TRIES):
            result = self._pool(where).run(code, args)
            if result.status != "harness":
                return result
        raise RuntimeError(f"the CAD engine does not work: {result.reason}")

    def _pool(self, where: str) -> ForkPool:
        with self._lock:
            if where not in self._pools:
                self._pools[where] = ForkPool(
                    _PRELOAD,
                    self._limits,
                    setup="import op_cad_kit.program, op_cad_kit.measure",
                    files={f"op_cad_kit/{file.name}": file for file in sorted(KIT.glob("*.py"))},
                    level=self.isolation,
                )
            return self._pools[where]


def _fault_of(result: JobResult) -> Fault | None:
    """Say of a job that gave no value why, None where it gave one."""
    if result.status == "ok":
        return None
    told = f"{result.error.name}: {result.error.message}" if result.error else result.reason or ""
    if result.status == "error" and result.error is None:
        return Fault("crash", f"it ended by itself without a word ({told})")
    if result.status == "error":
        return Fault("geometry", told[:500])
    return Fault(_ENDED[result.status], told or result.status)


def _built_of(result: JobResult) -> Built:
    fault = _fault_of(result)
    seconds = round(result.wall_s, 3)
    if fault is not None:
        return Built(fault=fault, seconds=seconds)
    try:
        said = msgspec.convert(result.value, _Said)
    except msgspec.ValidationError as error:
        return Built(fault=Fault("crash", f"it forged its reply: {error}"), seconds=seconds)
    return Built(
        solids=said.solids,
        calls=[msgspec.to_builtins(call) for call in said.calls],
        fault=Fault(*said.fault) if said.fault else None,
        seconds=seconds,
    )


class _Edge(msgspec.Struct):
    geomType: str  # noqa: N815  the field's own word
    center: tuple[float, float, float]
    length: float
    vertices: list[tuple[float, float, float]]


class _Call(msgspec.Struct):
    op: str
    sizes: list[float]
    edges: list[_Edge]


class _Said(msgspec.Struct):
    """What a program's child says: read strictly, since a program may have forged it."""

    solids: dict[str, str]
    calls: list[_Call]
    fault: tuple[FaultClass, str] | None = None
