"""Finitely many particles, and students that have nearly learnt, against mpmath and simulations."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest

from deeplimits.ensembles.mean_field_particles import langevin_particles
from deeplimits.errors import DeeplimitsError, OutsideValidity, ParameterError
from deeplimits.models.committees import Task
from deeplimits.theory.two_layer import mean_field, overlaps


def test_langevin_particles_in_three_dimensions():
    """Φ = ⟨θ, x⟩ on whitened inputs: every coordinate is the linear neuron in closed form, to O(ε) and by chance."""
    ridge, beta, step, steps, p = 0.5, 10.0, 0.01, 70, 4000
    teacher = np.array([2.0, -1.0, 0.0])
    x = np.sqrt(3) * np.concatenate([np.eye(3), -np.eye(3)])
    start = np.random.default_rng(0).normal(size=(p, 3))
    found = langevin_particles(
        jax.random.key(1), lambda t, at: t @ at, x, x @ teacher, start, [steps],
        step=step, ridge=ridge, inverse_temperature=beta,
    )  # fmt: skip
    end = np.asarray(found.particles[0])
    for axis, target in enumerate(teacher):
        law = mean_field.noisy_linear_neuron(
            mean_field.Gaussian(jnp.asarray(start[:, axis].mean()), jnp.asarray(start[:, axis].var())),
            step * steps, target, ridge, beta,
        )  # fmt: skip
        mean, variance = float(law.mean), float(law.variance)
        assert end[:, axis].mean() == pytest.approx(mean, abs=5 * np.sqrt(variance / p) + step)
        assert end[:, axis].var() == pytest.approx(variance, abs=variance * (5 * np.sqrt(2 / p) + 2 * step))
    risk = np.sum((end.mean(axis=0) - teacher) ** 2) / 2
    assert float(found.risk[0]) == pytest.approx(risk, rel=1e-12)


def test_langevin_particles_refuse():
    x = np.ones((2, 1))
    ok = {"step": 0.1}
    with pytest.raises(DeeplimitsError, match="run away"):
        langevin_particles(jax.random.key(0), lambda t, at: t @ at, x, np.zeros(2), np.ones((2, 1)), [5000], step=9.0)
    for change in ({"step": -1.0}, {"inverse_temperature": 0.0}, {"ridge": np.nan}):
        with pytest.raises(ParameterError):
            langevin_particles(
                jax.random.key(0), lambda t, at: t @ at, x, np.ones(2), np.ones((2, 1)), [1], **ok | change
            )
    with pytest.raises(ParameterError, match="one number"):
        langevin_particles(jax.random.key(0), lambda t, at: t * at, x, np.ones(2), np.ones((2, 1)), [1], **ok)


def test_bound_of_propagation_of_chaos():
    """Particles beside independent copies with the same noise, ∇U = θ', so that L = 1 + λ and s² = v(τ) ≤ 1."""
    rng, ridge, beta, c, h, steps, p, runs = np.random.default_rng(2), 0.2, 4.0, 1.0, 0.01, 100, 50, 400
    one = rng.normal(size=(runs, p))
    other, mean = one.copy(), 0.0
    for _ in range(steps):
        noise = np.sqrt(2 * h / beta) * rng.normal(size=(runs, p))
        one = one + h * (c - one.mean(axis=1, keepdims=True) - ridge * one) + noise
        other = other + h * (c - mean - ridge * other) + noise
        mean += h * (c - (1 + ridge) * mean)
    apart = np.sqrt(np.mean((one - other) ** 2))
    # v ≤ max(v₀, 1/(βλ)) = 1.25
    bound = float(mean_field.chaos_bound(1.0, p, lipschitz=1 + ridge, spread=1.25**0.5))
    assert apart < bound < 6 * apart
    assert float(mean_field.chaos_bound(1.0, 4 * p, lipschitz=1 + ridge, spread=1.25**0.5)) == pytest.approx(bound / 2)
    # Steps: √ε by the noise, on top
    coarse = mean_field.chaos_bound(1.0, 1e12, lipschitz=1.0, spread=0.0, step=1e-4, inverse_temperature=2.0)
    assert float(coarse) == pytest.approx(np.expm1(1.0) * 1e-2, rel=1e-6)


@pytest.mark.parametrize("size", [1e-6, 1e-9])
def test_risk_of_students_that_have_nearly_learnt(size):
    """Against fifty digits of Saad and Solla's arcsines, where Ω in double precision gives 0 or −3e-15."""
    rng = np.random.default_rng(4)
    teacher, change = rng.normal(size=(2, 5)) / 5**0.5, size * rng.normal(size=(2, 5))
    a, b = np.array([1.0, -0.7]), size * np.array([0.3, -0.5])
    with mp.workdps(60):
        rows = [[mp.mpf(v) for v in row] for row in teacher]
        rows += [
            [mp.mpf(u) + mp.mpf(v) for u, v in zip(*pair, strict=True)] for pair in zip(teacher, change, strict=True)
        ]
        gram = [[mp.fdot(u, v) for v in rows] for u in rows]
        v = [mp.mpf(x) / 2 for x in a] + [-(mp.mpf(x) + mp.mpf(y)) / 2 for x, y in zip(a, b, strict=True)]
        exact = float(sum(
            v[i] * v[j] * mp.asin(gram[i][j] / mp.sqrt((1 + gram[i][i]) * (1 + gram[j][j]))) / mp.pi
            for i in range(4) for j in range(4)
        ))  # fmt: skip
    task = Task(teacher @ teacher.T, teacher_output=a)
    found = overlaps.risk_near_teacher(task, change @ change.T, change @ teacher.T, output_changes=b)
    assert float(found) == pytest.approx(exact, rel=30 * size + 1e-9)
    tanh = Task(teacher @ teacher.T, teacher_output=a, activation="tanh")
    small, smaller = (
        float(overlaps.risk_near_teacher(tanh, s**2 * change @ change.T, s * change @ teacher.T)) for s in (1.0, 1e-3)
    )
    assert smaller == pytest.approx(1e-6 * small, rel=1e-9)
    with pytest.raises(OutsideValidity):
        overlaps.risk_near_teacher(Task([[1.0]], activation="relu"), [[1e-20]], [[0.0]])
