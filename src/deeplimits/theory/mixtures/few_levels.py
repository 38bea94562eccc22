r"""Activations of few levels that a kernel cannot tell from a given one: they match its Gaussian moments.

σ(u) = Σ_k j_k 1{u > s_k}: with t_k = s_k/τ, φ the normal density and Q its upper tail,

    τ E σ' = Σ j_k φ(t_k),   τ² E σ'' = Σ j_k t_k φ(t_k),   E σ = Σ j_k Q(t_k),   E σ² = Σ_kl j_k j_l Q(max(t_k, t_l)),
    E (ξ² − 1)(σ − E σ)² = Σ_kl j_k j_l [h(max(t_k, t_l)) − h(t_k)Q(t_l) − Q(t_k)h(t_l)],   h(t) = tφ(t).
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from deeplimits.errors import OutsideValidity
from deeplimits.models.activations import Activation, ActivationLike
from deeplimits.models.staircases import staircase
from deeplimits.numerics.arguments import POSITIVE, number, whole
from deeplimits.numerics.roots import on_host
from deeplimits.theory.mixtures.activation_moments import layer_moments

Floats = NDArray[np.floating]
EXACT = 1e-9
"""Moments match when they differ by no more than this share of the target's scale."""
GRID = 4001
REACH = 9.0
STARTS = 24
ENOUGH = 10


class Match(NamedTuple):
    """An activation of few levels with the wanted moments."""

    activation: Activation
    jumps: tuple[float, ...]
    thresholds: tuple[float, ...]
    rest: float
    """Its d₀; the difference to the target's is to be added to the ridge."""
    variance: float
    residual: float
    """The largest miss among the wanted moments, relative to the target's standard deviation."""


def staircase_moments(jumps: Floats, thresholds: Floats) -> Floats:
    """E σ', E σ'', E[σ'² + σσ''] and Var σ of a centred staircase at τ = 1, in this order."""
    j, t = np.asarray(jumps, float), np.asarray(thresholds, float)
    bell = np.exp(-(t**2) / 2) / math.sqrt(2 * math.pi)
    h, tail = t * bell, special.ndtr(-t)
    later = np.maximum(t[:, None], t[None, :])
    of_later = later * np.exp(-(later**2) / 2) / math.sqrt(2 * math.pi)
    pairs = j[:, None] * j[None, :]
    energy = np.sum(pairs * (of_later - h[:, None] * tail[None, :] - tail[:, None] * h[None, :])) / 2
    variance = np.sum(pairs * (special.ndtr(-later) - tail[:, None] * tail[None, :]))
    return np.array([j @ bell, j @ h, energy, variance])


def _made(jumps: Floats, thresholds: Floats, tau: float, wanted: Floats, count: int) -> Match:
    """With thresholds back at the scale τ; `wanted` and what is found are at τ = 1."""
    order = np.argsort(thresholds)
    j, t = np.asarray(jumps, float)[order], np.asarray(thresholds, float)[order]
    found = staircase_moments(j, t)
    scale = np.array([1.0, 1.0, 0.0, 0.0]) * math.sqrt(wanted[3]) + np.array([0.0, 0.0, 1.0, 1.0]) * wanted[3]
    residual = float(np.max(np.abs(found - wanted)[:count] / scale[:count]))
    places = tuple(float(one) for one in t * tau)
    return Match(
        staircase(tuple(float(one) for one in j), places), tuple(j.tolist()), places,
        float(found[3] - found[0] ** 2), float(found[3]), residual,
    )  # fmt: skip


def _target(activation: ActivationLike, variance: float) -> tuple[Floats, float]:
    """The target's moments at τ = 1: of σ(τu)."""
    found = layer_moments(activation, variance)
    tau = math.sqrt(variance)
    slope, curvature = float(found.slope) * tau, float(found.curvature) * tau**2
    return np.array([slope, curvature, float(found.energy) * tau**2, float(found.variance)]), tau


