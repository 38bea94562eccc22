"""Remainders of linearized networks: curvatures by calculus, and the example that attains the bound."""

import math

import pytest

from deeplimits.errors import OutsideValidity
from deeplimits.models.activations import Activation, activation
from deeplimits.theory.kernels import linearization


@pytest.mark.parametrize(
    ("name", "value"),
    [("quadratic", 1.0), ("tanh", 4 / math.sqrt(27)), ("sigmoid", 1 / math.sqrt(108)),
     ("erf", math.sqrt(8 / math.pi / math.e)), ("gelu", 2 / math.sqrt(2 * math.pi)), ("softplus", 0.25), ("sin", 1.0)],
)  # fmt: skip
def test_curvature(name, value):
    assert linearization.curvature_bound(activation(name)) == pytest.approx(value, rel=4e-15)


def test_curvature_must_be_bounded():
    cubic = Activation("cubic", lambda u: u**3, lambda u: 3 * u**2, lambda u: 6 * u)
    with pytest.raises(OutsideValidity, match="cubic is unbounded"):
        linearization.curvature_bound(cubic)


def test_sharp_example():
    # σ = u²/2, four neurons, every row moved by x/2: both sides are 1/4.
    assert float(linearization.smooth_remainder_bound(activation("quadratic"), 4, 1.0)) == pytest.approx(0.25)
