r"""Models that are slightly quadratic in their parameters."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from deeplimits.ensembles import flows
from deeplimits.limit import Limit, Run, integer, real, replace, whole
from deeplimits.predictions import Exponent, Identity, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.bias import quadratic_model

# By then e^{−At} has vanished, and the flow has ended.
END = 60.0

# The multiples of ε at which the flow is followed, and which of them are doubled.
STRENGTHS = np.array([-2.0, -1.0, 0.0, 1.0, 2.0, 4.0])
ZERO, ONE = 2, 3
DOUBLED = np.array([1.0, 2.0])


class Model(NamedTuple):
    """A quadratic model with its labels, where training starts, and another input's form."""

    features: Float[Array, "p m"]
    forms: Float[Array, "m p p"]
    y: Float[Array, " m"]
    start: Float[Array, " p"]
    probe: Float[Array, "p p"]


class QuadraticModelPerturbation(Limit):
    r"""A weakly quadratic model: where gradient flow ends, and how its features move, to first order.

    Setting     z_a(θ) = ⟨Φ_a, θ⟩ + (ε/2)⟨θ, Ψ_a θ⟩, m samples, p > m parameters, loss ½ Σ (z_a − y_a)², gradient
                flow from θ₀
    Limit       ε → 0
    Result      (θ(∞) − θ_F)/ε → θ_I with A Πθ_I = −½ Σ Φ_a⟨θ_F, Ψ_a θ_F⟩ and, with Δ = Π(θ₀ − θ_F),
                (1−Π)θ_I = −(1−Π) Σ Ψ_a [θ_F⟨Φ_a, A⁺Δ⟩ + Σ_jk u_j⟨u_j,Δ⟩⟨Φ_a,u_k⟩⟨u_k,Δ⟩/(a_j+a_k)]
                effective features: [Φ^E(x;t) − Φ^E(x;0)]/ε → Ψ(x)(1 − e^{−At})(θ_F − θ₀)
                the second order, (θ(∞; 2ε) − θ_F)/(2ε) − (θ(∞; ε) − θ_F)/ε, is of order ε
    Validity    the linear model interpolates (p ≥ m, independent features); size counts 1/ε
    Finite size O(ε); the derivative at ε = 0, extrapolated from ±ε and ±2ε, to order ε⁴
    Computed by bias.quadratic_perturbation, bias.feature_change (effective_features)
    References  roberts2022 Ch. 11
    """

    samples: int = integer(3, 1, 20, symbol="m", doc="number of samples")
    parameters: int = integer(7, 2, 60, symbol="p", doc="number of parameters, above m")
    epsilon: Array = real(0.005, 1e-5, 0.1, log=True, symbol=r"\epsilon", doc="strength of the quadratic term")
    time: Array = real(0.5, 0.01, 100.0, log=True, symbol="t", doc="time at which the features are looked at")

    usual = Run(sizes=(200, 400, 800), samples=40)
    showcase = Showcase(over="time", see="How far the end of training moves when the model is a little quadratic.")

    def validity(self):
        if self.parameters <= self.samples:
            return (
                f"parameters = {self.parameters} is not above samples = {self.samples}; "
                "the perpendicular part needs more parameters than samples",
            )
        return ()

    def at_size(self, size):
        return {}, replace(self, epsilon=1 / whole(size, "1/ε", self, least=100))

    def draw(self, key):
        m, p = self.samples, self.parameters
        entries = jax.random.normal(key, ((m + 1) * p * p + m * p + m + p,))
        forms, rest = jnp.split(entries, [(m + 1) * p * p])
        forms = forms.reshape(m + 1, p, p) / jnp.sqrt(1.0 * p)
        forms = (forms + forms.transpose(0, 2, 1)) / 2
        raw, y, start = jnp.split(rest, [m * p, m * p + m])
        # Orthonormal features times lengths between 1 and 2: the flow ends in good time.
        basis = jnp.linalg.qr(raw.reshape(p, m))[0]
        return Model(
            basis * jnp.linspace(1.0, 2.0, m)[None, :], forms[:-1], y, start / jnp.linalg.norm(start), forms[-1]
        )

    def stated(self, system):
        found = quadratic_model.quadratic_perturbation(system.features, system.forms, system.y, system.start)
        change = quadratic_model.feature_change(system.features, system.probe, system.y, system.start, self.time)
        return {
            "parallel": Value(
                jnp.linalg.norm(found.parallel),
                label="displacement along the features",
                symbol=r"\|\Pi\theta_I\|",
                rate=1.0,
            ),
            "perpendicular": Value(
                jnp.linalg.norm(found.perpendicular),
                label="displacement across the features",
                symbol=r"\|(1-\Pi)\theta_I\|",
                rate=1.0,
            ),
            "effective_features": Value(
                jnp.linalg.norm(change), label="motion of the effective features", symbol=r"\|\Delta\Phi^E\|", rate=1.0
            ),
            "first_order": Identity(
                found.correction,
                label="derivative of the end with respect to ε",
                symbol=r"\theta_I",
                tolerance=1e-4,
                reason="order ε⁴ at ε of a hundredth, and the integrator's 1e-10 divided by ε",
            ),
            "remainder": Exponent(
                1.0, label="second order, from ε to 2ε", x=self.epsilon * jnp.asarray(DOUBLED), axis="ε", rate=1.0
            ),
        }

    def measured(self, system):
        phi, forms, y, start, probe = system

        def flow(epsilon):
            def loss(theta):
                outputs = phi.T @ theta + epsilon / 2 * ((forms @ theta) @ theta)
                return jnp.sum((outputs - y) ** 2) / 2

            return flows.gradient_flow(loss, start, jnp.stack([self.time, self.time + END]))

        strengths = self.epsilon * jnp.asarray(STRENGTHS)
        paths = jax.vmap(flow)(strengths)
        linear = paths[ZERO, 1]
        # (θ(∞; kε) − θ(∞; 0))/(kε), and its part in the span of the features
        moved = (paths[:, 1] - linear[None, :]) / jnp.where(strengths == 0, 1.0, strengths)[:, None]
        minus_two, minus_one, _, one, two, four = moved
        span = jnp.linalg.qr(phi)[0]
        along = span @ (span.T @ one)
        # The mean over ±ε has no odd orders; that over ±2ε removes the second.
        derivative = (4 * (one + minus_one) - (two + minus_two)) / 6
        return {
            "parallel": jnp.linalg.norm(along),
            "perpendicular": jnp.linalg.norm(one - along),
            # ∇_θ of the model at an input with the quadratic form `probe`, over ε, now and at the start
            "effective_features": jnp.linalg.norm(probe @ paths[ONE, 0] - probe @ start),
            "first_order": derivative,
            "remainder": jnp.stack([jnp.linalg.norm(two - one), jnp.linalg.norm(four - two)]),
        }
