"""The circuits, by name, in the order of the benchmark's table."""

from __future__ import annotations

from collections.abc import Mapping

from scorers.spice.circuit import Circuit
from scorers.spice.circuits.amplifiers import DIODE_LOAD_AMP, RESISTIVE_LOAD_AMP
from scorers.spice.circuits.gates import NAND, XOR
from scorers.spice.circuits.logic import BUFFER, INVERTER
from scorers.spice.circuits.oscillators import RING
from scorers.spice.circuits.otas import CURRENT_MIRROR, FIVE_TRANSISTORS

CIRCUITS: Mapping[str, Circuit] = {
    circuit.name: circuit
    for circuit in (
        INVERTER, BUFFER, NAND, XOR, RESISTIVE_LOAD_AMP, DIODE_LOAD_AMP, FIVE_TRANSISTORS,
        CURRENT_MIRROR, RING,
    )
}  # fmt: skip
