r"""Tangent kernels of deep networks on a mixture."""

from deeplimits.limits.mixtures._shared import DeepMixtureKernel
from deeplimits.showcase import Showcase


class DeepNtkEquivalent(DeepMixtureKernel):
    r"""The tangent kernel of a deep network on a mixture depends on each activation through five numbers.

    Setting     n points x of two classes N(±μ, C_a) in R^p, |μ|² = ρ, C₁ = I, C₂ = (1 + t/√p) diag(1 ± h); L layers of
                infinite width, activations less their mean at the typical input
    Limit       p → ∞ with n/p fixed
    Result      Θ_L = β₁X'X/p + β₂ss' + β₃JTJ'/p + (κ_L² − τ₀²β₁)I in operator norm, β and κ as in
                `mixtures.deep_coefficients`: so are all eigenvalues of the two centred matrices the same
    Validity    continuous activations, not even ones, of which no class mean is left; size counts the dimension p
    Finite size |Θ − Θ̃| = O(p^(−1/2)), separate eigenvalues and means of many O(1/p)
    Computed by mixtures.deep_coefficients, mixtures.equivalent_kernel
    References  gu2022 Thm 2
    """

    kernel = "tangent"
    showcase = Showcase(
        over="strength",
        first="top",
        see="The tangent kernel of a deep network sees the classes through a few numbers: its largest "
        "eigenvalue rises as they move apart, and so does the equivalent's.",
    )
