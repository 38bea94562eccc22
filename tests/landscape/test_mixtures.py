"""k Gaussian classes and weighted covariances: reference values, quadrature, SGD written out, large matrices."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.limits.landscape.kgmm_hessian_g_blocks import KgmmHessianGBlocks
from deeplimits.theory import landscape, spectra
from deeplimits.theory.online_sgd import XorState


def test_fixed_points_of_the_sheet():
    for k, beta, wanted in ((3, 0.05, 1.3660384260031), (10, 0.01, 2.8190366282875)):
        point = landscape.kgmm_fixed_point(k, jnp.inf, beta, 1.0)
        np.testing.assert_allclose(point.amplitude * (k - 1) / k, wanted, rtol=1e-11)
        assert point.rest == 0
    two = landscape.kgmm_fixed_point(2, 10.0, 0.1, 1.0)
    np.testing.assert_allclose([two.amplitude, two.rest], [1.5308150018056, 0.0389498395918], rtol=1e-10)
    three = landscape.kgmm_fixed_point(3, 10.0, 0.05, 1.0)
    np.testing.assert_allclose([three.amplitude, three.rest], [1.91404468, 0.05088759], rtol=1e-7)


def test_paths_of_the_sheet():
    found = landscape.kgmm_noiseless_path([10.0, 50.0], 10, 0.01)
    np.testing.assert_allclose(found, [0.80484986059, 2.33773084337], rtol=1e-10)
    path = landscape.kgmm_symmetric_path([10.0, 20.0, 30.0, 50.0], 10, 10.0, 0.01, 1.0)
    np.testing.assert_allclose(path.amplitude * 0.9, [0.7693, 1.3065, 1.6738, 2.1072], atol=2e-4)
    np.testing.assert_allclose(path.alignment(10), [0.6826, 0.8761, 0.9354, 0.9726], atol=1e-4)
    np.testing.assert_allclose(path.rest[-1] * 0.9 + path.common[-1] / 10, 0.2824, atol=5e-4)


@pytest.mark.parametrize(("raised", "noise", "classes"), [(1.9, 0.6, 3), (0.0, 1.0, 2), (-2.0, 2.5, 3), (30.0, 4.0, 2)])
def test_softmax_moments_by_gauss_and_hermite(raised, noise, classes):
    z, w = np.polynomial.hermite_e.hermegauss(160)
    grids = np.meshgrid(*[noise * z] * classes, indexing="ij")
    mass = np.prod(np.meshgrid(*[w / w.sum()] * classes, indexing="ij"), axis=0)
    logits = np.stack(grids)
    logits[0] += raised
    chance = np.asarray(jax.nn.softmax(jnp.asarray(logits), axis=0))
    found = landscape.softmax_moments(raised, noise, classes)
    np.testing.assert_allclose(found.correct, np.sum(mass * chance[0]), rtol=1e-9)
    np.testing.assert_allclose(found.squared, np.sum(mass * np.sum(chance**2, axis=0)), rtol=1e-9)


def test_softmax_moments_at_the_ends():
    flat = landscape.softmax_moments(0.0, 0.0, 50)
    np.testing.assert_allclose(flat, [1 / 50, 1 / 50], rtol=1e-10)
    np.testing.assert_allclose(landscape.softmax_moments(200.0, 6.0, 3), [1.0, 1.0], rtol=1e-9)
    # Exchangeable logits: each is correct equally often
    np.testing.assert_allclose(landscape.softmax_moments(0.0, 6.0, 7).correct, 1 / 7, rtol=1e-9)


def test_blocks_of_the_sheet():
    ten = landscape.kgmm_blocks(landscape.kgmm_fixed_point(10, jnp.inf, 0.01, 1.0).amplitude, 10)
    wanted = [0.020243398771248, 0.003034152210299, 0.007946967511627, 9.811071002e-05]
    np.testing.assert_allclose(ten[:4], wanted, rtol=1e-8)
    three = landscape.kgmm_blocks(landscape.kgmm_fixed_point(3, jnp.inf, 0.05, 1.0).amplitude, 3)
    wanted = [0.054306463940279, 0.030652096310109, 0.013995457359879, 0.003498864339970]
    np.testing.assert_allclose(three[:4], wanted, rtol=1e-10)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_whole_hessian_of_the_means_alone(classes):
    a = 1.7
    weights = a * (np.eye(classes) - 1 / classes)
    labels = np.arange(classes)
    blocks = landscape.kgmm_blocks(a, classes)
    hessian = np.linalg.eigvalsh(landscape.softmax_curvature(weights, np.eye(classes), labels))
    gradient = np.linalg.eigvalsh(landscape.softmax_curvature(weights, np.eye(classes), labels, kind="gradient"))
    wanted = sorted([*[blocks.full_hessian[0]] * classes, *[blocks.full_hessian[1]] * (classes * (classes - 2))])
    np.testing.assert_allclose(hessian[classes:], np.array(wanted, float), rtol=1e-12)
    np.testing.assert_allclose(gradient[-classes:], blocks.full_gradient * np.ones(classes), rtol=1e-12)


def test_the_sum_of_the_weights_decays_on_every_path():
    """Σ_c (π_c − y_c) = 0, so that Σ_c x^c shrinks by 1 − δβ a step, whatever was drawn."""
    from deeplimits.ensembles import mixture_training

    k, d, beta, c = 3, 40, 0.3, 2.0
    mixture = mixture_training.Mixture(
        jnp.linalg.cholesky(0.8 * jnp.eye(k) + 0.2), jnp.full(k, 1 / k), jnp.asarray(4.0)
    )
    state = mixture_training.random_start(jax.random.key(0), mixture, d)
    before = state
    samples = mixture_training.samples(jax.random.key(1), 30, d, k)
    for i in range(30):
        sample = jax.tree.map(lambda part, i=i: part[i], samples)
        state = mixture_training.mixture_step(sample, state, mixture, d, beta, c)
    shrunk = (1 - c / d * beta) ** 30
    np.testing.assert_allclose(state.means.sum(axis=0), shrunk * before.means.sum(axis=0), rtol=1e-10)
    np.testing.assert_allclose(state.rest.sum(), shrunk**2 * before.rest.sum(), rtol=1e-8)


def test_the_chain_is_the_law_of_sgd_written_out():
    from deeplimits import statistics
    from deeplimits.ensembles import mixture_training

    k, d, lam, beta, c, steps, runs = 2, 12, 3.0, 0.1, 1.5, 20, 3000
    mixture = mixture_training.Mixture(jnp.eye(k), jnp.full(k, 1 / k), jnp.asarray(lam))

    def chain(key):
        start = mixture_training.random_start(jax.random.fold_in(key, 0), mixture, d)
        samples = mixture_training.samples(jax.random.fold_in(key, 1), steps, d, k)

        def step(state, sample):
            return mixture_training.mixture_step(sample, state, mixture, d, beta, c), None

        end, _ = jax.lax.scan(step, start, samples)
        return jnp.stack([end.means[0, 0], end.means[0, 1], end.rest[0, 0], end.rest[0, 1]])

    chains = np.asarray(jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(3), runs)))
    random = np.random.default_rng(0)
    x = random.normal(size=(runs, k, d)) / np.sqrt(d)
    for _ in range(steps):
        label = random.integers(k, size=runs)
        y = random.normal(size=(runs, d)) / np.sqrt(lam) + np.eye(k, d)[label]
        h = np.einsum("rkd,rd->rk", x, y)
        chance = np.exp(h - h.max(axis=1, keepdims=True))
        chance /= chance.sum(axis=1, keepdims=True)
        x = (1 - c / d * beta) * x - c / d * (chance - np.eye(k)[label])[:, :, None] * y[:, None, :]
    rest = np.einsum("rkd,rld->rkl", x[:, :, k:], x[:, :, k:])
    written = np.stack([x[:, 0, 0], x[:, 0, 1], rest[:, 0, 0], rest[:, 0, 1]], axis=1)
    for power in (1, 2):
        one, two = statistics.mean_of(chains**power), statistics.mean_of(written**power)
        z = (one.value - two.value) / np.sqrt(one.variance + two.variance)
        assert np.max(np.abs(z)) < 5, z


def test_weighted_covariances_at_the_start():
    """k = 10, λ = 10, α = 10, no weights: closed forms of the sheet."""
    start = landscape.MixtureState(jnp.zeros((10, 10)), jnp.zeros((10, 10)))
    # Three points each way for every noise coordinate: exact second moments, which is all that constant weights need
    nodes = np.concatenate([np.eye(20), -np.eye(20)]) * np.sqrt(20 / 10.0)
    u = (np.eye(10, 20)[:, None, :] + nodes[None]).reshape(-1, 20)
    hessian = landscape.weighted_outliers(landscape.weighted_sample(np.full(len(u), 0.09), u, 10.0, 10.0))
    assert list(hessian.exist) == [True] * 10 + [False] * 10
    np.testing.assert_allclose(hessian.eigenvalues[:10], 0.0198, rtol=1e-8)
    np.testing.assert_allclose(hessian.edge, 0.0155920998, rtol=1e-8)
    np.testing.assert_allclose(hessian.projections[:10], 0.8181818182, rtol=1e-8)
    own = np.repeat(np.arange(10) == 0, len(nodes))
    gradient = landscape.weighted_outliers(landscape.weighted_sample(np.where(own, 0.81, 0.01), u, 10.0, 10.0))
    np.testing.assert_allclose(gradient.eigenvalues[0], 0.0989110112, rtol=1e-8)
    np.testing.assert_allclose(gradient.edge, 0.0333055898, rtol=1e-7)
    np.testing.assert_allclose(gradient.projections[0], 0.89998967, rtol=1e-7)
    assert list(gradient.exist[:2]) == [True, False]
    assert landscape.kgmm_weighted_block(start, 10.0, 10.0, points=16).coordinates.shape == (320, 20)


def test_the_edge_is_that_of_a_generalized_marchenko_pastur_law():
    """A = (1/M) Σ w_l Z_l Z_l'/λ has the nonzero eigenvalues of a sample covariance of population w/λ."""
    weights, lam, alpha = np.array([0.2, 0.7]), 3.0, 4.0
    found = landscape.weighted_outliers(landscape.weighted_sample(weights, np.zeros((2, 1)), lam, alpha))
    law = spectra.sample_covariance(weights, alpha)
    np.testing.assert_allclose(found.edge, float(np.max(np.asarray(law.edges))) / (lam * alpha), rtol=1e-6)


