"""Marginal maximum likelihood: processor seconds and cover of the abilities by size and kind of nodes.

    OMP_NUM_THREADS=1 .venv/bin/python -P bench/irt_mml.py [--repeats 5] [--large]

Answers are simulated with θ ~ N(0, 1), b ~ N(0, 1.2²), ln a ~ N(0, 0.4²). The best of the repeats
counts, without standard errors and with them. For comparison PyPI's `mirt` 1.2.0 took 1.54 s at
500×500 (recorded once, one thread, no standard errors): 0.03 s is the target there.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from irt.mml import ItemPrior, MmlResult, Nodes, mml

PYPI_MIRT = {(500, 500): 1.54, (1000, 100): 2.7}


def main() -> int:
    """Fit and print a row for each size and kind of nodes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--large", action="store_true", help="also 5,000 items")
    options = parser.parse_args()
    sizes = [(40, 2000), (500, 500), (1000, 100)] + [(5000, 100)] * options.large
    print("items × models  nodes     steps  seconds  with SEs  cover of θ  PyPI mirt / ours")
    kinds: tuple[Nodes, ...] = ("grid", "adaptive")
    for n_items, n_models in sizes:
        k, n, theta = simulate(n_items, n_models)
        for nodes in kinds:
            plain, fit = best(k, n, nodes, options.repeats, se=False)
            with_se, _ = best(k, n, nodes, 1, se=True)
            peer = PYPI_MIRT.get((n_items, n_models))
            ratio = f"{peer / plain:.0f}×" if peer else "—"
            print(
                f"{n_items:5d} × {n_models:<6d}  {fit.nodes:8s}  {fit.iterations:5d}  {plain:7.3f}  "
                f"{with_se:8.3f}  {cover(fit, theta):10.3f}  {ratio:>16s}"
            )
    return 0


def simulate(n_items: int, n_models: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw complete single answers and the abilities behind them."""
    rng = np.random.default_rng(1)
    theta, b = rng.normal(size=n_models), 1.2 * rng.normal(size=n_items)
    a = np.exp(0.4 * rng.normal(size=n_items))
    p = 1 / (1 + np.exp(-a[:, None] * (theta - b[:, None])))
    k = (rng.random(p.shape) < p).astype(float)
    return k, np.ones_like(k), theta


def best(
    k: np.ndarray, n: np.ndarray, nodes: Nodes, repeats: int, *, se: bool
) -> tuple[float, MmlResult]:
    """Fit some times; return the least processor time and the fit."""
    seconds = []
    for _ in range(repeats):
        began = time.process_time()
        fit = mml(k, n, nodes=nodes, prior=ItemPrior(), se=se)
        seconds.append(time.process_time() - began)
    return min(seconds), fit


def cover(fit: MmlResult, theta: np.ndarray) -> float:
    """Return the share of true abilities within 1.96 SD, both with mean 0 and SD 1."""
    m, s = fit.theta.mean(), fit.theta.std()
    z = (theta - theta.mean()) / theta.std()
    return float((np.abs((fit.theta - m) / s - z) < 1.96 * fit.sd / s).mean())


if __name__ == "__main__":
    sys.exit(main())
