"""E σ(u)σ(v) and E σ'(u)σ'(v) for all pairs of many points: in closed form, by a series, or pair by pair."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from deeplimits.models.activations import ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics.arguments import known
from deeplimits.theory.gaussian.dual_activations import closed_form, dual, dual_derivative
from deeplimits.theory.gaussian.duals.numerical import Series, numerical_dual
from deeplimits.theory.gaussian.pairs import Pair, pair


def dual_matrix(activation: ActivationLike, kernel: Float[Array, "n n"], *, slope: bool = False) -> Float[Array, "n n"]:
    """E σ(u_i)σ(u_j) for all i and j, u ~ N(0, `kernel`); with `slope` E σ'(u_i)σ'(u_j).

    Setting     a kernel matrix, whose entries may exceed √(K_ii K_jj) by rounding
    Result      closed forms where there are some; for smooth activations a Hermite series that is right to 1e-12 at
                all of the variances; quadrature of every pair where neither is known to do

    >>> dual_matrix("square", jnp.eye(2)).round(12).tolist()
    [[3.0, 1.0], [1.0, 3.0]]
    """
    a = jnp.einsum("ii->i", kernel)
    left, right = a[:, None], a[None, :]
    largest = jnp.sqrt(left) * jnp.sqrt(right)
    inner = jnp.clip(kernel, -largest, largest)
    if closed_form(activation) is None and known(a) and a.size:
        chosen = numerical_dual(named(activation), np.asarray(a))
        if isinstance(chosen, Series):
            return _summed(chosen, "slope" if slope else "value", a, inner)
    return (dual_derivative if slope else dual)(activation, left, right, inner)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _summed(series: Series, method: str, a, inner):
    # Coefficients belong to points, not to pairs.
    where, root = pair(a[:, None], a[None, :], inner), jnp.sqrt(a)
    return getattr(series, method)(Pair(root[:, None], root[None, :], where.gap, where.cogap))
