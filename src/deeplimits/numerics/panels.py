"""Gauss and Legendre's rule, on one interval, on many beside each other, and on the half line; Hermite's on the line.

Nodes and weights are NumPy arrays: they are constants of the programs that use them. A rule of n nodes is exact for
polynomials of degree 2n − 1; where a function has a kink or a pole nearby, cut there.
"""

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from deeplimits.errors import ParameterError
from deeplimits.numerics import arguments

Floats = NDArray[np.floating]


class Rule(NamedTuple):
    """∫ f ≈ Σ weights · f(nodes)."""

    nodes: Floats
    weights: Floats

    def integrate(self, values: ArrayLike) -> Floats:
        """Σ weights · values, over the last axis."""
        return np.asarray(values) @ self.weights


@functools.cache
def _standard(count: int) -> Rule:
    # NumPy's weights lose up to five digits towards the ends, where 1 − x² cancels: Newton's steps in longer numbers.
    x = np.polynomial.legendre.leggauss(count)[0].astype(np.longdouble)
    slope = np.ones_like(x)
    for _ in range(3):
        before, value = np.ones_like(x), x
        for degree in range(2, count + 1):
            before, value = value, ((2 * degree - 1) * x * value - (degree - 1) * before) / degree
        slope = count * (before - x * value) / ((1 - x) * (1 + x))
        x = x - value / slope
    rule = Rule(x.astype(float), (2 / ((1 - x) * (1 + x) * slope**2)).astype(float))
    for part in rule:
        # One copy serves everybody.
        part.flags.writeable = False
    return rule


def gauss(count: int, low: float = -1.0, high: float = 1.0) -> Rule:
    """The rule of `count` nodes on one interval.

    >>> rule = gauss(5, 0.0, 2.0)
    >>> round(float(rule.integrate(rule.nodes**9)), 10)
    102.4
    """
    nodes, weights = _standard(arguments.whole("count", count, 1, "nodes of a rule"))
    half = (high - low) / 2
    return Rule((low + high) / 2 + half * nodes, half * weights)


def composite(ends: ArrayLike, count: int) -> Rule:
    """`count` nodes between every two neighbours of `ends`, which increase: cut where the integrand is not smooth.

    >>> rule = composite([-1.0, 0.0, 3.0], 4)
    >>> round(float(rule.integrate(abs(rule.nodes))), 12), len(rule.nodes)
    (5.0, 8)
    """
    marks = np.asarray(ends, float)
    if marks.ndim != 1 or len(marks) < 2 or not np.all(np.diff(marks) > 0):
        raise ParameterError(f"ends = {marks.tolist()} is not allowed; give at least two increasing numbers")
    nodes, weights = gauss(count)
    half = np.diff(marks)[:, None] / 2
    return Rule((marks[:-1, None] + half * (1 + nodes)).ravel(), (half * weights).ravel())


def even(low: float, high: float, panels: int, count: int) -> Rule:
    """`panels` intervals of equal length with `count` nodes each.

    >>> rule = even(0.0, 50.0, 20, 10)
    >>> round(float(rule.integrate(np.sin(rule.nodes) ** 2)), 10)
    25.1265914103
    """
    return composite(np.linspace(low, high, panels + 1), count)


def half_line(count: int, scale: float = 1.0, start: float = 0.0) -> Rule:
    """Nodes on [start, ∞) by x = start + scale·(1 + u)/(1 − u): half of them lie within `scale` of the start.

    For functions that are smooth and fall like a power of x, at least like x^{−2}; geometric convergence where they
    are analytic at infinity in 1/x.

    >>> rule = half_line(30)
    >>> round(float(rule.integrate(1 / (1 + rule.nodes) ** 2)), 12)
    1.0
    """
    u, weights = gauss(count)
    return Rule(start + scale * (1 + u) / (1 - u), 2 * scale * weights / (1 - u) ** 2)


def towards_both_ends(low: float, high: float, panels: int, count: int, levels: int = 12) -> Rule:
    """`panels` even intervals inside, and next to each end `levels` intervals that shrink by halves.

    For integrands with a root or a logarithm at either end: what lies in the last interval is 2^{−levels} of the half.

    >>> rule = towards_both_ends(0.0, 1.0, 4, 20, levels=40)
    >>> round(float(rule.integrate(np.log(rule.nodes))), 12)
    -1.0
    """
    inward = np.concatenate([[0.0], 2.0 ** -np.arange(levels, 0.0, -1.0), np.linspace(0.5, 1, panels // 2 + 1)[1:]])
    half = (high - low) / 2
    return composite(np.concatenate([low + half * inward, high - half * inward[-2::-1]]), count)


def normal(count: int) -> Rule:
    """Gauss and Hermite's rule for a standard Gaussian variable z: E f(z) ≈ Σ weights · f(nodes).

    For entire functions that grow slowly; where f has a kink, panels that are cut there are right and this is not.

    >>> rule = normal(3)
    >>> round(float(rule.integrate(rule.nodes**4)), 12)
    3.0
    """
    nodes, weights = special.roots_hermitenorm(arguments.whole("count", count, 1, "nodes of a rule"))
    return Rule(nodes, weights / np.sum(weights))
