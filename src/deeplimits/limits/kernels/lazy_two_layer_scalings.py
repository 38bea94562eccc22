r"""Singular values of a wide two-layer network's Jacobian: the numbers that decide whether training is lazy."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.limit import Limit, Run, activation_choice, real, rounded, whole
from deeplimits.models.activations import activation
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.kernels import lazy_bounds


class LazyTwoLayerScalings(Limit):
    r"""The extreme singular values of a wide two-layer network's Jacobian.

    Setting     f = (α/√m) Σ_j ±σ(⟨w_j, x⟩), w_j uniform on the unit sphere, N points x_i ~ N(0, I_d), inner weights
                trained; J₀ the Jacobian at the start
    Limit       d → ∞ with N/d → c, m/d fixed
    Result      σ_min²/(α²d) → E σ'² − μ₁² + μ₁²(1 − √c)², σ_max²/(α²d) → E σ'² − μ₁² + μ₁²(1 + √c)², μ₁ = E σ'(g);
                for c > 1, 0 in place of (1 − √c)²; σ that are not odd may add an outlier (`theory.kernels.lazy_bounds`)
                output at the start: Var f(x)/α² = Var σ(⟨w, x⟩), whatever m
                hence lazy training for N max(N, d) ≪ md, with ‖θ − θ̄‖ = O(N(N + d)^{3/2}/(√m d²))
    Validity    σ smooth and odd; c away from 1; size counts the dimension d
    Finite size extreme eigenvalues O(d^(−2/3))
    Computed by kernels.two_layer_singular_values, kernels.lazy_scaling; orders in α, N, d and m kernels.lazy_orders
    References  bartlett2021; bai2010
    """

    activation: str = activation_choice("tanh", lambda a: a.odd and a.smooth and a.bounded, doc="activation σ, odd")
    points_per_dimension: Array = real(0.25, 0.02, 0.8, log=True, symbol="c", doc="points per dimension, N/d")

    usual = Run(sizes=(64, 128, 256), samples=500)
    showcase = Showcase(
        ranges={"points_per_dimension": (0.02, 0.8)},
        see="The extreme singular values of the Jacobian move apart as points become as many as dimensions.",
    )

    # Neurons per dimension; more of them change nothing in the limit.
    neurons = 1

    def theory(self):
        found = lazy_bounds.two_layer_singular_values(activation(self.activation), self.points_per_dimension)
        return {
            "least": Value(
                found.least,
                label="least squared singular value, over α²d",
                symbol=r"\sigma_{\min}^2/\alpha^2d",
                rate=2 / 3,
            ),
            "largest": Value(
                found.largest,
                label="largest squared singular value, over α²d",
                symbol=r"\sigma_{\max}^2/\alpha^2d",
                rate=2 / 3,
            ),
        }

    def at_size(self, size):
        d = whole(size, "d", self, least=4)
        n = whole(d * float(self.points_per_dimension), "N", self, least=2)
        return {"dimension": d, "points": n}, rounded(self, points_per_dimension=n / d)

    def simulate(self, key, *, dimension: int, points: int):
        width = self.neurons * dimension
        sigma = activation(self.activation)
        x, w = jnp.split(jax.random.normal(key, (points + width, dimension)), [points])
        w = w / jnp.linalg.norm(w, axis=1, keepdims=True)
        # ∂f(x_i)/∂w_j = ±σ'(⟨w_j, x_i⟩)x_i/√m, so J Jᵀ is a product entry by entry; the signs drop out.
        slopes = sigma.derivative(x @ w.T) / jnp.sqrt(1.0 * width)
        eigenvalues = jnp.linalg.eigvalsh((slopes @ slopes.T) * (x @ x.T)) / dimension
        return {"least": eigenvalues[0], "largest": eigenvalues[-1]}
