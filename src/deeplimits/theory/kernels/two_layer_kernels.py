r"""Tangent kernels of networks with one hidden layer, f(x) = m^{−1/2} Σ_j a_j σ(⟨w_j, x⟩), w_j ~ N(0, I).

Inner weights trained: (1/m) Σ a_j² σ'(u_j)σ'(v_j) x·x'; outer weights trained: (1/m) Σ σ(u_j)σ(v_j); u_j = ⟨w_j, x⟩,
v_j = ⟨w_j, x'⟩. The functions below take inputs through a = |x|², b = |x'|², c = x·x'.
"""

import functools
from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import ParameterError
from deeplimits.models.activations import Activation, ActivationLike, relu_power
from deeplimits.models.activations import activation as named
from deeplimits.numerics.arguments import array
from deeplimits.numerics.shapes import Floats, Scalar
from deeplimits.theory.gaussian import dual, dual_derivative
from deeplimits.theory.gaussian.quadrature import expect_jointly
from deeplimits.theory.kernels import positive


class Gram(NamedTuple):
    """The two parts of a two-layer network's tangent kernel, in the mean."""

    outer: Floats
    """From training the outer weights: E σσ."""
    inner: Floats
    """From training the inner weights: E a² · x·x' E σ'σ'."""

    @property
    def ntk(self) -> Floats:
        return self.outer + self.inner


def two_layer_gram(
    activation: ActivationLike, a: ArrayLike, b: ArrayLike, c: ArrayLike, *, output_second_moment: ArrayLike = 1.0
) -> Gram:
    r"""Both parts of the tangent kernel of a two-layer network, for inputs with |x|² = a, |x'|² = b, x·x' = c.

    Setting     z = m^(−1/2) Σ_j v_j σ(⟨w_j, x⟩), w_j ~ N(0, I), E v² = `output_second_moment` (1/3 for uniform v)
    Result      K = K_outer + K_inner, K_outer = E σ(u)σ(v), K_inner = E v² · c E σ'(u)σ'(v); both positive
                semidefinite, so K ≥ each. On the unit sphere, with Hermite coefficients s_k: K_outer = Σ s_k² ρ^k,
                K_inner = Σ k s_k² ρ^k. ReLU: (√(1−ρ²) + ρ(π−θ))/2π and ρ(π−θ)/2π, θ = arccos ρ
    Validity    exact means at every width; entries of a finite network deviate by O(m^(−1/2))
    References  du2019; cho2009

    >>> found = two_layer_gram("relu", 1.0, 1.0, 0.6)
    >>> round(float(found.outer), 12), round(float(found.inner), 12)
    (0.338773783883, 0.21144982941)
    """
    inner = jnp.asarray(c, float) * dual_derivative(activation, a, b, c) * jnp.asarray(output_second_moment, float)
    return Gram(dual(activation, a, b, c), inner)


def two_layer_ntk(activation: ActivationLike, x1: ArrayLike, x2: ArrayLike | None = None) -> Float[Array, "n1 n2"]:
    r"""Tangent kernel of a two-layer network with both layers trained, at the rows of x1 and x2.

    Setting     f(x) = N^(−1/2) Σ_{l≤N} β_l σ(⟨w_l, x⟩), standard normal β_l and w_l, both trained
    Result      K(x, y) = E σ(w·x)σ(w·y) + x·y E σ'(w·x)σ'(w·y); gradient flow on (1/2n)Σ(f − y)² from f_0 gives
                f_t(x) = f_0(x) + K(x, X)K⁻¹(I − e^{−Kt/n})(y − f_0(X)) (`regression.gradient_flow`)
    Validity    N → ∞; the kernel of a finite network deviates by O(N^(−1/2)), that of a trained one drifts by O(1/N)
    References  jacot2018; lee2019

    >>> two_layer_ntk("relu", [[1.0, 0.0]], [[0.6, 0.8]]).round(10).tolist()
    [[0.5502236133]]
    """
    left = array("x1", x1, ("n", "d"), why="one input in each row")
    right = left if x2 is None else array("x2", x2, ("n", left.shape[1]), why="as many columns as x1")
    a, b = jnp.sum(left**2, axis=1)[:, None], jnp.sum(right**2, axis=1)[None]
    product = left @ right.T
    # Rounding must not push |x·x'| above |x||x'|.
    edge = jnp.sqrt(a * b)
    product = jnp.clip(product, -edge, edge)
    if x2 is None:
        product = jnp.where(jnp.eye(left.shape[0], dtype=bool), a, product)
    return two_layer_gram(activation, a, b, product).ntk


