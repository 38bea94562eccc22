"""Curvature against dense matrices made by automatic differentiation, and spectra against dense linear algebra."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from jax.flatten_util import ravel_pytree

from deeplimits.errors import NotConverged, ParameterError
from deeplimits.measure import curvature
from deeplimits.measure.adapters import open_model

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(13, 3)), np.arange(13) % 3
W = {"a": jnp.asarray(RNG.normal(size=(3, 4))), "b": {"c": jnp.asarray(RNG.normal(size=(4, 3)))}}
V = RNG.normal(size=24)


def net(p, x):
    return jnp.tanh(x @ p["a"]) @ p["b"]["c"]


def cross_entropy(z, y):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(z), y[:, None], axis=1))


@functools.cache
def model():
    return open_model(net, cross_entropy, (X, Y), parameters=W, chunk=5)


@functools.cache
def dense():
    """Every matrix from its definition by dense automatic differentiation."""
    flat, restore = ravel_pytree(W)

    def z(v):
        return net(restore(v), jnp.asarray(X))

    @jax.jit
    def build(v):
        jacobian, second = jax.jacrev(z)(v), jax.jacfwd(jax.jacrev(z))(v)
        p = jax.nn.softmax(z(v))
        slopes = p - jax.nn.one_hot(Y, 3)
        each = jnp.einsum("nk,nkp->np", slopes, jacobian)
        bend = jnp.einsum("nk,kl->nkl", p, jnp.eye(3)) - jnp.einsum("nk,nl->nkl", p, p)
        return {
            "hessian": jax.hessian(lambda u: cross_entropy(z(u), jnp.asarray(Y)))(v),
            "gauss_newton": jnp.einsum("nkp,nkl,nlq->pq", jacobian, bend, jacobian) / 13,
            "residual": jnp.einsum("nk,nkpq->pq", slopes, second) / 13,
            "gradient_moment": each.T @ each / 13,
            "kernel": jnp.einsum("nkp,mlp->nkml", jacobian, jacobian).reshape(39, 39),
        }

    return {name: np.asarray(value) for name, value in build(flat).items()}


def test_operators_are_the_matrices_of_their_definitions():
    exact = dense()
    makers = {
        "hessian": curvature.hessian, "gauss_newton": curvature.gauss_newton, "residual": curvature.residual_part,
        "gradient_moment": curvature.gradient_moment,
    }  # fmt: skip
    for name, make in makers.items():
        found = make(model())
        np.testing.assert_allclose(found @ V, exact[name] @ V, atol=1e-13)
        assert found.products == 1
        assert found.shape == (24, 24)
    # For a cross-entropy the Fisher matrix is Gauss-Newton: through probabilities and slopes instead of the bend.
    np.testing.assert_allclose(curvature.fisher(model()) @ V, exact["gauss_newton"] @ V, atol=1e-13)
    u = RNG.normal(size=39)
    np.testing.assert_allclose(curvature.tangent_kernel(model()) @ u, exact["kernel"] @ u, atol=1e-12)
    gap = (curvature.gauss_newton(model()) @ V) + (curvature.residual_part(model()) @ V) - exact["hessian"] @ V
    np.testing.assert_allclose(gap, 0.0, atol=1e-14)
    np.testing.assert_allclose(curvature.hessian(model()).dense(), exact["hessian"], atol=1e-13)


def test_a_sampled_fisher_matrix_has_the_exact_one_as_its_mean():
    exact = curvature.fisher(model()) @ V
    draws = np.stack([curvature.fisher(model(), draws=5, seed=seed) @ V for seed in range(40)])
    error = draws.std(axis=0, ddof=1) / np.sqrt(40)
    z = (draws.mean(axis=0) - exact) / error
    assert np.abs(z).max() < 5
    once = curvature.fisher(model(), draws=2, seed=1)
    np.testing.assert_array_equal(once @ V, once @ V)


def test_blocks_of_layers_and_parts_of_classes():
    exact = dense()["hessian"]
    blocks = curvature.by_layer(model())
    assert list(blocks) == ["a", "b"]
    np.testing.assert_allclose(blocks["a"] @ V[:12], exact[:12, :12] @ V[:12], atol=1e-13)
    np.testing.assert_allclose(curvature.hessian(model(), select="b") @ V[12:], exact[12:, 12:] @ V[12:], atol=1e-13)
    for kind in ("hessian", "gradient_moment", "gauss_newton"):
        parts = [part @ V for part in curvature.by_class(model(), kind=kind)]
        np.testing.assert_allclose(np.sum(parts, axis=0), dense()[kind] @ V, atol=1e-13)
    with pytest.raises(ParameterError, match="3 classes"):
        curvature.hessian(model(), label=3)


class Parts(torch.nn.Module):
    """The same network in PyTorch."""

    def __init__(self):
        super().__init__()
        self.a = torch.nn.Parameter(torch.tensor(np.asarray(W["a"])))
        self.c = torch.nn.Parameter(torch.tensor(np.asarray(W["b"]["c"])))

    def forward(self, x):
        return torch.tanh(x @ self.a) @ self.c


def test_the_same_operators_through_pytorch():
    theirs = open_model(Parts(), torch.nn.CrossEntropyLoss(), [(X[:6], Y[:6]), (X[6:], Y[6:])])
    for make in (
        curvature.hessian, curvature.gauss_newton, curvature.residual_part, curvature.gradient_moment, curvature.fisher,
    ):  # fmt: skip
        np.testing.assert_allclose(make(theirs) @ V, make(model()) @ V, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(make(theirs, label=1) @ V, make(model(), label=1) @ V, rtol=1e-10, atol=1e-13)
    u = RNG.normal(size=39)
    np.testing.assert_allclose(
        curvature.tangent_kernel(theirs) @ u, curvature.tangent_kernel(model()) @ u, rtol=1e-10, atol=1e-12
    )


def test_the_value_of_the_sheet():
    def small(p, x):
        return (p["v"] * jnp.tanh(p["u"] * x))[:, 0]

    made = open_model(
        small, lambda z, y: jnp.mean((z - y) ** 2) / 2, (np.ones((1, 1)), np.ones(1)),
        parameters={"u": jnp.array(0.5), "v": jnp.array(2.0)},
    )  # fmt: skip
    g, e = curvature.gauss_newton(made).dense(), curvature.residual_part(made).dense()
    np.testing.assert_allclose(
        [g[0, 0], g[0, 1], g[1, 1]], [2.474000146749, 0.72686198138359, 0.21355226703407], rtol=1e-12
    )
    np.testing.assert_allclose([e[0, 0], e[0, 1], e[1, 1]], [0.11014239253773, -0.05958575158234, 0], atol=1e-13)


def symmetric(eigenvalues, seed=0):
    size = len(eigenvalues)
    q = np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))[0]
    return (q * eigenvalues) @ q.T


BULK = np.linspace(-1, 1, 390)


@pytest.mark.parametrize("which", ["largest", "smallest", "both", "magnitude"])
@pytest.mark.parametrize("basis", [None, 14])
def test_close_pairs_are_resolved_and_bounds_hold(which, basis):
    exact = np.sort(np.concatenate([[10.0, 9.999, 5.0, 4.0, 3.9], BULK, [-3.0, -2.99, -2.5, -2.4, -2.2]]))[::-1]
    found = curvature.eigenpairs(symmetric(exact), count=3, which=which, basis=basis, seed=5)
    wanted = {
        "largest": exact[:3], "smallest": exact[::-1][:3], "both": [*exact[:3], *exact[-3:]], "magnitude": exact[:3],
    }[which]  # fmt: skip
    np.testing.assert_allclose(found.values, wanted, rtol=1e-7)
    assert np.all(np.abs(found.values - wanted) <= found.error + 1e-13)
    assert found.products <= 60
    assert bool(found.restarts) == (basis is not None)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(len(wanted)), atol=1e-10)
    residuals = np.linalg.norm(symmetric(exact) @ found.vectors - found.vectors * found.values, axis=0)
    np.testing.assert_allclose(residuals, found.residuals, atol=1e-10)


def test_copies_are_found_when_they_are_looked_for():
    exact = np.concatenate([[5.0, 5.0, 5.0, 4.0], BULK])
    found = curvature.eigenpairs(symmetric(exact), count=4, copies=12)
    np.testing.assert_allclose(found.values, exact[:4], rtol=1e-6)
    np.testing.assert_allclose(curvature.eigenpairs(np.eye(5), count=3, copies=3).values, 1.0)
    np.testing.assert_allclose(curvature.eigenpairs(np.zeros((5, 5)), count=2).values, 0.0)
    assert curvature.eigenpairs(np.diag([3.0, 1.0]), count=7).values.tolist() == [3.0, 1.0]


def test_a_warm_start_saves_products_and_single_precision_is_seen():
    exact = np.concatenate([[5.0, 4.8, 4.0], BULK])
    matrix = symmetric(exact)
    cold = curvature.eigenpairs(matrix, count=1)
    moved = matrix + 1e-4 * symmetric(BULK[:393] if len(BULK) >= 393 else np.resize(BULK, 393), 1)
    warm = curvature.eigenpairs(moved, count=1, start=cold.vectors.T)
    assert warm.products < cold.products
    np.testing.assert_allclose(warm.values[0], np.linalg.eigvalsh(moved)[-1], rtol=1e-7)
    rounded = matrix.astype(np.float32)

    class Single:
        shape, dtype = matrix.shape, np.dtype(float)

        @staticmethod
        def matvec(v):
            return (rounded @ v.astype(np.float32)).astype(float)

    found = curvature.eigenpairs(Single, count=3)
    assert 1e-9 < found.error.max() < 1e-5
    assert np.abs(found.values - exact[:3]).max() < 30 * found.error.max()


def test_what_does_not_converge_is_said():
    with pytest.raises(NotConverged, match="20 products"):
        curvature.eigenpairs(symmetric(np.linspace(0, 1, 300)), count=5, most_products=20)
    with pytest.raises(ParameterError, match="which"):
        curvature.eigenpairs(np.eye(3), which="top")
    with pytest.raises(ParameterError, match="rows of 3"):
        curvature.eigenpairs(np.eye(3), start=np.ones(4))


def test_density_has_exact_outliers_no_ghosts_and_an_honest_band():
    exact = np.sort(np.concatenate([[8.0, 7.9, 5.0, 3.0], RNG.normal(size=496) ** 2 / 10]))[::-1]
    matrix = symmetric(exact)
    grid = np.array([0.01, 0.05, 0.1, 0.3, 0.6])
    truth = np.searchsorted(np.sort(exact), grid, side="right") / 500
    found = curvature.spectral_density(matrix, outliers=4, probes=10, steps=40)
    np.testing.assert_allclose(found.outliers, exact[:4], rtol=1e-6)
    assert found.nodes.max() < exact[4] + 1e-6  # nothing of the outliers appears again
    # The mean of the bulk alone is uncertain by this much: (2/(size·probes))^{1/2} times the spread of its eigenvalues.
    assert found.atoms().distance(exact) < 4 * exact[4:].std() * np.sqrt(2 / (500 * 10))
    np.testing.assert_allclose(found.atoms().weights.sum(), 1.0, rtol=1e-12)
    np.testing.assert_allclose(found.moment(1).value, exact.mean(), atol=5 * found.moment(1).error)
    runs = [
        curvature.spectral_density(matrix, outliers=4, probes=12, steps=60, seed=seed).cdf(grid) for seed in range(6)
    ]
    z = [(run.value - truth) / run.error for run in runs]
    assert np.abs(z).max() < 6
    assert np.std(z) < 2
    whole = curvature.spectral_density(symmetric(np.ones(6)), outliers=0, probes=3, steps=50)
    assert whole.cdf(0.5).value == 0
    x = np.linspace(-2, 12, 4001)
    np.testing.assert_allclose(np.trapezoid(found.density(x, 0.1).value, x), 1.0, rtol=1e-6)
    nothing = curvature.spectral_density(np.diag([1.0, 2.0]), outliers=2, probes=2)
    np.testing.assert_allclose(nothing.atoms().distance(np.array([1.0, 2.0])), 0.0, atol=1e-6)


def test_traces_and_norms_within_their_errors():
    exact = np.concatenate([[50.0, 40.0], np.linspace(0, 1, 298)])
    matrix = symmetric(exact)
    found = {
        method: curvature.trace(matrix, products=60, method=method, seed=2) for method in ("hutchinson", "hutch++")
    }
    for one in found.values():
        assert abs(one.value - exact.sum()) < 5 * one.error
        assert one.products == 60
    assert found["hutch++"].error < found["hutchinson"].error / 3
    norm = curvature.frobenius(matrix, products=60)
    assert abs(norm.value - np.linalg.norm(exact)) < 5 * norm.error
    assert curvature.trace(np.diag([1.0, 2.0]), products=9).value == pytest.approx(3.0)
    assert curvature.trace(np.diag([1.0, 2.0]), products=9).error == 0.0


def test_outliers_are_counted_and_a_bulk_has_none():
    rng = np.random.default_rng(3)
    p, counts = [], []
    for _ in range(120):
        noise = rng.standard_normal((90, 180))
        values = np.linalg.eigvalsh(noise @ noise.T / 180)[::-1]
        p.append(curvature.count_outliers(values[:13], most=1).p_values[0])
        noise[:3] *= np.array([[4.0], [3.9], [3.0]])
        spiked = np.linalg.eigvalsh(noise @ noise.T / 180)[::-1]
        counts.append(curvature.count_outliers(spiked[:20], most=8).count)
    # p-values of a bulk are uniform: counts below a tenth and a half are binomial.
    assert abs(np.mean(np.array(p) < 0.1) - 0.1) < 4.5 * np.sqrt(0.09 / 120)
    assert abs(np.mean(np.array(p) < 0.5) - 0.5) < 4.5 * np.sqrt(0.25 / 120)
    assert np.mean(np.array(counts) == 3) > 0.9
    with pytest.raises(ParameterError, match="too few"):
        curvature.count_outliers(np.arange(5.0)[::-1])
    with pytest.raises(ParameterError, match="largest first"):
        curvature.count_outliers(np.arange(50.0))


def test_products_that_are_not_finite_are_refused():
    def kinked(p, x):
        return jnp.sqrt(jnp.abs(x @ p["w"] - 200.0))

    data = [(np.ones((2, 2)), np.ones(2)), (np.full((1, 2), 100.0), np.ones(1))]
    made = open_model(kinked, lambda z, y: jnp.mean((z - y) ** 2), data, parameters={"w": jnp.ones(2)})
    with pytest.raises(ParameterError, match="not finite in w"):
        made.gradient()
    with pytest.raises(ParameterError, match="NaN or infinite in w"):
        curvature.hessian(made) @ np.ones(2)


@pytest.mark.slow
def test_a_trained_network_has_the_spectrum_of_its_dense_hessian():
    from sklearn.datasets import load_digits

    digits = load_digits()
    x, y = torch.tensor(digits.data[:500] / 16), torch.tensor(digits.target[:500])
    torch.manual_seed(0)
    sizes = (64, 16), (16, 16), (16, 10)
    layers = [layer for pair in sizes for layer in (torch.nn.Linear(*pair), torch.nn.Tanh())][:-1]
    trained, loss = torch.nn.Sequential(*layers).double(), torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(trained.parameters(), lr=1e-2)
    value = loss(trained(x), y)
    while value.item() > 0.0207:
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        value = loss(trained(x), y)
    matrix = curvature.hessian(open_model(trained, loss, [(x[:300], y[:300]), (x[300:], y[300:])]))
    exact = np.linalg.eigvalsh(matrix.dense())[::-1]
    for seed in range(5):
        found = curvature.eigenpairs(matrix, count=5, seed=seed)
        np.testing.assert_allclose(found.values, exact[:5], rtol=1e-7)
        assert found.products <= 25
        density = curvature.spectral_density(matrix, outliers=20, probes=10, steps=76, seed=seed)
        outliers = exact[np.argsort(-np.abs(exact))][:20]
        np.testing.assert_allclose(density.outliers, np.sort(outliers)[::-1], rtol=1e-5)
        assert density.atoms().distance(exact) < 5e-4
        assert density.nodes.max() < exact[20] + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_digits_have_an_outlier_for_every_class_but_one(seed):
    from sklearn.datasets import load_digits

    digits = load_digits()
    x, y = torch.tensor(digits.data / 16), torch.tensor(digits.target)
    torch.manual_seed(seed)
    network = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.Tanh(), torch.nn.Linear(32, 10)).double()
    optimizer, loss = torch.optim.Adam(network.parameters(), lr=1e-2), torch.nn.CrossEntropyLoss()
    for _ in range(40):
        optimizer.zero_grad()
        loss(network(x), y).backward()
        optimizer.step()
    top = curvature.eigenpairs(curvature.hessian(open_model(network, loss, (x, y))), count=60, tolerance=1e-5)
    found = curvature.count_outliers(top.values)
    assert found.count == 9
    assert found.p_values[8] < 1e-4
