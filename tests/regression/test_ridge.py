"""Ridge regression in high dimension: sheet values, dense linear algebra, identities, bad input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from agreement import agrees
from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.measure.cross_validation import leave_one_out
from deeplimits.models.atoms import atoms
from deeplimits.theory.regression import ridge, ridgeless
from deeplimits.theory.regression.populations import from_covariance, latent_features, population
from deeplimits.theory.spectra import laws, marchenko_pastur_formulas
from deeplimits.theory.spectra.ridge_equation import effective_ridge

TWO = population([1.0, 4.0], alignment=[0.3, 0.7])
ONE = population([1.0])


@pytest.mark.parametrize(
    ("gamma", "lam", "kappa", "bias", "variance"),
    [
        (2.0, 0.0, 2.0, 1.0, 1.25),
        (2.0, 0.3, 2.5963616312565, 1.0633930295603, 0.80190394721718),
        (0.5, 0.3, 0.49195319213003, 0.096022184326467, 0.45043591603973),
    ],
)
def test_two_eigenvalues(gamma, lam, kappa, bias, variance):
    found = ridge.ridge_risk(lam, TWO, gamma, 1.0, 1.0)
    values = [float(part) for part in (found.effective_ridge, found.bias, found.variance)]
    assert values == pytest.approx([kappa, bias, variance], rel=1e-12)


@pytest.mark.parametrize(
    ("gamma", "signal", "noise", "lam", "risk"),
    [
        (0.5, 2.0, 0.5, 0.0, 0.5),
        (2.0, 2.0, 0.5, 0.0, 1.5),
        (1.0, 2.0, 0.5, 0.1, 0.8822597737),
        (2, 2, 0.5, 0.5, 1.2807764064),
    ],
)
def test_isotropic_values(gamma, signal, noise, lam, risk):
    assert float(ridge.ridge_risk(lam, ONE, gamma, signal, noise).total) == pytest.approx(risk, rel=1e-9)


def test_isotropic_risk_is_the_one_of_the_marchenko_pastur_transform():
    gamma, lam, signal, noise = 1.5, 0.5, 2.0, 1.0
    found = ridge.ridge_risk(lam, ONE, gamma, signal, noise)
    # B = r²λ²S'(−λ), V = σ²γ(S − λS'), with S and S' from the density
    law = laws.marchenko_pastur(gamma)
    first, second = (float(law.expect(lambda x, k=k: (x + lam) ** -k)) for k in (1, 2))
    assert float(found.bias) == pytest.approx(signal * lam**2 * second, rel=1e-11)
    assert float(found.variance) == pytest.approx(noise * gamma * (first - lam * second), rel=1e-11)
    assert [float(found.bias), float(found.variance)] == pytest.approx([0.91068360252296, 0.36602540378444], rel=1e-12)


@pytest.mark.parametrize(
    ("lam", "kappa", "bias", "variance"),
    [(0.0, 0.03796586657, 0.02531057771, 1.16289413605), (0.1, 0.19601749112, 0.04569030711, 0.13741015227)],
)
def test_a_decaying_spectrum(lam, kappa, bias, variance):
    decaying = population(10 / np.arange(1, 301))
    found = ridge.ridge_risk(lam, decaying, 1.5, 1.0, 0.5)
    values = [float(part) for part in (found.effective_ridge, found.bias, found.variance)]
    assert values == pytest.approx([kappa, bias, variance], rel=2e-9)


def test_the_effective_ridge_solves_its_equation_with_another_solver():
    rng = np.random.default_rng(0)
    values, weights = rng.exponential(size=50), rng.dirichlet(np.ones(50))
    for gamma in (0.2, 0.999, 1.0, 1.001, 7.0):
        for lam in (1e-9, 1e-3, 1.0, 1e4):
            found = float(effective_ridge(lam, atoms(values, weights), gamma))

            def excess(kappa, lam=lam, gamma=gamma):
                return kappa - lam - gamma * kappa * (weights @ (values / (values + kappa)))

            expected = optimize.brentq(excess, lam, lam + 2 * gamma * weights @ values, xtol=1e-300, rtol=1e-15)
            assert found == pytest.approx(expected, rel=1e-11)


def test_without_ridge_only_the_surplus_of_directions_counts():
    # Half of the directions do not vary: γ = 1.5 is an effective 0.75, with no interpolation.
    half = population([0.0, 1.0])
    found = ridge.ridge_risk(0.0, half, 1.5, 1.0, 1.0)
    expected = ridgeless.ridgeless_risk(0.75, 1.0, 1.0)
    assert float(found.variance) == pytest.approx(float(expected.variance), rel=1e-13)
    assert float(found.bias) == 0.0
    assert float(found.training_error) == pytest.approx(0.25, rel=1e-13)


@pytest.mark.parametrize("gamma", [0.3, 0.999999, 1.000001, 3.0])
def test_ridgeless_is_the_closed_form(gamma):
    found, expected = ridge.ridge_risk(0.0, ONE, gamma, 2.0, 0.5), ridgeless.ridgeless_risk(gamma, 2.0, 0.5)
    assert float(found.bias) == pytest.approx(float(expected.bias), rel=1e-9)
    assert float(found.variance) == pytest.approx(float(expected.variance), rel=1e-9)
    assert float(found.training_error) == pytest.approx(
        float(ridgeless.ridgeless_training_error(gamma, 0.5)), abs=1e-12
    )


def test_ridgeless_at_the_threshold_is_infinite():
    for count in (1, 3, 7, 49, 300):
        many = population(np.linspace(1.0, 2.0, count))
        for gamma in (1.0, 1 + 1e-15, 1 - 1e-15):
            assert np.isinf(float(ridge.ridge_risk(0.0, many, gamma, 1.0, 1.0).variance))
    assert np.isinf(float(ridge.ridge_risk(0.0, TWO, 1.0, 1.0, 1.0).variance))
    assert np.isinf(float(ridge.misspecified_risk(1.0, 1.0, 0.0, seen=0.5).total))


def test_gradients_are_those_of_differences():
    def risk(arguments):
        gamma, lam, large, signal = arguments
        moved = TWO._replace(eigenvalues=atoms(jnp.stack([jnp.ones(()), large])))
        return ridge.ridge_risk(lam, moved, gamma, signal, 0.7).total

    for start in ([2.0, 0.3, 4.0, 1.0], [0.5, 0.01, 4.0, 1.0], [2.0, 0.0, 4.0, 1.0]):
        start = jnp.array(start)
        slopes = jax.grad(risk)(start)
        assert bool(jnp.all(jnp.isfinite(slopes)))
        for index in range(4):
            step = 1e-5 * jnp.eye(4)[index]
            if index == 1 and start[1] == 0:
                continue
            change = (risk(start + step) - risk(start - step)) / 2e-5
            assert float(slopes[index]) == pytest.approx(float(change), rel=1e-6, abs=1e-8)
    # At λ = 0 and γ < 1 the effective ridge vanishes, and its slope is 1/(1 − γ).
    assert float(jax.grad(lambda lam: effective_ridge(lam, atoms(1.0), 0.5))(0.0)) == pytest.approx(2.0, rel=1e-12)


@pytest.mark.parametrize(
    ("gamma", "signal", "noise", "risk"), [(2.0, 5.0, 1.0, 3.1084952830142), (1, 1, 1, 0.61803398874989)]
)
def test_the_best_isotropic_ridge(gamma, signal, noise, risk):
    best = ridge.optimal_ridge(ONE, gamma, signal, noise)
    assert best.ridge == pytest.approx(gamma * noise / signal, rel=1e-5)
    assert best.risk == pytest.approx(risk, rel=1e-11)
    # R* = σ²γS(−λ*)
    transform = marchenko_pastur_formulas.marchenko_pastur_stieltjes(-gamma * noise / signal, gamma).real
    assert best.risk == pytest.approx(noise * gamma * float(transform), rel=1e-11)


def test_the_peak_at_the_threshold_is_removed_by_the_best_ridge():
    gammas = np.geomspace(0.2, 5.0, 41)
    little = np.asarray(ridge.ridge_risk(1e-3, ONE, gammas, 1.0, 0.2).total)
    assert abs(gammas[np.argmax(little)] - 1) < 0.1
    best = np.asarray(ridge.ridge_risk(0.2 * gammas, ONE, gammas, 1.0, 0.2).total)
    assert np.all(np.diff(best) > 0)


def test_the_best_ridge_may_be_negative_or_infinite():
    aligned = population([0.05, 5.0], [0.9, 0.1], alignment=[0.0, 1.0])
    best = ridge.optimal_ridge(aligned, 3.0, 1.0, 1e-4)
    assert best.ridge < 0
    at_zero = float(ridge.ridge_risk(0.0, aligned, 3.0, 1.0, 1e-4).total)
    assert best.risk < at_zero
    assert ridge.optimal_ridge(ONE, 1.0, 0.0, 1.0) == (np.inf, 0.0, np.inf)


def test_a_negative_ridge_does_what_is_said_on_a_sample():
    rng = np.random.default_rng(1)
    kappa = 0.8 * float(ridge.ridge_risk(0.0, ONE, 2.0, 1.0, 1.0).effective_ridge)
    lam, risk = ridge.risk_at(kappa, ONE, 2.0, 1.0, 1.0)
    assert float(lam) < 0

    def measure(n):
        x = rng.standard_normal((n, 2 * n))
        solved = x.T @ np.linalg.inv(x @ x.T / n + float(lam) * np.eye(n)) / n
        beta = rng.standard_normal(2 * n)
        beta /= np.linalg.norm(beta)
        return np.sum((solved @ (x @ beta) - beta) ** 2), np.sum(solved**2)

    draws = {n: [measure(n) for _ in range(count)] for n, count in ((80, 400), (160, 200), (320, 60))}
    stated = np.array([float(risk.bias), float(risk.variance)])
    assert agrees(draws, stated)
    # The risk without ridge is another one.
    without = ridge.ridge_risk(0.0, ONE, 2.0, 1.0, 1.0)
    assert not agrees(draws, [stated[0], float(without.variance)])
    assert not agrees(draws, [1.1 * stated[0], stated[1]])
    assert float(risk.total) > float(ridge.optimal_ridge(ONE, 2.0, 1.0, 1.0).risk)


def test_misspecified_and_latent_values():
    assert float(ridge.misspecified_risk(2.0, 1.0, 0.25, seen=0.7).total) == pytest.approx(1.2, rel=1e-12)
    assert float(ridge.misspecified_risk(0.5, 1.0, 0.25, seen=0.7).total) == pytest.approx(0.85, rel=1e-12)
    found, signal, noise = latent_features(4.0, 0.5, 1.0, 0.1)
    risk = ridge.ridge_risk(0.0, found, 2.0, signal, noise)
    assert float(risk.effective_ridge) == pytest.approx(5**0.5, rel=1e-12)
    assert float(risk.total) == pytest.approx(0.58137767414994, rel=1e-12)


def test_a_population_from_a_matrix_is_the_one_of_its_eigenvalues():
    rng = np.random.default_rng(2)
    root = rng.standard_normal((6, 6))
    sigma, beta = root @ root.T, rng.standard_normal(6)
    found, signal = from_covariance(sigma, beta)
    kappa = float(effective_ridge(0.2, found.eigenvalues, 2.0))
    # κ²β'Σ(Σ+κ)^{-2}β and tr Σ²(Σ+κ)^{-2}, by dense matrices, n = 3
    inverse = np.linalg.inv(sigma + kappa * np.eye(6))
    d2 = np.trace(sigma @ inverse @ sigma @ inverse) / 3
    risk = ridge.ridge_risk(0.2, found, 2.0, signal, 0.5)
    assert float(risk.bias) == pytest.approx(kappa**2 * beta @ inverse @ sigma @ inverse @ beta / (1 - d2), rel=1e-11)
    assert float(risk.variance) == pytest.approx(0.5 * d2 / (1 - d2), rel=1e-11)


def test_a_continuous_population_is_the_limit_of_its_quantiles():
    law = laws.marchenko_pastur(0.5)
    smooth = population(law, alignment=lambda s: s)
    quantiles = np.asarray(law.quantile((np.arange(4000) + 0.5) / 4000))
    listed = population(quantiles, alignment=quantiles / quantiles.sum())
    one, two = (ridge.ridge_risk(0.1, found, 1.3, 1.0, 1.0) for found in (smooth, listed))
    assert float(one.bias) == pytest.approx(float(two.bias), rel=1e-6)
    assert float(one.variance) == pytest.approx(float(two.variance), rel=1e-6)


@pytest.mark.parametrize(("n", "p", "lam"), [(12, 5, 0.3), (12, 5, 0.0), (8, 20, 0.3), (8, 20, 0.0)])
def test_leave_one_out_is_what_refitting_gives(n, p, lam):
    rng = np.random.default_rng(n + p)
    x, y = rng.standard_normal((n, p)), rng.standard_normal(n)
    found = leave_one_out(x, y, ridge=lam)
    for i in range(n):
        kept = np.arange(n) != i
        rows, labels = x[kept], y[kept]
        if lam:
            beta = np.linalg.solve(rows.T @ rows + n * lam * np.eye(p), rows.T @ labels)
        else:
            beta = np.linalg.pinv(rows) @ labels
        assert float(found.residuals[i]) == pytest.approx(y[i] - x[i] @ beta, rel=1e-9)
    assert float(found.mean_square) == pytest.approx(float(jnp.mean(found.residuals**2)), rel=1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ridge.ridge_risk(1.0, ONE, 0.0, 1.0, 1.0), "gamma"),
        (lambda: ridge.ridge_risk(-1.0, ONE, 1.0, 1.0, 1.0), "ridge"),
        (lambda: ridge.ridge_risk(1.0, ONE, 1.0, -1.0, 1.0), "signal"),
        (lambda: ridge.ridge_risk(1.0, ONE, 1.0, 1.0, -1.0), "noise_variance"),
        (lambda: ridge.misspecified_risk(2.0, 1.0, 1.0, seen=1.5), "seen"),
        (lambda: population([]), "at least one"),
        (lambda: population([-1.0]), r"values\[0\] = -1"),
        (lambda: population([0.0]), "vary"),
        (lambda: population([1.0, 2.0], [0.5, 0.4]), "sum is 0.9"),
        (lambda: population([1.0, 2.0], alignment=[1.0]), "alignment has shape"),
        (lambda: population([1.0], alignment=lambda s: -s), "alignment returns"),
        (lambda: population(laws.semicircle(), weights=[1.0]), "leave it out"),
        (lambda: from_covariance(np.eye(2), np.ones(3)), r"\(p, p\)"),
        (lambda: from_covariance([[1.0, 1.0], [0.0, 1.0]], [1.0, 0.0]), "symmetric"),
        (lambda: from_covariance([[1.0, 2.0], [2.0, 1.0]], [1.0, 0.0]), "negative"),
        (lambda: from_covariance(np.eye(2), np.zeros(2)), "zero"),
        (lambda: latent_features(0.0, 0.5, 1.0, 1.0), "strength"),
        (lambda: latent_features(1.0, 1.5, 1.0, 1.0), "share"),
        (lambda: leave_one_out(np.eye(2), np.ones(3)), "y has shape"),
        (lambda: leave_one_out(np.eye(2), np.ones(2), ridge=-1.0), "ridge"),
        (lambda: leave_one_out([[np.nan]], [1.0], ridge=1.0), "finite"),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises(ParameterError, match=words):
        call()


def test_leave_one_out_needs_a_ridge_where_the_fit_is_not_unique():
    with pytest.raises(OutsideValidity, match="full rank"):
        leave_one_out(np.eye(3), np.ones(3))
