"""What each training point would have been predicted without itself, from one fit."""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.numerics.arguments import NOT_NEGATIVE, array, known, number
from deeplimits.numerics.checks import valid
from deeplimits.numerics.shapes import Scalar


class LeaveOneOut(NamedTuple):
    """Errors of ridge regression on points it has not seen, estimated from the training data alone."""

    residuals: Float[Array, " n"]
    """y_i minus the prediction at x_i of the fit to all other points, (n,)."""
    mean_square: Scalar
    """Leave-one-out estimate of the test error, noise included."""
    generalized: Scalar
    """The same with the leverages replaced by their mean (generalized cross-validation)."""


def leave_one_out(x: ArrayLike, y: ArrayLike, *, ridge: ArrayLike = 0.0) -> LeaveOneOut:
    """Leave-one-out residuals of β̂ = argmin (1/n)‖y − Xβ‖² + λ‖β‖², exactly, without refitting.

    Setting     X of shape (n, p), y of shape (n,), hat matrix H = X(X'X + nλ)^{-1}X'
    Result      y_i − ⟨x_i, β̂^{(−i)}⟩ = (y − Hy)_i/(1 − H_ii), β̂^{(−i)} the minimizer of the same sum (with its 1/n)
                without term i; where the fit interpolates, the limit [G^{-1}y]_i/[G^{-1}]_ii with G = XX'
    Validity    an identity (Sherman and Morrison); at λ = 0 X must have full rank and p ≠ n
    References  sherman1950; hastie2022 Sec 7

    >>> found = leave_one_out([[1.0], [1.0], [1.0]], [0.0, 3.0, 6.0])
    >>> found.residuals.round(9).tolist(), round(float(found.mean_square), 9)
    ([-4.5, 0.0, 4.5], 13.5)
    """
    x = array("x", x, ("n", "p"))
    n, p = x.shape
    y = array("y", y, (n,), why="one label for each row of x")
    ridge = number("ridge", ridge, NOT_NEGATIVE)
    if not (known(ridge) and float(ridge) > 0):
        unique = jnp.linalg.matrix_rank(x) == min(n, p) if p != n else jnp.asarray(False)
        ridge = valid(
            ridge,
            (ridge > 0) | unique,
            "without ridge the design must have full rank and p must differ from n; take a positive ridge, or other "
            "features",
        )
    if p >= n:
        # (I − H)/(nλ) = (XX' + nλ)^{-1}, which has a limit as λ → 0
        inverse = jnp.linalg.inv(x @ x.T + n * ridge * jnp.eye(n))
        unexplained, rest = inverse @ y, jnp.diagonal(inverse)
    else:
        # H = XS with S = (X'X + nλ)^{-1}X'
        solved = jnp.linalg.solve(x.T @ x + n * ridge * jnp.eye(p), x.T)
        unexplained, rest = y - x @ (solved @ y), 1 - jnp.sum(x * solved.T, axis=1)
    residuals = unexplained / rest
    return LeaveOneOut(residuals, jnp.mean(residuals**2), jnp.mean(unexplained**2) / jnp.mean(rest) ** 2)
