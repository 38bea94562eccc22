"""Wide networks against their kernels: every parametrization, real data, training."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import load_digits

from deeplimits.ensembles import flows, trainers
from deeplimits.ensembles.wide_networks import WideNetwork, squared_loss
from deeplimits.measure import tangent_kernel
from deeplimits.models.architectures import FullyConnected
from deeplimits.theory.kernels import InfiniteWidth, gaussian_process, lazy_bounds, training

X = jnp.array([[1.0, 0.5, -0.3], [0.2, -1.0, 0.7]])


@pytest.fixture(scope="module")
def digits():
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    images = (data.data - data.data.mean(axis=0)) / data.data.std()
    labels = np.eye(10)[data.target] - 0.1
    return jnp.asarray(images[order]), jnp.asarray(labels[order])


@pytest.mark.parametrize("options", [
    {"activation": "relu"}, {"activation": "erf", "parametrization": "standard"},
    pytest.param({"activation": "gelu", "parametrization": "mup"}, marks=pytest.mark.slow),
    pytest.param({"activation": "sin", "skip": 0.5}, marks=pytest.mark.slow),
    {"activation": "tanh", "layer_norm": True, "parametrization": "standard"},
], ids=str)  # fmt: skip
def test_finite_networks_approach_their_limit(options):
    """The mean of the empirical kernels differs from the limit by c/n: it halves from one width to the next."""
    net = FullyConnected(2, weight_variance=1.5, bias_variance=0.1, **options)
    exact = InfiniteWidth(net).kernels(X)
    gaps = []
    for width, networks in ((16, 2500), (32, 2500)):
        network = WideNetwork(net, 3, width)

        def both(key, network=network):
            parameters = network.init(key)
            return jnp.stack([
                tangent_kernel.empirical_ntk(network, parameters, X),
                tangent_kernel.empirical_nngp(network, parameters, X),
            ])  # fmt: skip

        found = np.asarray(jax.jit(jax.vmap(both))(jax.random.split(jax.random.key(width), networks)))
        errors = found.std(axis=0) / np.sqrt(networks)
        gaps.append((found.mean(axis=0) - np.stack([exact.ntk, exact.nngp]), errors))
    (wide, wide_error), (wider, wider_error) = gaps
    # Richardson: 2·gap(32) − gap(16) vanishes up to the second order, of the size of the squared relative gap.
    left = np.abs(2 * wider - wide)
    allowed = 5 * np.sqrt(4 * wider_error**2 + wide_error**2) + 2 * wide**2 / np.abs(np.stack([exact.ntk, exact.ntk]))
    assert np.all(left < allowed), (left / allowed).max()
    spread = np.sqrt(networks) * np.array([wide_error[0, 0, 0], wider_error[0, 0, 0]])
    assert 1.2 < spread[0] / spread[1] < 1.8  # fluctuations fall like n^{−1/2}


@pytest.fixture(scope="module")
def trained(digits):
    """Networks of two widths, trained on 30 digits (even against odd), watched at several steps."""
    images, labels = digits
    x, new = images[:30], images[30:60]
    y = jnp.where(jnp.argmax(labels, axis=1) % 2 == 0, 1.0, -1.0)[:30, None]
    net = FullyConnected(1, "erf", bias_variance=0.1)
    steps = (10, 40, 160)
    ntk = InfiniteWidth(net).ntk(x)
    step = 0.5 * training.largest_stable_step(ntk)
    records = {}
    for width in (64, 512):
        network = WideNetwork(net, 64, width)

        @jax.jit
        def run(key, network=network):
            parameters = network.init(key)
            flat = network.flat(parameters)
            loss = squared_loss(lambda v: network.apply(flat.restore(v), x), y)
            path = trainers.gradient_descent(loss, flat.start, step, steps)
            kernel = tangent_kernel.empirical_ntk(network, parameters, jnp.concatenate([x, new]))
            last = tangent_kernel.empirical_ntk(network, flat.restore(path[-1]), x)
            seen = [network.apply(flat.restore(place), new)[:, 0] for place in path]
            begin = network.apply(parameters, jnp.concatenate([x, new]))[:, 0]
            return kernel, begin, jnp.stack(seen), last

        records[width] = [run(key) for key in jax.random.split(jax.random.key(0), 3)]
    return x, new, y[:, 0], net, step, steps, records


def test_trained_networks_follow_the_kernel_predictor_on_digits(trained):
    x, new, y, net, step, steps, records = trained
    own, limiting = {}, {}
    ntk, cross = InfiniteWidth(net).ntk(x), InfiniteWidth(net).ntk(new, x)
    for width, runs in records.items():
        gaps, far = [], []
        for kernel, begin, seen, _ in runs:
            start = {"start": begin[:30], "test_start": begin[30:]}
            stated = training.gradient_descent(kernel[:30, :30], y, step, steps, cross=kernel[30:, :30], **start).test
            ideal = training.gradient_descent(ntk, y, step, steps, cross=cross, **start).test
            gaps.append(np.sqrt(np.mean((seen - stated) ** 2, axis=1)))
            far.append(np.sqrt(np.mean((seen - ideal) ** 2, axis=1)))
        own[width], limiting[width] = np.mean(gaps, axis=0), np.mean(far, axis=0)
    # With its own kernel a network errs by O(1/n), with the limiting one by O(n^{−1/2}): factors 8 and √8 here.
    assert np.all(own[512] < own[64] / 4), own
    assert np.all(own[512] < 0.03), own
    assert np.all(limiting[512] < limiting[64] / 1.7), limiting


def test_the_tangent_kernel_moves_like_the_inverse_width(trained):
    moved = {}
    for width, runs in trained[-1].items():
        changes = [
            np.linalg.norm(last - kernel[:30, :30]) / np.linalg.norm(kernel[:30, :30]) for kernel, _, _, last in runs
        ]
        moved[width] = np.mean(changes)
    slope = np.log(moved[512] / moved[64]) / np.log(8)
    assert -1.2 < slope < -0.8, moved


def test_accuracy_on_digits(digits):
    """Gaussian-process classification of real digits, by the network's prior and by its tangent kernel."""
    images, labels = digits
    x, new = images[:400], images[400:800]
    truth = np.argmax(labels[400:800], axis=1)
    net = InfiniteWidth(FullyConnected(2, "relu", weight_variance=2.0))
    prior = training.blocks(net.nngp, x, new)
    bayes = gaussian_process.posterior(prior, labels[:400], 0.01)
    tangent = training.gradient_flow(net.ntk(x), labels[:400], np.inf, cross=net.ntk(new, x)).test
    accuracies = [float(np.mean(np.argmax(scores, axis=1) == truth)) for scores in (bayes.mean, tangent)]
    assert min(accuracies) > 0.93, accuracies
    assert np.all(np.linalg.eigvalsh(np.asarray(bayes.covariance)) > -1e-10)


