"""Speed and memory of the joint IRT engine against its targets and others' recorded figures.

    nice .venv/bin/python -P bench/irt_speed.py [--case NAME ...] [--bridge FOLDER] [--repeats 5] [--json]

Every case is a process of its own with one BLAS thread; time is CPU time (median), memory the peak of
the process. Seconds move with the machine and its load, which is printed; ratios to the floor (one
float32 sigmoid pass and one SYRK, measured in the same process) hold better. The other tools are not
run here: their seconds were recorded on a machine of the same kind (2 cores, one thread), see SOURCES.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

SOURCES = (
    "py-irt 0.7.1 (1,000 epochs, no errors), R mirt 1.38.1, PyPI mirt 1.2.0: recorded, not run"
)
SIZES = {"100x1000": (100, 1000), "500x500": (500, 500), "500x5000": (500, 5000),
         "2000x10000": (2000, 10_000)}  # fmt: skip
BRIDGE = Path(__file__).resolve().parents[2] / "shared" / "upstream" / "irt" / "bridge"


class Bar(NamedTuple):
    """The most that a figure of a case may be, and where the bar comes from."""

    case: str
    figure: str
    most: float
    why: str


BARS = (
    Bar("bridge", "fit", 0.15, "target, all errors"),
    Bar("bridge", "fit", 9.7 / 60, "60 times py-irt's 9.7 s"),
    Bar("bridge", "fit", 82 / 500, "500 times R mirt's 82 s"),
    Bar("bridge", "warm", 0.030, "refit after one new model"),
    Bar("bridge", "warm / fit", 0.5, "half a cold fit"),
    Bar("bridge", "score", 0.001, "one new model"),
    Bar("bridge", "draws / fit", 4.0, "1,000 joint draws"),
    Bar("100x1000", "fit", 2.7 / 35, "35 times PyPI mirt's 2.7 s"),
    Bar("500x500", "fit", 1.54 / 7, "7 times PyPI mirt's 1.54 s"),
    Bar("500x5000", "fit", 0.7, "target, all errors"),
    Bar("500x5000", "iteration / floor", 3.0, "one sigmoid pass and one SYRK"),
    Bar("2000x10000", "fit", 12.0, "target, all errors"),
    Bar("2000x10000", "peak GB", 1.5, "target"),
)


def main() -> int:
    """Measure, print a table, exit 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    cases = ["bridge", *SIZES]
    parser.add_argument("--case", action="append", choices=cases)
    parser.add_argument("--bridge", type=Path, default=BRIDGE, help="folder of all_a_pyirt.jsonl")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--step", choices=cases, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        print(json.dumps(measure(options.step, options.bridge, options.repeats)))
        return 0
    found = {case: _apart(case, options) for case in options.case or cases}
    if options.json:
        print(json.dumps({"load": os.getloadavg(), "cases": found}))
    else:
        _show(found)
    return int(any(found[b.case].get(b.figure, 0) > b.most for b in BARS if b.case in found))


