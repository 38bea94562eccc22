"""Infinitely wide two-layer networks: their neurons as a measure that flows."""

from deeplimits.theory.two_layer.mean_field import fokker_planck as fokker_planck
from deeplimits.theory.two_layer.mean_field import incremental as incremental
from deeplimits.theory.two_layer.mean_field import initial_laws as initial_laws
from deeplimits.theory.two_layer.mean_field import solvable_flows as solvable_flows
from deeplimits.theory.two_layer.mean_field.particles import Particles as Particles
from deeplimits.theory.two_layer.mean_field.particles import wasserstein_flow as wasserstein_flow
from deeplimits.theory.two_layer.mean_field.reduction import Reduced as Reduced
from deeplimits.theory.two_layer.mean_field.reduction import reduced_flow as reduced_flow
