"""Training watched: sharpness along a run, the edge of stability, the gradient and the top subspace, catapults."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.measure.training.reading import Catapult as Catapult
    from deeplimits.measure.training.reading import Edge as Edge
    from deeplimits.measure.training.reading import Sharpening as Sharpening
    from deeplimits.measure.training.reading import catapults as catapults
    from deeplimits.measure.training.reading import edge_of_stability as edge_of_stability
    from deeplimits.measure.training.reading import progressive_sharpening as progressive_sharpening
    from deeplimits.measure.training.recorder import Record as Record
    from deeplimits.measure.training.recorder import SharpnessRecorder as SharpnessRecorder
    from deeplimits.measure.training.recorder import adam_denominators as adam_denominators
    from deeplimits.measure.training.recorder import gradient_share as gradient_share
    from deeplimits.measure.training.recorder import subspace_overlap as subspace_overlap
    from deeplimits.measure.training.stability import stable_curvature as stable_curvature
    from deeplimits.measure.training.stability import update_matrix as update_matrix
