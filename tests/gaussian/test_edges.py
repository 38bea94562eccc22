"""Digits of Gaussian expectations where closed forms cancel."""

import jax
import mpmath as mp
import pytest

from deeplimits.theory.gaussian import dual


def _arc_cosine(power, rho):
    """J_2 and J_3 of Cho and Saul, with more digits than cancel."""
    theta = mp.acos(rho)
    s, c = mp.sin(theta), mp.cos(theta)
    if power == 2:
        return 3 * s * c + (mp.pi - theta) * (1 + 2 * c**2)
    return 15 * s - 11 * s**3 + (mp.pi - theta) * (9 * c + 6 * c**3)


@pytest.mark.parametrize("power", [2, 3])
@pytest.mark.parametrize("above", [1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.5, 0.99, 1.01])
def test_powers_of_relu_of_nearly_opposite_fields_keep_their_digits(power, above):
    rho = -1 + above
    with mp.workdps(120):
        exact = float(_arc_cosine(power, mp.mpf(rho)) / (2 * mp.pi))
        # d/dρ E u₊^k v₊^k = k² J_{k−1}/2π
        slope = float(mp.diff(lambda r: _arc_cosine(power, r), mp.mpf(rho), h=mp.mpf(above) / 10**20) / (2 * mp.pi))
    name = f"relu_power({power})"
    assert float(dual(name, 1.0, 1.0, rho)) == pytest.approx(exact, rel=3e-13, abs=0)
    assert float(jax.grad(lambda c: dual(name, 1.0, 1.0, c))(rho)) == pytest.approx(slope, rel=3e-13, abs=0)
