"""Kernels of wide networks, regression with them, and networks near their initialization."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.theory.kernels import large as large
    from deeplimits.theory.kernels.definiteness import gram_definiteness as gram_definiteness
    from deeplimits.theory.kernels.determinantal import cardinality as cardinality
    from deeplimits.theory.kernels.determinantal import inclusion_probability as inclusion_probability
    from deeplimits.theory.kernels.determinantal import marginal_kernel as marginal_kernel
    from deeplimits.theory.kernels.determinantal import subset_probability as subset_probability
    from deeplimits.theory.kernels.feature_kernels import FeatureKernel as FeatureKernel
    from deeplimits.theory.kernels.feature_kernels import fourier_features as fourier_features
    from deeplimits.theory.kernels.feature_kernels import neuron_features as neuron_features
    from deeplimits.theory.kernels.gaussian_process import kernel_ridge as kernel_ridge
    from deeplimits.theory.kernels.gaussian_process import log_evidence as log_evidence
    from deeplimits.theory.kernels.gaussian_process import posterior as posterior
    from deeplimits.theory.kernels.infinite_width import InfiniteWidth as InfiniteWidth
    from deeplimits.theory.kernels.lazy_bounds import du_convergence as du_convergence
    from deeplimits.theory.kernels.lazy_bounds import lazy_orders as lazy_orders
    from deeplimits.theory.kernels.lazy_bounds import lazy_scaling as lazy_scaling
    from deeplimits.theory.kernels.lazy_bounds import lazy_training_bounds as lazy_training_bounds
    from deeplimits.theory.kernels.linearization import relu_remainder_bound as relu_remainder_bound
    from deeplimits.theory.kernels.linearization import relu_worst_deviation as relu_worst_deviation
    from deeplimits.theory.kernels.linearization import smooth_remainder_bound as smooth_remainder_bound
    from deeplimits.theory.kernels.linearization import two_layer_expansion as two_layer_expansion
    from deeplimits.theory.kernels.linearized_training import linearized_flow as linearized_flow
    from deeplimits.theory.kernels.mercer import mercer_of_gaussian as mercer_of_gaussian
    from deeplimits.theory.kernels.mercer import mercer_of_minimum as mercer_of_minimum
    from deeplimits.theory.kernels.mercer import nystrom as nystrom
    from deeplimits.theory.kernels.output_factor import lazy_range as lazy_range
    from deeplimits.theory.kernels.output_factor import tangent_interpolant as tangent_interpolant
    from deeplimits.theory.kernels.rkhs import least_norm_interpolant as least_norm_interpolant
    from deeplimits.theory.kernels.rkhs import mercer_squared_norm as mercer_squared_norm
    from deeplimits.theory.kernels.rkhs import rkhs_inner_product as rkhs_inner_product
    from deeplimits.theory.kernels.rkhs import rkhs_norm_of_function as rkhs_norm_of_function
    from deeplimits.theory.kernels.rkhs import rkhs_squared_norm as rkhs_squared_norm
    from deeplimits.theory.kernels.sphere import network_kernel as network_kernel
    from deeplimits.theory.kernels.sphere import ring_coefficients as ring_coefficients
    from deeplimits.theory.kernels.sphere import sphere_eigenvalues as sphere_eigenvalues
    from deeplimits.theory.kernels.training import blocks as blocks
    from deeplimits.theory.kernels.training import gradient_descent as gradient_descent
    from deeplimits.theory.kernels.training import gradient_flow as gradient_flow
    from deeplimits.theory.kernels.training import largest_stable_step as largest_stable_step
    from deeplimits.theory.kernels.training import trained_ensemble as trained_ensemble
    from deeplimits.theory.kernels.two_layer_kernels import arc_cosine_ntk as arc_cosine_ntk
    from deeplimits.theory.kernels.two_layer_kernels import nonlinear_quadratic_form as nonlinear_quadratic_form
    from deeplimits.theory.kernels.two_layer_kernels import ntk_variance as ntk_variance
    from deeplimits.theory.kernels.two_layer_kernels import two_layer_gram as two_layer_gram
    from deeplimits.theory.kernels.two_layer_kernels import two_layer_ntk as two_layer_ntk
