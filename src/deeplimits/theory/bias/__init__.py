"""Which solution an optimizer picks."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.theory.bias.cover_count import cover_probability as cover_probability
    from deeplimits.theory.bias.diagonal_networks import Interpolant as Interpolant
    from deeplimits.theory.bias.diagonal_networks import diagonal_interpolant as diagonal_interpolant
    from deeplimits.theory.bias.diagonal_networks import diagonal_potential as diagonal_potential
    from deeplimits.theory.bias.diagonal_networks import diagonal_regularizer as diagonal_regularizer
    from deeplimits.theory.bias.diagonal_networks import diagonal_trajectory as diagonal_trajectory
    from deeplimits.theory.bias.diagonal_networks import kernel_solution as kernel_solution
    from deeplimits.theory.bias.diagonal_networks import sparse_solution as sparse_solution
    from deeplimits.theory.bias.fluctuation_relations import fluctuation_dissipation as fluctuation_dissipation
    from deeplimits.theory.bias.homogeneous_margin import deep_linear_margin as deep_linear_margin
    from deeplimits.theory.bias.least_squares import closest_minimizer as closest_minimizer
    from deeplimits.theory.bias.least_squares import critical_step as critical_step
    from deeplimits.theory.bias.least_squares import gradient_descent as gradient_descent
    from deeplimits.theory.bias.least_squares import gradient_flow as gradient_flow
    from deeplimits.theory.bias.least_squares import optimal_step as optimal_step
    from deeplimits.theory.bias.noisy_descent import BestStep as BestStep
    from deeplimits.theory.bias.noisy_descent import RobbinsMonro as RobbinsMonro
    from deeplimits.theory.bias.noisy_descent import averaged_variance as averaged_variance
    from deeplimits.theory.bias.noisy_descent import best_step as best_step
    from deeplimits.theory.bias.noisy_descent import langevin_variance as langevin_variance
    from deeplimits.theory.bias.noisy_descent import proportional_best_step as proportional_best_step
    from deeplimits.theory.bias.noisy_descent import robbins_monro as robbins_monro
    from deeplimits.theory.bias.noisy_descent import stationary_variance as stationary_variance
    from deeplimits.theory.bias.proportional_margin import MaxMargin as MaxMargin
    from deeplimits.theory.bias.proportional_margin import proportional_max_margin as proportional_max_margin
    from deeplimits.theory.bias.proportional_margin import separability_threshold as separability_threshold
    from deeplimits.theory.bias.quadratic_model import Perturbation as Perturbation
    from deeplimits.theory.bias.quadratic_model import first_order_path as first_order_path
    from deeplimits.theory.bias.quadratic_model import quadratic_perturbation as quadratic_perturbation
    from deeplimits.theory.bias.separable_descent import LogTimeLaw as LogTimeLaw
    from deeplimits.theory.bias.separable_descent import largest_separable_step as largest_separable_step
    from deeplimits.theory.bias.separable_descent import log_time_law as log_time_law
    from deeplimits.theory.bias.sgd_noise import Stationary as Stationary
    from deeplimits.theory.bias.sgd_noise import largest_sgd_step as largest_sgd_step
    from deeplimits.theory.bias.sgd_noise import sgd_loss_path as sgd_loss_path
    from deeplimits.theory.bias.sgd_noise import sgd_stationary as sgd_stationary
    from deeplimits.theory.bias.slow_directions import diffusion_density as diffusion_density
    from deeplimits.theory.bias.slow_directions import entropic_drift as entropic_drift
    from deeplimits.theory.bias.slow_directions import slow_half_mass as slow_half_mass
    from deeplimits.theory.bias.slow_directions import valley_drift as valley_drift
    from deeplimits.theory.bias.support_vectors import HardMargin as HardMargin
    from deeplimits.theory.bias.support_vectors import NotSeparable as NotSeparable
    from deeplimits.theory.bias.support_vectors import hard_margin as hard_margin
    from deeplimits.theory.bias.support_vectors import is_separable as is_separable
    from deeplimits.theory.bias.support_vectors import multiclass_hard_margin as multiclass_hard_margin
