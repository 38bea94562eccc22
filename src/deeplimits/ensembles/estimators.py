"""Estimators applied to finite samples, and their exact risks given the design."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float, Int

from deeplimits.numerics.shapes import Scalar


def inverse_factor(gram: Float[Array, "m m"]) -> Float[Array, "m m"]:
    """The lower triangular J with J'J = G^{-1}: the inverse of the Cholesky factor.

    Several times faster than QR or singular values of the data. It squares their condition number, which costs digits
    that matter only where |p − n| is a handful.
    """
    factor = jax.lax.linalg.cholesky(gram, symmetrize_input=False)
    return solve_triangular(factor, jnp.eye(len(gram)), lower=True)


def min_norm_fit(x: Float[Array, "n p"], y: Float[Array, "n *labels"]) -> Float[Array, "p *labels"]:
    """The least-squares solution of smallest norm, X⁺y, for X of full rank and any number of label vectors.

    >>> min_norm_fit(jnp.ones((1, 2)), jnp.array([2.0])).round(12).tolist()
    [1.0, 1.0]
    """
    return NestedLeastSquares(x, (x.shape[1],)).fit(x.shape[1], y)


class NestedLeastSquares:
    """Minimum-norm least squares on the leading p columns of X, X⁺y, for several p, all of full rank.

    The smaller Gram matrices of all of them are factored in a loop, one at a time: several factorizations in one call
    wait for threads, and two such calls at once can wait for each other for ever (jaxlib 0.10).
    """

    def __init__(self, x: Float[Array, "n p"], counts: Sequence[int]):
        n = x.shape[0]
        self.x, self.counts = x, np.asarray(counts)
        self.above = self.counts > n
        self.many = np.unique(self.counts[self.above])
        grams = []
        if not self.above.all():
            # Leading blocks of X'X have leading blocks of one Cholesky factor: the widest X'X serves for all p ≤ n.
            few = x[:, : self.counts[~self.above].max()]
            width = few.shape[1]
            grams.append(jnp.eye(n).at[:width, :width].set(few.T @ few)[None])
        if self.many.size:
            # XX' grows by what the new columns bring.
            parts = [x[:, a:b] @ x[:, a:b].T for a, b in itertools.pairwise([0, *self.many.tolist()])]
            grams.append(jnp.tensordot(jnp.tri(len(parts), dtype=x.dtype), jnp.stack(parts), 1))
        self.inverses = jax.lax.map(inverse_factor, jnp.concatenate(grams))
        # Which of the factors belongs to which p.
        self.place = np.where(self.above, np.searchsorted(self.many, self.counts) + (not self.above.all()), 0)

    def fit(self, p: int, y: Float[Array, "n *labels"]) -> Float[Array, "p *labels"]:
        """X⁺y for any number of label vectors."""
        x = self.x[:, :p]
        inverse = self.inverses[self.place[list(self.counts).index(p)]]
        if p > x.shape[0]:
            # X⁺ = X'(XX')^{-1}
            return x.T @ (inverse.T @ (inverse @ y))
        # X⁺ = (X'X)^{-1}X'
        inverse = inverse[:p, :p]
        return inverse.T @ (inverse @ (x.T @ y))

    def biases(self, directions: Float[Array, "p k"]) -> Float[Array, " counts"]:
        """‖(X⁺X − I)β‖² for each p, β the unit vector along the leading p entries of a direction; a mean over those."""
        leading = jnp.asarray(np.arange(len(directions)) < self.counts[:, None], dtype=float)
        squares = leading @ directions**2
        labels = jnp.tensordot(self.x, leading[:, :, None] * directions[None], ((1,), (1,))).swapaxes(0, 1)
        # ‖X⁺Xβ‖² = β'X'(XX')^{-1}Xβ
        kept = jnp.sum((self.inverses[self.place] @ labels) ** 2, axis=1) / squares
        return jnp.where(self.above, 1 - jnp.mean(kept, axis=1), 0.0)

    def variances(self) -> Float[Array, " counts"]:
        """‖X⁺‖²_F, which is the trace of the inverse of the smaller Gram matrix, for each p."""
        rows = jnp.sum(self.inverses**2, axis=2)[self.place]
        taken = np.arange(len(self.x)) < self.counts[:, None]
        return jnp.sum(jnp.where(taken, rows, 0.0), axis=1)


def nearest_points(x: Float[Array, "n d"], at: Float[Array, " d"], neighbours: int) -> Int[Array, " k"]:
    """Which k of the points are nearest to `at`."""
    _, nearest = jax.lax.top_k(-jnp.sum((x - at[None, :]) ** 2, axis=1), neighbours)
    return nearest


def singular_kernel_weights(
    distances: Float[Array, " n"], singularity: Scalar, bandwidth: Scalar
) -> Float[Array, " n"]:
    """Weights K((x_i − x₀)/h)/Σ K of the Nadaraya-Watson smoother with K(u) = ‖u‖^{−a} on the unit ball.

    They are ratios to the nearest point's weight, so that a point close to x₀ overflows nothing. Zero weights where
    the window holds no point.
    """
    inside = distances <= bandwidth
    nearest = jnp.min(distances)
    relative = jnp.where(inside, (nearest / jnp.where(inside, distances, 1.0)) ** singularity, 0.0)
    total = jnp.sum(relative)
    return jnp.where(total > 0, relative / jnp.where(total > 0, total, 1.0), 0.0)


class MaxMargin(NamedTuple):
    """The shortest w with ⟨w, x̄_i⟩ ≥ 1 for all i; its margin is 1/‖w‖."""

    weights: Float[Array, " d"]
    multipliers: Float[Array, " n"]
    """a_i ≥ 0 with w = Σ a_i x̄_i, zero off the margin."""


def max_margin(signed: Float[Array, "n d"], *, iterations: int = 60) -> MaxMargin:
    """argmin ‖w‖ : ⟨w, x̄_i⟩ ≥ 1 for the rows x̄_i, and its multipliers, by a primal-dual interior-point method.

    For separable rows; accurate to about 1e-9. What it returns for others is large and meaningless.

    >>> found = max_margin(jnp.array([[1.0, 1.0], [1.0, -1.0], [9.0, 3.0]]))
    >>> float(found.weights[0].round(8)), float(found.multipliers[0].round(8))
    (1.0, 0.5)
    """
    n, d = signed.shape
    if d > n:
        # The solution lies in the span of the rows: solve in an orthonormal basis of it.
        basis, coordinates = jnp.linalg.qr(signed.T)
        within = max_margin(coordinates.T, iterations=iterations)
        return MaxMargin(basis @ within.weights, within.multipliers)
    scale = jnp.max(jnp.linalg.norm(signed, axis=1))
    rows = signed / scale

    def advance(state):
        w, slack, dual, count = state
        stationarity, primal = w - rows.T @ dual, rows @ w - 1 - slack
        gap = slack @ dual / n
        ratio = dual / slack
        factor = jax.scipy.linalg.cho_factor(jnp.eye(d) + (rows.T * ratio[None, :]) @ rows)

        def move(target):
            # dual ∘ slack = target, linearized, with Δw eliminated last
            push = -dual + target / slack - ratio * primal
            dw = jax.scipy.linalg.cho_solve(factor, -stationarity + rows.T @ push)
            return dw, rows @ dw + primal, push - ratio * (rows @ dw)

        def longest(value, change):
            return jnp.min(jnp.where(change < 0, -value / jnp.where(change < 0, change, -1.0), jnp.inf))

        dw, ds, da = move(jnp.zeros(n))
        length = jnp.minimum(1.0, jnp.minimum(longest(slack, ds), longest(dual, da)))
        centring = ((slack + length * ds) @ (dual + length * da) / n / gap) ** 3
        # The second-order correction counts as far as the first-order step could be taken; whole, it can cycle.
        dw, ds, da = move(centring * gap - length**2 * ds * da)
        length = jnp.minimum(1.0, 0.995 * jnp.minimum(longest(slack, ds), longest(dual, da)))
        following = (w + length * dw, slack + length * ds, dual + length * da)
        # Rounding ends the iteration: the last good point is kept.
        good = jnp.all(jnp.stack([jnp.all(jnp.isfinite(part)) for part in following]))
        w, slack, dual = (jnp.where(good, new, old) for new, old in zip(following, (w, slack, dual), strict=True))
        return w, slack, dual, jnp.where(good, count + 1, iterations)

    def unfinished(state):
        w, slack, dual, count = state
        size = jnp.sum(dual)
        error = jnp.maximum(jnp.max(jnp.abs(rows @ w - 1 - slack)), slack @ dual / size)
        return (count < iterations) & (error > 1e-13)

    begin = (jnp.zeros(d), jnp.ones(n), jnp.ones(n), 0)
    w, _, dual, _ = jax.lax.while_loop(unfinished, advance, begin)
    return MaxMargin(w / scale, dual / scale**2)


def ridge_fit(x: Float[Array, "n p"], y: Float[Array, "n *k"], ridge: Scalar) -> Float[Array, "p *k"]:
    """argmin (1/n)‖y − Xβ‖² + λ‖β‖², λ > 0, for any number of label vectors.

    >>> ridge_fit(jnp.eye(1), jnp.array([1.0]), jnp.asarray(1.0)).round(12).tolist()
    [0.5]
    """
    return ridge_matrix(x, ridge) @ y


def ridge_matrix(x: Float[Array, "n p"], ridge: Scalar) -> Float[Array, "p n"]:
    """S with β̂ = Sy for ridge regression with λ > 0, through the smaller Gram matrix."""
    n, p = x.shape
    if p <= n:
        # S = (X'X/n + λ)^{-1}X'/n
        inverse = inverse_factor(x.T @ x / n + ridge * jnp.eye(p))
        return inverse.T @ (inverse @ x.T) / n
    # S = X'(XX'/n + λ)^{-1}/n
    inverse = inverse_factor(x @ x.T / n + ridge * jnp.eye(n))
    return x.T @ (inverse.T @ inverse) / n
