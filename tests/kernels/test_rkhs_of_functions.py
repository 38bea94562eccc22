"""Norms and inner products in the Hilbert space of a kernel, against integrals of derivatives."""

import jax.numpy as jnp
import numpy as np
import pytest

from deeplimits.errors import ParameterError
from deeplimits.theory.kernels import rkhs_inner_product, rkhs_norm_of_function, rkhs_squared_norm


@pytest.mark.parametrize(("function", "exact"), [(lambda x: x, 1.0), (lambda x: x * (1 - x), 1 / 3)])
def test_the_kernel_of_brownian_motion(function, exact):
    # ‖f‖² = ∫f'², for a polygon Σ (Δf)²/Δx
    points = np.sort(np.random.default_rng(0).uniform(0.01, 1.0, 40))
    points[-1] = 1.0
    values = function(np.concatenate([[0.0], points]))
    polygon = np.sum(np.diff(values) ** 2 / np.diff(np.concatenate([[0.0], points])))
    found = rkhs_norm_of_function(jnp.minimum, function, points)
    assert float(found.squared_norm) == pytest.approx(polygon, rel=1e-9)
    assert float(found.squared_norm) <= exact * (1 + 1e-12)
    fine = rkhs_norm_of_function(jnp.minimum, function, np.arange(1, 201) / 200)
    assert float(fine.squared_norm) == pytest.approx(exact, rel=1e-4)
    assert 0 <= float(fine.gained) + 1e-12 < 2e-4


def test_a_function_outside_the_space_gains_with_every_point():
    # A step has no square-integrable derivative: its norm doubles with the points.
    step = lambda x: jnp.where(x > 0.5, 1.0, 0.0)  # noqa: E731
    found = rkhs_norm_of_function(jnp.minimum, step, np.arange(1, 65) / 64)
    assert float(found.gained) == pytest.approx(float(found.squared_norm) / 2, rel=1e-9)


def test_inner_products_reproduce():
    rng = np.random.default_rng(1)
    points = rng.standard_normal((5, 2))
    kernel = np.exp(-np.sum((points[:, None] - points[None]) ** 2, axis=-1) / 2)
    alpha, beta = rng.standard_normal(5), rng.standard_normal(5)
    # ⟨f, K(x_j, ·)⟩ = f(x_j)
    for j in range(5):
        assert float(rkhs_inner_product(kernel, alpha, np.eye(5)[j])) == pytest.approx(kernel[j] @ alpha, rel=1e-12)
    polar = [float(rkhs_squared_norm(kernel, alpha + sign * beta)) for sign in (1, -1)]
    assert float(rkhs_inner_product(kernel, alpha, beta)) == pytest.approx((polar[0] - polar[1]) / 4, rel=1e-10)


def test_what_is_no_function_or_kernel_is_refused():
    for call in (
        lambda: rkhs_norm_of_function("min", jnp.sin, [0.5, 1.0]),
        lambda: rkhs_norm_of_function(jnp.minimum, jnp.sin, [1.0]),
        lambda: rkhs_norm_of_function(jnp.minimum, lambda x: 1.0, [0.5, 1.0]),
        lambda: rkhs_inner_product(np.eye(2), [1.0], [1.0, 2.0]),
        lambda: rkhs_inner_product(np.eye(2), [1.0, float("nan")], [1.0, 2.0]),
    ):
        with pytest.raises(ParameterError):
            call()
