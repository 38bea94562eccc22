r"""Two Gaussian classes learnt by gradient descent on least squares."""

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array

from deeplimits.ensembles import data, linear_training, mixtures
from deeplimits.limit import Limit, Run, axis, real
from deeplimits.limits.regression._shared import dense_times, proportional, time_curve
from deeplimits.showcase import Showcase
from deeplimits.theory.regression.mixture_dynamics import classification_dynamics

# Wrong training points rarer than this are too few to be counted in a few thousand small data sets.
RAREST = 1e-3


class GradientDescentDynamicsGmm(Limit):
    r"""Training and test error of a linear classifier of two Gaussian classes, over training time.

    Setting     n points x = yμ + z in R^p, y = ±1, z standard Gaussian, ‖μ‖² = ρ; gradient flow dw/dt = −∇L on
                L(w) = (1/2n)Σ(y_i − w'x_i)² + (λ/2)‖w‖² from w ~ N(0, σ²I/p)
    Limit       n, p → ∞ with p/n → γ
    Result      f(u) = e^{−tu}, φ(u) = (1 − f(u))/u, λ_s = 1 + γ + ρ + γ/ρ, m the Marchenko-Pastur law
                ω = √((x−λ₋)(λ₊−x))/(2π(λ_s−x)) dx + ((ρ²−γ)₊/ρ) δ(λ_s)
                new points: y w'x has mean E = ∫φ(x+λ) dω and variance V = (1+γ/ρ)∫φ²(x+λ) dω + σ²∫f²(x+λ) dm
                training points: mean E' = (1+γ/ρ)E, variance V' = (1+γ/ρ)∫xφ²(x+λ) dω + σ²∫x f²(x+λ) dm − E'²
                errors Q(E/√V), Q(E'/√V'): the test error falls, then rises again unless the ridge holds it
    Validity    finite times; at γ = 1 without ridge the weights grow like t^{1/4}; size counts the samples n
    Finite size gaps of order 1/n in the mean over data sets
    Computed by regression.classification_dynamics
    References  liao2018
    """

    gamma: Array = real(0.5, 0.02, 20.0, log=True, symbol=r"\gamma", doc="dimensions per sample, p/n")
    strength: Array = real(2.0, 0.01, 100.0, log=True, symbol=r"\rho", doc="squared norm of the class mean")
    start: Array = real(0.3, 0.0, 100.0, symbol=r"\sigma^2", doc="variance of the initial weights, times p")
    ridge: Array = real(0.0, 0.0, 100.0, symbol=r"\lambda", doc="ridge penalty")
    times: Array = axis((0.05, 0.2, 0.5, 1.5, 5.0, 20.0), 0.0, 1e4, log=True, symbol="t", doc="training times")

    usual = Run(sizes=(32, 64, 128), samples=800)
    showcase = Showcase(
        first="test_error", see="The test error falls, passes a minimum, and rises again as training goes on."
    )

    def theory(self):
        dense = dense_times(self.times)
        both = jnp.concatenate([self.times, dense])
        found = classification_dynamics(both, self.gamma, self.strength, start=self.start, ridge=self.ridge)

        def curve(y, label, symbol, resolution=1e-12):
            return time_curve(self.times, dense, y, label=label, symbol=symbol, resolution=resolution)

        labels = {
            "test_mean": ("mean on new points", r"\mu^\top w"),
            "test_variance": ("variance on new points", r"\|w\|^2"),
            "training_mean": ("mean on training points", r"E'"),
            "training_variance": ("variance on training points", r"V'"),
            "test_error": ("test error", r"Q(E/\sqrt{V})"),
            "training_error": ("training error", r"Q(E'/\sqrt{V'})", RAREST),
        }
        return {name: curve(getattr(found, name), *labels[name]) for name in labels}

    def at_size(self, size):
        return proportional(self, size, least=4, names=("samples", "dimension"))

    def simulate(self, key, *, samples: int, dimension: int):
        n, p = samples, dimension
        direction, signs, deviations, start = data.gaussian_arrays(key, (p,), (n,), (n, p), (p,))
        mean = mixtures.class_mean(direction, self.strength)
        x, y = mixtures.two_classes(signs, deviations, mean)
        # A start and its opposite are equally likely; in their mean what is odd in the start drops out.
        starts = jnp.sqrt(self.start / p) * jnp.stack([start, -start])
        train = jax.vmap(linear_training.ridge_flow, (None, None, None, 0, None))
        weights = train(x, y, self.ridge, starts, self.times)
        seen = y[None, None, :] * (weights @ x.T)
        along, size = weights @ mean, jnp.sum(weights**2, axis=-1)
        found = {
            "test_mean": along,
            "test_variance": size,
            "training_mean": jnp.mean(seen, axis=-1),
            "training_variance": jnp.var(seen, axis=-1),
            # Given w, y w'x of a new point is Gaussian with mean μ'w and variance ‖w‖².
            "test_error": norm.sf(along / jnp.sqrt(size)),
            "training_error": jnp.mean(jnp.where(seen < 0, 1.0, 0.0), axis=-1),
        }
        return {name: jnp.mean(values, axis=0) for name, values in found.items()}
