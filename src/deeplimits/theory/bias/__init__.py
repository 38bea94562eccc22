"""Which solution an optimizer picks."""

from deeplimits.theory.bias import cover_count as cover_count
from deeplimits.theory.bias import diagonal_networks as diagonal_networks
from deeplimits.theory.bias import homogeneous_margin as homogeneous_margin
from deeplimits.theory.bias import least_distance as least_distance
from deeplimits.theory.bias import least_squares as least_squares
from deeplimits.theory.bias import noisy_descent as noisy_descent
from deeplimits.theory.bias import proportional_margin as proportional_margin
from deeplimits.theory.bias import quadratic_model as quadratic_model
from deeplimits.theory.bias import separable_descent as separable_descent
from deeplimits.theory.bias import sgd_noise as sgd_noise
from deeplimits.theory.bias import slow_directions as slow_directions
from deeplimits.theory.bias import support_vectors as support_vectors
