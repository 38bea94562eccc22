"""Implicit networks: the sheet's numbers, exact kernels, a drawn network, explicit networks of the same kernel."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from deeplimits.ensembles import class_mixtures
from deeplimits.errors import NotConverged, OutsideValidity, ParameterError
from deeplimits.models.activations import polynomial
from deeplimits.theory import mixtures


def test_references_of_the_sheet():
    found = mixtures.equilibrium_coefficients("relu", 0.5, 1.0)
    assert abs(float(found.pre_activation_variance) - 1.205432927363) < 2e-12
    assert abs(float(found.mean) - 0.4380075444) < 1e-10
    stated = (0.2857142857143, 0.05481445970159, 0.09854235262449, 0.4108658547259, 0.4108658547259)
    np.testing.assert_allclose(found.conjugate, stated, rtol=2e-12)
    np.testing.assert_allclose(
        found.tangent[:4], (0.6122448979592, 0.06264509680181, 0.3378594947125, 1.214487806301), rtol=2e-12
    )

    found = mixtures.equilibrium_coefficients("tanh", 0.5, 1.0)
    np.testing.assert_allclose(
        (found.pre_activation_variance, found.conjugate.diagonal, found.conjugate.linear, found.conjugate.own),
        (1.214909508515, 0.4298190170295, 0.388211339854, 0.1627456468548), rtol=2e-12,
    )  # fmt: skip
    np.testing.assert_allclose(
        (found.tangent.linear, found.tangent.diagonal), (0.8517767019035, 1.095876833413), rtol=2e-12
    )

    # Of two roots, 1.00134 and 14.795, the one that is reached from below.
    found = mixtures.equilibrium_coefficients(polynomial(0.0, 0.7, 0.3), 0.3, 0.8)
    assert abs(float(found.pre_activation_variance) - 1.001342412499) < 2e-12
    np.testing.assert_allclose(
        (*found.conjugate[:3], found.conjugate.own),
        (0.4595545134818, 0.1217110347727, 0.1856117158837, 0.9134483853006),
        rtol=2e-12,
    )
    np.testing.assert_allclose(
        found.tangent[:4], (0.9983054085367, 0.1426858555366, 0.6527961871642, 1.814484637285), rtol=2e-12
    )


def contrasted(p, seed):
    numbers = jax.random.normal(jax.random.key(seed), (p, p))
    system = class_mixtures.contrasted_classes(numbers, jnp.asarray(3.0), jnp.asarray(1.0), jnp.asarray(0.3))
    covariances = np.asarray(system.variances)[:, :, None] * np.eye(p)
    mixture = mixtures.gaussian_mixture(system.means, covariances)
    return np.asarray(system.x), mixtures.kernel_data(system.x, system.labels, mixture=mixture)


@pytest.mark.slow
def test_equivalents_approach_the_fixed_points_in_operator_norm():
    gaps = []
    for p in (40, 160):
        found = []
        for seed in range(2):
            x, data = contrasted(p, seed)
            numbers = mixtures.equilibrium_coefficients("relu", 0.5, 1.0, data.variance)
            exact = mixtures.equilibrium_kernels("relu", 0.5, 1.0, x, mean=float(numbers.mean))
            others = [mixtures.equivalent_kernel(one, data).matrix() for one in (numbers.conjugate, numbers.tangent)]
            both = zip((exact.conjugate, exact.tangent), others, strict=True)
            found.append([np.linalg.norm(np.asarray(one - other), 2) for one, other in both])
        gaps.append(np.mean(found, axis=0))
    slopes = np.log(gaps[1] / gaps[0]) / np.log(4)
    assert np.all(np.abs(slopes + 0.55) < 0.3), gaps


def test_a_drawn_network_of_finite_width():
    """z = φ(σ_aAz + σ_bBx)/√m iterated: z·z' is the kernel, within the O(m^(−1/2)) of four draws."""
    random, m, p, n, s_a, s_b = np.random.default_rng(0), 600, 30, 5, 0.4, 1.0
    x = random.standard_normal((n, p))
    stated = mixtures.equilibrium_kernels("erf", s_a, s_b, x)
    found = []
    for _ in range(4):
        a, b, z = random.standard_normal((m, m)), random.standard_normal((m, p)), np.zeros((m, n))
        for _ in range(40):
            z = special.erf(s_a**0.5 * a @ z + s_b**0.5 * b @ x.T / p**0.5) / m**0.5
        found.append(z.T @ z)
    np.testing.assert_allclose(np.mean(found, axis=0), stated.conjugate, atol=0.06)
    assert float(stated.contraction) < 1
    assert float(stated.residual) < 1e-12


def test_kernels_of_a_smooth_activation_solve_their_equations():
    """tanh, which has no closed form, by another quadrature; points that coincide have the kernel of a point itself."""
    x = np.random.default_rng(3).standard_normal((40, 20))
    x[-1] = x[0]
    s_a, s_b = 1.2, 0.8
    found = mixtures.equilibrium_kernels("tanh", s_a, s_b, x)
    assert float(found.residual) < 1e-12
    g, theta, gram = np.asarray(found.conjugate), np.asarray(found.tangent), x @ x.T / 20
    np.testing.assert_allclose([g[0, -1], theta[0, -1]], [g[0, 0], theta[0, 0]], rtol=1e-9)
    inner, (z, w) = s_a * g + s_b * gram, np.polynomial.hermite_e.hermegauss(150)
    w = w / w.sum()
    for i, j in ((0, 1), (2, 30), (7, 7)):
        u = np.sqrt(inner[i, i]) * z[:, None]
        rest = max(inner[j, j] - inner[i, j] ** 2 / inner[i, i], 0.0)
        v = inner[i, j] / inner[i, i] * u + np.sqrt(rest) * z[None, :]
        mean, slope = (w @ (f(u) * f(v)) @ w for f in (np.tanh, lambda t: 1 - np.tanh(t) ** 2))
        np.testing.assert_allclose(g[i, j], mean, rtol=1e-7)
        np.testing.assert_allclose(theta[i, j], (mean + s_b * slope * gram[i, j]) / (1 - s_a * slope), rtol=1e-7)


