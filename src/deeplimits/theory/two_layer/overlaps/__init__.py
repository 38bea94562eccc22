"""Two-layer networks trained by one-pass SGD in high dimension: the equations of their overlaps."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.models.committees import Overlaps as Overlaps
    from deeplimits.models.committees import Task as Task
    from deeplimits.theory.two_layer.overlaps.batches import Batch as Batch
    from deeplimits.theory.two_layer.overlaps.batches import batch_terms as batch_terms
    from deeplimits.theory.two_layer.overlaps.batches import concentration as concentration
    from deeplimits.theory.two_layer.overlaps.conventions import Convention as Convention
    from deeplimits.theory.two_layer.overlaps.conventions import Foreign as Foreign
    from deeplimits.theory.two_layer.overlaps.conventions import from_convention as from_convention
    from deeplimits.theory.two_layer.overlaps.conventions import to_convention as to_convention
    from deeplimits.theory.two_layer.overlaps.equations import Drift as Drift
    from deeplimits.theory.two_layer.overlaps.equations import drift as drift
    from deeplimits.theory.two_layer.overlaps.equations import mean_increment as mean_increment
    from deeplimits.theory.two_layer.overlaps.equations import risk as risk
    from deeplimits.theory.two_layer.overlaps.equations import squared_gradient as squared_gradient
    from deeplimits.theory.two_layer.overlaps.equations import velocity as velocity
    from deeplimits.theory.two_layer.overlaps.escape import EscapeTime as EscapeTime
    from deeplimits.theory.two_layer.overlaps.escape import Mediocrity as Mediocrity
    from deeplimits.theory.two_layer.overlaps.escape import escape_time as escape_time
    from deeplimits.theory.two_layer.overlaps.escape import mediocrity as mediocrity
    from deeplimits.theory.two_layer.overlaps.events import Event as Event
    from deeplimits.theory.two_layer.overlaps.events import first_time as first_time
    from deeplimits.theory.two_layer.overlaps.events import plateau_exit as plateau_exit
    from deeplimits.theory.two_layer.overlaps.events import specialization_time as specialization_time
    from deeplimits.theory.two_layer.overlaps.fixed_points import FixedPoint as FixedPoint
    from deeplimits.theory.two_layer.overlaps.fixed_points import fixed_point as fixed_point
    from deeplimits.theory.two_layer.overlaps.fluctuations import Fluctuations as Fluctuations
    from deeplimits.theory.two_layer.overlaps.fluctuations import covariance_flow as covariance_flow
    from deeplimits.theory.two_layer.overlaps.fluctuations import stationary_covariance as stationary_covariance
    from deeplimits.theory.two_layer.overlaps.integrals import Moments as Moments
    from deeplimits.theory.two_layer.overlaps.integrals import activation_integrals as activation_integrals
    from deeplimits.theory.two_layer.overlaps.integration import Trajectory as Trajectory
    from deeplimits.theory.two_layer.overlaps.integration import trajectory as trajectory
    from deeplimits.theory.two_layer.overlaps.near_teacher import risk_near_teacher as risk_near_teacher
    from deeplimits.theory.two_layer.overlaps.plateau import Plateau as Plateau
    from deeplimits.theory.two_layer.overlaps.plateau import plateau_length as plateau_length
    from deeplimits.theory.two_layer.overlaps.plateau import symmetric_plateau as symmetric_plateau
    from deeplimits.theory.two_layer.overlaps.regimes import regime as regime
    from deeplimits.theory.two_layer.overlaps.regimes import variance_flow as variance_flow
    from deeplimits.theory.two_layer.overlaps.stationary_risk import critical_learning_rate as critical_learning_rate
    from deeplimits.theory.two_layer.overlaps.stationary_risk import noise_floor as noise_floor
