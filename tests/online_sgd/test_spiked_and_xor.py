"""Spiked tensors and the XOR mixture: reference values, rest points by a general solver, counts by enumeration."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.theory.online_sgd import effective, landscapes, spiked_tensor, xor, xor_sliding


@pytest.mark.parametrize(("signal", "order", "step", "time", "start", "end"), [
    (2.0, 2, 1.0, 0.5, (0.3, 0.7), (0.94270114450552, 0.99900626414761)),
    (4.0, 3, 1.0, 0.1, (0.9, 0.8), (1.0093272194067, 0.99789865023428)),
    (0.8, 2, 0.5, 1.0, (0.1, 1.0), (0.21817438911253, 0.50395451163251)),
])  # fmt: skip
def test_ballistic_paths(signal, order, step, time, start, end):
    np.testing.assert_allclose(spiked_tensor.spiked_ballistic(signal, order, step, start, [time])[0], end, rtol=1e-7)


def test_fluctuations():
    _, covariance = spiked_tensor.ballistic_with_fluctuations(2.0, 2, 1.0, [0.3, 0.7], [0.5])
    np.testing.assert_allclose(np.sqrt(np.diag(covariance[0])), [1.35925, 1.75366], atol=2e-5)


def test_thresholds_and_roots():
    found = [float(spiked_tensor.critical_signal(k, 1.0)) for k in (2, 3, 4, 5)]
    assert found == pytest.approx([1, 3.0792014356780, 6.75, 14.101102032058])
    assert [float(m) for m in spiked_tensor.overlap_roots(8.0, 4, 1.0)] == pytest.approx([0.4858682717566, 1.0])
    # The roots merge like a square root at the threshold, and their derivatives follow the implicit function theorem.
    near = 3.0792014356780 * (1 + 1e-8)
    low, high = (float(m) for m in spiked_tensor.overlap_roots(near, 3, 1.0))
    assert low < 3**-0.5 < high
    slope = jax.grad(lambda lam: spiked_tensor.overlap_roots(lam, 3, 1.0)[1])(4.0)
    numeric = (
        spiked_tensor.overlap_roots(4.0 + 1e-5, 3, 1.0)[1] - spiked_tensor.overlap_roots(4.0 - 1e-5, 3, 1.0)[1]
    ) / 2e-5
    assert float(slope) == pytest.approx(float(numeric), rel=1e-6)


@pytest.mark.parametrize(
    ("signal", "order", "step"), [(2.0, 2, 1.0), (0.5, 2, 1.0), (4.0, 3, 1.0), (8.0, 4, 0.9), (2.0, 3, 1.0)]
)
def test_rest_points_against_the_general_engine(signal, order, step):
    closed = [p for p in spiked_tensor.spiked_rest_points(signal, order, step) if p.radius > 0]
    sizes = (0.0, 0.2, 0.4, 0.6, 1.0, 1.4)
    guesses = [[s * m, r] for m in sizes for r in (0.8 * step, 1.1 * step) for s in (1, -1)]
    found = [p for p in effective.fixed_points(spiked_tensor.spiked_dynamics(signal, order, step), guesses)
             if p.point[1] > 0.1]  # fmt: skip
    assert len(found) == len(closed)
    for ours, theirs in zip(sorted(closed), found, strict=True):
        np.testing.assert_allclose([ours.overlap, ours.radius], theirs.point, atol=1e-6)
        np.testing.assert_allclose(sorted(ours.eigenvalues), sorted(theirs.eigenvalues.real), rtol=1e-5, atol=1e-7)
        assert ours.stable == theirs.stable


def test_loss_and_noise_of_spiked_tensors_from_the_definition():
    """f = ⟨∇Φ, ∇u⟩ and D = lim N δ J V Jᵀ with the public Φ and V, and V itself from tensors of order three."""
    lam, k, c, u = 2.0, 3, 0.7, jnp.array([0.4, 0.9])
    slope = jax.grad(lambda u: spiked_tensor.spiked_loss(u, lam, k))(u)
    drift = spiked_tensor.spiked_dynamics(lam, k, c).drift(u)
    # ∇m = v, ∇r = 2(x − mv): |∇m| = 1, |∇r|² = 4r, orthogonal
    np.testing.assert_allclose(drift, [slope[0], 4 * u[1] * slope[1]], rtol=1e-12)
    x = np.array([0.4, 0.9**0.5, 0.0])
    rows = np.array([[1.0, 0, 0], [0, 2 * x[1], 0]])
    noise = c * rows @ np.asarray(spiked_tensor.spiked_gradient_covariance(x, k)) @ rows.T
    np.testing.assert_allclose(noise, spiked_tensor.path_noise(u, k, c), rtol=1e-12)
    w = np.random.default_rng(0).normal(size=(40_000, 3, 3, 3))
    slots = (np.einsum(f"n{''.join('abc')},{p},{q}->n{o}", w, x, x) for o, p, q in ("abc", "bac", "cab"))
    found = np.cov(-2 * sum(slots), rowvar=False)
    exact = np.asarray(spiked_tensor.spiked_gradient_covariance(x, k))
    # The standard error of a covariance is √((v_ij² + v_ii v_jj)/n).
    error = np.sqrt((exact**2 + np.outer(np.diag(exact), np.diag(exact))) / 40_000)
    assert np.all(np.abs(found - exact) < 5 * error)


def test_what_the_step_leaves_in_the_limit():
    at = [[0.3, 0.7]]
    spiked = spiked_tensor.spiked_dynamics
    assert effective.classify_dynamics(spiked(2.0, 2, 0.0), at).name == "sub-critical"
    assert effective.classify_dynamics(spiked(2.0, 2, 1.0), at).name == "ballistic"
    # √N m near 0: the diffusion 8cr is left, and at a dimension that is not infinite everything is.
    close = effective.zoom(spiked(2.0, 2, 1.0, dimension=1e12), [0.0, 0.0], [1e-6, 1.0])
    found = effective.classify_dynamics(close, [[1.0, 0.7]])
    assert (found.critical, found.diffusive) == (True, True)
    assert found.diffusion == pytest.approx(5.6, rel=1e-6)
    odd = effective.EffectiveDynamics(lambda u: u, jnp.zeros_like, lambda u: -jnp.eye(2))
    with pytest.raises(ParameterError, match="semidefinite"):
        effective.classify_dynamics(odd, at)


def test_second_derivatives_of_population_losses():
    h, m = 0.5, 0.3
    mixture = landscapes.binary_mixture(h)
    share = float(jax.nn.sigmoid(2 * h))
    assert float(landscapes.field_of_share(share)) == pytest.approx(h, rel=1e-14)
    assert landscapes.binary_mixture(landscapes.field_of_share(0.5)).exponent == 2
    for landscape in (mixture, landscapes.online_pca(1.3), landscapes.tensor_pca(2.0, 3),
                      landscapes.single_index("relu", "tanh", 0.3)):  # fmt: skip
        slope = (float(landscape.slope(m + 1e-5)) - float(landscape.slope(m - 1e-5))) / 2e-5
        assert float(landscape.curvature(m)) == pytest.approx(slope, rel=1e-7)
    # −E sech² far out, where 1 − tanh² has no digits
    assert float(landscapes.binary_mixture(30.0).curvature(0.0)) == pytest.approx(-4 * np.exp(-60 + 2), rel=1e-9)
    for wrong in (0.0, 1.0, np.nan):
        with pytest.raises(ParameterError):
            landscapes.field_of_share(wrong)


def test_microscopic_variance():
    cases = [((0.5, 1, 0.6, 1, 0.6), 1.9590125636603), ((1, 1, 0.5, 1, 1), 5.0), ((2, 1, 0.25, 1, 1), 13.778112197861),
             ((1.3, 1, 0.6, 1, 0.6), 17.673182), ((0.8, 0.5, 0.6, 1, 0.6), 6.2963585)]  # fmt: skip
    for arguments, value in cases:
        *point, radius = map(float, arguments)
        found = spiked_tensor.microscopic_variance(*point, radius=radius)
        assert float(found.variance) == pytest.approx(value, rel=1e-7)

    # The moment equations, integrated by another solver.
    def moments(t, y):
        return [8 * y[0] * (1.3 - y[1]) + 8 * 0.7 * y[1], -8 * y[1] * (y[1] - 0.7)]

    path = integrate.solve_ivp(moments, (0, 0.4), [2.0, 0.4], rtol=1e-10, atol=1e-12).y[:, -1]
    np.testing.assert_allclose(
        jnp.stack(spiked_tensor.microscopic_variance(1.3, 0.7, 0.4, 2.0, radius=0.4)), path, rtol=1e-8
    )
    # Far out nothing overflows: the stationary variance c²/(c − λ).
    assert float(spiked_tensor.microscopic_variance(0.5, 1.0, 1000.0)[0]) == pytest.approx(2.0)


def test_zooming_into_the_finite_system_gives_the_microscopic_law():
    n = 1e8
    micro = effective.zoom(spiked_tensor.spiked_dynamics(2.0, 2, 1.0, dimension=n), [0.0, 0.0], [n**-0.5, 1.0])
    at = jnp.array([1.5, 0.7])
    assert float(micro.diffusion(at)[0, 0]) == pytest.approx(8 * 0.7, rel=1e-6)
    assert float(micro.velocity(at)[0]) == pytest.approx(4 * 1.5 * (2 - 0.7), rel=1e-6)
    rest = effective.stationary_covariance(
        spiked_tensor.spiked_dynamics(0.5, 2, 1.0), lambda u: spiked_tensor.path_noise(u, 2, 1.0), [0.0, 1.0]
    )
    assert rest[0, 0] == pytest.approx(2.0)


def test_spiked_bad_input():
    for call in (
        lambda: spiked_tensor.spiked_dynamics(1.0, 1, 1.0),
        lambda: spiked_tensor.spiked_rest_points(-1.0, 2, 1.0),
        lambda: spiked_tensor.critical_signal(1, 1.0),
        lambda: spiked_tensor.tensor_microscopic_variance(2, 1.0, [1.0]),
    ):
        with pytest.raises(ParameterError):
            call()
    with pytest.raises(OutsideValidity, match="never leaves"):
        spiked_tensor.exit_offset(0.5, 1.0, 0.3)
    with pytest.raises(OutsideValidity, match="never reached"):
        spiked_tensor.exit_offset(2.0, 1.0, 1.3)


def test_components_by_enumeration():
    for width in range(1, 6):
        assert xor.components_by_enumeration(width) == xor.xor_component_count(width)
    assert xor.xor_component_count(4) == 39
    with pytest.raises(ParameterError, match="width = 0"):
        xor.xor_component_count(0)


def test_success_probability():
    values = {
        1: 0,
        3: 0,
        4: 3 / 32,
        5: 0.234375,
        6: 0.380859375,
        8: 0.6229248046875,
        10: 0.780601501465,
        20: 0.98732087,
    }
    for width, p in values.items():
        assert xor.xor_success_probability(width) == pytest.approx(p, abs=1e-8)
        assert sum(xor.active_types_probability(width, a) for a in range(1, 5)) == pytest.approx(1)
    assert xor.active_types_probability(4, 2) == pytest.approx(0.328125)


def noiseless_start():
    return xor.XorState(jnp.array([1, 0.5, -0.8, -0.6]), jnp.array([0.3, -0.2, 0, 0]), jnp.array([0, 0, 0.4, -0.1]),
                        jnp.zeros((4, 4)))  # fmt: skip


def test_noiseless_dynamics():
    at = xor_sliding.noiseless_ballistic(noiseless_start(), [2.0], 0.05)
    np.testing.assert_allclose(at.output[0], [0.97911749, 0.50773677, -0.81340578, -0.58009489], atol=1e-7)
    np.testing.assert_allclose(at.along_mu[0], [0.46219701, -0.29302418, 0, 0], atol=1e-7)
    np.testing.assert_allclose(at.along_nu[0], [0, 0, 0.51830319, -0.22350461], atol=1e-7)
    # Wrong overlaps slide to zero and stay; the masses of the four types reach S.
    start = noiseless_start()._replace(along_nu=jnp.array([0.2, -0.1, 0.4, -0.1]))
    end = xor_sliding.noiseless_ballistic(start, [400.0], 0.05, steps=8000)
    np.testing.assert_allclose(end.along_nu[0, :2], 0.0, atol=0)
    np.testing.assert_allclose(end.output[0] ** 2, float(xor.type_mass(0.05)), rtol=1e-6)
    assert [float(xor.type_mass(a)) for a in (0.05, 0.01, 0.1)] == pytest.approx(
        [1.386294361119891, 3.178053830347946, 0.405465108108164]
    )
    assert xor.rest_loss(0.01, 4) == pytest.approx(0.167944147734173)
    with pytest.raises(OutsideValidity, match="1/8"):
        xor.rest_loss(0.2, 4)


def test_noisy_dynamics_approach_the_noiseless_ones():
    state = noiseless_start()
    limit = xor_sliding.noiseless_velocity(state, 0.05)
    away = jnp.abs(state.along_mu) > 0
    for separation, allowed in ((1e4, 0.02), (1e6, 0.002)):
        close = xor.velocity(state, separation, 0.05, 1.0)
        np.testing.assert_allclose(close.output, limit.output, atol=allowed)
        np.testing.assert_allclose(jnp.where(away, close.along_mu, 0), jnp.where(away, limit.along_mu, 0), atol=allowed)


def test_one_neuron_velocity_by_quadrature():
    """K = 1: h is Gaussian in each cluster, so that E g(h)e is a one-dimensional integral."""
    v, mu, nu, r, lam = 0.8, 0.5, -0.3, 0.6, 4.0
    spread = np.sqrt((mu**2 + nu**2 + r) / lam)

    def mean(centre, label):
        def integrand(h):
            density = np.exp(-((h - centre) ** 2) / (2 * spread**2)) / np.sqrt(2 * np.pi) / spread
            return h * (1 / (1 + np.exp(-v * h)) - label) * density

        return integrate.quad(integrand, 0, centre + 12 * spread)[0]

    exact = sum(mean(s * mu, 1.0) + mean(s * nu, 0.0) for s in (1, -1)) / 4
    state = xor.XorState(jnp.array([v]), jnp.array([mu]), jnp.array([nu]), jnp.array([[r]]))
    assert float(-xor.velocity(state, lam, 0.0, 1.0).output[0]) == pytest.approx(exact, abs=1e-4)


def test_escape_rate():
    """One neuron: the slope of the velocity at m = 0, by a finite difference wide enough for quasi-random points."""
    v, r, lam, alpha = 0.8, 0.9, 4.0, 0.05
    rate = float(xor.escape_matrix(jnp.array([v]), jnp.array([[r]]), lam, alpha)[0, 0])

    def slope(width):
        state = xor.XorState(jnp.array([v]), jnp.array([width]), jnp.zeros(1), jnp.array([[r]]))
        return float(xor.velocity(state, lam, alpha, 1.0, points=32768).along_mu[0]) / width

    # The velocity is odd in m: its slope has an error of second order, removed by one extrapolation.
    assert (4 * slope(0.1) - slope(0.2)) / 3 == pytest.approx(rate, abs=2e-3)
    other = float(xor.escape_matrix(jnp.array([v]), jnp.array([[r]]), lam, alpha, mean="nu")[0, 0])

    def across(width):
        state = xor.XorState(jnp.array([v]), jnp.zeros(1), jnp.array([width]), jnp.array([[r]]))
        return float(xor.velocity(state, lam, alpha, 1.0, points=32768).along_nu[0]) / width

    assert (4 * across(0.1) - across(0.2)) / 3 == pytest.approx(other, abs=2e-3)
    assert other < 0 < rate
    small = float(xor.escape_matrix(jnp.array([0.01]), jnp.array([[1.0]]), lam, alpha)[0, 0])
    assert small == pytest.approx(0.01 * np.sqrt(lam / (2 * np.pi)) / 4 - alpha, abs=2e-4)


def test_escape_actions():
    """k = 2 in closed form, ½∫₀^(λ−c) (λ − c − s)/(c(2s + c)) ds; for a strong signal that of (0, c) is small."""
    lam, c = 3.0, 0.7
    found = integrate.quad(lambda s: (lam - c - s) / (c * (2 * s + c)) / 2, 0, lam - c)[0]
    assert spiked_tensor.escape_actions(lam, 2, c) == pytest.approx((0.0, found), rel=1e-9)
    for k in (3, 4, 5):
        saddle = float(spiked_tensor.overlap_roots(400.0, k, 0.5)[0])
        forgets, stays = spiked_tensor.escape_actions(400.0, k, 0.5)
        # With e = m_†²/c: V = (½ − 1/k)e (1 − a e + O(e²)), a = (k − 1)(1/4 + 1/k − 2/(k + 2))/(½ − 1/k).
        e, leading = saddle**2 / 0.5, 0.5 - 1 / k
        following = (k - 1) * (1 / 4 + 1 / k - 2 / (k + 2)) / leading
        assert abs(forgets / (leading * e) - 1 + following * e) < 10 * e**2
        assert stays > 100 * forgets
    with pytest.raises(OutsideValidity, match="saddle"):
        spiked_tensor.escape_actions(0.5, 3, 1.0)


def test_when_overlaps_begin_to_slide():
    """Against DOP853 with events, each smooth piece by itself."""
    alpha, start = 0.05, np.array([1.0, 0.5, 0.3, -0.2, 0.3, -0.4])

    def speed(t, y):
        v, mu, nu = y.reshape(3, 2)
        e = {s: 1 / (1 + np.exp(v @ np.maximum(s * mu, 0))) for s in (1, -1)}
        d = {s: 1 / (1 + np.exp(-v @ np.maximum(s * nu, 0))) for s in (1, -1)}
        out = sum(np.maximum(s * mu, 0) * e[s] - np.maximum(s * nu, 0) * d[s] for s in (1, -1)) / 4
        on = sum(s * (s * mu > 0) * e[s] for s in (1, -1)) * v / 4
        off = sum(s * (s * nu > 0) * d[s] for s in (1, -1)) * v / 4
        return np.concatenate([out - alpha * v, on - alpha * mu, -off - alpha * nu])

    state, now, expected = start, 0.0, np.full(2, np.inf)
    while np.isinf(expected).any():
        live = [i for i in (4, 5) if state[i] != 0]
        hits = [lambda t, y, i=i: y[i] for i in live]
        for hit in hits:
            hit.terminal = True
        # The right-hand side jumps just behind the event, so that a step must not look far beyond it.
        path = integrate.solve_ivp(speed, (now, 60.0), state, events=hits, rtol=1e-10, atol=1e-12, max_step=1e-3)
        now, state = path.t[-1], path.y[:, -1].copy()
        first = live[int(np.argmin(np.abs(state[live])))]
        state[first], expected[first - 4] = 0.0, now
    given = xor.XorState(*(jnp.asarray(part) for part in start.reshape(3, 2)), jnp.zeros((2, 2)))
    found = xor_sliding.sliding_times(given, 10.0, alpha)
    np.testing.assert_allclose(found.along_nu, expected, rtol=1e-5)
    assert np.isinf(np.asarray(found.along_mu)).all()
    early = xor_sliding.sliding_times(given, expected.min() * 0.99, alpha)
    assert np.isinf(np.asarray(early.along_nu)).all()
