r"""The Hessian of a two-layer network and its two parts, and that of logistic regression on two clusters."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import ParameterError
from deeplimits.models.activations import ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics import arguments
from deeplimits.numerics.panels import gauss
from deeplimits.numerics.shapes import Scalar

ROOT_TWO = 2**0.5
LOSSES = ("cross-entropy", "squared")


class CurvatureParts(NamedTuple):
    """H = G + E, for parameters in the order: first layer row by row, second layer row by row."""

    gauss_newton: Float[Array, "P P"]
    """G = Avg J'(∇²_z l)J, positive semidefinite."""
    rest: Float[Array, "P P"]
    """E = Avg Σ_k (∂l/∂z_k)∇²z_k, zero where the data are fitted."""

    @property
    def hessian(self) -> Float[Array, "P P"]:
        """H."""
        return self.gauss_newton + self.rest


class ClusterCurvature(NamedTuple):
    """The two eigenvalues of the population Hessian."""

    along: Scalar
    """Along the line between the clusters; a single one."""
    across: Scalar
    """Orthogonal to it."""


def two_layer_curvature(
    activation: ActivationLike, first: ArrayLike, second: ArrayLike, x: ArrayLike, y: ArrayLike,
    *, loss: str = "cross-entropy",
) -> CurvatureParts:  # fmt: skip
    """The Hessian of a two-layer network, split into the Gauss-Newton matrix and the curvature of the network itself.

    Setting     z = V σ(Wx), `first` W (K, d), `second` V (C, K); data `x` (n, d) and `y`, the n classes for
                cross-entropy, targets (n, C) for the squared loss |z − y|²/2; the loss is the mean over data
    Result      H = G + E, G = Avg J'AJ with A = diag(p) − pp' (cross-entropy) or 1 (squared), E = Avg Σ_k r_k ∇²z_k
                with r = p − e_y or z − y
    Validity    σ'' almost everywhere: kinks contribute nothing
    References  papyan2019; sagun2017

    >>> parts = two_layer_curvature("tanh", [[0.5]], [[2.0]], [[1.0]], [[1.0]], loss="squared")
    >>> [round(float(part), 12) for part in (*parts.gauss_newton[0], *parts.rest[0])]
    [2.474000146749, 0.726861981384, 0.110142392538, -0.059585751582]
    """
    w, v, x, residual, middle = _checked(first, second, x, y, activation, loss)
    sigma = named(activation)
    k, c, n = w.shape[0], v.shape[0], x.shape[0]
    fields = x @ w.T
    value, slope, bend = sigma.value(fields), sigma.derivative(fields), sigma.second_derivative(fields)
    # ∂z_c/∂W_ja = V_cj σ'_j x_a and ∂z_c/∂V_lj = δ_cl σ_j
    by_first = jnp.einsum("cj,nj,na->ncja", v, slope, x).reshape(n, c, -1)
    by_second = jnp.einsum("cl,nj->nclj", jnp.eye(c), value).reshape(n, c, -1)
    jacobian = jnp.concatenate([by_first, by_second], axis=-1)
    gauss_newton = jnp.einsum("ncp,ncd,ndq->pq", jacobian, middle, jacobian) / n
    # Σ_c r_c ∂²z_c/∂W_ja∂W_jb = (V'r)_j σ''_j x_a x_b and Σ_c r_c ∂²z_c/∂V_lj∂W_ja = r_l σ'_j x_a
    both_first = jnp.einsum("nj,na,nb->jab", residual @ v * bend, x, x) / n
    corner = jnp.einsum("jab,ji->jaib", both_first, jnp.eye(k)).reshape(k * x.shape[1], -1)
    mixed = jnp.einsum("nl,nj,na->jal", residual, slope, x) / n
    mixed = jnp.einsum("jal,ji->jali", mixed, jnp.eye(k)).reshape(corner.shape[0], -1)
    rest = jnp.block([[corner, mixed], [mixed.T, jnp.zeros((c * k, c * k))]])
    return CurvatureParts(gauss_newton, rest)


def gauss_newton_rank(parameters: int, samples: int, outputs: int, *, loss: str = "cross-entropy") -> int:
    """The most that the Gauss-Newton matrix can have as its rank: parameters, or directions of the outputs of the data.

    Cross-entropy does not see a shift of all logits: one direction less for each datum.

    >>> gauss_newton_rank(33, 12, 3), gauss_newton_rank(33, 12, 3, loss="squared")
    (24, 33)
    """
    arguments.choice("loss", loss, LOSSES)
    counts = (("parameters", parameters), ("samples", samples), ("outputs", outputs))
    p, n, c = (arguments.whole(name, value, 1) for name, value in counts)
    return min(p, n * (c - (loss == "cross-entropy")))


