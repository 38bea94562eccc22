r"""Kernels f(|x_i − x_j|²/p) and f(x_i·x_j/p) of high-dimensional points are almost linear in the Gram matrix."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtr
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import OutsideValidity
from deeplimits.numerics.arguments import POSITIVE, function, known, number, of_kind
from deeplimits.numerics.checks import valid
from deeplimits.numerics.shapes import Scalar
from deeplimits.theory.mixtures.gaussian_mixtures import GaussianMixture, KernelData

NOT_SMOOTH = "f or one of its first two derivatives is not finite where the kernel is expanded; take a smooth f"


class Expansion(NamedTuple):
    """f and its derivatives where almost all entries are, and its value on the diagonal."""

    place: Scalar
    """τ, around which the entries off the diagonal lie."""
    value: Scalar
    slope: Scalar
    curvature: Scalar
    diagonal: Scalar


def distance_expansion(f: Callable[[Array], Array], variance: ArrayLike = 1.0) -> Expansion:
    """f, f', f'' at τ = 2 tr C°/p and f(0): what a kernel of distances keeps of f in high dimension.

    >>> found = distance_expansion(lambda t: jnp.exp(-t / 2))
    >>> [round(float(part), 10) for part in found]
    [2.0, 0.3678794412, -0.1839397206, 0.0919698603, 1.0]
    """
    tau = 2 * number("variance", variance, POSITIVE)
    return _expansion(function("f", f), tau, jnp.zeros(()))


def _expansion(f, place, diagonal) -> Expansion:
    def scalar(t):
        return jnp.asarray(f(t), float).reshape(())

    parts = scalar(place), jax.grad(scalar)(place), jax.grad(jax.grad(scalar))(place), scalar(diagonal)
    found = Expansion(place, *parts)
    return valid(found, jnp.all(jnp.isfinite(jnp.stack(found))), NOT_SMOOTH)


def linearized_distance_kernel(
    f: Callable[[Array], Array], data: KernelData, mixture: GaussianMixture
) -> Float[Array, "n n"]:
    """The matrix that the kernel f(|x_i − x_j|²/p) is equivalent to in high dimension.

    Setting     x_i = μ_a + z_i, z ~ N(0, C_a); s_i = |z_i|²/p − tr C°/p; τ = 2 tr C°/p; f three times differentiable
                at τ; `data` made with the same `mixture`
    Result      K̃_ij = f(τ) + f'(τ)[s_i + s_j − (2/p)z_i·z_j + |μ_a − μ_b|²/p + (2/p)(μ_a − μ_b)·(z_i − z_j)]
                + (f''(τ)/2)[(s_i + s_j)² + 4 tr(C_aC_b)/p²] off the diagonal, and f(0) on it
    Validity    as `equivalent_kernel`; |K − K̃| = O(p^(−1/2)); of f only f(0) and what is at τ enters
    References  elkaroui2010; couillet2016

    >>> import numpy as np
    >>> from deeplimits.theory.mixtures.gaussian_mixtures import gaussian_mixture, kernel_data
    >>> flat = gaussian_mixture(np.zeros((1, 4)), 1.0)
    >>> points = kernel_data(np.array([[2.0, 0, 0, 0], [0, 2.0, 0, 0]]), [0, 0], mixture=flat)
    >>> round(float(linearized_distance_kernel(lambda t: jnp.exp(-t / 2), points, flat)[0, 1]), 6)
    0.413864
    """
    of_kind("data", data, KernelData)
    of_kind("mixture", mixture, GaussianMixture)
    at = distance_expansion(f, mixture.variance)
    p = data.inputs.shape[1]
    z = data.inputs * p**0.5 - mixture.means[data.labels]
    mu, s = mixture.means[data.labels], data.spread
    gram = z @ z.T / p
    # (2/p)(μ_a − μ_b)·(z_i − z_j)
    own = jnp.sum(mu * z, axis=1)
    crossed = mu @ z.T
    cross = 2 / p * (own[:, None] + own[None, :] - crossed - crossed.T)
    apart = mixture.means[:, None, :] - mixture.means[None, :, :]
    means = (jnp.sum(apart**2, axis=2) / p)[data.labels][:, data.labels]
    both = s[:, None] + s[None, :]
    squares = both**2 + 4 * data.overlap[data.labels][:, data.labels] / p
    whole = at.value + at.slope * (both - 2 * gram + means + cross) + at.curvature / 2 * squares
    return _with_diagonal(whole, at.diagonal)


def linearized_inner_kernel(f: Callable[[Array], Array], data: KernelData) -> Float[Array, "n n"]:
    """The matrix that the kernel f(x_i·x_j/p) is equivalent to in high dimension.

    Setting     points of a mixture as in `kernel_data`; f twice differentiable at 0, continuous at τ₀² = tr C°/p
    Result      K̃_ij = f(0) + f'(0)x_i·x_j/p + f''(0)tr(C_aC_b)/2p² off the diagonal, f(|x_i|²/p) on it
    Validity    as `equivalent_kernel`; |K − K̃| = O(p^(−1/2))
    References  elkaroui2010

    >>> import numpy as np
    >>> from deeplimits.theory.mixtures.gaussian_mixtures import gaussian_mixture, kernel_data
    >>> points = kernel_data(np.array([[1.0, 1.0], [1.0, -1.0]]), [0, 0], mixture=gaussian_mixture(np.zeros((1, 2)), 1.0))
    >>> linearized_inner_kernel(lambda t: 1 + t, points).round(12).tolist()
    [[2.0, 1.0], [1.0, 2.0]]
    """  # noqa: E501
    at = _expansion(function("f", f), jnp.zeros(()), data.variance)
    gram = data.inputs @ data.inputs.T
    classes = data.overlap[data.labels][:, data.labels] / data.inputs.shape[1]
    whole = at.value + at.slope * gram + at.curvature / 2 * classes
    return _with_diagonal(whole, jnp.asarray(f(jnp.einsum("ii->i", gram)), float)[:, None])


def _with_diagonal(matrix: Array, value: Array) -> Array:
    eye = jnp.eye(matrix.shape[0])
    return (matrix + matrix.T) / 2 * (1 - eye) + value * eye


class Clustering(NamedTuple):
    """Spectral clustering of two balanced classes ±μ by a kernel of distances."""

    informative: Scalar
    """The eigenvalue of the eigenvector that knows the classes; the upper edge below the transition."""
    overlap: Scalar
    """Squared alignment of that eigenvector with the classes, (v'y)²/n."""
    error: Scalar
    """Share of points on the wrong side when sorted by its sign."""
    threshold: Scalar
    """The |μ|² at which the transition is."""
    edges: Float[Array, "2"]
    """Ends of the bulk."""
    at_point: Scalar
    """κ, where n − p eigenvalues lie when there are fewer dimensions than points."""
    norm: Scalar
    """The eigenvalue that fluctuating norms make; the upper edge where they make none."""
    norm_overlap: Scalar
    """Squared alignment of its eigenvector with these norms."""
    rank: Scalar
    """The place of the informative eigenvector, 1 for the largest eigenvalue; 0 below the transition."""


def kernel_clustering(
    f: Callable[[Array], Array], gamma: ArrayLike, strength: ArrayLike, *, centred: bool = True
) -> Clustering:
    """Which eigenvector of a kernel matrix knows the two classes, how much of them, and from which distance on.

    Setting     x = ±μ + z in R^p, z ~ N(0, I), n points, balanced classes; K_ij = f(|x_i − x_j|²/p), or PKP, centred;
                `gamma` c = p/n, `strength` ρ = |μ|² = |μ₁ − μ₂|²/4
    Result      a = −2f'(2), κ = f(0) − f(2) + 2f'(2); bulk (a/c)[(1 − √c)², (1 + √c)²] + κ
                ρ > √c: eigenvalue (a/c)(1 + ρ + c + c/ρ) + κ, overlap A = (ρ² − c)/(ρ(ρ + 1)), error Q(√(A/(1 − A)))
                norms: θ = f''(2)/(−f'(2)) for PKP, less −f'(2)/f(2) for K; θ > 1 + √c: eigenvalue
                (a/c)(θ + cθ/(θ − 1)) + κ of overlap 1 − c/(θ − 1)² with |z_i|²/p − 1
                K itself has one more eigenvalue, n f(2) to leading order, along (1, …, 1)
    Validity    f'(2) < 0; balanced classes of covariance I; p, n → ∞. For K itself f(2) ≠ 0
    References  couillet2016; baik2005

    >>> found = kernel_clustering(lambda t: jnp.exp(-t / 2), 0.5, 2.0)
    >>> [round(float(part), 10) for part in found[:3]], [round(float(part), 10) for part in found.edges]
    ([3.0233369264, 0.5833333333, 0.1183617853], [0.3273592511, 2.4083996312])
    """
    c, rho = number("gamma", gamma, POSITIVE, "p/n"), number("strength", strength, POSITIVE, "|μ|²")
    at = distance_expansion(f)
    if known(at) and not float(at.slope) < 0:
        raise OutsideValidity(
            f"f has the slope {float(at.slope):.6g} at 2; it must fall there, f'(2) < 0: a kernel of distances that "
            "does "
            "not fall is not informative through the means"
        )
    if not centred and known(at) and float(at.value) == 0:
        raise OutsideValidity("f(2) = 0: without its direction of ones K is another matrix; take centred=True")
    unit, shift = -2 * at.slope / c, at.diagonal - at.value + 2 * at.slope
    root = jnp.sqrt(c)
    edges = unit * jnp.stack([(1 - root) ** 2, (1 + root) ** 2]) + shift
    out = rho > root
    safe = jnp.where(out, rho, 2 * root + 1)
    overlap = jnp.where(out, (safe - root) * (safe + root) / (safe * (safe + 1)), 0.0)
    informative = jnp.where(out, unit * (1 + safe) * (1 + c / safe) + shift, edges[1])
    theta = at.curvature / -at.slope
    if not centred:
        # Beside the direction of ones f'(ψ1' + 1ψ') acts like −(f'²/f(2))ψψ'.
        theta = theta + at.slope / at.value
    beyond = theta > 1 + root
    far = jnp.where(beyond, theta, 2 + root)
    norm = jnp.where(beyond, unit * far * (1 + c / (far - 1)) + shift, edges[1])
    before = jnp.where(beyond & (norm > informative), 1.0, 0.0)
    if not centred:
        before = before + jnp.where(at.value > 0, 1.0, 0.0)
    # Q(√(A/(1 − A))) with A/(1 − A) = (ρ² − c)/(ρ + c)
    odds = jnp.where(out, (safe - root) * (safe + root) / (safe + c), 0.0)
    return Clustering(
        informative,
        overlap,
        ndtr(-jnp.where(out, jnp.sqrt(jnp.where(out, odds, 1.0)), 0.0)),
        root,
        edges,
        shift,
        norm,
        jnp.where(beyond, 1 - c / (far - 1) ** 2, 0.0),
        jnp.where(out, 1 + before, 0.0),
    )
