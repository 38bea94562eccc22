"""Loss landscapes: Hessians and their classes, alignment, the edge of stability, catapults, neural collapse."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.theory.landscape.catapult import catapult_end as catapult_end
    from deeplimits.theory.landscape.catapult import catapult_path as catapult_path
    from deeplimits.theory.landscape.catapult import catapult_time as catapult_time
    from deeplimits.theory.landscape.catapult import lazy_kernel_change as lazy_kernel_change
    from deeplimits.theory.landscape.catapult import learning_rate_phases as learning_rate_phases
    from deeplimits.theory.landscape.catapult import reduced_catapult as reduced_catapult
    from deeplimits.theory.landscape.class_parts import ClassParts as ClassParts
    from deeplimits.theory.landscape.class_parts import FeatureParts as FeatureParts
    from deeplimits.theory.landscape.class_parts import class_decomposition as class_decomposition
    from deeplimits.theory.landscape.class_parts import feature_decomposition as feature_decomposition
    from deeplimits.theory.landscape.class_parts import start_gradient_parts as start_gradient_parts
    from deeplimits.theory.landscape.collapse import mean_logits as mean_logits
    from deeplimits.theory.landscape.collapse import neural_collapse_in_noise as neural_collapse_in_noise
    from deeplimits.theory.landscape.collapse import simplex_frame as simplex_frame
    from deeplimits.theory.landscape.collapse import unconstrained_features as unconstrained_features
    from deeplimits.theory.landscape.curvature_parts import gauss_newton_rank as gauss_newton_rank
    from deeplimits.theory.landscape.curvature_parts import top_gradient_share as top_gradient_share
    from deeplimits.theory.landscape.curvature_parts import two_cluster_curvature as two_cluster_curvature
    from deeplimits.theory.landscape.curvature_parts import two_layer_curvature as two_layer_curvature
    from deeplimits.theory.landscape.kgmm import MixtureState as MixtureState
    from deeplimits.theory.landscape.kgmm import SymmetricState as SymmetricState
    from deeplimits.theory.landscape.kgmm import kgmm_ballistic as kgmm_ballistic
    from deeplimits.theory.landscape.kgmm import kgmm_blocks as kgmm_blocks
    from deeplimits.theory.landscape.kgmm import kgmm_fixed_point as kgmm_fixed_point
    from deeplimits.theory.landscape.kgmm import kgmm_noiseless_path as kgmm_noiseless_path
    from deeplimits.theory.landscape.kgmm import kgmm_symmetric_path as kgmm_symmetric_path
    from deeplimits.theory.landscape.kgmm import kgmm_weighted_block as kgmm_weighted_block
    from deeplimits.theory.landscape.kgmm import softmax_curvature as softmax_curvature
    from deeplimits.theory.landscape.open_questions import open_directions as open_directions
    from deeplimits.theory.landscape.softmax import softmax_moments as softmax_moments
    from deeplimits.theory.landscape.stability_edge import growth_factor as growth_factor
    from deeplimits.theory.landscape.stability_edge import product_descent as product_descent
    from deeplimits.theory.landscape.stability_edge import product_flow as product_flow
    from deeplimits.theory.landscape.stability_edge import stability_threshold as stability_threshold
    from deeplimits.theory.landscape.weighted_covariance import Outliers as Outliers
    from deeplimits.theory.landscape.weighted_covariance import WeightedSample as WeightedSample
    from deeplimits.theory.landscape.weighted_covariance import outlier_alignment as outlier_alignment
    from deeplimits.theory.landscape.weighted_covariance import weighted_outliers as weighted_outliers
    from deeplimits.theory.landscape.weighted_covariance import weighted_sample as weighted_sample
    from deeplimits.theory.landscape.xor_blocks import xor_curvature as xor_curvature
    from deeplimits.theory.landscape.xor_blocks import xor_outlier_counts as xor_outlier_counts
    from deeplimits.theory.landscape.xor_blocks import xor_rest_eigenvalues as xor_rest_eigenvalues
    from deeplimits.theory.landscape.xor_blocks import xor_rest_first_layer as xor_rest_first_layer
    from deeplimits.theory.landscape.xor_blocks import xor_second_layer as xor_second_layer
    from deeplimits.theory.landscape.xor_blocks import xor_weighted_block as xor_weighted_block
