"""Activations of few levels with given moments: the sheet's numbers, and the moments by another road."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.theory import mixtures


def cos_sin(u):
    return jnp.cos(u) + jnp.sin(u)


def moments(jumps, thresholds, tau):
    """E σ', E σ'', E[σ'² + σσ''] and variance of a centred staircase, in Stein's form, interval by interval."""
    levels = np.concatenate([[0.0], np.cumsum(jumps)])
    ends = np.concatenate([[-12 * tau], thresholds, [12 * tau]])

    def mean(f):
        return sum(
            integrate.quad(lambda u, v=v: f(u / tau, v) * stats.norm.pdf(u, scale=tau), a, b, epsabs=1e-14)[0]
            for a, b, v in zip(ends[:-1], ends[1:], levels, strict=True)
        )

    middle = mean(lambda z, v: v)
    return np.array([
        mean(lambda z, v: z * v) / tau, mean(lambda z, v: (z**2 - 1) * v) / tau**2,
        mean(lambda z, v: (z**2 - 1) * (v - middle) ** 2) / (2 * tau**2), mean(lambda z, v: (v - middle) ** 2),
    ])  # fmt: skip


@pytest.mark.parametrize(("activation", "level", "stated", "rest"), [
    ("relu", 1.0, (0.53859986316, 1.3754257617), 0.15449880765),
    ("tanh", 1.0, (-0.74238806043, 0.74238806043), 0.0909730870),
    ("erf", 1.0, (-0.63676142166, 0.63676142166), None),
    (cos_sin, 1.5, (-1.6118545906, -0.77468000311), 0.31917179118),
])  # fmt: skip
def test_ternary_references(activation, level, stated, rest):
    found = mixtures.ternary_match(activation, level=level)
    places = np.array(found.thresholds)
    if activation is cos_sin:
        # E σ'' < 0 is the mirror of the sheet's solution.
        np.testing.assert_allclose(np.sort(np.abs(places)), (0.77468000311, 1.6118545906), atol=2e-9)
    else:
        np.testing.assert_allclose(places, stated, atol=2e-9)
    if rest is not None:
        assert abs(found.rest - rest) < 1e-9
    assert found.residual < 1e-9


@pytest.mark.parametrize(("activation", "variance"), [("relu", 2.3), ("softplus", 1.0), (cos_sin, 2.3)])
def test_matches_have_the_moments_they_promise(activation, variance):
    target, tau = mixtures.layer_moments(activation, variance), variance**0.5
    ternary = mixtures.ternary_match(activation, variance)
    own = moments(ternary.jumps, ternary.thresholds, tau)
    np.testing.assert_allclose(own[:2], (target.slope, target.curvature), atol=1e-8)
    np.testing.assert_allclose((ternary.variance, ternary.rest), (own[3], own[3] - variance * own[0] ** 2), atol=1e-9)
    deep = mixtures.staircase_match(activation, variance, levels=3)
    own = moments(deep.jumps, deep.thresholds, tau)
    np.testing.assert_allclose(own[:3], (target.slope, target.curvature, target.energy), atol=1e-8)


def test_the_level_of_least_rest():
    """ReLU: no level leaves less than 0.15367, at 1.035."""
    found = mixtures.ternary_match("relu")
    assert abs(found.rest - 0.15367) < 1e-5
    assert abs(found.jumps[0] - 1.035) < 2e-3
    assert all(mixtures.ternary_match("relu", level=r).rest >= found.rest - 1e-9 for r in (0.99, 1.02, 1.05, 1.2))


def test_symmetric_ternary():
    """The closed form, and the largest share .80983 of τd₁ at s = .612."""
    for d1, stated in ((0.3668791643624, 0.74238806043), (0.4244131815784, 0.63676142166)):
        assert abs(mixtures.symmetric_ternary(d1) - stated) < 1e-10
    places = np.linspace(0.3, 1.0, 701)
    share = (2 * stats.norm.pdf(places)) ** 2 / (2 * stats.norm.sf(places))
    assert abs(share.max() - 0.80983) < 1e-5
    assert abs(places[np.argmax(share)] - 0.612) < 1e-3
    with pytest.raises(OutsideValidity, match="too low"):
        mixtures.symmetric_ternary(0.9)


