"""Oscillators."""

from __future__ import annotations

from scorers.spice.benches import SUPPLY, controlled, ring
from scorers.spice.circuit import Circuit, Curve, Metric, Sizing, Spec
from scorers.spice.netlist import Netlist

_WIDTHS = (0.5, 1.0, 2.0, 4.0, 8.0)


def _ring(net: Netlist, size: Sizing) -> None:
    net.voltage("dd", "vdd", "0", SUPPLY)
    for stage in range(3):
        a, y = f"n{stage}", f"n{(stage + 1) % 3}"
        net.p(y, a, "vdd", size[f"W_pmos{stage}"], size["L_inv"])
        net.n(y, a, "0", size[f"W_nmos{stage}"], size["L_inv"])
    net.capacitor("n0", "0", 10e-15)
    net.line(".ic v(n0)=0 v(n1)=1.8 v(n2)=0")


RING = Circuit(
    name="3_stage_ring_osc", title="Ring of three inverters", kind="oscillator",
    variables={
        "L_inv": (0.15, 0.18, 0.2, 0.3),
        **{f"W_{kind}mos{stage}": _WIDTHS for stage in range(3) for kind in "pn"},
    },
    build=_ring, curve=Curve(x="time", y={"n0": "v(n0)"}, title="voltage (V)"), bench=ring("frequency_mhz", "power_uw", "delay_per_stage_ps", 3),
    metrics=(
        Metric(name="frequency_mhz", unit="MHz", better=">"),
        Metric(name="power_uw", unit="uW", better="<"),
        Metric(name="delay_per_stage_ps", unit="ps", better="<", calibrated=False),
    ),
    upstream=(
        Spec("frequency_mhz", ">", 400), Spec("power_uw", "<", 250),
        Spec("delay_per_stage_ps", "<", 500),
    ),
    words="Started from 0, 1.8 and 0 V. Frequency: mean of the periods 4 to 8; power over the same time.",
    bench_differs=False,
)  # fmt: skip


_STAGES = 5
_CONTROLS = (0.0, 0.9, SUPPLY)


def _controlled(net: Netlist, size: Sizing) -> None:
    """Three copies of the ring, each with the capacitors of one control voltage."""
    net.voltage("dd", "vdd", "0", SUPPLY)
    for copy, control in enumerate(_CONTROLS):
        for stage in range(_STAGES):
            a, y = f"r{copy}n{stage}", f"r{copy}n{(stage + 1) % _STAGES}"
            net.p(y, a, "vdd", size["W_inv_p_base"], size["L_inv_p_base"])
            net.n(y, a, "0", size["W_inv_n_base"], size["L_inv_n_base"])
            net.capacitor(y, "0", 5e-15 + control / SUPPLY * 50e-15)
            net.line(f".ic v({a})={SUPPLY * (stage % 2)}")


_VCO_WIDTHS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
_VCO_LENGTHS = (0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
_VCO_NAMES = ("tuning_range_percent", "freq_at_max", "vco_gain_MHz_per_V")
VCO = Circuit(
    name="voltage_controlled_osc", title="Ring of five inverters with controlled capacitors",
    kind="oscillator",
    variables={
        **dict.fromkeys(("W_inv_p_base", "W_inv_n_base"), _VCO_WIDTHS),
        **dict.fromkeys(("L_inv_p_base", "L_inv_n_base"), _VCO_LENGTHS),
    },
    build=_controlled, curve=Curve(x="time", y={f"{v:g} V": f"v(r{k}n0)" for k, v in enumerate(_CONTROLS)}, title="voltage (V)"),
    bench=controlled(*_VCO_NAMES, 5, 20), fallback=controlled(*_VCO_NAMES, 100, 1000),
    metrics=(
        Metric(name="tuning_range_percent", unit="%", better=">"),
        Metric(name="freq_at_max", unit="MHz", better=">"),
        Metric(name="vco_gain_MHz_per_V", unit="MHz/V", better=">"),
    ),
    upstream=(
        Spec("tuning_range_percent", ">", 30), Spec("freq_at_max", ">", 500),
        Spec("vco_gain_MHz_per_V", ">", 200),
    ),
    words="Each node carries 5 fF and (v / 1.8 V) times 50 fF, v the control voltage. Frequencies at 0, 0.9 and 1.8 V, each "
    "the mean of the periods 4 to 8. Tuning range: highest less lowest, in percent of their mean; freq_at_max: at "
    "1.8 V; gain: the difference from 0 to 1.8 V per volt.",
)  # fmt: skip
