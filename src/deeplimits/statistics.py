r"""The statistics behind every verdict.

**False alarms.** One pass over the whole catalogue may raise a false alarm with probability at most
`FALSE_ALARM_BUDGET`. The budget is shared evenly by `TESTS_IN_BUDGET` tests, more than a full catalogue makes, so that
a threshold does not move when a limit is added. Each prediction is one test, however many points it has: a curve is
judged by its largest standardized deviation, against the threshold for the largest of that many (Bonferroni's
inequality, valid however the points are correlated; they share seeds, so they are).

**Finite size.** A theory that is exact only as the size grows is not refuted by a gap at finite size. If the gap is
stated to close like ``size**-rate``, the gaps :math:`g_j` at the sizes :math:`n_j` are fitted by
:math:`g_\infty + c\, n_j^{-rate}` and :math:`g_\infty = \sum_j a_j g_j` is tested. Ordinary least squares fixes the
:math:`a_j` before any data are seen: weights made from estimated variances would be correlated with the means.

**The next order.** The fit leaves out :math:`c_2 n^{-2 rate}`. A relative correction
:math:`\epsilon = |c| n^{-rate}/T` at first order, at the smallest size, comes with a next term that is smaller by a
factor of order :math:`\epsilon`: up to `SECOND_ORDER` times that is allowed for in :math:`g_\infty`. The points of a
curve share one :math:`\epsilon`, the largest of theirs: where the first order happens to cancel, the size is no larger
for that. The correction is taken from what *changes* with the size, so that a wrong theory, whose gap does not change,
gets no allowance for being wrong. Three sizes measure :math:`c_2`. It is fitted, and only the third order
allowed for, as the second was, where it is larger than assumed by more than three standard errors, and wherever the fit
with three parameters, which assumes less, is sharp enough: its error below `SHARP` of the value, or not much larger
than that of the fit with two. A second order that exceeds the first speaks against sizes or rate, and is not fitted.

**Too small sizes.** Where the correction is still above `FAR` and three sizes show that it does not go like
``size**-rate``, or where two sizes cannot show it and the correction is above `NEAR`, nothing can be said about
infinite size: such a point decides nothing, neither for nor against.

**Power.** A comparison that agrees says how wrong the theory could have been without being noticed: the smallest
relative error, of either sign, with which the same measurements would have been told to disagree. Above `BLIND` it is
undecided.

**Skewness.** Squared errors and inverse eigenvalues are skewed, and a studentized mean of skewed draws is not normal in
the tail where the threshold lies. Hall's monotone transformation removes the effect at first order.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deeplimits.errors import ParameterError
from deeplimits.tails import cornish_fisher, equivalent_z, hall_transform, student_quantile, student_tail

FALSE_ALARM_BUDGET = 0.01
TESTS_IN_BUDGET = 4000
LEVEL = FALSE_ALARM_BUDGET / TESTS_IN_BUDGET
SECOND_ORDER = 2.0
NEAR, FAR = 0.1, 0.3
"""Relative finite-size corrections at the smallest size that two sizes, or three, can be trusted with untested."""
SHARP = 0.006
"""A relative standard error with which an error of a few percent is noticed."""
BLIND = 0.2
"""A comparison that would not notice a theory wrong by this much has decided nothing."""
FEWEST_SAMPLES = 8
FEWEST_EVENTS = 16
"""Expected rare events from which on the tail of their number, corrected for skewness, is nearly a normal one."""

Floats = NDArray[np.floating]


class Mean(NamedTuple):
    """The mean of independent draws and what is known of its error. All arrays have the shape of one draw."""

    value: Floats
    variance: Floats
    skewness: Floats
    """Skewness of the mean: its third cumulant in units of its deviation, zero where it does not vary."""
    dof: float
    """Degrees of freedom of the variance; infinite where the theory fixes it."""


def mean_of(draws: ArrayLike) -> Mean:
    """Mean over the first axis, with the variance and skewness of that mean estimated from the draws."""
    draws = np.asarray(draws, dtype=float)
    count = draws.shape[0]
    if count < FEWEST_SAMPLES:
        raise ParameterError(f"samples = {count} is too few for a standard error; take at least {FEWEST_SAMPLES}")
    value = draws.mean(axis=0)
    centred = draws - value
    # In units of the largest deviation: cubes of numbers that are fine may not be numbers.
    unit = np.abs(centred).max(axis=0)
    scaled = np.divide(centred, unit, out=np.zeros_like(centred), where=unit > 0)
    variance = (scaled**2).sum(axis=0) / (count - 1)
    third = (scaled**3).sum(axis=0) * count / ((count - 1) * (count - 2))
    skewness = np.divide(third, variance**1.5 * count**0.5, out=np.zeros_like(third), where=variance > 0)
    return Mean(value, variance * unit**2 / count, skewness, count - 1)


def mean_of_successes(successes: ArrayLike, probability: ArrayLike, count: int, fewest: int = 0) -> Mean:
    """Frequencies of success in `count` trials, with the variance that the stated probability implies.

    Numbers of rare events are not normal in their tail: with `fewest`, so many are assumed to be expected at least.
    """
    p = np.asarray(probability, dtype=float)
    variance = np.maximum(p * (1 - p), min(fewest / count, 0.25)) / count
    third = p * (1 - p) * (1 - 2 * p) / count**2
    skewness = np.divide(third, variance**1.5, out=np.zeros_like(third), where=variance > 0)
    return Mean(np.asarray(successes, dtype=float) / count, variance, skewness, np.inf)


class Extrapolation(NamedTuple):
    """The gap between measurement and theory, carried to infinite size."""

    gap: Floats
    """What is left at infinite size."""
    error: Floats
    """Its standard error."""
    skewness: Floats
    """Its skewness."""
    dof: Floats
    """Effective degrees of freedom of the standard error (Welch and Satterthwaite)."""
    allowance: Floats
    """The size that the second order may have in `gap`."""
    correction: Floats
    """How large the first order still is at the smallest size, relative to the value."""
    asymptotic: NDArray[np.bool_]
    """Whether the sizes are large enough for the stated rate; see 'Too small sizes' above."""
    coefficient: Floats
    """c in gap(n) = c n**-rate; the mean gap where the theory is exact."""
    coefficient_error: Floats


def extrapolate(
    sizes: Sequence[float],
    means: Sequence[Mean],
    stated: Sequence[ArrayLike],
    rate: float | None,
    *,
    shared: bool = False,
) -> Extrapolation:
    """Fit the gaps between `means` and `stated` at several sizes and carry them to infinite size.

    `rate` is the stated power of 1/size with which the gap closes, None for a theory exact at every size. With `shared`
    all points have one relative correction, the largest; see 'The next order' above.
    """
    at_infinity, slope = fit_weights(sizes, rate)
    stated_values = np.stack(
        [np.broadcast_to(np.asarray(s, float), m.value.shape) for s, m in zip(stated, means, strict=True)]
    )
    gaps = np.stack([mean.value for mean in means]) - stated_values
    variances = np.stack([mean.variance for mean in means])
    skews = np.stack([mean.skewness for mean in means])
    dofs = np.array([mean.dof for mean in means])
    leading = (_combine(slope, gaps), _error(slope, variances))
    even = np.broadcast_to(at_infinity.reshape(-1, *[1] * (gaps.ndim - 1)), gaps.shape)
    nothing = np.zeros(gaps.shape[1:])
    weights, next_order = even, _NextOrder(nothing, nothing, nothing == 0)
    if rate is not None:
        weights, next_order = _with_next_order(sizes, rate, even, leading, stated_values, gaps, variances, shared)
    variance = (weights**2 * variances).sum(axis=0)
    each_dof = dofs.reshape(-1, *[1] * (gaps.ndim - 1))
    # What each size contributes to the deviation and to the variance
    part = np.divide(weights * np.sqrt(variances), np.sqrt(variance), out=np.zeros_like(gaps), where=variance > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        skewness = (part**3 * skews).sum(axis=0)
        inverse_dof = (part**4 / each_dof).sum(axis=0)
        dof = np.where(inverse_dof > 0, 1 / inverse_dof, np.inf)
    return Extrapolation(
        gap=(weights * gaps).sum(axis=0),
        error=np.sqrt(variance),
        skewness=skewness,
        dof=dof,
        allowance=next_order.allowance,
        correction=next_order.correction,
        asymptotic=next_order.asymptotic,
        coefficient=leading[0],
        coefficient_error=leading[1],
    )


class _NextOrder(NamedTuple):
    allowance: Floats
    correction: Floats
    asymptotic: NDArray[np.bool_]


def _with_next_order(
    sizes: Sequence[float],
    rate: float,
    even: Floats,
    leading: tuple[Floats, Floats],
    stated: Floats,
    gaps: Floats,
    variances: Floats,
    shared: bool,
) -> tuple[Floats, _NextOrder]:
    """The weights of the gaps, `even` or those of the fit with three parameters, and what the order left out may do."""
    smallest = int(np.argmin(sizes))
    shape = (np.asarray(sizes, float) / sizes[smallest]) ** -rate
    first = np.hypot(*leading) * float(sizes[smallest]) ** -rate
    scale = np.maximum(np.abs(stated[smallest]), first)
    correction = np.divide(first, scale, out=np.zeros_like(first), where=scale > 0)
    epsilon = np.max(correction, initial=0.0) if shared else correction
    second = SECOND_ORDER * epsilon * first
    two = even.reshape(len(shape), -1)[:, 0]
    allowance = second * abs(two @ shape**2)
    if len(set(sizes)) < 3:
        return even, _NextOrder(allowance, correction, correction <= NEAR)
    three, slope, curvature = np.linalg.pinv(np.stack([np.ones_like(shape), shape, shape**2], axis=1))
    bend, noise = np.abs(_combine(curvature, gaps)), _error(curvature, variances)
    bent = bend > second + 3 * noise
    # A second order above the first is none; where both are largest, as the first may change its sign along a curve.
    least_second, most_first = bend - 2 * noise, np.abs(_combine(slope, gaps)) + 2 * _error(slope, variances)
    in_order = np.max(least_second / scale) <= np.max(most_first / scale) if np.all(scale > 0) else True
    sharp = _error(three, variances) <= np.maximum(1.25 * _error(two, variances), SHARP * np.abs(stated[smallest]))
    fitted = (bent | sharp) & in_order
    # The third order is to the second as the second to the first; where the second happens to cancel, to ε times it.
    third = bend * np.minimum(np.divide(bend, first, out=np.ones_like(bend), where=first > 0), 1.0)
    left_out = SECOND_ORDER * np.maximum(third, epsilon**2 * first) * abs(three @ shape**3)
    # Out of order, and explained by a second order: sizes too small, or a wrong rate, which only larger sizes can tell.
    explained = np.abs(_combine(three, gaps)) <= 5 * _error(three, variances) + left_out
    asymptotic = ~(bent & (correction > FAR)) & (in_order | ~explained)
    weights = np.where(fitted, three.reshape(-1, *[1] * bent.ndim), even)
    return weights, _NextOrder(np.where(fitted, left_out, allowance), correction, asymptotic)


def _error(weights: Floats, variances: Floats) -> Floats:
    return np.asarray(np.sqrt(np.tensordot(weights**2, variances, axes=1)))


def _combine(weights: Floats, values: Floats) -> Floats:
    return np.asarray(np.tensordot(weights, values, axes=1))


def require_sizes(sizes: Sequence[float], rate: float) -> None:
    """Refuse sizes at which a gap that closes is not told from one that stays."""
    if len(set(sizes)) < 2:
        raise ParameterError(
            f"sizes = {list(sizes)} has one distinct size: the gap closes like size**-{rate:g}, "
            "and only two or more sizes tell it from an error in the theory"
        )


def fit_weights(sizes: Sequence[float], rate: float | None) -> tuple[Floats, Floats]:
    """The linear functionals of the gaps that give the value at infinite size, and the coefficient of size**-rate."""
    count = len(sizes)
    if rate is None:
        return np.full(count, 1 / count), np.full(count, 1 / count)
    require_sizes(sizes, rate)
    design = np.stack([np.ones(count), np.asarray(sizes, float) ** -rate], axis=1)
    return tuple(np.linalg.pinv(design))


NORMAL = 1.15
"""Up to such a multiple of the normal threshold a statistic is called z."""


class Deviation(NamedTuple):
    """A whole prediction's disagreement with measurement: one number, its threshold, its p-value."""

    statistic: float
    threshold: float
    p_value: float
    worst: int = 0
    """Index of the point with the largest deviation."""
    asymptotic: bool = True
    """Whether the sizes allow a verdict on that point."""
    correction: float = 0.0
    """The relative finite-size correction at the smallest size, where it is largest."""
    noise: float = 1.0
    """The share of noise, against the allowance for the next order, in what hides an error at that point."""
    normal: bool = True
    """Whether the statistic can be read as a normal deviation; that of a few draws has heavier tails."""

    @property
    def agrees(self) -> bool:
        return self.p_value > LEVEL

    @property
    def disagrees(self) -> bool:
        return not self.agrees and self.asymptotic


