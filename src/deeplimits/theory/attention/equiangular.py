r"""Tokens with equal pairwise angles keep them: attention on the sphere becomes one equation.

With B = V = I and ⟨x_i, x_j⟩ = γ for all i ≠ j, in u = log((1 + (n−1)γ)/(1 − γ)), which runs over the whole line,

    SA   u̇ = 2n/(e^{β(1−γ)} + n − 1),      USA   u̇ = 2e^{βγ},

so that times are integrals of e^{β(1−γ)} over u: exponential integrals. Near the cluster 1 − γ = n/(e^u + n − 1)
keeps its digits where γ has none left.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import expi
from jax.typing import ArrayLike

from deeplimits.errors import ParameterError
from deeplimits.numerics import arguments, flows
from deeplimits.numerics.arguments import known
from deeplimits.numerics.ranks import same_rank
from deeplimits.numerics.shapes import Floats

KINDS = ("softmax", "unnormalized")
"""SA, whose rows of the attention matrix sum to one, and USA, which divides by n instead."""
FAR = 40.0
"""Beyond this Ei is its asymptotic series."""
TERMS = 40
FRACTIONS = 100
FLAT = 1e-5
"""Below this β the first two orders in β have no error left."""
AT_REST = 1e-12
LARGEST_EXPONENT = 700.0
"""e to a larger power is no number in double precision."""


class Equiangular(NamedTuple):
    """The pairwise cosine γ of equiangular tokens, and what it lacks of one."""

    cosine: Floats
    gap: Floats
    """1 − γ, to all its digits near the cluster."""


def equiangular_cosine(
    start: ArrayLike, times: ArrayLike, tokens: ArrayLike, beta: ArrayLike, *, kind: str = "softmax"
) -> Equiangular:
    """γ(t) of n tokens on the sphere that begin with ⟨x_i, x_j⟩ = `start` for all i ≠ j, B = V = I, β ≥ 0.

    By the equation for u, at one time or at increasing ones, whose axis stands before those of the other arguments;
    `equiangular_time` is its inverse in closed form.

    `kind` is softmax (SA) or unnormalized (USA). −1/(n−1), the simplex, and 1, the cluster, are fixed points.
    Reference: Geshkovski et al. (2025), Section 6.

    >>> round(float(equiangular_cosine(0.0, 3.0, 5, 3.0).cosine), 12)
    0.617398657906
    >>> round(float(equiangular_cosine(0.0, 5.0, 32, 4.0).cosine), 12)
    0.952774849743
    """
    t = arguments.argument("times", times, arguments.NOT_NEGATIVE)
    gamma, n, b = jnp.broadcast_arrays(*same_rank(*_checked(start, tokens, beta, kind)))
    at_rest = (gamma <= -1 / (n - 1) + AT_REST) | (gamma >= 1 - AT_REST)
    place = _place(jnp.where(at_rest, 0.0, gamma), n)

    def field(_, u):
        slowness = b * _gap(u, n)
        if kind == "unnormalized":
            return 2 * jnp.exp(b - slowness)
        # 2n/(e^{β(1−γ)} + n − 1), which underflows rather than overflows
        shrunk = jnp.exp(-slowness)
        return 2 * n * shrunk / (1 + (n - 1) * shrunk)

    u = flows.solve(field, place, jnp.atleast_1d(t), rtol=1e-12, atol=1e-13).states
    u = u[0] if t.ndim == 0 else u
    gap = jnp.where(at_rest, 1 - gamma, _gap(u, n))
    begin = (t == 0).reshape(t.shape + (1,) * gamma.ndim)
    return Equiangular(jnp.where(at_rest | begin, gamma, 1 - gap), gap)


def equiangular_time(
    cosine: ArrayLike, start: ArrayLike, tokens: ArrayLike, beta: ArrayLike, *, kind: str = "softmax"
) -> Floats:
    """log of the time at which equiangular tokens that begin with cosine `start` have the cosine wanted.

    t_SA = (1/2n) [(n−1) u − Ei(β(1−g)) − e^{β(1−g)} ℰ(y)] from `start` to `cosine`, ℰ(y) = e^y E₁(y),
    y = β(1 + (n−1)g)/(n−1). The logarithm, because the time is of the order e^{β(1−γ₀)}.

    >>> round(float(jnp.exp(equiangular_time(0.999, 0.0, 32, 5.0))), 10)
    9.5443292035
    >>> round(float(jnp.exp(equiangular_time(0.999, 0.0, 32, 1.0, kind="unnormalized"))), 10)
    2.897048623
    """
    gamma, n, b = _checked(start, tokens, beta, kind)
    end = arguments.argument("cosine", cosine, arguments.inside(-1.0, 1.0))
    if known(gamma, n, end) and not bool(jnp.all((end >= gamma) & (gamma > -1 / (n - 1) + AT_REST))):
        raise ParameterError(
            f"cosine = {end} is not reached from start = {gamma}: cosines grow, from above −1/(n−1) (the simplex rests)"
        )
    end, gamma, n, b = same_rank(end, gamma, n, b)
    return _log_time(_place(end, n), _place(gamma, n), n, b, kind)


def equiangular_bound(start: ArrayLike, times: ArrayLike, tokens: ArrayLike, beta: ArrayLike) -> Floats:
    """What 1 − γ(t) of SA stays below at all times: (1−γ₀)/((1−s) + s e^{rt}), r = 2n/(e^{β(1−γ₀)} + n − 1).

    s = (1 + (n−1)γ₀)/n. For γ₀ = 0 it is at most n e^{−rt}, and attained as β → 0. The exponent e^{−β} is that of the
    slow beginning: the asymptotic rate is 2 at every β (`cluster_rate`).

    >>> exact = equiangular_cosine(0.0, 2.0, 4, 0.0).gap
    >>> round(float(equiangular_bound(0.0, 2.0, 4, 0.0)), 12), round(float(exact), 12)
    (0.069446674897, 0.069446674897)
    """
    t = arguments.argument("times", times, arguments.NOT_NEGATIVE)
    gamma, n, b = _checked(start, tokens, beta, "softmax")
    t, gamma, n, b = same_rank(t, gamma, n, b)
    share = (1 + (n - 1) * gamma) / n
    grown = jnp.exp(2 * n * t / (jnp.exp(b * (1 - gamma)) + n - 1))
    return (1 - gamma) / ((1 - share) + share * grown)


def _checked(start, tokens, beta, kind):
    arguments.choice("kind", kind, KINDS)
    n = arguments.argument("tokens", tokens, arguments.at_least(2), "an angle needs two tokens")
    b = arguments.argument("beta", beta, arguments.NOT_NEGATIVE, "the reduction is stated for β ≥ 0")
    gamma = arguments.argument("start", start, arguments.between(-1.0, 1.0))
    if known(gamma, n) and bool(jnp.any(gamma < -1 / (n - 1) - AT_REST)):
        raise ParameterError(f"start = {gamma} is below −1/(n−1): no {n} tokens have it (their Gram matrix)")
    return gamma, n, b


def _place(gamma, n):
    return jnp.log1p((n - 1) * gamma) - jnp.log1p(-gamma)


def _gap(u, n):
    # 1 − γ = n/(e^u + n − 1), by the sign of u so that nothing overflows
    small = jnp.exp(-jnp.abs(u))
    return jnp.where(u > 0, n * small / (1 + (n - 1) * small), n / (small + n - 1))


def _log_time(u, place, n, beta, kind):
    first, log_area = beta * _gap(place, n), _log_area(u, place, n, beta)
    if kind == "unnormalized":
        # t = ½ ∫ e^{−βγ} du = ½ e^{−β} ∫ e^{β(1−γ)} du
        return first + log_area - beta - jnp.log(2.0)
    # t = (1/2n) ∫ (e^{β(1−γ)} + n − 1) du
    return jnp.logaddexp(first + log_area, jnp.log(n - 1) + _log(u - place)) - jnp.log(2 * n)


def _log_area(u, place, n, beta):
    """log of ∫ e^{w − w₀} du from `place` to u, with w = β(1 − γ) and w₀ its value at `place`."""
    flat = beta < FLAT
    b = jnp.where(flat, 1.0, beta)
    first, last = b * _gap(place, n), b * _gap(u, n)
    # −[Ei(w) + e^w ℰ(y)] is an integral of e^w, with y = βn/(n−1) − w
    grown = b * n / (n - 1)
    ends = jnp.stack(jnp.broadcast_arrays(first, last))
    others = jnp.stack(jnp.broadcast_arrays(grown - first, grown - last))
    sums = _scaled_ei(ends) + _scaled_e1(others)
    area = sums[0] - jnp.exp(last - first) * sums[1]
    # ∫ (1 + w − w₀) du, with ∫ (1 − γ) du = (n/(n−1)) [u − log(e^u + n − 1)]
    inside = n / (n - 1) * ((u - place) - jnp.logaddexp(u, jnp.log(n - 1)) + jnp.logaddexp(place, jnp.log(n - 1)))
    linear = (u - place) * (1 - beta * _gap(place, n)) + beta * inside
    return _log(jnp.where(flat, linear, area))


def _log(x):
    positive = x > 0
    return jnp.where(positive, jnp.log(jnp.where(positive, x, 1.0)), -jnp.inf)


def _scaled_ei(w):
    """e^{−w} Ei(w) for w > 0."""
    near = jnp.minimum(w, FAR)
    far = jnp.maximum(w, FAR)

    # Σ k!/w^{k+1}, as far as its terms fall
    def longer(k, carry):
        term, total = carry
        term = term * k / far
        return term, total + term

    term = 1 / far
    _, series = jax.lax.fori_loop(1, TERMS, longer, (term, term))
    return jnp.where(w < FAR, jnp.exp(-near) * expi(near), series)


def _scaled_e1(y):
    """ℰ(y) = e^y E₁(y) for y > 0; `exp1` takes 1/y steps for each of many arguments."""
    low, high = jnp.minimum(y, 1.0), jnp.maximum(y, 1.0)

    # E₁(y) = −γ_E − log y − Σ (−y)^k/(k k!)
    def longer(k, carry):
        term, total = carry
        term = -term * low / k
        return term, total + term / k

    _, series = jax.lax.fori_loop(1, 20, longer, (jnp.ones_like(low), jnp.zeros_like(low)))
    small = jnp.exp(low) * (-jnp.euler_gamma - jnp.log(jnp.maximum(low, 1e-300)) - series)

    # 1/(y + 1 − 1²/(y + 3 − 2²/(y + 5 − …))), from the bottom; the error falls like e^{−4√(ky)}
    def up(i, tail):
        k = FRACTIONS - 1.0 * i
        return k**2 / (high + 2 * k + 1 - tail)

    tail = jax.lax.fori_loop(0, FRACTIONS, up, jnp.zeros_like(high))
    return jnp.where(y < 1, small, 1 / (high + 1 - tail))