def test_outliers_of_a_large_matrix():
    random = np.random.default_rng(0)
    k, d, lam, alpha = 3, 900, 10.0, 4.0
    means = 2.0 * (np.eye(k) - 1 / k)
    rest = 0.3 * np.eye(k)
    weights = np.concatenate([means, np.sqrt(0.3) * np.eye(k)], axis=1)
    state = landscape.MixtureState(jnp.asarray(means), jnp.asarray(rest))
    found = landscape.weighted_outliers(landscape.kgmm_weighted_block(state, lam, alpha))
    label = random.integers(k, size=int(alpha * d))
    y = random.normal(size=(len(label), d)) / np.sqrt(lam) + np.eye(k, d)[label]
    h = y[:, : 2 * k] @ weights.T
    chance = np.exp(h) / np.exp(h).sum(axis=1, keepdims=True)
    w = chance[:, 0] * (1 - chance[:, 0])
    values, vectors = np.linalg.eigh((y * w[:, None]).T @ y / len(y))
    count = int(np.sum(np.asarray(found.exist)))
    assert count >= 2
    # Fluctuations O(d^{-1/2}), 3 % here
    np.testing.assert_allclose(values[::-1][:2], found.eigenvalues[:2], rtol=0.08)
    np.testing.assert_allclose(np.sum(vectors[: 2 * k, -1] ** 2), found.projections[0], atol=0.03)


