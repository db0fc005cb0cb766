"""Circuits sized by numbers and judged by ngspice: netlists, benches, simulation, scores."""

from scorers.spice.circuit import Circuit, Metric, Spec
from scorers.spice.circuits import CIRCUITS
from scorers.spice.design import DesignError, read_design
from scorers.spice.ngspice import Simulation, Simulator, missing_program
from scorers.spice.score import figure_of_merit, is_met, objective, read_specs
from scorers.spice.technology import Technology, technology

__all__ = [
    "CIRCUITS", "Circuit", "DesignError", "Metric", "Simulation", "Simulator", "Spec", "Technology",
    "figure_of_merit", "is_met", "missing_program", "objective", "read_design", "read_specs",
    "technology",
]  # fmt: skip
