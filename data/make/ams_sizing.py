"""Calibrate the circuits of AMS-SizingBench: `python data/make/ams_sizing.py [--tech NAME] [--points N] [--circuit NAME]`.

Simulates N sizings of each circuit (the whole grid where it has no more), draws the levels and writes
data/ams_sizing/calibration.json; what another call wrote of other circuits and technologies stays.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import time
from pathlib import Path

import msgspec

from scorers.spice import CIRCUITS, Simulator, technology
from scorers.spice.calibration import Calibration, calibrate
from scorers.spice.circuit import Circuit

OUT = Path(__file__).resolve().parents[1] / "ams_sizing" / "calibration.json"


def sizings(circuit: Circuit, count: int, seed: int = 0) -> list[dict[str, float]]:
    """Draw distinct sizings, or take the whole grid."""
    names = list(circuit.variables)
    if circuit.n_points <= count:
        rows = itertools.product(*circuit.variables.values())
        return [dict(zip(names, row, strict=True)) for row in rows]
    rng = random.Random(f"{circuit.name} {seed}")
    drawn: dict[tuple[float, ...], None] = {}
    while len(drawn) < count:
        drawn[tuple(rng.choice(grid) for grid in circuit.variables.values())] = None
    return [dict(zip(names, row, strict=True)) for row in drawn]


def simulated(circuit: Circuit, simulator: Simulator, count: int, seed: int = 0) -> Calibration:
    """Simulate sizings of a circuit and draw its levels."""
    tried = sizings(circuit, count, seed)
    results = simulator.simulate(circuit, tried)
    points = [
        (sizing, result.metrics if result.valid else None)
        for sizing, result in zip(tried, results, strict=True)
    ]
    return calibrate(circuit, points, simulator.technology.sha256)


def main() -> int:
    """Simulate and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tech", choices=["demo", "sky130"], nargs="*", default=["demo", "sky130"])
    parser.add_argument("--points", type=int, default=600)
    parser.add_argument("--circuit", choices=list(CIRCUITS), nargs="*", default=list(CIRCUITS))
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    known: dict[str, dict[str, Calibration]] = {}
    if asked.out.exists():
        known = msgspec.json.decode(asked.out.read_bytes(), type=dict[str, dict[str, Calibration]])
    for tech in asked.tech:
        simulator = Simulator(technology(tech))
        for name in asked.circuit:
            circuit = CIRCUITS[name]
            if tech not in circuit.technologies:
                continue
            began = time.monotonic()
            found = known.setdefault(tech, {})[name] = simulated(circuit, simulator, asked.points)
            rates = " ".join(f"{level} {it.rate:.3f}" for level, it in found.levels.items())
            print(
                f"{tech} {name}: {found.points} points in {time.monotonic() - began:.0f} s, valid "
                f"{found.valid:.3f}, met {rates}",
                flush=True,
            )
            asked.out.parent.mkdir(parents=True, exist_ok=True)
            ordered = {
                t: {n: known[t][n] for n in CIRCUITS if n in known[t]} for t in sorted(known)
            }
            asked.out.write_bytes(
                msgspec.json.format(msgspec.json.encode(ordered), indent=1) + b"\n"
            )
        simulator.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