def _apart(case: str, options: argparse.Namespace) -> dict[str, float]:
    """Run one case in a process with one thread."""
    one = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")}
    done = subprocess.run(
        [sys.executable, "-P", __file__, "--step", case, "--bridge", options.bridge,
         "--repeats", str(options.repeats)],
        env=os.environ | one | {"PYTHONPATH": str(Path(__file__).resolve().parents[1])},
        check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def _show(found: dict[str, dict[str, float]]) -> None:
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; CPU seconds, medians")
    print(SOURCES)
    for case, figures in found.items():
        print(case, ", ".join(f"{name} {value:.4g}" for name, value in figures.items()))
        for bar in BARS:
            if bar.case == case and bar.figure in figures:
                value = figures[bar.figure]
                word = "ok  " if value <= bar.most else "MISS"
                print(f"  {word} {bar.figure} {value:.4g} of at most {bar.most:.4g} ({bar.why})")


def _cpu(work: Callable[[], Any], repeats: int) -> tuple[Any, float]:
    """Give a result and the median of its CPU seconds, after one run that does not count."""
    result = work()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        result = work()
        times.append(time.process_time() - start)
    return result, statistics.median(times)


def measure(case: str, bridge: Path, repeats: int) -> dict[str, float]:
    """Measure one case in this process."""
    if case == "bridge":
        if not (bridge / "all_a_pyirt.jsonl").is_file():
            print(f"no {bridge}/all_a_pyirt.jsonl: bridge is left out", file=sys.stderr)
            return {}
        figures = _bridge(bridge, repeats)
    else:
        figures = _simulated(*SIZES[case], repeats if case != "2000x10000" else 1)
    return figures | {"peak GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}


def _bridge(folder: Path, repeats: int) -> dict[str, float]:
    import numpy as np

    import irt

    data = irt.read(folder / "all_a_pyirt.jsonl")
    fit, cold = _cpu(lambda: irt.fit(data), repeats)
    everything = np.ones(len(data.items), dtype=bool)
    others = np.arange(len(data.models)) != 30
    before = irt.fit(data.subset(everything, others))
    again, warm = _cpu(lambda: irt.fit(data, warm=before), repeats)
    # In turns, so that another program's load falls on both.
    ratio = statistics.median(
        _cpu(lambda: irt.fit(data, warm=before), 1)[1] / _cpu(lambda: irt.fit(data), 1)[1]
        for _ in range(2 * repeats + 1)
    )
    one = data.subset(everything, ~others)
    drawing = _cpu(lambda: fit.draws(1000), repeats)[1]
    return {
        "fit": cold,
        "iterations": fit.verdict.iterations,
        "warm": warm,
        "warm / fit": ratio,
        "warm iterations": again.verdict.iterations,
        "score": _cpu(lambda: fit.score_model(one), repeats)[1],
        "draws / fit": drawing / cold,
    }


def _simulated(n_models: int, n_items: int, repeats: int) -> dict[str, float]:
    """θ N(0, 1), b N(0, 1.2²), log a N(0, .4²), complete."""
    import numpy as np

    import irt
    from irt import joint

    rng = np.random.default_rng(1)
    theta, b = rng.normal(size=n_models), 1.2 * rng.normal(size=n_items)
    a = np.exp(0.4 * rng.normal(size=n_items))
    k = np.empty((n_items, n_models))
    for i in range(n_items):
        k[i] = rng.random(n_models) < 1 / (1 + np.exp(-a[i] * (theta - b[i])))
    data = irt.Responses(
        tuple(f"m{j:04d}" for j in range(n_models)), tuple(f"i{i:05d}" for i in range(n_items)),
        k, np.ones_like(k),
    )  # fmt: skip
    if repeats == 1:  # the large case: once is enough, and its own warming up
        start = time.process_time()
        fit, seconds = irt.fit(data, method="joint"), time.process_time() - start
    else:
        fit, seconds = _cpu(lambda: irt.fit(data, method="joint"), repeats)
    m, s = theta.mean(), theta.std()
    figures = {
        "fit": seconds,
        "iterations": float(fit.verdict.iterations),
        "rmse theta": float(np.sqrt(np.mean((fit.models.theta - (theta - m) / s) ** 2))),
        "rmse b": float(np.sqrt(np.mean((fit.items.b - (b - m) / s) ** 2))),
        "rmse log a": float(np.sqrt(np.mean(np.log(fit.items.a / (a * s)) ** 2))),
    }
    if repeats > 1:
        single = data.k.astype(np.float32), data.n.astype(np.float32)
        start_at, options = joint.cold_start(*single), joint.Options()
        (_, count, _), total = _cpu(
            lambda: joint._first_stage(*single, start_at, options),  # noqa: SLF001 - a bench looks inside
            repeats,
        )
        figures["iteration / floor"] = total / count / _floor(n_models, n_items, repeats)
    return figures


def _floor(n_models: int, n_items: int, repeats: int) -> float:
    """One float32 sigmoid pass over all cells and one SYRK of the two rows of each item."""
    import numpy as np
    from scipy.linalg.blas import ssyrk

    z = np.random.default_rng(0).normal(size=(n_items, n_models)).astype(np.float32)
    out = np.empty_like(z)
    rows = np.asfortranarray(np.vstack([z, z]).T)

    def sigmoid() -> None:
        np.exp(z, out=out)
        np.add(out, 1, out=out)
        np.reciprocal(out, out=out)

    return _cpu(sigmoid, repeats)[1] + _cpu(lambda: ssyrk(1.0, rows), repeats)[1]


if __name__ == "__main__":
    sys.exit(main())
