"""Exact risks of estimators that are linear in the labels."""

from deeplimits.theory.regression import ridgeless as ridgeless
from deeplimits.theory.regression import smoothing as smoothing
