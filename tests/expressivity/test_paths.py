"""Paths, Jacobians and tangent kernels of random ReLU networks: the sheet's values, enumeration and simulation."""

import itertools
import math

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from deeplimits import limits
from deeplimits.ensembles import relu_networks
from deeplimits.errors import OutsideValidity, ParameterError, TooCostly
from deeplimits.theory import expressivity


def test_reference_values_of_the_sheet():
    assert expressivity.path_count([5, 4, 6]) == 120
    found = expressivity.path_sum([[[1, -1], [2, 1]], [[1, -1]]], [1, 0.5])
    assert found.outputs.tolist() == [-2.0]
    assert found.jacobian.tolist() == [[-1.0, -2.0]]
    numbers = [
        expressivity.jacobian_moment(2, 3, [5, 4, 6]),
        expressivity.jacobian_moment(4, 3, [5, 4, 6]),
        expressivity.jacobian_moment(4, 3, [5, 4, 6], weight_moments=[9 / 5]),
        *expressivity.ntk_moments(6.0, 3, [5, 4, 6]),
        expressivity.ntk_spread_limit(1.0),
        *(expressivity.ntk_off_diagonal(rho, layers) for rho, layers in ((0.0, 1), (0.5, 2), (0.5, 3))),
        expressivity.matrix_chernoff(1.0, 5.0, 2.0, 10),
        expressivity.dead_probability([5, 4, 6]),
        expressivity.dead_probability([10] * 100),
        expressivity.gate_probability([[1, 0], [0, 1, 1]]),
        *(part for n in (10, 50) for part in expressivity.layer_factor(n)[:2]),
    ]
    wanted = [
        0.66666666666667, 11, 5.11904, 16, 1325.8666666667, 76.968596551009, 0.31830988618379, 1.3514795611235,
        1.7378446792153, 3.8070293627198, 0.10598754882813, 0.093082656508959, 0.03125,
        -0.30746101069186, 0.8667342530526, -0.051738780849766, 0.10816813334828,
    ]  # fmt: skip
    np.testing.assert_allclose([float(one) for one in numbers], wanted, rtol=1e-13)
    equal = expressivity.ntk_moments(1.0, 1, [5, 5, 5])
    np.testing.assert_allclose(float(equal.second / equal.mean**2), 5.056, rtol=1e-13)
    bounds = expressivity.ntk_eigenvalue_bounds([[1.0, 0.0], [0.0, 1.0]], [50])
    np.testing.assert_allclose([float(bounds.largest), float(bounds.row_sum)], [2.3183098861838] * 2, rtol=1e-13)


@pytest.mark.parametrize("hidden", [[4], [3, 2], [2, 3, 2]])
def test_paths_add_up_to_the_jacobian(hidden):
    weights = relu_networks.random_weights(jax.random.key(len(hidden)), [3, *hidden, 2], law="uniform")
    x = jnp.array([0.3, -1.0, 0.7])
    found = expressivity.path_sum(weights, x)
    jacobian = jax.jacrev(lambda one: relu_networks.relu_network(weights, one))(x)
    np.testing.assert_allclose(found.jacobian, jacobian, atol=1e-14)
    # Euler: Σ_p x_p J_qp = z_q
    np.testing.assert_allclose(found.outputs, relu_networks.relu_network(weights, x), atol=1e-14)


def gaussian_moment(order, inputs, hidden):
    """(2k−1)!! Π (2/n)^k Π E S^k, S = Σ ξ g², from the binomial mixture of χ² moments."""
    k = order // 2
    total = math.prod(range(order - 1, 0, -2)) * (2 / inputs) ** k
    for n in hidden:
        chi = sum(math.comb(n, m) / 2**n * 2**k * math.gamma(m / 2 + k) / math.gamma(m / 2) for m in range(1, n + 1))
        total *= (2 / n) ** k * chi
    return total


