r"""How long SGD searches, and how long it descends."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import reduced_chains
from deeplimits.limit import Limit, Run, real, replace, too_small, whole
from deeplimits.numerics import draws
from deeplimits.numerics.arguments import written
from deeplimits.predictions import Law, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.online_sgd import exit_times, landscapes, spherical_ode

_plateau = jax.jit(spherical_ode.pca_plateau)  # for checks on the host, as one program
_correction = jax.jit(exit_times.pca_search_correction)


class ExitTimesSearchVsDescent(Limit):
    r"""The search takes ½N log N/κ steps and a random multiple of N, the descent a fixed multiple of N.

    Setting     online PCA: Y ~ N(0, I + λθθ'), L = −⟨x, Y⟩², spherical online SGD with step δ/N from a uniform point;
                τ_η is the first step with |⟨x, θ⟩| > η
    Limit       N → ∞ with δ fixed
    Result      κτ_η/N − ½ log N → log(ηm_*) − ½ log(1 − η²/m_*²) − log|G| in law, G ~ N(0, 1), κ = 2δ(λ − δ),
                m_*² = (λ − δ)/(λ(1 + δ)); in general log(ηm_*) … becomes C(η) − ½ log(1 + δ²σ²/(2κ))
                E(τ_η' − τ_η)/N → ∫_η^η' dm/v(m), v the velocity of the critical-step ODE
    Validity    δ < λ and η < η' < m_*; √N ηm_* ≥ 3.2, so that 0.1 % of the starts or fewer are beyond η and the noise
                of the start, of relative order 1/(Nη²m_*²), is below 10 %; (log N/(2κN))(|k| + ½s²) ≤ 0.3, so that the
                correction below is one. Size counts the dimension N
    Finite size the law F of the search has a gap O(log N/N): on the way from m ~ N^(−1/2) to m ~ 1, which takes
                ½ log N/κ, log m has the drift κ + k/N and the variance s²/N, so that
                F_N = F + (log N/(2κN))(kF' + ½s²F'') + O(1/N), k = −2δ²(3λ² − 2) + 12δ⁴,
                s² = 8δ²λ² − 16δ³λ + 8δ⁴ + 4δ²(1+λ)(3/m_*² − 1)
                stated is F_N for κτ_η/N, with a gap O(1/N); gap O(1/N) of the descent
    Computed by online_sgd.pca_search_law, online_sgd.search_offset, online_sgd.passage_time, online_sgd.online_pca,
                online_sgd.least_dimension; for other landscapes online_sgd.search_law, online_sgd.descent_time,
                online_sgd.recovery.small_step_search
    References  benarous2021
    """

    signal: Array = real(3.0, 0.1, 20.0, log=True, symbol=r"\lambda", doc="strength λ of the signal")
    step: Array = real(0.3, 0.01, 10.0, log=True, symbol=r"\delta", doc="step size δ")
    threshold: Array = real(0.6, 0.01, 0.95, symbol=r"\eta", doc="correlation η at which the search ends")
    end: Array = real(0.75, 0.02, 0.98, symbol=r"\eta'", doc="correlation η' at which the descent ends")
    dimension: Array = real(320.0, 10.0, 1e9, log=True, symbol="N", doc="dimension of the stated search law")

    usual = Run(sizes=(160, 320, 640), samples=4000, batch=1000)
    showcase = Showcase(
        over="dimension",
        ranges={
            "dimension": (40.0, 100000.0),
            "signal": (1.2, 10.0),
            "step": (0.05, 1.0),
            "threshold": (0.2, 0.7),
            "end": (0.62, 0.84),
        },
        see="The law of the search time, wide and moving with ½ log N; the descent takes the same multiple "
        "of N whatever N is.",
    )

    def validity(self):
        lam, delta = float(self.signal), float(self.step)
        if delta >= lam:
            return (
                f"step = {written(delta)} is not below the critical step λ = {written(lam)}, so that "
                "nothing is found; take a "
                "smaller one",
            )
        plateau = float(_plateau(lam, delta))
        if not float(self.threshold) < float(self.end) < 0.98 * plateau:
            return (
                f"threshold = {written(self.threshold)}, end = {written(self.end)}: they must be increasing and "
                f"below the plateau {plateau:.4g} (by 2 % or more), so lower them or take a smaller step",
            )
        return ()

    def theory(self):
        landscape = landscapes.online_pca(self.signal)
        offset = exit_times.search_offset(landscape, self.threshold, self.step)
        x = offset + jnp.linspace(-2.5, 10.0, 401)
        law = exit_times.pca_search_law(self.signal, self.threshold, self.step, self.dimension, x)
        return {
            "search": Law(
                x + jnp.log(self.dimension) / 2,
                *law,
                label="scaled search time",
                symbol=r"\kappa\tau_\eta/N",
                rate=1.0,
            ),
            "descent": Value(
                exit_times.passage_time(landscape, self.threshold, self.end, self.step),
                label="descent time", symbol=r"E(\tau_{\eta'}-\tau_\eta)/N", rate=1.0,
            ),
        }  # fmt: skip

    def validity_at(self, size):
        lam, delta, eta = float(self.signal), float(self.step), float(self.threshold)
        plateau = math.sqrt((lam - delta) / (lam * (1 + delta)))
        drift, spread = (abs(float(x)) for x in _correction(lam, delta))
        needed = exit_times.least_dimension(eta * plateau, (drift + spread / 2) / (2 * delta * (lam - delta)))
        return too_small(
            size,
            needed,
            f"at N = {size} signal = {written(lam)} and step = {written(delta)} search from a start not "
            "small beside threshold = "
            f"{written(eta)}, or with a correction not small beside the limit law; take sizes of at "
            f"least {needed:.3g}, a "
            "larger threshold or a smaller step",
        )

    def at_size(self, size):
        n = whole(size, "N", self, least=10)
        lam, delta = float(self.signal), float(self.step)
        kappa = 2 * delta * (lam - delta)
        # In units of N/κ the search takes ½ log N − log|G| and the descent less than two, even to 0.98 m_*: a walk that
        # takes longer than this has a start below e^{−30}/√N, or a hundred times the usual descent.
        most = math.ceil(n * (math.log(n) / 2 + 230) / kappa)
        return {"dimension": n, "most": most}, replace(self, dimension=n)

    def rounds(self, *, dimension: int, most: int):
        kappa = 2 * float(self.step) * (float(self.signal) - float(self.step))
        return dimension * (math.log(dimension) / 2 + 4) / kappa / reduced_chains.BLOCK

    def simulate(self, key, *, dimension: int, most: int):
        model = reduced_chains.online_pca(dimension, self.signal)
        point = draws.draw(draws.neighbour(key, -1, word=0), (), dimension).gaussians
        start = point[0] / jnp.linalg.norm(point)
        levels = jnp.stack([self.threshold, self.end])
        found = reduced_chains.first_passage(
            key, lambda sample, m: model.step(sample, m, self.step), model.samples, start, levels, most, True
        )
        found = found / dimension
        rate = 2 * self.step * (self.signal - self.step)
        return {"search": rate * found[0], "descent": found[1] - found[0]}
