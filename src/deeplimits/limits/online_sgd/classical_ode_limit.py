r"""SGD in fixed dimension with a small step."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.limit import Limit, Run, real, whole
from deeplimits.limits.online_sgd._shared import even_times
from deeplimits.predictions import Curve
from deeplimits.showcase import Showcase
from deeplimits.theory.online_sgd import classical

POINTS = 5


class ClassicalOdeLimit(Limit):
    r"""With a small step and a fixed dimension SGD follows gradient flow, with Gaussian fluctuations.

    Setting     X_l = X_{l−1} − δ∇L(X_{l−1}, Y_l), L = a(x − Y)²/2, Y ~ N(0, s²), t = δl
    Limit       δ → 0, dimension fixed
    Result      X → x̄, dx̄/dt = −∇Φ(x̄), here x̄ = x₀e^(−at)
                δ^(−1/2)(X − x̄) → ζ, dζ = −∇²Φ ζ dt + V^(1/2) dB, here E ζ² = a s²(1 − e^(−2at))/2
                P(sup|X − x̄| > ε) = exp(−(I(ε) + o(1))/δ), here I = ε²/(1 − e^(−2T)) for a = s = 1
    Validity    aT ≤ 3: after three relaxation times 1/a the start is forgotten, and the way gone no longer shows the
                drift; size counts the steps T/δ up to the horizon
    Finite size gap O(δ): E X = x₀(1 − aδ)^(t/δ) and Var X/δ = a s²(1 − (1 − aδ)^(2t/δ))/(2 − aδ) at every δ. The path
                is measured by the way gone, X − x₀: relative to it the corrections go like powers of ½aδ from the
                first step on, relative to X they do not. The fluctuation is measured by two runs, E(X − X')²/(2δ),
                because the squared gap of the mean, x₀²a⁴t²δe^(−2at)/4, hides it where x₀ is large beside s
    Computed by online_sgd.gradient_flow_with_fluctuations; I for any loss and data by
                online_sgd.deviations.tube_exit, online_sgd.deviations.deviation_to,
                online_sgd.deviations.hamiltonian_of_data, here online_sgd.deviations.deviation_rate
    References  kushner2003; freidlin2012; benarous2021
    """

    start: Array = real(1.0, -10.0, 10.0, symbol="x_0", doc="start")
    curvature: Array = real(1.0, 0.01, 10.0, log=True, symbol="a", doc="curvature of the loss")
    noise: Array = real(1.0, 0.01, 10.0, log=True, symbol="s", doc="standard deviation of the data")
    horizon: Array = real(
        1.0, 0.05, 3.0, log=True, symbol="aT", doc="time T up to which SGD is followed, in relaxation times 1/a"
    )

    usual = Run(sizes=(20, 40, 80), samples=60_000, batch=3000)
    showcase = Showcase(
        parameters={"horizon": 3.0},
        first="path",
        see="Rescaled SGD follows the flow, and its fluctuations grow to their stationary variance.",
    )

    def theory(self):
        times = even_times(self.horizon / self.curvature, POINTS)
        path, covariance = classical.gradient_flow_with_fluctuations(
            lambda x: self.curvature * x,
            lambda x: (self.curvature * self.noise) ** 2 * jnp.eye(1),
            self.start[None],
            times,
        )
        shared = {"axis": "time", "axis_symbol": "t", "rate": 1.0}
        return {
            "path": Curve(times, path[:, 0] - self.start, label="mean way gone", symbol=r"\bar x-x_0", **shared),
            "fluctuation": Curve(times, covariance[:, 0, 0], label="scaled variance", symbol=r"E\,\zeta^2", **shared),
        }

    def at_size(self, size):
        every = whole(size / POINTS, "steps between records", self)
        return {"every": every}, self

    def simulate(self, key, *, every: int):
        steps = POINTS * every
        delta = self.horizon / self.curvature / steps
        data = self.noise * jax.random.normal(key, (steps, 2))

        def advance(x, y):
            x = x - delta * jax.grad(lambda x: jnp.sum(self.curvature * (x - y) ** 2 / 2))(x)
            return x, x

        _, path = jax.lax.scan(advance, jnp.broadcast_to(self.start, (2,)), data)
        path = path[every - 1 :: every]
        return {
            "path": path.mean(axis=1) - self.start,
            "fluctuation": (path[:, 0] - path[:, 1]) ** 2 / (2 * delta),
        }
