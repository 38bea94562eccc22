"""The one table of activations: what an entry declares is true, and one entry is enough."""

import math
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from deeplimits.errors import ParameterError, UnknownName
from deeplimits.models.activations import NAMED, activation, from_function, hermite, names, rescaled
from deeplimits.theory.gaussian import closed_forms, dual, moments
from deeplimits.theory.gaussian.duals.numerical import Quadrature
from deeplimits.theory.gaussian.fields import trapezoid
from deeplimits.theory.gaussian.pairs import pair
from deeplimits.theory.spectra import critical_point

LINE = np.linspace(-30.0, 30.0, 6001)


@pytest.mark.parametrize("name", NAMED)
def test_properties_are_true(name):
    sigma = NAMED[name]
    u = jnp.asarray(LINE)
    value, mirrored = (np.asarray(sigma.value(part), float) for part in (u, -u))
    # At a kink and next to it the derivatives are one-sided.
    off = jnp.asarray(LINE + 0.005)
    slope, curvature = (np.broadcast_to(f(off), LINE.shape) for f in (sigma.derivative, sigma.second_derivative))
    scale = np.maximum(np.abs(value), 1.0)
    assert sigma.odd == bool(np.all(np.abs(value + mirrored) <= 1e-13 * scale))
    assert sigma.even == bool(np.all(np.abs(value - mirrored) <= 1e-13 * scale))
    assert sigma.increasing == bool(np.all(np.diff(value) >= -1e-15))
    assert sigma.through_origin == (float(sigma.value(jnp.zeros(()))) == 0)
    assert sigma.bounded == bool(np.max(np.abs(value)) < 3)
    assert sigma.lipschitz == (sigma.continuous and bool(np.max(np.abs(slope)) < 3))
    assert sigma.bounded_curvature == (sigma.smooth and bool(np.max(np.abs(curvature)) < 3))
    if sigma.homogeneous is not None:
        np.testing.assert_allclose(sigma.value(3 * u), 3.0**sigma.homogeneous * value, rtol=1e-13)
    else:
        assert not any(np.allclose(sigma.value(3 * u), 3.0**k * value, rtol=1e-9) for k in range(6))


def test_one_name_is_one_function():
    at = jnp.asarray(0.7)
    exact = {"erf": jax.scipy.special.erf(at), "erf_saad": jax.scipy.special.erf(at / np.sqrt(2)), "square": at**2,
             "quadratic": at**2 / 2, "identity": at, "step": 1.0, "hermite2": (at**2 - 1) / np.sqrt(2),
             "hermite3": (at**3 - 3 * at) / np.sqrt(6)}  # fmt: skip
    for name, value in exact.items():
        assert float(activation(name).value(at)) == pytest.approx(float(value), rel=1e-15)
    for gone in ("linear", "threshold", "heaviside"):
        with pytest.raises(UnknownName, match="there are identity, relu"):
            activation(gone)
    assert activation("silu") is activation("swish")
    assert activation("hermite7").name == hermite(7).name


@pytest.mark.parametrize("name", names(closed_forms.has_fields))
def test_closed_forms_are_of_the_activation_of_their_name(name):
    """Pairs of fields by quadrature of the function in the table: a wrong scaling in either table shows."""
    sigma, fields = activation(name), closed_forms.closed_forms(name).fields
    a, b, c = (jnp.asarray(part) for part in (1.3, 0.7, 0.5))
    where = pair(a, b, c)
    assert float(fields.i2(a, b, c)) == pytest.approx(float(Quadrature(sigma).value(where)), rel=1e-11)
    assert float(fields.j2(a, b, c)) == pytest.approx(float(Quadrature(sigma).slope(where)), rel=1e-11)
    if sigma.smooth:
        covariance = jnp.asarray([[1.3, 0.5], [0.5, 0.7]])
        found = trapezoid.expectation(lambda x, y: sigma.second_derivative(x) * sigma.value(y), covariance, [0, 1])
        assert float(fields.k20(a, b, c)) == pytest.approx(float(found), abs=1e-12)


