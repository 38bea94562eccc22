"""Regions, breakpoints, entropy: the sheet's values, enumeration, exact networks and constructed covers."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate

from deeplimits.errors import OutsideValidity, ParameterError, TooCostly
from deeplimits.measure import regions
from deeplimits.theory import expressivity


def test_reference_values_of_the_sheet():
    assert expressivity.cell_count(10, 2) == (56, 36)
    assert expressivity.cell_count(5, 8).cells == 32
    assert expressivity.activation_region_bound(2, [6])[:2] == (729, 64)
    full, compact = expressivity.sawtooth(4, compact=False), expressivity.sawtooth(4)
    assert [full.pieces_inside, full.pieces, full.neurons, full.layers, compact.neurons, compact.layers] == [
        16, 18, 12, 8, 8, 4,
    ]  # fmt: skip
    found = [
        float(expressivity.expected_breakpoints([0.0], [1.0], -1.0, 2.0, 1.0, 0.5, [1]).layers[0]),
        *expressivity.expected_breakpoints([0.0], [1.0], -1.0, 1.0, 2.0, 0.1, [30] * 3).layers.tolist(),
        float(expressivity.zero_cell_sides(3)),
        float(expressivity.zero_cell_sides(10)),
        float(expressivity.entropy_numbers(3, "cube").upper),
        float(expressivity.entropy_numbers(3, "cube", dimension=2).lower),
        float(expressivity.entropy_numbers(4, "lipschitz").upper),
        *map(float, expressivity.johnson_lindenstrauss(0.5)),
        float(expressivity.carl_bits(10, 1, 0.01).bits),
        float(expressivity.no_free_lunch_error(10, 4)),
    ]
    wanted = [
        0.6959132760153, 25.798539117207, 24.150533128736, 22.942899091299, 2.7950703414486, 4.5745693820117, 0.0625,
        0.25, 0.2, 32, 37.037037037037, 17.08845611144, 82.288186904959, 0.3,
    ]  # fmt: skip
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    np.testing.assert_allclose(float(expressivity.zero_cell_sides(10**9)), math.pi**2 / 2, rtol=1e-8)
    per_bit = [float(c) * math.log(2) for c in expressivity.johnson_lindenstrauss(0.5)]
    np.testing.assert_allclose(per_bit, [22.180709777918, 25.672117798516, 11.844815173767], rtol=1e-12)
    assert list(map(float, expressivity.entropy_to_width(1))) == [32, 26, 12, 3]


@pytest.mark.parametrize(("n", "d"), [(1, 1), (4, 1), (5, 2), (6, 3), (4, 5), (7, 4)])
@pytest.mark.parametrize("central", [False, True])
def test_cells_of_random_hyperplanes(n, d, central):
    random = np.random.default_rng(n + 10 * d)
    normals, offsets = random.normal(size=(n, d)), np.zeros(n) if central else random.normal(size=n)
    assert expressivity.arrangement_cells(normals, offsets) == expressivity.cell_count(n, d, central=central)


def test_cells_of_degenerate_lines():
    """1 + n + Σ over vertices of (lines through it − 1), in the plane."""
    grid = expressivity.arrangement_cells([[1, 0]] * 3 + [[0, 1]] * 2, [0, 1, 2, 0, 1])
    assert grid == (12, 2)
    star = expressivity.arrangement_cells([[math.cos(t), math.sin(t)] for t in (0.1, 0.7, 1.4, 2.0)], np.zeros(4))
    assert star == (8, 0)
    assert expressivity.arrangement_cells([[1, 2], [2, 4], [-1, -2]], [1, 2, -1]) == (2, 0)
    # The three mirrors of a triangle and one of its sides
    braid = expressivity.arrangement_cells([[1, -1, 0], [0, 1, -1], [1, 0, -1]], np.zeros(3))
    assert braid == (6, 0)
    with pytest.raises(ParameterError, match=r"normals\[1\] is zero"):
        expressivity.arrangement_cells([[1, 0], [0, 0]], [0, 1])
    with pytest.raises(TooCostly, match="too many intersections"):
        expressivity.arrangement_cells(np.ones((200, 6)), np.zeros(200))


def test_regions_of_one_hidden_layer_are_the_cells_of_its_lines():
    random = np.random.default_rng(3)
    w, b = random.normal(size=(6, 2)), 0.2 * random.normal(size=6)
    network = regions.Matrices([w, np.ones((1, 6))], [b, np.zeros(1)])
    found = regions.plane_regions(network, [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], margin=1e4)
    assert len(found.polygons) == expressivity.cell_count(6, 2).cells
    assert expressivity.activation_region_bound(2, [6]).layers == expressivity.cell_count(6, 2).cells


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("depth", [1, 2, 5])
def test_the_sawtooth_has_as_many_pieces_as_it_says(depth, compact):
    found = expressivity.sawtooth(depth, compact=compact)
    wide = regions.line_pieces(found, [[-1.5], [2.5]])
    inside = regions.line_pieces(found, [[0.0], [1.0]])
    assert wide.pieces == found.pieces
    assert inside.pieces == found.pieces_inside
    assert sum(map(len, found.biases)) - 1 == found.neurons
    np.testing.assert_allclose(inside.breakpoints[inside.visible], np.arange(1, 2**depth) / 2**depth, atol=1e-12)


def test_one_hidden_layer_against_the_instrument():
    random = np.random.default_rng(1)
    w, b, v = random.normal(size=(3, 9))
    w[2] = 0.0
    found = expressivity.one_hidden_layer_pieces(w, b, v)
    # n + 1 pieces at most: seven neurons make eight, and the one with w = 0 adds none
    assert len(expressivity.one_hidden_layer_pieces(*np.delete([w, b, v], 2, axis=1)[:, :7]).slopes) == 8
    assert len(found.slopes) == 9
    seen = regions.line_pieces(regions.Matrices([w[:, None], v[None]], [b, np.zeros(1)]), [[-1e3], [1e3]])
    np.testing.assert_allclose(seen.breakpoints * 2e3 - 1e3, found.breakpoints, atol=1e-8)
    slopes = np.diff(seen.outputs[:, 0]) / np.diff(seen.nodes) / 2e3
    np.testing.assert_allclose(slopes, found.slopes, rtol=1e-6, atol=1e-9)


def test_breakpoint_density_against_quadrature_off_the_origin():
    """∫ √(dq − c²)/(πq) along a line in R³ that misses the origin, layer by layer."""
    x, u, c_w, c_b = np.array([0.5, -1.0, 2.0]), np.array([1.0, 0.3, -0.2]), 1.7, 0.2
    found = expressivity.expected_breakpoints(x, u, -2.0, 3.0, c_w, c_b, [1, 1, 1])

    def density(time, layer):
        at = x + time * u
        q, d, c = c_b + c_w / 3 * at @ at, c_w / 3 * u @ u, c_w / 3 * at @ u
        for _ in range(layer):
            q, d, c = c_b + c_w / 2 * q, c_w / 2 * d, c_w / 2 * c
        return math.sqrt(d * q - c**2) / q / math.pi

    wanted = [integrate.quad(density, -2, 3, args=(layer,), epsabs=1e-13)[0] for layer in range(3)]
    np.testing.assert_allclose(found.per_neuron, wanted, rtol=1e-11)
    whole = expressivity.expected_breakpoints(x, u, -math.inf, math.inf, c_w, c_b, [20, 30])
    np.testing.assert_allclose(whole.layers, [20, 30], rtol=1e-14)
    peak = expressivity.expected_breakpoints([0.0], [1.0], -1e-7, 1e-7, c_w, c_b, [1]).layers[0] / 2e-7
    np.testing.assert_allclose(float(peak), float(expressivity.breakpoint_constant(c_w, c_b)), rtol=1e-9)
    # Very deep networks: neither (C_w/2)^l nor its inverse is a number, and zeros get rare where biases add up
    deep = [expressivity.expected_breakpoints([0.0], [1.0], -1.0, 1.0, one, 0.1, [1] * 2000) for one in (4.0, 0.01)]
    ratio = math.sqrt((4.0 - 2) / 0.1)  # √(B_l/A_l), B_l/A_l → (C_w − 2)/C_b
    np.testing.assert_allclose(float(deep[0].per_neuron[-1]), 2 / math.pi * math.atan(ratio), rtol=1e-13)
    assert float(deep[1].per_neuron[-1]) == 0.0
    with pytest.raises(OutsideValidity, match="all its breakpoints at the origin"):
        expressivity.expected_breakpoints([0.0], [1.0], -1.0, 1.0, 1.0, 0.0, [3])
    with pytest.raises(OutsideValidity, match="low must be below high"):
        expressivity.expected_breakpoints([0.0], [1.0], 1.0, -1.0, 1.0, 1.0, [3])


def test_the_cell_around_the_origin_against_quadrature():
    for n in (2, 5, 40):
        integral = integrate.quad(lambda t, n=n: math.cos(t) * (0.5 + t / math.pi) ** (n - 2), 0, math.pi / 2)[0]
        wanted = n * (n - 1) / 2 * integral + n / 2 ** (n - 1)
        np.testing.assert_allclose(float(expressivity.zero_cell_sides(n)), wanted, rtol=1e-12)


def test_entropy_of_lipschitz_functions_by_two_balls():
    """ε_1 = 1/2 of the functions with f(0) = 0: two piecewise linear centres cover all zigzags of a fine grid."""
    steps = 8
    paths = np.cumsum(np.array(list(itertools.product((-1, 1), repeat=steps))) / steps, axis=1)
    t = np.arange(1, steps + 1) / steps
    # Up to 1/2 together, then back: within 1/2 of all that are up, or all that are down, on the way
    centres = [np.maximum(t - 0.5, 0.0), -np.maximum(t - 0.5, 0.0)]
    best = np.min([np.abs(paths - one).max(axis=1) for one in centres], axis=0)
    assert best.max() <= float(expressivity.entropy_numbers(1, "lipschitz").upper) + 1e-12


def test_entropy_of_points_is_between_packing_and_covering():
    x = np.random.default_rng(0).normal(size=(40, 2))
    found = expressivity.entropy_of_points(x, 3)
    distances = np.linalg.norm(x[:, None] - x[None], axis=2)
    best_pair = min(np.min(distances[:, list(pair)], axis=1).max() for pair in itertools.combinations(range(40), 2))
    # Centres among the points are at most twice as bad as any.
    assert float(found.lower[1]) <= best_pair
    assert float(found.upper[1]) <= 2 * best_pair + 1e-12
    assert np.all(np.diff(found.upper) <= 0)
    cube = expressivity.entropy_numbers(np.arange(0, 60), "cube", dimension=3)
    assert np.all(np.diff(cube.upper) <= 0)


def test_projections_fail_no_more_often_than_stated():
    random = np.random.default_rng(2)
    x, m, eps = random.normal(size=(20, 30)), 30, 0.5
    failure = expressivity.projection_failure(eps, 20, m)
    rho = (1 - eps) ** 2
    a = -rho * math.log(rho) / (1 - rho)
    fails = 0
    for _ in range(300):
        projected = x @ (math.sqrt(rho / (a * m)) * random.normal(size=(m, 30))).T
        before, after = (
            np.linalg.norm(one[:, None] - one[None], axis=2)[np.triu_indices(20, 1)] for one in (x, projected)
        )
        fails += bool(np.any(after > before) or np.any(after < (1 - eps) * before))
    assert fails <= 300 * float(failure.union) + 4.5 * math.sqrt(300 * float(failure.union)) + 3
    # The exponents of both tails agree: that is what makes the constant the sharpest.
    short, long = (math.log(float(one)) / 4000 for one in expressivity.projection_failure(eps, 2, 4000)[1:3])
    np.testing.assert_allclose(short, long, rtol=0.02)
    np.testing.assert_allclose(-4 / short / 2, float(expressivity.johnson_lindenstrauss(eps).sharpest), rtol=0.05)


def test_gradients_of_the_expected_number_of_breakpoints():
    def total(c_w):
        return jnp.sum(expressivity.expected_breakpoints(jnp.zeros(1), jnp.ones(1), -1.0, 1.0, c_w, 0.1, [5, 5]).layers)

    step = 1e-6
    numerical = (total(1.5 + step) - total(1.5 - step)) / (2 * step)
    np.testing.assert_allclose(float(jax.grad(total)(1.5)), float(numerical), rtol=1e-7)
