"""The theory of attention against oracles that work differently."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy import integrate, special

from deeplimits.errors import NotConverged, ParameterError
from deeplimits.theory import attention

X = jnp.array([[1.0, 0.0], [0.6, 0.8], [-0.8, 0.6]])


def quadrature(n, beta, start, end, kind):
    """∫ dγ/γ̇ in long numbers."""
    n, b = mpmath.mpf(n), mpmath.mpf(beta)

    def slowness(g):
        shape = (1 - g) * (1 + (n - 1) * g)
        if kind == "softmax":
            return (mpmath.e ** (b * (1 - g)) + n - 1) / (2 * shape)
        return n / (2 * mpmath.e ** (b * g) * shape)

    return mpmath.quad(slowness, mpmath.linspace(mpmath.mpf(start), mpmath.mpf(end), 25))


@pytest.mark.parametrize("kind", ["softmax", "unnormalized"])
@pytest.mark.parametrize(
    ("n", "beta", "start", "end"),
    [(5, 0.0, -0.2, 0.7), (5, 1e-6, -0.2, 0.7), (5, 3e-5, -0.2, 0.7), (3, 45.0, 0.1, 0.3), (7, 20.0, -0.1, 0.9),
     (100, 60.0, -0.005, 0.99999), (2, 1.0, 0.0, 0.5), (32, 9.0, 0.0, 0.999)],
)  # fmt: skip
def test_equiangular_times_are_those_of_quadrature(kind, n, beta, start, end):
    found = float(attention.equiangular_time(end, start, n, beta, kind=kind))
    assert found == pytest.approx(float(mpmath.log(quadrature(n, beta, start, end, kind))), abs=2e-12)


def test_times_at_a_large_inverse_temperature_do_not_overflow():
    """log t ≈ β(1 − γ₀) − log(2β(1 + (n−1)γ₀)(…)) by Watson's lemma."""
    n, beta = 3, 1000.0
    # t ≈ e^{β(1−γ₀)}/(2β(1−γ₀)(1+(n−1)γ₀)): the integrand falls like e^{−βg}
    leading = beta * 0.9 - np.log(2 * beta * 0.9 * (1 + 2 * 0.1))
    assert float(attention.equiangular_time(0.5, 0.1, n, beta)) == pytest.approx(leading, abs=3e-3)
    assert np.isfinite(attention.equiangular_cosine(0.1, 1e5, n, beta).cosine)


@pytest.mark.parametrize(("kind", "beta"), [("softmax", 0.0), ("softmax", 4.0), ("unnormalized", 2.5)])
def test_the_equation_and_its_closed_form_are_inverse(kind, beta):
    times = jnp.array([0.1, 1.0, 4.0])
    found = attention.equiangular_cosine(0.05, times, 8, beta, kind=kind)
    back = [attention.equiangular_time(g, 0.05, 8, beta, kind=kind) for g in found.cosine[:2]]
    np.testing.assert_allclose(back, np.log(times[:2]), atol=1e-9)


def test_no_temperature_is_a_logistic_curve():
    n, start, t = 5, 0.1, 0.7
    grown = (1 + (n - 1) * start) * np.exp(2 * t)
    exact = (grown - (1 - start)) / (grown + (n - 1) * (1 - start))
    assert float(attention.equiangular_cosine(start, t, n, 0.0).cosine) == pytest.approx(exact, abs=1e-12)


def test_fixed_points_rest_and_what_is_impossible_is_refused():
    assert float(attention.equiangular_cosine(-0.25, 3.0, 5, 2.0).cosine) == -0.25
    assert float(attention.equiangular_cosine(1.0, 3.0, 5, 2.0).gap) == 0.0
    for start, tokens, beta in ((-0.3, 5, 1.0), (1.1, 5, 1.0), (0.0, 1, 1.0), (0.0, 5, -1.0), (float("nan"), 5, 1.0)):
        with pytest.raises(ParameterError):
            attention.equiangular_cosine(start, 1.0, tokens, beta)
    with pytest.raises(ParameterError, match="not reached"):
        attention.equiangular_time(0.1, 0.5, 5, 1.0)


