"""A user's own network, measured and set beside the theory: reports, and the powers of its width."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.diagnosis.best_rates import RateTransfer as RateTransfer
    from deeplimits.diagnosis.best_rates import rate_transfer as rate_transfer
    from deeplimits.diagnosis.compression import Compression as Compression
    from deeplimits.diagnosis.compression import compress as compress
    from deeplimits.diagnosis.findings import Assumption as Assumption
    from deeplimits.diagnosis.findings import Finding as Finding
    from deeplimits.diagnosis.learning_rate import largest_stable_step as largest_stable_step
    from deeplimits.diagnosis.probe import ridge_probe as ridge_probe
    from deeplimits.diagnosis.report import Change as Change
    from deeplimits.diagnosis.report import Report as Report
    from deeplimits.diagnosis.report import changes as changes
    from deeplimits.diagnosis.report import compare as compare
    from deeplimits.diagnosis.running import diagnose as diagnose
    from deeplimits.diagnosis.subject import Optimizer as Optimizer
    from deeplimits.diagnosis.watching import Watch as Watch
    from deeplimits.diagnosis.width_powers import CoordinateCheck as CoordinateCheck
    from deeplimits.diagnosis.width_powers import Factor as Factor
    from deeplimits.diagnosis.width_powers import LayerPowers as LayerPowers
    from deeplimits.diagnosis.width_powers import Powers as Powers
    from deeplimits.diagnosis.width_powers import coordinate_check as coordinate_check
