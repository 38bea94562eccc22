r"""Training with a kernel, in closed form."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import flows, random_features, trainers
from deeplimits.limit import Limit, Run, choice, integer, real, whole
from deeplimits.models.activations import activation
from deeplimits.predictions import Identity
from deeplimits.theory.kernels import regression


class KernelGradientFlow(Limit):
    r"""Training a linear model is kernel regression at every time.

    Setting     f = m^(−1/2) Σ_i θ_i φ_i(x), K = (1/m)Σφ_iφ_i, loss (1/2N)Σ(y − f)², N random points in R³, targets
    Limit       none: exact for models linear in their parameters; networks of width n follow within O(1/n)
    Result      ḟ_t(x) = (1/N) Σ_l K(x, x_l)(y_l − f_t(x_l)); f_t(X) = y + e^{−Kt/N}(f_0 − y) (flow, with new points);
                steps of η: (I − ηK/N)^k in place of e^{−Kt/N} (descent)
                θ_t = θ_0 + V diag((1 − e^{−s²t/N})/s)Uᵀ(y − f_0), J = U s Vᵀ (linearization)
    Validity    t ≥ 0, 0 < η < 2N/λ_max; size counts the features m
    Finite size exact at every m
    References  jacot2018; lee2019; bartlett2021 Sec 5
    """

    points: int = integer(4, 1, 50, symbol="N", doc="training points")
    activation: str = choice("tanh", ("tanh", "erf", "sin"), doc="activation σ of the features")
    time: Array = real(5.0, 0.01, 100.0, log=True, symbol="t", doc="training time, in units of N/λ_max")
    step: Array = real(0.5, 0.01, 1.9, symbol=r"\eta\lambda_{\max}/N", doc="step size, in units of N/λ_max")
    steps: int = integer(20, 1, 1000, log=True, symbol="k", doc="steps of gradient descent")

    usual = Run(sizes=(32, 128), samples=20)

    def theory(self):
        return {
            "flow": Identity(label="gradient flow of a linear model", symbol="f_t", constant=1e7),
            "descent": Identity(label="gradient descent on a linear model", symbol="f_k", constant=1e5),
            "linearization": Identity(label="parameters along the flow", symbol=r"\theta_t", constant=1e7),
        }

    def at_size(self, size):
        return {"features": whole(size, "m", self, least=max(2, self.points))}, self

    def simulate(self, key, *, features: int):
        x_key, y_key, feature_key, start_key = jax.random.split(key, 4)
        sigma = activation(self.activation)
        x = jax.random.normal(x_key, (self.points + 2, 3))
        y = jax.random.normal(y_key, (self.points,))
        n = self.points
        jacobian = random_features.neurons(feature_key, x, features, sigma) / jnp.sqrt(1.0 * features)
        theta = jax.random.normal(start_key, (features,))
        seen, new = jacobian[:n], jacobian[n:]
        kernel = seen @ seen.T
        largest = jnp.linalg.norm(kernel, 2)
        time, step = self.time * n / largest, self.step * n / largest

        def loss(theta):
            return jnp.sum((y - seen @ theta) ** 2) / (2 * n)

        start, before = seen @ theta, new @ theta
        given = {"start": start, "cross": new @ seen.T, "test_start": before}
        flowed = flows.gradient_flow(loss, theta, jnp.stack([time]), stiff=False)[-1]
        stated = regression.gradient_flow(kernel, y, time, **given)
        descended = trainers.gradient_descent(loss, theta, step, self.steps)[-1]
        by_steps = regression.gradient_descent(kernel, y, step, self.steps, **given)

        def both(found, stated):
            outputs = jnp.concatenate([seen @ found, new @ found])
            return jnp.stack([outputs, jnp.concatenate([stated.train, stated.test])])

        u, s, v = jnp.linalg.svd(seen, full_matrices=False)
        gain = -jnp.expm1(-(s**2) * time / n) / s
        return {
            "flow": both(flowed, stated),
            "descent": both(descended, by_steps),
            "linearization": jnp.stack([flowed, theta + v.T @ (gain * (u.T @ (y - start)))]),
        }
