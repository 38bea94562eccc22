r"""Both layers of a network that learns XOR align with the outliers of their Hessian blocks."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from deeplimits.ensembles import reduced_chains
from deeplimits.limit import Limit, Run, real, rounded, whole
from deeplimits.limits.landscape._shared import over_time
from deeplimits.numerics import draws
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.landscape import xor_blocks
from deeplimits.theory.online_sgd import xor

RECORDS, PER_DIMENSION, TOP = 3, 10, 4
DENSE = 4 * RECORDS
"""Points of the line that is drawn."""
# A start in the basin of all four clusters: one neuron for each, and two that come late.
OUTPUT = (1.0, 0.8, -0.9, -0.7, 0.4, -0.4)
ALONG_MU = (0.4, -0.3, 0.0, 0.1, 0.1, 0.0)
ALONG_NU = (0.0, 0.1, 0.4, -0.3, 0.0, -0.1)
SIDE = 0.3


class System(NamedTuple):
    """What SGD recorded, and a key for the test samples."""

    path: reduced_chains.XorStatistics
    key: PRNGKeyArray
    clock: Float[Array, " N"]
    """As many entries as dimensions."""


class XorAlignmentTheorems(Limit):
    r"""The first layer moves into the plane of the means, the second into the top eigenspace of its own Hessian.

    Setting     XOR mixture in R^N, network v·g(WX) with six neurons from a start with all four types, R = 0.3·1;
                online SGD with δ = c/N, ridge β, up to time t; then 10N test samples
    Limit       N → ∞
    Result      first layer: Σ v_i²|P_{μ,ν}W_i|²/Σ v_i²|W_i|² along the ODE of (v, m, R), towards 1 as t, λ grow
                second layer, of the state that was reached: |P v|²/|v|² for P on E_4 of the population blocks
                E σ'(s)gg' and E (σ(s) − y)²gg'
    Validity    β < 1/8; the start has overlaps of order one (from zero it takes a time of order log N to leave);
                size counts the dimension N
    Finite size O(1/N)
    Computed by online_sgd.xor_ballistic (first_layer), landscape.xor_second_layer
    References  benarous2024; benarous2022
    """

    separation: Array = real(10.0, 4.0, 100.0, log=True, symbol=r"\lambda", doc="inverse variance λ of a cluster")
    ridge: Array = real(0.05, 0.01, 0.1, log=True, symbol=r"\beta", doc="ridge parameter β")
    step: Array = real(1.0, 0.2, 2.0, log=True, symbol="c", doc="step constant c = δN")
    horizon: Array = real(6.0, 1.0, 10.0, log=True, symbol="t", doc="time up to which SGD is followed")

    usual = Run(sizes=(50, 100), samples=150, batch=10)
    showcase = Showcase(see="The first layer moves into the plane of the means.")

    def theory(self):
        times = self.horizon * jnp.arange(1.0, DENSE + 1) / DENSE
        start = xor.XorState(jnp.asarray(OUTPUT), jnp.asarray(ALONG_MU), jnp.asarray(ALONG_NU), SIDE * jnp.eye(6))
        path = xor.xor_ballistic(start, times, self.separation, self.ridge, self.step, points=8192)
        along = jnp.sum(path.output**2 * (path.along_mu**2 + path.along_nu**2), axis=1)
        beside = jnp.sum(path.output**2 * jnp.einsum("tii->ti", path.overlaps), axis=1)
        label, symbol = "first layer in the plane of the means", r"\rho^2"
        return {"first_layer": over_time(times, along / (along + beside), RECORDS, label, symbol)}

    def at_size(self, size):
        n = whole(size, "N", self, least=20)
        every = whole(float(self.horizon) * n / float(self.step) / RECORDS, "steps between records", self)
        return {"dimension": n, "every": every}, rounded(self, horizon=every * RECORDS * float(self.step) / n)

    def draw(self, key, *, dimension: int, every: int):
        def step(sample, state):
            return reduced_chains.xor_step(sample, state, dimension, self.separation, self.ridge, self.step)

        start = reduced_chains.XorStatistics(
            jnp.asarray(OUTPUT), jnp.asarray(ALONG_MU), jnp.asarray(ALONG_NU), SIDE * jnp.eye(6)
        )
        samples = reduced_chains.xor_samples(key, (RECORDS * every,), dimension, 6)
        path = reduced_chains.run(step, samples, start, every * jnp.arange(RECORDS + 1))
        return System(path, draws.neighbour(key, -1, word=0), jnp.zeros(dimension))

    def stated(self, system):
        end = jax.tree.map(lambda part: part[-1], system.path)
        blocks = xor_blocks.xor_second_layer(xor.XorState(*end), self.separation)

        def share(matrix, words, symbol):
            return Value(self._share(matrix, end.output), label=f"second layer in {words}", symbol=symbol, rate=1.0)

        return {
            "second_layer": share(blocks.hessian, "E_k of its Hessian", r"\rho_H^2"),
            "second_layer_gradient": share(blocks.gradient, "E_k of its G", r"\rho_G^2"),
        }

    def measured(self, system):
        path, count = system.path, PER_DIMENSION * len(system.clock)
        along = jnp.sum(path.output**2 * (path.along_mu**2 + path.along_nu**2), axis=1)
        beside = jnp.sum(path.output**2 * jnp.einsum("tii->ti", path.overlaps), axis=1)
        v, mu, nu, overlaps = (part[-1] for part in path)
        # Fields of fresh samples: the plane of the means, and the span of the rest of the neurons
        numbers = jax.random.normal(system.key, (count, 9))
        noise = numbers[:, :8] / jnp.sqrt(self.separation)
        cluster = jnp.arange(count) % 4
        sign = jnp.where(cluster % 2 == 0, 1.0, -1.0)
        label = jnp.where(cluster < 2, 1.0, 0.0)
        x_mu, x_nu = noise[:, 0] + sign * label, noise[:, 1] + sign * (1 - label)
        root = jnp.linalg.cholesky(overlaps + 1e-13 * jnp.eye(6))
        active = jnp.maximum(x_mu[:, None] * mu[None] + x_nu[:, None] * nu[None] + noise[:, 2:] @ root.T, 0.0)
        chance = jax.nn.sigmoid(active @ v)
        hessian, gradient = (
            (active * w[:, None]).T @ active / count for w in (chance * (1 - chance), (chance - label) ** 2)
        )
        return {
            "first_layer": (along / (along + beside))[1:],
            "second_layer": self._share(hessian, v),
            "second_layer_gradient": self._share(gradient, v),
        }

    def _share(self, matrix, v):
        """|P v|²/|v|² for P on the top eigenspace."""
        inside = v @ jnp.linalg.eigh(matrix)[1][:, -TOP:]
        return inside @ inside / (v @ v)
