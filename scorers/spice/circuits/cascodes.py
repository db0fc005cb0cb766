"""Amplifiers with cascodes, and the filters that one of them drives."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scorers.spice.benches import SUPPLY, open_loop
from scorers.spice.circuit import GAIN_CURVE, W9, Circuit, Metric, Sizing, Spec
from scorers.spice.circuits.otas import LENGTH, METRICS, WORDS, inputs, specs
from scorers.spice.feedback_benches import band_pass, high_pass, low_pass
from scorers.spice.netlist import Netlist


def _telescopic(net: Netlist, size: Sizing) -> None:
    tail, pair = 2 * size["W_tail_base"], 4 * size["W_diff_base"]
    cascode, load = 2 * size["W_casc_base"], 2 * size["W_load_base"]
    inputs(net, 0.8)
    net.current("bias", "vdd", "bn", 10e-6)
    net.n("bn", "bn", "0", tail, LENGTH)
    net.n("t", "bn", "0", tail, LENGTH, m=2)
    net.voltage("cn", "cn", "0", 1.1)
    net.voltage("cp", "cp", "0", 0.55)
    for side, into, out in (("a", "inp", "om"), ("b", "inn", "op")):
        net.n(side, into, "t", pair, LENGTH)
        net.n(out, "cn", side, cascode, LENGTH)
        net.p(out, "cp", f"p{side}", cascode, LENGTH)
        net.p(f"p{side}", "gp", "vdd", load, LENGTH)
        net.capacitor(out, "0", 1e-12)
        net.resistor(out, "middle", 10e6)
    # The loads' gate: a diode's voltage, put right by what the outputs' mean is off.
    net.p("dp", "dp", "vdd", load, LENGTH)
    net.current("diode", "dp", "0", 10e-6)
    net.line("bcm gp 0 v=v(dp)+5*(v(middle)-0.9)")
    net.line("eout out 0 op om 1")


def _folded(net: Netlist, size: Sizing, inverting: str, out: str, mirror: str) -> None:
    """The folded cascode from ``inp`` and `inverting` to `out`."""
    w_in, sink = 4 * size["W_in_base"], 20 * size["W_sink_base"]
    fold, load = 4 * size["W_fold_base"], 20 * size[mirror]
    casc_n, casc_p = 20 * size["W_casc_n_base"], 20 * size["W_casc_p_base"]
    net.current("bn", "vdd", "bn", 10e-6)
    net.current("bp", "bp", "0", 10e-6)
    net.voltage("half", "half", "0", SUPPLY / 2)
    net.p("bp", "bp", "vdd", sink, LENGTH)
    net.p("tail", "bp", "vdd", sink, LENGTH)
    net.n("bn", "bn", "0", casc_n, LENGTH)
    for gate, folded, up, top in (("inp", "f1", "n1", "p1"), (inverting, "f2", out, "p2")):
        net.p(folded, gate, "tail", w_in, LENGTH)
        net.n(folded, "bn", "0", casc_n, LENGTH)
        net.n(up, "half", folded, fold, LENGTH)
        net.p(up, "half", top, casc_p, LENGTH)
        net.p(top, "n1", "vdd", load, LENGTH)


def _folded_cascode(net: Netlist, size: Sizing) -> None:
    inputs(net, 0.7)
    _folded(net, size, "inn", "out", "W_mirror_base")
    net.capacitor("out", "0", 1e-12)


_PLACES = {
    "low": (("R1", "oo", "h"), ("R2", "h", "k"), ("C1", "h", "fo"), ("C2", "k", "0")),
    "high": (("C1", "oo", "h"), ("C2", "h", "k"), ("R1", "h", "fo"), ("R2", "k", "0")),
    "band": (("C1", "oo", "h"), ("R1", "h", "0"), ("R2", "h", "k"), ("C2", "k", "0")),
}
"""Where each part of a filter lies: the amplifier drives ``oo``, an ideal buffer follows ``k``."""


def _filter(kind: str) -> Callable[[Netlist, Sizing], None]:
    def build(net: Netlist, size: Sizing) -> None:
        net.voltage("dd", "vdd", "0", SUPPLY)
        net.voltage("inp", "inp", "0", 0.7, ac=1.0)
        _folded(net, size, "oo", "oo", "W_mirr_base")
        for part, a, b in _PLACES[kind]:
            if part.startswith("R"):
                net.resistor(a, b, size[part])
            else:
                net.capacitor(a, b, size[part] * 1e-12)
        net.line("efo fo 0 k 0 1")
        net.capacitor("fo", "0", 1e-12)

    return build


_OHMS = (500.0, 700.0, 840.0, 1000.0, 1260.0, 1500.0, 2000.0, 3000.0, 5000.0, 10000.0)
_PICOFARADS = (7.96, 11.14, 13.37, 15.92, 20.06, 23.88, 31.84, 47.76, 79.6, 159.2)
_WIDTHS = ("in", "fold", "sink", "mirr", "casc_n", "casc_p")
_FILTER_GRIDS: Mapping[str, tuple[float, ...]] = {
    **{f"W_{name}_base": W9 for name in _WIDTHS},
    "R1": _OHMS, "R2": _OHMS, "C1": _PICOFARADS, "C2": _PICOFARADS,
}  # fmt: skip
_DRIVEN = "The amplifier is a follower (output tied to the inverting input, common mode 0.7 V) and drives the filter. "


def _filter_circuit(
    kind: str,
    suffix: str,
    title: str,
    bench: str,
    metrics: tuple[Metric, ...],
    upstream: tuple[Spec, ...],
    words: str,
) -> Circuit:
    return Circuit(
        name=f"folded_cascode_ota_{suffix}", title=title, kind="filter", variables=_FILTER_GRIDS,
        build=_filter(kind), bench=bench, curve=GAIN_CURVE, metrics=metrics, upstream=upstream, words=_DRIVEN + words,
    )  # fmt: skip


_PASSING = (
    Metric(name="stopband_attenuation_db", unit="dB", better=">"),
    Metric(name="cutoff_mhz", unit="MHz", better=">"),
    Metric(name="passband_gain_db", unit="dB", better=">"),
)


def _passing(stopband: float, cutoff: float, passband: float) -> tuple[Spec, ...]:
    targets = (stopband, cutoff, passband)
    return tuple(
        Spec(metric.name, ">", target) for metric, target in zip(_PASSING, targets, strict=True)
    )


TELESCOPIC = Circuit(
    name="telescopic_ota", title="Telescopic amplifier, differential output", kind="amplifier",
    variables={f"W_{name}_base": W9 for name in ("tail", "diff", "casc", "load")},
    build=_telescopic, bench=open_loop("dc_gain_db", "ugbw", "power_dc"), curve=GAIN_CURVE, metrics=METRICS,
    upstream=specs(18, 3, 65),
    words=WORDS.format(vcm=0.8, load="1 pF at each output; out is the difference of both, whose mean is held at 0.9 V"),
)  # fmt: skip
FOLDED_CASCODE = Circuit(
    name="folded_cascode_ota", title="Folded cascode amplifier", kind="amplifier",
    variables={f"W_{name}_base": W9 for name in ("in", "fold", "sink", "mirror", "casc_n", "casc_p")},
    build=_folded_cascode, bench=open_loop("dc_gain_db", "ugbw", "power_dc"), curve=GAIN_CURVE, metrics=METRICS,
    upstream=specs(1.5, 10, 1.0), words=WORDS.format(vcm=0.7, load="1 pF"),
)  # fmt: skip
LOW_PASS = _filter_circuit(
    "low", "lp", "Low pass of second order behind a folded cascode",
    low_pass(*(metric.name for metric in _PASSING)), _PASSING, _passing(20, 0.5, -5),
    "Passband: gain at 10 Hz; cutoff: where it has fallen by 3.0103 dB; stopband: attenuation at ten times that.",
)  # fmt: skip
HIGH_PASS = _filter_circuit(
    "high", "hp", "High pass of second order behind a folded cascode",
    high_pass(*(metric.name for metric in _PASSING)), _PASSING, _passing(20, 10, -15),
    "Passband: the peak of the gain; cutoff: where it is 3.0103 dB lower, on the lower side; stopband: attenuation "
    "at a tenth of that.",
)  # fmt: skip
BAND_PASS = _filter_circuit(
    "band", "bandp", "Band pass behind a folded cascode", band_pass("q_factor", "center_freq_mhz", "peak_gain_db"),
    (
        Metric(name="q_factor", unit="", better=">"),
        Metric(name="center_freq_mhz", unit="MHz", better=">"),
        Metric(name="peak_gain_db", unit="dB", better=">"),
    ),
    (Spec("q_factor", ">", 0.3), Spec("center_freq_mhz", ">", 0.3), Spec("peak_gain_db", ">", -10)),
    "Peak of the gain; center: geometric mean of the frequencies at which it is 3.0103 dB lower; Q: center over "
    "their distance.",
)  # fmt: skip
