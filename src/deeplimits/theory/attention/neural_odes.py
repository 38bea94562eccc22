"""Residual networks with steps 1/L are Euler's method: the flow that they approach, its Jacobian, and their error."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import ParameterError
from deeplimits.numerics import arguments, flows
from deeplimits.numerics.shapes import Floats

LARGE = 300.0
"""Beyond this a hyperbolic sine is half an exponential to all digits."""


class NeuralODE(NamedTuple):
    """The end of a flow, its derivative by the start, and the first order of the error of L layers."""

    end: Float[Array, " d"]
    jacobian: Float[Array, "d d"]
    first_error: Float[Array, " d"]
    """lim L(x_L − x(T)) as L → ∞."""


def neural_ode(
    block: Callable[[Array, Array], Array], start: ArrayLike, time: ArrayLike, *, rtol: float = 1e-11
) -> NeuralODE:
    """ẋ = f(t, x) for a residual block f, from x(0) to x(T), with J = ∂x(T)/∂x(0).

    J̇ = ∂_xf J. A step h = T/L of Euler's misses h²ẍ/2, so that x_L = x(T) + hδ + O(h²) with
    δ̇ = ∂_xf δ − (∂_tf + ∂_xf f)/2. Reference: E (2017); Chen et al. (2018).

    >>> found = neural_ode(lambda t, x: jnp.tanh(x), [0.5], 1.0)
    >>> round(float(found.end[0]), 10), round(float(found.jacobian[0, 0]), 10)
    (1.1475259137, 1.7678045365)
    >>> round(float(found.first_error[0]), 6)
    -0.232719
    """
    x = arguments.array("start", start, ("d",))
    t = arguments.number("time", time, arguments.POSITIVE)
    d = x.shape[0]
    shape = jax.eval_shape(block, jnp.zeros(()), x).shape
    if shape != x.shape:
        raise ParameterError(
            f"block gives shape {shape} from shape {x.shape}; what is added must have the state's shape"
        )

    def field(now, state):
        place, jacobian, error = state
        speed = block(now, place)
        slope = jax.jacfwd(lambda y: block(now, y))(place)
        _, drift = jax.jvp(lambda s: block(s, place), (now,), (jnp.ones_like(now),))
        return speed, slope @ jacobian, slope @ error - (drift + slope @ speed) / 2

    begin = (x, jnp.eye(d), jnp.zeros(d))
    end, jacobian, error = flows.solve(field, begin, t[None], rtol=rtol, atol=1e-13).states
    return NeuralODE(end[0], jacobian[0], t * error[0])


def tanh_flow(start: ArrayLike, slope: ArrayLike, weight: ArrayLike, time: ArrayLike) -> Floats:
    """x(t) of the scalar ẋ = w tanh(ax): sinh(a x(t)) = sinh(a x₀) e^{awt}.

    >>> round(float(tanh_flow(0.5, 1.0, 1.0, 1.0)), 12)
    1.147525913662
    """
    x, a, w, t = (
        arguments.argument(name, value, arguments.FINITE)
        for name, value in (("start", start), ("slope", slope), ("weight", weight), ("time", time))
    )
    safe = jnp.where(a == 0, 1.0, a)
    far, grown = jnp.abs(safe * x), safe * w * t
    # Where sinh or the exponential is too large: log 2sinh u = u + log(1 − e^{−2u}), arcsinh(e^L/2) = L + O(e^{−2L}).
    large = jnp.maximum(far, far + grown) > LARGE
    level = jnp.where(far > 0, far, 1.0)
    logarithm = level + jnp.log(-jnp.expm1(-2 * level)) + grown
    asymptote = jnp.where(logarithm > LARGE / 2, logarithm, jnp.arcsinh(jnp.exp(jnp.minimum(logarithm, LARGE)) / 2))
    near = jnp.where(large, 0.0, safe * x), jnp.where(large, 0.0, grown)
    reached = jnp.arcsinh(jnp.sinh(near[0]) * jnp.exp(near[1]))
    beyond = jnp.where(far > 0, jnp.sign(safe * x) * asymptote, 0.0)
    return jnp.where(a == 0, x, jnp.where(large, beyond, reached) / safe)