def test_two_level_reference():
    found = mixtures.two_level_match("relu")
    # The sheet's (2.4087430757, −2.2125334509, −0.99953093852) is one of the mirrors.
    np.testing.assert_allclose(abs(found.jumps[0]), 2.4087430757, atol=1e-8)
    np.testing.assert_allclose(np.sort(np.abs(found.thresholds)), (0.99953093852, 2.2125334509), atol=1e-8)
    assert abs(found.variance - 0.72056) < 1e-5
    target = mixtures.layer_moments("relu", 1.0)
    np.testing.assert_allclose(
        moments(found.jumps, found.thresholds, 1.0)[:3], (target.slope, target.curvature, target.energy), atol=1e-8
    )


def test_more_levels_match_the_variance_too():
    target = mixtures.layer_moments("relu", 1.0)
    found = mixtures.staircase_match("relu", levels=10, spread=True)
    own = moments(found.jumps, found.thresholds, 1.0)
    np.testing.assert_allclose(own, (target.slope, target.curvature, target.energy, target.variance), atol=1e-8)


def test_layers_behind_a_compressed_one_see_another_scale():
    """Two layers with the numbers of the original, although the first compressed one has another variance."""
    original = mixtures.deep_coefficients(["relu", "tanh"]).conjugate
    first = mixtures.staircase_match("relu", levels=3)
    wide = float(original[0].diagonal)
    second = mixtures.staircase_match("tanh", wide, levels=3, scale=(first.variance / wide) ** 0.5)
    found = mixtures.deep_coefficients([first.activation, second.activation]).conjugate
    np.testing.assert_allclose(found[-1][:3], original[-1][:3], atol=1e-8)
    np.testing.assert_allclose(found[-1].own, original[-1].own, atol=1e-8)


def test_kernels_of_matched_features_agree():
    """Random features of ReLU and of its ternary twin, λ adapted: the same kernel up to the drawing of neurons."""
    random = np.random.default_rng(0)
    n, p, neurons = 100, 150, 20_000
    y = 1 - 2 * (np.arange(n) % 2)
    x = (random.standard_normal((n, p)) + y[:, None] * 1.5 * np.eye(p)[0]) / p**0.5
    match = mixtures.ternary_match("relu", level=1.0)
    sparse = np.sign(random.standard_normal((neurons, p))) * (random.random((neurons, p)) < 0.5) * 2**0.5
    u, v = random.standard_normal((neurons, p)) @ x.T, sparse @ x.T
    features = np.maximum(u, 0.0), sum(one * (v > s) for one, s in zip(match.jumps, match.thresholds, strict=True))
    kernels = [(part - part.mean()).T @ (part - part.mean()) / neurons for part in features]
    kernels[0] += (match.rest - float(mixtures.kernel_coefficients("relu").rest)) * np.eye(n)
    take = np.eye(n) - 1 / n
    gap, size = (np.linalg.norm(take @ one @ take, 2) for one in (kernels[0] - kernels[1], kernels[0]))
    assert gap < 0.15 * size


@pytest.mark.parametrize(("call", "error", "sentence"), [
    (lambda: mixtures.ternary_match("relu", 2.0, level=1.0), OutsideValidity, "level = 1: no thresholds"),
    (lambda: mixtures.ternary_match(cos_sin, level=1.0), OutsideValidity, "level = 1: no thresholds"),
    (lambda: mixtures.ternary_match("abs"), OutsideValidity, "E σ' = 0"),
    (lambda: mixtures.ternary_match("relu", -1.0), ParameterError, "variance = -1"),
    (lambda: mixtures.ternary_match("relu", level=0.0), ParameterError, "level = 0"),
    (lambda: mixtures.two_level_match("tanh"), OutsideValidity, "misses them by"),
    (lambda: mixtures.staircase_match("relu", levels=1), ParameterError, "levels = 1"),
    (lambda: mixtures.staircase_match("relu", levels=4, spread=True), OutsideValidity, "misses them by"),
])  # fmt: skip
def test_what_is_impossible_is_said(call, error, sentence):
    with pytest.raises(error) as raised:
        call()
    assert sentence in str(raised.value), str(raised.value)
