"""What training for a while keeps and learns of each eigenvalue: the spectral filters of gradient flow and descent.

On a quadratic loss with Hessian A and gradient Aw − b the trained weights are w = f(A)w₀ + φ(A)b. An eigenvalue u keeps
f(u) of its start and learns φ(u) = (1 − f(u))/u, which is the inverse 1/u once training has ended.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike

from deeplimits.numerics.ranks import same_rank
from deeplimits.numerics.shapes import Floats


class Filter(NamedTuple):
    """f(u) and φ(u) = (1 − f(u))/u of the eigenvalues u."""

    kept: Floats
    learnt: Floats


def mean_decay(z: ArrayLike) -> Floats:
    """(1 − e^{−z})/z for z ≥ 0, the mean of e^{−s} over [0, z]: one at zero, with all its derivatives.

    >>> [round(float(value), 10) for value in mean_decay([0.0, 1e-9, 1.0])]
    [1.0, 0.9999999995, 0.6321205588]
    """
    z = jnp.asarray(z, float)
    small = z < 1e-3
    # Taylor's polynomial near zero, where the derivative of the quotient would lose digits; the rest is below 1e-21.
    series = 1 - z / 2 * (1 - z / 3 * (1 - z / 4 * (1 - z / 5 * (1 - z / 6))))
    safe = jnp.where(small, 1.0, z)
    return jnp.where(small, series, -jnp.expm1(-safe) / safe)


def flow_filter(times: ArrayLike, eigenvalues: ArrayLike) -> Filter:
    """Gradient flow after a time t: f(u) = e^{−tu}, φ(u) = (1 − e^{−tu})/u, which is t at u = 0.

    At t = ∞ zero and the inverse; there u = 0 keeps everything and, as nothing pulls at it, learns nothing.

    >>> [part.tolist() for part in flow_filter(jnp.inf, [0.0, 2.0])]
    [[1.0, 0.0], [0.0, 0.5]]
    """
    t, u = same_rank(jnp.asarray(times, float), jnp.asarray(eigenvalues, float))
    forever, still = jnp.isinf(t), u == 0
    t = jnp.where(forever, 0.0, t)
    inverse = jnp.where(still, 0.0, 1 / jnp.where(still, 1.0, u))
    return Filter(
        jnp.where(forever, jnp.where(still, 1.0, 0.0), jnp.exp(-t * u)),
        jnp.where(forever, inverse, t * mean_decay(t * u)),
    )


def descent_filter(step: ArrayLike, steps: ArrayLike, eigenvalues: ArrayLike) -> Filter:
    """Gradient descent after k steps of size η: f(u) = (1 − ηu)^k, φ(u) = (1 − (1 − ηu)^k)/u, which is ηk at u = 0.

    >>> kept, learnt = descent_filter(0.5, 3, [0.0, 1.0, 3.0])
    >>> [round(value, 12) for value in kept.tolist()], [round(value, 12) for value in learnt.tolist()]
    ([1.0, 0.125, -0.125], [1.5, 0.875, 0.375])
    """
    eta, k, u = same_rank(*(jnp.asarray(part, float) for part in (step, steps, eigenvalues)))
    shrink = eta * u
    # Below ηu = 1/2 through log(1 − ηu) = −ηu·l, so that nothing cancels at small u and φ = ηk·l·mean_decay(kηu·l).
    gentle = shrink < 0.5
    inside = jnp.where(gentle, shrink, 0.25)
    rate = _log_ratio(inside)
    soft = Filter(jnp.exp(-k * inside * rate), eta * k * rate * mean_decay(k * inside * rate))
    outside = jnp.where(gentle, 1.0, shrink)
    # A power of a negative number: its size through logarithms, its sign through the parity of k.
    size = jnp.abs(1 - outside)
    power = jnp.where(size > 0, jnp.exp(k * jnp.log(jnp.where(size > 0, size, 1.0))), jnp.where(k == 0, 1.0, 0.0))
    hard = jnp.where((outside > 1) & (jnp.mod(k, 2.0) == 1), -power, power)
    fast = Filter(hard, (1 - hard) / jnp.where(gentle, 1.0, u))
    return Filter(*(jnp.where(gentle, one, other) for one, other in zip(soft, fast, strict=True)))


def _log_ratio(x):
    """−log(1 − x)/x for 0 ≤ x < 1, one at zero."""
    small = x < 1e-3
    series = 1 + x * (1 / 2 + x * (1 / 3 + x * (1 / 4 + x * (1 / 5 + x / 6))))
    safe = jnp.where(small, 0.5, x)
    return jnp.where(small, series, -jnp.log1p(-safe) / safe)
