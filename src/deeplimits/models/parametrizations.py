r"""abc-parametrizations: which powers of the width stand before the weights, in their law and in the learning rate."""

from dataclasses import dataclass

import numpy as np

from deeplimits.errors import ParameterError


@dataclass(frozen=True)
class Parametrization:
    """W^(l) = n^(−a_l) w^(l), w^(l) ~ N(0, n^(−2b_l)), SGD with learning rate η n^(−c) on w; l = 1 … L+1."""

    a: tuple[float, ...]
    b: tuple[float, ...]
    c: float = 0.0

    def __post_init__(self):
        if len(self.a) != len(self.b) or len(self.a) < 2:
            raise ParameterError(
                f"a = {self.a}, b = {self.b} is not allowed; give one exponent for each of at least two weight matrices"
            )
        if not all(np.isfinite([*self.a, *self.b, self.c])):
            raise ParameterError(
                f"a = {self.a}, b = {self.b}, c = {self.c} is not allowed; exponents are finite numbers"
            )


def ntk(hidden: int) -> Parametrization:
    """The NTK parametrization of a network with `hidden` hidden layers."""
    return Parametrization((0.0, *[0.5] * _hidden(hidden)), (0.0,) * (hidden + 1), 0.0)


def maximal_update(hidden: int) -> Parametrization:
    """μP, which for one hidden layer is the mean-field parametrization."""
    return Parametrization((-0.5, *[0.0] * (_hidden(hidden) - 1), 0.5), (0.5,) * (hidden + 1), 0.0)


def standard(hidden: int) -> Parametrization:
    """Plain weights of variance 1/fan-in, with the largest stable learning rate, O(1/n)."""
    return Parametrization((0.0,) * (_hidden(hidden) + 1), (0.0, *[0.5] * hidden), 1.0)


PRESETS = {"ntk": ntk, "maximal-update": maximal_update, "mean-field": maximal_update, "standard": standard}


def _hidden(count: int) -> int:
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise ParameterError(
            f"hidden = {count!r} is not allowed; a network has a whole number of hidden layers, at least 1"
        )
    return int(count)
