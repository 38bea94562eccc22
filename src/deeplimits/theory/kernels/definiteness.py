r"""When is the Gram matrix of a random-feature kernel positive definite?"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from deeplimits.errors import ParameterError
from deeplimits.models.activations import ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.theory.gaussian import dual, hermite_coefficients

DEGREE = 40
CLOSE = 1e-12


class Definiteness(NamedTuple):
    """The least eigenvalue of E σ(w·x_a)σ(w·x_b), and what the theorem says about it."""

    least_eigenvalue: float
    guaranteed: bool
    """Whether the criterion below proves positive definiteness for these points."""
    antipodal_pairs: int
    even_degrees: int
    """Nonzero Hermite coefficients of even degree, up to degree 40."""
    odd_degrees: int


def gram_definiteness(activation: ActivationLike, points: ArrayLike) -> Definiteness:
    r"""Least eigenvalue of E σ(w·x_a)σ(w·x_b) for unit vectors, and whether it must be positive.

    Setting     unit vectors x_a (rows of `points`), w ~ N(0, I), σ = Σ_k s_k He_k/√k!
    Result      E σ(w·x_a)σ(w·x_b) = Σ_k s_k²(x_a·x_b)^k. If σ is not a polynomial, the matrix is positive definite
                whenever x_a ≠ ±x_b for all pairs. With antipodal pairs the sums and differences over a pair decouple:
                infinitely many nonzero s_k of each parity suffice; an odd or even σ is then singular, and so is ReLU
                (s_3 = s_5 = … = 0) as soon as there are more antipodal pairs than dimensions
    Validity    unit inputs, no two equal; infinitely many coefficients are judged by those up to degree 40, so
                `guaranteed` is False for polynomials and where a parity has fewer than five there
    References  daniely2016; du2019

    >>> import numpy as np
    >>> angles = np.pi * np.arange(4) / 4
    >>> found = gram_definiteness("relu", np.stack([np.cos(angles), np.sin(angles)], axis=1))
    >>> round(found.least_eigenvalue, 12), found.guaranteed
    (0.017977920665, True)
    """
    x = np.asarray(points, float)
    if x.ndim != 2 or not x.size or np.any(np.abs(np.sum(x**2, axis=1) - 1) > 1e-8):
        raise ParameterError("points must be a matrix (n, d) whose rows have length one; divide each by its norm")
    cosines = np.clip(x @ x.T, -1.0, 1.0)
    np.fill_diagonal(cosines, 1.0)
    apart = np.triu_indices(len(x), 1)
    if np.any(cosines[apart] > 1 - CLOSE):
        raise ParameterError("points contains the same point twice; the matrix is then singular, so remove one")
    chosen = named(activation)
    expansion = hermite_coefficients(lambda z: np.asarray(chosen.value(jnp.asarray(z))), DEGREE)
    present = ~expansion.vanishes()
    even, odd = int(present[::2].sum()), int(present[1::2].sum())
    antipodal = int(np.sum(cosines[apart] < -1 + CLOSE))
    least = float(np.linalg.eigvalsh(np.asarray(dual(chosen, 1.0, 1.0, cosines)))[0])
    # Five of one parity below degree 40 do not belong to a polynomial that a person would write down.
    endless_even, endless_odd = even >= 5, odd >= 5
    guaranteed = (endless_even or endless_odd) if antipodal == 0 else (endless_even and endless_odd)
    return Definiteness(least, guaranteed, antipodal, even, odd)
