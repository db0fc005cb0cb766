"""Optimisers over a grid: they propose points and are told what each is worth; no model is asked.

A point is a tuple of grid indices, one a variable. Nothing here knows what a point stands for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from random import Random
from typing import Any, Protocol

from harness.core.errors import UsageError, unknown

Point = tuple[int, ...]
Told = tuple[Point, float]
INSTALL = "pip install 'bridge-harness[ams]'"
PER_POINT = 10
"""Proposals for each point of a budget, at most: repeats cost nothing, but they must end."""


class Optimiser(Protocol):
    """Proposes points, one at a time."""

    def ask(self) -> Point:
        """Propose the next point."""
        ...

    def tell(self, point: Point, value: float) -> None:
        """Take note of what a point is worth; more is better."""
        ...


class Uniform:
    """`random`: each point uniform, independent of the others."""

    def __init__(self, shape: Sequence[int], budget: int, seed: int) -> None:
        self._shape, self._rng = shape, Random(seed)

    def ask(self) -> Point:
        """Draw one."""
        return tuple(self._rng.randrange(n) for n in self._shape)

    def tell(self, point: Point, value: float) -> None:
        """Learn nothing."""


class LatinHypercube:
    """`lhs`: designs in which each variable's range is covered evenly, one after the other."""

    def __init__(self, shape: Sequence[int], budget: int, seed: int) -> None:
        self._shape, self._budget, self._rng = shape, budget, Random(seed)
        self._left: list[Point] = []

    def ask(self) -> Point:
        """Give the next point of the design."""
        if not self._left:
            self._left = latin_hypercube(self._shape, self._budget, self._rng)
        return self._left.pop()

    def tell(self, point: Point, value: float) -> None:
        """Learn nothing."""


