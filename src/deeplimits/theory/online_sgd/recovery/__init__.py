"""What spherical online SGD recovers of a signal, with which probability, and what too few samples cannot do."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.theory.online_sgd.equator import half_sphere_law as half_sphere_law
    from deeplimits.theory.online_sgd.equator import half_sphere_mean as half_sphere_mean
    from deeplimits.theory.online_sgd.exit_times import StepWindow as StepWindow
    from deeplimits.theory.online_sgd.exit_times import small_step_search as small_step_search
    from deeplimits.theory.online_sgd.exit_times import step_window as step_window
    from deeplimits.theory.online_sgd.recovery.outcome import Recovery as Recovery
    from deeplimits.theory.online_sgd.recovery.outcome import recovery as recovery
    from deeplimits.theory.online_sgd.recovery.outcome import recovery_probability as recovery_probability
    from deeplimits.theory.online_sgd.recovery.too_few_samples import MartingaleBound as MartingaleBound
    from deeplimits.theory.online_sgd.recovery.too_few_samples import martingale_bound as martingale_bound
    from deeplimits.theory.online_sgd.recovery.too_few_samples import no_recovery_bound as no_recovery_bound
