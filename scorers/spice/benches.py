"""Benches: how a circuit is measured, in ngspice's own language.

Each prints ``@m NAME VALUE`` for a metric that it could measure. A measurement that fails leaves its
vector out, so that its marker has no number: such a metric was not met, whatever the exit status.
"""

from __future__ import annotations

SUPPLY = 1.8
HALF = SUPPLY / 2

OPEN_LOOP = f"""\
op
let power = -i(vdd)*{SUPPLY}*1e6
{{power}}
ac dec 100 1 10g
let gain_curve = db(v(out))
meas ac gain find gain_curve at=1
meas ac crossing when gain_curve=0 cross=1
let phase_curve = cph(v(out))*180/pi
meas ac phase_there find phase_curve when gain_curve=0 cross=last
{{gain}}
let unity = crossing*1e-6
{{unity}}
let margin = 180+phase_there
{{margin}}
"""


def renamed(**names: str) -> dict[str, str]:
    """Give the lines that print bench vectors under a circuit's own names of metrics."""
    return {
        vector: f'echo "@m {name} $&{vector}"' if name else "" for vector, name in names.items()
    }


def open_loop(gain: str, unity: str, power: str, margin: str = "phase_margin_deg") -> str:
    """Measure an amplifier without feedback: gain at 1 Hz, unity-gain frequency in MHz, power in µW."""
    return OPEN_LOOP.format(**renamed(gain=gain, unity=unity, power=power, margin=margin))


def logic(gain: str, delay: str, power: str, *, inverting: bool, period_ns: float) -> str:
    """Measure an inverter or a buffer between rail and rail.

    Gain from a sweep of 10 mV; delay in ps between the first crossings of half the supply; power in µW
    over one period, what flows before the first edge taken off.
    """
    rise, fall = ("fall", "rise") if inverting else ("rise", "fall")
    start, end = 1.0, 1.0 + period_ns
    return f"""\
dc vin 0 {SUPPLY} 0.01
let slope = db(abs(deriv(v(out)))+1e-9)
meas dc dc_gain max slope
echo "@m {gain} $&dc_gain"
tran 1p {end}n
meas tran first trig v(in) val={HALF} rise=1 targ v(out) val={HALF} {rise}=1
meas tran second trig v(in) val={HALF} fall=1 targ v(out) val={HALF} {fall}=1
let delay = (first+second)/2*1e12
echo "@m {delay} $&delay"
let drawn = -i(vdd)*{SUPPLY}
meas tran mean_all avg drawn from={start}n to={end}n
meas tran mean_rest avg drawn from=0 to={start}n
let power = (mean_all-mean_rest)*1e6
echo "@m {power} $&power"
"""


def logic_pulse(period_ns: float) -> str:
    """Give the input of `logic`: edges of 0.1 ns, half a period high, the first after 1 ns."""
    return f"pulse(0 {SUPPLY} 1n 0.1n 0.1n {period_ns / 2 - 0.1:g}n {period_ns:g}n)"


def gate(delay: str, energy: str, high: str, low: str, power: str = "") -> str:
    """Measure a gate with a = 1 and edges of 0.1 ns on b at 5 and 15 ns.

    Delays in ps count from b's edges; energy in fJ is the supply's charge from 4 to 24 ns without
    leakage, times the supply, half of it (two transitions); margins are taken where the transfer curve
    has a slope of one.
    """
    more = f'let power_uw = total*{SUPPLY}/20n*1e6\necho "@m {power} $&power_uw"\n' if power else ""
    return f"""\
dc vb 0 {SUPPLY} 0.005
let slope = abs(deriv(v(y)))
meas dc vil when slope=1 cross=1
meas dc vih when slope=1 cross=last
meas dc voh find v(y) when slope=1 cross=1
meas dc vol find v(y) when slope=1 cross=last
let margin_high = voh-vih
let margin_low = vil-vol
echo "@m {high} $&margin_high"
echo "@m {low} $&margin_low"
tran 5p 24n
meas tran first trig v(b) val={HALF} rise=1 targ v(y) val={HALF} fall=1
meas tran second trig v(b) val={HALF} fall=1 targ v(y) val={HALF} rise=1
let delay = (first+second)/2*1e12
echo "@m {delay} $&delay"
let drawn = -i(vdd)
meas tran total integ drawn from=4n to=24n
meas tran leak avg drawn from=1n to=4n
let energy = (total-leak*20n)*{SUPPLY}/2*1e15
echo "@m {energy} $&energy"
{more}"""


GATE_PULSE = f"pulse(0 {SUPPLY} 5n 0.1n 0.1n 9.9n 40n)"


def common_source(gain: str, bandwidth: str, power: str, swing: str) -> str:
    """Measure a single transistor with a load: gain in dB, -3 dB bandwidth in MHz, power in µW, swing in V."""
    return f"""\
op
let power = -i(vdd)*{SUPPLY}*1e6
echo "@m {power} $&power"
let up = {SUPPLY}-v(out)
let swing = (v(out)+up-abs(v(out)-up))/2
echo "@m {swing} $&swing"
ac dec 100 1 100g
let gain_curve = db(v(out))
meas ac gain find gain_curve at=1
echo "@m {gain} $&gain"
let below = gain-3.0103
meas ac corner when gain_curve=below fall=1
let bandwidth = corner*1e-6
echo "@m {bandwidth} $&bandwidth"
"""


def ring(frequency: str, power: str, delay: str, stages: int) -> str:
    """Measure a ring: mean of periods 4 to 8, power over these periods, delay of a stage in ps."""
    return f"""\
tran 1p 20n uic
meas tran begin when v(n0)={HALF} rise=4
meas tran end when v(n0)={HALF} rise=8
let period = (end-begin)/4
let frequency = 1e-6/period
echo "@m {frequency} $&frequency"
let delay = period/{2 * stages}*1e12
echo "@m {delay} $&delay"
let drawn = -i(vdd)*{SUPPLY}
meas tran mean_power avg drawn from=begin to=end
let power = mean_power*1e6
echo "@m {power} $&power"
"""


def controlled(tuning: str, frequency: str, gain: str, step_ps: float, end_ns: float) -> str:
    """Measure three rings that stand for one at 0, 0.9 and 1.8 V of control (``r0``, ``r1``, ``r2``).

    Tuning range: from lowest to highest frequency, in percent of the mean of both; frequency at 1.8 V in
    MHz; gain from 0 to 1.8 V in MHz per V.
    """
    measured = "".join(
        f"""\
meas tran begin{k} when v(r{k}n0)={HALF} rise=4
meas tran end{k} when v(r{k}n0)={HALF} rise=8
let f{k} = 4e-6/(end{k}-begin{k})
"""
        for k in range(3)
    )
    return f"""\
tran {step_ps}p {end_ns}n uic
{measured}let top = (f0+f2+abs(f0-f2))/2
let bottom = (f0+f2-abs(f0-f2))/2
let high = (top+f1+abs(top-f1))/2
let low = (bottom+f1-abs(bottom-f1))/2
let tuning = (high-low)/(high+low)*200
echo "@m {tuning} $&tuning"
echo "@m {frequency} $&f2"
let gain = abs(f2-f0)/{SUPPLY}
echo "@m {gain} $&gain"
"""


__all__ = [
    "GATE_PULSE",
    "SUPPLY",
    "common_source",
    "controlled",
    "gate",
    "logic",
    "logic_pulse",
    "open_loop",
    "ring",
]
