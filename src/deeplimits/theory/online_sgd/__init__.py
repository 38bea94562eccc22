"""Online SGD in high dimension: information exponents, exit times, effective dynamics."""

from deeplimits.theory.online_sgd import classical as classical
from deeplimits.theory.online_sgd import critical_window as critical_window
from deeplimits.theory.online_sgd import effective as effective
from deeplimits.theory.online_sgd import equator as equator
from deeplimits.theory.online_sgd import exit_times as exit_times
from deeplimits.theory.online_sgd import landscapes as landscapes
from deeplimits.theory.online_sgd import regularity as regularity
from deeplimits.theory.online_sgd import spherical_ode as spherical_ode
from deeplimits.theory.online_sgd import spiked_tensor as spiked_tensor
from deeplimits.theory.online_sgd import xor as xor
