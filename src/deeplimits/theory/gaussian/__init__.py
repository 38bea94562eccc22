"""Gaussian expectations, Hermite expansions, activations and their duals."""

from deeplimits.theory.gaussian import hermite as hermite
from deeplimits.theory.gaussian.duals import dual as dual
from deeplimits.theory.gaussian.duals import dual_derivative as dual_derivative
from deeplimits.theory.gaussian.hermite import hermite_coefficients as hermite_coefficients
from deeplimits.theory.gaussian.quadrature import Expectation as Expectation
from deeplimits.theory.gaussian.quadrature import expect as expect
from deeplimits.theory.gaussian.quadrature import expect_pair as expect_pair
