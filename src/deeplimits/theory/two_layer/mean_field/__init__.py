"""Infinitely wide two-layer networks: their neurons as a measure that flows."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.theory.two_layer.mean_field.convergence import Convergence as Convergence
    from deeplimits.theory.two_layer.mean_field.convergence import convergence_conditions as convergence_conditions
    from deeplimits.theory.two_layer.mean_field.finite_particles import chaos_bound as chaos_bound
    from deeplimits.theory.two_layer.mean_field.fokker_planck import Interaction as Interaction
    from deeplimits.theory.two_layer.mean_field.fokker_planck import Stationary as Stationary
    from deeplimits.theory.two_layer.mean_field.fokker_planck import density_flow as density_flow
    from deeplimits.theory.two_layer.mean_field.fokker_planck import interaction as interaction
    from deeplimits.theory.two_layer.mean_field.fokker_planck import stationary_law as stationary_law
    from deeplimits.theory.two_layer.mean_field.incremental import Learning as Learning
    from deeplimits.theory.two_layer.mean_field.incremental import SingleIndex as SingleIndex
    from deeplimits.theory.two_layer.mean_field.incremental import incremental_learning as incremental_learning
    from deeplimits.theory.two_layer.mean_field.incremental import incremental_time_scales as incremental_time_scales
    from deeplimits.theory.two_layer.mean_field.incremental import learning_time as learning_time
    from deeplimits.theory.two_layer.mean_field.initial_laws import gauss_hermite as gauss_hermite
    from deeplimits.theory.two_layer.mean_field.initial_laws import graded_normal as graded_normal
    from deeplimits.theory.two_layer.mean_field.initial_laws import normal_quantiles as normal_quantiles
    from deeplimits.theory.two_layer.mean_field.particles import Flow as Flow
    from deeplimits.theory.two_layer.mean_field.particles import Particles as Particles
    from deeplimits.theory.two_layer.mean_field.particles import dissipation as dissipation
    from deeplimits.theory.two_layer.mean_field.particles import wasserstein_flow as wasserstein_flow
    from deeplimits.theory.two_layer.mean_field.reduction import Reduced as Reduced
    from deeplimits.theory.two_layer.mean_field.reduction import ReducedFlow as ReducedFlow
    from deeplimits.theory.two_layer.mean_field.reduction import reduced_flow as reduced_flow
    from deeplimits.theory.two_layer.mean_field.solvable_flows import Gaussian as Gaussian
    from deeplimits.theory.two_layer.mean_field.solvable_flows import noisy_linear_neuron as noisy_linear_neuron
    from deeplimits.theory.two_layer.mean_field.solvable_flows import quadratic_neurons as quadratic_neurons