def test_rescaled_activations_inherit_closed_forms():
    twice = rescaled(activation("gelu"), 2.0, 3.0)
    assert closed_forms.closed_forms(twice).dual is not None
    assert float(dual(twice, 0.3, 0.4, 0.1)) == pytest.approx(9 * float(dual("gelu", 1.2, 1.6, 0.4)), rel=1e-14)


@pytest.mark.parametrize("name", ["relu", "erf_saad", "gelu", "step"])
def test_moments_are_those_of_the_dual(name):
    assert float(moments.second_moment(name, 1.7)) == pytest.approx(float(dual(name, 1.7, 1.7, 1.7)), rel=1e-13)


@pytest.mark.parametrize("name", names(lambda a: a.smooth and a.name != "exp"))
def test_derivatives_are_derivatives(name):
    sigma = activation(name)
    u = jnp.linspace(-6.0, 6.0, 41)
    np.testing.assert_allclose(jax.vmap(jax.grad(sigma.value))(u), sigma.derivative(u), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(
        jax.vmap(jax.grad(sigma.derivative))(u), sigma.second_derivative(u), rtol=1e-13, atol=1e-14
    )
    assert np.isfinite(np.asarray(sigma.derivative(jnp.array([-1e4, 1e4])))).all()


ENTRY = """
import jax.numpy as jnp
from deeplimits.models import activations
new = activations.from_function(
    jnp.arctan, name="arctan", odd=True, increasing=True, through_origin=True, bounded=True, lipschitz=True,
    bounded_curvature=True,
)
activations.NAMED["arctan"] = new
"""


def test_a_new_activation_is_one_entry():
    """Written into the table, in a fresh process, before anything else is imported: then every room knows it."""
    code = (
        ENTRY
        + """
import numpy as np
import deeplimits as dl
from deeplimits.models.architectures import FullyConnected
from deeplimits.models.committees import Overlaps, Task
from deeplimits.ensembles.two_layer_networks import TwoLayer, two_layer_model
from deeplimits.parameters import parameters_of
from deeplimits.theory.gaussian import dual, moments
from deeplimits.theory.initialization import criticality
from deeplimits.theory.kernels import InfiniteWidth
from deeplimits.theory.online_sgd import landscapes
from deeplimits.theory.spectra import network_grams
from deeplimits.theory.two_layer.overlaps import equations
from deeplimits.theory.two_layer.overlaps.integrals import activation_integrals

nodes, weights = np.polynomial.hermite_e.hermegauss(200)
second = np.arctan(nodes) ** 2 @ weights / weights.sum()
assert abs(float(moments.second_moment("arctan")) / second - 1) < 1e-6
assert abs(float(dual("arctan", 1.0, 1.0, 1.0)) / second - 1) < 1e-6
assert abs(float(activation_integrals("arctan").i2(np.eye(1), 0, 0)) / second - 1) < 1e-6
assert np.isfinite(float(equations.risk(Task([[1.0]], activation="arctan"), Overlaps([[0.3]], [[1.0]]))))
assert InfiniteWidth(FullyConnected(2, "arctan")).ntk(np.eye(2)).shape == (2, 2)
assert network_grams.gram_moments("arctan").eta > 0
assert landscapes.information_exponent(new).exponent == 1
model = TwoLayer(jnp.ones((1, 2)), jnp.zeros(1), jnp.ones((1, 1)), jnp.zeros(1))
assert two_layer_model(model, jnp.ones(2), activation="arctan").shape == (1,)
limits = (dl.limits.OrderChaosPhaseDiagram, dl.limits.NonlinearGramSpectrum, dl.limits.NtkRecursion,
          dl.limits.NngpKernelRecursion, dl.limits.PopulationRiskFromOverlaps, dl.limits.SgdFluctuations,
          dl.limits.LazyScalingCriterion, dl.limits.PopulationLossTeacherStudent)
for limit in limits:
    name = "teacher" if limit is dl.limits.PopulationLossTeacherStudent else "activation"
    assert "arctan" in parameters_of(limit)[name].options, limit
assert dl.compare(dl.limits.NngpKernelRecursion(activation="arctan")).agrees
"""
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["relu", "tanh", "sigmoid", "gelu", "swish", "softplus", "erf", "quadratic",
                                  "leaky_relu(0.1)", "relu_power(3)", "polynomial(1,2,3)"])  # fmt: skip
def test_derivatives_of_activations(name):
    sigma = activation(name)
    u = jnp.asarray([-30.0, -2.3, -0.4, 0.7, 3.1, 30.0])
    np.testing.assert_allclose(sigma.derivative(u), jax.vmap(jax.grad(sigma.value))(u), atol=1e-12)
    second = jax.vmap(jax.grad(jax.grad(sigma.value)))(u)
    np.testing.assert_allclose(sigma.second_derivative(u), second, atol=1e-12)


def test_activations_by_name():
    assert activation("leaky_relu(0.1)").parameters == (1.0, 0.1)
    assert activation(" leaky_relu( 0.1 )").parameters == (1.0, 0.1)
    assert activation("relu_power(1)") is activation("relu")
    beta = rescaled(activation("swish"), 2.0, 0.5)
    assert abs(dual(beta, 1.3, 0.7, 0.5) - 0.25 * dual("swish", 5.2, 2.8, 2.0)) < 1e-13


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("leaky_relu(small)", "takes numbers"),
        ("relu_power(0)", "at least 1"),
        ("polynomial(nan)", "finite"),
        ("leaky_relu(0.1,0.2)", "leaky_relu"),
        ("relu_power(1.5)", "relu_power"),
        ("leaky_relu(inf)", "leaky_relu"),
    ],
)
def test_bad_parameters_of_activations_are_refused(name, words):
    with pytest.raises(ParameterError, match=words):
        activation(name)


