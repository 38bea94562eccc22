"""What stochastic gradient descent becomes."""

from deeplimits.theory.dynamics import classical as classical
from deeplimits.theory.dynamics import critical_window as critical_window
from deeplimits.theory.dynamics import effective as effective
from deeplimits.theory.dynamics import equator as equator
from deeplimits.theory.dynamics import exit_times as exit_times
from deeplimits.theory.dynamics import inequalities as inequalities
from deeplimits.theory.dynamics import regularity as regularity
from deeplimits.theory.dynamics import single_index as single_index
from deeplimits.theory.dynamics import spherical_ode as spherical_ode
from deeplimits.theory.dynamics import spiked as spiked
from deeplimits.theory.dynamics import xor as xor
