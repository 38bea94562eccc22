"""The room of Gaussian expectations over extreme arguments."""

import jax.numpy as jnp

import extremes
from deeplimits.theory import gaussian
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
