r"""Least squares trained for a while."""

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import data, linear_training
from deeplimits.limit import Limit, Run, axis, integer, real
from deeplimits.limits.regression._shared import dense_times, proportional, time_curve
from deeplimits.predictions import Curve
from deeplimits.predictions.picture import Axis, Line, Picture, Rule
from deeplimits.showcase import Showcase
from deeplimits.theory.regression.gradient_flow import early_stopped_descent_risk, early_stopped_risk

# Draws of the label noise for each design, for the variance of the descent.
LABELLINGS = 8
BIAS, VARIANCE = "squared bias of the flow", "variance of the flow"


class EarlyStoppedGradientFlowRisk(Limit):
    r"""Risk of least squares trained by gradient flow or gradient descent, over training time.

    Setting     y = ⟨x, β⟩ + ε, isotropic x in R^p, ‖β‖² = r², Var ε = σ², n samples; gradient flow, or descent with
                step η, on (1/2n)‖y − Xw‖² from w = 0
    Limit       n, p → ∞ with p/n → γ
    Result      with m the Marchenko-Pastur law, its atom (1 − 1/γ)₊ at zero included
                flow: bias B(t) = r²∫e^{−2ts} dm, variance V(t) = σ²γ∫(1 − e^{−ts})²/s dm
                descent after k steps: (1 − ηs)^k in place of e^{−ts}
                the bias falls, the variance rises: stopping early acts like a ridge of 1/t
    Validity    finite times; η < 2/(1+√γ)²; size counts the samples n
    Finite size gaps of order 1/n
    Computed by regression.early_stopped_risk, regression.early_stopped_descent_risk, regression.flow_to_ridge_ratio;
                for any covariance regression.flow_risk
    References  ali2019; advani2020
    """

    gamma: Array = real(1.5, 0.02, 20.0, log=True, symbol=r"\gamma", doc="features per sample, p/n")
    signal: Array = real(1.0, 0.0, 100.0, symbol=r"r^2", doc="squared norm of the true coefficients")
    noise: Array = real(1.0, 0.0, 10.0, symbol=r"\sigma", doc="standard deviation of the label noise")
    step: Array = real(
        0.5, 0.01, 0.95, symbol=r"\eta/\eta_{\max}", doc="step size, in units of the largest stable one, 2/(1+√γ)²"
    )
    steps: int = integer(12, 1, 1000, log=True, symbol="k", doc="number of steps of the descent")
    times: Array = axis((0.2, 0.5, 1.0, 2.0, 5.0, 20.0), 0.0, 1e4, log=True, symbol="t", doc="times of the flow")

    usual = Run(sizes=(32, 64, 128), samples=300)
    showcase = Showcase(see="While training goes on the bias falls and the variance rises: the best time lies between.")

    def charts(self):
        times = dense_times(self.times)
        flow = early_stopped_risk(times, self.gamma, self.signal, self.noise**2)
        risk = flow.bias + flow.variance
        marks = (
            Line(times, flow.bias, label=BIAS, series=0),
            Line(times, flow.variance, label=VARIANCE, series=1),
            Line(times, risk, label="their sum", series=2),
            Rule(float(times[jnp.argmin(risk)]), upright=True, label="best time"),
        )
        return {"risk": Picture(Axis("training time", "t", log=True), Axis("excess risk"), marks)}

    def _step(self):
        return self.step * 2 / (1 + jnp.sqrt(self.gamma)) ** 2

    def theory(self):
        parameters = (self.gamma, self.signal, self.noise**2)
        dense = dense_times(self.times)
        flow = early_stopped_risk(jnp.concatenate([self.times, dense]), *parameters)
        counts = 1.0 + jnp.arange(self.steps, dtype=float)
        descent = early_stopped_descent_risk(self._step(), counts, *parameters)

        def over_time(y, label, symbol):
            return time_curve(self.times, dense, y, label=label, symbol=symbol)

        def over_steps(y, label, symbol):
            return Curve(counts, y, axis="steps", axis_symbol="k", label=label, symbol=symbol, rate=1.0)

        return {
            "bias": over_time(flow.bias, BIAS, "B(t)"),
            "variance": over_time(flow.variance, VARIANCE, "V(t)"),
            "descent_bias": over_steps(descent.bias, "squared bias of the descent", "B_k"),
            "descent_variance": over_steps(descent.variance, "variance of the descent", "V_k"),
        }

    def at_size(self, size):
        return proportional(self, size, least=2)

    def simulate(self, key, *, samples: int, features: int):
        n, p = samples, features
        x, direction, noise = data.gaussian_arrays(key, (n, p), (p,), (n, LABELLINGS))
        beta = jnp.sqrt(self.signal) * direction / jnp.linalg.norm(direction)
        flow = linear_training.flow_risk(x, beta, self.noise**2, self.times)
        descent = linear_training.descent_risk(x, beta, self.noise * noise, self._step(), self.steps)
        return {
            "bias": flow.bias,
            "variance": flow.variance,
            "descent_bias": descent.bias,
            "descent_variance": descent.variance,
        }
