"""A voltage reference and a regulator; both need parts that the small SKY130 set lacks."""

from __future__ import annotations

from scorers.spice.benches import SUPPLY
from scorers.spice.circuit import GAIN_CURVE, Circuit, Metric, Sizing, Spec, grid
from scorers.spice.feedback_benches import reference, regulator
from scorers.spice.netlist import Netlist

_TECHNOLOGIES = ("demo", "sky130-full")


def _bandgap(net: Netlist, size: Sizing) -> None:
    p, n = (size["W_mp"], size["L_mp"]), (size["W_mn"], size["L_mn"])
    net.voltage("dd", "vdd", "0", 2.0, ac=1.0)
    net.p("a", "b", "vdd", *p, m=3, low=True)
    net.p("b", "b", "vdd", *p, m=3, low=True)
    net.p("ref", "b", "vdd", *p, low=True)
    net.n("a", "a", "e1", *n, m=2, low=True)
    net.n("b", "a", "r", *n, m=2, low=True)
    for emitter, count in (("e1", 1), ("e2", 8), ("e3", 1)):
        net.device("pnpv", ("0", "0", emitter), {"m": count})
    net.device("rpo", ("r", "e2"), {"l": size["L_ra"]})
    net.device("rpo", ("ref", "e3"), {"l": size["L_rb"]})
    # Without current all is at rest as well: this draws it out of there.
    net.resistor("vdd", "a", 20e6)


def _ldo(net: Netlist, size: Sizing) -> None:
    length, load, bias = size["L_amp"], size["W_load"], size["W_bias"]
    net.voltage("dd", "vdd", "0", SUPPLY, ac=1.0)
    net.voltage("ref", "vref", "0", 0.6)
    net.p("out", "g", "vdd", size["W_pass"], size["L_pass"], m=10)
    net.n("d1", "vref", "tl", size["W_diff"], length, m=4)
    net.n("d2", "fb", "tl", size["W_diff"], length, m=4)
    net.n("tl", "bias", "0", bias, 2 * length, m=4)
    net.p("d1", "d1", "vdd", load, length, m=4)
    net.p("d2", "d1", "vdd", load, length, m=4)
    net.p("g", "d2", "vdd", 4 * load, length, m=4)
    net.n("g", "bias", "0", 2 * bias, 2 * length, m=2)
    net.n("bias", "bias", "0", bias, 4 * length)
    net.resistor("vdd", "bias", 18e3)
    net.device("rpo", ("out", "fb"), {"l": 156.0})
    net.device("rpo", ("fb", "0"), {"l": 156.0})
    net.capacitor("g", "out", 5e-12)
    net.capacitor("out", "0", 100e-12)
    net.current("load", "out", "0", 0.01)
    net.line(".nodeset v(out)=1.2 v(g)=1.0 v(fb)=0.6")


BANDGAP = Circuit(
    name="bandgap_reference", title="Band-gap reference", kind="reference",
    variables={
        "W_mp": grid(5, 40, 5), "L_mp": grid(1, 5, 1), "W_mn": grid(5, 30, 5),
        "L_mn": (0.5, 1.0, 1.5, 2.0), "L_ra": (10.0, 20.0, 31.2, 40.0, 50.0, 75.0, 100.0),
        "L_rb": (30.0, 50.0, 75.0, 100.0, 113.0, 125.0, 150.0, 175.0, 200.0),
    },
    build=_bandgap, curve=GAIN_CURVE, bench=reference("vref", "power_uw", "line_regulation_percent", "psrr_100hz_db", 2.0),
    metrics=(
        Metric(name="vref", unit="V", better=">", calibrated=False),
        Metric(name="power_uw", unit="uW", better="<"),
        Metric(name="line_regulation_percent", unit="%/V", better="<"),
        Metric(name="psrr_100hz_db", unit="dB", better=">"),
    ),
    windows=(Spec("vref", ">", 0.72), Spec("vref", "<", 0.76)),
    upstream=(
        Spec("vref", ">", 0.72), Spec("vref", "<", 0.76), Spec("power_uw", "<", 110),
        Spec("line_regulation_percent", "<", 5), Spec("psrr_100hz_db", ">", 25),
    ),
    technologies=_TECHNOLOGIES,
    words="Supply 2.0 V. vref and power at the operating point; line regulation: the change of vref from 1.8 to 2.2 V, "
    "in percent of vref per volt; PSRR at 100 Hz.",
)  # fmt: skip
LDO = Circuit(
    name="ldo_regulator", title="Low-dropout regulator", kind="regulator",
    variables={
        "W_pass": (100.0, 200.0, 300.0, 500.0, 700.0, 1000.0), "L_pass": (0.5, 1.0, 2.0),
        "W_diff": (10.0, 20.0, 30.0, 40.0, 60.0, 80.0),
        "W_load": (20.0, 40.0, 60.0, 80.0, 120.0, 160.0), "W_bias": (5.0, 10.0, 15.0),
        "L_amp": (1.0, 2.0, 3.0, 4.0),
    },
    build=_ldo, curve=GAIN_CURVE,
    bench=regulator("vout", "dropout_mv", "line_reg_mv_per_v", "load_reg_mv_per_ma", "psrr_db", "power_uw"),
    metrics=(
        Metric(name="vout", unit="V", better=">", calibrated=False),
        Metric(name="dropout_mv", unit="mV", better="<"),
        Metric(name="line_reg_mv_per_v", unit="mV/V", better="<"),
        Metric(name="load_reg_mv_per_ma", unit="mV/mA", better="<", calibrated=False),
        Metric(name="psrr_db", unit="dB", better=">"),
        Metric(name="power_uw", unit="uW", better="<"),
    ),
    windows=(Spec("vout", ">", 1.19), Spec("vout", "<", 1.21)),
    upstream=(
        Spec("vout", ">", 1.19), Spec("vout", "<", 1.21), Spec("dropout_mv", "<", 650),
        Spec("line_reg_mv_per_v", "<", 0.5), Spec("load_reg_mv_per_ma", "<", 1), Spec("psrr_db", ">", 60),
        Spec("power_uw", "<", 20000),
    ),
    technologies=_TECHNOLOGIES,
    words="Supply 1.8 V, reference 0.6 V, load 10 mA and 100 pF. Line regulation from 1.62 to 1.98 V; load regulation "
    "from 1 to 20 mA; PSRR at 1 kHz; dropout: the supply at which the output has fallen by 1 %, less that output; power: "
    "the supply's without the load's.",
)  # fmt: skip
