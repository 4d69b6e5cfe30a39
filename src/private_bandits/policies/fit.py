"""Least squares from weighted sums of rewards, and where in it the noise goes.

The played actions are rows a_j with n_j rewards each, V = sum of n_j a_j a_j'. With the thin QR decomposition of the
rows sqrt(n_j) a_j', in a basis of their span, V = R'R, and

    phi = R theta = sum over j of  (q_j / sqrt(n_j)) * (sum of the rewards of action j),

q_j the j-th row of Q. R^-T a is V^(-1/2) a but for a rotation, under which Gaussian noise does not change, and it is
found without forming V, whose condition is the square of the actions'.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from private_bandits.arrays import Floats


@dataclass(frozen=True)
class Fit:
    """Least squares for actions played so often, in the span of `basis` (orthonormal columns).

    Several at once where the counts have several lines.
    """

    basis: Floats
    roots: Floats
    """Square roots of the counts."""
    q: Floats
    r: Floats

    @classmethod
    def of(cls, played: Floats, counts: Floats, basis: Floats) -> Fit:
        """From the rows played and how often."""
        roots = np.sqrt(counts)
        q, r = np.linalg.qr(roots[..., None] * (played @ basis))
        return cls(basis, roots, q, r)

    def whitened(self, actions: Floats) -> Floats:
        """R^-T a for every action: <theta, a> = <phi, R^-T a>, and the norm of it is ||a|| in V^-1."""
        return np.asarray(np.linalg.solve(self.r.mT, (actions @ self.basis).mT).mT)

    def theta(self, phi: Floats) -> Floats:
        """The parameter, in the span."""
        return np.asarray(self.basis @ np.linalg.solve(self.r, phi))

    def decoder(self, weights: Floats | None) -> Floats:
        """The matrix that makes phi of the values released with these weights.

        The expectation of weights * sums is weights * diag(n) * A theta = weights * diag(sqrt n) * Q phi: decoded with
        the weights that were summed, rounded ones too, phi is unbiased. Sums by themselves are weighed as above.
        """
        if weights is None:
            return np.asarray((self.q / self.roots[:, None]).T)
        # pinv is the inverse here, and never fails: by now the release is made.
        return np.asarray(np.linalg.pinv(weights @ (self.roots[:, None] * self.q), rcond=1e-15))


Placement = Callable[[Fit], Floats | None]
"""What is released of the sums of a phase: a matrix of weights, or every sum by itself."""


def release_whitened(fit: Fit) -> Floats:
    """V^(-1/2) * sum of a r: AdaC-GOPE. One reward moves it by ||a|| in V^-1, which the design bounds."""
    return np.asarray((fit.q / fit.roots[:, None]).T)


def release_estimate(fit: Fit) -> Floats:
    """theta itself: one reward moves it by ||V^-1 a||, which no design bounds."""
    return np.asarray(np.linalg.solve(fit.r, release_whitened(fit)))


def release_per_arm(fit: Fit) -> None:
    """Every action's sum of rewards: one reward moves one sum by one, and theta takes the noise of all of them."""
