r"""What one step of gradient descent teaches the first layer: a rank-one gradient, a spike, a smaller risk.

f(x) = β·σ(Wx)/√N of N neurons at x ~ N(0, I_p), W of independent entries N(0, 1/p), β of entries N(0, 1/N), σ centred;
the teacher is y = g(⟨β*, x⟩) + noise, |β*| = 1, E g(ξ) = 0. `noise` is a standard deviation.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import OutsideValidity
from deeplimits.models.activations import ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.models.atoms import Atoms
from deeplimits.numerics.arguments import NOT_NEGATIVE, POSITIVE, array, known, number, whole
from deeplimits.numerics.checks import valid
from deeplimits.numerics.shapes import Floats, Scalar
from deeplimits.theory.mixtures.activation_moments import layer_moments
from deeplimits.theory.spectra.ridge_equation import effective_ridge

BLIND = 1e-12


class LinearPart(NamedTuple):
    """What is linear in an activation or a teacher: μ₁ = E σ', and the variance of the rest."""

    slope: Floats
    rest: Floats


def _parts(activation: ActivationLike) -> LinearPart:
    found = layer_moments(activation, 1.0)
    return LinearPart(found.slope, found.rest)


def first_gradient(
    activation: ActivationLike, weights: ArrayLike, beta: ArrayLike, x: ArrayLike, y: ArrayLike
) -> Float[Array, "neurons p"]:
    """The negative gradient of the squared loss in the first layer of a two-layer network.

    Setting     f(x) = β·σ(Wx)/√N, loss Σ(y_i − f(x_i))²/2n; rows of x are samples
    Result      G = (1/n)[β(y − f)'/√N ∘ σ'(WX')]X
    References  ba2022

    >>> g = first_gradient("tanh", [[0.5, -0.3], [0.2, 0.8]], [0.6, -0.4], [[1, 0.2], [-0.5, 0.7], [0.3, -1.1]], [1, -1, 0.5])
    >>> [round(float(part), 10) for part in g[0]]
    [0.1522706753, -0.0494443637]
    """  # noqa: E501
    sigma = named(activation)
    w, a, points, labels = _network(weights, beta, x, y)
    h = points @ w.T
    residual = labels - sigma.value(h) @ a / jnp.sqrt(1.0 * a.shape[0])
    # dL/dh_ik = −(y_i − f_i)β_kσ'(h_ik)/(n√N)
    slopes = residual[:, None] * a[None, :] * sigma.derivative(h) / jnp.sqrt(1.0 * a.shape[0])
    return slopes.T @ points / points.shape[0]


class RankOne(NamedTuple):
    """The rank-one part of the first gradient."""

    matrix: Float[Array, "neurons p"]
    singular_value: Scalar
    """Its one singular value."""


def rank_one_gradient(activation: ActivationLike, beta: ArrayLike, x: ArrayLike, y: ArrayLike) -> RankOne:
    """The rank-one matrix that the first gradient of a wide network is, up to smaller terms.

    Setting     as in `first_gradient`, at W of independent entries N(0, 1/p); n, p, N → ∞ together
    Result      G = (μ₁/(n√N))βy'X + E, √N|E| = O(n^(−1/2)) while √N|G| = O(1); μ₁ = E σ'(ξ)
    Validity    E σ(ξ) = 0; where E σ' = 0 the first step learns nothing in this order, and an error says so
    References  ba2022 Prop 2

    >>> found = rank_one_gradient("tanh", [0.6, -0.4], [[1, 0.2], [-0.5, 0.7], [0.3, -1.1]], [1, -1, 0.5])
    >>> round(float(found.singular_value), 10)
    0.2013458409
    """
    mu = _seen(_parts(activation).slope, activation)
    a = array("beta", beta, ("neurons",))
    points, labels = _data(x, y)
    n, width = points.shape[0], a.shape[0]
    pull = mu / (n * width**0.5) * (labels @ points)
    return RankOne(a[:, None] * pull[None, :], jnp.linalg.norm(a) * jnp.linalg.norm(pull))