def test_unknown_activations_are_refused():
    with pytest.raises(UnknownName, match="there are identity"):
        activation("relux")


def test_functions_of_ones_own_are_activations():
    mine = from_function(lambda u: u / (1 + jnp.exp(-u)))
    assert abs(dual(mine, 1.3, 0.7, 0.5) - dual("swish", 1.3, 0.7, 0.5)) < 1e-13
    assert abs(mine.second_derivative(0.7) - activation("swish").second_derivative(0.7)) < 1e-14


@pytest.mark.parametrize("function", [math.sin, lambda u: u if u > 0 else 0.0, np.sinc])
def test_what_jax_cannot_trace_is_refused_in_a_sentence(function):
    with pytest.raises(ParameterError, match=r"jax\.numpy"):
        dual(function, 1.0, 1.0, 0.5)


def test_hard_tanh_is_cut_at_both_kinks():
    """Pairs by one-dimensional quadrature of the conditional law; the critical point of a network in closed form."""
    a, b, c = 1.3, 0.7, 0.5
    slope, spread = c / a, np.sqrt(b - c**2 / a)

    def product(u):
        # clip(v) given u: v is normal with mean cu/a and variance b − c²/a
        low, high = ((end - slope * u) / spread for end in (-1, 1))
        inside = slope * u * (norm.cdf(high) - norm.cdf(low)) + spread * (norm.pdf(low) - norm.pdf(high))
        return np.clip(u, -1, 1) * norm.pdf(u, scale=np.sqrt(a)) * (inside + norm.sf(high) - norm.cdf(low))

    exact = 2 * (quad(product, 0, 1, epsabs=1e-14)[0] + quad(product, 1, 12, epsabs=1e-14)[0])
    assert float(dual("hard_tanh", a, b, c)) == pytest.approx(exact, rel=1e-10)
    found = critical_point("hard_tanh", 1.0)
    np.testing.assert_allclose([found.weight_variance, found.bias_variance], [1.46479477349, 0.24408013174], rtol=1e-9)
