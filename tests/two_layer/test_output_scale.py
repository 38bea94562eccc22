"""Two-layer networks of any output scale, against the sheet, closed forms and an average over networks."""

import functools

import numpy as np
import pytest

import deeplimits as dl
from deeplimits.errors import ParameterError
from deeplimits.limits.kernels.ntk_vs_mean_field_scaling import NtkVsMeanFieldScaling
from deeplimits.predictions import Exponent
from deeplimits.theory.two_layer import output_scaling


def test_relu_at_the_two_scales():
    for alpha, variance in ((10.0, 0.5), (1.0, 0.005)):
        found = output_scaling("relu", alpha, 100.0)
        assert float(found.start_variance) == pytest.approx(variance, rel=1e-14)
    assert float(output_scaling("relu", 10.0, 100.0).neuron_displacement) == 0.1
    assert float(output_scaling("relu", 1.0, 100.0).time) == 100
    assert float(output_scaling("relu", 1.0, 100.0).layer_displacement) == 10


@pytest.mark.parametrize("name", ["relu", "tanh"])
def test_variance_and_kernel_are_those_of_networks(name):
    alpha, width, second, runs = 2.0, 8, 0.7, 40_000
    x = np.array([1.2, -0.5, 0.4])
    rng = np.random.default_rng(0)
    w, a = rng.standard_normal((runs, width, 3)), np.sqrt(second) * rng.choice([-1.0, 1.0], (runs, width))
    u = w @ x
    value, slope = (np.maximum(u, 0), 1.0 * (u > 0)) if name == "relu" else (np.tanh(u), 1 - np.tanh(u) ** 2)
    outputs = alpha / width * np.sum(a * value, axis=1)
    kernels = (alpha / width) ** 2 * np.sum(value**2 + a**2 * slope**2 * (x @ x), axis=1)
    found = output_scaling(name, alpha, width, squared_norm=x @ x, output_second_moment=second)
    for draws, exact in ((outputs**2, found.start_variance), (kernels * width, found.kernel * width)):
        error = draws.std() / np.sqrt(runs)
        assert abs(draws.mean() - float(exact)) < 5 * error


def test_bad_arguments_are_refused():
    for call in (
        lambda: output_scaling("relu", 0.0, 10.0),
        lambda: output_scaling("relu", 1.0, 0.5),
        lambda: output_scaling("relu", 1.0, 10.0, squared_norm=-1.0),
        lambda: output_scaling("relu", float("nan"), 10.0),
    ):
        with pytest.raises(ParameterError):
            call()


@functools.cache
def mean_field():
    return dl.compare(dl.catalogue["ntk-vs-mean-field-scaling"](exponent=0.0), samples=60)


def test_neurons_of_mean_field_networks_move_by_order_one():
    assert mean_field().agrees


def test_a_wrong_power_of_the_width_is_noticed():
    class Wrong(NtkVsMeanFieldScaling):
        def theory(self):
            found = NtkVsMeanFieldScaling.theory(self)
            return {**found, "displacement": Exponent(-0.1, label="displacement of a neuron", correction=1.0)}

    assert not dl.compare(Wrong(exponent=0.0), samples=60).agrees
