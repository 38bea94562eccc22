"""Gaussian expectations and Hermite expansions."""

from deeplimits.theory.gaussian import hermite as hermite
