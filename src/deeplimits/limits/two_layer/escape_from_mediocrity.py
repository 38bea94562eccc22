r"""How long a quadratic neuron looks at nothing before it finds its teacher."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import overlap_steps
from deeplimits.limit import Limit, Run, real, replace, whole
from deeplimits.models.committees import Overlaps, Task
from deeplimits.numerics.arguments import known, written
from deeplimits.predictions import Law, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.two_layer.overlaps import escape


class EscapeFromMediocrity(Limit):
    r"""A random start knows nothing of the teacher, and one-pass SGD needs d ln d samples to find out.

    Setting     one quadratic student σ = x², one quadratic teacher of norm P = 1, learning rate γ, label noise of
                variance Δ; start on the plateau M ≈ 0, Q = Q_pl with M₀ = √(Q_pl/d) × a standard normal, as for a
                random direction
    Limit       d → ∞
    Result      Q_pl the lower root of 15γQ² − (3 + 6γP)Q + (P + 3γP² + γΔ) = 0, growth rate λ = 6(P − Q_pl);
                t_esc, when |M| first exceeds 0.9: λ t_esc − ½ ln d → c₀ − ln|N| in law, N ~ N(0, 1),
                c₀ = ln c − ½ ln(PQ_pl + γD/(2λ)), c from the deterministic escape, D = 4PQ(15P² − 18PQ + 15Q² + Δ);
                n = d t_esc/γ = O(d ln d) samples. The mean of M is not the solution of the equations from M₀ ~ d^(−1/2)
    Validity    9 − 24γP − 144γ²P² − 60γ²Δ ≥ 0 (γ ≤ 0.1802 for P = 1, Δ = 0), else the norm diverges; label noise lets
                M grow to √(1 − γΔ/(2 − 12γ)) only, which must exceed 0.9; γ ≤ 0.1, as nearer to the bound rare large
                steps, γ²(error)²(input)⁴, matter at any d that can be simulated; size counts d
    Finite size O(1/d) up to logarithms, larger for larger γ
    Computed by two_layer.escape_time, two_layer.discriminant; the plateau by two_layer.mediocrity
    References  arnaboldi2023b; tan2023
    """

    step: Array = real(0.08, 0.001, 0.1, log=True, symbol=r"\gamma", doc="learning rate")
    noise: Array = real(0.0, 0.0, 0.7, symbol=r"\sqrt{\Delta}", doc="standard deviation of the label noise")
    dimension: Array = real(1000, 10, 10_000_000, log=True, symbol="d", doc="dimension of the input")

    usual = Run(sizes=(16, 32, 64), samples=400, batch=200)
    showcase = Showcase(
        see="The time to leave the plateau is ½ ln d plus a random number: half of the logarithm of the "
        "dimension, and the luck of the start."
    )

    level = 0.9
    """The overlap that counts as having escaped."""
    runs = 10
    """Independent runs in each simulation, fewer where the learning rate is so small that each takes long."""

    def validity(self):
        if not known(self.step, self.noise):
            return ()
        step, variance = float(self.step), float(self.noise) ** 2
        if not float(escape.discriminant(step, noise_variance=variance)) >= 0:
            return (f"step = {written(step)} leaves no plateau: the student's norm diverges",)
        reached = 1 - step * variance / (2 - 12 * step)
        if not reached > self.level**2:
            return (
                f"noise = {written(self.noise)} at step = {written(step)} keeps the overlap below "
                f"{max(reached, 0.0) ** 0.5:.3g}",
            )
        return ()

    def theory(self):
        found = escape.escape_time(self.step, self.noise**2, 1.0, self.level)
        # P(c₀ − ln|N| ≤ y) = P(|N| ≥ e^{c₀ − y}) = erfc(e^{c₀ − y}/√2)
        y = found.centre + jnp.linspace(-1.7, 8.3, 401)
        argument = jnp.exp(found.centre - y)
        cdf = jax.scipy.special.erfc(argument / jnp.sqrt(2.0))
        density = found.growth * jnp.sqrt(2 / jnp.pi) * argument * jnp.exp(-(argument**2) / 2)
        times = (jnp.log(self.dimension) / 2 + y) / found.growth
        return {
            "escape_law": Law(times, density, cdf, label="escape time", symbol=r"t_{esc}", rate=1.0),
            "escape_time": Value(found.mean(self.dimension), label="mean escape time", symbol=r"E\,t_{esc}", rate=1.0),
        }

    def at_size(self, size):
        d = whole(size, "d", self, least=10)
        step = float(self.step)
        runs = min(max(round(self.runs * step / 0.04), 2), self.runs)
        # Ten times the typical escape is never reached: the tail of −ln|N| is thin.
        return {"dimension": d, "runs": runs, "most": int(60 * runs * d / step)}, replace(self, dimension=d)

    def rounds(self, *, dimension: int, runs: int, most: int):
        # The mean of an escape time is about 1.5, where `most` allows 60 for each run.
        return most / 40 / overlap_steps.BLOCK

    def simulate(self, key, *, dimension: int, runs: int, most: int):
        task = Task(jnp.eye(1), self.step, self.noise, "square")
        # The norm at which Q rests while M = 0: the lower root of aQ² − bQ + c = 0, as 2c/(b + √(b² − 4ac)).
        a, b, c = 15 * self.step, 3 + 6 * self.step, 1 + 3 * self.step + self.step * self.noise**2
        norm = 2 * c / (b + jnp.sqrt(b**2 - 4 * a * c))

        def start(normal):
            return Overlaps(jnp.sqrt(norm / dimension) * normal[None, None], norm[None, None])

        t = overlap_steps.first_passages(key, task, start, jnp.asarray(self.level), dimension, runs, most)
        return {"escape_law": t, "escape_time": jnp.mean(t)}