def ternary_match(activation: ActivationLike, variance: float = 1.0, *, level: float | None = None) -> Match:
    """A ternary activation r(1{u > s₊} − 1{u < s₋}) with the d₁ and d₂ of a given one.

    Setting     pre-activations of variance τ²; `level` r, or the one that leaves the least d₀
    Result      r(φ(s₊) + φ(s₋)) = |E σ'|, (r/τ²)(s₊φ(s₊) + s₋φ(s₋)) = E σ'', φ the N(0, τ²) density; s₋ ≤ s₊
                its kernel is that of σ with d₀ changed: ridge regression with λ + d₀(σ) − d₀(ternary) is the same
    Validity    not every σ has a ternary twin at every r, then an error says so; three levels leave a larger d₀ than
                smooth activations have
    References  ali2022; couillet2022

    >>> found = ternary_match("relu", level=1.0)
    >>> [round(one, 10) for one in found.thresholds], round(found.rest, 10)
    ([0.5385998632, 1.3754257617], 0.1544988077)
    """
    tau2 = float(number("variance", variance, POSITIVE))
    target, tau = _target(activation, tau2)
    if not abs(target[0]) > 1e-10 * math.sqrt(target[3]):
        raise OutsideValidity(
            "the activation has E σ' = 0, and a ternary one of increasing levels never has; take another activation"
        )
    wanted = target * np.array([np.sign(target[0]), np.sign(target[0]), 1.0, 1.0])
    if level is not None:
        r = float(number("level", level, POSITIVE))
        places = _thresholds(wanted[0] / r, wanted[1] / r)
        if places is None:
            least = wanted[0] * math.sqrt(math.pi / 2)
            raise OutsideValidity(
                f"level = {r:g}: no thresholds give a ternary activation the same d₁ and d₂; give no level to have one "
                f"chosen, and in any case one above {least:.6g}"
            )
        return _signed(places, r, tau, target)
    # Below the first value two bells cannot add up to the slope.
    least = wanted[0] * math.sqrt(math.pi / 2)
    levels = least * np.geomspace(1 + 1e-9, 30, 400)
    found = [(r, _thresholds(wanted[0] / r, wanted[1] / r)) for r in levels]
    possible = [(_rest(places, r), r) for r, places in found if places is not None]
    if not possible:
        raise OutsideValidity("no ternary activation has the same d₁ and d₂ at any level; take more levels")
    best = min(possible)[1]

    def excess(r: float) -> float:
        places = _thresholds(wanted[0] / r, wanted[1] / r)
        return math.inf if places is None else _rest(places, r)

    ratio = levels[1] / levels[0]
    found_level: Any = optimize.minimize_scalar(
        excess, bounds=(max(best / ratio, levels[0]), best * ratio), method="bounded", options={"xatol": 1e-9 * best}
    )
    chosen = found_level.x
    chosen = chosen if excess(chosen) <= excess(best) else best
    places = _thresholds(wanted[0] / chosen, wanted[1] / chosen)
    assert places is not None
    return _signed(places, chosen, tau, target)


def _signed(places: tuple[float, float], level: float, tau: float, target: Floats) -> Match:
    sign = np.sign(target[0])
    return _made(sign * np.full(2, level), np.array(places), tau, target, 2)


def _rest(places: tuple[float, float], level: float) -> float:
    found = staircase_moments(np.full(2, level), np.array(places))
    return float(found[3] - found[0] ** 2)