def ntk_variance(
    activation: ActivationLike, a: ArrayLike, b: ArrayLike, c: ArrayLike, *, output_fourth_moment: ArrayLike = 3.0
) -> Floats:
    """m·Var of the empirical tangent kernel with both layers trained, E a² = 1, exact at every width.

    E(σσ + a²cσ'σ')² − K² = E σ²σ² + 2c E σσσ'σ' + E[a⁴] c² E σ'²σ'² − (E σσ + c E σ'σ')²

    >>> round(float(ntk_variance("relu", 1.34 / 3 + 0.09, 1.53 / 3 + 0.09, -0.51 / 3 + 0.09)) ** 0.5, 12)
    0.211820030679
    """
    chosen = named(activation)
    c, fourth = jnp.asarray(c, float), jnp.asarray(output_fourth_moment, float)
    value, slope = dual(chosen, a, b, c), dual_derivative(chosen, a, b, c)
    if chosen.name == "relu":
        square = dual(relu_power(2), a, b, c) + 2 * c * value + fourth * c**2 * slope
    else:
        square = expect_jointly(_fourth_order(chosen), a, b, c, c, fourth, kinks=chosen.kinks).value
    return square - (value + c * slope) ** 2


@functools.cache
def _fourth_order(chosen: Activation):
    """σ²σ² + 2c σσσ'σ' + E[a⁴] c² σ'²σ'² as a function of u, v, c and E[a⁴]: one integral."""

    def product(u, v, c, fourth):
        values = chosen.value(u) * chosen.value(v)
        slopes = c * chosen.derivative(u) * chosen.derivative(v)
        return values**2 + 2 * values * slopes + fourth * slopes**2

    return product


class FiniteKernel(NamedTuple):
    """Mean of a kernel made of m independent neurons, and m times its variance."""

    mean: Floats
    variance: Floats


def arc_cosine_ntk(a: ArrayLike, b: ArrayLike, c: ArrayLike) -> FiniteKernel:
    r"""Tangent kernel of a two-layer ReLU network with inner weights trained and |a_j| = 1.

    k = c(π − θ)/(2π), θ the angle between the inputs. At m neurons k_m/c is Binomial(m, q)/m with q = (π − θ)/2π, so
    m·Var k_m = c² q(1 − q).

    >>> found = arc_cosine_ntk(1.0, 1.0, 0.5)
    >>> round(float(found.mean), 12), round(float(found.variance), 12)
    (0.166666666667, 0.055555555556)
    """
    c = jnp.asarray(c, float)
    chance = dual("step", a, b, c)
    return FiniteKernel(c * chance, c**2 * chance * (1 - chance))


class QuadraticForm(NamedTuple):
    """Mean of (1/n)σ(wᵀX)Aσ(Xᵀw), and its standard deviation where σ is linear (nan where it is not)."""

    mean: Scalar
    linear_deviation: Scalar


def nonlinear_quadratic_form(
    activation: ActivationLike, x: ArrayLike, *, matrix: ArrayLike | None = None
) -> QuadraticForm:
    r"""Concentration of quadratic forms of random features.

    Setting     Q = (1/n) σ(wᵀX) A σ(Xᵀw), w ~ N(0, I), rows of `x` (n, p) the inputs, A symmetric (n, n), the identity
                unless given
    Result      E Q = (1/n) tr AK exactly, K = E σ(Xᵀw)σ(wᵀX); deviations are sub-exponential of size O(n^(−1/2)) for
                ‖A‖, ‖X‖ bounded; for linear σ the variance is 2 tr(AKAK)/n² exactly
    Validity    σ Lipschitz for the rate; a mean direction of size √n in X spoils it
    References  louart2018

    >>> import jax.numpy as jnp
    >>> found = nonlinear_quadratic_form("identity", jnp.eye(2))
    >>> float(found.mean), float(found.linear_deviation)
    (1.0, 1.0)
    """
    inputs = array("x", x, ("n", "d"), why="one input in each row")
    n = inputs.shape[0]
    squares = jnp.sum(inputs**2, axis=1)
    edge = jnp.sqrt(squares[:, None] * squares[None, :])
    gram = jnp.where(jnp.eye(n, dtype=bool), squares[None, :], jnp.clip(inputs @ inputs.T, -edge, edge))
    weight = jnp.eye(n) if matrix is None else positive.matrix(matrix, name="matrix")
    if weight.shape != (n, n):
        raise ParameterError(f"matrix has shape {weight.shape}; it must be ({n}, {n})")
    kernel = dual(activation, squares[:, None], squares[None, :], gram)
    sigma = named(activation)
    product = weight @ kernel
    deviation = jnp.sqrt(2 * jnp.trace(product @ product)) / n
    linear = sigma.homogeneous == 1 and not sigma.kinks
    return QuadraticForm(jnp.trace(product) / n, deviation if linear else jnp.asarray(jnp.nan))
