r"""Models that are slightly quadratic in their parameters."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from deeplimits.ensembles import data, flows
from deeplimits.limit import Limit, Run, integer, real, whole
from deeplimits.predictions import Exponent, Value
from deeplimits.theory.bias import quadratic_model

# By then e^{−At} has vanished for all but the worst conditioned features, and the flow has ended.
END = 400.0

# The strengths ε, relative to the smallest, over which the remainder's order is measured.
STRENGTHS = np.array([1.0, 2.0, 4.0])


class QuadraticModel(Limit):
    r"""A weakly quadratic model: where gradient flow ends, and how its features move, to first order.

    Setting     z_a(θ) = ⟨Φ_a, θ⟩ + (ε/2)⟨θ, Ψ_a θ⟩, m samples, p > m parameters, loss ½ Σ (z_a − y_a)², gradient
                flow from θ₀
    Limit       ε → 0
    Result      (θ(∞) − θ_F)/ε → θ_I with A Πθ_I = −½ Σ Φ_a⟨θ_F, Ψ_a θ_F⟩ and, with Δ = Π(θ₀ − θ_F),
                (1−Π)θ_I = −(1−Π) Σ Ψ_a [θ_F⟨Φ_a, A⁺Δ⟩ + Σ_jk u_j⟨u_j,Δ⟩⟨Φ_a,u_k⟩⟨u_k,Δ⟩/(a_j+a_k)]
                effective features: [Φ^E(x;t) − Φ^E(x;0)]/ε → Ψ(x)(1 − e^{−At})(θ_F − θ₀)
                measured are components along the stated vectors, in units of their lengths, and the remainder
    Validity    the linear model interpolates (p ≥ m, independent features); size counts 1/ε
    Finite size O(ε), and the remainder grows like ε
    References  roberts2022 Ch. 11
    """

    samples_fitted: int = integer(3, 1, 20, symbol="m", doc="number of samples")
    parameters_fitted: int = integer(7, 2, 60, symbol="p", doc="number of parameters, above m")
    epsilon: Array = real(0.005, 1e-5, 0.1, log=True, symbol=r"\epsilon", doc="strength of the quadratic term")
    time: Array = real(0.5, 0.01, 100.0, log=True, symbol="t", doc="time at which the features are looked at")

    usual = Run(sizes=(200, 400, 800), samples=40)

    def validity(self):
        if self.parameters_fitted <= self.samples_fitted:
            return (
                f"parameters_fitted = {self.parameters_fitted} is not above samples_fitted = {self.samples_fitted}; "
                "the perpendicular part needs more parameters than samples",
            )
        return ()

    def theory(self):
        one = jnp.ones(())
        return {
            "parallel": Value(one, label="component along the features", symbol=r"\Pi\theta_I", rate=1.0),
            "perpendicular": Value(one, label="component across the features", symbol=r"(1-\Pi)\theta_I", rate=1.0),
            "effective_features": Value(one, label="motion of the effective features", rate=1.0),
            "remainder": Exponent(
                one,
                label="distance from the first order, over its length",
                x=self.epsilon * STRENGTHS,
                axis="ε",
                rate=1.0,
            ),
        }

    def at_size(self, size):
        return {}, self.replace(epsilon=1 / whole(size, "1/ε", self, least=10))

    def simulate(self, key):
        feature_key, form_key, label_key, start_key, test_key = jax.random.split(key, 5)
        m, p, epsilon = self.samples_fitted, self.parameters_fitted, self.epsilon
        # Orthonormal features times lengths between 1 and 2: the flow ends in good time.
        basis = jnp.linalg.qr(data.independent_entries(feature_key, p, m))[0]
        phi = basis * jnp.linspace(1.0, 2.0, m)
        forms = jax.random.normal(form_key, (m, p, p)) / jnp.sqrt(1.0 * p)
        forms = (forms + forms.transpose(0, 2, 1)) / 2
        y, start = jax.random.normal(label_key, (m,)), data.on_sphere(start_key, p)

        def flow(epsilon):
            def loss(theta):
                outputs = phi.T @ theta + epsilon / 2 * jnp.einsum("p,apq,q->a", theta, forms, theta)
                return jnp.sum((outputs - y) ** 2) / 2

            return flows.gradient_flow(loss, start, jnp.stack([self.time, jnp.asarray(END)]), stiff=False)

        stated = quadratic_model.traced_perturbation(phi, forms, y, start)
        paths = jax.vmap(flow)(epsilon * STRENGTHS)
        middle = paths[0, 0]
        all_moved = (paths[:, 1] - stated.linear) / (epsilon * STRENGTHS)[:, None]
        moved = all_moved[0]
        along = basis @ (basis.T @ moved)
        test = jax.random.normal(test_key, (p, p))
        test = (test + test.T) / 2
        # ∇_θ of the model at an input with the quadratic form `test`, now and at the start
        seen = test @ middle - test @ start
        change = quadratic_model.feature_change(phi, test, y, start, self.time)
        return {
            "parallel": along @ stated.parallel / (stated.parallel @ stated.parallel),
            "perpendicular": (moved - along) @ stated.perpendicular / (stated.perpendicular @ stated.perpendicular),
            "effective_features": seen @ change / (change @ change),
            "remainder": jnp.linalg.norm(all_moved - stated.correction, axis=1) / jnp.linalg.norm(stated.correction),
        }