def test_derivative_of_the_fixed_point():
    """By implicit differentiation, against differences."""

    def scale(s_a):
        return mixtures.equilibrium_coefficients("relu", s_a, 1.0).tangent.diagonal

    found = jax.grad(scale)(0.5)
    assert abs(float(found) - float(scale(0.5 + 1e-5) - scale(0.5 - 1e-5)) / 2e-5) < 1e-6 * abs(float(found))


def test_explicit_network_of_one_layer():
    """The sheet's Hermite coefficients (.5345224838, .3311025814, .1245899258)."""
    kernel = mixtures.equilibrium_coefficients("relu", 0.5, 1.0).conjugate
    found = mixtures.explicit_equivalent(kernel, layers=1)
    sigma = found.activations[0]
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    weights = weights / weights.sum()
    values = np.asarray(sigma.value(nodes)) * weights
    hermite = nodes, (nodes**2 - 1) / 2**0.5, (nodes**3 - 3 * nodes) / 6**0.5
    np.testing.assert_allclose([values @ one for one in hermite], (0.5345224838, 0.3311025814, 0.1245899258), atol=1e-9)
    assert not found.exact
    again = mixtures.kernel_coefficients(sigma)
    np.testing.assert_allclose(
        (again.linear, again.quadratic, again.rest),
        (kernel.linear, kernel.quadratic, kernel.diagonal - kernel.linear),
        rtol=1e-9,
    )


@pytest.mark.parametrize("which", ["conjugate", "tangent"])
def test_explicit_network_of_two_layers_has_all_four_numbers(which):
    kernel = getattr(mixtures.equilibrium_coefficients("relu", 0.5, 1.0), which)
    found = mixtures.explicit_equivalent(kernel)
    assert found.exact
    again = mixtures.deep_coefficients(found.activations).conjugate[-1]
    np.testing.assert_allclose(again[:4], kernel[:4], rtol=1e-6)
    if which == "conjugate":
        np.testing.assert_allclose(again.own, kernel.own, rtol=1e-6)


def test_kernels_of_an_implicit_and_its_explicit_network_are_close():
    """Exact kernels of both on points of a mixture; the gap falls with the dimension."""
    gaps = []
    for p in (40, 160):
        x, data = contrasted(p, 0)
        numbers = mixtures.equilibrium_coefficients("relu", 0.5, 1.0, data.variance)
        explicit = mixtures.explicit_equivalent(numbers.conjugate, float(data.variance))
        one = class_mixtures.deep_kernels(explicit.activations, x, data.variance).conjugate
        other = class_mixtures.equilibrium_states(
            "relu", jnp.asarray(0.5), jnp.asarray(1.0), x, data.variance
        ).conjugate
        gaps.append(np.linalg.norm(one - other, 2) / np.linalg.norm(other, 2))
    assert gaps[1] < 0.7 * gaps[0], gaps
    assert gaps[1] < 0.25


def kernel(**changed):
    found = mixtures.equilibrium_coefficients("relu", 0.5, 1.0).conjugate
    return found._replace(**{name: jnp.asarray(value) for name, value in changed.items()})


@pytest.mark.parametrize(("call", "error", "sentence"), [
    (lambda: mixtures.equilibrium_coefficients("relu", 2.5, 1.0), (OutsideValidity, NotConverged), "no "),
    (
        lambda: mixtures.equilibrium_coefficients("relu", 2.01, 1.0),
        (OutsideValidity, NotConverged), "no stable fixed point",
    ),
    (
        lambda: mixtures.equilibrium_coefficients(polynomial(0.0, 0.7, 0.3), 0.9, 3.0),
        (OutsideValidity, NotConverged), "no fixed point",
    ),
    (lambda: mixtures.equilibrium_coefficients("sign", 0.5, 1.0), OutsideValidity, "jumps"),
    (lambda: mixtures.equilibrium_coefficients("relu", -0.5, 1.0), ParameterError, "recurrent_variance = -0.5"),
    (lambda: mixtures.equilibrium_coefficients("relu", 0.5, 0.0), ParameterError, "input_variance = 0"),
    (lambda: mixtures.equilibrium_kernels("relu", 2.5, 1.0, np.eye(3)), OutsideValidity, "the certificate"),
    (lambda: mixtures.equilibrium_kernels("relu", 0.5, 1.0, [[np.nan, 1.0]]), ParameterError, "x"),
    (lambda: mixtures.explicit_equivalent(kernel(diagonal=0.3), layers=1), OutsideValidity, "one layer cannot"),
    (lambda: mixtures.explicit_equivalent(kernel(), layers=3), OutsideValidity, "layers = 3"),
    (lambda: mixtures.explicit_equivalent(kernel(quadratic=-1.0)), OutsideValidity, "none negative"),
])  # fmt: skip
def test_what_does_not_exist_is_said(call, error, sentence):
    with pytest.raises(error) as raised:
        call()
    assert sentence in str(raised.value), str(raised.value)