def test_near_the_cluster_the_gap_keeps_its_digits():
    late = attention.equiangular_cosine(0.0, jnp.array([50.0, 51.0]), 6, 2.0).gap
    assert float(jnp.log(late[0] / late[1])) == pytest.approx(2.0, abs=1e-9)


@pytest.mark.parametrize("beta", [0.0, 1.0, 5.0])
def test_the_bound_holds_at_all_times(beta):
    times = jnp.geomspace(0.01, 50.0, 40)
    gap = attention.equiangular_cosine(0.0, times, 6, beta).gap
    assert np.all(np.asarray(gap) <= np.asarray(attention.equiangular_bound(0.0, times, 6, beta)) * (1 + 1e-9))


def test_quantile_particles_carry_the_density():
    """200 angles at the quantiles of (1 + cos θ/2)/2π, moved one by one, have the moments of the modes."""
    levels = (np.arange(200) + 0.5) * 2 * np.pi / 200
    theta = levels.copy()
    for _ in range(50):
        theta -= (theta + np.sin(theta) / 2 - levels) / (1 + np.cos(theta) / 2)
    path = attention.angular_flow(theta, [1.0, 2.0], 2.0)
    modes = attention.circle_moments([0.25], [1.0, 2.0], 2.0)
    for k in (1, 2, 3):
        np.testing.assert_allclose(np.mean(np.cos(k * path), axis=1), modes[:, k - 1], atol=1e-9)


def test_a_density_that_is_not_resolved_is_not_told():
    with pytest.raises(NotConverged, match="sharper"):
        attention.circle_moments([0.45], [5.0], 4.0, modes=24)


@pytest.mark.parametrize("beta", [0.0, 0.5, 20.0, 300.0])
def test_bessel_ratios(beta):
    found = attention.bessel_ratios(6, beta)
    order = np.arange(1, 7)
    ratios = special.ive(order, beta) / special.ive(0, beta)
    np.testing.assert_allclose(found.ratios, ratios, atol=1e-13)
    over = (special.ive(order - 1, beta) - special.ive(order + 1, beta)) / (2 * order * special.ive(0, beta))
    np.testing.assert_allclose(found.over_beta, over, atol=1e-13)


@pytest.mark.parametrize(
    ("degree", "beta", "d"), [(3, 4.0, 2), (1, 10.0, 128), (5, 25.0, 2), (2, 700.0, 5), (4, 0.3, 7)]
)
def test_growth_of_harmonics(degree, beta, d):
    nu = d / 2 - 1
    exact = degree * (degree + d - 2) / beta * special.ive(degree + nu, beta) / special.ive(nu, beta)
    assert float(attention.harmonic_growth(degree, beta, d)) == pytest.approx(exact, rel=1e-10)
    if beta < 100:
        mean = special.gamma(d / 2) * (2 / beta) ** nu * special.iv(nu, beta)
        found = attention.harmonic_growth(degree, beta, d, kind="unnormalized")
        assert float(found) == pytest.approx(exact * mean, rel=1e-9)


def test_growth_without_temperature():
    assert [float(attention.harmonic_growth(k, 0.0, 5)) for k in (1, 2)] == [0.8, 0.0]
    assert float(attention.uniform_growth(5)) == 0.8


@pytest.mark.parametrize(
    ("mass", "beta", "start", "end"), [(0.3, 4.0, 0.1, 0.9), (0.5, 12.0, -0.5, 0.99), (0.9, 0.0, 0.0, 0.5)]
)
def test_merge_times_are_those_of_quadrature(mass, beta, start, end):
    m, n = mass, 1 - mass

    def slowness(c):
        w = np.exp(beta * (1 - c))
        return 1 / ((1 - c**2) * (n / (m * w + n) + m / (n * w + m)))

    exact = integrate.quad(slowness, start, end, limit=500, epsrel=1e-12)[0]
    assert float(attention.merge_time(end, np.float64(start), beta, mass=mass)) == pytest.approx(
        np.log(exact), abs=1e-9
    )
    if mass == 0.5:
        two = attention.equiangular_time(end, start, 2, beta)
        assert float(attention.merge_time(end, start, beta)) == pytest.approx(float(two), abs=1e-10)


