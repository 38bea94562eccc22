"""The room of kernels over extreme arguments."""

import jax.numpy as jnp
import numpy as np

import extremes
from deeplimits.theory import kernels
from extremes import ACTIVATION, COUNT, INF, KERNEL, LABELS, NAN, NUMBER, POINTS, POSITIVE, TIMES, VECTOR, Case, one_of

WEIGHT = one_of(0.0, 0.5, extreme=[1e-12, 1e12, -1.0, NAN, INF])
SUBSET = one_of([0], [0, 2], extreme=[[], [0, 0], [3], [-1], [0.7], [NAN]])
STEPS = one_of(5, extreme=[0, -1, 2.5, 10**6])
SMALL = one_of(0.1, extreme=[1e-12, 0.0, -1.0, NAN, INF, 1e6])
START = one_of(np.array([0.4, -1.0, 2.0]), extreme=[np.zeros(3), np.array([1.0, NAN, 2.0]), np.ones(2), np.zeros(0)])
GRID = one_of(
    np.array([0.5, 1.0]), extreme=[np.array([1.0, 1.0]), np.array([1.0, NAN]), np.ones((2, 2, 2)), np.zeros(0), [1.0]]
)

# With closed forms: by quadrature one number takes seconds to compile.
CLOSED = one_of("erf", "relu", extreme=["sin", "identity", "sign", "no such function"])

TABLE = {
    "gram_definiteness": Case((ACTIVATION, POINTS), look=lambda found: found[:1], examples=8),
    "cardinality": Case((KERNEL,), low=0),
    "inclusion_probability": Case((KERNEL, SUBSET), low=0, high=1),
    "marginal_kernel": Case((KERNEL,)),
    "subset_probability": Case((KERNEL, SUBSET), low=0, high=1),
    "fourier_features": Case((NUMBER,), keywords={"scale": POSITIVE}),
    "neuron_features": Case(
        (CLOSED, POSITIVE, POSITIVE, one_of(0.1, -0.2, extreme=NUMBER.extreme)),
        examples=3,
    ),
    "kernel_ridge": Case((KERNEL, LABELS, WEIGHT)),
    "log_evidence": Case((KERNEL, LABELS, WEIGHT)),
    "du_convergence": Case((COUNT, POSITIVE, POSITIVE), look=lambda found: found[:3], low=0),
    "lazy_range": Case((START, START, POSITIVE, POSITIVE, POSITIVE), low=0, infinite=True),
    "lazy_scaling": Case((one_of(24.0, extreme=POSITIVE.extreme), SMALL, POSITIVE, POSITIVE, WEIGHT), low=0),
    "lazy_training_bounds": Case((SMALL, POSITIVE, POSITIVE, WEIGHT), low=0),
    "relu_remainder_bound": Case((COUNT, POSITIVE, SMALL), low=0),
    "relu_worst_deviation": Case((POINTS, LABELS, START, POSITIVE), low=0),
    "smooth_remainder_bound": Case((ACTIVATION, COUNT, POSITIVE), low=0, examples=12),
    "two_layer_expansion": Case((ACTIVATION, POINTS, POINTS, LABELS, START), examples=12),
    "linearized_flow": Case((POINTS, LABELS, LABELS, START, TIMES), examples=15),
    "tangent_interpolant": Case((POINTS, LABELS, LABELS, START), keywords={"alpha": POSITIVE}),
    "mercer_of_gaussian": Case(
        (COUNT,),
        keywords={"scale": POSITIVE, "deviation": POSITIVE},
        look=lambda found: found.eigenvalues,
        low=0,
    ),
    "mercer_of_minimum": Case((COUNT,), look=lambda found: found.eigenvalues, low=0),
    "nystrom": Case((KERNEL,), look=lambda found: found.eigenvalues, low=-1e-6),
    "least_norm_interpolant": Case((KERNEL, LABELS)),
    "mercer_squared_norm": Case(
        (VECTOR, one_of(np.array([1.0, 0.5, 0.1]), extreme=VECTOR.extreme)), low=0, infinite=True
    ),
    "rkhs_inner_product": Case((KERNEL, VECTOR, VECTOR)),
    "rkhs_norm_of_function": Case(
        (one_of(jnp.minimum, extreme=[jnp.add, "minimum"]), one_of(jnp.sin, extreme=[jnp.log, "sin"]), GRID),
        examples=12,
    ),
    "rkhs_squared_norm": Case((KERNEL, VECTOR), low=0),
    "gradient_descent": Case((KERNEL, LABELS, SMALL, STEPS), look=lambda found: found[:1]),
    "gradient_flow": Case((KERNEL, LABELS, TIMES), look=lambda found: found[:1]),
    "largest_stable_step": Case((KERNEL,), low=0, infinite=True),
    "arc_cosine_ntk": Case((POSITIVE, POSITIVE, one_of(0.1, -0.2, extreme=NUMBER.extreme))),
    "nonlinear_quadratic_form": Case((ACTIVATION, POINTS), look=lambda found: found[:1], examples=8),
    "ntk_variance": Case((CLOSED, POSITIVE, POSITIVE, one_of(0.1, -0.2, extreme=NUMBER.extreme)), examples=3),
    "two_layer_gram": Case((ACTIVATION, POSITIVE, POSITIVE, one_of(0.1, -0.2, extreme=NUMBER.extreme)), examples=3),
    "two_layer_ntk": Case((ACTIVATION, POINTS), examples=8),
}
ELSEWHERE = {
    "posterior": "takes the blocks of a kernel",
    "trained_ensemble": "takes the blocks of two kernels",
    "blocks": "takes a kernel as a function",
    "network_kernel": "takes a network",
    "ring_coefficients": "takes a kernel as a function",
    "sphere_eigenvalues": "takes a kernel as a function",
}


test_values, test_coverage = extremes.room_tests(kernels, TABLE, elsewhere=ELSEWHERE)
