r"""Drift, corrector and diffusion of summary statistics, estimated for any model from its per-sample loss alone.

At a point x, with ∇L one sample's gradient, H = L − EL, V = E ∇H∇Hᵀ and δ the step:
f = ⟨E∇L, ∇u⟩, g = (δ/2)⟨V, ∇²u⟩, Σ = δ J V Jᵀ. Only Jacobian-vector products are formed, so the cost is O(N) a sample.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, PRNGKeyArray
from scipy import special

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.measure.estimates import Estimate, sample_mean
from deeplimits.numerics import arguments


class Coefficients(NamedTuple):
    """What the effective dynamics du = (−f + g)dt + Σ^{1/2}dB of k statistics needs, at one point."""

    statistics: Array
    """u(x)."""
    drift: Estimate
    """f, shape (k,)."""
    corrector: Estimate
    """g, shape (k,)."""
    diffusion: Estimate
    """Σ, shape (k, k)."""

    @property
    def velocity(self) -> Array:
        """−f + g."""
        return -self.drift.value + self.corrector.value


class Closure(NamedTuple):
    """Whether the coefficients depend on the point through its statistics only."""

    closed: bool
    p_value: float
    """Of the largest difference between two points with the same statistics, by Bonferroni."""
    worst: str
    """Which coefficient differs most."""


def coefficients(
    key: PRNGKeyArray, loss: Callable, draw: Callable, statistics: Callable, point: Any, step: ArrayLike, draws: int
) -> Coefficients:
    """Estimate f, g and Σ at a point.

    `loss(x, sample)` and `draw(key)` define the model, `statistics(x)` returns a vector (k,), x is any pytree.

    >>> import jax, jax.numpy as jnp
    >>> found = coefficients(jax.random.key(0), lambda x, y: jnp.sum((x - y) ** 2) / 2,
    ...     lambda key: jax.random.normal(key, (3,)), lambda x: jnp.stack([x @ x]), jnp.ones(3), 0.1, 4000)
    >>> bool(abs(found.drift.value[0] - 6) < 5 * found.drift.error[0])  # ⟨x, 2x⟩
    True
    >>> bool(abs(found.corrector.value[0] - 0.3) < 5 * found.corrector.error[0])  # δ tr V
    True
    """
    arguments.whole("draws", draws, 2, "for a standard error")
    arguments.argument("step", step, arguments.POSITIVE)
    shape = jax.eval_shape(statistics, point).shape
    if len(shape) != 1 or not shape[0]:
        raise ParameterError(f"statistics gives shape {shape}; it must give a vector (k,), as jnp.stack([…]) does")
    found = estimate(key, loss, draw, statistics, point, step, draws)
    if not all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(found)):
        raise OutsideValidity(
            "the statistics or the loss are not differentiable at this point, or not finite there; move the point"
        )
    return found


def estimate(
    key: PRNGKeyArray, loss: Callable, draw: Callable, statistics: Callable, point: Any, step: ArrayLike, draws: int
) -> Coefficients:
    """`coefficients` without its checks, traceable."""
    delta = jnp.asarray(step, float)
    gradient = jax.grad(loss)

    def along(direction):
        return jax.jvp(statistics, (point,), (direction,))[1]

    def curved(direction):
        # ⟨d, ∇²u d⟩: the derivative of the derivative along d
        return jax.jvp(lambda x: jax.jvp(statistics, (x,), (direction,))[1], (point,), (direction,))[1]

    slopes = jax.vmap(lambda key: gradient(point, draw(key)))(jax.random.split(key, draws))
    mean = jax.tree.map(lambda s: s.mean(axis=0), slopes)
    centred = jax.tree.map(lambda s, m: s - m[None], slopes, mean)
    drifts, noise = jax.vmap(along)(slopes), jax.vmap(along)(centred)
    # The sample mean takes one degree of freedom from the covariance.
    unbiased = draws / (draws - 1)
    return Coefficients(
        jnp.asarray(statistics(point)),
        sample_mean(drifts),
        sample_mean(delta / 2 * unbiased * jax.vmap(curved)(centred)),
        sample_mean(delta * unbiased * noise[:, :, None] * noise[:, None, :]),
    )


def closability(
    key: PRNGKeyArray, loss: Callable, draw: Callable, statistics: Callable, points: Sequence[Any], step: ArrayLike,
    draws: int, *, level: float = 1e-4,
) -> Closure:  # fmt: skip
    """Compare the coefficients at points with equal statistics: a difference beyond noise refutes closability.

    The same samples are not shared by the points, so that the differences have known errors. A model that closes
    only as N → ∞ shows differences of order 1/N here; take N large or `level` small.

    >>> import jax
    >>> def loss(x, y):
    ...     return jnp.sum((x - y) ** 2) / 2
    >>> points = [jnp.array([1.0, 0.0]), jnp.array([0.0, 1.0])]
    >>> def draw(key):
    ...     return jax.random.normal(key, (2,))
    >>> closability(jax.random.key(0), loss, draw, lambda x: jnp.stack([x @ x]), points, 0.1, 500).closed
    True
    """
    if len(points) < 2:
        raise ParameterError(f"points = {len(points)} of them; comparing takes two or more")
    keys = jax.random.split(key, len(points))
    found = [coefficients(k, loss, draw, statistics, x, step, draws) for k, x in zip(keys, points, strict=True)]
    first = np.asarray(found[0].statistics)
    for other in found[1:]:
        if not np.allclose(other.statistics, first, rtol=1e-8, atol=1e-10):
            raise ParameterError(
                f"points have different statistics, {first.tolist()} and {np.asarray(other.statistics).tolist()}; "
                "closability compares points with the same ones"
            )
    worst, largest, count = "", 0.0, 0
    for name in ("drift", "corrector", "diffusion"):
        for other in found[1:]:
            one, two = getattr(found[0], name), getattr(other, name)
            error = np.sqrt(np.asarray(one.error) ** 2 + np.asarray(two.error) ** 2)
            gap = np.abs(np.asarray(one.value) - np.asarray(two.value))
            # Gaps of rounding size, as between coefficients that vanish, are none.
            scale = 1e-9 * (1 + np.abs(np.asarray(one.value)))
            z = np.where(gap <= scale, 0.0, gap / np.maximum(error, scale))
            count += z.size
            if z.max() > largest:
                worst, largest = name, float(z.max())
    p_value = float(min(1.0, 2 * count * special.ndtr(-largest)))
    return Closure(p_value > level, p_value, worst)
