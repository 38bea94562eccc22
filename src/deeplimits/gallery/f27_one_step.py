"""One gradient step puts a spike into the first layer, if it is large enough.

A two-layer tanh network (ψ₂ = N/p = 1.5 neurons and ψ₁ = n/p = 2 samples per dimension, p = 600; small: 120) makes
one step on labels of a ReLU teacher with noise 0.3. Drawn are the singular values of the first layer after a small
and a large step on the law of the start and the theory's spike, and over the step the spike and what its direction
knows of the teacher.
"""

import jax
import jax.numpy as jnp
import numpy as np

from deeplimits.ensembles import data as draws
from deeplimits.ensembles import one_step
from deeplimits.gallery import marks
from deeplimits.gallery.extrapolated import at_infinity
from deeplimits.predictions.picture import Axis, Line, Picture, Rule
from deeplimits.theory import gaussian, mixtures, spectra

NOTES = "Random Matrix Theory and Its Applications in ML, Fig 3, one step"
LIMITS = ("one-step-spike-and-alignment", "one-step-gradient-rank-one")
PSI1, PSI2, NOISE = 2.0, 1.5, 0.3
SMALL, LARGE = 1.0, 6.0


def compute(run):
    """Singular values and alignments after steps of all sizes, at several dimensions."""
    sizes, samples = run.pick((150, 300, 600), (60, 120)), run.pick(24, 16)
    steps = np.unique(np.append(np.linspace(0.5, 10.0, run.pick(20, 8)), [SMALL, LARGE]))
    run.expect(len(sizes))
    dense = np.linspace(0.0, 10.0, 201)
    spike = jax.vmap(lambda step: mixtures.one_step_spike(step, "tanh", "relu", PSI1, PSI2, noise=NOISE))
    theory = jax.jit(spike)(dense)
    found = {"sizes": np.array(sizes), "steps": steps, "dense": dense}
    found |= {"spike": np.array(theory.singular_value), "known": np.array(theory.alignment)}
    for p in sizes:
        one = run.step("networks", networks, p=p, samples=samples, steps=steps)
        found |= {f"{name}_{p}": values for name, values in one.items()}
    return found


def networks(p, samples, steps):
    """Largest singular values and their alignment after every step; all of the first network after two of them."""
    n, width = round(PSI1 * p), round(PSI2 * p)
    mean = float(gaussian.mean("relu"))

    @jax.jit
    def one(key):
        numbers = draws.gaussian_arrays(key, (width, p), (width,), (n, p), (n,), (p,))
        system = one_step.step_data(numbers, "relu", jnp.asarray(NOISE), mean)
        return system.weights, one_step.first_step("tanh", system, silent=True), system.target

    largest, known, all_values = np.empty((samples, len(steps))), np.empty((samples, len(steps))), []
    for place in range(samples):
        start, gradient, target = map(np.asarray, one(jax.random.key(place)))
        for at, step in enumerate(steps):
            weights = start + step * np.sqrt(width) * gradient
            values, vectors = np.linalg.eigh(weights.T @ weights)
            largest[place, at], known[place, at] = np.sqrt(values[-1]), (vectors[:, -1] @ target) ** 2
            if place == 0 and step in (SMALL, LARGE):
                all_values.append(np.sqrt(np.maximum(values, 0)))
    return {"largest": largest, "alignment": known, "values": np.array(all_values)}


def draw(data):
    """Singular values after two steps; spike and alignment over the step."""
    p = int(data["sizes"][-1])
    panels = []
    x = np.linspace(1e-3, 2.6, 400)
    # W₀'W₀ is ψ₂ times a sample covariance of p features and N samples; singular values are roots.
    law = 2 * x * np.asarray(spectra.marchenko_pastur_density(x**2 / PSI2, 1 / PSI2)) / PSI2
    for place, (step, caption) in enumerate(
        ((SMALL, "leaves the first layer as random as it was."), (LARGE, "moves one singular value out of the bulk."))
    ):
        spike = float(np.interp(step, data["dense"], data["spike"]))
        seen = (marks.histogram(data[f"values_{p}"][place], np.linspace(0, 4.5, 91), label="network"),
                Line(x, law, label="theory: bulk of the start"))  # fmt: skip
        there = (Rule(spike, upright=True, label=f"theory: spike at {spike:.3g}", series=1),) if step == LARGE else ()
        words = Axis("singular value of the first layer", low=0, high=4.5)
        panels.append(Picture(words, Axis("density"), (*seen, *there), f"A step η = {step:g} {caption}"))
    critical = critical_step()
    for name, simulated, label, caption in (
        ("spike", "largest", "largest singular value", "It leaves the bulk at a critical step."),
        ("known", "alignment", "squared overlap with the teacher", "From then on its direction knows the teacher."),
    ):
        points = [marks.averages(data["steps"], data[f"{simulated}_{n}"], series=k, label=f"networks, p = {n}")
                  for k, n in enumerate(data["sizes"])]  # fmt: skip
        lines = (
            Line(data["dense"], data[name], label="theory"),
            Rule(critical, upright=True, label="critical step"),
        )
        panels.append(Picture(Axis("step", r"\eta"), Axis(label), (*lines, *points), caption))
    return panels


def critical_step():
    """The step from which there is a spike."""
    return float(mixtures.one_step_spike(1.0, "tanh", "relu", PSI1, PSI2, noise=NOISE).critical_step)


def check(data):
    """Spike and alignment after the large step."""
    sizes = data["sizes"].tolist()
    at = int(np.argmin(np.abs(data["steps"] - LARGE)))
    found = []
    for name, simulated, label in (("spike", "largest", "largest singular value"),
                                   ("known", "alignment", "squared overlap with the teacher")):  # fmt: skip
        stated = float(np.interp(LARGE, data["dense"], data[name]))
        draws_at = [data[f"{simulated}_{p}"][:, at] for p in sizes]
        found.append(at_infinity(f"{label} after η = {LARGE:g}", sizes, draws_at, stated, 1.0))
    return found
