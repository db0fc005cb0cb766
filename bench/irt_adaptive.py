"""Adaptive tests: coverage of their intervals on simulated models, and BRIDGE's models replayed.

    nice .venv/bin/python -P bench/irt_adaptive.py [--sets 20] [--quick] [--bridge PATH]

θ ~ N(0, 1), b ~ N(0, 1.2²), log a ~ N(0, .4²); the bank is fitted to one set of models and the tests
are of 100 others, whose θ and score over all items are known. `--bridge` names all_a_pyirt.jsonl: ten
draws of 25 models with at least 480 answers, the bank fitted without them. Two minutes.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:  # numpy must not be imported before the number of its threads is set
    import irt

RANGE = (0.92, 0.98)
TESTED = 100
POINTS = (5, 10, 25, 30, 50)
BAR = (25, 0.025)  # so many items, so large a mean |error| of the score
RULES: dict[str, dict[str, Any]] = {
    "default": {},
    "one at a time": {"batch": 1},
    "one at a time, for theta": {"batch": 1, "aim": "theta"},
    "for theta, 4 at first, one of three best": {"first": 4, "randomesque": 3, "aim": "theta"},
}


class Size(NamedTuple):
    """Models and items of the bank, items asked."""

    models: int
    items: int
    asked: int


def main() -> int:
    """Simulate, replay, print; exit 1 when a coverage is out of its range."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="a fifth of everything")
    parser.add_argument("--bridge", type=Path, help="all_a_pyirt.jsonl of BRIDGE")
    options = parser.parse_args()
    for name in ("OPENBLAS", "OMP", "MKL"):
        os.environ[f"{name}_NUM_THREADS"] = "1"  # numpy is imported after this
    share = 5 if options.quick else 1
    sizes = [Size(*bank, asked) for bank in ((40, 300), (150, 1000)) for asked in (8, 24, 64)]
    bad = sum(not covered(size, max(2, options.sets // share)) for size in sizes)
    if options.bridge:
        bridge(options.bridge, 10 // share)
    return int(bad > 0)


def covered(size: Size, sets: int) -> bool:
    """Replay the sets of one size and tell whether θ and score are covered as they should be."""
    import numpy as np

    import irt

    start = time.process_time()
    theta_z: list[float] = []
    posterior_z: list[float] = []
    in_score: list[bool] = []
    for seed in range(sets):
        rng = np.random.default_rng(seed)
        theta, b = rng.normal(size=size.models + TESTED), 1.2 * rng.normal(size=size.items)
        a = np.exp(0.4 * rng.normal(size=size.items))
        k = (
            rng.random((len(theta), size.items)) < 1 / (1 + np.exp(-a * (theta[:, None] - b)))
        ) * 1.0
        # The fit has mean 0 and SD 1 over its own models; the new ones are brought to that scale.
        known, new = theta[: size.models], theta[size.models :]
        new = (new - known.mean()) / known.std()
        bank = irt.Bank.of(irt.fit(irt.Responses.from_matrix(k[: size.models]), method="joint"))
        answers = irt.Responses.from_matrix(k[size.models :], items=bank.item)
        rules = irt.CatRules(max_items=size.asked, seed=seed)
        for truth, trial in zip(new, irt.simulate(bank, answers, rules), strict=True):
            r = trial.result
            theta_z.append((r.theta - truth) / r.se)
            posterior_z.append((r.theta - truth) / (r.se**2 - r.bank_se**2) ** 0.5)
            in_score.append(r.score_lo <= trial.score_all <= r.score_hi)
    in_theta, alone = (float(np.mean(np.abs(z) < 1.96)) for z in (theta_z, posterior_z))
    score = float(np.mean(in_score))
    inside = RANGE[0] <= in_theta <= RANGE[1] and RANGE[0] <= score <= RANGE[1]
    print(
        f"bank {size.models} × {size.items}, {size.asked:2} asked, {len(theta_z)} models: "
        f"theta {in_theta:.3f} (items taken as known: {alone:.3f}), score {score:.3f} "
        f"({time.process_time() - start:.0f} CPU s){'' if inside else ' OUT OF RANGE'}",
        flush=True,
    )
    return inside


def bridge(path: Path, draws: int) -> None:
    """Print the errors of θ and of the score under several rules, and how the bar is met."""
    import numpy as np

    import irt

    responses = irt.read(path)
    able = np.flatnonzero((responses.n > 0).sum(axis=0) >= 480)
    every = np.ones(len(responses.items), dtype=bool)
    rows: dict[tuple[str, int], list[list[float]]] = {}
    for draw in range(draws):
        out = np.zeros(len(responses.models), dtype=bool)
        out[np.random.default_rng(draw).choice(able, 25, replace=False)] = True
        bank = irt.Bank.of(irt.fit(responses.subset(every, ~out)))
        held = responses.subset(np.array([key in bank.place for key in responses.items]), out)
        for name, rules in RULES.items():
            for asked in POINTS:
                rows.setdefault((name, asked), []).append(errors(bank, held, asked, rules))
    print(
        "rules, items: |theta error|, |score error|, SE, cover of theta and score; mean (SD of draws)"
    )
    for (name, asked), found in rows.items():
        mean, sd = np.mean(found, axis=0), np.std(found, axis=0)
        figures = ", ".join(f"{m:.3f} ({s:.3f})" for m, s in zip(mean, sd, strict=True))
        print(f"{name}, {asked}: {figures}")
    asked, most = BAR
    for name in RULES:
        off = np.array([one[1] for one in rows[name, asked]])
        print(
            f"{name}: mean |score error| at {asked} items {off.mean():.4f} over {len(off)} draws "
            f"({off[0]:.4f} in the first, {np.mean(off <= most):.0%} of draws at most {most})"
        )


def errors(bank: irt.Bank, held: irt.Responses, asked: int, rules: dict[str, Any]) -> list[float]:
    """Give the means over the models of one draw."""
    import numpy as np

    import irt

    trials = irt.simulate(bank, held, irt.CatRules(max_items=asked, **rules))
    results = [trial.result for trial in trials]
    off = np.abs([r.theta - t.theta_all for r, t in zip(results, trials, strict=True)])
    se = np.array([r.se for r in results])
    covered = [
        r.score_lo <= t.score_all <= r.score_hi for r, t in zip(results, trials, strict=True)
    ]
    off_score = np.abs([r.score - t.score_all for r, t in zip(results, trials, strict=True)])
    return [float(np.mean(x)) for x in (off, off_score, se, off < 1.96 * se, covered)]


if __name__ == "__main__":
    sys.exit(main())