def _network(weights, beta, x, y):
    points, labels = _data(x, y)
    a = array("beta", beta, ("neurons",))
    w = array("weights", weights, (a.shape[0], points.shape[1]), why="a row for each neuron")
    return w, a, points, labels


def _data(x, y):
    points = array("x", x, ("n", "p"), why="one sample in each row")
    return points, array("y", y, (points.shape[0],), why="a label for each row of x")


def _seen(slope: Array, activation: ActivationLike) -> Array:
    return valid(
        slope,
        jnp.abs(slope) > BLIND,
        f"{named(activation).name} has E σ'(ξ) = 0: the first gradient has no rank-one part, and one step of this size "
        "learns nothing of the teacher; take an activation with a linear part",
    )


class OneStepSpike(NamedTuple):
    """The first layer after one step."""

    singular_value: Floats
    """The largest; the edge 1 + √(N/p) without a spike."""
    alignment: Floats
    """⟨u, β*⟩² of its right singular vector."""
    strength: Floats
    """θ₁, the size of the step along what it takes for the teacher."""
    threshold: Floats
    """The θ₁ from which there is a spike, (N/p)^{1/4}."""
    critical_step: Floats
    """The step η at which θ₁ reaches the threshold."""


def one_step_spike(
    step: ArrayLike,
    activation: ActivationLike,
    teacher_activation: ActivationLike,
    samples_per_dimension: ArrayLike,
    neurons_per_dimension: ArrayLike,
    *,
    noise: ArrayLike = 0.0,
) -> OneStepSpike:
    """The spike that one gradient step makes in the first layer, and how much of the teacher it knows.

    Setting     W₁ = W₀ + η√N G₀, ψ₁ = n/p, ψ₂ = N/p; y = g(⟨β*, x⟩) + noise, the mean of g is taken off
    Result      θ₁ = μ₁η√((|f*|² + σ²)/ψ₁ + μ*²), θ₂ = μ₁μ*η, μ₁ = E σ', μ* = E g', |f*|² = E g²
                θ₁ > ψ₂^{1/4}: s₁ = √((1 + θ₁²)(ψ₂ + θ₁²))/θ₁,
                ⟨u₁, β*⟩² = (θ₂²/θ₁²)(1 − (ψ₂ + θ₁²)/(θ₁²(θ₁² + 1))); else s₁ = 1 + √ψ₂ and 0
    Validity    E σ' ≠ 0; n, p, N → ∞ together at fixed η; an output of its own at the start shifts s₁ by O(N^(−1/2))
    References  ba2022 Thm 3; benaych2012

    >>> found = one_step_spike(4.0, "tanh", "relu", 2.0, 1.5, noise=0.3)
    >>> [round(float(part), 9) for part in found[:3]], round(float(found.critical_step), 9)
    ([2.404391245, 0.314197411, 1.65289481], 2.678166603)
    """
    eta = number("step", step, NOT_NEGATIVE)
    psi1 = number("samples_per_dimension", samples_per_dimension, POSITIVE)
    psi2 = number("neurons_per_dimension", neurons_per_dimension, POSITIVE)
    sigma = number("noise", noise, NOT_NEGATIVE)
    mu, teacher = jnp.abs(_seen(_parts(activation).slope, activation)), _parts(teacher_activation)
    norm = teacher.rest + teacher.slope**2
    per_step = mu * jnp.sqrt((norm + sigma**2) / psi1 + teacher.slope**2)
    theta = eta * per_step
    threshold = psi2**0.25
    out = theta > threshold
    safe = jnp.where(out, theta, 2 * threshold)
    # 1 − (ψ₂ + θ²)/(θ²(θ² + 1)) = (1 − √ψ₂/θ²)(1 + √ψ₂/θ²)/(1 + 1/θ²), in 1/θ: steps may be as large as they like
    root, inverse = jnp.sqrt(psi2), (1 / safe) ** 2
    known_part = (1 - root * inverse) * (1 + root * inverse) / (1 + inverse)
    share = (mu * teacher.slope / per_step) ** 2
    return OneStepSpike(
        jnp.where(out, safe * jnp.sqrt((1 + inverse) * (1 + psi2 * inverse)), 1 + root),
        jnp.where(out, share * known_part, 0.0),
        theta,
        threshold,
        threshold / per_step,
    )