class Genetic:
    """`ga`: tournaments of two, uniform crossover, small steps; a child replaces the worst."""

    def __init__(self, shape: Sequence[int], budget: int, seed: int) -> None:
        self._shape, self._rng = shape, Random(seed)
        self._size = min(10, max(4, budget // 3))
        self._people: list[Told] = []

    def ask(self) -> Point:
        """Draw one of the first, or breed."""
        if len(self._people) < self._size:
            return tuple(self._rng.randrange(n) for n in self._shape)
        mother, father = self._chosen(), self._chosen()
        rate = max(0.15, 1 / len(self._shape))
        child = []
        for n, a, b in zip(self._shape, mother, father, strict=True):
            gene = a if self._rng.random() < 0.5 else b
            if self._rng.random() < rate:
                gene = _inside(gene + self._rng.choice((-2, -1, 1, 2)), n)
            child.append(gene)
        return tuple(child)

    def tell(self, point: Point, value: float) -> None:
        """Let it live where there is room, or where it is no worse than the worst."""
        if any(point == known for known, _ in self._people):
            return
        if len(self._people) < self._size:
            self._people.append((point, value))
            return
        worst = min(range(len(self._people)), key=lambda k: self._people[k][1])
        if value >= self._people[worst][1]:
            self._people[worst] = (point, value)

    def _chosen(self) -> Point:
        pair = [self._rng.choice(self._people) for _ in range(2)]
        return max(pair, key=lambda told: told[1])[0]


class Annealing:
    """`anneal`: random points first, then steps from the best, worse ones taken more and more rarely."""

    def __init__(self, shape: Sequence[int], budget: int, seed: int) -> None:
        self._shape, self._rng = shape, Random(seed)
        self._start = max(5, budget // 5)
        self._steps = max(1, budget - self._start)
        self._first: list[Told] = []
        self._at: Told | None = None
        self._hot, self._step = 0.0, 0

    def ask(self) -> Point:
        """Draw one of the first, or step from where we stand."""
        if self._at is None:
            return tuple(self._rng.randrange(n) for n in self._shape)
        point = list(self._at[0])
        movable = [k for k, n in enumerate(self._shape) if n > 1]
        count = min(len(movable), 1 if self._rng.random() < 0.7 else 2)
        share = 1 - self._step / self._steps
        for k in self._rng.sample(movable, count):
            reach = max(1, round(self._shape[k] / 4 * share))
            step = self._rng.choice([d for d in range(-reach, reach + 1) if d])
            point[k] = _inside(point[k] + step, self._shape[k])
        return tuple(point)

    def tell(self, point: Point, value: float) -> None:
        """Go there, where it is better or chance wants it."""
        if self._at is None:
            self._first.append((point, value))
            if len(self._first) >= self._start:
                self._at = max(self._first, key=lambda told: told[1])
                worst = max(-10.0, min(value for _, value in self._first))
                self._hot = max((self._at[1] - worst) / 4, 1e-9)
            return
        heat = self._hot * 1e-3 ** (self._step / self._steps)
        self._step = min(self._step + 1, self._steps)
        loss = self._at[1] - value
        if loss <= 0 or self._rng.random() < math.exp(-loss / heat):
            self._at = (point, value)


class Parzen:
    """`tpe`: optuna's tree-structured Parzen estimator, all variables together."""

    def __init__(self, shape: Sequence[int], budget: int, seed: int) -> None:
        try:
            import optuna
        except ImportError as error:
            raise UsageError(f"opt=tpe needs optuna: {INSTALL}") from error
        import warnings

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            sampler = optuna.samplers.TPESampler(
                multivariate=True, n_startup_trials=max(5, budget // 5), seed=seed
            )
        self._study = optuna.create_study(direction="maximize", sampler=sampler)
        self._ranges: dict[str, Any] = {
            f"x{k:02d}": optuna.distributions.IntDistribution(0, n - 1) for k, n in enumerate(shape)
        }
        self._asked: dict[Point, list[Any]] = {}
        self._optuna = optuna

    def ask(self) -> Point:
        """Let optuna propose."""
        trial = self._study.ask(self._ranges)
        point = tuple(int(trial.params[name]) for name in self._ranges)
        self._asked.setdefault(point, []).append(trial)
        return point

    def tell(self, point: Point, value: float) -> None:
        """Tell the trial's value, or add one that somebody else proposed."""
        trials = self._asked.pop(point, [])
        for trial in trials:
            self._study.tell(trial, value)
        if not trials:
            params = dict(zip(self._ranges, point, strict=True))
            self._study.add_trial(
                self._optuna.trial.create_trial(
                    params=params, distributions=self._ranges, value=value
                )
            )


class GaussianProcess:
    """`gp`: a Gaussian process (Matérn 2.5, a length for each variable) and expected improvement."""

    _FLOOR = -5.0
    _NEAR, _FAR = 250, 500

    def __init__(self, shape: Sequence[int], budget: int, seed: int) -> None:
        try:
            import sklearn.gaussian_process  # noqa: F401  asked for here, so that the message is ours
        except ImportError as error:
            raise UsageError(f"opt=gp needs scikit-learn: {INSTALL}") from error
        self._shape, self._seed, self._rng = shape, seed, Random(seed)
        self._known: dict[Point, float] = {}
        self._start = max(5, budget // 5)
        self._first = latin_hypercube(shape, self._start, self._rng)
        self._kernel: Any = None
        self._fitted = 0

    def ask(self) -> Point:
        """Give the point from which most improvement is expected."""
        if len(self._known) < self._start and self._first:
            return self._first.pop()
        candidates = [point for point in self._candidates() if point not in self._known]
        if not candidates:
            return tuple(self._rng.randrange(n) for n in self._shape)
        return max(zip(self._improvement(candidates), candidates, strict=True))[1]

    def tell(self, point: Point, value: float) -> None:
        """Take note."""
        self._known[point] = max(self._FLOOR, value)

    def _candidates(self) -> list[Point]:
        found = {tuple(self._rng.randrange(n) for n in self._shape): None for _ in range(self._FAR)}
        best = max(self._known, key=self._known.__getitem__)
        for _ in range(self._NEAR):
            point = list(best)
            for k in self._rng.sample(range(len(point)), min(len(point), self._rng.choice((1, 2)))):
                point[k] = _inside(point[k] + self._rng.choice((-2, -1, 1, 2)), self._shape[k])
            found[tuple(point)] = None
        return list(found)

    def _improvement(self, candidates: list[Point]) -> list[float]:
        import warnings

        import numpy as np
        from scipy.stats import norm
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import Matern, WhiteKernel

        spans = np.maximum(np.asarray(self._shape, float) - 1, 1)
        x = np.asarray(list(self._known), float) / spans
        y = np.asarray(list(self._known.values()))
        y = (y - y.mean()) / (y.std() or 1.0)
        kernel = Matern(np.ones(x.shape[1]), (0.05, 20.0), nu=2.5) + WhiteKernel(1e-3, (1e-6, 1.0))
        # Lengths take nearly all of the time: they are fitted anew when a tenth more is known.
        anew = self._kernel is None or len(self._known) >= 1.1 * self._fitted
        process = GaussianProcessRegressor(
            kernel if anew else self._kernel, random_state=self._seed,
            optimizer="fmin_l_bfgs_b" if anew else None,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            process.fit(x, y)
        if anew:
            self._kernel, self._fitted = process.kernel_, len(self._known)
        mean, spread = process.predict(np.asarray(candidates, float) / spans, return_std=True)
        spread = np.maximum(spread, 1e-12)
        z = (mean - y.max()) / spread
        improvement: list[float] = (spread * (z * norm.cdf(z) + norm.pdf(z))).tolist()
        return improvement


OPTIMISERS: dict[str, Callable[[Sequence[int], int, int], Optimiser]] = {
    "random": Uniform,
    "lhs": LatinHypercube,
    "ga": Genetic,
    "anneal": Annealing,
    "tpe": Parzen,
    "gp": GaussianProcess,
}


def optimiser(
    name: str, shape: Sequence[int], budget: int, seed: int, known: Sequence[Told] = ()
) -> Optimiser:
    """Make an optimiser.

    Parameters
    ----------
    name : {"random", "lhs", "ga", "anneal", "tpe", "gp"}
    shape : sequence of int
        How many values each variable has.
    budget : int
        Points that may be evaluated.
    seed : int
    known : sequence of (point, float)
        What is known already; told first.

    Raises
    ------
    UsageError
        Another name; the package that it needs is missing.
    """
    if name not in OPTIMISERS:
        raise unknown("optimiser", name, OPTIMISERS)
    made = OPTIMISERS[name](shape, budget, seed)
    for point, value in known:
        made.tell(point, value)
    return made


def proposals(
    name: str, shape: Sequence[int], budget: int, seed: int, known: Sequence[Told] = ()
) -> Generator[Point, float, None]:
    """Propose new points of a grid; send back what each is worth.

    A generator: it yields points that are not `known`, at most `budget` of them, and is sent each one's
    value. It ends early when all of the grid is known or after ten proposals a point of the budget.
    """
    values = dict(known)
    made = optimiser(name, shape, budget, seed, known)
    total = math.prod(shape)
    asked = new = 0
    while new < budget and len(values) < total and asked < PER_POINT * budget:
        point = made.ask()
        asked += 1
        if point not in values:
            new += 1
            values[point] = yield point
        made.tell(point, values[point])


def search(
    name: str, shape: Sequence[int], budget: int, seed: int, evaluate: Callable[[Point], float],
    known: Sequence[Told] = (),
) -> list[Told]:  # fmt: skip
    """Evaluate up to `budget` points that an optimiser proposes, each once.

    Examples
    --------
    >>> found = search("ga", (10, 10), 40, seed=1, evaluate=lambda p: -abs(p[0] - 3) - abs(p[1] - 8))
    >>> max(found, key=lambda told: told[1])
    ((3, 8), 0)
    """
    found: list[Told] = []
    going = proposals(name, shape, budget, seed, known)
    try:
        point = next(going)
        while True:
            found.append((point, evaluate(point)))
            point = going.send(found[-1][1])
    except StopIteration:
        return found


def latin_hypercube(shape: Sequence[int], count: int, rng: Random) -> list[Point]:
    """Draw `count` points such that each variable's range is covered evenly."""
    columns = []
    for n in shape:
        cells = [int((k + rng.random()) / count * n) for k in range(count)]
        rng.shuffle(cells)
        columns.append([min(cell, n - 1) for cell in cells])
    return list(zip(*columns, strict=True))


def _inside(value: int, n: int) -> int:
    return min(max(value, 0), n - 1)
