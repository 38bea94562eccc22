"""Spectra of random networks and spikes: reference values, quartic equation, simulated matrices."""

import jax
import jax.numpy as jnp
import mpmath
import mpmath as mp
import numpy as np
import pytest

from agreement import agrees
from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.models.activations import activation
from deeplimits.models.atoms import atoms
from deeplimits.theory.spectra import gram_curve, isometry, laws, network_grams, spikes
from deeplimits.theory.spectra.network_grams import conjugate_kernel_transform

RNG = np.random.default_rng


def quartic_transform(z, eta, zeta, p, n, width):
    """m of (1/n)Σ'Σ from Pennington and Worah's quartic, on the root that continues −1/z from infinity."""
    phi, psi = p / n, p / width

    def roots(z):
        t = 1 / (z * psi)
        one, two = np.array([phi, 1 - phi]), np.array([psi, 1 - psi])
        product = np.polymul(one, two)
        left = np.polysub([1.0, -1.0], (eta - zeta) * t * product)
        return np.roots(np.polysub(np.polymul(left, np.polysub([1.0], zeta * t * product)), zeta * t * product))

    path = [z + 1j * height for height in np.geomspace(1e3, 1e-3, 300)] + [z]
    value = 1.0
    for point in path:
        found = roots(point)
        value = found[np.argmin(np.abs(found - value))]
    g = psi / z * value + (1 - psi) / z
    return -(width / n) * g + (width / n - 1) / z


def test_nonlinear_gram_reference_values():
    law = network_grams.nonlinear_gram("tanh", 2 / 3, 2.0)
    assert complex(law.stieltjes(1 + 0.2j)) == pytest.approx(-0.607849527001 + 0.885171672397j, rel=1e-11)
    assert float(law.density(0.3)) == pytest.approx(0.7802187220, rel=1e-8)
    assert float(law.edges[-1, 1]) == pytest.approx(3.6499343271, rel=1e-10)
    law = network_grams.nonlinear_gram("relu", 1.5, 0.5)
    assert complex(law.stieltjes(1 + 0.2j)) == pytest.approx(-1.055866699724 + 0.497012319697j, rel=1e-11)
    assert float(law.edges[-1, 1]) == pytest.approx(1.4530226285, rel=1e-9)
    assert float(law.density(0.3)) == pytest.approx(0.506873494588237, rel=1e-12)  # the quartic in 30 digits
    assert float(law.atoms.weights[0]) == pytest.approx(0.5)
    assert float(network_grams.nonlinear_gram("identity", 1.0, 1.0).edges[-1, 1]) == pytest.approx(27 / 4, rel=1e-12)


@pytest.mark.parametrize(("name", "p", "n", "width"), [("tanh", 3, 2, 4), ("relu", 2, 3, 1.5), ("abs", 1, 2, 6)])
def test_nonlinear_gram_solves_the_quartic(name, p, n, width):
    moments = network_grams.gram_moments(name)
    law = network_grams.nonlinear_gram(name, n / p, width / n)
    for z in (0.5 + 0.1j, 2 + 0.5j, 0.3 + 1e-7j):
        exact = quartic_transform(z, moments.eta, moments.zeta, p, n, width)
        assert complex(law.stieltjes(z)) == pytest.approx(exact, rel=1e-7)


@pytest.mark.parametrize(("p", "n", "width"), [(3, 2, 4), (2, 3, 1.5)])
def test_companion_of_the_nonlinear_gram_matrix(p, n, width):
    """N×N beside n×n: the same eigenvalues, G_N of the quartic, and masses at zero that make up the difference."""
    moments = network_grams.gram_moments("tanh")
    law = network_grams.nonlinear_gram_companion("tanh", n / p, width / n)
    for z in (0.5 + 0.1j, 2 + 0.5j, 0.3 + 1e-7j):
        small = quartic_transform(z, moments.eta, moments.zeta, p, n, width)
        # m_G = −(N/n)G_N + (N/n − 1)/z and m_N = −G_N
        assert complex(law.stieltjes(z)) == pytest.approx((small - (width / n - 1) / z) * n / width, rel=1e-7)
    assert float(law.atoms.weights[0]) == pytest.approx(max(0.0, 1 - n / width), abs=1e-14)
    assert float(law.cdf(float(law.edges[-1, 1]))) == pytest.approx(1.0, abs=1e-9)
    other = network_grams.nonlinear_gram("tanh", n / p, width / n)
    assert float(law.moment(2)) == pytest.approx(float(other.moment(2)) * n / width, rel=1e-10)
    low = float(law.edges[0, 0])
    if width < n:  # no atom: −1/α has all its digits down to z = 0
        with mp.workdps(30):
            exact = mp.quad(lambda x: float(law.density(float(x))) / x, [low, float(law.edges[-1, 1])])
        assert float(law.stieltjes(1e-13).real) == pytest.approx(float(exact), rel=1e-6)
    weights = np.random.default_rng(0).normal(size=(100 * 4, 300))
    if p == 3:
        features = np.tanh(weights @ np.random.default_rng(1).normal(size=(300, 200)) / 300**0.5)
        found = np.linalg.eigvalsh(features @ features.T / 200)
        assert np.mean(found < 1.0) == pytest.approx(float(law.cdf(1.0)), abs=0.01)


