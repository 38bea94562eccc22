r"""How evenly a deep random network stretches its input space."""

import math

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import matrices
from deeplimits.limit import Limit, Run, axis, choice, integer, real, rounded, too_small, whole
from deeplimits.limits.spectra._shared import resolvent_curve
from deeplimits.measure import spectra
from deeplimits.numerics.arguments import known, written
from deeplimits.predictions import Value
from deeplimits.predictions.picture import Axis, Line, Picture
from deeplimits.showcase import Showcase
from deeplimits.theory.spectra import isometry


class DynamicalIsometry(Limit):
    r"""Squared singular values of the Jacobian of a deep network with piecewise linear units.

    Setting     J = Π_l D_lW_l, L layers of width N; W Gaussian with entries of variance σ_w²/N, or σ_w times a uniform
                orthogonal matrix; D diagonal, a share p of units active (ReLU: p = 1/2), criticality σ_w² = 1/p
    Limit       N → ∞ at fixed L
    Result      M = zG − 1 solves zM = (1 + M)(σ_w²(M + p))^L for Gaussian weights and
                zM = (1 + M)(σ_w²(M + p)/(1 + M))^L for orthogonal ones
                mean 1, variance L/p for Gaussian and L(1/p − 1) for orthogonal weights
                λ_max from the minimum of z(M) over M > 0 (`theory.spectra.isometry`); for orthogonal weights with
                L(1 − p) ≤ 1 an atom at p^{−L}
    Validity    gates in general position to the weights; N well above L²/p (Gaussian), L²(1/p − 1) (orthogonal),
                with which moments still grow; size counts the width N
    Finite size both deviate by O(1/N)
    Computed by spectra.shrunk_share, spectra.relative_variance; as a law spectra.jacobian_spectrum
    References  pennington2017; pennington2018
    """

    weights: str = choice("gaussian", ("gaussian", "orthogonal"), doc="law of the weights")
    depth: int = integer(2, 1, 100, log=True, symbol="L", doc="number of layers")
    active: Array = real(0.75, 0.05, 1.0, symbol="p", doc="share of active units")
    shifts: Array = axis((0.03, 0.3, 1.0, 3.0), 1e-6, 1e6, log=True, symbol="y", doc="where the transform is compared")

    usual = Run(sizes=(24, 48, 96), samples=800)
    showcase = Showcase(
        see="With depth the squared singular values of a Jacobian spread around one, with orthogonal weights less, and "
        "not at all where all units are active.",
    )

    def charts(self):
        depths = range(1, 21)
        lines = [
            Line(
                depths,
                [float(isometry.relative_variance(depth, weights, 1 / share)) for depth in depths],
                series=series,
                label=f"{weights} weights, p = {float(share):.3g}",
            )
            for series, (weights, share) in enumerate(
                (("gaussian", self.active), ("orthogonal", self.active), ("orthogonal", jnp.ones(())))
            )
        ]
        y = Axis("relative variance of the squared singular values")
        return {"spread": Picture(Axis("number of layers", "L", whole=True), y, tuple(lines))}

    def theory(self):
        share = isometry.shrunk_share(self.depth, self.weights, 1 / self.active, self.active, self.shifts)
        return {
            "transform": resolvent_curve(self.shifts, share, "Jacobian", r"\frac{1}{N}{\rm tr}\,y(y+JJ^\top)^{-1}"),
            "second_moment": Value(
                1 + isometry.relative_variance(self.depth, self.weights, 1 / self.active),
                label="second moment of the squared singular values",
                symbol=r"\frac{1}{N}{\rm tr}(JJ^\top)^2",
                rate=1.0,
            ),
        }

    def validity_at(self, size):
        if not known(self.active):
            return ()
        spread = 1 / float(self.active) - (self.weights == "orthogonal")
        least = math.ceil(2 * self.depth**2 * spread)
        return too_small(
            size,
            least,
            f"N = {size} is narrow for depth = {self.depth} and active = {written(self.active)}: fluctuations of the "
            f"layers multiply; take sizes of at least {least}, or a smaller depth",
        )

    def at_size(self, size):
        n = whole(size, "N", self, least=4)
        count = min(max(round(n * float(self.active)), 1), n)
        return {"width": n}, rounded(self, active=count / n)

    def simulate(self, key, *, width: int):
        jacobian = matrices.gated_product(key, width, self.depth, self.weights, 1 / self.active, self.active)
        eigenvalues = jnp.linalg.eigvalsh(jacobian @ jacobian.T)
        return {
            "transform": self.shifts * spectra.regularized_trace(jnp.maximum(eigenvalues, 0.0), self.shifts),
            "second_moment": jnp.mean(eigenvalues**2),
        }
