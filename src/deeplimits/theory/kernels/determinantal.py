r"""Determinantal point processes: random subsets that repel each other, with probabilities given by a kernel."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.numerics.shapes import Scalar
from deeplimits.theory.kernels import positive


class Cardinality(NamedTuple):
    """The law of the number of points: a sum of independent Bernoulli(l_i/(1 + l_i))."""

    mean: Scalar
    variance: Scalar
    probabilities: Float[Array, " n+1"]


def subset_probability(kernel: ArrayLike, subset: Sequence[int]) -> Scalar:
    r"""The probability that an L-ensemble is exactly the given subset.

    Setting     L positive semidefinite (n, n) with eigenvalues l_i; S a random subset of {0, …, n−1}
    Result      P(S) = det L_S/det(I + L); marginal kernel K = L(I + L)⁻¹ with P(A ⊂ S) = det K_A (`marginal_kernel`,
                `inclusion_probability`); |S| is a sum of independent Bernoulli(l_i/(1 + l_i)) (`cardinality`)
    Validity    L positive semidefinite; eigenvalues of a marginal kernel lie in [0, 1]
    References  hough2006; kulesza2012

    >>> L = [[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]]
    >>> round(float(subset_probability(L, [])), 12), round(float(subset_probability(L, [0, 2])), 12)
    (0.047619047619, 0.190476190476)
    """
    found = positive.modes(kernel)
    chosen = _subset(subset, found.eigenvalues.shape[0])
    part = jnp.asarray(kernel, float)[np.ix_(chosen, chosen)]
    sign, log = jnp.linalg.slogdet(part) if len(chosen) else (jnp.ones(()), jnp.zeros(()))
    return jnp.where(sign > 0, jnp.exp(log - jnp.sum(jnp.log1p(found.eigenvalues))), 0.0)


def marginal_kernel(kernel: ArrayLike) -> Float[Array, "n n"]:
    """K = L(I + L)⁻¹, whose minors are the probabilities that points are included.

    >>> marginal_kernel([[1.0, 0.0], [0.0, 3.0]]).round(12).tolist()
    [[0.5, 0.0], [0.0, 0.75]]
    """
    found = positive.modes(kernel)
    return (found.vectors * (found.eigenvalues / (1 + found.eigenvalues))[None, :]) @ found.vectors.T


def inclusion_probability(marginal: ArrayLike, subset: Sequence[int]) -> Scalar:
    """P(A ⊂ S) = det K_A for a marginal kernel K, whose eigenvalues must lie in [0, 1].

    >>> round(float(inclusion_probability([[0.5, 0.1], [0.1, 0.5]], [0, 1])), 12)
    0.24
    """
    found = positive.modes(marginal, name="marginal")
    largest = float(found.eigenvalues[-1])
    if largest > 1 + positive.TOLERANCE:
        raise OutsideValidity(
            f"marginal has the eigenvalue {largest:.6g}; those of a marginal kernel lie in [0, 1], so give "
            "L(I + L)⁻¹ rather than L"
        )
    chosen = _subset(subset, found.eigenvalues.shape[0])
    return jnp.linalg.det(jnp.asarray(marginal, float)[np.ix_(chosen, chosen)]) if len(chosen) else jnp.ones(())


def cardinality(kernel: ArrayLike) -> Cardinality:
    """Mean, variance and law of |S|, from the eigenvalues of L.

    >>> found = cardinality([[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]])
    >>> round(float(found.mean), 12), round(float(found.probabilities[0]), 12)
    (1.809523809524, 0.047619047619)
    """
    eigenvalues = positive.modes(kernel).eigenvalues
    p = eigenvalues / (1 + eigenvalues)
    count = p.shape[0]

    # Multiply the generating functions 1 − p + p z one by one.
    def one_more(law, chance):
        return law * (1 - chance) + jnp.concatenate([jnp.zeros(1), law[:-1]]) * chance, None

    law, _ = jax.lax.scan(one_more, jnp.zeros(count + 1).at[0].set(1.0), p)
    return Cardinality(jnp.sum(p), jnp.sum(p * (1 - p)), law)


def _subset(subset: Sequence[int], count: int) -> np.ndarray:
    given = np.asarray(list(subset), dtype=float)
    # What is no number is no index either.
    chosen = np.where(np.isfinite(given), given, -1.0).astype(int)
    if (
        np.any(chosen != given)
        or len(set(chosen.tolist())) != len(chosen)
        or np.any(chosen < 0)
        or np.any(chosen >= count)
    ):
        raise ParameterError(f"subset = {list(subset)} is not allowed; it holds distinct indices from 0 to {count - 1}")
    return chosen
