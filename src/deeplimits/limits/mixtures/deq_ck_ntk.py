r"""Kernels of implicit networks on a mixture."""

from jaxtyping import Array

from deeplimits.ensembles import class_mixtures
from deeplimits.limit import activation_choice, choice, real
from deeplimits.limits.mixtures._shared import MixtureKernel, described, looked_at, said
from deeplimits.models.activations import activation as named
from deeplimits.numerics.arguments import known
from deeplimits.showcase import Showcase
from deeplimits.theory.mixtures.implicit import equilibrium_coefficients
from deeplimits.theory.mixtures.kernel_equivalents import equivalent_kernel

MOST = 0.7
"""The largest contraction that the simulation's rounds bring to rest."""


class DeqCkNtk(MixtureKernel):
    r"""An implicit network at its fixed point has kernels on a mixture that four numbers each describe.

    Setting     z = φ̃(σ_aAz + σ_bBx/√p)/√m, A, B standard Gaussian, m → ∞, φ̃ = φ − E φ(τξ);
                n points x of two classes N(±μ, C_a) in R^p, |μ|² = ρ, C₁ = I, C₂ = (1 + t/√p) diag(1 ± h)
    Limit       p → ∞ with n/p fixed
    Result      G = E φ̃φ̃ at the fixed point Λ = σ_a²G + σ_b²X'X/p, and K = (G + σ_b²Ġ∘X'X/p)/(1 − σ_a²Ġ), are
                α₁X'X/p + α₂ss' + α₃JTJ'/p + (g − τ₀²α₁)I in operator norm, and likewise with β;
                numbers as in `mixtures.equilibrium_coefficients`
    Validity    σ_a²E φ'(τξ)² < 1, below 0.7 here, so that the rounds of the simulation come to rest; size counts the
                dimension p
    Finite size |G − G̃| = O(p^(−1/2)), separate eigenvalues and means of many O(1/p)
    Computed by mixtures.equilibrium_coefficients, mixtures.equivalent_kernel
    References  ling2024
    """

    activation: str = activation_choice("relu", lambda a: a.lipschitz and a.name not in ("identity", "abs"))
    kernel: str = choice("conjugate", ("conjugate", "tangent"), doc="which kernel: conjugate or tangent")
    recurrent_variance: Array = real(0.5, 0.0, 1.2, symbol=r"\sigma_a^2", doc="variance of the recurrent weights")
    input_variance: Array = real(1.0, 0.5, 2.0, log=True, symbol=r"\sigma_b^2", doc="variance of the input weights")

    showcase = Showcase(
        over="strength",
        first="top",
        see="An implicit network at rest has the kernel that four numbers describe: its largest eigenvalue "
        "rises as the classes move apart.",
    )

    def validity(self):
        if not known(self.recurrent_variance, self.input_variance):
            return ()
        found = float(
            equilibrium_coefficients(self.activation, self.recurrent_variance, self.input_variance).contraction
        )
        if found <= MOST:
            return ()
        return (
            f"σ_a² E φ'² = {found:.4g} is above {MOST:g}: {named(self.activation).name} is near or beyond the end of "
            "stability; lower recurrent_variance",
        )

    def stated(self, system):
        data = described(system)
        found = equilibrium_coefficients(self.activation, self.recurrent_variance, self.input_variance, data.variance)
        return said(looked_at(equivalent_kernel(getattr(found, self.kernel), data).matrix()))

    def measured(self, system):
        found = class_mixtures.equilibrium_states(
            self.activation, self.recurrent_variance, self.input_variance, system.x, system.variances.mean()
        )
        return looked_at(getattr(found, self.kernel))
