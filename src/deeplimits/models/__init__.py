"""Descriptions that theory and simulation both start from: definitions only."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.models.activations import Activation as Activation
    from deeplimits.models.activations import activation as activation
    from deeplimits.models.activations import from_function as from_function
    from deeplimits.models.activations import hermite as hermite
    from deeplimits.models.activations import leaky_relu as leaky_relu
    from deeplimits.models.activations import names as names
    from deeplimits.models.activations import piecewise_linear as piecewise_linear
    from deeplimits.models.activations import polynomial as polynomial
    from deeplimits.models.activations import relu_power as relu_power
    from deeplimits.models.activations import rescaled as rescaled
    from deeplimits.models.architectures import FullyConnected as FullyConnected
    from deeplimits.models.atoms import Atoms as Atoms
    from deeplimits.models.committees import Overlaps as Overlaps
    from deeplimits.models.committees import Task as Task
    from deeplimits.models.designs import Design as Design
    from deeplimits.models.designs import polynomial_regression as polynomial_regression
    from deeplimits.models.parametrizations import Parametrization as Parametrization
    from deeplimits.models.parametrizations import maximal_update as maximal_update
    from deeplimits.models.parametrizations import ntk as ntk
    from deeplimits.models.parametrizations import standard as standard
