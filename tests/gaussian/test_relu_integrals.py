"""ReLU's integrals for covariances of every rank, against an integral over the sphere or over the rectified fields."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ndtr

from deeplimits.theory.gaussian.fields import relu
from deeplimits.theory.two_layer.overlaps.integrals import activation_integrals

# One of every class of patterns (a, b, c, d) under a ↔ b and c ↔ d.
PATTERNS = sorted({(*sorted(i[:2]), *sorted(i[2:])) for i in itertools.product(range(4), repeat=4)})
NODES, WEIGHTS = np.polynomial.legendre.leggauss(48)


@pytest.fixture(scope="module")
def closed_forms():
    """I₄ in all patterns, from the covariance."""
    index = jnp.asarray(PATTERNS)
    return jax.jit(lambda c: jax.vmap(lambda i: relu.i4(c[i][:, i]))(index))


def over_the_sphere(vectors, a, b, p, q):
    """E 1_a 1_b relu_p relu_q of the fields ⟨v_i, g⟩, g ~ N(0, I₃): a radius times an integral over the sphere.

    At a fixed azimuth every condition bounds the polar angle from one side and the integral over it is elementary;
    over the azimuth it is split where two great circles meet and where one turns fastest.
    """
    inside = vectors[list(dict.fromkeys((a, b, p, q)))]
    inside = inside / np.linalg.norm(inside, axis=1, keepdims=True)
    # Of many frames, the one in which no great circle passes close to the pole.
    frames = np.linalg.qr(np.random.default_rng(5).standard_normal((60, 3, 3)))[0]
    frame = frames[np.abs(np.einsum("fj,nj->fn", frames[:, 2], inside)).min(axis=1).argmax()]
    inside, first, second = inside @ frame.T, frame @ vectors[p], frame @ vectors[q]
    meeting = [np.cross(x, y) for x, y in itertools.combinations(inside, 2)]
    meeting = [np.arctan2(c[1], c[0]) for c in meeting if np.linalg.norm(c) > 1e-12]
    turning = np.arctan2(inside[:, 1], inside[:, 0])
    cuts = [f + turn for f in meeting for turn in (0, np.pi)] + [f + k * np.pi / 2 for f in turning for k in range(4)]
    cuts = np.unique(np.concatenate([[-np.pi, np.pi], (np.array(cuts) + np.pi) % (2 * np.pi) - np.pi]))
    pieces = 6
    edges = np.concatenate([np.linspace(*ends, pieces + 1)[:-1] for ends in itertools.pairwise(cuts)] + [[np.pi]])
    half = np.diff(edges)[:, None] / 2
    phi = edges[:-1, None] + half * (1 + NODES)
    cos, sin = np.cos(phi), np.sin(phi)
    low, high = np.zeros_like(phi), np.full_like(phi, np.pi)
    for x in inside:
        across = x[0] * cos + x[1] * sin
        if x[2] > 0:
            high = np.minimum(high, np.arctan2(x[2], -across))
        else:
            low = np.maximum(low, np.arctan2(-x[2], across))
    high = np.maximum(high, low)
    across = [x[0] * cos + x[1] * sin for x in (first, second)]

    def primitive(t):
        c, s = np.cos(t), np.sin(t)
        mixed = first[2] * across[1] + second[2] * across[0]
        return -first[2] * second[2] * c**3 / 3 + mixed * s**3 / 3 + across[0] * across[1] * (c**3 / 3 - c)

    return 3 / (4 * np.pi) * np.sum(half * WEIGHTS * (primitive(high) - primitive(low)))


def rotated(rng, vectors):
    return vectors @ np.linalg.qr(rng.standard_normal((3, 3)))[0]


def in_a_plane(rng):
    angles = rng.uniform(-np.pi, np.pi, 4)
    return rotated(rng, rng.uniform(0.3, 2, (4, 1)) * np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1))


def with_a_pair(rng, vectors, sign):
    i, j = rng.permutation(4)[:2]
    vectors[i] = sign * rng.uniform(0.5, 2) * vectors[j]
    return vectors


def three_in_a_plane(rng):
    vectors = rng.standard_normal((4, 3))
    i, j, k = rng.permutation(4)[:3]
    vectors[i] = rng.uniform(-1, 1) * vectors[j] + rng.uniform(-1, 1) * vectors[k]
    return vectors


ARRANGEMENTS = {
    "rank 1": lambda rng: rng.standard_normal((4, 1)) * rng.standard_normal(3),
    "rank 2": in_a_plane,
    "rank 2, coincident": lambda rng: with_a_pair(rng, in_a_plane(rng), 1),
    "rank 2, antipodal": lambda rng: with_a_pair(rng, in_a_plane(rng), -1),
    "rank 3": lambda rng: rng.standard_normal((4, 3)),
    "rank 3, coincident": lambda rng: with_a_pair(rng, rng.standard_normal((4, 3)), 1),
    "rank 3, antipodal": lambda rng: with_a_pair(rng, rng.standard_normal((4, 3)), -1),
    "rank 3, three in a plane": three_in_a_plane,
    "nearly rank 2": lambda rng: in_a_plane(rng) + 1e-6 * rng.standard_normal((4, 3)),
    "nearly coincident": lambda rng: (
        with_a_pair(rng, rng.standard_normal((4, 3)), 1) + 1e-5 * rng.standard_normal((4, 3))
    ),
    "nearly antipodal": lambda rng: (
        with_a_pair(rng, rng.standard_normal((4, 3)), -1) + 1e-5 * rng.standard_normal((4, 3))
    ),
    "three nearly in a plane": lambda rng: three_in_a_plane(rng) + 1e-6 * rng.standard_normal((4, 3)),
}


@pytest.mark.parametrize("arrangement", list(ARRANGEMENTS))
def test_four_fields_of_rank_at_most_three(closed_forms, arrangement):
    rng = np.random.default_rng(0)
    for _ in range(2):
        vectors = ARRANGEMENTS[arrangement](rng)
        expected = np.array([over_the_sphere(vectors, *pattern) for pattern in PATTERNS])
        lengths = np.linalg.norm(vectors, axis=1)
        scale = np.array([lengths[p] * lengths[q] for _, _, p, q in PATTERNS])
        found = np.asarray(closed_forms(jnp.asarray(vectors @ vectors.T)))
        assert (np.abs(found - expected) / scale).max() < 1e-10


@pytest.mark.parametrize("arrangement", ["rank 1", "rank 2", "rank 3", "rank 3, coincident", "rank 3, antipodal"])
def test_two_and_three_fields(arrangement):
    integrals = activation_integrals("relu")
    rng = np.random.default_rng(1)
    vectors = ARRANGEMENTS[arrangement](rng)
    # λ_b = relu(λ_b) − relu(−λ_b)
    signed = np.concatenate([vectors, -vectors])
    c = vectors @ vectors.T
    for a, b, d in itertools.product(range(4), repeat=3):
        expected = over_the_sphere(signed, a, a, b, d) - over_the_sphere(signed, a, a, b + 4, d)
        assert abs(float(integrals.i3(c, a, b, d)) - expected) < 1e-9
        if d == b:
            assert abs(float(integrals.i2(c, a, b)) - over_the_sphere(vectors, a, b, a, b)) < 1e-9


def bivariate(h, k, rho):
    """P(X < h, Y < k) by Drezner's integral over the angle."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    angle = np.arcsin(rho) * (nodes + 1) / 2
    kernel = np.exp(-(h**2 + k**2 - 2 * h * k * np.sin(angle[:, None, None])) / (2 * np.cos(angle[:, None, None]) ** 2))
    integral = np.tensordot(weights, kernel, axes=1) * np.arcsin(rho) / 2
    return ndtr(h) * ndtr(k) + integral / (2 * np.pi)


