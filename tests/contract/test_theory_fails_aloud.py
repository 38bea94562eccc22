"""Conditions on what is computed raise inside compiled programs too, with the sentence they have outside."""

import jax
import jax.numpy as jnp
import pytest

from deeplimits.errors import NotConverged, OutsideValidity
from deeplimits.models.atoms import Atoms, atoms
from deeplimits.numerics.checks import aloud
from deeplimits.theory.inequalities.growth import growth_bounds
from deeplimits.theory.initialization import fixed_point
from deeplimits.theory.kernels import gaussian_process, positive
from deeplimits.theory.regression import gradient_flow
from deeplimits.theory.spectra import equivalents, subordination
from deeplimits.theory.spectra.ridge_equation import effective_ridge

BOTH = Atoms(jnp.array([-1.0, 1.0]), jnp.array([0.5, 0.5]))

CASES = [
    (lambda s: positive.modes(s * jnp.eye(2)).eigenvalues, -1.0, OutsideValidity, "positive semidefinite"),
    (lambda s: gaussian_process.log_evidence(s * jnp.ones((2, 2)), [1.0, 0.0], 0.0), 1.0, OutsideValidity, "definite"),
    (lambda s: equivalents.rank_one_solve(jnp.eye(1), [1.0], strength=s), -1.0, OutsideValidity, "singular"),
    (lambda s: growth_bounds(3, 0.05, 0.01, s, 0.0)[0], 2000.0, OutsideValidity, "blow-up"),
    (lambda s: gradient_flow.early_stopped_risk(s, 1.0, 1.0, 1.0).bias, 1e6, OutsideValidity, "too late"),
    (lambda s: gradient_flow.ridge_descent(jnp.eye(2), jnp.ones(2), 0.0, s, 3), 5.0, OutsideValidity, "diverges"),
    (lambda s: fixed_point("relu", s, 0.1), 3.0, OutsideValidity, "grows without bound"),
    (lambda s: effective_ridge(s, atoms(1.0), 0.5), jnp.nan, NotConverged, "effective ridge was not found"),
    # On the support the plain iteration goes round in circles.
    (lambda s: subordination.sum_transform(s + 0j, BOTH, BOTH), 0.3, NotConverged, "further from the support"),
]


@pytest.mark.parametrize(("function", "value", "error", "words"), CASES, ids=[words for *_, words in CASES])
def test_it_raises_inside_jit(function, value, error, words):
    with pytest.raises(error, match=words), aloud("test"):
        jax.block_until_ready(jax.jit(function)(jnp.asarray(value)))
