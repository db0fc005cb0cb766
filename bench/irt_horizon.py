"""Coverage of the 95 % intervals of horizons at full size, by level of the link.

    nice .venv/bin/python -P bench/irt_horizon.py [--sets 50] [--quick]

θ ~ N(0, 1), b ~ N(0, 1.2²), log a ~ N(0, .4²), log minutes 3 + 1.5 b + N(0, τ²) on the anchors; truth
standardised as the fit is. Beside them the fault that the link avoids: least squares anew on each draw.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:  # numpy must not be imported before the number of its threads is set
    from irt.data import Floats
    from irt.fitting import Fit

ALPHA, BETA = 3.0, 1.5
LEAST, MOST = {"ols": 0.92, "weighted": 0.92, "joint": 0.90}, 0.98
DRAWS = 400


class Size(NamedTuple):
    """Models, items, anchors and τ."""

    models: int
    items: int
    anchors: int
    tau: float


SIZES = (Size(40, 300, 90, 1.0), Size(60, 400, 57, 1.5), Size(150, 1000, 173, 1.5))


def main() -> int:
    """Simulate, fit, count; exit 1 when the coverage of a level is out of its range."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sets", type=int, default=50)
    parser.add_argument("--quick", action="store_true", help="a fifth of everything")
    options = parser.parse_args()
    for name in ("OPENBLAS", "OMP", "MKL"):
        os.environ[f"{name}_NUM_THREADS"] = "1"  # numpy is imported after this
    sets = options.sets // (5 if options.quick else 1)
    bad = 0
    for size in SIZES:
        start = time.process_time()
        cover, slopes = measured(size, sets)
        wrong = [name for name in slopes if not LEAST[name] <= cover[name] <= MOST]
        bad += len(wrong)
        print(
            f"{size.models} × {size.items}, {size.anchors} anchors, τ {size.tau}, {sets} sets: cover "
            + ", ".join(f"{name} {value:.3f}" for name, value in cover.items())
            + "; slope/true "
            + ", ".join(f"{name} {value:.3f}" for name, value in slopes.items())
            + f" ({time.process_time() - start:.0f} CPU s)"
            + (f" OUT OF RANGE: {', '.join(wrong)}" if wrong else "")
        )
    return int(bad > 0)


def measured(size: Size, sets: int) -> tuple[dict[str, float], dict[str, float]]:
    """Give the coverage by level (and of the fault), and the mean of each level's slope over β."""
    import numpy as np

    from irt.horizon import horizons
    from irt.link import LEVELS
    from irt.trend import all_levels

    hits: dict[str, list[Any]] = {name: [] for name in (*LEVELS, "naive")}
    slopes: dict[str, list[float]] = {name: [] for name in LEVELS}
    for seed in range(sets):
        fit, theta, b = simulated(size.models, size.items, seed)
        rng = np.random.default_rng([seed, 7])
        chosen = np.sort(rng.choice(size.items, size.anchors, replace=False))
        y = ALPHA + BETA * b[chosen] + size.tau * rng.normal(size=size.anchors)
        truth = ALPHA + BETA * theta
        minutes = {fit.items.item[i]: h for i, h in zip(chosen, np.exp(y), strict=True)}
        for name, (one, link) in all_levels(fit, minutes).items():
            found = horizons(one, link, n=DRAWS, seed=seed)
            hits[name].append((np.log(found.lo) < truth) & (truth < np.log(found.hi)))
            slopes[name].append(link.beta / BETA)
        low, high = np.quantile(refitted(fit, y, chosen, seed), [0.025, 0.975], axis=0)
        hits["naive"].append((low < truth) & (truth < high))
    return (
        {name: float(np.mean(values)) for name, values in hits.items()},
        {name: float(np.mean(values)) for name, values in slopes.items()},
    )


def refitted(fit: Fit, y: Floats, rows: Any, seed: int) -> Floats:
    """Log horizons with ordinary least squares anew on every draw of b: too narrow, attenuated."""
    import numpy as np

    drawn = fit.draws(DRAWS, seed)
    b = drawn.b[:, rows]
    centred = b - b.mean(axis=1, keepdims=True)
    beta = centred @ y / np.sum(centred**2, axis=1)
    logs = y.mean() + beta[:, None] * (drawn.theta - b.mean(axis=1, keepdims=True))
    return np.asarray(logs)


def simulated(models: int, items: int, seed: int) -> tuple[Fit, Floats, Floats]:
    """Give a fit with the true θ and b, standardised."""
    import numpy as np

    import irt

    rng = np.random.default_rng(seed)
    theta, b = rng.normal(size=models), 1.2 * rng.normal(size=items)
    a = np.exp(0.4 * rng.normal(size=items))
    k = rng.random((models, items)) < 1 / (1 + np.exp(-a * (theta[:, None] - b)))
    m, s = theta.mean(), theta.std()
    fit = irt.fit(irt.Responses.from_matrix(k.astype(float)), method="joint")
    return fit, (theta - m) / s, (b - m) / s


if __name__ == "__main__":
    sys.exit(main())
