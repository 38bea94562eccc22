"""The room of initialization over extreme arguments."""

import jax.numpy as jnp
import numpy as np

import extremes
from deeplimits.theory import initialization
from deeplimits.theory.initialization import correlations, depth_laws, phases
from extremes import ACTIVATION, INF, KERNEL, NAN, POSITIVE, VECTOR, Case, one_of

BIAS = one_of(0.0, 0.1, extreme=[1e-12, 1e12, -1.0, NAN, INF])
GAP = one_of(0.5, 1.0, extreme=[0.0, 1e-12, 2.0, -0.1, 2.1, NAN])
WIDTHS = one_of([10, 20], extreme=[[], [0], [2.5], [1], [10**9] * 3, [-1]])
RATES = one_of(
    np.array([1.0, 1.0]), extreme=[np.array([1.0]), np.array([NAN, 1.0]), np.array([-1.0, 1.0]), np.zeros(0)]
)

# Layers are scanned, and each number of them is a program of its own.
FEW = one_of(3, extreme=[0, 1, -1, 2.5])

TABLE = {
    "correlation_fixed_point": Case((ACTIVATION, POSITIVE, BIAS), examples=6),
    "correlation_map": Case((ACTIVATION, GAP, POSITIVE, POSITIVE, BIAS), low=0, high=2),
    "correlation_path": Case(
        (ACTIVATION, GAP, POSITIVE, POSITIVE, BIAS, FEW), look=lambda path: path.gaps, low=0, high=2, examples=8
    ),
    "depth_scales": Case((ACTIVATION, POSITIVE, BIAS), low=0, infinite=True, examples=8),
    "criticality": Case(
        (one_of("tanh", "relu", extreme=["sign", "exp", "gelu", "sin", jnp.log, "no such"]),),
        look=lambda found: found.kernel,
        infinite=True,
        examples=8,
    ),
    "decay_to_zero": Case((ACTIVATION, POSITIVE, FEW), infinite=True, examples=8),
    "half_stable_law": Case(
        (one_of("gelu", "swish", extreme=["tanh", "relu"]), POSITIVE, FEW), infinite=True, examples=5
    ),
    "collective_variance": Case(
        (one_of(jnp.square, extreme=["square", jnp.exp]), ACTIVATION, POSITIVE, POSITIVE, BIAS, FEW), examples=6
    ),
    "kernel_path": Case((ACTIVATION, POSITIVE, POSITIVE, BIAS, FEW), low=0, infinite=True),
    "kurtosis_ratio": Case((ACTIVATION, WIDTHS), examples=12),
    "linear_kernel": Case(
        (POSITIVE, POSITIVE | (1 + 1e-9,), BIAS, one_of(3, extreme=[0, 1, -1, 2.5, 10**5])), infinite=True
    ),
    "preactivation_variance": Case((VECTOR, POSITIVE, BIAS), low=0),
    "vertex_path": Case((ACTIVATION, POSITIVE, POSITIVE, BIAS, FEW), infinite=True, examples=12),
    "susceptibilities": Case(
        (ACTIVATION, POSITIVE), keywords={"weight_variance": POSITIVE}, infinite=True, examples=15
    ),
    "largest_stable_rate": Case((KERNEL,), low=0),
    "tangent_kernels": Case((ACTIVATION, KERNEL, POSITIVE, BIAS, RATES, RATES), examples=8),
    "critical_weight_variance": Case((ACTIVATION, BIAS), low=0, examples=12),
    "edge_of_chaos": Case((ACTIVATION, POSITIVE), infinite=True, examples=15),
    "fixed_point": Case((ACTIVATION, POSITIVE, BIAS), low=0, infinite=True, examples=15),
    "phase": Case((ACTIVATION, POSITIVE, BIAS), look=lambda found: found[1:], infinite=True, examples=15),
}
ELSEWHERE = {
    "depth_rates": "takes what criticality gives",
    "effective_plain_form": "takes a parametrization, which checks itself",
    "feature_exponent": "takes a parametrization, which checks itself",
    "learns_features": "takes a parametrization, which checks itself",
}


def test_functions_behind_the_door():
    """What limits and files use, on the same terms."""
    extremes.check(correlations.correlation_response, Case((ACTIVATION, GAP, POSITIVE, POSITIVE), infinite=True))
    extremes.check(depth_laws.iterate, Case((ACTIVATION, POSITIVE, POSITIVE, BIAS, FEW), low=0, examples=8))
    extremes.check(phases.scale_gain, Case((ACTIVATION,)))


test_values, test_coverage = extremes.room_tests(initialization, TABLE, elsewhere=ELSEWHERE)
