"""Networks at initialization: criticality, phases, depth scales, fluctuations, learning rates, parametrizations."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.theory.initialization.correlations import DepthScales as DepthScales
    from deeplimits.theory.initialization.correlations import correlation_fixed_point as correlation_fixed_point
    from deeplimits.theory.initialization.correlations import correlation_map as correlation_map
    from deeplimits.theory.initialization.correlations import correlation_path as correlation_path
    from deeplimits.theory.initialization.correlations import depth_scales as depth_scales
    from deeplimits.theory.initialization.critical_points import Criticality as Criticality
    from deeplimits.theory.initialization.critical_points import criticality as criticality
    from deeplimits.theory.initialization.depth_laws import DecayToZero as DecayToZero
    from deeplimits.theory.initialization.depth_laws import HalfStable as HalfStable
    from deeplimits.theory.initialization.depth_laws import decay_to_zero as decay_to_zero
    from deeplimits.theory.initialization.depth_laws import half_stable_law as half_stable_law
    from deeplimits.theory.initialization.finite_width import collective_variance as collective_variance
    from deeplimits.theory.initialization.finite_width import kernel_path as kernel_path
    from deeplimits.theory.initialization.finite_width import kurtosis_ratio as kurtosis_ratio
    from deeplimits.theory.initialization.finite_width import linear_kernel as linear_kernel
    from deeplimits.theory.initialization.finite_width import preactivation_variance as preactivation_variance
    from deeplimits.theory.initialization.finite_width import vertex_path as vertex_path
    from deeplimits.theory.initialization.layer_maps import Susceptibilities as Susceptibilities
    from deeplimits.theory.initialization.layer_maps import susceptibilities as susceptibilities
    from deeplimits.theory.initialization.learning_rates import depth_rates as depth_rates
    from deeplimits.theory.initialization.learning_rates import largest_stable_rate as largest_stable_rate
    from deeplimits.theory.initialization.learning_rates import tangent_kernels as tangent_kernels
    from deeplimits.theory.initialization.parametrization import effective_plain_form as effective_plain_form
    from deeplimits.theory.initialization.parametrization import feature_exponent as feature_exponent
    from deeplimits.theory.initialization.parametrization import learns_features as learns_features
    from deeplimits.theory.initialization.phases import EdgePoint as EdgePoint
    from deeplimits.theory.initialization.phases import Phase as Phase
    from deeplimits.theory.initialization.phases import critical_weight_variance as critical_weight_variance
    from deeplimits.theory.initialization.phases import edge_of_chaos as edge_of_chaos
    from deeplimits.theory.initialization.phases import fixed_point as fixed_point
    from deeplimits.theory.initialization.phases import phase as phase
