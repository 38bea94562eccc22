r"""The Hamiltonian of SGD with small steps, H(x, p) = log E exp(−⟨p, ∇L(x, Y)⟩), and the cost of a given path.

X_l = X_{l−1} − δ∇L(X_{l−1}, Y_l), t = δl, dimension fixed, δ → 0: a path x(t) is followed with probability
exp(−(S + o(1))/δ), S = ∫ sup_p [⟨p, ẋ⟩ − H(x, p)] dt. S vanishes for the gradient flow, and for nothing else.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import ParameterError
from deeplimits.numerics import arguments
from deeplimits.numerics.checks import valid
from deeplimits.numerics.shapes import Scalar

Hamiltonian = Callable[[Array, Array], Array]
"""H(x, p) for vectors x and p of the same length."""
MOST_STEPS = 200
UNREACHABLE = (
    "the velocity is beyond what the samples can carry, so that its cost is infinite: no distribution of the data "
    "has it for its mean; take a slower path"
)


def hamiltonian_of_data(gradient: Callable, data: ArrayLike, weights: ArrayLike | None = None) -> Hamiltonian:
    """H(x, p) = log Σ_i w_i exp(−⟨p, ∇L(x, y_i)⟩) for data that take the values y_i with probabilities w_i.

    `gradient(x, y)` is ∇_x L at a vector x and one value y, a row of `data`; the weights are equal unless given. A
    continuous law is given by the nodes of a quadrature (`numerics.panels.normal` for a Gaussian one). In the place of
    this function stands any other H(x, p) that is known in closed form.

    >>> import jax.numpy as jnp
    >>> coin = hamiltonian_of_data(lambda x, y: x - y, [-1.0, 1.0])  # log cosh p − px
    >>> round(float(coin(jnp.array([0.5]), jnp.array([2.0]))), 10)
    0.3250027474
    """
    values = arguments.argument("data", data, arguments.FINITE)
    if values.ndim == 0 or values.shape[0] == 0:
        raise ParameterError(f"data has shape {values.shape}; give one value or more, each a number or a row")
    count = values.shape[0]
    shares = jnp.full(count, 1 / count) if weights is None else arguments.probabilities("weights", weights, count)

    def hamiltonian(x, p):
        slopes = jax.vmap(lambda y: jnp.reshape(gradient(x, y), p.shape))(values)
        return jax.scipy.special.logsumexp(-slopes @ p, b=shares)

    return hamiltonian


class Lagrangian(NamedTuple):
    """sup_p [⟨p, v⟩ − H(x, p)], and the p where it is attained."""

    cost: Scalar
    momentum: Float[Array, " d"]


def lagrangian(hamiltonian: Hamiltonian, x: ArrayLike, velocity: ArrayLike) -> Lagrangian:
    """What it costs to move with this velocity at x, by Newton's method for H_p = v with halved steps.

    >>> import jax.numpy as jnp
    >>> at = lagrangian(lambda x, p: p @ p / 2 - p @ x, [1.0], [0.5])  # |v + x|²/2
    >>> round(float(at.cost), 12), round(float(at.momentum[0]), 12)
    (1.125, 1.5)
    """
    place = arguments.array("x", x, ("d",))
    speed = arguments.array("velocity", velocity, place.shape, why="a vector like x")

    def excess(p):
        return hamiltonian(place, p) - p @ speed

    slope, curvature = jax.grad(excess), jax.hessian(excess)

    def going(state):
        p, count = state
        return (jnp.max(jnp.abs(slope(p))) > 1e-12 * (1 + jnp.max(jnp.abs(speed)))) & (count < MOST_STEPS)

    def advance(state):
        p, count = state
        here, matrix = excess(p), curvature(p)
        least = 1e-14 * (jnp.trace(jnp.abs(matrix)) + 1e-300)
        move = -jnp.linalg.solve(matrix + least * jnp.eye(p.size), slope(p))
        # The largest of the halved steps that brings the excess down; a convex function has one.
        sizes = 2.0 ** -jnp.arange(30.0)
        values = jax.vmap(lambda size: excess(p + size * move))(sizes)
        better = values < here + 1e-15 * (1 + jnp.abs(here))
        return p + sizes[jnp.argmax(better)] * move, count + 1

    p, _ = jax.lax.while_loop(going, advance, (jnp.zeros_like(place), 0))
    # Where Newton does not arrive there is nothing to arrive at: H grows too slowly to reach this velocity.
    found = jnp.max(jnp.abs(slope(p))) <= 1e-8 * (1 + jnp.max(jnp.abs(speed)))
    return valid(Lagrangian(-excess(p), p), found & jnp.all(jnp.isfinite(p)), UNREACHABLE)


def path_action(hamiltonian: Hamiltonian, path: ArrayLike, times: ArrayLike) -> Scalar:
    """S = ∫ sup_p [⟨p, ẋ⟩ − H(x, p)] dt of a path through these points at these times, joined by straight lines.

    SGD with step δ stays near the path with probability exp(−(S + o(1))/δ). By the midpoint rule: of a smooth path
    with n points the error is O(1/n²).

    >>> import numpy as np
    >>> times = np.linspace(0.0, 1.0, 201)
    >>> round(float(path_action(lambda x, p: p @ p / 2 - p @ x, np.sinh(times)[:, None], times)), 4)  # ½∫e^{2t}
    1.5973
    """
    points = arguments.array("path", path, ("n", "d"), why="one point in each row")
    moments = arguments.times("times", times)
    if moments.shape != points.shape[:1] or len(moments) < 2:
        raise ParameterError(f"path has {len(points)} points and times has {len(moments)}; give as many, two or more")
    lengths = jnp.diff(moments)
    middles, speeds = (points[1:] + points[:-1]) / 2, jnp.diff(points, axis=0) / lengths[:, None]
    costs = jax.lax.map(lambda at: lagrangian(hamiltonian, *at).cost, (middles, speeds))
    return jnp.sum(costs * lengths)


def as_vector(name: str, value: ArrayLike) -> np.ndarray:
    """A number or a vector, as a vector on the host."""
    return np.asarray(arguments.array(name, np.atleast_1d(np.asarray(value, float)), ("d",)))
