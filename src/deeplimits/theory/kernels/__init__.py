"""Kernels of wide networks, regression with them, and networks near their initialization."""

from deeplimits.theory.kernels import definiteness as definiteness
from deeplimits.theory.kernels import determinantal as determinantal
from deeplimits.theory.kernels import gaussian_process as gaussian_process
from deeplimits.theory.kernels import lazy as lazy
from deeplimits.theory.kernels import linearization as linearization
from deeplimits.theory.kernels import mercer as mercer
from deeplimits.theory.kernels import random_features as random_features
from deeplimits.theory.kernels import regression as regression
from deeplimits.theory.kernels import rkhs as rkhs
from deeplimits.theory.kernels import sphere as sphere
from deeplimits.theory.kernels import two_layer as two_layer
from deeplimits.theory.kernels.infinite_width import InfiniteWidth as InfiniteWidth
from deeplimits.theory.kernels.matrices import Kernels as Kernels