def two_cluster_curvature(weight: ArrayLike, noise: ArrayLike, *, distance: ArrayLike = ROOT_TWO) -> ClusterCurvature:
    """The population Hessian of logistic regression on two Gaussian clusters.

    Setting     x = ±μ + s·g with |μ| = `distance` (√2 for clusters at ±(1, 1)), `noise` the standard
                deviation s, equally likely labels ±;
                p = σ(⟨w, x⟩) with w of length `weight` a along μ
    Result      along μ: E σ'(u)(|μ| + s g)², across: s²E σ'(u), u = a(|μ| + s g)
                a = 0: (|μ|² + s²)/4 and s²/4, an outlier that the noise swallows; the loss is least at a = 2|μ|/s²
    References  sagun2017

    >>> [round(float(part), 6) for part in two_cluster_curvature(0.0, 1.0)]
    [0.75, 0.25]
    """
    a = arguments.number("weight", weight, arguments.NOT_NEGATIVE)
    s = arguments.number("noise", noise, arguments.at_least(0.02), "an integral over the noise")
    r = arguments.number("distance", distance, arguments.NOT_NEGATIVE)
    # Panels that resolve the Gaussian, where σ' may be largest, and σ' itself, whose scale is 1/(as) around −r/s.
    far = -r / s
    even = far - 12 + (24 - far) * jnp.linspace(0.0, 1.0, 201)
    fine = far + jnp.linspace(-40.0, 40.0, 161) / jnp.maximum(a * s, 1e-3)
    ends = jnp.sort(jnp.concatenate([even, jnp.clip(fine, even[0], even[-1])]))
    nodes, weights = gauss(8)
    half = (ends[1:] - ends[:-1])[:, None] / 2
    z = (ends[:-1, None] + half * (1 + nodes)[None, :]).ravel()
    density = (half * weights[None, :]).ravel() * jnp.exp(-(z**2) / 2) / jnp.sqrt(2 * jnp.pi)
    place = r + s * z
    # σ'(u) = e^{−|u|}/(1 + e^{−|u|})²
    decay = jnp.exp(-jnp.abs(a * place))
    slope = density * decay / (1 + decay) ** 2
    return ClusterCurvature(jnp.sum(slope * place**2), s**2 * jnp.sum(slope))


def top_gradient_share(
    eigenvalues: ArrayLike, start: ArrayLike, step: ArrayLike, times: ArrayLike, top: int
) -> Float[Array, " times"]:
    """The share |P_k g|²/|g|² of the gradient in the top eigenspace, along gradient descent on a quadratic.

    Setting     `eigenvalues` λ_i, not negative; `start` δ_i, the distance from the minimum along each eigenvector;
                after `times` steps; k = `top` largest eigenvalues
    Result      g_i = λ_i(1 − ηλ_i)^t δ_i: for a small step the gradient leaves the top space, for ηλ₁ near 2 it stays
    Validity    a minimum that is not reached exactly
    References  gurari2018

    >>> round(1e10 * float(top_gradient_share([10, 1, 0.1], [1, 1, 1], 0.05, [20], 1)[0]), 9)
    6.653442487
    """
    values = arguments.array("eigenvalues", eigenvalues, ("d",), allowed=arguments.NOT_NEGATIVE)
    delta = arguments.array("start", start, values.shape, why="one for each eigenvalue")
    eta = arguments.number("step", step, arguments.POSITIVE)
    moments = jnp.atleast_1d(arguments.argument("times", times, arguments.COUNT))
    if arguments.whole("top", top, 1) > values.shape[0]:
        raise ParameterError(f"top = {top} exceeds the {values.shape[0]} eigenvalues; take fewer")
    # log g_i² = 2 log|λ_i δ_i| + 2t log|1 − ηλ_i|, summed as logarithms, as a share may be tiny
    kept = jnp.abs(1 - eta * values)
    with_time = jnp.where((moments == 0)[:, None], 0.0, moments[:, None] * jnp.log(kept)[None, :])
    logs = 2 * (jnp.log(jnp.abs(values * delta))[None, :] + with_time)
    largest = jnp.argsort(values, descending=True)[:top]
    return jnp.exp(jax.nn.logsumexp(logs[:, largest], axis=1) - jax.nn.logsumexp(logs, axis=1))


def _checked(first, second, x, y, activation, loss):
    """Weights and data as arrays, with the residuals ∂l/∂z and the Hessians ∇²_z l of every datum."""
    arguments.choice("loss", loss, LOSSES)
    w = arguments.array("first", first, ("K", "d"), why="a row for each neuron")
    v = arguments.array("second", second, ("C", w.shape[0]), why="a row for each output, a column for each neuron")
    x = arguments.array("x", x, ("n", w.shape[1]), why="a row for each datum")
    n, c = x.shape[0], v.shape[0]
    z = named(activation).value(x @ w.T) @ v.T
    if loss == "squared":
        target = arguments.array("y", y, (n, c), why="a row of targets for each datum")
        return w, v, x, z - target, jnp.broadcast_to(jnp.eye(c)[None], (n, c, c))
    allowed = arguments.Allowed(lambda k: (k >= 0) & (k < c) & (k == np.round(k)), f"a class, 0 to {c - 1}")
    label = arguments.array("y", y, (n,), allowed=allowed, why="one class for each datum")
    p = jax.nn.softmax(z, axis=1)
    middle = p[:, :, None] * (jnp.eye(c)[None] - p[:, None, :])
    return w, v, x, p - jax.nn.one_hot(label.astype(int), c, dtype=float), middle
