"""Kernels of wide networks, regression with them, and networks near their initialization."""

from deeplimits.theory.kernels import linearization as linearization
from deeplimits.theory.kernels.infinite_width import FullyConnected as FullyConnected
from deeplimits.theory.kernels.matrices import Kernels as Kernels