def _thresholds(slope: float, curvature: float) -> tuple[float, float] | None:
    """t₋ ≤ t₊ with φ(t₋) + φ(t₊) = slope and t₋φ(t₋) + t₊φ(t₊) = curvature of the least rest, if there are any."""
    top = 1 / math.sqrt(2 * math.pi)
    if not 0 < slope < 2 * top:
        return None

    def second(one: Floats, side: float) -> Floats:
        left = slope - top * np.exp(-(one**2) / 2)
        inside = (left > 0) & (left <= top)
        return np.where(inside, side * np.sqrt(np.maximum(-2 * np.log(np.where(inside, left, top) / top), 0)), np.nan)

    def miss(one: Floats, side: float) -> Floats:
        other = second(one, side)
        return one * np.exp(-(one**2) / 2) * top + other * np.exp(-(other**2) / 2) * top - curvature

    # Where the other bell is at its top, or gone, ends of the allowed thresholds lie between the points of a grid.
    ends = [-2 * math.log((slope - part) / top) for part in (0.0, top) if 0 < (slope - part) / top <= 1]
    special_points = [
        side * math.sqrt(end) * (1 + shift) for end in ends for side in (-1, 1) for shift in (-1e-13, 1e-13)
    ]
    grid = np.sort(np.concatenate([np.linspace(-REACH, REACH, GRID), special_points]))
    found = []
    for side in (-1.0, 1.0):
        with np.errstate(invalid="ignore"):
            values = miss(grid, side)
        crossing = np.flatnonzero(np.sign(values[:-1]) * np.sign(values[1:]) < 0)
        exact = grid[values == 0]
        roots = exact
        if crossing.size:
            zeros = on_host(lambda one, side=side: miss(one, side), grid[crossing], grid[crossing + 1])
            roots = np.concatenate([exact, zeros])
        found += [(float(one), float(second(np.array(one), side))) for one in roots]
    pairs = [(min(pair), max(pair)) for pair in found if np.all(np.isfinite(pair))]
    return min(pairs, key=lambda pair: _rest(pair, 1.0)) if pairs else None


def symmetric_ternary(linear: float, variance: float = 1.0, *, level: float = 1.0) -> float:
    """The threshold s of r·sign(u)·1{|u| > s} with a given d₁ = (E σ')²; its d₂ is zero.

    Setting     pre-activations of variance τ², `linear` d₁, `level` r
    Result      s = τ√(−2 log(√(2πτ²d₁)/(2r)))
    Validity    2πτ²d₁ ≤ 4r²
    References  ali2022

    >>> round(symmetric_ternary(0.3668791643624), 10)
    0.7423880604
    """
    d1, tau2 = float(number("linear", linear, POSITIVE)), float(number("variance", variance, POSITIVE))
    r = float(number("level", level, POSITIVE))
    inside = math.sqrt(2 * math.pi * tau2 * d1) / (2 * r)
    if inside > 1:
        raise OutsideValidity(
            f"level = {r:g} is too low for d₁ = {d1:g}: a symmetric ternary activation needs one of at least "
            f"{inside * r:.6g}"
        )
    return math.sqrt(max(-2 * tau2 * math.log(inside), 0.0))


def two_level_match(activation: ActivationLike, variance: float = 1.0) -> Match:
    """A binary activation b(1{u > s₁} − 1{u > s₂}) with the E σ', E σ'' and E[σ'² + σσ''] of a given one.

    Setting     pre-activations of variance τ²; s₁ < s₂
    Result      the three equations, solved from many starts; of the solutions the one of least variance
    Validity    E σ'' ≠ 0; an error says the residual where there is no solution
    References  gu2022

    >>> found = two_level_match("relu")
    >>> round(found.jumps[0], 8), [round(one, 8) for one in found.thresholds], round(found.variance, 5)
    (2.40874308, [0.99953094, 2.21253345], 0.72056)
    """
    tau2 = float(number("variance", variance, POSITIVE))
    target, tau = _target(activation, tau2)
    scale = math.sqrt(target[3])

    def miss(x: Floats) -> Floats:
        found = staircase_moments(np.array([-x[0], x[0]]), np.array([x[1], x[1] + math.exp(x[2])]))
        return (found - target)[:3] / np.array([scale, scale, scale**2])

    starts = [
        (b * scale, s, w) for b in (1.0, 3.0, -1.0, -3.0) for s in (-2.0, -1.0, -0.3, 0.5, 1.2) for w in (-0.5, 0.5)
    ]
    best = _least_squares(miss, starts)
    if best is None:
        raise OutsideValidity(_no_match(activation, "binary", miss, starts))
    jumps, places = np.array([-best[0], best[0]]), np.array([best[1], best[1] + math.exp(best[2])])
    return _made(jumps, places, tau, target, 3)


