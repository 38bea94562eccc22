"""Gradient flow of any model linearized at its start: the parameters, the outputs and where they end."""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.numerics.arguments import COUNT, POSITIVE, UNTIL_THE_END, argument, array
from deeplimits.numerics.checks import valid
from deeplimits.numerics.ranks import same_rank
from deeplimits.numerics.shapes import Floats


class LinearizedFlow(NamedTuple):
    """The linearized model at the given times, a leading axis for each axis of them."""

    parameters: Float[Array, "... p"]
    """θ̄_t."""
    outputs: Float[Array, "... n"]
    """f₀ + J₀(θ̄_t − θ₀) on the training points."""
    displacement: Floats
    """‖θ̄_t − θ₀‖."""
    interpolant: Float[Array, " p"]
    """θ₀ + J₀⁺(y − f₀): of all parameters that fit best, those closest to the start."""
    regression_targets: Float[Array, " n"]
    """ỹ = y − f₀ + J₀θ₀: the linearized model is least squares with design J₀ and these targets."""


def linearized_flow(
    jacobian: ArrayLike, outputs: ArrayLike, targets: ArrayLike, start: ArrayLike, times: ArrayLike
) -> LinearizedFlow:
    """Gradient flow of the model f₀ + J₀(θ − θ₀) on (1/2n)‖y − f‖², from θ₀, at the given times.

    Setting     J₀ = Df(θ₀) of shape (n, p), f₀ = f(θ₀) and y of shape (n,), θ₀ of shape (p,); θ̄' = (1/n)J₀'(y − f₀ −
                J₀(θ̄ − θ₀)), the linearization of θ' = (1/n)J(θ)'(y − f(θ))
    Result      with J₀ = U s V': θ̄_t = θ₀ + V diag((1 − e^{−s²t/n})/s) U'(y − f₀), ȳ_t − y = e^{−J₀J₀'t/n}(f₀ − y);
                t = ∞: the interpolant closest to θ₀. Gradient descent: `linearized_descent`
    Validity    exact for the linearized model; for the model itself see `lazy_training_bounds`
    References  jacot2018; chizat2019; bartlett2021 Sec 5

    >>> found = linearized_flow([[1.0, 0.0], [0.5, 0.75**0.5]], [0.0, 0.0], [1.0, 0.0], [0.0, 0.0], 3.0)
    >>> [round(float(part), 12) for part in found.outputs]
    [0.711117111349, 0.18348366409]
    """
    t = argument("times", times, UNTIL_THE_END)
    return _linearized(
        jacobian,
        outputs,
        targets,
        start,
        lambda rate: -jnp.expm1(-_finite(jnp.multiply(*same_rank(t[..., None], rate)))),
    )


def linearized_descent(
    jacobian: ArrayLike, outputs: ArrayLike, targets: ArrayLike, start: ArrayLike, step: ArrayLike, steps: ArrayLike
) -> LinearizedFlow:
    """As `linearized_flow`, after `steps` steps of gradient descent of size η: (1 − ηs²/n)^k in place of e^{−s²t/n}.

    Steps of 2n/s_max² or more diverge and are refused.

    >>> found = linearized_descent([[1.0], [0.0]], [0.0, 0.0], [1.0, 1.0], [0.0], 1.0, [1, 2])
    >>> found.parameters.tolist()
    [[0.5], [0.75]]
    """
    eta = argument("step", step, POSITIVE)
    counts = argument("steps", steps, COUNT)[..., None]

    def progress(rates):
        rate, k = same_rank(rates, counts)
        shrink = valid(eta * rate, eta * rate < 2, "step is not below 2n/s_max²: gradient descent diverges")
        sign = jnp.where((shrink > 1) & (jnp.mod(k, 2) == 1), -1.0, 1.0)
        away = jnp.abs(1 - shrink)
        power = jnp.exp(k * jnp.log(jnp.where(away > 0, away, 1.0)))
        return 1 - sign * jnp.where((away > 0) | (k == 0), power, 0.0)

    return _linearized(jacobian, outputs, targets, start, progress)


def _finite(exponent):
    # An infinite time times a rate of zero is a direction that never moves.
    return jnp.where(jnp.isnan(exponent), 0.0, exponent)


def _linearized(jacobian, outputs, targets, start, progress) -> LinearizedFlow:
    j = array("jacobian", jacobian, ("n", "p"), why="outputs by parameters")
    n, p = j.shape
    f0, y = array("outputs", outputs, (n,)), array("targets", targets, (n,))
    theta = array("start", start, (p,))
    left, s, right = jnp.linalg.svd(j, full_matrices=False)
    kept = s > max(n, p) * jnp.finfo(s.dtype).eps * s[0]
    pull = jnp.where(kept, left.T @ (y - f0) / jnp.where(kept, s, 1.0), 0.0)
    done, alive, driven = same_rank(progress(jnp.where(kept, s, 0.0) ** 2 / n), kept, pull)
    moved = (jnp.where(alive, done, 0.0) * driven) @ right
    parameters, found = jnp.add(*same_rank(theta, moved)), jnp.add(*same_rank(f0, moved @ j.T))
    return LinearizedFlow(parameters, found, jnp.linalg.norm(moved, axis=-1), theta + pull @ right, y - f0 + j @ theta)
