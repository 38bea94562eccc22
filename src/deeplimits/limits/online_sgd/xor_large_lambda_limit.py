r"""The XOR mixture without noise."""

import math

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import reduced_chains
from deeplimits.errors import OutsideValidity
from deeplimits.limit import Limit, Run, real, rounded, whole
from deeplimits.numerics import draws
from deeplimits.numerics.arguments import written
from deeplimits.predictions import Curve, Probability
from deeplimits.predictions.picture import Axis, Line, Picture
from deeplimits.showcase import Showcase
from deeplimits.tails import binomial_tail
from deeplimits.theory.online_sgd import xor, xor_sliding

# Four neurons, one of each type to be; the first two also overlap with ν, against the flow, and slide to 0.
OUTPUT, ALONG_MU, ALONG_NU = (1.0, 0.5, -0.8, -0.6), (0.3, -0.2, 0.0, 0.0), (0.01, -0.005, 0.4, -0.1)
CERTAIN = 1e-9
# σ(v·g) at ν and −ν while the first neurons slide, from below: at the start it is 0.42 and 0.49, and falls later.
LEAST_PULL, LEAST_OUTPUT = 0.3, 0.8


def _start() -> xor.XorState:
    return xor.XorState(jnp.asarray(OUTPUT), jnp.asarray(ALONG_MU), jnp.asarray(ALONG_NU), jnp.zeros((4, 4)))


def _not_yet(overlap: float, output: float, per_unit: int, steps: int) -> float:
    """The probability that an overlap against the flow is not within one step of 0 after so many steps."""
    needed = math.ceil((overlap * per_unit - 1) / (LEAST_PULL * LEAST_OUTPUT * output))
    return 0.0 if needed <= 0 else binomial_tail(steps - needed + 1, steps, 0.75)


class XorLargeLambdaLimit(Limit):
    r"""Without noise the XOR network follows a discontinuous ODE, and overlaps against the flow slide to zero.

    Setting     X in {μ, −μ} (y = 1) or {ν, −ν} (y = 0), network v·g(WX), logistic loss plus (α/2)(|v|² + |W|²), step δ;
                m^μ = Wμ, m^ν = Wν; the limit λ → ∞ of the XOR mixture
    Limit       δ → 0
    Result      dv_i/dt = ¼[g(m^μ_i)σ(−v·g(m^μ)) + g(−m^μ_i)σ(−v·g(−m^μ))
                          − g(m^ν_i)σ(v·g(m^ν)) − g(−m^ν_i)σ(v·g(−m^ν))] − αv_i
                dm^μ_i/dt = (v_i/4)[1{m^μ_i>0}σ(−v·g(m^μ)) − 1{m^μ_i<0}σ(−v·g(−m^μ))] − αm^μ_i,
                and likewise for ν with −v_i
                for v_i > 0, m^μ = 0 repels and m^ν = 0 attracts in finite time and is never left;
                for v_i < 0 the reverse
                rest points for α < 1/8: types ±μ, ±ν and 0; the neurons of a type have Σv² = S = log((1−4α)/(4α))
    Validity    0 < α < 1/8 for rest points other than 0; the horizon leaves an overlap against the flow the steps it
                needs to reach 0 (below); size counts the steps 1/δ per unit of time
    Finite size gap O(δ); a sliding overlap chatters within one step of 0. Here two overlaps, 0.01 and −0.005, are
                against the flow. One moves by δ|v|σ when its own cluster is drawn, with probability 1/4 a step, and
                nothing else moves it but the ridge: until it is below δ it takes a fixed number of such steps, and
                the probability that a binomial number is smaller must be below 10⁻⁹. For δ > 0.01 it is zero
    Computed by online_sgd.noiseless_ballistic, online_sgd.sliding_times, online_sgd.xor_rest_point,
                online_sgd.classify_xor_rest
    References  benarous2022
    """

    ridge: Array = real(0.05, 0.001, 0.124, log=True, symbol=r"\alpha", doc="ridge parameter α")
    horizon: Array = real(2.0, 0.1, 50.0, log=True, symbol="t", doc="time up to which SGD is followed")

    usual = Run(sizes=(20, 40, 80), samples=10_000, batch=1000)
    showcase = Showcase(
        parameters={"horizon": 10.0},
        first="overlaps",
        see="Overlaps against the flow slide to zero within a moment and stay there, while the others grow.",
    )

    def charts(self):
        times = jnp.geomspace(1e-3, self.horizon, 120)
        path = xor_sliding.noiseless_ballistic(_start(), times, self.ridge)
        lines = (
            Line(times, path.along_mu[:, 0], label="neuron 1 with μ", series=0),
            Line(times, path.along_nu[:, 0], label="neuron 1 with ν, against the flow", series=1),
            Line(times, path.along_nu[:, 2], label="neuron 3 with ν", series=2),
            Line(times, path.along_nu[:, 1], label="neuron 2 with ν, against the flow", series=3),
        )
        return {"overlaps": Picture(Axis("time", "t", log=True), Axis("overlap", "m"), lines)}

    def theory(self):
        start = _start()
        end = xor_sliding.noiseless_ballistic(start, self.horizon[None], self.ridge)
        neurons = jnp.arange(1.0, 5.0)
        shared = {"axis": "neuron", "rate": 1.0}
        return {
            "output": Curve(neurons, end.output[0], label="output weight", symbol="v", **shared),
            "along_mu": Curve(neurons[:2], end.along_mu[0, :2], label="overlap with μ", symbol=r"m^\mu", **shared),
            "along_nu": Curve(neurons[2:], end.along_nu[0, 2:], label="overlap with ν", symbol=r"m^\nu", **shared),
            "sliding": Probability(1.0, label="overlaps held at 0", symbol=r"P(|m^\nu|<\delta)"),
        }

    def at_size(self, size):
        n = whole(size, "1/δ", self, least=2)
        steps = whole(float(self.horizon) * n, "steps", self)
        late = sum(_not_yet(abs(m), v, n, steps) for m, v in zip(ALONG_NU[:2], OUTPUT[:2], strict=True))
        if late > CERTAIN:
            raise OutsideValidity(
                f"XorLargeLambdaLimit: with 1/δ = {n} steps per unit of time, horizon = {written(self.horizon)} is too "
                f"short for overlaps against the flow to reach 0: they do not with probability {late:.2g}; take a "
                f"longer horizon, or a size below {1 / max(map(abs, ALONG_NU[:2])):.0f}"
            )
        return {"per_unit": n, "steps": steps}, rounded(self, horizon=steps / n)

    def simulate(self, key, *, per_unit: int, steps: int):
        def step(sample, state):
            return reduced_chains.noiseless_xor_step(sample, state, self.ridge, 1 / per_unit)

        start = reduced_chains.XorStatistics(
            jnp.asarray(OUTPUT), jnp.asarray(ALONG_MU), jnp.asarray(ALONG_NU), jnp.zeros((4, 4))
        )
        found = reduced_chains.run(step, draws.draw(key, (steps,), 0, uniforms=1), start, [steps])
        mu, nu = found.along_mu[-1], found.along_nu[-1]
        return {
            "output": found.output[-1],
            "along_mu": mu[:2],
            "along_nu": nu[2:],
            # An SGD step moves an overlap by at most δ|v|/2 there, and |v| stays below 2.
            "sliding": jnp.all(jnp.abs(nu[:2]) < 1 / per_unit).astype(float),
        }
