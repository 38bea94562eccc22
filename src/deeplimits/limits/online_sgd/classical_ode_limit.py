r"""SGD in fixed dimension with a small step."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.errors import OutsideValidity
from deeplimits.limit import Limit, Run, real, whole
from deeplimits.predictions import Curve
from deeplimits.theory.online_sgd import classical

POINTS = 5


class ClassicalOdeLimit(Limit):
    r"""With a small step and a fixed dimension SGD follows gradient flow, with Gaussian fluctuations.

    Setting     X_l = X_{l−1} − δ∇L(X_{l−1}, Y_l), L = a(x − Y)²/2, Y ~ N(0, s²), t = δl
    Limit       δ → 0, dimension fixed
    Result      X → x̄, dx̄/dt = −∇Φ(x̄), here x̄ = x₀e^(−at)
                δ^(−1/2)(X − x̄) → ζ, dζ = −∇²Φ ζ dt + V^(1/2) dB, here E ζ² = a s²(1 − e^(−2at))/2
                P(sup|X − x̄| > ε) = exp(−(I(ε) + o(1))/δ), here I = ε²/(1 − e^(−2T)) for a = s = 1
    Validity    δ < 2/a, beyond which SGD diverges; size counts the steps 1/δ per unit of time
    Finite size gap O(δ)
    References  kushner2003; freidlin2012; benarous2021
    """

    start: Array = real(1.0, -10.0, 10.0, symbol="x_0", doc="start")
    curvature: Array = real(1.0, 0.01, 10.0, log=True, symbol="a", doc="curvature of the loss")
    noise: Array = real(1.0, 0.01, 10.0, log=True, symbol="s", doc="standard deviation of the data")
    horizon: Array = real(1.0, 0.05, 10.0, log=True, symbol="T", doc="time up to which SGD is followed")

    usual = Run(sizes=(10, 20, 40), samples=120_000, batch=3000)

    def _times(self):
        return self.horizon * jnp.arange(1.0, POINTS + 1) / POINTS

    def theory(self):
        times = self._times()
        path, covariance = classical.gradient_flow_with_fluctuations(
            lambda x: self.curvature * x,
            lambda x: (self.curvature * self.noise) ** 2 * jnp.eye(1),
            self.start[None],
            times,
        )
        shared = {"axis": "time", "axis_symbol": "t", "rate": 1.0}
        return {
            "path": Curve(times, path[:, 0], label="mean iterate", symbol=r"\bar x", **shared),
            "fluctuation": Curve(times, covariance[:, 0, 0], label="scaled variance", symbol=r"E\,\zeta^2", **shared),
        }

    def at_size(self, size):
        n = whole(size, "1/δ", self)
        if float(self.curvature) >= 2 * n:
            raise OutsideValidity(
                f"ClassicalOdeLimit: at 1/δ = {n} SGD diverges; with curvature = {float(self.curvature):g} the "
                f"critical step is {2 / float(self.curvature):g}, so take a size above {float(self.curvature) / 2:g}"
            )
        every = whole(float(self.horizon) * n / POINTS, "steps between records", self)
        return {"per_unit": n, "every": every}, self.replace(horizon=every * POINTS / n)

    def simulate(self, key, *, per_unit: int, every: int):
        delta = 1 / per_unit
        data = self.noise * jax.random.normal(key, (POINTS * every,))

        def advance(x, y):
            x = x - delta * jax.grad(lambda x: self.curvature * (x - y) ** 2 / 2)(x)
            return x, x

        _, path = jax.lax.scan(advance, self.start, data)
        path = path[every - 1 :: every]
        flow = self.start * jnp.exp(-self.curvature * self._times())
        return {"path": path, "fluctuation": (path - flow) ** 2 / delta}
