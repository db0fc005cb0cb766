"""Benches of what holds its own operating point: amplifiers in a loop, filters, regulators.

As in `scorers.spice.benches`, a metric counts when its ``@m`` line has a number.
"""

from __future__ import annotations

from scorers.spice.benches import SUPPLY
from scorers.spice.netlist import Netlist

_CORNER_DB = 3.0103
_HZ = {"kHz": "1e-3", "MHz": "1e-6"}


def loop(net: Netlist, out: str, inverting: str) -> None:
    """Close a loop at DC only: 1 GH from the output to the inverting input, 1 GF from there to ground.

    The operating point is that of a follower; at every frequency of interest the loop is open.
    """
    net.line(f"lloop {out} {inverting} 1e9")
    net.line(f"cloop {inverting} 0 1e9")


def closed_loop(gain: str, unity: str, power: str, *, unit: str, margin: str = "") -> str:
    """Measure an amplifier whose DC loop is closed, 1 V AC at the other input.

    Gain at 1 Hz, first frequency of gain 1 (in `unit`), power in µW, phase margin in degrees at the last
    crossing of gain 1.
    """
    more = ""
    if margin:
        more = f"""\
let phase_curve = cph(v(out))*180/pi
meas ac phase_there find phase_curve when gain_curve=0 cross=last
let margin = 180+phase_there
echo "@m {margin} $&margin"
"""
    return f"""\
op
let power = -i(vdd)*{SUPPLY}*1e6
echo "@m {power} $&power"
ac dec 100 1 10g
let gain_curve = db(v(out))
meas ac gain find gain_curve at=1
echo "@m {gain} $&gain"
meas ac crossing when gain_curve=0 cross=1
let unity = crossing*{_HZ[unit]}
echo "@m {unity} $&unity"
{more}"""


def low_pass(stopband: str, cutoff: str, passband: str) -> str:
    """Measure a low pass: gain at 10 Hz in dB, its corner in MHz, attenuation at ten times that."""
    return f"""\
ac dec 100 1 100g
let gain_curve = db(v(fo))
meas ac passband find gain_curve at=10
echo "@m {passband} $&passband"
let below = passband-{_CORNER_DB}
meas ac corner when gain_curve=below fall=1
let cutoff = corner*1e-6
echo "@m {cutoff} $&cutoff"
let far = corner*10
meas ac beyond find gain_curve at=$&far
let stopband = passband-beyond
echo "@m {stopband} $&stopband"
"""


def high_pass(stopband: str, cutoff: str, passband: str) -> str:
    """Measure a high pass: its peak in dB, the lower corner in MHz, attenuation at a tenth of that."""
    return f"""\
ac dec 100 1 100g
let gain_curve = db(v(fo))
meas ac passband max gain_curve
echo "@m {passband} $&passband"
let below = passband-{_CORNER_DB}
meas ac corner when gain_curve=below rise=1
let cutoff = corner*1e-6
echo "@m {cutoff} $&cutoff"
let far = corner/10
meas ac beyond find gain_curve at=$&far
let stopband = passband-beyond
echo "@m {stopband} $&stopband"
"""


def band_pass(quality: str, center: str, peak: str) -> str:
    """Measure a band pass: its peak in dB, the geometric mean of both corners in MHz, Q."""
    return f"""\
ac dec 100 1 100g
let gain_curve = db(v(fo))
meas ac peak max gain_curve
echo "@m {peak} $&peak"
let below = peak-{_CORNER_DB}
meas ac lower when gain_curve=below rise=1
meas ac upper when gain_curve=below fall=last
let middle = sqrt(lower*upper)
let center = middle*1e-6
echo "@m {center} $&center"
let quality = middle/(upper-lower)
echo "@m {quality} $&quality"
"""


def hold(error: str, held: float, period_us: float) -> str:
    """Measure a sample and hold: the error in mV at the end of the third hold phase, clock of 50 %."""
    end = 3 * period_us
    return f"""\
tran 1n {end}u
meas tran kept find v(hout) at={end - 0.005 * period_us:g}u
let error = abs(kept-{held})*1e3
echo "@m {error} $&error"
"""


def reference(vref: str, power: str, line: str, psrr: str, supply: float) -> str:
    """Measure a reference: voltage, power in µW, change from 1.8 to 2.2 V in % per V, PSRR at 100 Hz."""
    return f"""\
op
let vref = v(ref)
echo "@m {vref} $&vref"
let power = -i(vdd)*{supply}*1e6
echo "@m {power} $&power"
dc vdd 1.8 2.25 0.05
meas dc low find v(ref) at=1.8
meas dc high find v(ref) at=2.2
meas dc nominal find v(ref) at={supply}
let line = abs(high-low)/0.4/nominal*100
echo "@m {line} $&line"
ac dec 100 1 10k
let gain_curve = db(v(ref))
meas ac through find gain_curve at=100
let psrr = -through
echo "@m {psrr} $&psrr"
"""


def regulator(vout: str, dropout: str, line: str, load: str, psrr: str, power: str) -> str:
    """Measure a regulator of 10 mA at 1.8 V.

    Line from 1.62 to 1.98 V in mV per V, load from 1 to 20 mA in mV per mA, PSRR at 1 kHz in dB; dropout
    in mV: the supply at which the output has fallen by 1 %, less that output; power in µW: the supply's
    without the load's.
    """
    return f"""\
op
let vout = v(out)
echo "@m {vout} $&vout"
let power = (-i(vdd)*{SUPPLY}-0.01*v(out))*1e6
echo "@m {power} $&power"
dc vdd 2.0 0.9 -0.005
meas dc at_high find v(out) at=1.98
meas dc at_low find v(out) at=1.62
let line = abs(at_high-at_low)/0.36*1e3
echo "@m {line} $&line"
meas dc nominal find v(out) at={SUPPLY}
let limit = nominal*0.99
let supply_curve = v(vdd)
meas dc supply_there find supply_curve when v(out)=limit cross=1
let dropout = (supply_there-limit)*1e3
echo "@m {dropout} $&dropout"
dc iload 0.001 0.021 0.001
meas dc light find v(out) at=0.001
meas dc heavy find v(out) at=0.02
let load_change = abs(light-heavy)/19*1e3
echo "@m {load} $&load_change"
ac dec 100 1 1meg
let gain_curve = db(v(out))
meas ac through find gain_curve at=1k
let psrr = -through
echo "@m {psrr} $&psrr"
"""