def test_energies_against_their_definition():
    beta = 1.7
    exact = np.mean(np.exp(beta * np.asarray(X @ X.T))) / (2 * beta)
    assert float(attention.log_interaction_energy(X, beta)) == pytest.approx(np.log(exact), abs=1e-14)
    # e^{1000} would overflow.
    assert float(attention.log_interaction_energy(X, 1000.0)) == pytest.approx(
        1000 + np.log(3 / (2 * 1000 * 9)), abs=1e-9
    )
    with pytest.raises(ParameterError, match="not symmetric"):
        attention.energy_growth(X, beta, score=jnp.array([[1.0, 0.5], [0.0, 1.0]]))
    with pytest.raises(ParameterError, match="mean_energy"):
        attention.log_interaction_energy(X, 0.0)


def test_the_hessian_of_balanced_tokens():
    """The tetrahedron: {0 ×5, 2/3 ×3}, by second differences of E₀."""
    x = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / np.sqrt(3)
    assert float(attention.balanced_curvature(x)) == pytest.approx(2 / 3)
    frames = np.stack([np.linalg.svd(row[None])[2][1:] for row in x])

    def energy(moves):
        moved = x + jnp.einsum("ik,ikd->id", moves.reshape(4, 2), frames)
        return attention.mean_energy(moved / jnp.linalg.norm(moved, axis=1, keepdims=True))

    values = np.linalg.eigvalsh(jax.hessian(energy)(jnp.zeros(8)))
    np.testing.assert_allclose(values, [0] * 5 + [2 / 3] * 3, atol=1e-12)


@pytest.mark.parametrize("scores", [[1.0, 0.0, -1.0], [2.0, 2.0, 0.1]])
def test_rows_answer_to_temperature(scores):
    beta, step = 1.3, 1e-5
    low, here, high = (attention.gibbs_row(scores, b) for b in (beta - step, beta, beta + step))
    assert float(here.entropy_slope) == pytest.approx(float(high.entropy - low.entropy) / (2 * step), abs=1e-8)
    assert float(here.mean_score) == pytest.approx(float(high.log_partition - low.log_partition) / (2 * step), abs=1e-8)
    assert attention.gibbs_row(scores, 0.0).weights.tolist() == [1 / 3] * 3
    cold = attention.gibbs_row(scores, 1e4)
    assert np.all(np.isfinite(cold.weights))
    rate = attention.cold_rate([1.0, 0.3, 0.1], 20.0)
    exact = -np.log(1 - float(jnp.max(attention.gibbs_row([1.0, 0.3, 0.1], 20.0).weights))) / 20
    assert float(rate.least) <= exact <= float(rate.most)


def test_residual_flows_have_closed_forms():
    """A linear block: the matrix exponential; and the scalar tanh."""
    a = jnp.array([[0.1, 0.7], [-0.4, 0.2]])
    flow = attention.neural_ode(lambda t, x: a @ x, [1.0, 2.0], 1.5)
    exact = jax.scipy.linalg.expm(1.5 * a)
    np.testing.assert_allclose(flow.jacobian, exact, atol=1e-10)
    np.testing.assert_allclose(flow.end, exact @ jnp.array([1.0, 2.0]), atol=1e-10)
    # Euler: (1 + hA)^L = e^{TA}(1 − hTA²/2 + …)
    np.testing.assert_allclose(flow.first_error, -(1.5**2) / 2 * a @ a @ flow.end, atol=1e-9)
    tanh = attention.neural_ode(lambda t, x: 0.8 * jnp.tanh(1.3 * x), [0.5], 2.0)
    assert float(tanh.end[0]) == pytest.approx(float(attention.tanh_flow(0.5, 1.3, 0.8, 2.0)), abs=1e-10)
    assert float(attention.tanh_flow(0.5, 0.0, 1.0, 1.0)) == 0.5


def test_the_map_of_regimes():
    found = attention.proven_regime(jnp.array([2, 2, 2, 3, 8])[:, None], jnp.array([0.1, 1.0, 80.0]), 8)
    assert found.proven.tolist() == [[True, False, True]] * 3 + [[True] * 3] * 2
    assert found.exponential.any(axis=1).tolist() == [False] * 4 + [True]
    with pytest.raises(ParameterError, match="beta"):
        attention.proven_regime(3, -1.0, 8)