class OneStepRisk(NamedTuple):
    """Ridge regression on the features after a step."""

    risk: Floats
    """E(f̂ − f*)², without the noise of the test labels."""
    effective_ridge: Floats
    """κ"""
    kernel_bound: Floats
    """|f*|² − μ*²: what no kernel, and no step of this size, gets below."""


def one_step_ridge_risk(
    ridge: ArrayLike,
    activation: ActivationLike,
    teacher_activation: ActivationLike,
    weights: ArrayLike,
    beta: ArrayLike,
    samples: int,
    *,
    noise: ArrayLike = 0.0,
) -> OneStepRisk:
    """Risk of ridge regression on the features of given first-layer weights, before or after a step.

    Setting     features σ(Wx)/√N, centred; `weights` W of N rows as they are after the step; teacher g(⟨β*, x⟩) of
                direction `beta`, with its mean taken off; `samples` n fresh ones; Σ(y − a·features)²/n + λ|a|²
    Result      Σ = (μ₁²WW' + μ₂²I)/N, μ₂² = E σ² − μ₁², b = μ₁μ*Wβ*/√N, θ = Σ^{−1}b, σ_eff² = σ² + |f*|² − b'Σ^{−1}b;
                κ = λ + (κ/n)tr Σ(Σ + κ)^{−1}, D = tr Σ²(Σ + κ)^{−2}/n: risk (κ²θ'Σ(Σ + κ)^{−2}θ + σ_eff²)/(1 − D) − σ²
    Validity    a step η = O(1), rows of W of length about one, n, p, N → ∞ together; never below |f*|² − μ*², the best
                linear predictor. Steps of order √N learn more, and this is not their risk
    References  ba2022 Thm 5; hu2022

    >>> w = [[jnp.cos(k * j + k / 2) / 2**0.5 for j in range(1, 5)] for k in range(1, 7)]
    >>> found = one_step_ridge_risk(0.05, "tanh", "relu", w, [1.0, 0, 0, 0], 12, noise=0.3)
    >>> round(float(found.effective_ridge), 10), round(float(found.risk), 10)
    (0.0615642251, 0.1813087056)
    """
    lam, sigma = number("ridge", ridge, NOT_NEGATIVE), number("noise", noise, NOT_NEGATIVE)
    n = whole("samples", samples, 1)
    w = array("weights", weights, ("neurons", "p"), why="a row for each neuron")
    direction = array("beta", beta, (w.shape[1],), why="a coordinate for each input")
    length = jnp.linalg.norm(direction)
    if known(length) and not float(length) > 0:
        raise OutsideValidity("beta = 0 has no direction; give the teacher's direction")
    student, teacher = _parts(activation), _parts(teacher_activation)
    width = w.shape[0]
    values, vectors = jnp.linalg.eigh(w @ w.T)
    s = (student.slope**2 * jnp.maximum(values, 0.0) + student.rest) / width
    b = student.slope * teacher.slope * (vectors.T @ (w @ direction)) / (length * width**0.5)
    norm = teacher.rest + teacher.slope**2
    there = s > 1e-13 * jnp.max(s)
    inverse = jnp.where(there, 1 / jnp.where(there, s, 1.0), 0.0)
    kappa = effective_ridge(lam, Atoms(s, jnp.full((width,), 1 / width)), width / n)
    shifted = jnp.where(s + kappa > 0, s + kappa, 1.0)
    degrees = jnp.sum((s / shifted) ** 2) / n
    unexplained = sigma**2 + jnp.maximum(norm - jnp.sum(b**2 * inverse), 0.0)
    # κ²θ'Σ(Σ + κ)^{−2}θ
    missed = jnp.sum(jnp.where(there, (kappa * b / shifted) ** 2 * inverse, 0.0))
    open_ = degrees < 1
    risk = jnp.where(open_, (missed + unexplained) / jnp.where(open_, 1 - degrees, 1.0) - sigma**2, jnp.inf)
    return OneStepRisk(risk, kappa, norm - teacher.slope**2)
