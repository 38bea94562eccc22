"""Online SGD in high dimension: information exponents, exit times, effective dynamics."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.theory.online_sgd import deviations as deviations
    from deeplimits.theory.online_sgd import recovery as recovery
    from deeplimits.theory.online_sgd.classical import (
        gradient_flow_with_fluctuations as gradient_flow_with_fluctuations,
    )
    from deeplimits.theory.online_sgd.critical_window import passage_probability as passage_probability
    from deeplimits.theory.online_sgd.effective import EffectiveDynamics as EffectiveDynamics
    from deeplimits.theory.online_sgd.effective import classify_dynamics as classify_dynamics
    from deeplimits.theory.online_sgd.effective import fixed_points as fixed_points
    from deeplimits.theory.online_sgd.effective import fluctuations as fluctuations
    from deeplimits.theory.online_sgd.effective import solve_ode as solve_ode
    from deeplimits.theory.online_sgd.effective import stationary_covariance as stationary_covariance
    from deeplimits.theory.online_sgd.effective import zoom as zoom
    from deeplimits.theory.online_sgd.equator import equator_density as equator_density
    from deeplimits.theory.online_sgd.equator import equator_exceedance as equator_exceedance
    from deeplimits.theory.online_sgd.exit_times import critical_ratio as critical_ratio
    from deeplimits.theory.online_sgd.exit_times import descent_time as descent_time
    from deeplimits.theory.online_sgd.exit_times import passage_time as passage_time
    from deeplimits.theory.online_sgd.exit_times import pca_search_law as pca_search_law
    from deeplimits.theory.online_sgd.exit_times import search_law as search_law
    from deeplimits.theory.online_sgd.exit_times import search_offset as search_offset
    from deeplimits.theory.online_sgd.landscapes import InformationExponent as InformationExponent
    from deeplimits.theory.online_sgd.landscapes import Landscape as Landscape
    from deeplimits.theory.online_sgd.landscapes import binary_mixture as binary_mixture
    from deeplimits.theory.online_sgd.landscapes import critical_step as critical_step
    from deeplimits.theory.online_sgd.landscapes import information_exponent as information_exponent
    from deeplimits.theory.online_sgd.landscapes import online_pca as online_pca
    from deeplimits.theory.online_sgd.landscapes import single_index as single_index
    from deeplimits.theory.online_sgd.landscapes import tensor_pca as tensor_pca
    from deeplimits.theory.online_sgd.regularity import Regularity as Regularity
    from deeplimits.theory.online_sgd.regularity import check_regularity as check_regularity
    from deeplimits.theory.online_sgd.spherical_ode import correlation as correlation
    from deeplimits.theory.online_sgd.spherical_ode import pca_correlation as pca_correlation
    from deeplimits.theory.online_sgd.spherical_ode import pca_plateau as pca_plateau
    from deeplimits.theory.online_sgd.spherical_ode import phase_retrieval_correlation as phase_retrieval_correlation
    from deeplimits.theory.online_sgd.spherical_ode import plateau as plateau
    from deeplimits.theory.online_sgd.spiked_tensor import RestPoint as RestPoint
    from deeplimits.theory.online_sgd.spiked_tensor import critical_signal as critical_signal
    from deeplimits.theory.online_sgd.spiked_tensor import spiked_ballistic as spiked_ballistic
    from deeplimits.theory.online_sgd.spiked_tensor import spiked_dynamics as spiked_dynamics
    from deeplimits.theory.online_sgd.spiked_tensor import spiked_rest_points as spiked_rest_points
    from deeplimits.theory.online_sgd.xor import XorState as XorState
    from deeplimits.theory.online_sgd.xor import xor_ballistic as xor_ballistic
    from deeplimits.theory.online_sgd.xor import xor_component_count as xor_component_count
    from deeplimits.theory.online_sgd.xor import xor_success_probability as xor_success_probability
    from deeplimits.theory.online_sgd.xor_rest import classify_xor_rest as classify_xor_rest
    from deeplimits.theory.online_sgd.xor_rest import xor_rest_point as xor_rest_point
