"""One door for a user's network: PyTorch modules, JAX functions and the house's own networks become one `Model`."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.measure.adapters.layout import Layout as Layout
    from deeplimits.measure.adapters.model import Model as Model
    from deeplimits.measure.adapters.network import Labelled as Labelled
    from deeplimits.measure.adapters.network import Network as Network
    from deeplimits.measure.adapters.network import Piece as Piece
    from deeplimits.measure.adapters.opening import open_model as open_model
    from deeplimits.measure.adapters.randomness import guarded as guarded
