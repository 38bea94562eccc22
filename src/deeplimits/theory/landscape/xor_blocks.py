r"""Hessian blocks of a two-layer ReLU network on the XOR mixture.

Means ±μ with label 1 and ±ν with label 0, covariance I/λ; network v·g(WX), logistic loss. A second-layer block is the
K × K matrix of curvatures in v; a first-layer block belongs to one neuron W_i.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import ParameterError
from deeplimits.numerics import arguments
from deeplimits.numerics.quasi_random import gaussian_points
from deeplimits.theory.landscape.weighted_covariance import WeightedSample, weighted_sample
from deeplimits.theory.online_sgd.xor import XorState, active_types_probability, check_state

JITTER = 1e-12
CRITICAL_RIDGE = 1 / 8


class XorBlocks(NamedTuple):
    """A block of a layer, or its eigenvalues, with s = v·g(WY)."""

    hessian: Array
    """Of the Hessian: E σ'(s) g(WY)g(WY)' in the second layer."""
    gradient: Array
    """Of the second moment of the gradients: E (σ(s) − y)² g(WY)g(WY)' in the second layer."""


def xor_second_layer(state: XorState, separation: ArrayLike, *, points: int = 1024) -> XorBlocks:
    """Population blocks of the second layer at given summary statistics; `separation` may be infinite.

    Setting     `state` (v, Wμ, Wν, R), R the Gram matrix of the rest of W
    Result      E σ'(s) g(h)g(h)' and E (σ(s) − y)² g(h)g(h)' over the four clusters, h = W·mean + N(0, Q/λ),
                Q = m^μ m^μ' + m^ν m^ν' + R
    Validity    quasi-random points for the noise: exact without noise
    References  benarous2024

    >>> at = XorState(jnp.ones(1), jnp.ones(1), jnp.zeros(1), jnp.zeros((1, 1)))
    >>> round(float(xor_second_layer(at, jnp.inf).hessian[0, 0]), 6)  # σ'(1)/4
    0.049153
    """
    arguments.of_kind("state", state, XorState)
    check_state(state)
    lam = arguments.number("separation", separation, arguments.Allowed(lambda x: x > 0, "positive (inf: no noise)"))
    v, mu, nu, rest = (jnp.asarray(part, float) for part in state)
    width = v.shape[0]
    z = jnp.asarray(gaussian_points(width + 2, points)) / jnp.sqrt(lam)
    root = jnp.linalg.cholesky(rest + JITTER * (1 + jnp.trace(rest)) * jnp.eye(width))
    noise = z[:, :1] * mu[None, :] + z[:, 1:2] * nu[None, :] + z[:, 2:] @ root.T
    blocks = []
    for mean, label in ((mu, 1.0), (-mu, 1.0), (nu, 0.0), (-nu, 0.0)):
        active = jnp.maximum(mean[None, :] + noise, 0.0)
        chance = jax.nn.sigmoid(active @ v)
        blocks.append(
            [(active * w[:, None]).T @ active / (4 * len(z)) for w in (chance * (1 - chance), (chance - label) ** 2)]
        )
    return XorBlocks(*(jnp.sum(jnp.stack(parts), axis=0) for parts in zip(*blocks, strict=True)))


def xor_weighted_block(
    state: XorState, separation: ArrayLike, per_dimension: ArrayLike,
    *, neuron: int = 0, kind: str = "hessian", points: int = 1024,
) -> WeightedSample:  # fmt: skip
    """Block W_iW_i of the test matrix at a state, for `weighted_outliers`.

    Coordinates: μ, ν, then an orthonormal frame of the rest, in which the W_i are the rows of L, LL' = R: W_i is
    (m^μ_i, m^ν_i, L_i). Weights: hessian v_i²σ'(s)1{W_i·Y > 0}, gradient v_i²(σ(s) − y)²1{W_i·Y > 0}.

    >>> at = XorState(jnp.ones(3), jnp.ones(3), jnp.zeros(3), jnp.eye(3))
    >>> xor_weighted_block(at, 10.0, 10.0, points=16).coordinates.shape
    (128, 5)
    """
    arguments.of_kind("state", state, XorState)
    check_state(state)
    arguments.choice("kind", kind, ("hessian", "gradient"))
    lam = arguments.number("separation", separation, arguments.POSITIVE)
    v, mu, nu, rest = (jnp.asarray(part, float) for part in state)
    width = v.shape[0]
    if arguments.whole("neuron", neuron) >= width:
        raise ParameterError(f"neuron = {neuron} is not allowed; there are {width} neurons, counted from 0")
    root = jnp.linalg.cholesky(rest + JITTER * (1 + jnp.trace(rest)) * jnp.eye(width))
    weights = jnp.concatenate([mu[:, None], nu[:, None], root], axis=1)
    noise = jnp.asarray(gaussian_points(width + 2, points)) / jnp.sqrt(lam)
    means = jnp.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    u = noise[None] + jnp.pad(means, ((0, 0), (0, width)))[:, None, :]
    h = u @ weights.T
    chance = jax.nn.sigmoid(jnp.maximum(h, 0.0) @ v)
    label = jnp.array([1.0, 1.0, 0.0, 0.0])[:, None]
    middle = chance * (1 - chance) if kind == "hessian" else (chance - label) ** 2
    w = v[neuron] ** 2 * middle * jnp.where(h[:, :, neuron] > 0, 1.0, 0.0)
    return weighted_sample(w.ravel(), u.reshape(-1, width + 2), lam, per_dimension)


