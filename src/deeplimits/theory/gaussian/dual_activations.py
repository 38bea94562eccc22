r"""Dual activations: K(a, b, c) = E σ(u)σ(v) and K̇(a, b, c) = E σ'(u)σ'(v) for Gaussian u, v.

a = Var u, b = Var v, c = Cov(u, v). By Price's theorem ∂K/∂c = K̇.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from deeplimits.models.activations import ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics.arguments import known
from deeplimits.numerics.checks import valid
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.gaussian.closed_forms import closed_forms
from deeplimits.theory.gaussian.duals.abstract_dual import Dual
from deeplimits.theory.gaussian.duals.numerical import Quadrature, check_moments
from deeplimits.theory.gaussian.pairs import check_covariance, pair


def closed_form(activation: ActivationLike) -> Dual | None:
    """The dual of an activation in closed form, if it has one.

    >>> closed_form("relu") is not None, closed_form("tanh") is None
    (True, True)
    """
    return closed_forms(activation).dual


def dual_of(activation: ActivationLike) -> Dual:
    """The dual of an activation: in closed form where there is one, by quadrature otherwise.

    >>> type(dual_of("tanh")).__name__
    'Quadrature'
    """
    return closed_form(activation) or Quadrature(named(activation))


def dual(activation: ActivationLike, a: ArrayLike, b: ArrayLike, c: ArrayLike) -> Floats:
    """E σ(u)σ(v) for Gaussian u, v with variances a, b and covariance c; arrays of any shape that broadcast.

    Setting     K(a, b, c) = E σ(u)σ(v), (u, v) ~ N(0, [[a, c], [c, b]])
    Result      closed forms for piecewise linear, step, sign, powers of ReLU, erf, Φ, GELU, sin, cos, exp, bell and
                polynomials; quadrature with 1e-10 relative accuracy for everything else
    Validity    E σ² finite; a, b ≥ 0, c² ≤ ab; right at c = ±√(ab), next to it, and at variance 0. Derivatives with
                respect to a, b, c are those from inside at c² = ab; infinite ones and those at variance 0 are put to 0
    References  cho2009; williams1997; daniely2016

    >>> [round(float(dual(name, 1.3, 0.7, 0.5)), 12) for name in ("relu", "erf", "gelu")]
    [0.29820159978, 0.220994228495, 0.221525972544]
    """
    return _finite(_run(dual_of(activation), "value", a, b, c), activation, "E σ(u)σ(v)")


def dual_derivative(activation: ActivationLike, a: ArrayLike, b: ArrayLike, c: ArrayLike) -> Floats:
    """E σ'(u)σ'(v) for Gaussian u, v with variances a, b and covariance c; arrays of any shape that broadcast.

    For step and sign it is ∂K/∂c, infinite at c² = ab: an error is raised there.

    >>> [round(float(dual_derivative(name, 1.3, 0.7, 0.5)), 12) for name in ("relu", "erf", "gelu")]
    [0.337807025566, 0.460641900512, 0.344603980398]
    """
    return _finite(_run(dual_of(activation), "slope", a, b, c), activation, "E σ'(u)σ'(v)")


@functools.partial(jax.jit, static_argnums=(0, 1))
def _compiled(of: Dual, method: str, a, b, c):
    return getattr(of, method)(pair(a, b, c))


def _run(of: Dual, method: str, a, b, c):
    check_covariance(a, b, c)
    if isinstance(of, Quadrature) and known(a, b):
        check_moments(of.activation, method, np.concatenate([np.ravel(np.asarray(v, float)) for v in (a, b)]))
    return _compiled(of, method, a, b, c)


def _finite(found, activation: ActivationLike, what: str):
    return valid(
        found,
        jnp.isfinite(found),
        f"{what} is infinite for {named(activation).name} at some of these variances: a step has no tangent kernel on "
        "the diagonal, and exponential growth overflows at large variance; take other inputs or another activation",
    )
