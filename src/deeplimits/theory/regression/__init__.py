"""Exact risks of estimators that are linear in the labels."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.theory.regression.gradient_flow import FlowToRidge as FlowToRidge
    from deeplimits.theory.regression.gradient_flow import early_stopped_descent_risk as early_stopped_descent_risk
    from deeplimits.theory.regression.gradient_flow import early_stopped_risk as early_stopped_risk
    from deeplimits.theory.regression.gradient_flow import flow_to_ridge_ratio as flow_to_ridge_ratio
    from deeplimits.theory.regression.gradient_flow import ridge_descent as ridge_descent
    from deeplimits.theory.regression.gradient_flow import ridge_flow as ridge_flow
    from deeplimits.theory.regression.gradient_flow import worst_flow_to_ridge as worst_flow_to_ridge
    from deeplimits.theory.regression.mixture_contour import (
        classification_dynamics_by_contour as classification_dynamics_by_contour,
    )
    from deeplimits.theory.regression.mixture_dynamics import Classification as Classification
    from deeplimits.theory.regression.mixture_dynamics import Stopping as Stopping
    from deeplimits.theory.regression.mixture_dynamics import classification_at_infinity as classification_at_infinity
    from deeplimits.theory.regression.mixture_dynamics import classification_dynamics as classification_dynamics
    from deeplimits.theory.regression.mixture_dynamics import optimal_stopping as optimal_stopping
    from deeplimits.theory.regression.populations import Population as Population
    from deeplimits.theory.regression.populations import from_covariance as from_covariance
    from deeplimits.theory.regression.populations import latent_features as latent_features
    from deeplimits.theory.regression.populations import population as population
    from deeplimits.theory.regression.random_features import FeatureErrors as FeatureErrors
    from deeplimits.theory.regression.random_features import FeatureRegression as FeatureRegression
    from deeplimits.theory.regression.random_features import feature_regression as feature_regression
    from deeplimits.theory.regression.ridge import OptimalRidge as OptimalRidge
    from deeplimits.theory.regression.ridge import misspecified_risk as misspecified_risk
    from deeplimits.theory.regression.ridge import optimal_ridge as optimal_ridge
    from deeplimits.theory.regression.ridge import ridge_risk as ridge_risk
    from deeplimits.theory.regression.ridgeless import ablation as ablation
    from deeplimits.theory.regression.ridgeless import best_overparametrization as best_overparametrization
    from deeplimits.theory.regression.ridgeless import design_risk as design_risk
    from deeplimits.theory.regression.ridgeless import ridgeless_finite_sample_norm as ridgeless_finite_sample_norm
    from deeplimits.theory.regression.ridgeless import ridgeless_finite_sample_risk as ridgeless_finite_sample_risk
    from deeplimits.theory.regression.ridgeless import ridgeless_norm as ridgeless_norm
    from deeplimits.theory.regression.ridgeless import ridgeless_risk as ridgeless_risk
    from deeplimits.theory.regression.ridgeless import ridgeless_training_error as ridgeless_training_error
    from deeplimits.theory.regression.risks import Risk as Risk
    from deeplimits.theory.regression.smoothing import kernel_concentration as kernel_concentration
    from deeplimits.theory.regression.smoothing import nearest_neighbours_bias_cone as nearest_neighbours_bias_cone
    from deeplimits.theory.regression.smoothing import nearest_neighbours_bias_linear as nearest_neighbours_bias_linear
    from deeplimits.theory.regression.smoothing import nearest_neighbours_risk as nearest_neighbours_risk
    from deeplimits.theory.regression.smoothing import order_statistic_limit as order_statistic_limit
    from deeplimits.theory.regression.smoothing import singular_kernel_risk as singular_kernel_risk
    from deeplimits.theory.regression.training_risk import descent_risk as descent_risk
    from deeplimits.theory.regression.training_risk import flow_risk as flow_risk
