r"""The Gauss-Newton matrix split by class and label."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.limit import Limit, Run, integer, real, rounded, whole
from deeplimits.limits.landscape._shared import parts_by_loops
from deeplimits.predictions import Identity, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.landscape import class_parts


class System(NamedTuple):
    """Inputs, sorted by class, and weights of a softmax regression."""

    x: Float[Array, "N d"]
    weights: Float[Array, "C d"]


class PapyanGradientDecomposition(Limit):
    r"""The Gauss-Newton matrix is a sum of four second moments: of classes, cross-classes, within them, and the rest.

    Setting     C classes with n inputs each, x = μ_c + s z/√d in R^d, |μ_c| = 1 and orthonormal; softmax regression,
                weights 0 (shares) or random (identities); g_icc' = ∇ of the loss with label c', w = p_ic(c')/(nC)
    Limit       none for the split; the traces in the mean over inputs, at every n
    Result      G = Σ w g g' = G_class + G_cross + G_within + G_{c=c'}
                weights 0, M = 1 + s²/n: traces M/C², M(C − 2)/C, ((C − 1)/C)²s²(1 − 1/n), (1 − 1/C)(1 + s²)/C
    Validity    weights p at every level (plain averages do not sum to G); size counts the inputs n of a class
    Finite size exact
    Computed by landscape.class_decomposition (parts), landscape.start_gradient_parts
    References  papyan2019; papyan2020
    """

    classes: int = integer(3, 3, 6, symbol="C", doc="number of classes C")
    dimension: int = integer(10, 6, 30, symbol="d", doc="dimension d")
    noise: Array = real(1.0, 0.3, 3.0, log=True, symbol="s", doc="standard deviation √d·τ of an input about its mean")
    per_class: int = integer(10, 2, 200, log=True, symbol="n", doc="inputs n of a class")

    usual = Run(sizes=(5, 10), samples=400, batch=20)
    showcase = Showcase(
        see="The four parts of the Gauss-Newton matrix, and how they grow with the noise within classes."
    )

    def theory(self):
        parts = class_parts.start_gradient_parts(self.classes, self.per_class, 1.0, self.noise**2)
        names = (("between", "class means"), ("cross", "cross-class means"), ("within", "within"), ("same", "c = c'"))
        return {
            name: Value(getattr(parts, name), label=f"trace, {words}", symbol=rf"\mathrm{{tr}}\,G_{{{name}}}")
            for name, words in names
        }

    def at_size(self, size):
        n = whole(size, "n", self, least=2)
        return {"per_class": n}, rounded(self, per_class=n)

    def draw(self, key, *, per_class: int):
        c, d = self.classes, self.dimension
        numbers = jax.random.normal(key, (c * per_class + c, d))
        means = jnp.repeat(jnp.eye(c, d), per_class, axis=0)
        return System(means + self.noise * numbers[:-c] / jnp.sqrt(1.0 * d), numbers[-c:])

    def stated(self, system):
        x, weights = system
        c = self.classes
        chance = jax.nn.softmax(x @ weights.T, axis=1)
        labels = jnp.repeat(jnp.arange(1.0 * c), len(x) // c)
        error = chance[:, None, :] - jnp.eye(c)[None]
        gradients = jnp.einsum("ikl,id->ikld", error, x).reshape(len(x), c, -1)
        parts = class_parts.class_decomposition(gradients, chance / len(x), labels)
        shared = {"tolerance": 1e-12, "reason": "rounding of sums over inputs and labels"}
        return {
            "sum": Identity(parts.whole, label="sum of the parts", symbol="G", **shared),
            "parts": Identity(jnp.stack(list(parts)), label="parts", symbol=r"G_{\bullet}", **shared),
        }

    def measured(self, system):
        x, weights = system
        c, n = self.classes, len(x) // self.classes

        def loss(flat, inputs, label):
            return -jax.nn.log_softmax(flat.reshape(c, -1) @ inputs)[label]

        def gradients(flat):
            labels = jnp.arange(c)
            return jax.vmap(lambda one: jax.vmap(lambda k: jax.grad(loss)(flat, one, k))(labels))(x)

        flat = weights.ravel()
        own = jnp.repeat(jnp.arange(c), n)
        chance = jax.nn.softmax(x @ weights.T, axis=1) / len(x)
        # The Hessian of a linear model with cross-entropy has no other part, and does not see the labels.
        hessian = jax.hessian(lambda flat: jnp.mean(jax.vmap(loss, (None, 0, 0))(flat, x, own)))(flat)
        at_zero = parts_by_loops(gradients(jnp.zeros_like(flat)), jnp.full_like(chance, 1 / (c * len(x))), n)
        traces = [jnp.trace(part) for part in at_zero]
        return {
            "sum": hessian,
            "parts": jnp.stack(parts_by_loops(gradients(flat), chance, n)),
            **dict(zip(("between", "cross", "within", "same"), traces, strict=True)),
        }
