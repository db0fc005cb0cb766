"""Coverage of the joint fit's 95 % intervals at full size, and failures on small sets.

    nice .venv/bin/python -P bench/irt_coverage.py [--sets 50] [--quick]

θ ~ N(0, 1), b ~ N(0, 1.2²), log a ~ N(0, .4²); truth standardised as the fit is. θ and log a by their
standard errors, b by percentiles of joint draws. About two minutes on a quiet core.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:  # numpy must not be imported before the number of its threads is set
    from irt.data import Floats, Responses


class Size(NamedTuple):
    """Models, items, sets, and the least and most coverage of θ, b and log a."""

    models: int
    items: int
    sets: int
    theta: tuple[float, float] = (0.92, 0.98)
    b: tuple[float, float] = (0.92, 0.98)
    log_a: tuple[float, float] = (0.90, 0.98)


def main() -> int:
    """Simulate, fit, count; exit 1 when a coverage is out of its range or a small set fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sets", type=int, default=50)
    parser.add_argument("--quick", action="store_true", help="a fifth of everything")
    options = parser.parse_args()
    for name in ("OPENBLAS", "OMP", "MKL"):
        os.environ[f"{name}_NUM_THREADS"] = "1"  # numpy is imported after this
    share = 5 if options.quick else 1
    sets = options.sets // share
    bad = 0
    for size in (Size(40, 300, sets), Size(150, 1000, sets), Size(60, 5000, max(2, sets // 5))):
        bad += not covered(size)
    for models, items in ((4, 100), (5, 20)):
        failed = failures(models, items, 2 * sets)
        print(f"{models} × {items}: {failed} failures in {2 * sets} sets")
        bad += failed
    return int(bad > 0)


def covered(size: Size) -> bool:
    """Fit the sets of one size and tell whether every coverage is in its range."""
    import numpy as np

    import irt

    hits: dict[str, list[float]] = {"theta": [], "b": [], "log_a": []}
    start = time.process_time()

    def share_of(hit: Any) -> float:
        return float(np.mean(hit))

    for seed in range(size.sets):
        theta, a, b, responses = simulated(size.models, size.items, seed)
        fit = irt.fit(responses, method="joint")
        low, high = np.percentile(fit.draws(400, seed=seed).b, [2.5, 97.5], axis=0)
        hits["theta"].append(share_of(np.abs(fit.models.theta - theta) < 1.96 * fit.models.se))
        hits["b"].append(share_of((low < b) & (b < high)))
        hits["log_a"].append(share_of(np.abs(np.log(fit.items.a / a)) < 1.96 * fit.items.se_log_a))
    shares = {name: float(np.mean(values)) for name, values in hits.items()}
    inside = all(
        getattr(size, name)[0] <= v <= getattr(size, name)[1] for name, v in shares.items()
    )
    print(
        f"{size.models} × {size.items}, {size.sets} sets: "
        + ", ".join(f"{name} {value:.3f}" for name, value in shares.items())
        + f" ({time.process_time() - start:.0f} CPU s){'' if inside else ' OUT OF RANGE'}"
    )
    return inside


def failures(models: int, items: int, sets: int) -> int:
    """Count the small sets that did not converge or have no errors."""
    import numpy as np

    import irt

    count = 0
    for seed in range(sets):
        fit = irt.fit(simulated(models, items, seed)[3], method="joint")
        count += not (fit.verdict.converged and np.isfinite(fit.items.se_b).all())
    return count


def simulated(models: int, items: int, seed: int) -> tuple[Floats, Floats, Floats, Responses]:
    """Give θ, a, b and the answers; truth with mean(θ) = 0, SD(θ) = 1."""
    import numpy as np

    import irt

    rng = np.random.default_rng(seed)
    theta, b = rng.normal(size=models), 1.2 * rng.normal(size=items)
    a = np.exp(0.4 * rng.normal(size=items))
    k = rng.random((models, items)) < 1 / (1 + np.exp(-a * (theta[:, None] - b)))
    m, s = theta.mean(), theta.std()
    return (theta - m) / s, a * s, (b - m) / s, irt.Responses.from_matrix(k.astype(float))


if __name__ == "__main__":
    sys.exit(main())
