"""Free sums and products of lists of atoms off the real support, in JAX: traceable and differentiable.

The laws themselves, with densities, edges and atoms, are made by `spectra.free_sum` and `free_product`; here are their
transforms at points where the plain iteration of subordination functions converges fast.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Complex

from deeplimits.models.atoms import Atoms
from deeplimits.numerics.checks import converged
from deeplimits.numerics.ranks import same_rank

PLAIN_STEPS = 200
NEWTON_STEPS = 8
RESIDUAL = 1e-10


def _transform(law: Atoms, w):
    weights, values, at = same_rank(law.weights.astype(complex), law.values.astype(complex), w[..., None])
    return jnp.sum(weights / (values - at), axis=-1)


def sum_transform(z: Complex[Array, "..."], left: Atoms, right: Atoms) -> Complex[Array, "..."]:
    """m(z) of the free sum: ω = z + h₂(z + h₁(ω)), h = −1/m − id, m = m₁(ω); for z well above the real line."""

    def shift(law, w):
        return -1 / _transform(law, w) - w

    def image(omega, z, left, right):
        return z + shift(right, z + shift(left, omega))

    return _transform(left, _fixed_point(image, z, z, left, right))


def product_transform(z: Complex[Array, "..."], left: Atoms, right: Atoms) -> Complex[Array, "..."]:
    """m(z) of the free product of laws on [0, ∞): y = z/k₂(z/k₁(y)), k = id + 1/m, z m(z) = y m₁(y); z off [0, ∞)."""

    def keep(law, w):
        return w + 1 / _transform(law, w)

    def image(y, z, left, right):
        return z / keep(right, z / keep(left, y))

    y = _fixed_point(image, z, z, left, right)
    return y * _transform(left, y) / z


def _fixed_point(image, start, z, left, right):
    """Plain steps, then Newton's, then one more of these that carries the gradient."""
    frozen = jax.lax.stop_gradient((z, left, right))

    def slope(w):
        return jax.jvp(lambda u: image(u, *frozen), (w,), (jnp.ones_like(w),))[1]

    def newton(_, w):
        return w + (image(w, *frozen) - w) / (1 - slope(w))

    w = jax.lax.fori_loop(0, PLAIN_STEPS, lambda _, w: image(w, *frozen), jax.lax.stop_gradient(start))
    w = jax.lax.stop_gradient(jax.lax.fori_loop(0, NEWTON_STEPS, newton, w))
    settled = jnp.abs(image(w, *frozen) - w) <= RESIDUAL * jnp.abs(w)
    w = converged(w, settled, "the subordination functions were not found; take a point further from the support")
    return w + (image(w, z, left, right) - w) / jax.lax.stop_gradient(1 - slope(w))
