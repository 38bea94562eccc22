"""Finite networks and their empirical kernels, against automatic differentiation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from agreement import agrees
from deeplimits.ensembles import flows, trainers
from deeplimits.ensembles.wide_networks import WideNetwork, antisymmetric, squared_loss
from deeplimits.errors import ParameterError
from deeplimits.measure import tangent_kernel
from deeplimits.models.architectures import FullyConnected

X = jnp.array([[1.0, 0.5, -0.3], [0.2, -1.0, 0.7], [-0.6, 0.4, 1.1]])


def build(widths=(5, 5), outputs=2, **options):
    given = {"bias_variance": 0.3, **options}
    network = WideNetwork(FullyConnected(len(widths), "tanh", 1.7, **given), 3, widths, outputs)
    return network, network.init(jax.random.key(3))


@pytest.mark.parametrize(
    "options",
    [
        {},
        pytest.param({"parametrization": "standard", "skip": 0.6}, marks=pytest.mark.slow),
        {"parametrization": "mup", "layer_norm": True},
    ],
    ids=str,
)
def test_all_contractions_are_the_product_of_jacobians(options):
    network, parameters = build(**options)
    vector, restore = ravel_pytree(parameters)
    rates = ravel_pytree(network.rates())[0]
    jacobian = jax.jacfwd(lambda v: network.apply(restore(v), X))(vector)
    exact = np.einsum("akp,p,blp->abkl", jacobian, rates, jacobian[:2])

    @jax.jit
    def all_ways(parameters):
        return {
            method: tangent_kernel.empirical_ntk(network, parameters, X, X[:2], output="all", method=method)
            for method in tangent_kernel.METHODS[1:]
        }

    for found in all_ways(parameters).values():
        np.testing.assert_allclose(found, exact, atol=1e-12)
    np.testing.assert_allclose(
        tangent_kernel.empirical_ntk(network, parameters, X, X[:2], output=1), exact[:, :, 1, 1], atol=1e-12
    )
    # In the flat parameters one learning rate does what the rates do.
    flat = network.flat(parameters)
    np.testing.assert_allclose(network.apply(flat.restore(flat.start), X), network.apply(parameters, X), atol=1e-14)
    single = jax.jacfwd(lambda v: network.apply(flat.restore(v), X))(flat.start)
    np.testing.assert_allclose(np.einsum("akp,blp->abkl", single, single[:2]), exact, atol=1e-12)


def test_any_function_has_a_tangent_kernel():
    def model(parameters, x):
        return jnp.sin(x @ parameters["w"]) * parameters["s"]

    parameters = {"w": jnp.array([[0.3], [1.0], [-0.5]]), "s": jnp.array(2.0)}
    rates = {"w": jnp.full((3, 1), 2.0), "s": jnp.array(0.5)}
    found = tangent_kernel.empirical_ntk(model, parameters, X, rates=rates)
    u = np.asarray(X @ parameters["w"])
    exact = 2 * 4 * np.cos(u) * np.cos(u.T) * np.asarray(X @ X.T) + 0.5 * np.sin(u) * np.sin(u.T)
    np.testing.assert_allclose(found, exact, atol=1e-12)
    part = tangent_kernel.empirical_ntk(model, parameters, X[:2], X, rates=rates, method="products")
    np.testing.assert_allclose(part, exact[:2], atol=1e-12)
    with pytest.raises(ParameterError, match="layerwise"):
        tangent_kernel.empirical_ntk(model, parameters, X, method="layerwise")


def test_the_cheapest_way_is_chosen():
    def cheapest(*shapes, sizes=None):
        found = tangent_kernel.costs(*shapes, sizes=sizes)
        return min(found, key=found.get)

    assert cheapest(50, 50, 1, 10_000) == "jacobian"
    assert cheapest(50, 50, 10, 10_000) == "products"
    assert cheapest(2000, 2000, 1, 10_000_000) == "products"
    assert cheapest(50, 50, 10, 1_000_000, sizes=(10, 1000, 1000, 10)) == "layerwise"


def test_conditional_covariance_is_that_of_the_last_layer():
    for options in ({}, {"parametrization": "standard"}, {"parametrization": "mup"}):
        network, parameters = build(outputs=1, **options)

        def outputs(key, network=network, parameters=parameters):
            return network.apply((*parameters[:-1], network.init(key)[-1]), X)[:, 0]

        draws = np.asarray(jax.vmap(outputs)(jax.random.split(jax.random.key(0), 20_000)))
        exact = np.asarray(tangent_kernel.empirical_nngp(network, parameters, X))
        # centred at the start, so that the mean of products is the covariance, at every size
        assert agrees({1: draws[:, :, None] * draws[:, None, :]}, exact, None)


def test_linearized_network_and_training():
    network, parameters = build(widths=(16,), outputs=1)
    flat = network.flat(parameters)
    linear = network.linearized(parameters)
    move = jax.random.normal(jax.random.key(1), flat.start.shape)

    def gap(size):
        where = flat.restore(flat.start + size * move)
        return float(jnp.abs(network.apply(where, X) - linear(where, X)).max())

    assert gap(0.0) == 0
    assert 3.8 < gap(2e-3) / gap(1e-3) < 4.2  # the remainder is quadratic
    y = jnp.array([[1.0], [-1.0], [0.5]])
    loss = squared_loss(lambda v: network.apply(flat.restore(v), X), y)
    flowed = flows.gradient_flow(loss, flat.start, jnp.array([0.4]), rtol=1e-8, atol=1e-9, stiff=False)[-1]
    # Small steps follow the flow; stochastic and noisy descent with all data and no noise are descent.
    stepped = trainers.gradient_descent(loss, flat.start, jnp.array(0.002), [200])[0]
    np.testing.assert_allclose(stepped, flowed, atol=2e-3)
    schedule = jnp.full(200, 0.002)
    still = jnp.zeros(())
    noisy = trainers.noisy_gradient_descent(jax.random.key(0), jax.grad(loss), flat.start, schedule, still, [200])[0]
    np.testing.assert_allclose(noisy, stepped, atol=1e-12)


def test_antisymmetric_start_vanishes():
    network, _ = build(widths=(6,), outputs=1)
    parameters = antisymmetric(jax.random.key(0), network)
    np.testing.assert_allclose(network.apply(parameters, X), 0.0, atol=1e-15)
    with pytest.raises(ParameterError, match="even width"):
        antisymmetric(jax.random.key(0), build(widths=(5,))[0])


@pytest.mark.parametrize(("call", "words"), [
    (lambda: WideNetwork(FullyConnected(2, "relu"), 3, (4,)), "widths has 1"),
    (lambda: WideNetwork(FullyConnected(1, "relu"), 3, 0), "whole number"),
    (lambda: WideNetwork(FullyConnected(2, "relu", skip=1.0), 3, (4, 5)), "one width"),
    (lambda: tangent_kernel.empirical_ntk(*build(), X), "output = None"),
    (lambda: tangent_kernel.empirical_ntk(*build(), X, output=2), "output = 2"),
    (lambda: tangent_kernel.empirical_ntk(*build(), X, output=0, method="magic"), "method"),
])  # fmt: skip
def test_bad_input_is_refused(call, words):
    with pytest.raises(ParameterError, match=words):
        call()
