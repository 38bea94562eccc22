r"""The Hessian of a network that has learnt XOR, layer by layer."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.limit import Limit, Run, integer, real, whole
from deeplimits.models.designs import Design
from deeplimits.predictions import Identity, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.landscape import xor_blocks

COUNT, FEW = 400, 12


class System(NamedTuple):
    """Test samples in the plane of μ and ν with their labels, and a network off its rest point."""

    samples: Design
    output: Float[Array, " K"]
    weights: Float[Array, "K 2"]


class XorHessianGBlocks(Limit):
    r"""At rest, a network that has learnt all four clusters has four equal curvatures in its second layer.

    Setting     y fair, X ~ N(±μ, I/λ) if y = 1, N(±ν, I/λ) if y = 0; v·g(WX), logistic loss, ridge β; the rest point
                of the limit λ = ∞ with all four types: K/4 neurons each, v_i² = 4S/K, S = log((1−4β)/(4β)); Hessian and
                second moment of the gradients (G) over test samples, ridge excluded
    Limit       λ → ∞
    Result      vv: σ'(s)gg' and (σ(s) − y)²gg'; four eigenvalues β(1 − 4β)S and 4β²S, the others 0
                W_iW_i: β(1 − 4β)v_i² (G: 4β²v_i²) on both μ and ν: W_i·ν = 0 is positive half of the time
                blocks of any network over any sample: as `landscape.xor_curvature` says, almost everywhere
    Validity    0 < β < 1/8; size counts λ
    Finite size O(λ^(−1/2)): E g(h) − g(m) = √(Q/(2πλ)) at m = 0
    Computed by landscape.xor_rest_eigenvalues, landscape.xor_rest_first_layer, landscape.xor_curvature (blocks)
    References  benarous2024
    """

    copies: int = integer(1, 1, 4, symbol="K/4", doc="neurons of each type")
    ridge: Array = real(0.05, 0.01, 0.1, log=True, symbol=r"\beta", doc="ridge parameter β")

    usual = Run(sizes=(400, 1600, 6400), samples=400)
    showcase = Showcase(
        ranges={"ridge": (0.01, 0.1)}, see="Four equal curvatures in the second layer, set by the ridge alone."
    )

    def theory(self):
        second = xor_blocks.xor_rest_eigenvalues(self.ridge)
        output = jnp.sqrt(jnp.log((1 - 4 * self.ridge) / (4 * self.ridge)) / self.copies)
        first = xor_blocks.xor_rest_first_layer(self.ridge, output)
        shared: dict[str, Any] = {"rate": 0.5}
        return {
            "second_layer": Value(second.hessian, label="Hessian, second layer", symbol=r"\lambda(H_{vv})", **shared),
            "second_layer_gradient": Value(
                second.gradient, label="G, second layer", symbol=r"\lambda(G_{vv})", **shared
            ),
            "along_mu": Value(first.hessian, label="Hessian, first layer, on μ", symbol=r"\mu'H_{WW}\mu", **shared),
            "along_nu": Value(first.hessian, label="Hessian, first layer, on ν", symbol=r"\nu'H_{WW}\nu", **shared),
        }

    def at_size(self, size):
        return {"separation": whole(size, "λ", self, least=50)}, self

    def draw(self, key, *, separation: int):
        width = 4 * self.copies
        numbers = jax.random.normal(key, (COUNT + 2 * width, 2))
        cluster = jnp.arange(COUNT) % 4
        means = jnp.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])[cluster]
        x = means + numbers[:COUNT] / jnp.sqrt(1.0 * separation)
        rest = numbers[COUNT:]
        return System(Design(x, jnp.where(cluster < 2, 1.0, 0.0)), rest[:width, 0], rest[width : 2 * width])

    def stated(self, system):
        few = system.samples.x[:FEW], system.samples.y[:FEW]
        blocks = [
            xor_blocks.xor_curvature(system.output, system.weights, *few, kind=kind) for kind in ("hessian", "gradient")
        ]
        return {
            "blocks": Identity(
                jnp.stack(blocks), label="blocks, entry by entry", symbol="H, G", tolerance=1e-13, reason="rounding"
            )
        }

    def measured(self, system):
        (x, labels), output, weights = system
        width = len(output)

        def loss(flat, one, label):
            score = flat[:width] @ jnp.maximum(flat[width:].reshape(width, 2) @ one, 0.0)
            return jnp.logaddexp(score, 0.0) - label * score

        flat = jnp.concatenate([output, weights.ravel()])
        few = jax.vmap(lambda one, label: (jax.hessian(loss)(flat, one, label), jax.grad(loss)(flat, one, label)))
        hessians, gradients = few(x[:FEW], labels[:FEW])

        # The network at rest: neurons of each type share what fits its cluster.
        size = jnp.sqrt(jnp.log((1 - 4 * self.ridge) / (4 * self.ridge)) / self.copies)
        at_rest = size * jnp.repeat(jnp.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]), self.copies, axis=0)
        v = size * jnp.repeat(jnp.array([1.0, 1.0, -1.0, -1.0]), self.copies)
        h = x @ at_rest.T
        active = jnp.maximum(h, 0.0)
        chance = jax.nn.sigmoid(active @ v)
        curved, square = chance * (1 - chance), (chance - labels) ** 2
        second, moment = ((active * w[:, None]).T @ active / COUNT for w in (curved, square))
        first = (curved * jnp.where(h[:, 0] > 0, 1.0, 0.0) * v[0] ** 2) @ x**2 / COUNT
        return {
            "blocks": jnp.stack([hessians.mean(axis=0), gradients.T @ gradients / FEW]),
            "second_layer": jnp.mean(jnp.linalg.eigvalsh(second)[-4:]),
            "second_layer_gradient": jnp.mean(jnp.linalg.eigvalsh(moment)[-4:]),
            "along_mu": first[0],
            "along_nu": first[1],
        }
