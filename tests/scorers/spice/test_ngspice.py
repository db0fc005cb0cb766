"""The simulator: a figure counts only when it was measured, and faults are told apart."""

from __future__ import annotations

import shutil

import pytest

from scorers.spice import CIRCUITS, Simulator, technology
from scorers.spice.circuit import Circuit, Metric
from scorers.spice.technology import Technology

if shutil.which("ngspice") is None:
    pytest.skip("needs the program ngspice: apt-get install ngspice", allow_module_level=True)

NO_MODELS = Technology(name="none", sha256="0", files={"models.spice": "* none\n"}, header="")


def circuit(bench, *names, build=None):
    def divider(net, size):
        net.voltage("in", "a", "0", 2.0)
        net.resistor("a", "b", size["R"])
        net.resistor("b", "0", 1e3)

    return Circuit(
        name="c", title="", kind="", variables={"R": (1e3, 3e3)}, build=build or divider, bench=bench,
        metrics=tuple(Metric(name=n, unit="", better=">") for n in names), upstream=(), words="",
    )  # fmt: skip


@pytest.fixture(scope="module")
def simulator():
    made = Simulator(NO_MODELS, workers=2)
    yield made
    made.close()


def only(simulator, made):
    (found,) = simulator.simulate(made, [{"R": 1e3}])
    return found


def test_figures_come_from_their_marks_and_sizings_in_their_order(simulator):
    made = circuit('op\nlet half = v(b)\necho "@m half $&half"\n', "half")
    found = simulator.simulate(made, [{"R": 1e3}, {"R": 3e3}, {"R": 1e3}])
    assert [one.metrics["half"] for one in found] == [1.0, 0.5, 1.0]
    assert found[0] is found[2]


@pytest.mark.parametrize(
    ("bench", "status"),
    [
        ('tran 1n 10n\nmeas tran t when v(b)=5 cross=1\necho "@m t $&t"\n', "ok"),  # exit status 0
        ('op\necho "@m t nan"\n', "ok"),
        ('op\necho "@m t 1e999"\n', "ok"),
        ('op\necho "@m other 3"\n', "ok"),
        ('op\nlet t = v(nowhere)\necho "@m t $&t"\n', "ok"),
    ],
)  # fmt: skip
def test_what_was_not_measured_is_missing_and_never_a_default(simulator, bench, status):
    found = only(simulator, circuit(bench, "t"))
    assert (found.status, found.metrics, found.missing, found.valid) == (status, {}, ("t",), False)
    assert found.reason


def test_a_device_that_is_not_there_fails_by_name(simulator):
    def build(net, size):
        net.voltage("in", "a", "0", 1.0)
        net.n("a", "a", "0", 1.0, 0.15)

    found = only(simulator, circuit('op\necho "@m t 1"\n', "t", build=build))
    assert found.status == "failed"
    assert not found.valid


def test_a_loop_of_sources_is_no_figure(simulator):
    def build(net, size):
        net.voltage("one", "a", "0", 1.0)
        net.voltage("two", "a", "0", 2.0)

    found = only(simulator, circuit('op\nlet t = v(a)\necho "@m t $&t"\n', "t", build=build))
    assert not found.valid


def test_a_mean_over_time_is_one_over_time(simulator):
    # A square wave of a quarter, in steps of very different length.
    def build(net, size):
        net.voltage("in", "a", "0", 0.0, pulse="pulse(0 1 0 1p 1p 25n 100n)")
        net.resistor("a", "b", 1e3)
        net.capacitor("b", "0", 1e-15)

    bench = (
        'tran 1n 400n\nmeas tran t avg v(a) from=0 to=400n\necho "@m t $&t"\n'
        'let plain = mean(v(a))\necho "@m plain $&plain"\n'
    )
    found = only(simulator, circuit(bench, "t", "plain", build=build))
    assert found.metrics["t"] == pytest.approx(0.25, rel=1e-3)
    assert found.metrics["plain"] != pytest.approx(0.25, rel=0.05)


def test_bench_text_is_ours_alone_and_the_box_hides_the_host(simulator):
    found = only(simulator, circuit('op\nshell cat /etc/shadow\necho "@m t 1"\n', "t"))
    assert found.metrics == {"t": 1.0}


def test_the_same_circuit_in_another_technology_is_another_simulation():
    made = CIRCUITS["five_trans_ota"]
    demo = technology("demo")
    other = Technology(name="demo", sha256="other", files=demo.files, header=demo.header)
    one, two = Simulator(demo, workers=1), Simulator(other, workers=1)
    assert (
        one.simulate(made, [made.middle])[0].metrics == two.simulate(made, [made.middle])[0].metrics
    )
    one.close()
    two.close()
