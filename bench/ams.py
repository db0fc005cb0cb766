"""What simulating circuits costs: `python bench/ams.py`.

Bars: the amplifier of five transistors within 0.12 CPU s with all SKY130 models (0.08 with those that its grid can reach), 100
simulations on 2 cores within 10 s, two at once in less than 1.5 times the CPU of one. Then ten random points of every circuit.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from statistics import median

from scorers.spice import CIRCUITS, Simulator, is_met, technology
from scorers.spice.circuit import Circuit


def points(circuit: Circuit, n: int) -> list[Mapping[str, float]]:
    """Draw sizings."""
    rng = random.Random(circuit.name)
    return [{name: rng.choice(grid) for name, grid in circuit.variables.items()} for _ in range(n)]


def main() -> None:
    """Measure and print."""
    sky = technology("sky130")
    amplifier = CIRCUITS["five_trans_ota"]
    sizings = points(amplifier, 20)
    for prune in (False, True):
        alone = Simulator(sky, workers=1, prune=prune)
        alone.simulate(amplifier, [amplifier.middle])  # the process starts
        one = median(s.cpu_s for s in alone.simulate(amplifier, sizings))
        alone.close()
        pair = Simulator(sky, workers=2, prune=prune)
        two = median(s.cpu_s for s in pair.simulate(amplifier, sizings))
        pair.close()
        models = "models that can be reached" if prune else "all models"
        print(
            f"{models}: {one:.3f} CPU s a simulation, {two / one:.2f} times as much with two at once"
        )
    simulator = Simulator(sky)
    began = time.perf_counter()
    simulator.simulate(amplifier, points(amplifier, 120)[20:])
    print(
        f"100 simulations with {simulator.workers} at once: {time.perf_counter() - began:.1f} s (bar 10)"
    )
    print(f"{'circuit':22} {'valid':>6} {'meets upstream':>15} {'CPU s':>7}")
    for circuit in CIRCUITS.values():
        if sky.name not in circuit.technologies:
            print(f"{circuit.name:22} unavailable")
            continue
        found = simulator.simulate(circuit, points(circuit, 10))
        met = sum(is_met(circuit.upstream, s.metrics) for s in found)
        cost = median(s.cpu_s for s in found)
        print(f"{circuit.name:22} {sum(s.valid for s in found):>6} {met:>15} {cost:>7.3f}")
    simulator.close()


if __name__ == "__main__":
    main()
