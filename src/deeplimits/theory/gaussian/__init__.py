"""Gaussian expectations, Hermite expansions, activations and their duals."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.theory.gaussian.closed_forms import has_dual as has_dual
    from deeplimits.theory.gaussian.closed_forms import has_fields as has_fields
    from deeplimits.theory.gaussian.dual_activations import closed_form as closed_form
    from deeplimits.theory.gaussian.dual_activations import dual as dual
    from deeplimits.theory.gaussian.dual_activations import dual_derivative as dual_derivative
    from deeplimits.theory.gaussian.dual_activations import dual_of as dual_of
    from deeplimits.theory.gaussian.duals.abstract_dual import Dual as Dual
    from deeplimits.theory.gaussian.hermite import HermiteExpansion as HermiteExpansion
    from deeplimits.theory.gaussian.hermite import hermite_coefficients as hermite_coefficients
    from deeplimits.theory.gaussian.hermite import power_series as power_series
    from deeplimits.theory.gaussian.moments import hermite_moment as hermite_moment
    from deeplimits.theory.gaussian.moments import mean as mean
    from deeplimits.theory.gaussian.moments import mean_curvature as mean_curvature
    from deeplimits.theory.gaussian.moments import mean_slope as mean_slope
    from deeplimits.theory.gaussian.moments import second_moment as second_moment
    from deeplimits.theory.gaussian.moments import slope_moment as slope_moment
    from deeplimits.theory.gaussian.quadrature import Expectation as Expectation
    from deeplimits.theory.gaussian.quadrature import expect as expect
    from deeplimits.theory.gaussian.quadrature import expect_pair as expect_pair
