"""A user's own network, measured and set beside the theory."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.diagnosis.findings import Assumption as Assumption
    from deeplimits.diagnosis.findings import Finding as Finding
    from deeplimits.diagnosis.learning_rate import largest_stable_step as largest_stable_step
    from deeplimits.diagnosis.report import Change as Change
    from deeplimits.diagnosis.report import Report as Report
    from deeplimits.diagnosis.report import changes as changes
    from deeplimits.diagnosis.running import diagnose as diagnose
    from deeplimits.diagnosis.subject import Optimizer as Optimizer