def by_conditioning(c, a, b, p, q):
    """E 1_a 1_b relu_p relu_q: integrate over the rectified fields the probability of the others given them."""
    indicators = [x for x in dict.fromkeys((a, b)) if x not in (p, q)]
    nodes, weights = np.polynomial.legendre.leggauss(160)
    rectified = [p] if p == q else [p, q]
    axes = [np.sqrt(c[x, x]) * 11 * (nodes + 1) / 2 for x in rectified]
    measures = [np.sqrt(c[x, x]) * 11 / 2 * weights for x in rectified]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1)
    block = c[np.ix_(rectified, rectified)]
    density = np.exp(-np.einsum("...i,ij,...j", grid, np.linalg.inv(block), grid) / 2)
    density /= np.sqrt(np.linalg.det(2 * np.pi * block))
    probability = np.ones(grid.shape[:-1])
    if indicators:
        gain = c[np.ix_(indicators, rectified)] @ np.linalg.inv(block)
        mean = grid @ gain.T
        left = c[np.ix_(indicators, indicators)] - gain @ c[np.ix_(rectified, indicators)]
        scaled = mean / np.sqrt(np.diag(left))
        if len(indicators) == 1:
            probability = ndtr(scaled[..., 0])
        else:
            rho = left[0, 1] / np.sqrt(left[0, 0] * left[1, 1])
            shape = scaled.shape[:-1] if scaled.ndim == 3 else (scaled.shape[0], 1)
            probability = bivariate(scaled[..., 0].reshape(shape), scaled[..., 1].reshape(shape), rho).reshape(
                grid.shape[:-1]
            )
    product = grid[..., 0] ** 2 if p == q else grid[..., 0] * grid[..., 1]
    total = density * product * probability
    for measure in reversed(measures):
        total = total @ measure
    return total


def test_four_fields_of_rank_four(closed_forms):
    rng = np.random.default_rng(2)
    reference = np.array([[1, 0.3, 0.2, 0.1], [0.3, 0.8, -0.1, 0.4], [0.2, -0.1, 1.2, 0.5], [0.1, 0.4, 0.5, 0.9]])
    draws = [w @ w.T / 8 for w in rng.standard_normal((2, 4, 8))]
    for c in (reference, *draws):
        found = np.asarray(closed_forms(jnp.asarray(c)))
        expected = np.array([by_conditioning(c, *pattern) for pattern in PATTERNS])
        assert np.abs(found - expected).max() < 1e-10


@pytest.mark.slow
def test_gradients_are_finite_for_every_rank(closed_forms):
    """Equations are linearized at perfect learning, where student and teacher coincide."""
    rng = np.random.default_rng(3)
    slope = jax.jit(jax.jacrev(lambda c: closed_forms(c).sum()))
    for arrangement in ("rank 1", "rank 2", "rank 3", "rank 3, coincident", "rank 3, antipodal"):
        vectors = ARRANGEMENTS[arrangement](rng)
        assert np.all(np.isfinite(slope(jnp.asarray(vectors @ vectors.T)))), arrangement


def test_derivative_of_four_fields(closed_forms):
    rng = np.random.default_rng(4)
    w, direction = rng.standard_normal((4, 6)), rng.standard_normal((4, 4))
    c, direction = jnp.asarray(w @ w.T), jnp.asarray(direction + direction.T)
    _, tangent = jax.jvp(closed_forms, (c,), (direction,))
    difference = (closed_forms(c + 1e-5 * direction) - closed_forms(c - 1e-5 * direction)) / 2e-5
    np.testing.assert_allclose(tangent, difference, atol=1e-8)