def xor_rest_eigenvalues(ridge: ArrayLike) -> XorBlocks:
    """The eigenvalues of second-layer blocks at a rest point with a types: a of them equal these, the others are zero.

    >>> [round(float(part), 12) for part in xor_rest_eigenvalues(0.05)]
    [0.055451774445, 0.013862943611]
    """
    beta = _resting(ridge)
    mass = jnp.log((1 - 4 * beta) / (4 * beta))
    return XorBlocks(beta * (1 - 4 * beta) * mass, 4 * beta**2 * mass)


def xor_rest_first_layer(ridge: ArrayLike, output: ArrayLike) -> XorBlocks:
    """The two equal eigenvalues of the blocks W_iW_i, on μ and ν: β(1 − 4β)v_i² and 4β²v_i², all four types active.

    >>> [round(float(part), 12) for part in xor_rest_first_layer(0.05, 1.0)]
    [0.04, 0.01]
    """
    beta, v = _resting(ridge), arguments.number("output", output, arguments.FINITE)
    return XorBlocks(beta * (1 - 4 * beta) * v**2, 4 * beta**2 * v**2)


def xor_outlier_counts(width: int) -> Float[Array, "5"]:
    """P(a outliers), a = 0, …, 4: the number of types that K neurons find, each one of four at random.

    The second-layer Hessian of a network at rest has as many outliers as the network discerns clusters.

    >>> [round(float(p), 6) for p in xor_outlier_counts(4)]
    [0.0, 0.015625, 0.328125, 0.5625, 0.09375]
    """
    width = arguments.whole("width", width, 1)
    counts = [0.0, *(active_types_probability(width, active) for active in range(1, 5))]
    if not math.isclose(sum(counts), 1.0, rel_tol=1e-9):
        raise ParameterError(
            f"width = {width} is too large for alternating sums; almost surely there are four outliers"
        )
    return jnp.asarray(counts)


def _resting(ridge: ArrayLike) -> Array:
    return arguments.number("ridge", ridge, arguments.inside(0.0, CRITICAL_RIDGE), "from 1/8 on everything collapses")


def xor_curvature(
    output: ArrayLike, weights: ArrayLike, x: ArrayLike, labels: ArrayLike, *, kind: str = "hessian"
) -> Array:
    """The Hessian of the mean logistic loss of v·g(WX), or the second moment of its gradients; v first, then W by rows.

    Result      with s = v·g(Wx), e = σ(s) − y, I_i = 1{W_i·x > 0}: hessian vv σ'(s)g g', W_iW_j σ'v_iv_jI_iI_j xx',
                v_iW_j σ'g_i v_jI_j x + δ_ij e I_i x; gradient e² times g g', v_iv_jI_iI_j xx', g_i v_jI_j x
    Validity    almost everywhere: the Hessian of the population loss has a delta function at W_i·x = 0 besides
    References  benarous2024

    >>> xor_curvature([2.0], [[1.0]], [[0.0]], [1.0]).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    v = arguments.array("output", output, ("K",), why="one for each neuron")
    w = arguments.array("weights", weights, (v.shape[0], "N"), why="a row for each neuron")
    y = arguments.array("x", x, ("n", w.shape[1]), why="a row for each sample")
    label = arguments.array("labels", labels, (y.shape[0],), allowed=arguments.SHARE)
    count, width = y.shape[0], v.shape[0]
    h = y @ w.T
    active, on = jnp.maximum(h, 0.0), jnp.where(h > 0, 1.0, 0.0)
    chance = jax.nn.sigmoid(active @ v)
    error = chance - label
    # ∂s/∂v_i = g_i, ∂s/∂W_i = v_i I_i x
    slope = jnp.concatenate([active, (v[None, :, None] * on[:, :, None] * y[:, None, :]).reshape(count, -1)], axis=1)
    gradient = arguments.choice("kind", kind, ("hessian", "gradient")) == "gradient"
    middle = error**2 if gradient else chance * (1 - chance)
    found = (slope * middle[:, None]).T @ slope / count
    if gradient:
        return found
    bend = jnp.einsum("n,ni,na,ij->ija", error, on, y, jnp.eye(width)).reshape(width, -1) / count
    return found.at[:width, width:].add(bend).at[width:, :width].add(bend.T)
