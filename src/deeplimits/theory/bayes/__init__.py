"""Exact Bayesian inference with deep linear networks: evidence, posterior, predictions, model selection."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.theory.bayes.effective_depth import Concentrated as Concentrated
    from deeplimits.theory.bayes.effective_depth import DeepPosterior as DeepPosterior
    from deeplimits.theory.bayes.effective_depth import concentrated_posterior as concentrated_posterior
    from deeplimits.theory.bayes.effective_depth import deep_posterior as deep_posterior
    from deeplimits.theory.bayes.effective_depth import log_norm_density as log_norm_density
    from deeplimits.theory.bayes.effective_depth import log_norm_limit as log_norm_limit
    from deeplimits.theory.bayes.evidence import Interpolation as Interpolation
    from deeplimits.theory.bayes.evidence import evidence_over_depth as evidence_over_depth
    from deeplimits.theory.bayes.evidence import interpolate as interpolate
    from deeplimits.theory.bayes.evidence import interpolation as interpolation
    from deeplimits.theory.bayes.evidence import log_evidence as log_evidence
    from deeplimits.theory.bayes.evidence import log_meijer_g as log_meijer_g
    from deeplimits.theory.bayes.posterior import Predicted as Predicted
    from deeplimits.theory.bayes.posterior import log_predictive_density as log_predictive_density
    from deeplimits.theory.bayes.posterior import posterior_norm_moment as posterior_norm_moment
    from deeplimits.theory.bayes.posterior import predict_labels as predict_labels
    from deeplimits.theory.bayes.selection import PriorScale as PriorScale
    from deeplimits.theory.bayes.selection import Selection as Selection
    from deeplimits.theory.bayes.selection import best_prior_scale as best_prior_scale
    from deeplimits.theory.bayes.selection import evidence_map as evidence_map
    from deeplimits.theory.bayes.selection import select_architecture as select_architecture
