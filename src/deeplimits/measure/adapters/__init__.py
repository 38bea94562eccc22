"""One door for a user's network, of PyTorch, JAX or the house: it becomes a `Model`; and what passes through it."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.measure.adapters.affine_reading import AffineNetwork as AffineNetwork
    from deeplimits.measure.adapters.affine_reading import affine_layers as affine_layers
    from deeplimits.measure.adapters.layout import Layout as Layout
    from deeplimits.measure.adapters.model import Model as Model
    from deeplimits.measure.adapters.network import Labelled as Labelled
    from deeplimits.measure.adapters.network import Network as Network
    from deeplimits.measure.adapters.network import Piece as Piece
    from deeplimits.measure.adapters.opening import open_model as open_model
    from deeplimits.measure.adapters.randomness import guarded as guarded
    from deeplimits.measure.adapters.signals import LayerSignal as LayerSignal
    from deeplimits.measure.adapters.signals import Signals as Signals
    from deeplimits.measure.adapters.signals import layer_signals as layer_signals
