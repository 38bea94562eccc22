r"""The two parts of a network's Hessian."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from deeplimits.limit import Limit, Run, choice, integer, whole
from deeplimits.limits.landscape._shared import Layers
from deeplimits.models.activations import activation as named
from deeplimits.predictions import Bound, Identity
from deeplimits.showcase import Showcase
from deeplimits.theory.landscape import curvature_parts

# An eigenvalue counts towards the rank when it exceeds this share of the largest.
NOT_ZERO = 1e-13


class System(NamedTuple):
    """A network, inputs, and a class for each."""

    layers: Layers
    x: Float[Array, "n d"]
    classes: Float[Array, " n"]


class HessianGaussNewton(Limit):
    r"""The Hessian is the Gauss-Newton matrix plus the curvature of the network, weighted by its residuals.

    Setting     z = Vσ(Wx), K neurons, C outputs, n data; cross-entropy, or |z − y|²/2 with one-hot targets; mean loss
    Limit       none: exact
    Result      H = G + E, G = Avg J'(∇²_z l)J, E = Avg Σ_k (∂l/∂z_k)∇²z_k
                the nonzero eigenvalues of G are those of Θ/n, the tangent kernel, for the squared loss; for
                cross-entropy those of A^{1/2}ΘA^{1/2}/n, A = diag(p) − pp' for each datum
                rank G ≤ n(C − 1) for cross-entropy, nC for the squared loss; the Fisher matrix of cross-entropy is G
    Validity    smooth σ; fewer directions of the outputs than parameters, K(d + C − 1); size counts the data n
    Finite size exact
    Computed by landscape.two_layer_curvature (hessian, spectrum), landscape.gauss_newton_rank (rank)
    References  papyan2019; sagun2017
    """

    activation: str = choice("tanh", ("tanh", "erf", "softplus"), doc="activation σ")
    loss: str = choice("cross-entropy", ("cross-entropy", "squared"), doc="loss")
    width: int = integer(8, 2, 20, symbol="K", doc="number of neurons K")
    dimension: int = integer(8, 2, 20, symbol="d", doc="input dimension d")
    outputs: int = integer(3, 2, 6, symbol="C", doc="number of classes C")

    usual = Run(sizes=(4, 8), samples=30)
    showcase = Showcase(
        first="spectrum",
        see="The eigenvalues of the Gauss-Newton matrix over those of the tangent kernel seen through the loss: all on "
        "the diagonal, to rounding, as is the Hessian over G + E.",
    )

    def validity_at(self, size):
        directions, parameters = size * self.outputs, self.width * (self.dimension + self.outputs - 1)
        if directions > parameters:
            return (f"{size} data with {self.outputs} outputs have more directions than {parameters} parameters",)
        return ()

    def at_size(self, size):
        return {"samples": whole(size, "n", self, least=2)}, self

    def draw(self, key, *, samples: int):
        k, d, c = self.width, self.dimension, self.outputs
        numbers = jax.random.normal(key, (k * d + c * k + samples * d,))
        first = numbers[: k * d].reshape(k, d) / jnp.sqrt(1.0 * d)
        second = numbers[k * d : k * (c + d)].reshape(c, k) / jnp.sqrt(1.0 * k)
        x = numbers[k * (c + d) :].reshape(samples, d)
        return System(Layers(first, second), x, (jnp.arange(samples) % c).astype(float))

    def stated(self, system):
        (first, second), x, classes = system
        n, c = x.shape[0], second.shape[0]
        y = jax.nn.one_hot(classes.astype(int), c) if self.loss == "squared" else classes
        parts = curvature_parts.two_layer_curvature(self.activation, first, second, x, y, loss=self.loss)
        rank = curvature_parts.gauss_newton_rank(first.size + second.size, n, c, loss=self.loss)
        eigenvalues = jnp.linalg.eigvalsh(parts.gauss_newton)[::-1][: min(first.size + second.size, n * c)]
        shared = {"tolerance": 1e-12, "reason": "rounding of sums over parameters and data"}
        return {
            "hessian": Identity(parts.hessian, label="Hessian, G + E", symbol="H", **shared),
            "spectrum": Identity(eigenvalues, label="eigenvalues of G", symbol=r"\lambda(G)", **shared),
            "rank": Bound(jnp.asarray(float(rank)), label="rank of G", side="upper"),
        }

    def measured(self, system):
        layers, x, classes = system
        n, c = x.shape[0], layers.second.shape[0]
        start, unravel = ravel_pytree(layers)
        target = jax.nn.one_hot(classes.astype(int), c)

        def outputs(theta):
            w, v = unravel(theta)
            return named(self.activation).value(x @ w.T) @ v.T

        def loss_of(z):
            if self.loss == "squared":
                return jnp.sum((z - target) ** 2) / (2 * n)
            return -jnp.sum(target * jax.nn.log_softmax(z, axis=1)) / n

        # The kernel of the outputs, seen through the loss: √A Θ √A with A = ∇²_z of the mean loss
        jacobian = jax.jacrev(lambda theta: outputs(theta).ravel())(start)
        inner = jax.hessian(lambda z: loss_of(z.reshape(n, c)))(outputs(start).ravel())
        values, vectors = jnp.linalg.eigh(inner)
        root = jnp.sqrt(jnp.maximum(values, 0.0))[:, None] * vectors.T
        eigenvalues = jnp.linalg.eigvalsh(root @ jacobian @ jacobian.T @ root.T)[::-1]
        return {
            "hessian": jax.hessian(lambda theta: loss_of(outputs(theta)))(start),
            "spectrum": eigenvalues[: min(start.size, n * c)],
            "rank": jnp.sum(jnp.where(eigenvalues > NOT_ZERO * eigenvalues[0], 1.0, 0.0)),
        }
