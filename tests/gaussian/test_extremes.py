"""The room of Gaussian expectations over extreme arguments."""

import jax.numpy as jnp

import extremes
from deeplimits.theory import gaussian
from deeplimits.theory.gaussian.moments import first_derivative, second_derivative
from extremes import ACTIVATION, FEW, NUMBER, POSITIVE, Case, one_of

FUNCTION = one_of(jnp.tanh, extreme=[jnp.exp, lambda u: u**9, lambda u: jnp.log(u), "tanh"])
TABLE = {
    "closed_form": Case((ACTIVATION,), examples=6),
    "dual": Case((ACTIVATION, POSITIVE, POSITIVE, NUMBER)),
    "dual_derivative": Case((ACTIVATION, POSITIVE, POSITIVE, NUMBER)),
    "hermite_coefficients": Case(
        (one_of(jnp.tanh, extreme=[jnp.exp, jnp.log]), FEW), look=lambda found: found, examples=6
    ),
    "hermite_moment": Case((ACTIVATION, FEW, POSITIVE), infinite=True),
    "mean": Case((ACTIVATION, POSITIVE)),
    "mean_curvature": Case((ACTIVATION, POSITIVE), infinite=True),
    "mean_slope": Case((ACTIVATION, POSITIVE), infinite=True),
    "second_moment": Case((ACTIVATION, POSITIVE), low=0),
    "slope_moment": Case((ACTIVATION, POSITIVE), low=0, infinite=True),
    "expect": Case((FUNCTION, POSITIVE), look=lambda found: found.value, examples=12),
    "expect_pair": Case((FUNCTION, FUNCTION, POSITIVE, POSITIVE, NUMBER), look=lambda found: found.value, examples=12),
}
ELSEWHERE = {
    "has_dual": "says yes or no",
    "has_fields": "says yes or no",
    "dual_of": "gives an object",
    "power_series": "takes two functions; its coefficients are tested one by one",
}


test_values, test_coverage = extremes.room_tests(gaussian, TABLE, elsewhere=ELSEWHERE)


HOMOGENEOUS = {"identity": 1, "relu": 1, "abs": 1, "leaky_relu(0.1)": 1, "step": 0, "square": 2, "relu_power(3)": 3}


def powers(name, k):
    """K, K̇ and moments of σ with σ(tu) = t^k σ(u), also beside ρ = −1."""

    def of(s):
        slopes = gaussian.slope_moment(name, s) / s ** (k - 1) if k else 0.0
        value = gaussian.dual(name, 1.3 * s, 0.7 * s, jnp.array([0.5, -0.95, 0.953]) * s) / s**k
        return value, gaussian.second_moment(name, s) / s**k, slopes

    return of


UNITS = {name: powers(name, k) for name, k in HOMOGENEOUS.items()}
test_units = extremes.unit_tests(UNITS)


test_functions = extremes.function_tests(
    [(function, Case((ACTIVATION, POSITIVE), infinite=True)) for function in (first_derivative, second_derivative)]
)