def certain(holds: bool) -> Deviation:
    """The deviation of what is not a matter of chance."""
    p_value = 1.0 if holds else 0.0
    return Deviation(equivalent_z(p_value), equivalent_z(LEVEL), p_value)


def largest_deviation(fit: Extrapolation, resolution: float = 0.0) -> Deviation:
    """One statistic for all points: the largest standardized deviation, against the threshold for that many points.

    Gaps below `resolution` are rounding errors and count as none. Points whose sizes are too small for a verdict come
    to word only where no other point disagrees.
    """
    gap, error, skewness, dof, allowance, correction = (
        np.ravel(part) for part in (fit.gap, fit.error, fit.skewness, fit.dof, fit.allowance, fit.correction)
    )
    asymptotic = np.ravel(fit.asymptotic)
    excess = np.maximum(np.abs(gap) - allowance - resolution, 0.0) * np.sign(gap)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(excess == 0, 0.0, excess / error)
        corrected = np.where(np.isfinite(dof), hall_transform(t, skewness), cornish_fisher(t, skewness))
    # Where nothing is left of the gap there is nothing to correct.
    z = np.where(t == 0, 0.0, np.abs(np.where(np.isfinite(t), corrected, t)))
    p_values = 2 * student_tail(z, dof)
    points = len(z)
    # Points that disagree and may, then points that would but may not, then the rest; the least p-value first. Where
    # several are too small for a floating-point number, the largest deviation is the worst.
    says = p_values * points <= LEVEL
    worst = int(np.lexsort((-z, p_values, ~says, ~(says & asymptotic)))[0])
    threshold = float(student_quantile(LEVEL / (2 * points), dof[worst]))
    hidden = threshold * error[worst] + allowance[worst]
    return Deviation(
        statistic=float(z[worst]),
        threshold=threshold,
        p_value=float(min(1.0, points * p_values[worst])),
        worst=worst,
        asymptotic=bool(asymptotic[worst]),
        correction=float(np.max(correction)),
        noise=float(threshold * error[worst] / hidden) if hidden > 0 else 1.0,
        normal=threshold < NORMAL * equivalent_z(LEVEL / points),
    )


