"""Class structure: gradients, features and backpropagated errors taken apart by class, and neural collapse."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.measure.classes.features import Collapse as Collapse
    from deeplimits.measure.classes.features import FeatureParts as FeatureParts
    from deeplimits.measure.classes.features import Moments as Moments
    from deeplimits.measure.classes.features import feature_parts as feature_parts
    from deeplimits.measure.classes.features import moments as moments
    from deeplimits.measure.classes.features import neural_collapse as neural_collapse
    from deeplimits.measure.classes.features import simplex_distance as simplex_distance
    from deeplimits.measure.classes.networks import BackpropDecomposition as BackpropDecomposition
    from deeplimits.measure.classes.networks import GradientDecomposition as GradientDecomposition
    from deeplimits.measure.classes.networks import backprop_decomposition as backprop_decomposition
    from deeplimits.measure.classes.networks import gradient_decomposition as gradient_decomposition
    from deeplimits.measure.classes.networks import measure_collapse as measure_collapse
    from deeplimits.measure.classes.papyan import Groups as Groups
    from deeplimits.measure.classes.papyan import Matrices as Matrices
    from deeplimits.measure.classes.papyan import Parts as Parts
    from deeplimits.measure.classes.papyan import Traces as Traces
    from deeplimits.measure.classes.papyan import groups as groups
    from deeplimits.measure.classes.papyan import parts as parts
    from deeplimits.measure.classes.papyan import row_spectrum as row_spectrum
