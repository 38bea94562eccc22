"""Catapults and the edge of stability, against reference values, mpmath and descents written out."""

import mpmath
import numpy as np
import pytest

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.theory import landscape


@pytest.mark.parametrize(
    ("start", "steps", "end"),
    [((3, 0.01), 5, (0.711620714559, 0.11545354471731)), ((1.5, 0.01), 100, (1.4671989016292, None))]
)  # fmt: skip
def test_reference_values_of_the_reduced_recursion(start, steps, end):
    path = landscape.reduced_catapult(*start, steps)
    np.testing.assert_allclose(path.kernel[-1], end[0], rtol=1e-12)
    if end[1] is not None:
        np.testing.assert_allclose(path.energy[-1], end[1], rtol=1e-12)


def test_reference_values_with_a_label_and_at_rest():
    path = landscape.catapult_path(1.0, 1.0, 0.5, 0.01, 2.5, 10)
    np.testing.assert_allclose([path.output[-1], path.kernel[-1]], [0.511838613988, 0.52230401865807], rtol=1e-11)
    np.testing.assert_allclose(landscape.catapult_end(3.0, 1e-4), 0.22267832875809, rtol=1e-12)
    np.testing.assert_allclose(landscape.learning_rate_phases(0.8), [2.5, 5.0])
    np.testing.assert_allclose(landscape.learning_rate_phases(8.0, samples=10), [2.5, 5.0])


def test_the_recursion_against_descent_in_forty_digits():
    """Two-layer network of width three, in mpmath, parameter by parameter."""
    mpmath.mp.dps = 40
    u = [mpmath.mpf(n) / 7 for n in (9, -4, 5)]
    v = [mpmath.mpf(n) / 7 for n in (6, 8, -3)]
    y, eta = mpmath.mpf("0.3"), mpmath.mpf("0.9")
    root = mpmath.sqrt(3)
    outputs, kernels = [], []
    for _ in range(30):
        z = mpmath.fsum(a * b for a, b in zip(u, v, strict=True)) / root
        outputs.append(z)
        kernels.append(mpmath.fsum(a**2 + b**2 for a, b in zip(u, v, strict=True)) / 3)
        pull = eta * (z - y) / root
        u, v = [a - pull * b for a, b in zip(u, v, strict=True)], [b - pull * a for a, b in zip(u, v, strict=True)]
    path = landscape.catapult_path(float(outputs[0]), float(kernels[0]), 0.3, 1 / 3, 0.9, 29)
    np.testing.assert_allclose(path.output, np.array(outputs, float), rtol=1e-12)
    np.testing.assert_allclose(path.kernel, np.array(kernels, float), rtol=1e-12)


def test_four_is_the_threshold_at_every_width():
    random = np.random.default_rng(0)
    for a in random.uniform(0.1, 8, 200):
        b = a**2 / 4 * random.uniform(0.01, 1)
        for _ in range(2000):
            a_next, b = a + b * (a - 4), b * (1 - a + b) ** 2
            if not b < 1e6:
                break
            a, before = a_next, a
            assert a <= before or before > 4
        assert (b < 1e6) == (a < 4)
    with pytest.raises(OutsideValidity, match="not below 4"):
        landscape.catapult_end(4.5, 0.01)
    with pytest.raises(OutsideValidity, match="energy exceeds"):
        landscape.catapult_end(1.0, 0.5)


def test_two_and_four_on_a_grid_of_learning_rates():
    """A network of width 2,000 trained at η = c/λ: its loss rises from c = 2 on, and it diverges from c = 4 on."""
    u0, v0 = np.random.default_rng(0).standard_normal((2, 2000))
    root = np.sqrt(2000)
    kernel, output = (u0 @ u0 + v0 @ v0) / 2000, u0 @ v0 / root
    phases = landscape.learning_rate_phases(kernel)
    np.testing.assert_allclose([float(one) for one in phases], [2 / kernel, 4 / kernel])
    for c in np.arange(0.3, 5.0, 0.25):
        u, v, losses = u0, v0, []
        for _ in range(250):
            z = u @ v / root
            losses.append(z**2)
            if not losses[-1] < 1e8:
                break
            pull = c / kernel * z / root
            u, v = u - pull * v, v - pull * u
        assert (max(losses) > 1.01 * losses[0]) == (c > 2)
        assert (losses[-1] > 1e8) == (c > 4)
        if c < 4:
            end = landscape.catapult_end(c, (c * output / kernel) ** 2 / 2000)
            np.testing.assert_allclose(c / kernel * (u @ u + v @ v) / 2000, float(end), rtol=1e-6)
            assert end < 2


