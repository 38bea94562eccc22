"""Weak and strong recovery of any landscape against closed forms, exact chains and diffusions stepped by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import deeplimits as dl
from deeplimits import tails
from deeplimits.ensembles import reduced_chains
from deeplimits.errors import DeeplimitsError, OutsideValidity
from deeplimits.measure import recovery_report
from deeplimits.models import from_function
from deeplimits.numerics import draws
from deeplimits.statistics import LEVEL
from deeplimits.theory.online_sgd import binary_mixture, landscapes, online_pca, pca_plateau, recovery, tensor_pca

CATALAN = 0.915965594177219


def test_what_a_constant_step_recovers():
    found = recovery.recovery(online_pca(1.0), 0.3)
    assert (found.upper, found.lower) == pytest.approx((float(pca_plateau(1.0, 0.3)), -float(pca_plateau(1.0, 0.3))))
    assert found.weak
    assert not found.strong
    # At the critical step and above nothing is found; with vanishing steps everything.
    assert not recovery.recovery(online_pca(1.0), 1.0).weak
    assert recovery.recovery(online_pca(1.0), 0.0).strong
    # Phase retrieval: 1 without label noise, m_*² = 1 − 8δ²σ²/κ with it
    assert recovery.recovery(landscapes.single_index("square", "square", 0.0), 0.03).strong
    noisy = recovery.recovery(landscapes.single_index("square", "square", 0.5), 0.03)
    assert noisy.upper == pytest.approx((1 - 8 * 0.03**2 * 0.25 / (0.24 - 96 * 0.03**2)) ** 0.5)
    assert not noisy.strong
    # Exponent 3 asks for steps that vanish; exponent 1 crosses the equator from below.
    assert not recovery.recovery(tensor_pca(2.0, 3), 0.1).weak
    assert recovery.recovery(tensor_pca(2.0, 4), 0.0).strong
    unbalanced = recovery.recovery(binary_mixture(0.5), 0.5)
    assert unbalanced.upper == unbalanced.lower > 0
    assert unbalanced.probability(0.1) == 1.0


def paths(model, starts, step, steps, seed=0):
    """The correlations of one chain from each start, at the end and where |m| was largest."""

    def one(key, start):
        def move(carry, sample):
            m, largest = carry
            m = model.step(sample, m, step)
            return (m, jnp.maximum(largest, jnp.abs(m))), None

        return jax.lax.scan(move, (start, jnp.abs(start)), model.samples(key, (steps,)))[0]

    keys = jax.vmap(lambda i: draws.neighbour(jax.random.key(seed), i))(jnp.arange(len(starts)))
    return (np.asarray(part) for part in jax.jit(jax.vmap(one))(keys, jnp.asarray(starts)))


def uniform(count, dimension, seed):
    points = np.random.default_rng(seed).normal(size=(count, 2))
    rest = np.random.default_rng(seed + 1).chisquare(dimension - 1, count)
    return points[:, 0] / np.sqrt(points[:, 0] ** 2 + rest)


@pytest.mark.slow
def test_an_uneven_loss_rests_elsewhere_above_and_below():
    """z² + 0.3 He₃(z): k = 2, and m² adds to the drift above the equator and takes from it below."""
    link = from_function(lambda z: z**2 + 0.3 * (z**3 - 3 * z))
    landscape = landscapes.single_index(link, link, 1.0)
    step = 0.5 * float(landscapes.critical_step(landscape))
    found = recovery.recovery(landscape, step)
    assert found.exponent == 2
    assert found.upper > -found.lower + 0.05
    model = reduced_chains.single_index(400, link, link, 1.0)
    ends, _ = paths(model, np.repeat([found.upper, found.lower], 100), step, 400 * 60)
    for end, stated in ((ends[:100], found.upper), (ends[100:], found.lower)):
        # Single paths differ by N^{−1/2}, the mean by 1/N
        assert end.mean() == pytest.approx(stated, abs=5 * end.std() / 10 + 10 / 400)


@pytest.mark.parametrize(
    ("landscape", "model", "step", "threshold", "alphas"),
    [
        pytest.param(
            online_pca(1.0), lambda n: reduced_chains.online_pca(n, 1.0), 0.3, 0.4, (5.0, 8.0), marks=pytest.mark.slow
        ),
        (binary_mixture(0.5), lambda n: reduced_chains.binary_mixture(n, 0.5), 0.5, 0.3, (5.0, 6.4)),
    ],
    ids=["exponent 2", "exponent 1"],
)
def test_probability_of_recovery_against_exact_chains(landscape, model, step, threshold, alphas):
    """N = 3000, 160 runs: log N/N and N^{−1/2} are corrections of some percent, those of chance are larger."""
    n, runs = 3000, 160
    stated = recovery.recovery_probability(landscape, step, n, alphas, threshold)
    starts = uniform(runs, n, 5)
    for alpha, probability in zip(alphas, np.asarray(stated), strict=True):
        ends, largest = paths(model(n), starts, step, int(alpha * n))
        found = int(np.sum((largest if landscape.exponent == 2 else ends) >= threshold))
        near = min(max(found / runs, probability - 0.04), probability + 0.04)
        assert tails.binomial_p_value(found, runs, near) > LEVEL
        # A statement wrong by 0.25 would be seen.
        assert tails.binomial_p_value(found, runs, abs(probability - 0.25)) < 1e-5 or probability > 0.9


@pytest.mark.slow
def test_probability_of_recovery_of_exponent_three():
    """The diffusion u by Euler steps from Gaussian starts, the level shifted by 0.5826σ√h for looking at steps only."""
    landscape, n, eta, delta = tensor_pca(4.0, 3), 400, 0.5, 0.05
    alphas = (60.0, 150.0)
    stated = np.asarray(recovery.recovery_probability(landscape, delta, n, alphas, eta))
    rng, h, c = np.random.default_rng(3), 1e-3, delta * np.sqrt(n)
    u, passed = rng.normal(size=8000), np.zeros(8000, bool)
    level, found = eta * np.sqrt(n) - 0.5826 * np.sqrt(3 * h), []
    for step in range(1, round(delta**2 * alphas[-1] / h) + 1):
        live = ~passed
        drift = 12 / c * u[live] ** 2 - 1.5 * u[live]
        u[live] += h * drift + np.sqrt(3 * h) * rng.normal(size=live.sum())
        passed |= u >= level
        if any(abs(step * h - delta**2 * alpha) < h / 2 for alpha in alphas):
            found.append(passed.mean())
    error = np.sqrt(stated * (1 - stated) / 8000)
    assert np.all(np.abs(found - stated) < 5 * error + 0.004)


@pytest.mark.parametrize(
    ("landscape", "model", "step", "alpha"),
    [
        (binary_mixture(0.5), lambda n: reduced_chains.binary_mixture(n, 0.5), 0.5, 1.0),
        (online_pca(1.0), lambda n: reduced_chains.online_pca(n, 1.0), 0.3, 3.0),
        (tensor_pca(4.0, 3), lambda n: reduced_chains.tensor_pca(n, 4.0, 3), 0.03, 10.0),
    ],
)
def test_too_few_samples(landscape, model, step, alpha):
    """No more runs come to 0.5 than the bound allows; the bound is below one half, and grows to one with α."""
    n, runs = 1000, 200
    bound = float(recovery.no_recovery_bound(landscape, step, n, alpha, 0.5))
    assert 0 < bound < 0.5
    _, largest = paths(model(n), uniform(runs, n, 2), step, int(alpha * n))
    assert tails.binomial_tail(int(np.sum(largest >= 0.5)), runs, bound) > LEVEL
    assert float(recovery.no_recovery_bound(landscape, step, n, 1000.0, 0.5)) == 1.0
    # α ≪ α_c: it vanishes as N grows
    assert float(recovery.no_recovery_bound(landscape, step, 10**8, 0.01, 0.5)) < 1e-3


def test_doobs_bound_of_the_directional_error():
    """At the equator M is Brownian: E sup M² = 2G·σ²δ²α/N, G Catalan's constant, below Doob's 4."""
    n, delta, alpha, runs = 600, 0.05, 0.5, 400
    bound = recovery.martingale_bound(online_pca(1.0), delta, n, alpha)
    model = reduced_chains.online_pca(n, 1.0)

    def one(key):
        def move(carry, sample):
            m, total, largest = carry
            across = jnp.sqrt(1 - m**2) * model.gradient(sample, m).across
            total = total + delta / n * (across + 2 * m * (1 - m**2))
            return (model.step(sample, m, delta), total, jnp.maximum(largest, total**2)), None

        start = (jnp.zeros(()), jnp.zeros(()), jnp.zeros(()))
        return jax.lax.scan(move, start, model.samples(key, (int(alpha * n),)))[0][2]

    keys = jax.vmap(lambda i: draws.neighbour(jax.random.key(1), i))(jnp.arange(runs))
    found = np.asarray(jax.jit(jax.vmap(one))(keys))
    mean, error = found.mean(), found.std() / np.sqrt(runs)
    assert mean < float(bound.largest)
    # Looked at in 300 steps the largest value is smaller by some percent.
    assert mean == pytest.approx(2 * CATALAN * float(bound.variance), abs=5 * error + 0.08 * mean)


def test_reports_of_runs():
    rng = np.random.default_rng(0)
    runs = {n: np.where(rng.random(200) < p, 0.8, -0.8) for n, p in ((100, 0.3), (400, 0.5), (1600, 0.8))}
    report = recovery_report(runs, 0.5)
    assert report.verdict == "rises"
    assert report.p_value < 1e-6
    for one, p in zip(report.frequencies, (0.3, 0.5, 0.8), strict=True):
        assert one.low < p < one.high
    # Cochran and Armitage's z by the permutation variance, written out
    x, hit = np.repeat(np.log([100, 400, 1600]), 200), np.concatenate([runs[n] for n in (100, 400, 1600)]) > 0
    z = (hit - hit.mean()) @ (x - x.mean()) / np.sqrt(hit.var() * np.sum((x - x.mean()) ** 2))
    assert report.trend == pytest.approx(z)
    assert recovery_report(runs, 0.5, absolute=True).verdict == "no trend seen"
    assert recovery_report({100: [0.1]}, 0.5).verdict == "one dimension"


@pytest.mark.parametrize(
    ("attempt", "why"),
    [
        (lambda: recovery_report({}, 0.5), "empty"),
        (lambda: recovery_report({100: [1.5]}, 0.5), "observations"),
        (lambda: recovery_report({100: [0.5]}, 1.0), "threshold"),
        (lambda: recovery.recovery(online_pca(1.0), -0.1), "step"),
        (lambda: recovery.recovery_probability(online_pca(1.0), 0.3, 100, [1.0], 0.9), "plateau"),
        (lambda: recovery.recovery_probability(tensor_pca(1.0, 3), 0.3, 100, [1.0], 0.5), "starts' own size"),
        (lambda: recovery.no_recovery_bound(online_pca(1.0), 0.3, 100, np.nan, 0.5), "samples_per_dimension"),
    ],
)
def test_what_is_refused(attempt, why):
    with pytest.raises(DeeplimitsError, match=why):
        attempt()


@pytest.mark.parametrize(("noise", "strong"), [(0.0, 1.0), (1.0, 0.0)])
def test_the_limit_says_what_recovery_says(noise, strong):
    """The name led to a probability of one in online PCA alone; strong recovery was a sentence."""
    limit = dl.limits.WeakAndStrongRecovery(noise=noise, horizon=30.0)
    found = recovery.recovery(landscapes.single_index("tanh", "tanh", noise), 0.5)
    assert (found.weak, found.strong) == (True, bool(strong))
    stated = limit.theory()
    assert float(stated["weak_recovery"].value) == 1.0
    assert float(stated["strong_recovery"].value) == strong
    assert float(stated["correlation"].y[-1]) == pytest.approx(found.upper, abs=1e-5)


def test_levels_within_the_fluctuations_are_refused():
    with pytest.raises(OutsideValidity, match="not clear of 1 − margin"):
        dl.compare(dl.limits.WeakAndStrongRecovery(noise=1.0, margin=0.3), sizes=(200, 400))
