"""Human minutes inside the likelihood: log h = α + β b + ε on the anchors, ε ~ N(0, τ²), b = −d/a.

The term that level "joint" of the link adds to the joint model. An anchor then has two sources: its
answers, and its minutes; one that everybody solves, or nobody, is placed by its minutes alone. α, β
and τ are estimated as the hyperparameters are, by EM with mean and variance of b.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from irt.data import Floats

TAU_FLOOR = 0.1  # in log-minutes: no anchor's time is known to better than a tenth
_CAP = 2000
_LEAST_SPREAD = 1e-12


@dataclass(frozen=True, eq=False)
class JointLink:
    """The minutes of the anchors and the line they are held against.

    Parameters
    ----------
    rows : array of int, shape (A,)
        The anchors among the items.
    log_minutes : array, shape (A,)
    alpha, beta, tau : float
        β = 0, the start, is a line that says nothing of difficulties.
    var_b : array, shape (A,)
        Variance of each anchor's b in its answers alone, the models given; 0 at the start.
    """

    rows: NDArray[np.intp]
    log_minutes: Floats
    alpha: float
    beta: float
    tau: float
    var_b: Floats

    @classmethod
    def start(cls, rows: NDArray[np.intp], minutes: Floats) -> JointLink:
        """Begin with the mean, which moves no difficulty."""
        y = np.log(minutes)
        return cls(rows, y, float(y.mean()), 0.0, max(float(y.std()), TAU_FLOOR), np.zeros(len(y)))

    def standardised(self, m: float, s: float) -> JointLink:
        """Give the same line for b' = (b − m)/s."""
        return replace(
            self, alpha=self.alpha + self.beta * m, beta=self.beta * s, var_b=self.var_b / s**2
        )

    def residuals(self, lam: Floats, d: Floats) -> Floats:
        """Give ε of the anchors, shape (A,), from λ and d of all items."""
        b = -d[self.rows] * np.exp(-lam[self.rows])
        return np.asarray(self.log_minutes - self.alpha - self.beta * b)

    def log_density(self, lam: Floats, d: Floats) -> float:
        """Log density of the minutes up to a constant."""
        return -0.5 * float(np.sum((self.residuals(lam, d) / self.tau) ** 2))

    def gradient(self, lam: Floats, d: Floats) -> tuple[Floats, Floats]:
        """Gradient in λ and d, zero for other items; shapes (I,)."""
        g_lam, g_d = np.zeros(len(lam)), np.zeros(len(d))
        a = np.exp(lam[self.rows])
        rho = self.residuals(lam, d) / self.tau**2
        g_lam[self.rows] = rho * self.beta * d[self.rows] / a  # −ρβb
        g_d[self.rows] = -rho * self.beta / a
        return g_lam, g_d

    def curvature(self, lam: Floats, d: Floats, *, observed: bool) -> tuple[Floats, Floats, Floats]:
        """Give what the term adds to the items' negative Hessian.

        Parameters
        ----------
        lam, d : arrays, shape (I,)
        observed : bool
            With the second derivatives of b; without them the part is positive semidefinite.

        Returns
        -------
        h11, h12, h22 : arrays, shape (I,)
        """
        h11, h12, h22 = np.zeros((3, len(lam)))
        a = np.exp(lam[self.rows])
        b = -d[self.rows] / a
        precision = (self.beta / self.tau) ** 2
        h11[self.rows] = precision * b**2
        h12[self.rows] = precision * b / a
        h22[self.rows] = precision / a**2
        if observed:
            pull = self.residuals(lam, d) / self.tau**2 * self.beta
            h11[self.rows] -= pull * b
            h12[self.rows] -= pull / a
        return h11, h12, h22

    def updated(self, b: Floats, var_b: Floats) -> JointLink:
        """Estimate α, β and τ: EM to its end, the answers' word on each difficulty held.

        With b_i ~ N(b, var_b) from the answers alone, the E step has
        1/v = 1/var_b + β²/τ², E b = v (b/var_b + β (log h − α)/τ²), and the M step regresses log h on
        E b with v added to the spread of difficulties (so that their noise does not flatten β).

        Parameters
        ----------
        b, var_b : arrays, shape (A,)
            Difficulty and its variance, as the answers have them.

        Returns
        -------
        JointLink
            With τ no smaller than a tenth.
        """
        y, alpha, beta, tau2 = self.log_minutes, self.alpha, self.beta, self.tau**2
        for _ in range(_CAP):
            v = 1 / (1 / var_b + beta**2 / tau2)
            mean = v * (b / var_b + beta * (y - alpha) / tau2)
            centred = mean - mean.mean()
            spread = float(np.sum(centred**2 + v))
            if spread <= _LEAST_SPREAD:
                break
            old, beta = beta, float(centred @ y) / spread
            alpha = float(y.mean() - beta * mean.mean())
            squares = float(np.mean((y - alpha - beta * mean) ** 2 + beta**2 * v))
            tau2 = max(squares, TAU_FLOOR**2)
            if abs(beta - old) <= 1e-9 * abs(beta):
                break
        return replace(self, alpha=alpha, beta=beta, tau=float(np.sqrt(tau2)), var_b=var_b)