def test_traceable_gram_curve_is_the_law():
    moments = gram_curve.odd_moments(activation("tanh"))
    compiled = jax.jit(gram_curve.curve, static_argnums=3)
    for ratio, width in ((0.7, 2.0), (1.5, 0.5), (3.0, 5.0)):
        law = network_grams.nonlinear_gram("tanh", ratio, width)
        curve = compiled(moments, jnp.asarray(ratio), jnp.asarray(width), 400)
        np.testing.assert_allclose(curve.density, law.density(curve.x), rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(curve.cdf, law.cdf(curve.x), atol=1e-9)
        np.testing.assert_allclose(curve.edges, np.asarray(law.edges).ravel()[[0, -1]], rtol=1e-8)


def test_spikes_of_the_nonlinear_gram_matrix():
    spike, same = network_grams.nonlinear_gram_spikes("abs", 2.0, 3.0)
    assert spike.eigenvalue == pytest.approx(3.5707963268, rel=1e-9)
    assert spike.threshold == pytest.approx(0.7933429377, rel=1e-9)
    assert spike.strength == pytest.approx(1.3819765979, rel=1e-9)
    assert same[:-1] == spike[:-1]
    spike, none = network_grams.nonlinear_gram_spikes((1.25, 0.25, 2**0.5), 2.0, 6.0, kurtosis_weights=1.0)
    assert spike.eigenvalue == pytest.approx(22.2222222222, rel=1e-9)
    assert spike.threshold == pytest.approx(2.5119608010, rel=1e-9)
    assert none.eigenvalue == pytest.approx(18.7192943367, rel=1e-9)
    assert none.overlap_data == 0
    spike, _ = network_grams.nonlinear_gram_spikes((1.0, 0.0, 2**0.5), 4 / 3, 3.0)
    assert spike.eigenvalue == pytest.approx(8.75, rel=1e-10)
    with pytest.raises(ParameterError, match="kurtosis_data"):
        network_grams.nonlinear_gram_spikes("abs", 2.0, 3.0, kurtosis_data=0.5)
    with pytest.raises(ParameterError, match="ζ"):
        network_grams.nonlinear_gram((1.0, 2.0, 0.0), 1.0, 1.0)


def test_fluctuations_of_a_spike_in_the_gaussian_equivalent():
    """√n (λ̂ − λ) for √ζ WX/√(pn) + √(η−ζ) Z/√n + θ̂uv', θ̂² scattered by √(2/n) around θ²."""
    eta, zeta, curvature = 1.25, 0.25, 2**0.5
    spike, _ = network_grams.nonlinear_gram_spikes((eta, zeta, curvature), 2.0, 6.0, kurtosis_weights=1.0)
    rng = np.random.default_rng(0)
    p, n, width, draws = 50, 100, 600, 600
    tops, overlaps = [], []
    for _ in range(draws):
        bulk = np.sqrt(zeta / p) * rng.standard_normal((width, p)) @ rng.standard_normal((p, n))
        bulk += np.sqrt(eta - zeta) * rng.standard_normal((width, n))
        v = rng.standard_normal(n)
        # ψ_X is a Gaussian vector; its norm fluctuates by itself as it should.
        matrix = bulk / np.sqrt(n) + spike.strength * np.outer(np.ones(width) / np.sqrt(width), v / np.sqrt(n))
        values, vectors = np.linalg.eigh(matrix.T @ matrix)
        tops.append(values[-1])
        overlaps.append((vectors[:, -1] @ v) ** 2 / (v @ v))
    spread, error = np.sqrt(n) * np.std(tops, ddof=1), np.sqrt(n) * np.std(tops, ddof=1) / np.sqrt(2 * draws)
    # Corrections of relative order 1/n come with constants of a few units.
    assert abs(spread - spike.deviation) < 5 * error + 5 / n * spike.deviation
    assert abs(np.mean(tops) - spike.eigenvalue) < 5 * np.std(tops) / np.sqrt(draws) + 5 / n * spike.eigenvalue
    assert abs(np.mean(overlaps) - spike.overlap_data) < 5 * np.std(overlaps) / np.sqrt(draws) + 5 / n


@pytest.mark.parametrize(("side", "index"), [("data", 0), pytest.param("weights", 1, marks=pytest.mark.slow)])
def test_spikes_of_simulated_features(side, index):
    """t²−1 with Rademacher entries on one side: one spike, whose place, overlap and scatter differ by O(1/p)."""
    spike = network_grams.nonlinear_gram_spikes((2.0, 0.0, 2.0), 4 / 3, 3.0, **{
        "kurtosis_weights" if side == "data" else "kurtosis_data": 1.0
    })[index]  # fmt: skip
    rng = np.random.default_rng(1)
    found = {}
    for p in (60, 120, 240):
        n, width, draws = 4 * p // 3, 4 * p, 36_000 // p
        tops, overlaps = [], []
        for _ in range(draws):
            x, w = rng.standard_normal((p, n)), rng.standard_normal((width, p))
            x, w = (x, np.sign(w)) if side == "data" else (np.sign(x), w)
            features = (w @ x) ** 2 / p - 1
            values, vectors = np.linalg.eigh(features.T @ features / n)
            direction = np.sum(x**2, axis=0) / p - 1 if side == "data" else np.ones(n)
            tops.append(values[-1])
            overlaps.append((vectors[:, -1] @ direction) ** 2 / (direction @ direction))
        scatter = np.sqrt(n) * np.std(tops, ddof=1)
        found[p] = (
            np.array([np.mean(tops), np.mean(overlaps), scatter]),
            np.array([np.std(tops) / np.sqrt(draws), np.std(overlaps) / np.sqrt(draws), scatter / np.sqrt(2 * draws)]),
        )
    stated = np.array([spike.eigenvalue, spike.overlap_data, spike.deviation])
    # The gap C/p + C'/p², through three sizes: λ∞ = λ₁/3 − 2λ₂ + 8λ₃/3
    weights = np.array([1 / 3, -2.0, 8 / 3])
    limit = sum(weight * found[p][0] for weight, p in zip(weights, found, strict=True))
    error = np.sqrt(sum((weight * found[p][1]) ** 2 for weight, p in zip(weights, found, strict=True)))
    assert np.all(np.abs(limit - stated) < 5 * error), (limit, stated, error)
    assert np.all(np.abs(found[240][0] - stated) < np.abs(found[60][0] - stated))


def test_overlaps_of_a_planted_rectangular_spike():
    # The Gram spike's formula with ζ = 0 must be that of signal plus noise.
    theta, gamma = 1.5, 0.5
    known = spikes.signal_plus_noise(theta, gamma)
    rng = RNG(0)

    def measure(n):
        x = rng.standard_normal((int(gamma * n), n))
        x[0, 0] += theta * np.sqrt(n)
        u, s, v = np.linalg.svd(x / np.sqrt(n), full_matrices=False)
        return s[0] ** 2, u[0, 0] ** 2, v[0, 0] ** 2

    draws = {n: [measure(n) for _ in range(count)] for n, count in ((60, 600), (120, 400), (240, 200))}
    stated = np.array([float(part) for part in known[:3]])
    assert agrees(draws, stated)
    for part in range(3):
        assert not agrees(draws, stated * (1 + 0.1 * (np.arange(3) == part)))
    # Pure noise of N rows and n columns, N/n = p/n: θ₂ chosen so that the strength is θ.
    curvature = 2 * theta / np.sqrt(gamma * 2)
    spike, _ = network_grams.nonlinear_gram_spikes((1.0, 0.0, curvature), 1.0, gamma)
    assert spike.eigenvalue == pytest.approx(float(known.eigenvalue), rel=1e-10)
    assert spike.overlap_width == pytest.approx(float(known.left), rel=1e-6)
    assert spike.overlap_data == pytest.approx(float(known.right), rel=1e-6)


def test_spiked_covariance_reference_values():
    np.testing.assert_allclose(spikes.spiked_covariance(2.0, 0.5)[:2], [3.75, 0.7], rtol=1e-14)
    np.testing.assert_allclose(spikes.spiked_covariance(1.0, 0.5)[:2], [3.0, 1 / 3], rtol=1e-14)
    np.testing.assert_allclose(spikes.spiked_covariance(-0.8, 0.2)[:2], [0.15, 0.9166666667], rtol=1e-9)
    np.testing.assert_allclose(spikes.spiked_covariance(0.1, 0.25)[:2], [2.25, 0.0])
    two = (atoms([1.0, 3.0]), 0.3)
    np.testing.assert_allclose(spikes.population_spike(8.0, *two)[:2], [8.891428571, 0.848402497], rtol=1e-9)
    np.testing.assert_allclose(spikes.population_spike(5.0, *two)[:2], [6.3125, 0.517326733], rtol=1e-9)
    law = laws.sample_covariance([1.0, 3.0], 0.3)
    assert law.ends[-1, 1] == pytest.approx(4.170661417852, rel=1e-12)
    assert float(law.edges[-1, 1]) == pytest.approx(5.971164395444, rel=1e-12)
    with pytest.raises(ParameterError, match="strength"):
        spikes.spiked_covariance(-1.0, 0.5)
    with pytest.raises(OutsideValidity, match="value is one of"):
        spikes.population_spike(3.0, *two)
    with pytest.raises(ParameterError, match="value = -1"):
        spikes.population_spike(-1.0, *two)


def test_fluctuation_of_an_outlier():
    rng, ell = RNG(2), 2.0
    found = spikes.spiked_covariance(ell, 0.25)

    def covariance(n):
        x = rng.standard_normal((n, n // 4))
        x[:, 0] *= np.sqrt(1 + ell)
        return np.linalg.eigvalsh(x.T @ x / n)[-1]

    def wigner(n):
        w = rng.standard_normal((n, n))
        w = (w + w.T) / np.sqrt(2 * n)
        w[0, 0] += 2.0
        return np.linalg.eigvalsh(w)[-1]

    for draw, known, sizes in (
        (covariance, found, ((80, 3000), (160, 3000), (320, 3000))),
        (wigner, spikes.spiked_wigner(2.0), ((30, 3000), (60, 2000), (120, 1500))),
    ):
        places = {n: np.array([draw(n) for _ in range(count)]) for n, count in sizes}
        stated = [float(known.eigenvalue), float(known.deviation) ** 2]
        # Squares around the limit: the bias of order 1/n adds nothing at infinite size.
        draws = {n: np.stack([x, n * (x - stated[0]) ** 2], axis=1) for n, x in places.items()}
        assert agrees(draws, stated)
        assert not agrees(draws, [1.03 * stated[0], stated[1]])
        assert not agrees(draws, [stated[0], 1.5 * stated[1]])


def test_conjugate_kernel_reference_values():
    one = network_grams.conjugate_kernel_spectrum("tanh", 1 / 1.5, [0.5])
    assert complex(one.stieltjes(1 + 0.5j)) == pytest.approx(-0.309791826477 + 0.804483003085j, rel=1e-10)
    two = network_grams.conjugate_kernel_spectrum("tanh", 1 / 1.5, [0.5, 1 / 1.5])
    assert complex(two.stieltjes(1 + 0.5j)) == pytest.approx(-0.381755940784 + 0.721963949714j, rel=1e-10)
    moments = network_grams.gram_moments("tanh")
    y = np.array([0.05, 0.5, 4.0])
    arguments = (moments.zeta / moments.eta, 1 / 1.5, 0.5, 1 / 1.5)

    share, data, first, second = (jnp.asarray(part) for part in arguments)
    traced = network_grams.conjugate_kernel_transform(jnp.asarray(y), share, data, (first, second))
    np.testing.assert_allclose(traced, y * np.real(two.stieltjes(-y)), rtol=1e-9)
    with pytest.raises(OutsideValidity, match="b²"):
        network_grams.conjugate_kernel_spectrum(1.5, 1.0, [1.0])


def test_dynamical_isometry_reference_values():
    for weights, density, transform in (
        ("gaussian", (0.0595780784, 0.0154952280), 0.322769021508 - 0.240446966886j),
        ("orthogonal", (0.0758285917, 0.0298646856), 0.279511791186 - 0.262360578300j),
    ):
        law = isometry.jacobian_spectrum(4, weights, 2.0, 0.5)
        np.testing.assert_allclose(law.density([1.0, 4.0]), density, rtol=1e-7)
        assert complex(law.cauchy(2 + 1j)) == pytest.approx(transform, rel=1e-10)
        top = isometry.largest_squared_singular_value(4, weights, 0.5)
        assert float(law.edges[-1, 1]) == pytest.approx(float(top), rel=1e-10)
        assert law._rule.weights.sum() == pytest.approx(0.5, abs=1e-10)
        spread = float(isometry.relative_variance(4, weights, 2.0))
        assert float(law.moment(2)) - 1 == pytest.approx(spread, rel=1e-9)
        share = isometry.shrunk_share(4, weights, 2.0, 0.5, np.array([0.3, 2.0]))
        np.testing.assert_allclose(share, np.array([0.3, 2.0]) * np.real(law.stieltjes([-0.3, -2.0])), rtol=1e-9)
    for depth, active, orthogonal, gaussian in (
        (8, 0.9, 2.3230573125, 25.3713258528),
        (100, 0.5, 270.4679036, 543.6608961),
    ):
        assert float(isometry.largest_squared_singular_value(depth, "orthogonal", active)) == pytest.approx(orthogonal)
        assert float(isometry.largest_squared_singular_value(depth, "gaussian", active)) == pytest.approx(gaussian)
    assert float(isometry.atom_at_top(8, 0.95)) == pytest.approx(0.6)


def test_critical_points():
    np.testing.assert_allclose(
        isometry.critical_point("tanh", 0.5), [1.68797512058, 0.03804120111, 1.29924412655], rtol=1e-9
    )
    np.testing.assert_allclose(
        isometry.critical_point("tanh", 1.5), [2.53248171857, 0.31406866781, 1.82608209241], rtol=1e-9
    )
    law = isometry.slope_law("tanh", 1.5)
    first, second = isometry.slope_moments("tanh", 1.5)
    np.testing.assert_allclose([float(law.moment(1)), float(law.moment(2))], [first, second], rtol=1e-9)
    np.testing.assert_allclose(isometry.slope_law("relu", 2.0).atoms.weights, [0.5, 0.5], rtol=1e-10)
    with pytest.raises(ParameterError, match="weights"):
        isometry.jacobian_spectrum(2, "uniform", 1.0, 0.5)
    with pytest.raises(ParameterError, match="depth"):
        isometry.jacobian_spectrum(0, "gaussian", 1.0, 0.5)
    with pytest.raises(ParameterError, match="slopes"):
        isometry.jacobian_spectrum(2, "gaussian", 1.0, 0.0)


def test_deep_linear_norm_reference_values():
    mean, variance = isometry.deep_linear_log_norm(100.0, 50.0)
    assert float(mean) == pytest.approx(-0.25083330000635, rel=1e-12)
    assert float(variance) == pytest.approx(0.25251666533371, rel=1e-12)


def test_deep_kernels_with_fewer_units_than_samples_at_small_shifts():
    """Σ y/(y + λ) of narrow layers is at least the share of zero eigenvalues; the wrong preimage gave 0.0106 for it."""
    ratios = [jnp.asarray(2.6516984899812392), jnp.asarray(5.341587884001478)]
    shifts = jnp.array([1e-6, 1e-3, 0.05849683810194434])
    found = conjugate_kernel_transform(shifts, jnp.asarray(0.93), jnp.asarray(0.20376998398504015), ratios)
    share_of_zeros = 1 - 1 / float(ratios[-1])
    assert float(found[0]) == pytest.approx(share_of_zeros, abs=1e-4)
    assert np.all(np.diff(np.asarray(found)) > 0)


def test_deep_linear_norms_of_unequal_widths():
    from deeplimits.theory.spectra import deep_linear_norm

    widths = [3.0, 7.0, 2.0, 150.0]
    found = deep_linear_norm(widths)
    with mpmath.workdps(30):
        halves = [mpmath.mpf(n) / 2 for n in widths]
        mean = sum(mpmath.digamma(h) - mpmath.log(h) for h in halves) / 2
        variance = sum(mpmath.psi(1, h) for h in halves) / 4
        # E (χ²_n/n)² = (n + 2)/n
        fourth = mpmath.fprod((2 * h + 2) / (2 * h) for h in halves)
    assert [float(part) for part in found] == pytest.approx([float(mean), float(variance), float(fourth)], rel=1e-12)


@pytest.mark.parametrize(("data_ratio", "width_ratio"), [(4 / 3, 3.0), (1e6, 1e-6), (1e12, 1e-9), (1e-2, 1e6)])
def test_spikes_of_a_purely_nonlinear_activation_have_closed_forms(data_ratio, width_ratio):
    """With ζ = 0 the matrix is signal plus noise; ratios far apart took the digits, the sign and the reality of it."""
    for spike in network_grams.nonlinear_gram_spikes((1.0, 0.0, 2**0.5), data_ratio, width_ratio):
        exact = spikes.signal_plus_noise(spike.strength, width_ratio)
        found = spike.eigenvalue, spike.overlap_width, spike.overlap_data, spike.threshold
        np.testing.assert_allclose(found, [float(part) for part in exact], rtol=1e-8)
