r"""The blocks of the Hessian of softmax regression, class by class."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.limit import Limit, Run, integer, real, whole
from deeplimits.predictions import Identity, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.landscape import kgmm

# About how many test samples a system has, and those among them whose whole matrices are compared entry by entry.
COUNT, FEW = 400, 8


class System(NamedTuple):
    """Test samples around the means e_1, …, e_k, and their classes."""

    x: Float[Array, "n k"]
    classes: Float[Array, " n"]


class KgmmHessianGBlocks(Limit):
    r"""Where classes are narrow, every block of the Hessian has one eigenvalue for each class, its own the largest.

    Setting     k classes Y = e_a + Z/√λ, softmax regression at x^c = a(e_c − mean of all e); Hessian and second moment
                of the gradients (G) over test samples, blocks bc; the ridge excluded
    Limit       λ → ∞
    Result      blocks: mean of π_b(δ_bc − π_c)YY' and of (π_b − y_b)(π_c − y_c)YY', exactly
                π = e^a/(e^a + k − 1), q = (1 − π)/(k − 1): Hessian block cc has π(1 − π)/k along μ_c, q(1 − q)/k along
                the others; G block (1 − π)²/k and q²/k; the whole Hessian πq, k times, and q/k, k(k − 2) times
    Validity    orthonormal means, equal probabilities; with k = 2 the two eigenvalues of a block agree; size counts λ
    Finite size O(1/λ)
    Computed by landscape.kgmm_blocks, landscape.softmax_curvature (hessian, gradient)
    References  benarous2024; papyan2019
    """

    classes: int = integer(3, 2, 8, symbol="k", doc="number of classes k")
    amplitude: Array = real(1.5, 0.0, 2.5, symbol="a", doc="length a of the weights")

    usual = Run(sizes=(25, 50, 100), samples=300)
    showcase = Showcase(
        ranges={"amplitude": (0.0, 2.5)},
        see="Each class's own eigenvalue stands out, and shrinks as the classifier becomes sure.",
    )

    def theory(self):
        found = kgmm.kgmm_blocks(self.amplitude, self.classes)
        return {
            "hessian_own": Value(found.hessian_own, label="Hessian, own mean", symbol=r"\pi(1-\pi)/k", rate=1.0),
            "hessian_other": Value(found.hessian_other, label="Hessian, other mean", symbol="q(1-q)/k", rate=1.0),
            "gradient_own": Value(found.gradient_own, label="G, own mean", symbol=r"(1-\pi)^2/k", rate=1.0),
            "gradient_other": Value(found.gradient_other, label="G, other mean", symbol="q^2/k", rate=1.0),
            "between_classes": Value(found.full_hessian[0], label="whole Hessian, largest", symbol=r"\pi q", rate=1.0),
        }

    def at_size(self, size):
        return {"separation": whole(size, "λ", self, least=2)}, self

    def draw(self, key, *, separation: int):
        k = self.classes
        # As many of every class
        classes = jnp.tile(jnp.arange(k), COUNT // k)
        noise = jax.random.normal(key, (len(classes), k)) / jnp.sqrt(1.0 * separation)
        return System(jnp.eye(k)[classes] + noise, classes.astype(float))

    def stated(self, system):
        weights = self._weights()
        x, classes = system.x[:FEW], system.classes[:FEW]
        shared = {"tolerance": 1e-13, "reason": "rounding"}
        return {
            name: Identity(
                kgmm.softmax_curvature(weights, x, classes, kind=kind), label=f"{kind} blocks", symbol=symbol, **shared
            )
            for name, kind, symbol in (("hessian", "hessian", "H"), ("gradient", "gradient", "G"))
        }

    def measured(self, system):
        k, weights, count = self.classes, self._weights(), len(system.classes)

        def loss(w, x, label):
            return -jax.nn.log_softmax(w.reshape(k, k) @ x) @ jax.nn.one_hot(label.astype(int), k)

        flat = weights.ravel()
        few = jax.vmap(lambda x, c: (jax.hessian(loss)(flat, x, c), jax.grad(loss)(flat, x, c)))
        hessians, gradients = few(system.x[:FEW], system.classes[:FEW])

        # Blocks of all test samples along the means: rows and columns b, c; the first class against itself
        chance = jax.nn.softmax(system.x @ weights.T, axis=1)
        squares = system.x**2
        curved, slopes = (
            chance[:, 0] * (1 - chance[:, 0]),
            (chance[:, 0] - jnp.where(system.classes == 0, 1.0, 0.0)) ** 2,
        )
        hessian, gradient = curved @ squares / count, slopes @ squares / count
        # Along e_1 in x^1 and minus the same in all others, an eigenvector of the whole Hessian without noise
        others = jnp.eye(k)[0] - 1 / k
        second = (chance @ others**2 - (chance @ others) ** 2) / (others @ others)
        return {
            "hessian": hessians.mean(axis=0),
            "gradient": gradients.T @ gradients / FEW,
            "hessian_own": hessian[0],
            "hessian_other": jnp.mean(hessian[1:]),
            "gradient_own": gradient[0],
            "gradient_other": jnp.mean(gradient[1:]),
            "between_classes": second @ squares[:, 0] / count,
        }

    def _weights(self):
        return self.amplitude * (jnp.eye(self.classes) - 1 / self.classes)
