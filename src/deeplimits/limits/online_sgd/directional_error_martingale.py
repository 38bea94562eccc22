r"""The noise of SGD along the signal."""

import math

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import reduced_chains
from deeplimits.errors import OutsideValidity
from deeplimits.limit import Limit, Run, real, replace, whole
from deeplimits.numerics.arguments import written
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.online_sgd import landscapes


class DirectionalErrorMartingale(Limit):
    r"""The error of the gradient along the signal adds up to a martingale of known variance.

    Setting     online PCA: Y ~ N(0, I + λθθ'), L = −⟨x, Y⟩², spherical online SGD with step δ/N from a uniform point;
                M_t = (δ/N) Σ_{j≤t} ⟨∇H_j(x_{j−1}), θ⟩, H = L − EL, t = αN steps
    Limit       N → ∞ with α, δ fixed
    Result      N E M_t²/(δ²α) → σ² = E⟨∇H, θ⟩² at the equator, 4(1 + λ) for PCA
                m_t = m₀ − (δ/N) Σ (1 − m²)φ'(m) − M_t − (δ²/2N²) Σ|∇L|²m + …: noise is negligible against
                m₀ ~ N^(−1/2) iff δ²α ≪ 1
    Validity    α, δ fixed, so that m stays of order N^(−1/2): N E m² = U = e^(2κα)(1 + δ²σ²/(2κ)) − δ²σ²/(2κ) at the
                end, κ = 2δ(λ − δ), and the gradient's second moment is 4(1 + λ) + 4m²(2λ² − λ − 1) + O(m⁴), so that
                N ≥ 20U and U|2λ² − λ − 1|/(N(1 + λ)) ≤ 0.3. Size counts the dimension N
    Finite size gap O(1/N)
    Computed by online_sgd.online_pca; Doob's bound for any landscape by online_sgd.recovery.martingale_bound
    References  benarous2021
    """

    signal: Array = real(1.0, 0.01, 10.0, log=True, symbol=r"\lambda", doc="strength λ of the signal")
    step: Array = real(0.3, 0.001, 2.0, log=True, symbol=r"\delta", doc="step size δ")
    samples_per_dimension: Array = real(0.25, 0.05, 5.0, log=True, symbol=r"\alpha", doc="samples per dimension α")

    usual = Run(sizes=(160, 320, 640), samples=75_000, batch=3750)
    showcase = Showcase(
        ranges={"signal": (0.05, 5.0)},
        see="The variance of the martingale grows in proportion to 1 + λ, the noise at the equator.",
    )

    def theory(self):
        variance = landscapes.online_pca(self.signal).directional_variance(jnp.zeros(()))
        return {
            "variance": Value(variance, label="scaled variance of the martingale", symbol=r"\sigma^2", rate=1.0),
            "quadratic_variation": Value(variance, label="scaled quadratic variation", symbol=r"\sigma^2", rate=1.0),
        }

    def at_size(self, size):
        n = whole(size, "N", self, least=5)
        lam, delta, alpha = float(self.signal), float(self.step), float(self.samples_per_dimension)
        growth = 4 * delta * (lam - delta)
        reach = math.exp(growth * alpha)
        noise = 4 * delta**2 * (1 + lam) * (math.expm1(growth * alpha) / growth if growth else alpha)
        needed = (reach + noise) * max(20.0, abs(2 * lam**2 - lam - 1) / (0.3 * (1 + lam)))
        if n < needed:
            raise OutsideValidity(
                f"DirectionalErrorMartingale: at N = {n} the correlation leaves the equator before "
                f"samples_per_dimension = {written(alpha)}, with signal = {written(lam)} and step = "
                f"{written(delta)}; take sizes of at "
                f"least {needed:.3g}, or a smaller samples_per_dimension"
            )
        steps = whole(float(self.samples_per_dimension) * n, "steps", self)
        return {"dimension": n, "steps": steps}, replace(self, samples_per_dimension=steps / n)

    def simulate(self, key, *, dimension: int, steps: int):
        model = reduced_chains.online_pca(dimension, self.signal)
        first, samples = reduced_chains.first_and_rest(model.samples(key, (steps + 1,)))
        start = reduced_chains.uniform_start(first)

        def step(sample, state):
            m, total, squares = state
            # ⟨∇H, θ⟩: the population loss −1 − λm² has the spherical gradient −2λm(1 − m²) along the signal
            across = model.gradient(sample, m).across
            error = jnp.sqrt(1 - m**2) * across + 2 * self.signal * m * (1 - m**2)
            return model.step(sample, m, self.step), total + error, squares + error**2

        none = jnp.zeros(())
        _, total, squares = reduced_chains.run(step, samples, (start, none, none), [steps])
        return {"variance": total[-1] ** 2 / steps, "quadratic_variation": squares[-1] / steps}
