"""Kernels of wide networks, regression with them, and networks near their initialization."""

from deeplimits.theory.kernels import definiteness as definiteness
from deeplimits.theory.kernels import determinantal as determinantal
from deeplimits.theory.kernels import feature_kernels as feature_kernels
from deeplimits.theory.kernels import gaussian_process as gaussian_process
from deeplimits.theory.kernels import lazy_bounds as lazy_bounds
from deeplimits.theory.kernels import linearization as linearization
from deeplimits.theory.kernels import mercer as mercer
from deeplimits.theory.kernels import rkhs as rkhs
from deeplimits.theory.kernels import sphere as sphere
from deeplimits.theory.kernels import training as training
from deeplimits.theory.kernels import two_layer_kernels as two_layer_kernels
from deeplimits.theory.kernels.infinite_width import FullyConnected as FullyConnected
from deeplimits.theory.kernels.tiling import Kernels as Kernels