LEAST_NOTICED = 1e-6


def least_noticed(deviation: Callable[[float], Deviation]) -> float:
    """The smallest relative error of either sign with which a theory would be told to disagree; infinite above 80 %.

    `deviation(factor)` judges the same measurements beside a theory multiplied by `factor`.
    """
    return max(_noticed(lambda size: deviation(1 + size)), _noticed(lambda size: deviation(1 / (1 + size))))


def _noticed(wrong_by: Callable[[float], Deviation]) -> float:
    noticed = next((size for size in (BLIND, 2 * BLIND, 4 * BLIND) if wrong_by(size).disagrees), np.inf)
    if noticed > BLIND:
        return noticed
    low, high = np.log(LEAST_NOTICED), np.log(BLIND)
    while high - low > 0.05:
        middle = (low + high) / 2
        low, high = (low, middle) if wrong_by(float(np.exp(middle))).disagrees else (middle, high)
    return float(np.exp(high))


def measured_rate(sizes: Sequence[float], fit_gaps: ArrayLike, errors: ArrayLike) -> tuple[float, float] | None:
    """The power of 1/size with which a gap closes, with its standard error; None where noise hides the gap.

    Needs two sizes and a gap above three standard errors at each of them.
    """
    gaps, errors = np.abs(np.asarray(fit_gaps, float)), np.asarray(errors, float)
    if len(gaps) < 2 or np.any(gaps <= 3 * errors) or np.any(errors <= 0):
        return None
    relative = errors / gaps
    (_, slope), covariance = weighted_line(np.log(np.asarray(sizes, float)), np.log(gaps), relative)
    return -float(slope), float(np.sqrt(max(covariance[1, 1], 0.0)))


def weighted_line(x: Floats, y: Floats, errors: Floats, extra: Floats | None = None) -> tuple[Floats, Floats]:
    """Weighted least squares of y on 1, x and, where given, one more regressor: coefficients and their covariance."""
    columns = [np.ones_like(x), x] + ([] if extra is None else [extra])
    design = np.stack(columns, axis=1) / errors[:, None]
    # By orthogonal factors: weights of some sizes may be 1e8 times those of others, and squared they leave no digit.
    q, r = np.linalg.qr(design)
    inverse = np.linalg.inv(r)
    return inverse @ (q.T @ (y / errors)), inverse @ inverse.T
