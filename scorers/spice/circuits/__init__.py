"""The circuits, by name, in the order of the benchmark's table."""

from __future__ import annotations

from collections.abc import Mapping

from scorers.spice.circuit import Circuit
from scorers.spice.circuits.amplifiers import DIODE_LOAD_AMP, RESISTIVE_LOAD_AMP
from scorers.spice.circuits.azc import AZC
from scorers.spice.circuits.cascodes import (
    BAND_PASS,
    FOLDED_CASCODE,
    HIGH_PASS,
    LOW_PASS,
    TELESCOPIC,
)
from scorers.spice.circuits.fdgb import FDGB
from scorers.spice.circuits.gates import NAND, XOR
from scorers.spice.circuits.iac import IAC
from scorers.spice.circuits.logic import BUFFER, INVERTER
from scorers.spice.circuits.oscillators import RING, VCO
from scorers.spice.circuits.otas import CURRENT_MIRROR, FIVE_TRANSISTORS
from scorers.spice.circuits.references import BANDGAP, LDO
from scorers.spice.circuits.switched import SWITCHED_CAPACITOR
from scorers.spice.circuits.three_stage import DFCFC, NMCNR, SMC

CIRCUITS: Mapping[str, Circuit] = {
    circuit.name: circuit
    for circuit in (
        INVERTER, BUFFER, NAND, XOR, RESISTIVE_LOAD_AMP, DIODE_LOAD_AMP, FIVE_TRANSISTORS,
        TELESCOPIC, CURRENT_MIRROR, FOLDED_CASCODE, AZC, DFCFC, FDGB, IAC, NMCNR, SMC, RING, VCO,
        SWITCHED_CAPACITOR, BANDGAP, LDO, LOW_PASS, HIGH_PASS, BAND_PASS,
    )
}  # fmt: skip