def test_the_lazy_kernel_change_is_the_first_order():
    for a in (0.4, 1.3, 1.9):
        change = [float(landscape.catapult_end(a, b) - a) / b for b in (1e-5, 1e-6)]
        first = float(landscape.lazy_kernel_change(a, 1.0))
        np.testing.assert_allclose(change[1], first, rtol=1e-4)
        np.testing.assert_allclose((change[0] - first) / (change[1] - first), 10, rtol=0.02)


@pytest.mark.parametrize(("method", "threshold"), [("gd", 20), ("heavy-ball", 38), ("nesterov", 13.571428571429)])
def test_thresholds_against_companion_matrices(method, threshold):
    beta, eta = 0.9, 0.1
    np.testing.assert_allclose(landscape.stability_threshold(eta, method=method, momentum=beta), threshold, rtol=1e-12)
    for h in (0.3, 5.0, 13.0, 14.0, 21.0, 37.0, 45.0):
        k = 1 - eta * h
        matrix = {"gd": [[k, 0], [1, 0]], "heavy-ball": [[k + beta, -beta], [1, 0]],
                  "nesterov": [[(1 + beta) * k, -beta * k], [1, 0]]}[method]  # fmt: skip
        radius = np.max(np.abs(np.linalg.eigvals(np.array(matrix))))
        np.testing.assert_allclose(landscape.growth_factor(h, eta, method=method, momentum=beta), radius, rtol=1e-9)
        assert (radius < 1) == (h < threshold)


def test_the_product_of_two_numbers():
    end = landscape.product_descent(3.0, 0.1, 0.2, 2000)
    np.testing.assert_allclose(0.2 * end.sharpness, 1.748955786715, rtol=1e-11)
    u, v = 3.0, 0.1
    for _ in range(200_000):
        u, v = u - 1e-4 * (u * v - 1) * v, v - 1e-4 * (u * v - 1) * u
    flow = landscape.product_flow(3.0, 0.1)
    np.testing.assert_allclose([u, v], [flow.u, flow.v], rtol=1e-3)
    np.testing.assert_allclose(flow.u * flow.v, 1, rtol=1e-14)
    np.testing.assert_allclose(flow.u**2 - flow.v**2, 8.99, rtol=1e-14)
    # Nearly balanced, and from the other side of the saddle
    np.testing.assert_allclose(landscape.product_flow(-1e-3, 2e-8).u, -1, rtol=1e-6)
    with pytest.raises(OutsideValidity, match="saddle"):
        landscape.product_flow(1.0, -1.0)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: landscape.catapult_path(1.0, -1.0, 0.0, 0.1, 1.0, 3), "kernel"),
        (lambda: landscape.catapult_path(1.0, 1.0, 0.0, 0.0, 1.0, 3), "weight"),
        (lambda: landscape.catapult_path(float("nan"), 1.0, 0.0, 0.1, 1.0, 3), "output"),
        (lambda: landscape.catapult_path(1.0, 1.0, 0.0, 0.1, 1.0, -3), "steps"),
        (lambda: landscape.stability_threshold(0.1, method="adam"), "method"),
        (lambda: landscape.stability_threshold(0.1, method="nesterov", momentum=1.0), "momentum"),
        (lambda: landscape.learning_rate_phases(0.0), "kernel"),
        (lambda: landscape.lazy_kernel_change(2.5, 0.1), "kernel"),
        (lambda: landscape.product_flow([1.0, 2.0], [1.0]), "v has shape"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(call, name):
    with pytest.raises(ParameterError, match=name):
        call()
