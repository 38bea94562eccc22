"""The room of kernels over extreme arguments."""

import jax.numpy as jnp
import numpy as np

import extremes
from deeplimits.theory import kernels
from deeplimits.theory.kernels import lazy_bounds, linearization, linearized_training, rkhs, sphere
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
    "lazy_orders": Case((POSITIVE, COUNT, COUNT, COUNT), low=0),
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


_RNG = np.random.default_rng(0)
X, Y, Z = _RNG.standard_normal((6, 4)), _RNG.standard_normal(6), _RNG.standard_normal(4)
K = X @ X.T + 0.1 * np.eye(6)
UNITS = {
    "gradient_flow": lambda s: kernels.gradient_flow(s * K, Y, np.array([0.5, 3.0]) / s).train,
    "gradient_descent": lambda s: kernels.gradient_descent(s * K, Y, 0.1 / s, 7).train,
    "largest_stable_step": lambda s: s * kernels.largest_stable_step(s * K),
    "kernel_ridge": lambda s: s * kernels.kernel_ridge(s * K, Y, 0.1 * s),
    "log_evidence": lambda s: kernels.log_evidence(s * K, np.sqrt(s) * Y, 0.1 * s) + 3 * np.log(s),
    "rkhs_squared_norm": lambda s: kernels.rkhs_squared_norm(s * K, Y) / s,
    "least_norm_interpolant": lambda s: s * kernels.least_norm_interpolant(s * K, Y).coefficients,
    "nystrom": lambda s: kernels.nystrom(s * K).eigenvalues / s,
    "lazy_training_bounds": lambda s: kernels.lazy_training_bounds(s**2, s, 2 * s, 0.1).distance * s,
    "lazy_range": lambda s: tuple(kernels.lazy_range([0.2], [1.0], s**2, s, s, sharp=False)),
    "linearized_flow": lambda s: kernels.linearized_flow(s * X, 0 * Y, Y, 0 * Z, 1.3 / s**2).outputs,
    "tangent_interpolant": lambda s: s * kernels.tangent_interpolant(s * X, 0 * Y, Y, 0 * Z).parameters,
    "arc_cosine_ntk": lambda s: kernels.arc_cosine_ntk(s, 2 * s, 0.5 * s).mean / s,
    "relu_worst_deviation": lambda s: kernels.relu_worst_deviation(s * X, np.sign(Y), Z, s) / s,
    "neuron_features": lambda s: kernels.neuron_features("relu", s, 2 * s, 0.5 * s).mean / s,
}
test_units = extremes.unit_tests(UNITS)


test_functions = extremes.function_tests(
    [
        (lazy_bounds.two_layer_lipschitz, Case((ACTIVATION, POINTS, COUNT), keywords={"scale": POSITIVE}, low=0)),
        (lazy_bounds.two_layer_singular_values, Case((ACTIVATION, POSITIVE), low=0, examples=12)),
        (linearization.curvature_bound, Case((ACTIVATION,), low=0, examples=8)),
        (linearization.relu_worst_case, Case((COUNT, POSITIVE), low=0)),
        (
            linearized_training.linearized_descent,
            Case((POINTS, LABELS, LABELS, START, SMALL, one_of([1, 2], extreme=[2.5, -1, [], NAN])), examples=15),
        ),
        (rkhs.evaluation_bound, Case((POSITIVE, POSITIVE), low=0)),
        (
            sphere.ring_interpolation_error,
            Case(
                (
                    one_of(lambda t: t**3 + t, jnp.exp, extreme=["exp", jnp.log, lambda t: -jnp.exp(t)]),
                    one_of(0.5, extreme=[0.0, 1.0, 1e-12, NAN, -0.5]),
                    one_of(jnp.sin, extreme=[jnp.log, "sin"]),
                    one_of(3, extreme=[0, 2.5, 64]),
                ),
                low=0,
                high=2,
            ),
        ),
        (sphere.multiplicity, Case((extremes.WHOLE, extremes.WHOLE), low=0)),
    ]
)
