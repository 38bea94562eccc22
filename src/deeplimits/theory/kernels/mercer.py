r"""Mercer expansions: a kernel as an infinite sum of squares.

T_K f(x) = ∫ K(x, y) f(y) dμ(y) has eigenpairs (λ_j, ψ_j), orthonormal in L²(μ), and K(x, y) = Σ_j λ_j ψ_j(x)ψ_j(y).
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.numerics.arguments import FINITE, POSITIVE, array, number, whole
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.kernels import positive


class Mercer(NamedTuple):
    """The largest eigenvalues, in descending order, and the eigenfunctions at points."""

    eigenvalues: Float[Array, " count"]
    functions: Callable[[ArrayLike], Floats]
    """x of shape (n,) -> ψ_j(x), of shape (n, count)."""

    def features(self, x: ArrayLike) -> Float[Array, "n count"]:
        """The feature map √λ_j ψ_j(x): its inner products are the kernel, up to the modes left out."""
        return jnp.sqrt(self.eigenvalues)[None, :] * self.functions(x)


def mercer_of_minimum(count: int) -> Mercer:
    r"""The Mercer expansion of min(x, y) on [0, 1] with the uniform law: Brownian motion.

    Setting     T_K f(x) = ∫ K(x, y)f(y) dμ(y) on L²(μ), K = Σ_j λ_j ψ_j(x)ψ_j(y), features √λ_j ψ_j(x)
    Result      min(x, y) on [0, 1]: λ_j = 1/((j − ½)²π²), ψ_j = √2 sin((j − ½)πx), j = 1, 2, … (this function)
                exp(−(x − y)²/2l²) under N(0, s²): `mercer_of_gaussian`; dot-product kernels on spheres: `sphere`
                m random points: eig(K_m)/m → λ_j (`nystrom`), error O(m^(−1/2))
    Validity    K continuous and positive semidefinite; positivity for distinct points is not needed
    References  mercer1909; rasmussen2006 Sec 4.3; koltchinskii2000

    >>> mercer_of_minimum(3).eigenvalues.round(12).tolist()
    [0.405284734569, 0.045031637174, 0.016211389383]
    """
    whole("count", count, 1)
    frequencies = (jnp.arange(1.0, count + 1.0) - 0.5) * jnp.pi

    def functions(x):
        return math.sqrt(2) * jnp.sin(array("x", x, ("n",))[:, None] * frequencies[None, :])

    return Mercer(1 / frequencies**2, functions)


def mercer_of_gaussian(count: int, *, scale: ArrayLike = 1.0, deviation: ArrayLike = 1.0) -> Mercer:
    r"""The Mercer expansion of exp(−(x − y)²/2l²) under N(0, s²), l = `scale`, s = `deviation`.

    a = 1/4s², b = 1/2l², c = √(a² + 2ab), A = a + b + c: λ_k = √(2a/A)(b/A)^k, k = 0, 1, …, and
    ψ_k(x) = (c/a)^{1/4} e^{−(c−a)x²} He_k(2√c x)/√k!.

    >>> mercer_of_gaussian(3).eigenvalues.round(10).tolist()
    [0.6180339887, 0.2360679775, 0.0901699437]
    """
    whole("count", count, 1)
    l, s = number("scale", scale, POSITIVE), number("deviation", deviation, POSITIVE)
    a, b = 1 / (4 * s**2), 1 / (2 * l**2)
    c = jnp.sqrt(a**2 + 2 * a * b)
    total = a + b + c
    degrees = jnp.arange(1.0 * count)
    eigenvalues = jnp.sqrt(2 * a / total) * (b / total) ** degrees

    def functions(x):
        points = np.asarray(array("x", x, ("n",), allowed=FINITE))
        return _hermite_functions(count, 2 * math.sqrt(c) * points, math.log(c / a) / 4 - float(c - a) * points**2)

    return Mercer(eigenvalues, functions)


def _hermite_functions(count: int, z: Float[np.ndarray, " n"], log_weight: Float[np.ndarray, " n"]) -> Array:
    """e^{log_weight} He_k(z)/√k! for k < count: He_k grows beyond the largest number where the weight is tiny."""
    last, current, log_unit = np.zeros_like(z), np.ones_like(z), log_weight
    found = [current * np.exp(log_unit)]
    for k in range(1, count):
        last, current = current, (z * current - math.sqrt(k - 1) * last) / math.sqrt(k)
        # numbers of order one, in units of e^{log_unit}
        size = np.maximum(np.maximum(np.abs(last), np.abs(current)), 1e-300)
        last, current, log_unit = last / size, current / size, log_unit + np.log(size)
        found.append(current * np.exp(log_unit))
    return jnp.asarray(np.stack(found, axis=1))


def nystrom(kernel: ArrayLike, weights: ArrayLike | None = None) -> Mercer:
    r"""Eigenvalues of a kernel from its matrix at points: eig(K)/m, or with the weights of a quadrature rule.

    Random points of law μ give an error O(m^(−1/2)); nodes and weights of a quadrature rule for μ converge as fast as
    the rule does. The functions take kernel values K(x, X) of shape (n, m) and extend
    ψ_j(x) = Σ_i w_i K(x, x_i)ψ_j(x_i)/λ_j to new points; modes that are zero up to rounding have none and are left out.

    >>> import jax.numpy as jnp
    >>> x = (jnp.arange(400.0) + 0.5) / 400
    >>> round(float(nystrom(jnp.minimum(x[:, None], x[None])).eigenvalues[0]), 4)
    0.4053
    """
    square = positive.matrix(kernel)
    count = square.shape[0]
    mass = jnp.full(count, 1 / count)
    if weights is not None:
        mass = array("weights", weights, (count,), allowed=POSITIVE, why="one weight for each point")
    root = jnp.sqrt(mass)
    found = positive.modes(root[:, None] * square * root[None, :])
    kept = np.asarray(~found.null)
    eigenvalues = found.eigenvalues[kept][::-1]
    vectors = found.vectors[:, kept][:, ::-1]

    def functions(cross):
        return positive.cross_matrix(cross, count) @ (root[:, None] * vectors) / eigenvalues[None, :]

    return Mercer(eigenvalues, functions)
