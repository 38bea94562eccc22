r"""Training with a kernel, in closed form."""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import trainers
from deeplimits.limit import Limit, Run, activation_choice, integer, real, whole
from deeplimits.models.activations import activation
from deeplimits.numerics import flows
from deeplimits.predictions import Identity
from deeplimits.predictions.picture import Axis, Line, Picture, Points
from deeplimits.showcase import Showcase
from deeplimits.theory.gaussian import closed_forms, dual_activations
from deeplimits.theory.kernels import training

_FLOW = "rounding errors of 2000 steps of four stages, 2e-16 each; the method's own error is 0.2/2000⁴"


class KernelGradientFlow(Limit):
    r"""Training a linear model is kernel regression at every time.

    Setting     f = m^(−1/2) Σ_i θ_i φ_i(x), K = (1/m)Σφ_iφ_i, loss (1/2N)Σ(y − f)², N standard normal points in
                R³ with standard normal targets
    Limit       none: exact for models linear in their parameters; networks of width n follow within O(1/n)
    Result      ḟ_t(x) = (1/N) Σ_l K(x, x_l)(y_l − f_t(x_l)); f_t(X) = y + e^{−Kt/N}(f_0 − y) (flow, with new points);
                steps of η: (I − ηK/N)^k in place of e^{−Kt/N} (descent)
                θ_t = θ_0 + V diag((1 − e^{−s²t/N})/s)Uᵀ(y − f_0), J = U s Vᵀ (linearization)
    Validity    t ≥ 0, 0 < η < 2N/λ_max; size counts the features m
    Finite size exact at every m
    Computed by kernels.gradient_flow (flow), kernels.gradient_descent (descent)
    References  jacot2018; lee2019; bartlett2021 Sec 5
    """

    points: int = integer(4, 1, 50, symbol="N", doc="training points")
    activation: str = activation_choice(
        "tanh", lambda a: a.odd and a.smooth and a.bounded, doc="activation σ of the features"
    )
    time: Array = real(5.0, 0.01, 100.0, log=True, symbol="t", doc="training time, in units of N/λ_max")
    step: Array = real(0.5, 0.01, 1.9, symbol=r"\eta\lambda_{\max}/N", doc="step size, in units of N/λ_max")
    steps: int = integer(20, 1, 1000, log=True, symbol="k", doc="steps of gradient descent")

    usual = Run(sizes=(32, 128), samples=40)
    showcase = Showcase(
        see="Training is kernel regression stopped at some time, to rounding: slow functions are learned first, fast "
        "ones when training goes on a hundred times as long.",
    )

    def charts(self):
        # Points on half a circle of radius √3, and the kernel of infinitely many features, at every angle between two;
        # where it has no closed form, as for tanh, that of the error function, which is much like it.
        sigma = self.activation if closed_forms.has_dual(self.activation) else "erf"
        line, seen = jnp.linspace(0.0, jnp.pi, 92), jnp.arange(6, 92, 13)
        places = line[seen]
        labels = jnp.cos(places) + 0.7 * jnp.cos(3 * places)
        kernel = dual_activations.dual(sigma, 3.0, 3.0, 3.0 * jnp.cos(line))
        cross, matrix = (kernel[jnp.abs(rows[:, None] - seen)] for rows in (jnp.arange(92), seen))
        unit = len(places) / jnp.linalg.norm(matrix, 2)
        lines = [
            Line(line, training.gradient_flow(matrix, labels, time * unit, cross=cross).test, series=series,
                 label=f"t = {time:g} N/λ_{{max}}")
            for series, time in enumerate((1.0, 10.0, 30.0, 1000.0))
        ]  # fmt: skip
        data = Points(places, labels, label="labels")
        return {"learned": Picture(Axis("angle of the input", r"\theta"), Axis("output", "f_t"), (*lines, data))}

    # Steps of the Runge-Kutta method that integrates the flow.
    fine = 2000

    def at_size(self, size):
        return {"features": whole(size, "m", self, least=max(2, self.points))}, self

    def draw(self, key, *, features: int):
        n = self.points
        counts = [3 * (n + 2), n, 3 * features]
        noise = jax.random.normal(key, (sum(counts) + features,))
        x, y, w, theta = jnp.split(noise, list(itertools.accumulate(counts)))
        neurons = activation(self.activation).value(x.reshape(-1, 3) @ w.reshape(3, features))
        # φ_i(x)/√m at the training points and at two new ones
        seen, new = jnp.split(neurons / jnp.sqrt(1.0 * features), [n])
        unit = n / jnp.linalg.norm(seen, 2) ** 2
        return {"seen": seen, "new": new, "y": y, "start": theta, "time": self.time * unit, "step": self.step * unit}

    def stated(self, system):
        seen, new, y, theta = system["seen"], system["new"], system["y"], system["start"]
        kernel, before = seen @ seen.T, seen @ theta
        given = {"start": before, "cross": new @ seen.T, "test_start": new @ theta}
        flow = training.gradient_flow(kernel, y, system["time"], **given)
        descent = training.gradient_descent(kernel, y, system["step"], self.steps, **given)
        # θ_t = θ_0 + V diag((1 − e^{−s²t/N})/s)Uᵀ(y − f_0)
        u, s, v = jnp.linalg.svd(seen, full_matrices=False)
        gain = -jnp.expm1(-(s**2) * system["time"] / self.points) / s
        return {
            "flow": Identity(
                _outputs(flow),
                label="outputs after gradient flow",
                symbol="f_t",
                tolerance=2e-12,
                reason=_FLOW,
            ),
            "descent": Identity(
                _outputs(descent),
                label="outputs after gradient descent",
                symbol="f_k",
                tolerance=5e-12,
                reason="rounding errors of k steps and of an eigendecomposition, k at most 1000",
            ),
            "linearization": Identity(
                theta + v.T @ (gain * (u.T @ (y - before))),
                label="parameters after gradient flow",
                symbol=r"\theta_t",
                tolerance=5e-13,
                reason=_FLOW,
            ),
        }

    def measured(self, system):
        seen, y = system["seen"], system["y"]

        def loss(theta):
            return jnp.sum((y - seen @ theta) ** 2) / (2 * self.points)

        # A mode that decays like e^{−s} gets the relative error s⁵/120k⁴ in k steps: less than 0.2/k⁴ of its start,
        # however late the time.
        gradient, end = jax.grad(loss), system["time"][None]
        flowed = flows.fixed_steps(lambda t, theta: -gradient(theta), system["start"], end, self.fine)[0]
        descended = trainers.gradient_descent(loss, system["start"], system["step"], (self.steps,))[0]
        outputs = jnp.concatenate([seen, system["new"]])
        return {"flow": outputs @ flowed, "descent": outputs @ descended, "linearization": flowed}


def _outputs(found: Any) -> Array:
    """On the points that were seen, and on new ones."""
    return jnp.concatenate([found.train, found.test])
