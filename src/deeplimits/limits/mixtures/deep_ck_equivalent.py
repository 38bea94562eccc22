r"""Conjugate kernels of deep networks on a mixture."""

from deeplimits.limits.mixtures._shared import DeepMixtureKernel
from deeplimits.showcase import Showcase


class DeepCkEquivalent(DeepMixtureKernel):
    r"""The conjugate kernel of a deep network on a mixture depends on each activation through four numbers.

    Setting     n points x of two classes N(±μ, C_a) in R^p, |μ|² = ρ, C₁ = I, C₂ = (1 + t/√p) diag(1 ± h); L layers of
                infinite width, activations less their mean at the typical input
    Limit       p → ∞ with n/p fixed
    Result      K_L = α₁X'X/p + α₂ss' + α₃JTJ'/p + (τ_L² − τ₀²α₁)I in operator norm, α and τ as in
                `mixtures.deep_coefficients`: so are all eigenvalues of the two centred matrices the same
    Validity    activations with E σ² finite, not even ones, of which no class mean is left; size counts the dimension p
    Finite size |K − K̃| = O(p^(−1/2)), separate eigenvalues and means of many O(1/p)
    Computed by mixtures.deep_coefficients, mixtures.equivalent_kernel
    References  gu2022 Thm 1
    """

    kernel = "conjugate"
    showcase = Showcase(
        over="strength",
        first="top",
        see="Four numbers replace the whole deep network: the equivalent matrix follows the kernel's largest "
        "eigenvalue as the classes move apart.",
    )
