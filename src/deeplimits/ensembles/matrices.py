"""Random matrices."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from deeplimits.models.activations import ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics.shapes import Scalar


def uniform_orthogonal(key: PRNGKeyArray, size: int) -> Float[Array, "n n"]:
    """A uniform orthogonal matrix: the Q of a Gaussian matrix, with the signs that make R's diagonal positive.

    >>> q = uniform_orthogonal(jax.random.key(0), 4)
    >>> bool(jnp.allclose(q.T @ q, jnp.eye(4)))
    True
    """
    q, r = jnp.linalg.qr(jax.random.normal(key, (size, size)))
    return q * jnp.sign(jnp.diagonal(r))[None, :]


def distance_keeping_map(
    key: PRNGKeyArray, rows: int, coordinates: int, distortion: Scalar | float
) -> Float[Array, "rows coordinates"]:
    """A random projection: with high probability (1−ε)|x_i − x_j| ≤ |A(x_i − x_j)| ≤ |x_i − x_j| for given points.

    A = √(ρ/(a m)) G with m = `rows`, independent standard entries, ρ = (1−ε)², ε = `distortion`, a = −ρ log ρ/(1−ρ), at
    which too short and too long are equally rare. How many rows are enough for how many points say
    `theory.expressivity.johnson_lindenstrauss` and `projection_failure`.

    >>> found = distance_keeping_map(jax.random.key(0), 100, 300, 0.5)
    >>> bool(0.5 < jnp.linalg.norm(found[:, 0]) < 1)
    True
    """
    rho = (1 - distortion) ** 2
    a = -rho * jnp.log(rho) / (1 - rho)
    return jnp.sqrt(rho / (a * rows)) * jax.random.normal(key, (rows, coordinates))


def features(
    key: PRNGKeyArray, activation: ActivationLike, width: int, inputs: Float[Array, "p n"], mean: Array
) -> Float[Array, "N n"]:
    """Random features σ(WX/√p) − mean, W with independent standard Gaussian entries."""
    weights = jax.random.normal(key, (width, inputs.shape[0]))
    return named(activation).value(weights @ inputs / jnp.sqrt(1.0 * inputs.shape[0])) - mean


def gated_product(
    key: PRNGKeyArray, width: int, depth: int, weights: str, variance: Array, active: Array
) -> Float[Array, "n n"]:
    """The product Π_l D_lW_l of square weights, Gaussian or orthogonal, and independent 0-1 gates.

    >>> gated_product(jax.random.key(0), 4, 3, "orthogonal", jnp.asarray(1.0), jnp.asarray(0.5)).shape
    (4, 4)
    """

    def layer(product, layer_key):
        weight_key, gate_key = jax.random.split(layer_key)
        if weights == "gaussian":
            matrix = jax.random.normal(weight_key, (width, width)) / jnp.sqrt(1.0 * width)
        else:
            matrix = uniform_orthogonal(weight_key, width)
        # Exactly a share p of the units is active, in random places.
        ranks = jnp.argsort(jnp.argsort(jax.random.uniform(gate_key, (width,))))
        gates = jnp.where(ranks.astype(float) < active * width - 0.5, 1.0, 0.0)
        return gates[:, None] * (jnp.sqrt(variance) * matrix @ product), None

    return jax.lax.scan(layer, jnp.eye(width), jax.random.split(key, depth))[0]
