r"""Dual activations: K(a, b, c) = E σ(u)σ(v) and K̇(a, b, c) = E σ'(u)σ'(v) for Gaussian u, v.

a = Var u, b = Var v, c = Cov(u, v). By Price's theorem ∂K/∂c = K̇.
"""

import functools
from collections.abc import Callable

import jax
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import OutsideValidity
from deeplimits.models.activations import NAMED, Activation, activation
from deeplimits.theory.gaussian.duals.analytic import Bell, Erf, Exponential, Gelu, NormalCdf, Polynomial, Wave
from deeplimits.theory.gaussian.duals.base import Dual as Dual
from deeplimits.theory.gaussian.duals.homogeneous import Jump, PiecewiseLinear, ReluPower
from deeplimits.theory.gaussian.duals.numerical import Quadrature, check_moments
from deeplimits.theory.gaussian.duals.numerical import numerical_dual as numerical_dual
from deeplimits.theory.gaussian.pairs import check_covariance, pair
from deeplimits.tracing import is_traced

_CLOSED: dict[str, Dual] = {
    "step": Jump(0.0),
    "sign": Jump(-1.0),
    "erf": Erf(),
    "normal_cdf": NormalCdf(),
    "gelu": Gelu(),
    "gaussian": Bell(),
    "sin": Wave(odd=True),
    "cos": Wave(odd=False),
    "exp": Exponential(),
    "quadratic": Polynomial((0.0, 0.0, 0.5)),
}


@functools.cache
def closed_form(given: str | Activation | Callable) -> Dual | None:
    """The dual of an activation in closed form, if it has one."""
    sigma = activation(given)
    if sigma.name in _CLOSED and NAMED.get(sigma.name) is sigma:
        return _CLOSED[sigma.name]
    if sigma.name in ("identity", "relu", "abs") or sigma.name.startswith(("leaky_relu(", "piecewise_linear(")):
        return PiecewiseLinear(*sigma.parameters) if len(sigma.parameters) == 2 else None
    if sigma.name.startswith("relu_power(") and sigma.parameters:
        return ReluPower(int(sigma.parameters[0]))
    if sigma.name.startswith("polynomial(") and sigma.parameters:
        return Polynomial(sigma.parameters)
    return None


def dual_of(given: str | Activation | Callable) -> Dual:
    """The dual of an activation: in closed form where there is one, by quadrature otherwise."""
    return closed_form(given) or Quadrature(activation(given))


def dual(given: str | Activation | Callable, a: ArrayLike, b: ArrayLike, c: ArrayLike) -> Float[Array, "..."]:
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
    return _finite(_run(dual_of(given), "value", a, b, c), activation(given), "E σ(u)σ(v)")


def dual_derivative(
    given: str | Activation | Callable, a: ArrayLike, b: ArrayLike, c: ArrayLike
) -> Float[Array, "..."]:
    """E σ'(u)σ'(v) for Gaussian u, v with variances a, b and covariance c; arrays of any shape that broadcast.

    For step and sign it is ∂K/∂c, infinite at c² = ab: an error is raised there.

    >>> [round(float(dual_derivative(name, 1.3, 0.7, 0.5)), 12) for name in ("relu", "erf", "gelu")]
    [0.337807025566, 0.460641900512, 0.344603980398]
    """
    return _finite(_run(dual_of(given), "slope", a, b, c), activation(given), "E σ'(u)σ'(v)")


@functools.partial(jax.jit, static_argnums=(0, 1))
def _compiled(of: Dual, method: str, a, b, c):
    return getattr(of, method)(pair(a, b, c))


def _run(of: Dual, method: str, a, b, c):
    check_covariance(a, b, c)
    if isinstance(of, Quadrature) and not is_traced(a) and not is_traced(b):
        check_moments(of.activation, method, np.concatenate([np.ravel(np.asarray(v, float)) for v in (a, b)]))
    return _compiled(of, method, a, b, c)


def _finite(found, sigma: Activation, what: str):
    if not is_traced(found) and not np.all(np.isfinite(found)):
        raise OutsideValidity(
            f"{what} is infinite for {sigma.name} at some of these variances: a step has no tangent kernel on the "
            f"diagonal, and "
            "exponential growth overflows at large variance; take other inputs or another activation"
        )
    return found
