"""The interaction energy that attention climbs where its scores are symmetric and its values the same matrix."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jax.typing import ArrayLike

from deeplimits.errors import ParameterError
from deeplimits.numerics import arguments
from deeplimits.numerics.arguments import known
from deeplimits.numerics.shapes import Scalar
from deeplimits.theory.attention.equiangular import KINDS


class EnergyGrowth(NamedTuple):
    """The energy of tokens and how fast their flow makes it grow."""

    energy: Scalar
    growth: Scalar


def log_interaction_energy(
    tokens: ArrayLike, beta: ArrayLike, *, score: ArrayLike | None = None, normalize: bool = False
) -> Scalar:
    """log E_β, E_β(X) = (1/2βn²) Σ_ij e^{β⟨x_i, Bx_j⟩}, B symmetric (identity unless given), β > 0.

    The logarithm, because E is of the order e^β. A B that is not symmetric has no energy, and is refused.

    >>> x = jnp.array([[1.0, 0.0], [0.6, 0.8], [-0.8, 0.6]])
    >>> round(float(jnp.exp(log_interaction_energy(x, 1.7))), 12)
    0.800050760033
    """
    x, b, form = _checked(tokens, beta, score, normalize)
    n = x.shape[0]
    return logsumexp(b * (x @ form @ x.T)) - jnp.log(2 * b * n**2)


def energy_growth(
    tokens: ArrayLike,
    beta: ArrayLike,
    *,
    score: ArrayLike | None = None,
    kind: str = "softmax",
    shift: ArrayLike = 0.0,
    normalize: bool = False,
) -> EnergyGrowth:
    """E_β and dE/dt along SA or USA with V = B symmetric: (1/n²) Σ Z_i|ẋ_i|², and (1/n) Σ |ẋ_i|² in USA.

    Both from the energy alone: with g_i = P^⊥∇_iE, USA moves by n g_i, and SA by (n²/Z_i) g_i, the gradient in the
    metric weighted by Z_i = Σ_j e^{β⟨x_i, Bx_j⟩}. Never negative: the energy is monotone.

    `shift` is for large β: the energy is told as E e^{−shift}, USA's time in units of e^{−shift}.

    >>> x = jnp.array([[1.0, 0.0], [0.6, 0.8], [-0.8, 0.6]])
    >>> [round(float(energy_growth(x, 1.7, kind=kind).growth), 12) for kind in ("softmax", "unnormalized")]
    [0.113375012149, 0.312799645097]
    """
    arguments.choice("kind", kind, KINDS)
    x, b, form = _checked(tokens, beta, score, normalize)
    n = x.shape[0]
    off = arguments.number("shift", shift, arguments.FINITE)

    def energy(places):
        return jnp.sum(jnp.exp(b * (places @ form @ places.T) - off)) / (2 * b * n**2)

    value, gradient = jax.value_and_grad(energy)(x)
    tangent = gradient - jnp.sum(gradient * x, axis=1)[:, None] * x
    squares = jnp.sum(tangent**2, axis=1)
    partition = jnp.sum(jnp.exp(b * (x @ form @ x.T) - off), axis=1)
    growth = n * jnp.sum(squares) if kind == "unnormalized" else jnp.sum(n**2 / partition * squares)
    if known(growth) and not (np.isfinite(value) and np.isfinite(growth)):
        raise ParameterError(
            f"beta = {float(b):g} makes the energy too large or too small for numbers; give shift, β times the largest "
            "score of a pair, or ask for log_interaction_energy"
        )
    return EnergyGrowth(value, growth)


def _checked(tokens, beta, score, normalize):
    x = arguments.unit_rows("tokens", tokens, normalize=normalize)
    b = arguments.number("beta", beta, arguments.POSITIVE, "at β = 0 the energy is n|mean|²/2, `mean_energy`")
    d = x.shape[1]
    form = jnp.eye(d) if score is None else arguments.array("score", score, (d, d))
    if known(form) and not np.allclose(form, np.asarray(form).T, atol=1e-12 * max(1.0, float(np.max(np.abs(form))))):
        raise ParameterError("score is not symmetric: attention with such QᵀK is no gradient flow and has no energy")
    return x, b, form


def mean_energy(tokens: ArrayLike, *, normalize: bool = False) -> Scalar:
    """E₀ = (1/2n) Σ_ij ⟨x_i, x_j⟩ = n|x̄|²/2, whose gradient is the flow at β = 0: dE₀/dt = Σ |ẋ_i|².

    >>> float(mean_energy([[1.0, 0.0], [0.0, 1.0]]))
    0.5
    """
    x = arguments.unit_rows("tokens", tokens, normalize=normalize)
    return x.shape[0] * jnp.sum(jnp.mean(x, axis=0) ** 2) / 2