@pytest.mark.slow
def test_noise_leaves_the_mean_of_a_linearized_network_on_its_kernel():
    """Batches and injected noise are unbiased and the model is linear: the mean is gradient descent's, exactly."""
    x = jax.random.normal(jax.random.key(0), (4, 3))
    y = jnp.array([1.0, -1.0, 0.5, 0.0])[:, None]
    network = WideNetwork(FullyConnected(2, "erf", weight_variance=1.5, bias_variance=0.1), 3, 48)
    parameters = network.init(jax.random.key(1))
    flat, model = network.flat(parameters), network.linearized(parameters)
    kernel = tangent_kernel.empirical_ntk(network, parameters, x)
    step, steps = 0.3 * training.largest_stable_step(kernel), 25

    def outputs(vector):
        return model(flat.restore(vector), x)

    def by_batches(key):
        losses = lambda v: jnp.sum((y - outputs(v)) ** 2, axis=1) / 2  # noqa: E731
        return outputs(trainers.stochastic_gradient_descent(key, losses, flat.start, step, steps, batch=2).end)

    def with_noise(key):
        gradient = jax.grad(squared_loss(outputs, y))
        schedule, noise = jnp.full(steps, step), jnp.asarray(0.1)
        return outputs(trainers.noisy_gradient_descent(key, gradient, flat.start, schedule, noise, [steps])[0])

    start = outputs(flat.start)
    stated = training.gradient_descent(kernel, y[:, 0], step, steps, start=start[:, 0]).train
    for train in (by_batches, with_noise):
        found = np.asarray(jax.jit(jax.vmap(train))(jax.random.split(jax.random.key(2), 800)))[..., 0]
        errors = found.std(axis=0) / np.sqrt(800)
        assert np.all(errors > 1e-5)  # there is noise to be averaged
        assert np.all(np.abs(found.mean(axis=0) - stated) < 5 * errors)


