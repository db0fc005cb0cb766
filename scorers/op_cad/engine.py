"""CadQuery in boxes: one warm process for programs of a model, one for the truth and for measuring.

A program of a model never shares a process with a truth: a forked child sees what its parent once held.
"""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from queue import LifoQueue
from typing import Any

import msgspec

from harness.core.types import Picture
from harness.sandbox import LIMITS, ForkPool, Isolation, JobResult, reach
from scorers.op_cad.drawn import pictures
from scorers.op_cad.results import Built, Fault, FaultClass, Measured

KIT = Path(__file__).parent / "kit"
PACKAGES = ("cadquery", "trimesh", "manifold3d")
INSTALL = "pip install 'bridge-harness[cad]' (and the system's libGL: apt-get install libgl1)"
_PRELOAD = (
    "op_cad_kit.program", "op_cad_kit.measure", "op_cad_kit.drawing", "trimesh", "manifold3d",
)  # fmt: skip
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
    workers : int
        Processes that measure, some 500 MB each; programs share one.

    Examples
    --------
    >>> engine = CadEngine()
    >>> engine.starts  # nothing is started before it is needed
    0
    """

    def __init__(
        self, sandbox: str | Isolation = "auto", *, wall_s: float = 120.0, memory_mib: int = 2048,
        workers: int = 1,
    ) -> None:  # fmt: skip
        self.isolation = sandbox if isinstance(sandbox, Isolation) else reach(sandbox)
        # Beside a program's own memory the box holds its parent's, some 500 MB of kernel.
        self._limits = msgspec.structs.replace(
            LIMITS["engine"], wall_s=wall_s, cpu_s=wall_s, memory_mib=memory_mib
        )
        self._workers = workers
        self._pools: list[ForkPool] = []
        self._free: dict[str, LifoQueue[ForkPool]] = {}
        self._built: dict[str, Built] = {}
        self._floors: dict[str, float] = {}
        self._lock = threading.Lock()

    @property
    def starts(self) -> int:
        """How many processes were started so far."""
        return sum(pool.starts for pool in self._pools)

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

    def read(
        self, files: Mapping[str, bytes], before: str = "", calls: Sequence[Mapping[str, Any]] = ()
    ) -> Built:
        """Read true solids from STEP files, and run what they went on from.

        Parameters
        ----------
        files : mapping of str to bytes
            STEP by the name that `truth` would give the solid.
        before : str
            See `build`.
        calls : sequence of mapping
            The true fillets and chamfers: ``op``, ``sizes``, ``edges``.
        """
        given = {name: base64.b64encode(content).decode() for name, content in files.items()}
        args = {"files": given, "before": before}
        built = _built_of(self._run("measure", "op_cad_kit.program.read_steps(**args)", args))
        return msgspec.structs.replace(built, calls=[dict(call) for call in calls])

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
        given: dict[str, Any] = {
            "predicted": dict(predicted), "true": dict(true), "calls": calls, "other": other
        }  # fmt: skip
        key = _key([true["full"], cloud])
        given["with_floor"] = key not in self._floors
        result = self._run("measure", "op_cad_kit.measure.measure(**args)", {**given, **cloud})
        seconds = round(result.wall_s, 3)
        fault = _fault_of(result)
        if fault is not None:
            told = f"the kernel cannot measure it: {fault.message}"
            return Measured(fault=Fault("unmeasurable", told), seconds=seconds)
        found = dict(result.value)
        # The truth alone decides it, so it is found once.
        found["noise_floor"] = self._floors.setdefault(key, found.get("noise_floor", 0.0))
        return Measured(
            engines=found.pop("engines"), orientation=found.pop("orientation"), figures=found,
            seconds=seconds,
        )  # fmt: skip

    def pictures(self, predicted: str | None, true: str) -> tuple[Picture, ...]:
        """Draw a prediction, the truth and their difference; nothing where the kernel fails at it."""
        args = {"predicted": predicted, "true": true}
        result = self._run("measure", "op_cad_kit.drawing.drawn(**args)", args)
        return pictures(result.value) if result.status == "ok" else ()

    def state(self, brep: str | None, what: str) -> Any:
        """Show a state as a model may see it.

        Parameters
        ----------
        brep : str or None
            The solid; None before the first step.
        what : {"image", "cloud", "step"}
            Nine views as PNG (base64), points on the surface, STEP text.
        """
        result = self._run("measure", f"op_cad_kit.drawing.{what}(**args)", {"brep": brep})
        if result.status != "ok":
            raise RuntimeError(f"a state cannot be shown: {result.error or result.reason}")
        return result.value

    def floor(self, brep: str, **cloud: Any) -> float:
        """Give the Chamfer distance of a true solid from itself."""
        key = _key([brep, cloud])
        if key not in self._floors:
            self._floors[key] = self._floor(brep, cloud)
        return self._floors[key]

    def _floor(self, brep: str, cloud: Mapping[str, Any]) -> float:
        result = self._run("measure", "op_cad_kit.measure.floor(**args)", {"brep": brep, **cloud})
        if result.status != "ok":
            raise RuntimeError(f"a truth cannot be measured: {result.error or result.reason}")
        return float(result.value)

    def close(self) -> None:
        """End the processes; the next program starts them again."""
        with self._lock:
            pools, self._pools, self._free = self._pools, [], {}
        for pool in pools:
            pool.close()

    def _build(
        self, where: str, code: str, before: str, names: Sequence[str], *, swapped: bool
    ) -> Built:
        args = {"code": code, "before": before, "names": list(names), "swapped": swapped}
        key = _key([where, args])
        if key not in self._built:
            result = self._run(where, "op_cad_kit.program.build(**args)", args)
            self._built[key] = _built_of(result)
        return self._built[key]

    def _run(self, where: str, code: str, args: Any) -> JobResult:
        """Run a job; a fault of the sandbox is tried again."""
        free = self._pool(where)
        for _ in range(_TRIES):
            # The one used last is warm: with one job at a time no second is started.
            pool = free.get()
            try:
                result = pool.run(code, args)
            finally:
                free.put(pool)
            if result.status != "harness":
                return result
        raise RuntimeError(f"the CAD engine does not work: {result.reason}")

    def _pool(self, where: str) -> LifoQueue[ForkPool]:
        with self._lock:
            if where not in self._free:
                free: LifoQueue[ForkPool] = LifoQueue()
                for _ in range(self._workers if where == "measure" else 1):
                    free.put(self._made())
                self._free[where] = free
            return self._free[where]

    def _made(self) -> ForkPool:
        made = ForkPool(
            _PRELOAD,
            self._limits,
            setup="import op_cad_kit.program, op_cad_kit.measure, op_cad_kit.drawing",
            files={f"op_cad_kit/{file.name}": file for file in sorted(KIT.glob("*.py"))},
            level=self.isolation,
        )
        self._pools.append(made)
        return made


def _key(parts: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


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
