"""Oscillators."""

from __future__ import annotations

from scorers.spice.benches import SUPPLY, ring
from scorers.spice.circuit import Circuit, Metric, Sizing, Spec
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
    build=_ring, bench=ring("frequency_mhz", "power_uw", "delay_per_stage_ps", 3),
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
