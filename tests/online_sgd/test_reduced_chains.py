"""Direct SGD against the reduced chains, limits at other parameters, bad input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import deeplimits as dl
from deeplimits.ensembles import online_sgd, reduced_chains
from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.models.activations import activation
from deeplimits.numerics import draws
from deeplimits.statistics import LEVEL, Mean, extrapolate
from deeplimits.tails import binomial_p_value
from deeplimits.theory.online_sgd import xor
from xor_network import ALONG_MU, ALONG_NU, OUTPUT, OVERLAPS
from xor_network import weights as weights_of

N, STEPS, RUNS = 12, 24, 2000
THETA = jnp.eye(N)[0]


def at(m, r):
    return jnp.zeros(N).at[0].set(m).at[1].set(jnp.sqrt(1.0 * r))


def same_law(direct, reduced):
    """Each column has one law in both samples."""
    for left, right in zip(np.asarray(direct).T, np.asarray(reduced).T, strict=True):
        assert stats.ks_2samp(left, right).pvalue > LEVEL


def many(function):
    return jax.jit(jax.vmap(function))(jax.random.split(jax.random.key(7), RUNS))


def chain(step, samples, start):
    def end(key):
        drawn = samples(key)
        return reduced_chains.run(step, drawn, start, [len(drawn.chi_square)])

    found = many(end)
    return jax.tree.map(lambda x: x[:, -1], found)


def spherical(loss, draw, start, delta):
    return many(lambda key: online_sgd.spherical(key, start, loss, draw, delta, [STEPS], lambda x: x[:1])[0])


def pca():
    return (
        online_sgd.pca_loss,
        lambda key: online_sgd.pca_sample(key, 1.5, THETA),
        reduced_chains.online_pca(N, 1.5),
        0.7,
    )


def mixture():
    return (
        lambda x, y: online_sgd.mixture_loss(x, y, 0.3),
        lambda key: online_sgd.mixture_sample(key, 0.3, THETA),
        reduced_chains.binary_mixture(N, 0.3),
        1.0,
    )


def single_index():
    f = activation("tanh")
    return (
        lambda x, y: online_sgd.single_index_loss(x, y, f),
        lambda key: online_sgd.single_index_sample(key, f, 0.2, THETA),
        reduced_chains.single_index(N, f, f, 0.2),
        1.0,
    )


def written_out_tensor():
    return (
        lambda x, w: -1.5 * x[0] ** 2 - x @ w @ x,
        lambda key: jax.random.normal(key, (N, N)),
        reduced_chains.tensor_pca(N, 1.5, 2),
        0.7,
    )


@pytest.mark.parametrize("case", [pca, mixture, single_index, written_out_tensor])
def test_spherical_chains_have_the_law_of_sgd(case):
    loss, draw, model, delta = case()
    reduced = many(
        lambda key: reduced_chains.spherical_path(model, model.samples(key, (STEPS,)), jnp.asarray(0.4), delta, [STEPS])
    )
    same_law(spherical(loss, draw, at(0.4, 1 - 0.16), delta), reduced)


def test_marks_beyond_the_samples_are_refused():
    with pytest.raises(ParameterError, match="marks = 5 is beyond the 4 samples"):
        reduced_chains.run(lambda sample, state: state + sample, jnp.ones(4), jnp.zeros(()), [2, 5])


def test_moments_of_one_gradient():
    """Averages in the reduced frame against gradients of the loss itself."""
    loss, draw, model, _ = single_index()
    x = at(0.4, 1 - 0.16)

    def direct(key):
        gradient = jax.grad(loss)(x, draw(key))
        tangent = gradient - (gradient @ x) * x
        return jnp.stack([loss(x, draw(key)), tangent[0], tangent @ tangent / N, tangent[0] ** 2])

    def reduced(key):
        found = reduced_chains.gradient_moments(model, model.samples(key, (1, 1)), jnp.array([0.4]))
        names = ("loss", "slope", "squared_gradient", "directional_moment")
        return jnp.concatenate([found[name] for name in names])

    same_law(many(direct), many(reduced))


def test_uniform_start():
    model = reduced_chains.online_pca(N, 1.0)
    found = many(
        lambda key: reduced_chains.uniform_start(reduced_chains.first_and_rest(model.samples(key, (2,))).first)
    )
    assert stats.kstest(np.asarray(found) ** 2, stats.beta(0.5, (N - 1) / 2).cdf).pvalue > LEVEL


def test_first_passage_is_that_of_the_path():
    """The same walk, written down step by step and searched for its levels; blocks, signs and giving up included."""
    model = reduced_chains.online_pca(N, 3.0)
    levels, key, start = jnp.array([0.5, 0.7, 2.0]), jax.random.key(3), jnp.asarray(-0.1)

    def step(sample, m):
        return model.step(sample, m, 0.3)

    blocks = [model.samples(draws.neighbour(key, block, word=0), (reduced_chains.BLOCK,)) for block in range(3)]
    samples = jax.tree.map(lambda *parts: jnp.concatenate(parts), *blocks)
    count = 3 * reduced_chains.BLOCK
    path = np.asarray(reduced_chains.run(step, samples, start, np.arange(count + 1)))
    for both_signs in (True, False):
        found = reduced_chains.first_passage(key, step, model.samples, start, levels, count, both_signs)
        seen = np.abs(path) if both_signs else path
        expected = [np.flatnonzero(seen > level)[0] if np.any(seen > level) else np.inf for level in levels]
        np.testing.assert_array_equal(found, expected)
    early = reduced_chains.first_passage(key, step, model.samples, start, levels[:1], 3, True)
    assert np.isinf(early[0])


def test_spiked_chain_has_the_law_of_sgd_with_the_tensor_written_out():
    lam, c, n = 2.0, 0.3, 8
    start = jnp.zeros(n).at[0].set(0.5).at[1].set(0.6)
    spike = jnp.zeros((n, n, n)).at[0, 0, 0].set(lam)

    def values(x):
        return jnp.stack([x[0], x @ x - x[0] ** 2])

    def loss(x, y):
        return jnp.sum((y - jnp.einsum("i,j,k->ijk", x, x, x)) ** 2)

    def draw(key):
        return spike + jax.random.normal(key, (n, n, n))

    full = many(lambda key: online_sgd.euclidean(key, start, loss, draw, c / n, [6], values)[0])
    cheap = many(lambda key: online_sgd.spiked_tensor(key, start, jnp.eye(n)[0], lam, 3, c / n, [6], values)[0])
    reduced = chain(
        lambda sample, state: reduced_chains.spiked_step(sample, state, n, lam, 3, c),
        lambda key: reduced_chains.spiked_samples(key, (6,), n),
        reduced_chains.SpikedState(jnp.asarray(0.5), jnp.asarray(0.36)),
    )
    reduced = jnp.stack(reduced, axis=1)
    same_law(full, reduced)
    same_law(cheap, reduced)


def test_xor_chain_has_the_law_of_sgd():
    start = reduced_chains.XorStatistics(OUTPUT, ALONG_MU, ALONG_NU, OVERLAPS)
    weights = weights_of(N)

    def values(network):
        v, w = network
        return jnp.stack([v[0], w[0, 0], w[1, 1], w[0, 2:] @ w[0, 2:], w[0, 2:] @ w[1, 2:]])

    direct = many(lambda key: online_sgd.euclidean(
        key, (start.output, weights), lambda p, s: online_sgd.xor_loss(p, s, 0.05),
        lambda k: online_sgd.xor_sample(k, 4.0, N), 2.0 / N, [STEPS], values)[0])  # fmt: skip
    found = chain(
        lambda sample, state: reduced_chains.xor_step(sample, state, N, 4.0, 0.05, 2.0),
        lambda key: reduced_chains.xor_samples(key, (STEPS,), N, 2),
        start,
    )
    columns = [
        found.output[:, 0],
        found.along_mu[:, 0],
        found.along_nu[:, 1],
        found.overlaps[:, 0, 0],
        found.overlaps[:, 0, 1],
    ]
    same_law(direct, jnp.stack(columns, axis=1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("order", "signal", "start", "sizes"),
    [
        (2, 0.5, (0.3, 0.7), (100, 400, 1600)),
        (2, 1.5, (0.3, 0.7), (100, 400, 1600)),
        (2, 3.0, (0.3, 0.7), (300, 1200, 4800)),
        (3, 4.0, (0.9, 0.8), (480, 1920, 7680)),
    ],
)
def test_other_spiked_tensors(order, signal, start, sizes):
    limit = dl.limits.SpikedTensorBallistic(order=order, signal=signal, overlap=start[0], radius=start[1], horizon=0.05)
    comparison = dl.compare(limit, sizes=sizes, samples=12_000)
    assert comparison.agrees, str(comparison)
    slope, error = (getattr(comparison.findings["path_gap"].report.record, name) for name in ("slope", "slope_error"))
    assert abs(slope + 0.5) < 5 * error
    assert error < 0.03


@pytest.mark.slow
def test_below_the_transition():
    comparison = dl.compare(dl.limits.SpikedMicroscopicSde(signal=0.5), samples=20_000)
    assert comparison.agrees, str(comparison)


@pytest.mark.slow
@pytest.mark.parametrize(("order", "signal"), [(3, 1.5), (4, 1.5)])
def test_a_tensor_is_invisible_from_a_random_start(order, signal):
    limit = dl.limits.SpikedMicroscopicSde(order=order, signal=signal, step=0.5, time=0.05)
    comparison = dl.compare(limit, samples=8000)
    assert comparison.agrees, str(comparison)


@pytest.mark.slow
def test_critical_window_of_even_order():
    comparison = dl.compare(dl.limits.CriticalWindowSearch(order=4, signal=1.0), sizes=(26, 46, 80), samples=2000)
    assert comparison.agrees, str(comparison)


@pytest.mark.slow
@pytest.mark.parametrize(("order", "sizes"), [(1, (200, 400, 800, 1600)), (2, (100, 200, 400, 800))])
def test_samples_to_recovery(order, sizes):
    limit = dl.limits.SampleComplexityThresholds(order=order, step=0.25, threshold=0.5, start=1.0)
    comparison = dl.compare(limit, sizes=sizes, samples=1000)
    assert comparison.agrees, str(comparison)
    assert comparison.findings["samples"].report.record.slope_error < 0.1


@pytest.mark.slow
def test_xor_success_at_every_width():
    """K = 2, …, 20 in one program: a neuron with v = 0 and W = 0 stays there, so that 20 of them hold any K ≤ 20."""
    widths, runs, most, per_unit, ridge = np.arange(2, 21), 3000, 20, 6, 0.02

    def fits(key, width):
        start_key, chain_key = jax.random.split(key)
        v, mu, nu = jnp.where(jnp.arange(most) < width, jax.random.normal(start_key, (3, most)), 0.0)
        start = reduced_chains.XorStatistics(v, 1e-3 * mu, 1e-3 * nu, jnp.zeros((1, 1)))
        samples = draws.draw(chain_key, (120 * per_unit,), 0, uniforms=1)
        return jnp.all(reduced_chains.noiseless_xor_fits(samples, start, ridge, 1 / per_unit))

    @jax.jit
    def successes(key, width):
        return jnp.sum(jax.vmap(fits, in_axes=(0, None))(jax.random.split(key, runs), width))

    keys = jax.random.split(jax.random.key(8), len(widths))
    found = [int(successes(key, width)) for key, width in zip(keys, widths, strict=True)]

    def smallest_p_value(predicted):
        return min(binomial_p_value(count, runs, predicted(int(k))) for count, k in zip(found, widths, strict=True))

    level = LEVEL / len(widths)
    assert smallest_p_value(xor.xor_success_probability) > level, found
    assert smallest_p_value(lambda k: min(1.0, 1.05 * xor.xor_success_probability(k))) < level
    assert smallest_p_value(lambda k: xor.xor_success_probability(k) / 1.05) < level


def test_bad_input_is_refused_before_running():
    with pytest.raises(OutsideValidity, match="critical step λ = 3"):
        dl.compare(dl.limits.ExitTimesSearchVsDescent(step=3.0))
    with pytest.raises(OutsideValidity, match="plateau"):
        dl.predict(dl.limits.ExitTimesSearchVsDescent(end=0.9))
    with pytest.raises(OutsideValidity, match="dimension must be at least"):
        dl.simulate(dl.limits.SpikedTensorBallistic(order=4), size=20)
    with pytest.raises(OutsideValidity, match="threshold"):
        dl.predict(dl.limits.SpikedTensorFixedPoints(signal=0.1))
    with pytest.raises(OutsideValidity, match="back over the saddle"):
        dl.simulate(dl.limits.SpikedTensorFixedPoints(signal=0.55), size=200)
    with pytest.raises(OutsideValidity, match="sizes of at least"):
        dl.simulate(dl.limits.ExitTimesSearchVsDescent(threshold=0.05), size=160)
    with pytest.raises(OutsideValidity, match="too short for overlaps"):
        dl.simulate(dl.limits.XorLargeLambdaLimit(horizon=0.2), size=400)
    with pytest.raises(OutsideValidity, match="take sizes of at least"):
        dl.simulate(dl.limits.PopulationLossOnlinePca(threshold=0.72), size=400)
    with pytest.raises(OutsideValidity, match="critical step"):
        dl.predict(dl.limits.SampleComplexityThresholds(order=2, step=9.0))
    with pytest.raises(OutsideValidity, match="share no Hermite"):
        dl.predict(dl.limits.PopulationLossTeacherStudent(teacher="square", student="tanh"))
    with pytest.raises(OutsideValidity, match="size of at least"):
        dl.simulate(dl.limits.SampleComplexityThresholds(), size=20)
    with pytest.raises(ParameterError, match="order"):
        dl.limits.SampleComplexityThresholds(order=0)
    with pytest.raises(OutsideValidity, match="N = 2"):
        dl.simulate(dl.limits.SphericalOnlineSgd(), size=2)


@pytest.mark.parametrize("horizon", [0.05, 0.3, 1.0, 3.0])
def test_the_classical_limit_closes_at_its_rate_without_noise(horizon):
    """With means and variances known at every step, what extrapolation leaves is within the next order's allowance."""
    sizes = dl.limits.ClassicalOdeLimit.usual.sizes
    limit = dl.limits.ClassicalOdeLimit(start=10.0, curvature=7.0, noise=0.01, horizon=horizon)
    stated = limit.theory()
    fractions = np.arange(1, 6) / 5
    for name, exact in (
        ("path", lambda n: 10.0 * ((1 - horizon / n) ** (n * fractions) - 1)),
        ("fluctuation", lambda n: 7e-4 * (1 - (1 - horizon / n) ** (2 * n * fractions)) / (2 - horizon / n)),
    ):
        means = [Mean(exact(n), np.full(5, 1e-24), np.zeros(5), np.inf) for n in sizes]
        fit = extrapolate(sizes, means, [np.asarray(stated[name].y)] * len(sizes), stated[name].rate, shared=True)
        assert np.all(np.abs(fit.gap) < fit.allowance)
        assert np.all(fit.allowance < 0.015 * np.abs(np.asarray(stated[name].y)))


@pytest.mark.parametrize("step", [1e-3, 0.3, 1e6])
def test_long_vectors_take_the_same_steps(step):
    """The length of what a step makes, told from products, is the length; also where a step goes far."""
    size = online_sgd.LONG + 1
    direction = jnp.zeros(size).at[0].set(1.0)
    start = jnp.zeros(size).at[0].set(0.6).at[1].set(0.8)
    key = jax.random.key(3)

    def draw(key):
        return online_sgd.pca_sample(key, 1.0, direction)

    found = online_sgd.spherical(key, start, online_sgd.pca_loss, draw, step, [0, 1, 2, 3], lambda x: x)
    x = np.asarray(start)
    for i in range(3):
        y = np.asarray(draw(jax.random.fold_in(key, i)))
        gradient = -2 * (x @ y) * y
        moved = x - step / size * (gradient - (gradient @ x) * x)
        x = moved / np.linalg.norm(moved)
        np.testing.assert_allclose(found[i + 1], x, rtol=1e-9, atol=1e-13)
        assert float(found[i + 1] @ found[i + 1]) == pytest.approx(1.0, abs=1e-14)
