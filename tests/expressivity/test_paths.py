"""Paths, Jacobians and tangent kernels of random ReLU networks: the sheet's values, enumeration and simulation."""

import itertools
import math

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from deeplimits.ensembles import relu_networks
from deeplimits.errors import ParameterError, TooCostly
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
    ]
    wanted = [
        0.66666666666667, 11, 5.11904, 16, 1325.8666666667, 76.968596551009, 0.31830988618379, 1.3514795611235,
        1.7378446792153, 3.8070293627198, 0.10598754882813, 0.093082656508959, 0.03125,
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
    x = np.random.default_rng(0).normal(size=(6, 4))
    bounds = expressivity.ntk_eigenvalue_bounds(x, [40, 40])
    assert float(bounds.largest) <= min(float(bounds.row_sum), float(bounds.frobenius)) * (1 + 1e-12)
    keys = jax.random.split(jax.random.key(1), 400)
    kernels = jax.vmap(
        lambda key: relu_networks.tangent_kernel(relu_networks.random_weights(key, [4, 40, 40, 1]), jnp.asarray(x))
    )(keys)
    traces = np.trace(np.asarray(kernels), axis1=1, axis2=2)
    assert abs(traces.mean() - float(bounds.trace)) < 4.5 * traces.std() / 20
    assert np.mean(traces > float(bounds.trace_bound(0.2))) <= 0.2
    mean = np.asarray(kernels).mean(axis=0)
    assert np.linalg.eigvalsh(mean)[-1] < 1.1 * float(bounds.row_sum)


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
    with pytest.raises(TooCostly, match="multiply its matrices"):
        expressivity.path_sum([np.ones((300, 300)), np.ones((300, 300)), np.ones((300, 300))], np.ones(300))
    with pytest.raises(ParameterError, match="zeros and ones"):
        expressivity.gate_probability([[0.5]])
    with pytest.raises(ParameterError, match="weights\\[1\\]"):
        expressivity.path_sum([np.ones((2, 3)), np.ones((1, 3))], np.ones(3))
