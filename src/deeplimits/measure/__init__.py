"""Instruments for finite systems."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.measure import adapters as adapters
    from deeplimits.measure import classes as classes
    from deeplimits.measure import curvature as curvature
    from deeplimits.measure import regions as regions
    from deeplimits.measure import tokens as tokens
    from deeplimits.measure import training as training
    from deeplimits.measure.committees import batch_gradient as batch_gradient
    from deeplimits.measure.committees import laziness as laziness
    from deeplimits.measure.committees import laziness_on_data as laziness_on_data
    from deeplimits.measure.committees import risk_on_fresh_inputs as risk_on_fresh_inputs
    from deeplimits.measure.cross_validation import LeaveOneOut as LeaveOneOut
    from deeplimits.measure.cross_validation import leave_one_out as leave_one_out
    from deeplimits.measure.error_parts import ErrorSplit as ErrorSplit
    from deeplimits.measure.error_parts import error_split as error_split
    from deeplimits.measure.fluctuation_dissipation import Observation as Observation
    from deeplimits.measure.fluctuation_dissipation import Recorder as Recorder
    from deeplimits.measure.fluctuation_dissipation import Report as Report
    from deeplimits.measure.fluctuation_dissipation import observe as observe
    from deeplimits.measure.fluctuation_dissipation import report as report
    from deeplimits.measure.localizing import System as System
    from deeplimits.measure.localizing import localizability as localizability
    from deeplimits.measure.margins import Criticality as Criticality
    from deeplimits.measure.margins import criticality as criticality
    from deeplimits.measure.margins import degree_of as degree_of
    from deeplimits.measure.margins import flat_outputs as flat_outputs
    from deeplimits.measure.margins import normalized_margin as normalized_margin
    from deeplimits.measure.margins import smoothed_margin as smoothed_margin
    from deeplimits.measure.motion import training_motion as training_motion
    from deeplimits.measure.recovery import recovery_report as recovery_report
    from deeplimits.measure.separability import is_separable as is_separable
    from deeplimits.measure.shrinkage import LinearShrinkage as LinearShrinkage
    from deeplimits.measure.shrinkage import NonlinearShrinkage as NonlinearShrinkage
    from deeplimits.measure.shrinkage import analytical_shrinkage as analytical_shrinkage
    from deeplimits.measure.spectra import cauchy_smoothed as cauchy_smoothed
    from deeplimits.measure.spectra import covariance_losses as covariance_losses
    from deeplimits.measure.spectra import regularized_trace as regularized_trace
    from deeplimits.measure.spectra import sample_covariance_eigenvalues as sample_covariance_eigenvalues
    from deeplimits.measure.subspaces import alignment as alignment
    from deeplimits.measure.subspaces import distance_from_subspace as distance_from_subspace
    from deeplimits.measure.subspaces import top_eigenspace as top_eigenspace
    from deeplimits.measure.summary_statistics import Coefficients as Coefficients
    from deeplimits.measure.summary_statistics import closability as closability
    from deeplimits.measure.summary_statistics import coefficients as coefficients
    from deeplimits.measure.tangent_kernel import empirical_nngp as empirical_nngp
    from deeplimits.measure.tangent_kernel import empirical_ntk as empirical_ntk