@pytest.mark.slow
def test_sgd_of_a_wide_network_follows_the_kernel_too():
    """The network itself, trained by batches: its mean differs from the kernel's by O(1/width)."""
    x = jax.random.normal(jax.random.key(0), (4, 3))
    y = jnp.array([1.0, -1.0, 0.5, 0.0])[:, None]
    net = FullyConnected(1, "erf", weight_variance=1.5, bias_variance=0.1)
    kernel, steps = InfiniteWidth(net).ntk(x), 25
    step = 0.3 * training.largest_stable_step(kernel)
    gaps = []
    for width in (32, 256):
        network = WideNetwork(net, 3, width)

        def both(key, network=network):
            init_key, batch_key = jax.random.split(key)
            parameters = network.init(init_key)
            flat = network.flat(parameters)

            def losses(v):
                return jnp.sum((y - network.apply(flat.restore(v), x)) ** 2, axis=1) / 2

            end = trainers.stochastic_gradient_descent(batch_key, losses, flat.start, step, steps, batch=2).end
            start = network.apply(parameters, x)[:, 0]
            stated = training.gradient_descent(kernel, y[:, 0], step, steps, start=start).train
            return network.apply(flat.restore(end), x)[:, 0] - stated

        found = np.asarray(jax.jit(jax.vmap(both))(jax.random.split(jax.random.key(width), 4000)))
        gaps.append((found.mean(axis=0), found.std(axis=0) / np.sqrt(4000)))
    (narrow, narrow_error), (wide, wide_error) = gaps
    assert np.all(np.abs(wide) < np.abs(narrow) / 4 + 5 * (wide_error + narrow_error / 4))


def test_convergence_at_the_rate_of_the_least_eigenvalue():
    """L(t) ≤ e^{−λ₀t/m}L(0) and no neuron moves farther than the bound, for a trained first layer."""
    points, width = 5, 6000
    x = jax.random.normal(jax.random.key(3), (points, 4))
    x = x / jnp.linalg.norm(x, axis=1, keepdims=True)
    y = jnp.array([0.5, -0.5, 0.3, -0.2, 0.1])
    w_key, v_key = jax.random.split(jax.random.key(4))
    start = jax.random.normal(w_key, (width, 4))
    v = jax.random.rademacher(v_key, (width,), dtype=float)

    def outputs(w):
        return jnp.tanh(x @ w.reshape(width, 4).T) @ v / np.sqrt(width)

    def loss(w):
        return jnp.sum((outputs(w) - y) ** 2) / (2 * points)

    jacobian = jax.jacobian(outputs)(start.ravel())
    least = float(jnp.linalg.eigvalsh(jacobian @ jacobian.T)[0])
    found = lazy_bounds.du_convergence(points, least, float(loss(start.ravel())), width=width)
    times = jnp.array([1.0, 3.0, 10.0]) / found.rate
    path = flows.gradient_flow(loss, start.ravel(), times, stiff=False)
    losses = np.array([float(loss(w)) for w in path])
    assert np.all(losses <= np.exp(-found.rate * np.asarray(times)) * float(loss(start.ravel())))
    moved = jnp.linalg.norm((path[-1] - start.ravel()).reshape(width, 4), axis=1)
    assert float(jnp.max(moved)) <= found.movement