@pytest.mark.parametrize("order", [2, 4, 6, 8, 10])
@pytest.mark.parametrize("hidden", [[1], [2, 5], [4, 1, 3]])
def test_gaussian_moments_against_chi_squares(order, hidden):
    found = float(expressivity.jacobian_moment(order, 3, hidden))
    np.testing.assert_allclose(found, gaussian_moment(order, 3, hidden), rtol=1e-12)


def test_moments_of_other_weights_by_enumeration_of_everything():
    """Three-valued weights with gates that are coins: every matrix and every pattern of gates, one by one."""
    values, chances = (-math.sqrt(2), 0.0, math.sqrt(2)), (0.25, 0.5, 0.25)
    fourth = sum(p * v**4 for v, p in zip(values, chances, strict=True))
    sixth = sum(p * v**6 for v, p in zip(values, chances, strict=True))
    exact = dict.fromkeys((2, 4, 6), 0.0)
    # Two hidden layers of two neurons, one input, one output: 2 + 4 + 2 weights, 4 gates
    states = np.array(list(itertools.product(range(3), repeat=8)))
    w = np.array(values)[states]
    p = np.prod(np.array(chances)[states], axis=1)
    for gates in itertools.product((0, 1), repeat=4):
        first = w[:, :2] * np.array(gates[:2]) * math.sqrt(2)
        second = np.einsum("mij,mj->mi", w[:, 2:6].reshape(-1, 2, 2), first) * np.array(gates[2:])
        jacobian = np.sum(w[:, 6:] * second, axis=1)
        for order in exact:
            exact[order] += np.sum(p * jacobian**order) / 16
    for order, wanted in exact.items():
        found = expressivity.jacobian_moment(order, 1, [2, 2], weight_moments=[fourth, sixth])
        np.testing.assert_allclose(float(found), wanted, rtol=1e-12)


@pytest.mark.parametrize("fourth", [1.3, 9 / 5, 3.0, 6.0])
def test_fourth_moments_against_a_recursion_of_two_numbers(fourth):
    """A for pairs of paths that are apart, B for those that met: M = 3A + (μ₄ − 3)B."""
    a = b = 1.0
    widths = [3, 5, 1, 4]
    for before, n in itertools.pairwise(widths):
        met = 3 * a + (fourth - 3) * b
        a, b = (2 / before) ** 2 * (n * (n - 1) * a / 4 + n * met / 2), (2 / before) ** 2 * n * met / 2
    wanted = (2 / widths[-1]) ** 2 * (3 * a + (fourth - 3) * b)
    found = expressivity.jacobian_moment(4, widths[0], widths[1:], weight_moments=[fourth])
    np.testing.assert_allclose(float(found), wanted, rtol=1e-13)


@pytest.mark.parametrize("widths", [[1, 1, 3, 1], [2, 2, 1, 1], [1, 2, 2, 1]])
def test_kernel_moments_by_enumeration_of_everything(widths):
    """Θ² is of degree 4 in each weight, and 0 and ±√3 have five moments of a normal variable: all are visited."""
    shapes = [(after, before) for before, after in itertools.pairwise(widths)]
    sizes = [rows * columns for rows, columns in shapes]
    values, chances = np.array([-math.sqrt(3), 0.0, math.sqrt(3)]), np.array([1 / 6, 2 / 3, 1 / 6])
    states = np.array(list(itertools.product(range(3), repeat=sum(sizes))))
    p, parts = np.prod(chances[states], axis=1), np.split(values[states], np.cumsum(sizes)[:-1], axis=1)
    w = [math.sqrt(2 / shape[1]) * part.reshape(-1, *shape) for part, shape in zip(parts, shapes, strict=True)]
    x, first, second = np.linspace(1.0, 1.5, widths[0]), 0.0, 0.0
    patterns = list(itertools.product((0.0, 1.0), repeat=sum(widths[1:-1])))
    for pattern in patterns:
        gates = np.split(np.array(pattern), np.cumsum(widths[1:-1])[:-1])
        signals = [np.broadcast_to(x, (len(states), len(x)))]
        for matrix, gate in zip(w, gates, strict=False):
            signals.append(np.einsum("mij,mj->mi", matrix, signals[-1]) * gate)
        slopes, kernel = np.ones((len(states), 1)), 0.0
        for layer in reversed(range(len(w))):
            kernel = kernel + 2 / widths[layer] * np.sum(signals[layer] ** 2, axis=1) * np.sum(slopes**2, axis=1)
            if layer:
                slopes = np.einsum("mij,mi->mj", w[layer], slopes) * gates[layer - 1]
        first, second = first + p @ kernel / len(patterns), second + p @ kernel**2 / len(patterns)
    found = expressivity.ntk_moments(float(x @ x), widths[0], widths[1:-1])
    np.testing.assert_allclose([float(found.mean), float(found.second)], [first, second], rtol=1e-12)


