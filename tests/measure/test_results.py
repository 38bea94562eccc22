"""Every instrument that looks at a network says the same things of its answer, under the same names."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from deeplimits.measure import classes, curvature, training
from deeplimits.measure.adapters import open_model
from deeplimits.measure.estimates import Estimate, Measured

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(12, 3)), np.arange(12) % 3


def cross_entropy(z, y):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(z), y[:, None], axis=1))


@pytest.fixture(scope="module")
def model():
    import torch

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 3)).double()
    return open_model(net, torch.nn.CrossEntropyLoss(), (X, Y))


def recorded(model):
    recorder = training.SharpnessRecorder(model, optimizer="gd", step=0.1)
    recorder(model.vector)
    recorder(0.9 * model.vector)
    return recorder.record()


INSTRUMENTS = {
    "eigenpairs": lambda model: curvature.eigenpairs(curvature.hessian(model), count=2),
    "spectral_density": lambda model: curvature.spectral_density(
        curvature.hessian(model), outliers=2, probes=3, steps=5
    ),
    "trace": lambda model: curvature.trace(curvature.hessian(model)),
    "frobenius": lambda model: curvature.frobenius(curvature.hessian(model)),
    "count_outliers": lambda model: curvature.count_outliers(np.r_[5.0, np.linspace(1, 0, 30)], most=2),
    "gradient_decomposition": classes.gradient_decomposition,
    "backprop_decomposition": classes.backprop_decomposition,
    "measure_collapse": classes.measure_collapse,
    "SharpnessRecorder": recorded,
}
DRAWN = {"eigenpairs", "spectral_density", "trace", "frobenius", "count_outliers", "SharpnessRecorder"}
CHANCE = {"spectral_density", "trace", "frobenius"}
OPERATORS = {"hessian", "gauss_newton", "residual_part", "gradient_moment", "fisher", "tangent_kernel"}
OPERATORS |= {"by_layer", "by_class"}
OF_ARRAYS = {"feature_parts", "moments", "neural_collapse", "simplex_distance", "groups", "parts", "row_spectrum"}
OF_RECORDS = {"catapults", "edge_of_stability", "progressive_sharpening", "gradient_share", "subspace_overlap"}
OF_RECORDS |= {"adam_denominators", "stable_curvature", "update_matrix"}


def test_no_instrument_is_left_out():
    offered = {
        name
        for room in (curvature, classes, training)
        for name in dir(room)
        if inspect.isfunction(getattr(room, name)) and getattr(room, name).__module__.startswith(room.__name__)
    }
    assert offered == (set(INSTRUMENTS) - {"SharpnessRecorder"}) | OPERATORS | OF_ARRAYS | OF_RECORDS


@pytest.mark.parametrize("name", INSTRUMENTS)
def test_an_answer_has_value_error_residual_products_seed_and_seconds(name, model):
    found = INSTRUMENTS[name](model)
    assert isinstance(found, Measured)
    assert found.value is not None
    assert np.all(np.asarray(found.products) >= 0)
    assert np.all(np.asarray(found.seconds) > 0)
    assert (found.seed is not None) == (name in DRAWN)
    assert (found.standard_error is not None) == (name in CHANCE)
    if found.residual is not None:
        assert np.all(np.asarray(found.residual) < 1e-2)
    if isinstance(found, Estimate):
        assert found.standard_error == found.error
