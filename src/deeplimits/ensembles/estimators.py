"""Estimators applied to finite samples, and their exact risks given the design."""

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float


def min_norm_fit(x: Float[Array, "n p"], y: Float[Array, " n"]) -> Float[Array, " p"]:
    """The least-squares solution of smallest norm, X⁺y, for X of full rank, by QR."""
    n, p = x.shape
    if p <= n:
        q, r = jnp.linalg.qr(x)
        return solve_triangular(r, q.T @ y)
    q, r = jnp.linalg.qr(x.T)
    return q @ solve_triangular(r.T, y, lower=True)


def min_norm_risk(
    x: Float[Array, "n p"], beta: Float[Array, " p"], noise_variance: Float[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Squared bias ‖(X⁺X − I)β‖² and variance σ²‖X⁺‖²_F of X⁺y given X, for isotropic test points.

    By a Cholesky factor of the smaller Gram matrix, several times faster than QR. It squares the condition number,
    which costs digits that matter only where |p − n| is a handful.
    """
    n, p = x.shape
    factor = jnp.linalg.cholesky(x.T @ x if p <= n else x @ x.T)
    inverse = solve_triangular(factor, jnp.eye(factor.shape[0]), lower=True)
    variance = noise_variance * jnp.sum(inverse**2)
    if p <= n:
        return jnp.zeros(()), variance
    seen = inverse @ (x @ beta)
    return beta @ beta - seen @ seen, variance


def nearest_neighbours(
    x: Float[Array, "n d"], y: Float[Array, " n"], at: Float[Array, " d"], neighbours: int
) -> tuple[Float[Array, ""], Array]:
    """The mean label of the k points nearest to `at`, and which points those are."""
    distances = jnp.sum((x - at) ** 2, axis=1)
    _, nearest = jax.lax.top_k(-distances, neighbours)
    return jnp.mean(y[nearest]), nearest


def singular_kernel_weights(
    x: Float[Array, "n d"], at: Float[Array, " d"], singularity: Float[Array, ""], bandwidth: Float[Array, ""]
) -> Float[Array, " n"]:
    """Weights K((x_i − at)/h)/Σ K of the Nadaraya-Watson smoother with K(u) = ‖u‖^{−a} on the unit ball.

    They are ratios to the nearest point's weight, so that a point close to `at` overflows nothing. Zero weights where
    the window holds no point.
    """
    distances = jnp.linalg.norm(x - at, axis=1)
    inside = distances <= bandwidth
    nearest = jnp.min(distances)
    relative = jnp.where(inside, (nearest / jnp.where(inside, distances, 1.0)) ** singularity, 0.0)
    total = jnp.sum(relative)
    return jnp.where(total > 0, relative / jnp.where(total > 0, total, 1.0), 0.0)


def max_margin(signed: Float[Array, "n d"], iterations: int = 60) -> tuple[Float[Array, " d"], Float[Array, " n"]]:
    """argmin ‖w‖ : ⟨w, x̄_i⟩ ≥ 1 for the rows x̄_i, and its multipliers, by a primal-dual interior-point method.

    For separable rows; accurate to about 1e-9. What it returns for others is large and meaningless.
    """
    n, d = signed.shape
    if d > n:
        # The solution lies in the span of the rows: solve in an orthonormal basis of it.
        basis, coordinates = jnp.linalg.qr(signed.T)
        weights, multipliers = max_margin(coordinates.T, iterations)
        return basis @ weights, multipliers
    scale = jnp.max(jnp.linalg.norm(signed, axis=1))
    rows = signed / scale

    def advance(state):
        w, slack, dual, count = state
        stationarity, primal = w - rows.T @ dual, rows @ w - 1 - slack
        gap = slack @ dual / n
        ratio = dual / slack
        factor = jax.scipy.linalg.cho_factor(jnp.eye(d) + (rows.T * ratio) @ rows)

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
    return w / scale, dual / scale**2


def ridge_fit(x: Float[Array, "n p"], y: Float[Array, " n"], ridge: Float[Array, ""]) -> Float[Array, " p"]:
    """argmin (1/n)‖y − Xβ‖² + λ‖β‖², through the smaller Gram matrix."""
    n, p = x.shape
    if p <= n:
        return jnp.linalg.solve(x.T @ x / n + ridge * jnp.eye(p), x.T @ y / n)
    return x.T @ jnp.linalg.solve(x @ x.T / n + ridge * jnp.eye(n), y / n)


def ridge_risk(
    x: Float[Array, "n p"],
    beta: Float[Array, " p"],
    covariance: Float[Array, " p"],
    ridge: Float[Array, ""],
    noise_variance: Float[Array, ""],
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Squared bias and variance of the ridge estimate given X, for test points of diagonal covariance."""
    n, p = x.shape
    # β̂ = Sy; its mean misses (SX − I)β, its covariance is σ²SS'.
    if p <= n:
        solved = jnp.linalg.solve(x.T @ x / n + ridge * jnp.eye(p), x.T / n)
    else:
        solved = jnp.linalg.solve(x @ x.T / n + ridge * jnp.eye(n), x / n).T
    missed = solved @ (x @ beta) - beta
    return jnp.sum(covariance * missed**2), noise_variance * jnp.sum(covariance[:, None] * solved**2)