@pytest.mark.parametrize("n", [1, 4, 60])
def test_the_factor_of_a_layer_against_quadrature(n):
    """E log and Var log of (2/n)χ²_k, k binomial given k ≥ 1, in mpmath."""
    found = expressivity.layer_factor(n)
    with mp.workdps(25):
        p = [mp.binomial(n, k) / (2**n - 1) for k in range(1, n + 1)]
        logs = [mp.digamma(mp.mpf(k) / 2) + mp.log(mp.mpf(4) / n) for k in range(1, n + 1)]
        mean = mp.fsum(a * b for a, b in zip(p, logs, strict=True))
        variance = mp.fsum(
            a * (mp.psi(1, mp.mpf(k) / 2) + (b - mean) ** 2) for k, a, b in zip(range(1, n + 1), p, logs, strict=True)
        )
    np.testing.assert_allclose([float(found.mean), float(found.variance)], [float(mean), float(variance)], rtol=1e-12)
    assert float(found.off) == 2.0**-n


def test_log_moments_of_the_jacobian_against_simulated_networks():
    hidden, count = [6, 7], 20_000
    keys = jax.random.split(jax.random.key(0), count)

    @jax.vmap
    def entry(key):
        weights = relu_networks.random_weights(key, [2, *hidden, 1])
        return jax.jacrev(lambda one: relu_networks.relu_network(weights, one))(jnp.array([0.6, -0.8]))[0, 0]

    squares = np.asarray(entry(keys)) ** 2
    assert abs(np.mean(squares == 0) - float(expressivity.dead_probability(hidden))) < 4.5 * 0.15 / math.sqrt(count)
    logs = np.log(squares[squares > 0])
    found = expressivity.jacobian_log_moments(2, hidden)
    assert abs(logs.mean() - float(found.mean)) < 4.5 * logs.std() / math.sqrt(len(logs))
    np.testing.assert_allclose(logs.var(), float(found.variance), rtol=0.1)


def test_a_depth_below_the_range_comes_of_rounding():
    sizes, at = limits.JacobianLognormal(depth_per_width=0.1).at_size(32)
    assert sizes == {"width": 32, "hidden": 3}
    assert float(at.depth_per_width) == 3 / 32


def test_wide_and_deep_networks_have_the_stated_spread():
    for beta, n in ((0.01, 4000), (0.5, 2000), (2.0, 500)):
        found = expressivity.ntk_moments(1.0, 1, [n] * round(beta * n))
        np.testing.assert_allclose(
            float(found.second / found.mean**2), float(expressivity.ntk_spread_limit(beta)), rtol=40 / n
        )
    # The series and the formula meet.
    below, above = (float(expressivity.ntk_spread_limit(0.02 * (1 + e))) for e in (-1e-12, 1e-12))
    np.testing.assert_allclose(below, above, rtol=1e-11)


