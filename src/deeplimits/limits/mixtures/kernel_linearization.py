r"""Kernels of distances on a mixture."""

import jax.numpy as jnp

from deeplimits.ensembles import class_mixtures
from deeplimits.limit import choice
from deeplimits.limits.mixtures._shared import MixtureKernel, described, looked_at, mixture_of, said
from deeplimits.showcase import Showcase
from deeplimits.theory.mixtures.distance_kernels import linearized_distance_kernel

KERNELS = {
    "heat": lambda t: jnp.exp(-t / 2),
    "rational": lambda t: 1 / (1 + t),
    "laplace": lambda t: jnp.exp(-jnp.sqrt(jnp.where(t > 0, t, 1e-300))),
    "parabola": lambda t: 2 * (t - 2) ** 2 - (t - 2) + 4,
}


class KernelLinearization(MixtureKernel):
    r"""A kernel matrix of high-dimensional points is a linear one, with corrections for lengths and a multiple of I.

    Setting     K_ij = f(|x_i − x_j|²/p), n points x of N(±μ, C_a) in R^p, |μ|² = ρ, C₁ = I,
                C₂ = (1 + t/√p) diag(1 ± h); f = exp(−t/2), 1/(1 + t), exp(−√t) or 2(t − 2)² − (t − 2) + 4
    Limit       p → ∞ with n/p fixed
    Result      K̃_ij = f(τ) + f'(τ)[s_i + s_j − (2/p)z_i·z_j + |μ_a − μ_b|²/p + (2/p)(μ_a − μ_b)·(z_i − z_j)]
                + (f''(τ)/2)[(s_i + s_j)² + 4 tr(C_aC_b)/p²], f(0) on the diagonal; τ = 2 tr C°/p, in operator norm
    Validity    f three times differentiable at τ; size counts the dimension p
    Finite size |K − K̃| = O(p^(−1/2)), separate eigenvalues and means of many O(1/p)
    Computed by mixtures.linearized_distance_kernel
    References  elkaroui2010; couillet2016
    """

    kernel: str = choice("heat", tuple(KERNELS), symbol="f", doc="the kernel function f")

    showcase = Showcase(
        over="strength",
        first="top",
        see="A kernel of distances does in high dimension what a linear one does: its largest eigenvalue "
        "rises as the classes move apart, and the linearized one's with it.",
    )

    def stated(self, system):
        found = linearized_distance_kernel(KERNELS[self.kernel], described(system), mixture_of(system))
        values = said(looked_at(found))
        return {name: values[name] for name in ("top", "bulk")}

    def measured(self, system):
        found = looked_at(class_mixtures.distance_matrix(KERNELS[self.kernel], system.x))
        return {name: found[name] for name in ("top", "bulk")}
