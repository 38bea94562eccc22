r"""Training with a kernel, in closed form; and how far a wide network is from it."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import flows, random_features, trainers
from deeplimits.ensembles.wide_networks import WideNetwork, squared_loss
from deeplimits.limit import Limit, choice, integer, real, whole
from deeplimits.measure import tangent_kernel
from deeplimits.models.activations import activation
from deeplimits.models.architectures import FullyConnected
from deeplimits.predictions import Exponent, Identity
from deeplimits.theory.kernels import regression


class KernelGradientFlow(Limit):
    r"""Training a linear model is kernel regression at every time; a wide network follows within O(1/n).

    Setting     f = m^(−1/2) Σ_i θ_i φ_i(x), K = (1/m)Σφ_iφ_i, loss (1/2N)Σ(y − f)², N random points in R³, random targets
    Limit       none for linear models; n → ∞ for a two-layer network of n neurons
    Result      ḟ_t(x) = (1/N) Σ_l K(x, x_l)(y_l − f_t(x_l)); f_t(X) = y + e^{−Kt/N}(f_0 − y) (flow, with new points);
                steps of η: (I − ηK/N)^k in place of e^{−Kt/N} (descent)
                θ_t = θ_0 + V diag((1 − e^{−s²t/N})/s)Uᵀ(y − f_0), J = U s Vᵀ (linearization)
                a network trained by gradient descent differs from the prediction with its own tangent kernel at the start
                by O(1/n) in its outputs (network)
    Validity    t ≥ 0, 0 < η < 2N/λ_max; size counts the features m and the neurons n
    Finite size exact for linear models
    References  jacot2018; lee2019; bartlett2021 Sec 5
    """

    points: int = integer(4, 1, 50, symbol="N", doc="training points")
    activation: str = choice("tanh", ("tanh", "erf", "sin"), doc="activation σ of features and network")
    time: Array = real(5.0, 0.01, 100.0, log=True, symbol="t", doc="training time, in units of N/λ_max")
    step: Array = real(0.5, 0.01, 1.9, symbol=r"\eta\lambda_{\max}/N", doc="step size, in units of N/λ_max")
    steps: int = integer(20, 1, 1000, log=True, symbol="k", doc="steps of gradient descent")

    sizes = (32, 64, 128)
    samples = 300
    batch = 1

    def theory(self):
        return {
            "flow": Identity(label="gradient flow of a linear model", symbol="f_t", constant=1e7),
            "descent": Identity(label="gradient descent on a linear model", symbol="f_k", constant=1e5),
            "linearization": Identity(label="parameters along the flow", symbol=r"\theta_t", constant=1e7),
            "network": Exponent(
                jnp.array(-1.0), label="distance of a trained network from its kernel", correction=jnp.array(1.0)
            ),
        }

    def at_size(self, size):
        return {"width": whole(size, "n", self, least=max(2, self.points))}, self

    def simulate(self, key, *, width: int):
        x_key, y_key, feature_key, start_key, net_key = jax.random.split(key, 5)
        sigma = activation(self.activation)
        x = jax.random.normal(x_key, (self.points + 2, 3))
        y = jax.random.normal(y_key, (self.points,))
        n = self.points
        jacobian = random_features.neurons(feature_key, x, width, sigma) / jnp.sqrt(1.0 * width)
        theta = jax.random.normal(start_key, (width,))
        return {
            **self._linear(jacobian[:n], jacobian[n:], y, theta),
            "network": self._network(net_key, x, y, width),
        }

    def _linear(self, seen, new, y, theta):
        n = self.points
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

    def _network(self, key, x, y, width):
        n = self.points
        network = WideNetwork(FullyConnected(1, self.activation), inputs=3, widths=width)
        parameters = network.init(key)
        flat = network.flat(parameters)
        kernel = tangent_kernel.empirical_ntk(network, parameters, x)
        step = self.step * n / jnp.linalg.norm(kernel[:n, :n], 2)
        loss = squared_loss(lambda vector: network.apply(flat.restore(vector), x[:n]), y[:, None])
        end = flat.restore(trainers.gradient_descent(loss, flat.start, step, self.steps)[-1])
        start = network.apply(parameters, x)[:, 0]
        stated = regression.gradient_descent(
            kernel[:n, :n], y, step, self.steps, start=start[:n], cross=kernel[n:, :n], test_start=start[n:]
        )
        gap = network.apply(end, x)[:, 0] - jnp.concatenate([stated.train, stated.test])
        return jnp.sqrt(jnp.mean(gap**2))
