"""Ridge regression on random features: sheet values, the other form of the equations, real data, bad input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize
from sklearn.datasets import load_digits

from deeplimits.errors import OutsideValidity, OutsideValidityWarning, ParameterError
from deeplimits.numerics.checks import aloud
from deeplimits.theory.gaussian import dual
from deeplimits.theory.regression.random_features import feature_regression, from_kernels

I, J = np.arange(1, 7)[:, None], np.arange(1, 4)
X, NEW = np.cos(I * J + 0.3 * J) / np.sqrt(3), np.sin(0.7 * I[:4] * J + 0.1 * J) / np.sqrt(3)
Y, Y_NEW = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0]), np.array([1.0, 1.0, -1.0, -1.0])


@pytest.fixture(scope="module")
def toy():
    return feature_regression(X, Y, NEW, Y_NEW)


@pytest.mark.parametrize(
    ("features", "ridge", "kappa", "training", "test"),
    [
        (4, 0.1, 0.3515475398532, 0.2965665357733, 1.0584273278586),
        (12, 0.01, 0.0089390908089, 0.0022520768058, 1.1242879467022),
        (4, 0.0, 0.0596778410718, 0.1234642432728, 1.6278653201241),
        (9, 0.0, 0.0, 0.0, 1.2504950627934),
    ],
)
def test_toy_values(toy, features, ridge, kappa, training, test):
    found = toy.errors(features, ridge)
    assert [float(part) for part in found] == pytest.approx([training, test, kappa], rel=1e-11, abs=1e-12)


def kernel(a, b):
    return np.asarray(dual("relu", (a**2).sum(1)[:, None], (b**2).sum(1), a @ b.T))


@pytest.mark.parametrize(("features", "ridge"), [(4, 0.1), (12, 0.01), (3, 1e-4)])
def test_the_form_with_delta_gives_the_same(toy, features, ridge):
    # Q̄ = (K̄ + γ)^{-1}, K̄ = (N/n)K/(1 + δ), δ = tr KQ̄/n, and the corollary written with K̄ everywhere
    n, k = 6, kernel(X, X)

    def resolvent(delta):
        return np.linalg.inv(features / n * k / (1 + delta) + ridge * np.eye(n))

    delta = optimize.brentq(lambda d: d - np.trace(k @ resolvent(d)) / n, 0.0, np.trace(k) / n / ridge, rtol=1e-14)
    q, scale = resolvent(delta), features / n / (1 + delta)
    bar, cross, own = scale * k, scale * kernel(X, NEW), scale * kernel(NEW, NEW)
    # (1/N) tr QK̄Q over 1 − (1/N) tr K̄QK̄Q multiplies what the fluctuation of the features adds
    share = 1 - np.trace(bar @ q @ bar @ q) / features
    training = ridge**2 / n * Y @ q @ ((np.trace(q @ bar @ q) / features / share) * bar + np.eye(n)) @ q @ Y
    spread = np.trace(own) - np.trace((np.eye(n) + ridge * q) @ cross @ cross.T @ q)
    test = np.sum((Y_NEW - cross.T @ q @ Y) ** 2) / 4 + Y @ q @ bar @ q @ Y / features / share * spread / 4
    found = toy.errors(features, ridge)
    assert float(found.training) == pytest.approx(training, rel=1e-9)
    assert float(found.test) == pytest.approx(test, rel=1e-9)
    assert float(found.effective_ridge) == pytest.approx(ridge / scale, rel=1e-9)
    assert float(toy.resolvent(features, ridge)) == pytest.approx(Y @ q @ Y / n, rel=1e-9)
    assert float(toy.delta(features, ridge)) == pytest.approx(delta, rel=1e-9)
    np.testing.assert_allclose(toy.equivalent_eigenvalues(features, ridge), np.linalg.eigvalsh(q)[::-1], rtol=1e-9)


def test_many_features_are_kernel_ridge_regression(toy):
    k, cross = kernel(X, X), kernel(NEW, X)
    ridge = 0.05
    solved = np.linalg.solve(k + ridge * np.eye(6), Y)
    found = toy.errors(1e9, ridge * 1e9 / 6)
    assert float(found.training) == pytest.approx(np.mean((Y - k @ solved) ** 2), rel=1e-6)
    assert float(found.test) == pytest.approx(np.mean((Y_NEW - cross @ solved) ** 2), rel=1e-6)


def test_the_errors_of_several_outputs_add(toy):
    both = feature_regression(X, np.stack([Y, Y**2], 1), NEW, np.stack([Y_NEW, Y_NEW**2], 1))
    second = feature_regression(X, Y**2, NEW, Y_NEW**2)
    found, one, two = (model.errors(5, 0.02) for model in (both, toy, second))
    assert float(found.test) == pytest.approx(float(one.test + two.test), rel=1e-12)
    assert float(found.training) == pytest.approx(float(one.training + two.training), rel=1e-12)


def test_a_kernel_of_low_rank_interpolates_its_range_only():
    # Linear features of points in R³: rank 3, so that more than three features change nothing but the fluctuation.
    linear = feature_regression(X, Y, NEW, Y_NEW, activation="identity")
    found = linear.errors(jnp.array([3.0, 5.0, 1e8]), 0.0)
    least = Y - X @ np.linalg.lstsq(X, Y, rcond=None)[0]
    assert np.isinf(float(found.test[0]))
    assert float(found.training[1]) == pytest.approx(np.mean(least**2), rel=1e-10)
    prediction = NEW @ np.linalg.lstsq(X, Y, rcond=None)[0]
    assert float(found.test[2]) == pytest.approx(np.mean((Y_NEW - prediction) ** 2), rel=1e-6)


def test_ridgeless_at_the_threshold_is_infinite_and_finite_beside_it(toy):
    errors = toy.errors(jnp.array([5.0, 6.0, 7.0]), 0.0).test
    assert np.isinf(float(errors[1]))
    assert bool(jnp.all(jnp.isfinite(errors[jnp.array([0, 2])])))


def test_gradients_are_finite_and_right(toy):
    def test(ridge):
        return toy.errors(4, ridge).test

    slope = float(jax.grad(test)(0.1))
    assert slope == pytest.approx(float(test(0.1 + 1e-6) - test(0.1 - 1e-6)) / 2e-6, rel=1e-6)


def digits(centred=True):
    """Threes and eights, in the recipe of the formula sheet."""
    images, labels = load_digits(return_X_y=True)
    chosen = np.isin(labels, (3, 8))
    x, y = images[chosen], np.where(labels[chosen] == 3, 1.0, -1.0)
    x = x - x[:200].mean(axis=0) if centred else x
    x = x / np.sqrt(np.mean(np.sum(x[:200] ** 2, axis=1)))
    return x[:200], y[:200], x[200:], y[200:]


@pytest.fixture(scope="module")
def threes_and_eights():
    return feature_regression(*digits())


@pytest.mark.parametrize(
    ("features", "ridge", "kappa", "training", "test"),
    [
        (100, 1e-3, 0.0627447, 0.0320061, 0.2798779),
        (600, 1e-2, 0.0047217, 0.00071526, 0.1677416),
        (190, 1e-6, None, None, 1.33056),
        (220, 1e-6, None, None, 0.74659),
        (600, 1e-6, None, None, 0.172261),
    ],
)
def test_digits_values(threes_and_eights, features, ridge, kappa, training, test):
    found = threes_and_eights.errors(features, ridge)
    assert float(found.test) == pytest.approx(test, rel=1e-5)
    if kappa is not None:
        assert float(found.training) == pytest.approx(training, rel=2e-5)
        assert float(found.effective_ridge) == pytest.approx(kappa, rel=2e-5)


def test_ridgeless_digits_at_the_threshold(threes_and_eights):
    errors = threes_and_eights.errors(np.array([199.0, 200.0, 201.0]), 0.0)
    assert np.isinf(float(errors.test[1]))
    assert np.all(np.isfinite(np.asarray(errors.test)[[0, 2]]))
    assert np.all(np.asarray(errors.training)[1:] < 1e-20)


def test_uncentred_data_get_a_warning():
    with pytest.warns(OutsideValidityWarning, match="not centred: its mean carries 79 %"):
        feature_regression(*digits(centred=False))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: feature_regression(X[0], Y, NEW, Y_NEW), "x has shape"),
        (lambda: feature_regression(X, Y, NEW[:, :2], Y_NEW), "columns"),
        (lambda: feature_regression(X, Y[:3], NEW, Y_NEW), "y has shape"),
        (lambda: feature_regression(X, Y * np.nan, NEW, Y_NEW), "must be finite"),
        (lambda: feature_regression(X * np.inf, Y, NEW, Y_NEW), "must be finite"),
        (lambda: feature_regression(X, Y, NEW, np.stack([Y_NEW, Y_NEW], 1)), "outputs"),
        (lambda: feature_regression(X, Y, NEW, Y_NEW).errors(0, 0.1), "features"),
        (lambda: feature_regression(X, Y, NEW, Y_NEW).errors(3, -0.1), "ridge"),
        (lambda: feature_regression(X, Y, NEW, Y_NEW).resolvent(3, 0.0), "ridge"),
        (lambda: from_kernels(np.eye(2), np.ones((3, 3)), np.ones(2), np.ones(2), np.ones(2)), "cross has shape"),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises(ParameterError, match=words):
        call()


@pytest.mark.parametrize("compile", [lambda call: call, jax.jit])
def test_what_is_no_kernel_is_refused_traced_or_not(compile):
    call = compile(lambda kernel: from_kernels(kernel, np.eye(2), np.ones(2), np.ones(2), np.ones(2)))
    with pytest.raises(OutsideValidity, match="semidefinite"), aloud("test"):
        jax.block_until_ready(call(-jnp.eye(2)))