def test_the_first_layer_of_a_network_on_xor():
    """Block W_0W_0 of test matrices, their outliers, and how much of W_0 lies in the top eigenspaces."""
    from deeplimits import statistics

    random = np.random.default_rng(1)
    d, lam, alpha, width = 240, 10.0, 6.0, 3
    v, rest = np.array([1.3, -1.0, 0.5]), 0.2 * np.eye(width) + 0.05
    mu, nu = np.array([1.2, 0.2, -0.4]), np.array([-0.1, 1.1, 0.3])
    weights = np.concatenate([mu[:, None], nu[:, None], np.linalg.cholesky(rest)], axis=1)
    state = XorState(*map(jnp.asarray, (v, mu, nu, rest)))
    cluster = np.arange(int(alpha * d)) % 4
    # The Hessian's block has two outliers, that of the gradients one.
    for kind, count in (("hessian", 2), ("gradient", 1)):
        found = landscape.weighted_outliers(landscape.xor_weighted_block(state, lam, alpha, kind=kind))
        assert int(np.sum(found.exist)) == count
        seen = []
        for _ in range(8):
            y = random.normal(size=(len(cluster), d)) / np.sqrt(lam)
            y[np.arange(len(cluster)), cluster // 2] += 1 - 2.0 * (cluster % 2)
            h = y[:, :5] @ weights.T
            chance = 1 / (1 + np.exp(-np.maximum(h, 0) @ v))
            middle = chance * (1 - chance) if kind == "hessian" else (chance - (cluster < 2)) ** 2
            w = v[0] ** 2 * middle * (h[:, 0] > 0)
            values, vectors = np.linalg.eigh((y * w[:, None]).T @ y / len(y))
            inside = weights[0] @ vectors[:5, -count:]
            seen.append([*values[-count:], inside @ inside / (weights[0] @ weights[0])])
        mean = statistics.mean_of(np.array(seen))
        stated = [*found.eigenvalues[:count][::-1], landscape.outlier_alignment(found, weights[0], count)]
        assert np.max(np.abs(mean.value - np.array(stated)) / np.sqrt(mean.variance)) < 5
    with pytest.raises(ParameterError, match="3 neurons"):
        landscape.xor_weighted_block(state, lam, alpha, neuron=3)
    with pytest.raises(ParameterError, match="candidates"):
        landscape.outlier_alignment(found, weights[0], 6)


def test_every_class_has_as_many_test_samples():
    """Where the number of classes does not divide that of samples, 7 of 400, blocks were off by the share missing."""
    limit = KgmmHessianGBlocks(classes=7, amplitude=0.688)
    classes = np.asarray(limit.draw(jax.random.key(0), separation=25).classes).astype(int)
    assert np.ptp(np.bincount(classes)) == 0
    assert len(classes) > 390


def test_bad_input():
    start = landscape.MixtureState(jnp.zeros((2, 2)), jnp.eye(2))
    with pytest.raises(ParameterError, match="linearly dependent"):
        landscape.kgmm_ballistic(start, [1.0], 1.0, 0.1, 1.0, gram=jnp.ones((2, 2)))
    with pytest.raises(ParameterError, match="probability"):
        landscape.kgmm_ballistic(start, [1.0], 1.0, 0.1, 1.0, probabilities=[0.5, 0.6])
    with pytest.raises(ParameterError, match="ridge"):
        landscape.kgmm_fixed_point(3, 10.0, 0.0, 1.0)
    with pytest.raises(ParameterError, match="weights"):
        landscape.weighted_sample([-1.0], [[0.0]], 1.0, 1.0)
    with pytest.raises(ParameterError, match="separation"):
        landscape.weighted_sample([1.0], [[0.0]], 0.0, 1.0)


@pytest.mark.parametrize(("separation", "ridge"), [(1e-12, 0.05), (10.0, 1e12)])
def test_a_path_of_too_many_relaxations_is_refused_before_it_is_followed(separation, ridge):
    said = re.escape(f"separation = {separation:g} and ridge = {ridge:g} make the spread relax")
    with pytest.raises(OutsideValidity, match=said):
        landscape.kgmm_symmetric_path([2.0], 3, separation, ridge, 1.0)
