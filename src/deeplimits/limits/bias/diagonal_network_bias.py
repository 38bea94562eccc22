r"""Diagonal linear networks."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from deeplimits.ensembles import data, flows
from deeplimits.limit import Limit, Run, integer, real, rounded, whole
from deeplimits.models.designs import Design
from deeplimits.numerics.arguments import written
from deeplimits.predictions import Identity
from deeplimits.predictions.picture import Axis, Line, Picture
from deeplimits.showcase import Showcase
from deeplimits.theory.bias import diagonal_networks

# Between these the flow can be followed in double precision: the least α^{D−2} and the largest α^D.
SMALLEST, LARGEST = 4e-3, 100.0


class System(NamedTuple):
    """A regression problem, the start θ₀, and when to look."""

    design: Design
    start: Float[Array, " d"]
    times: Float[Array, " times"]


class DiagonalNetworkBias(Limit):
    r"""The initialization scale of a diagonal linear network leads from the ℓ1 to the ℓ2 solution.

    Setting     β = w₊^D − w₋^D entrywise, w± = αθ₀ at the start, gradient flow on ½‖Xβ − y‖²; X of shape (n, d), d > n
    Limit       t → ∞ at fixed data
    Result      β(t) = c h(θ₀^{D−2} X'ν(t)), c = (αθ₀)^D, h = 2 sinh for D = 2; where the flow interpolates it ends at
                argmin Q(β) : Xβ = y, Q = Σ c_i q(β_i/c_i), q(z) = 2 − √(4+z²) + z arcsinh(z/2) for D = 2
                α → ∞: weighted ℓ2 norm, approached like α^{−2D}; α → 0: ℓ1 norm, Q/log(1/α²) → ‖β‖₁
    Validity    α > 0 (neither α^{D−2} nor 1/α^D so small that double precision ends), θ₀ without zeros, Xβ = y
                solvable; size counts the samples n
    Finite size exact: integrated until the labels are fitted to 1e-11
    Computed by bias.diagonal_interpolant, bias.diagonal_trajectory, bias.diagonal_regularizer,
                bias.diagonal_potential
    References  woodworth2020 Thm 1, Thm 3
    """

    alpha: Array = real(0.1, 1e-3, 10.0, log=True, symbol=r"\alpha", doc="scale of the initialization")
    gamma: Array = real(3.0, 1.1, 20.0, log=True, symbol="d/n", doc="features per sample")
    depth: int = integer(2, 2, 6, symbol="D", doc="number of layers")

    usual = Run(sizes=(3, 6), samples=10)
    showcase = Showcase(
        see="From a small start the flow ends at the sparsest solution, from a large one at the shortest: in between "
        "its two norms trade places, and finite networks end where the formula says, to the solver's tolerance.",
    )

    def charts(self):
        # Six labels that a sparse vector explains, and eighteen features.
        generator = np.random.default_rng(0)
        x = generator.standard_normal((6, 18))
        y = x[:, :2] @ np.array([1.0, -1.5])
        scales = np.geomspace(max(1e-3, SMALLEST ** (1 / max(self.depth - 2, 1e-9))), LARGEST ** (1 / self.depth), 40)
        found = [np.asarray(diagonal_networks.diagonal_interpolant(x, y, a, depth=self.depth).beta) for a in scales]
        sparse, short = diagonal_networks.sparse_solution(x, y), diagonal_networks.kernel_solution(x, y)
        l1 = [np.abs(beta).sum() / np.abs(sparse).sum() - 1 for beta in found]
        l2 = [np.linalg.norm(beta) / np.linalg.norm(short) - 1 for beta in found]
        marks = (Line(scales, l1, label="ℓ1 norm above the least", series=0),
                 Line(scales, l2, label="ℓ2 norm above the least", series=1))  # fmt: skip
        across = Axis("scale of the initialization", r"\alpha", log=True)
        return {"norms": Picture(across, Axis("excess of the norm of the solution"), marks)}

    def validity(self):
        alpha, deeper = float(self.alpha), self.depth - 2
        # Large parameters of size αθ₀ differ by 1/α^D of their D-th power; small ones grow by 1/α, and the last of β
        # depends on α^{D−2} of what was there at first. Both must be far above rounding.
        if alpha**self.depth > LARGEST:
            limit = f"at most {LARGEST ** (1 / self.depth):.2g}"
        elif alpha**deeper < SMALLEST:
            limit = f"at least {SMALLEST ** (1 / deeper):.2g}"
        else:
            return ()
        return (
            f"alpha = {written(alpha)} at depth = {self.depth} leaves too few digits in double precision; take {limit}",
        )

    def at_size(self, size):
        n = whole(size, "n", self)
        d = whole(n * float(self.gamma), "d", self, least=n + 1)
        return {"samples": n, "features": d}, rounded(self, gamma=d / n)

    def draw(self, key, *, samples: int, features: int):
        entries = data.independent_entries(key, samples + 1, features + 1)
        x, y = entries[:-1, :-1], entries[:-1, -1]
        # In units of the fastest growth from a small start, or of the fastest approach to the labels from a large one.
        growth = jnp.max(jnp.abs(y @ x)) + 2 * self.depth * self.alpha**self.depth * jnp.sum(x**2) / samples
        scale = self.depth * self.alpha ** (self.depth - 2) * growth
        return System(Design(x, y), jnp.exp(entries[-1, :-1] / 6), jnp.array([0.5, 1.0, 2.0]) / scale)

    def stated(self, system):
        (x, y), start, times = system
        found = diagonal_networks.diagonal_interpolant(x, y, self.alpha, start=start, depth=self.depth)
        path = diagonal_networks.diagonal_trajectory(x, y, self.alpha, times, start=start, depth=self.depth)
        return {
            "limit": Identity(
                found.beta,
                label="interpolating solution",
                symbol=r"\beta(\infty)",
                tolerance=1e-9,
                reason="labels fitted to 1e-11, of which a poorly conditioned X makes a hundred times as much",
            ),
            "trajectory": Identity(
                path,
                label="trajectory",
                symbol=r"\beta(t)",
                tolerance=1e-11 if self.depth == 2 else 1e-9,
                reason="relative tolerance 1e-13 of both integrators, magnified where parameters grow a hundredfold",
            ),
        }

    def measured(self, system):
        (x, y), start, times = system
        found = flows.diagonal_network_flow(x, y, self.alpha, start, self.depth, times)
        return {"limit": found.limit, "trajectory": found.path}
