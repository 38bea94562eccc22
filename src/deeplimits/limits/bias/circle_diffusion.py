r"""Diffusion with a noise amplitude that depends on the place."""

import math

import jax
import jax.numpy as jnp

from deeplimits.limit import Limit, Run, integer, replace, whole
from deeplimits.numerics import draws
from deeplimits.predictions import Law, Probability
from deeplimits.showcase import Showcase
from deeplimits.theory.bias import slow_directions

GRID = 2000


class CircleDiffusion(Limit):
    r"""Noise whose strength depends on the place collects where it is weak.

    Setting     random steps ±a(θ) on a circle, a = s on one half and a = f on the other, evaluated where the step
                begins (Itô, as in SGD); on a ring of N sites from site k to k ± s for k < N/2, else to k ± f
    Limit       N → ∞, steps small against the circle
    Result      density ∝ 1/a², neither 1/a (Stratonovich) nor 1/√a: probability f²/(s² + f²) of the slow half
                on the ring: the stationary law of the finite chain, exactly at every N
                the same density for Gaussian steps of deviation a(θ) 2π/N, a = (s+f)/2 − (f−s)/2 cos θ
    Validity    s, f and N without common divisor; N even; size counts the sites per longest step, N/max(s, f)
    Finite size O(f/N) where a jumps, O(f²/N²) where it is smooth; the lattice probability is exact
    Computed by bias.diffusion_density, bias.slow_half_mass, bias.lattice_slow_mass
    References  gardiner2009
    """

    sites: int = integer(40, 4, 1000, symbol="N", doc="sites of the ring")
    slow: int = integer(1, 1, 10, symbol="s", doc="step length in the slow half")
    fast: int = integer(2, 1, 10, symbol="f", doc="step length in the fast half")

    usual = Run(sizes=(8, 16, 32), samples=300, batch=300)
    showcase = Showcase(see="Walkers collect where the noise is weak, although no force drives them there.")

    # Independent walkers in one simulation, because a walker is one success or failure.
    walkers = 50

    def validity(self):
        found = []
        if self.sites % 2:
            found.append(f"sites = {self.sites} is odd; take an even number")
        if max(self.slow, self.fast) >= self.sites // 2:
            found.append(f"the steps are longer than half of sites = {self.sites}; take more sites")
        if not found:
            common = math.gcd(self.slow, self.fast, self.sites)
            if common > 1:
                found.append(f"slow and fast share the divisor {common} with the ring; take steps without one")
        return tuple(found)

    def _amplitude(self, angle):
        return (self.slow + self.fast) / 2 - (self.fast - self.slow) / 2 * jnp.cos(angle)

    def theory(self):
        half = slow_directions.slow_half_mass(self.slow, self.fast)
        angle = (jnp.arange(GRID, dtype=float) + 0.5) * (2 * jnp.pi / GRID)
        density = slow_directions.diffusion_density(self._amplitude(angle))
        # the midpoint rule is spectrally accurate over the circle, and the trapezoid's in between accurate to GRID⁻²
        cdf = (jnp.cumsum(density) - density / 2) * (2 * jnp.pi / GRID)
        lattice = slow_directions.lattice_slow_mass(self.sites, self.slow, self.fast)
        return {
            "density": Law(angle, density, cdf, label="angle", symbol=r"\theta", rate=2.0),
            "slow_half": Probability(half, label="probability of the slow half", rate=1.0),
            "lattice": Probability(jnp.asarray(lattice), label="probability of the slow half of the ring"),
        }

    def at_size(self, size):
        n = 2 * whole(size * max(self.slow, self.fast) / 2, "N/2", self, least=2)
        while math.gcd(self.slow, self.fast, n) > 1:
            n += 2
        # What is left of the start after t steps is at most e^{−2π²a²t/N²}, a the shorter step: e^{−11} here.
        return {"steps": int(20 * (n / (6 * min(self.slow, self.fast))) ** 2) + 100}, replace(self, sites=n)

    def simulate(self, key, *, steps: int):
        def advance(index, state):
            place, _, angle = state
            drawn = draws.draw(draws.neighbour(key, index), (self.walkers,), 1, uniforms=2)
            forth, coin = drawn.uniforms[:, 0] < 0.5, drawn.uniforms[:, 1] < 0.5
            speed = jnp.where(place < self.sites // 2, self.slow, self.fast)
            following = (place + jnp.where(forth, speed, -speed)) % self.sites
            # On some rings even and odd sites alternate: half of the walkers are seen a step earlier.
            seen = jnp.where(coin, place, following)
            move = self._amplitude(angle) * (2 * jnp.pi / self.sites) * drawn.gaussians[:, 0]
            return following, seen, (angle + move) % (2 * jnp.pi)

        start = jnp.zeros(self.walkers, dtype=int)
        _, place, angle = jax.lax.fori_loop(0, steps, advance, (start, start, jnp.zeros(self.walkers)))
        slow = (place < self.sites // 2).astype(float)
        return {"density": angle, "slow_half": slow, "lattice": slow}