def _least_squares(miss, starts, cost=None) -> Floats | None:
    """The solution of least cost among the first few found; None where no start leads to one."""
    found = []
    for start in starts:
        result = optimize.least_squares(miss, np.array(start), xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=150)
        if np.max(np.abs(result.fun)) < EXACT and np.max(np.abs(result.x)) < 40:
            found.append(result.x)
        if len(found) == ENOUGH:
            break
    if not found:
        return None
    return min(found, key=(lambda x: abs(x[0])) if cost is None else cost)


def _no_match(activation, kind, miss, starts) -> str:
    nearest = min(
        float(np.max(np.abs(optimize.least_squares(miss, np.array(start), max_nfev=200).fun))) for start in starts[:12]
    )
    name = getattr(activation, "name", activation)
    return (
        f"no {kind} activation has the moments of {name}: the nearest one found misses them by {nearest:.3g} of the "
        "activation's scale; take more levels"
    )


def staircase_match(
    activation: ActivationLike,
    variance: float = 1.0,
    *,
    levels: int = 3,
    spread: bool = False,
    output: float | None = None,
    scale: float = 1.0,
) -> Match:
    """An activation of few levels with the moments that a deep kernel depends on.

    Setting     the target σ at pre-activations of variance τ²; the staircase at pre-activations of standard deviation
                τ·`scale` (that of a compressed network); `spread`: with the variance too, for the last layer
    Result      E σ', E σ'', E[σ'² + σσ''] in units of the inputs of the network, and Var σ where asked: a compressed
                network keeps D₁, D₂ and α₄ of every layer, and so α₁, α₂, α₃ of F4
    Validity    an error says the residual where so few levels cannot. With the variance it takes more: the part of a
                staircase beyond its second Hermite mode is no smaller than the error of quantizing a parabola (10
                levels for ReLU at unit variance, 15 for GELU, more for tanh)
    References  gu2022

    >>> found = staircase_match("relu", levels=3)
    >>> len(found.jumps), found.residual < 1e-9
    (2, True)
    """
    count = whole("levels", levels, 2) - 1
    tau2, stretch = float(number("variance", variance, POSITIVE)), float(number("scale", scale, POSITIVE))
    if output is not None:
        number("output", output, POSITIVE)
    target, tau = _target(activation, tau2)
    # E σ' and E σ'' per unit of what enters: at the scale τ·stretch they are multiplied by the powers of stretch.
    wanted = target * np.array([stretch, stretch**2, stretch**2, 1.0])
    if output is not None:
        wanted[3] = output
    asked = 4 if spread else 3
    unit = math.sqrt(max(wanted[3], wanted[0] ** 2 + wanted[1] ** 2 / 2))
    scales = np.array([unit, unit, unit**2, unit**2])

    def miss(x: Floats) -> Floats:
        return ((staircase_moments(x[:count] * unit, x[count:]) - wanted) / scales)[:asked]

    def size(x: Floats) -> float:
        return float(staircase_moments(x[:count] * unit, x[count:])[3])

    starts = _starts(count, wanted / scales)
    best = _least_squares(miss, starts, size)
    if best is None:
        raise OutsideValidity(_no_match(activation, f"{levels}-level", miss, starts))
    return _made(best[:count] * unit, best[count:], tau * stretch, wanted, asked)


def _starts(count: int, wanted: Floats) -> list[Floats]:
    """Starts for jumps and thresholds: quantizers of the quadratic polynomial with these moments, and others near."""
    found = []
    for index in range(STARTS):
        # Weyl's sequence: evenly spread numbers in (−½, ½) without a generator.
        u = np.modf((index + 1) * np.sqrt(np.array([2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0])))[0] - 0.5
        reach = 0.55 * np.log2(count + 1) * (1 + 0.8 * u[0]) + 0.1
        places = np.linspace(-reach, reach, count) + u[1]
        spacing = 2 * reach / count
        # p(t) = E σ' t + E σ'' t²/2 rises by p' times the spacing.
        jumps = (wanted[0] + wanted[1] * places) * spacing + 0.4 * np.resize(u[2:], count) * (index > 1) / count
        found.append(np.concatenate([jumps, places]))
    return found
