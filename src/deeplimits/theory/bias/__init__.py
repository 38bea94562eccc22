"""Which solution an optimizer picks."""

from deeplimits.theory.bias import least_squares as least_squares
from deeplimits.theory.bias import separability as separability