def test_the_kernel_between_inputs_in_forty_digits_and_near_the_diagonal():
    def exact(rho, layers):
        with mp.workdps(40):
            c = t = mp.mpf(rho)
            for _ in range(layers):
                phi = mp.acos(c)
                c, s = (mp.sin(phi) + (mp.pi - phi) * mp.cos(phi)) / mp.pi, (mp.pi - phi) / mp.pi
                t = c + s * t
            return float(t)

    for rho in (-1.0, -0.4, 0.3, 1 - 1e-3, 1 - 1e-9, 1 - 1e-15, 1.0):
        np.testing.assert_allclose(float(expressivity.ntk_off_diagonal(rho, 6)), exact(rho, 6), rtol=1e-13)


def test_bounds_on_the_largest_eigenvalue_hold_for_drawn_networks():
    x, count = np.eye(5) + 0.7, 4000
    narrow, single = expressivity.ntk_eigenvalue_bounds(x, [3, 3, 3]), expressivity.ntk_eigenvalue_bounds(x, [3])
    for bounds in (narrow, single):
        assert float(bounds.largest) <= min(float(bounds.row_sum), float(bounds.frobenius)) * (1 + 1e-12)
        assert float(bounds.largest) <= float(bounds.every_width) <= float(bounds.trace)
    keys = jax.random.split(jax.random.key(1), count)
    kernels = np.asarray(
        jax.vmap(
            lambda key: relu_networks.tangent_kernel(relu_networks.random_weights(key, [5, 3, 3, 3, 1]), jnp.asarray(x))
        )(keys)
    )
    traces = np.trace(kernels, axis1=1, axis2=2)
    assert abs(traces.mean() - float(narrow.trace)) < 4.5 * traces.std() / math.sqrt(count)
    exceeded, allowed = np.mean(traces > float(narrow.trace_bound(0.2))), 0.2
    assert exceeded <= allowed + 4.5 * math.sqrt(allowed / count)
    along = np.linalg.eigh(kernels.mean(axis=0))[1][:, -1]
    tops = np.einsum("i,mij,j->m", along, kernels, along)
    assert tops.mean() < float(narrow.every_width) + 4.5 * tops.std() / math.sqrt(count)


@pytest.mark.parametrize("law", relu_networks.LAWS)
def test_laws_of_weights_have_variance_one_and_the_stated_fourth_moment(law):
    from deeplimits.limits.expressivity.jacobian_moments import FOURTH

    (weights,) = relu_networks.random_weights(jax.random.key(5), [200, 300], law=law)
    entries = np.asarray(weights).ravel() * math.sqrt(100)
    count = entries.size
    assert abs(np.mean(entries**2) - 1) < 4.5 * math.sqrt((FOURTH[law] - 1) / count)
    assert abs(np.mean(entries**4) - FOURTH[law]) < 4.5 * np.std(entries**4) / math.sqrt(count)
    assert abs(stats.skew(entries)) < 0.2


def test_what_is_refused():
    with pytest.raises(ParameterError, match=r"hidden\[1\] = 0"):
        expressivity.jacobian_moment(4, 3, [5, 0])
    with pytest.raises(ParameterError, match="no moment of order 4 below 1"):
        expressivity.jacobian_moment(4, 3, [5], weight_moments=[0.5])
    with pytest.raises(ParameterError, match="at most 12"):
        expressivity.jacobian_moment(14, 3, [5])
    with pytest.raises(OutsideValidity, match=r"E J\^4 of 20000 layers is beyond double precision"):
        expressivity.jacobian_moment(4, 3, [50] * 20_000)
    with pytest.raises(OutsideValidity, match="of 3000 hidden layers is beyond double precision"):
        expressivity.ntk_moments(1.0, 1, [5] * 3000)
    with pytest.raises(TooCostly, match="multiply its matrices"):
        expressivity.path_sum([np.ones((300, 300)), np.ones((300, 300)), np.ones((300, 300))], np.ones(300))
    with pytest.raises(ParameterError, match="zeros and ones"):
        expressivity.gate_probability([[0.5]])
    with pytest.raises(ParameterError, match="weights\\[1\\]"):
        expressivity.path_sum([np.ones((2, 3)), np.ones((1, 3))], np.ones(3))
