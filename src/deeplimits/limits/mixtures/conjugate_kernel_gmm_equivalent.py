r"""The conjugate kernel of one layer on a mixture, for any activation."""

from deeplimits.ensembles import class_mixtures
from deeplimits.limit import activation_choice
from deeplimits.limits.mixtures._shared import MixtureKernel, described, looked_at, said
from deeplimits.showcase import Showcase
from deeplimits.theory.mixtures.kernel_equivalents import conjugate_kernel_equivalent


class ConjugateKernelGmmEquivalent(MixtureKernel):
    r"""Random features of a mixture depend on the activation, even one that jumps, through d₀, d₁ and d₂ alone.

    Setting     n points x of two classes N(±μ, C_a) in R^p, |μ|² = ρ, C₁ = I, C₂ = (1 + t/√p) diag(1 ± h);
                K_ij = E σ̃(w·x_i/√p)σ̃(w·x_j/√p), w ~ N(0, I), σ̃ = σ − E σ(τξ), τ² = tr C°/p
    Limit       p → ∞ with n/p fixed
    Result      K = d₁X'X/p + d₂ss' + 2d₂JTJ'/p + d₀I in operator norm, d₁ = (E σ')², d₂ = (E σ'')²/4,
                d₀ = Var σ(τξ) − τ²d₁, s_i = |x_i − μ_a|²/p − τ², T_ab = tr(C_aC_b)/p
    Validity    E σ² finite; size counts the dimension p
    Finite size |K − K̃| = O(p^(−1/2)), separate eigenvalues and means of many O(1/p)
    Computed by mixtures.conjugate_kernel_equivalent
    References  ali2022 Thm 1
    """

    activation: str = activation_choice("step", lambda a: (a.lipschitz or a.bounded) and a.name != "identity")

    showcase = Showcase(
        over="strength",
        first="top",
        see="The equivalent matrix has the largest eigenvalue of the kernel matrix itself, draw by draw: flat "
        "while the classes are too close, rising once they show.",
    )

    def stated(self, system):
        return said(looked_at(conjugate_kernel_equivalent(self.activation, described(system)).matrix()))

    def measured(self, system):
        inner = system.x @ system.x.T / system.x.shape[1]
        mean = class_mixtures.centre(self.activation, system.variances.mean())
        return looked_at(class_mixtures.series(self.activation, inner, *mean).value)
