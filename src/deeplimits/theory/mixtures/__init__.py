"""Mixtures in high dimension: their kernels, clusters, one step of learning, networks of few levels, implicit ones."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.theory.mixtures.activation_moments import KernelCoefficients as KernelCoefficients
    from deeplimits.theory.mixtures.activation_moments import LayerMoments as LayerMoments
    from deeplimits.theory.mixtures.activation_moments import kernel_coefficients as kernel_coefficients
    from deeplimits.theory.mixtures.activation_moments import layer_moments as layer_moments
    from deeplimits.theory.mixtures.distance_kernels import Clustering as Clustering
    from deeplimits.theory.mixtures.distance_kernels import Expansion as Expansion
    from deeplimits.theory.mixtures.distance_kernels import distance_expansion as distance_expansion
    from deeplimits.theory.mixtures.distance_kernels import kernel_clustering as kernel_clustering
    from deeplimits.theory.mixtures.distance_kernels import linearized_distance_kernel as linearized_distance_kernel
    from deeplimits.theory.mixtures.distance_kernels import linearized_inner_kernel as linearized_inner_kernel
    from deeplimits.theory.mixtures.distances import LargestGap as LargestGap
    from deeplimits.theory.mixtures.distances import PairDistances as PairDistances
    from deeplimits.theory.mixtures.distances import largest_distance_gap as largest_distance_gap
    from deeplimits.theory.mixtures.distances import pair_distances as pair_distances
    from deeplimits.theory.mixtures.few_levels import Match as Match
    from deeplimits.theory.mixtures.few_levels import staircase_match as staircase_match
    from deeplimits.theory.mixtures.few_levels import symmetric_ternary as symmetric_ternary
    from deeplimits.theory.mixtures.few_levels import ternary_match as ternary_match
    from deeplimits.theory.mixtures.few_levels import two_level_match as two_level_match
    from deeplimits.theory.mixtures.gaussian_mixtures import GaussianMixture as GaussianMixture
    from deeplimits.theory.mixtures.gaussian_mixtures import KernelData as KernelData
    from deeplimits.theory.mixtures.gaussian_mixtures import gaussian_mixture as gaussian_mixture
    from deeplimits.theory.mixtures.gaussian_mixtures import kernel_data as kernel_data
    from deeplimits.theory.mixtures.gaussian_mixtures import standardized as standardized
    from deeplimits.theory.mixtures.implicit import Equilibrium as Equilibrium
    from deeplimits.theory.mixtures.implicit import Explicit as Explicit
    from deeplimits.theory.mixtures.implicit import equilibrium_coefficients as equilibrium_coefficients
    from deeplimits.theory.mixtures.implicit import explicit_equivalent as explicit_equivalent
    from deeplimits.theory.mixtures.implicit_kernels import equilibrium_kernels as equilibrium_kernels
    from deeplimits.theory.mixtures.kernel_equivalents import KernelEquivalent as KernelEquivalent
    from deeplimits.theory.mixtures.kernel_equivalents import centred_kernel as centred_kernel
    from deeplimits.theory.mixtures.kernel_equivalents import conjugate_kernel_equivalent as conjugate_kernel_equivalent
    from deeplimits.theory.mixtures.kernel_equivalents import equivalent_kernel as equivalent_kernel
    from deeplimits.theory.mixtures.layer_equivalents import DeepCoefficients as DeepCoefficients
    from deeplimits.theory.mixtures.layer_equivalents import DeepKernel as DeepKernel
    from deeplimits.theory.mixtures.layer_equivalents import deep_coefficients as deep_coefficients
    from deeplimits.theory.mixtures.likelihood_ratio import limiting_error as limiting_error
    from deeplimits.theory.mixtures.likelihood_ratio import oracle_error as oracle_error
    from deeplimits.theory.mixtures.one_step import OneStepRisk as OneStepRisk
    from deeplimits.theory.mixtures.one_step import OneStepSpike as OneStepSpike
    from deeplimits.theory.mixtures.one_step import RankOne as RankOne
    from deeplimits.theory.mixtures.one_step import first_gradient as first_gradient
    from deeplimits.theory.mixtures.one_step import one_step_ridge_risk as one_step_ridge_risk
    from deeplimits.theory.mixtures.one_step import one_step_spike as one_step_spike
    from deeplimits.theory.mixtures.one_step import rank_one_gradient as rank_one_gradient
