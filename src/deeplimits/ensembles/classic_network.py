"""A small classic: ten points in the plane, 23 parameters, sigmoids, stochastic gradient descent on single points."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int, PRNGKeyArray

from deeplimits.ensembles import trainers
from deeplimits.ensembles.trainers import Marks
from deeplimits.errors import ParameterError
from deeplimits.numerics.arguments import POSITIVE, number, whole
from deeplimits.numerics.ranks import same_rank
from deeplimits.numerics.shapes import Scalar

POINTS = np.array(
    [[0.1, 0.1], [0.3, 0.4], [0.1, 0.5], [0.6, 0.9], [0.4, 0.2],
     [0.6, 0.3], [0.5, 0.6], [0.9, 0.2], [0.4, 0.4], [0.7, 0.6]]
)  # fmt: skip
"""The ten points, as rows."""
TARGETS = np.array([[1.0, 0.0]] * 5 + [[0.0, 1.0]] * 5)
"""Five points of the first class, five of the second, coded by two outputs."""


class ClassicNetwork(NamedTuple):
    """Weights and biases of the layers 2 → 2 → 3 → 2."""

    w2: Float[Array, "2 2"]
    w3: Float[Array, "3 2"]
    w4: Float[Array, "2 3"]
    b2: Float[Array, " 2"]
    b3: Float[Array, " 3"]
    b4: Float[Array, " 2"]


SHAPES = ((2, 2), (3, 2), (2, 3), (2,), (3,), (2,))
PARAMETERS = sum(int(np.prod(shape)) for shape in SHAPES)


def from_values(values: ArrayLike) -> ClassicNetwork:
    """The network whose parameters W₂, W₃, W₄ (row by row), b₂, b₃, b₄ are these 23 numbers.

    >>> from_values(np.arange(23.0)).w3.tolist()
    [[4.0, 5.0], [6.0, 7.0], [8.0, 9.0]]
    """
    values = jnp.asarray(values, float)
    if values.shape != (PARAMETERS,):
        raise ParameterError(f"values of shape {values.shape} are not allowed; the network has {PARAMETERS} parameters")
    ends = np.cumsum([int(np.prod(shape)) for shape in SHAPES])
    parts = jnp.split(values, ends[:-1])
    return ClassicNetwork(*(part.reshape(shape) for part, shape in zip(parts, SHAPES, strict=True)))


def random_network(key: PRNGKeyArray) -> ClassicNetwork:
    """Independent Gaussian weights and biases of variance 1/4.

    >>> random_network(jax.random.key(0)).w3.shape
    (3, 2)
    """
    return from_values(0.5 * jax.random.normal(key, (PARAMETERS,)))


def outputs(network: ClassicNetwork, x: Float[Array, "... 2"]) -> Float[Array, "... 2"]:
    """a₂ = s(W₂x + b₂), a₃ = s(W₃a₂ + b₃), a₄ = s(W₄a₃ + b₄), with the logistic s(t) = 1/(1 + e^{−t})."""
    for w, b in ((network.w2, network.b2), (network.w3, network.b3), (network.w4, network.b4)):
        x = jax.nn.sigmoid(jnp.add(*same_rank(x @ w.T, b)))
    return x


def point_loss(network: ClassicNetwork, x: Float[Array, " 2"], y: Float[Array, " 2"]) -> Scalar:
    """½‖y − a₄(x)‖², whose gradient is one step of the descent."""
    return jnp.sum((y - outputs(network, x)) ** 2) / 2


def cost(network: ClassicNetwork) -> Scalar:
    """(1/10)Σ ½‖y_i − a₄(x_i)‖² over the ten points; the sum of squares is twenty times this."""
    return jnp.mean(jax.vmap(partial(point_loss, network))(jnp.asarray(POINTS), jnp.asarray(TARGETS)))


def in_first_class(network: ClassicNetwork, x: Float[Array, "... 2"]) -> Array:
    """The decision: the first class where the first output is the larger one."""
    values = outputs(network, x)
    return values[..., 0] > values[..., 1]


class Training(NamedTuple):
    """The trained network, and its cost after `marks` steps."""

    network: ClassicNetwork
    marks: Int[Array, " marks"]
    costs: Float[Array, " marks"]


def train_classic_network(
    network: ClassicNetwork,
    marks: Marks,
    *,
    step: ArrayLike = 0.05,
    key: PRNGKeyArray | None = None,
    order: ArrayLike | None = None,
) -> Training:
    """Stochastic gradient descent on the ten-point problem, one point per step.

    Setting     ten points of two classes in the plane; sigmoid layers 2 → 2 → 3 → 2, 23 parameters
    Result      θ ← θ − η∇½‖y_i − a₄(x_i)‖², i uniform with replacement (`key` given), in the `order` given, from its
                beginning again when it is through, or 0, 1, …, 9, 0, … (without either);
                cost (1/10)Σ½‖y_i − a₄(x_i)‖²; a point is in the first class where the first output is the larger.
                From weights N(0, 1/4) with η = 0.05 the sum of squares rests on plateaus near 5 and 2.5 for 10⁴ to 10⁵
                steps, then falls: about 4e-3 after 3·10⁵ steps, all ten points on their side; a few seeds need longer
    Validity    η > 0; `marks` are increasing numbers of steps, after which the cost is looked at
    References  higham2019

    >>> network = from_values(0.5 * np.sin(np.arange(1, 24)))
    >>> round(20 * float(cost(network)), 12)
    5.056958775203
    >>> round(20 * float(train_classic_network(network, [1000]).costs[-1]), 12)
    5.00435341402
    """
    ends = np.atleast_1d(np.asarray(marks))
    whole("train_classic_network: marks", ends[0], 0)
    if ends.ndim != 1 or np.any(np.diff(ends) <= 0):
        raise ParameterError(f"train_classic_network: marks = {ends.tolist()} must increase; they are numbers of steps")
    step = number("train_classic_network: step", step, POSITIVE)
    if key is not None and order is not None:
        raise ParameterError("train_classic_network: key and order are both given; points are random or in an order")
    visits = jnp.arange(len(POINTS)) if order is None else _order(order)
    return Training(*_train(network, jnp.asarray(ends, int), step, key, visits))


def _order(order: ArrayLike) -> Int[Array, " visits"]:
    given = np.asarray(order)
    if given.ndim != 1 or not given.size or not np.all(np.isin(given, np.arange(len(POINTS)))):
        raise ParameterError(
            f"train_classic_network: order of shape {given.shape} is not allowed; it is a list of numbers of points, "
            f"0 to {len(POINTS) - 1}"
        )
    return jnp.asarray(given, int)


@jax.jit
def _train(network, marks, step, key, visits):
    points, targets = jnp.asarray(POINTS), jnp.asarray(TARGETS)

    def advance(index, network):
        if key is None:
            at = visits[index % len(visits)]
        else:
            at = jax.random.randint(jax.random.fold_in(key, index), (), 0, len(points))
        gradient = jax.grad(point_loss)(network, points[at], targets[at])
        return jax.tree.map(lambda part, slope: part - step * slope, network, gradient)

    def to_mark(begin, end, network):
        network = jax.lax.fori_loop(begin, end, advance, network)
        return network, cost(network)

    network, costs = trainers.to_marks(to_mark, network, marks)
    return network, marks, costs
