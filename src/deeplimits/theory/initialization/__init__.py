"""Networks at initialization: criticality, phases, depth scales, fluctuations, learning rates, parametrizations."""

from deeplimits.theory.initialization.correlations import correlation_map as correlation_map
from deeplimits.theory.initialization.correlations import depth_scales as depth_scales
from deeplimits.theory.initialization.critical_points import Criticality as Criticality
from deeplimits.theory.initialization.critical_points import criticality as criticality
from deeplimits.theory.initialization.phases import critical_weight_variance as critical_weight_variance
from deeplimits.theory.initialization.phases import edge_of_chaos as edge_of_chaos
from deeplimits.theory.initialization.phases import fixed_point as fixed_point
from deeplimits.theory.initialization.phases import phase as phase
