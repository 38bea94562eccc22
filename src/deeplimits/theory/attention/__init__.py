"""Transformers as interacting particles on the sphere."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.theory.attention.circle import AngularFeedForward as AngularFeedForward
    from deeplimits.theory.attention.circle import AngularHead as AngularHead
    from deeplimits.theory.attention.circle import angular_flow as angular_flow
    from deeplimits.theory.attention.circle import angular_velocity as angular_velocity
    from deeplimits.theory.attention.circle import bessel_ratios as bessel_ratios
    from deeplimits.theory.attention.circle import circle_moments as circle_moments
    from deeplimits.theory.attention.cluster_rates import Regime as Regime
    from deeplimits.theory.attention.cluster_rates import cluster_rate as cluster_rate
    from deeplimits.theory.attention.cluster_rates import proven_regime as proven_regime
    from deeplimits.theory.attention.energies import EnergyGrowth as EnergyGrowth
    from deeplimits.theory.attention.energies import energy_growth as energy_growth
    from deeplimits.theory.attention.energies import log_interaction_energy as log_interaction_energy
    from deeplimits.theory.attention.energies import mean_energy as mean_energy
    from deeplimits.theory.attention.equiangular import Equiangular as Equiangular
    from deeplimits.theory.attention.equiangular import equiangular_bound as equiangular_bound
    from deeplimits.theory.attention.equiangular import equiangular_cosine as equiangular_cosine
    from deeplimits.theory.attention.equiangular import equiangular_time as equiangular_time
    from deeplimits.theory.attention.gram_matrices import gram_flow as gram_flow
    from deeplimits.theory.attention.kuramoto import antipodal_spectrum as antipodal_spectrum
    from deeplimits.theory.attention.kuramoto import balanced_curvature as balanced_curvature
    from deeplimits.theory.attention.kuramoto import poisson_order as poisson_order
    from deeplimits.theory.attention.kuramoto import uniform_growth as uniform_growth
    from deeplimits.theory.attention.neural_odes import NeuralODE as NeuralODE
    from deeplimits.theory.attention.neural_odes import neural_ode as neural_ode
    from deeplimits.theory.attention.neural_odes import tanh_flow as tanh_flow
    from deeplimits.theory.attention.random_scores import ScoreLaw as ScoreLaw
    from deeplimits.theory.attention.random_scores import score_law as score_law
    from deeplimits.theory.attention.staircase import FastestMode as FastestMode
    from deeplimits.theory.attention.staircase import fastest_mode as fastest_mode
    from deeplimits.theory.attention.staircase import harmonic_growth as harmonic_growth
    from deeplimits.theory.attention.staircase import merge_time as merge_time
    from deeplimits.theory.attention.staircase import uniform_partition as uniform_partition
    from deeplimits.theory.attention.temperatures import ColdRate as ColdRate
    from deeplimits.theory.attention.temperatures import GibbsRow as GibbsRow
    from deeplimits.theory.attention.temperatures import cold_rate as cold_rate
    from deeplimits.theory.attention.temperatures import gibbs_row as gibbs_row
    from deeplimits.theory.attention.temperatures import hot_deviation as hot_deviation
