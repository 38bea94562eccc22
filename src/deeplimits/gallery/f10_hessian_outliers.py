"""Curvature of a trained network: a bulk near zero, and an outlier for every class but one.

A network 64-16-10 of tanh units with cross-entropy after 100 steps of Adam on scikit-learn's 1,797 digits (small:
64-8-10 on 400); the notes' MNIST and CIFAR are not at hand. All eigenvalues of the Hessian, of the Gauss-Newton matrix
(which is the Fisher matrix here) and of the gradients' second moment G, exactly; beside them the part of the
Gauss-Newton matrix that is made of class means alone, g_cc', the mean gradient that the label c' would give to a digit
of class c, which theory makes responsible for the outliers. Last, each of the largest eigenvalues of Gauss-Newton is
tested against the bulk behind it, as the edge of a random matrix would be.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from deeplimits.gallery.datasets import digits
from deeplimits.gallery.figure import Check
from deeplimits.measure import curvature
from deeplimits.predictions.picture import SIMULATION, Axis, Histogram, Line, Picture, Points, Rule
from deeplimits.theory import landscape

NOTES = "Mathematics of Deep Learning, ch 13 Fig 1.1 and ORF 543, 10/5"
LIMITS = ("hessian-gauss-newton", "papyan-gradient-decomposition")
CLASSES, SHOWN, TESTED, STEPS, RATE = 10, 20, 60, 100, 1e-2
WORDS = {"hessian": "Hessian", "gauss": "Gauss-Newton = Fisher", "moment": "gradient moment G"}


def compute(run):
    """All eigenvalues of the three matrices, and those of the parts by class."""
    hidden, samples = run.pick((16, 1797), (8, 400))
    return run.step("trained", spectra, hidden=hidden, samples=samples)


def network(weights, x):
    """Scores of the classes."""
    (w, b), (v, c) = weights
    return jnp.tanh(x @ w + b[None]) @ v + c[None]


def loss(weights, x, labels):
    """Mean cross-entropy."""
    return -jnp.mean(jax.nn.log_softmax(network(weights, x))[jnp.arange(len(labels)), labels])


def trained(random, x, labels, hidden):
    """Weights after steps of Adam on all samples."""
    d = x.shape[1]
    start = (
        (jnp.asarray(random.normal(size=(d, hidden)) / np.sqrt(d)), jnp.zeros(hidden)),
        (jnp.asarray(random.normal(size=(hidden, CLASSES)) / np.sqrt(hidden)), jnp.zeros(CLASSES)),
    )

    def step(carry, number):
        weights, first, second = carry
        slope = jax.grad(loss)(weights, x, labels)
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, slope)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, second, slope)

        def moved(w, m, v):
            return w - RATE * (m / (1 - 0.9**number)) / (jnp.sqrt(v / (1 - 0.999**number)) + 1e-8)

        return (jax.tree.map(moved, weights, first, second), first, second), None

    zero = jax.tree.map(jnp.zeros_like, start)
    return jax.lax.scan(step, (start, zero, zero), jnp.arange(1.0, STEPS + 1))[0][0]


def spectra(hidden, samples):
    """Eigenvalues, largest first."""
    x, labels = (jnp.asarray(part[:samples]) for part in digits())
    weights, back = ravel_pytree(jax.jit(trained, static_argnums=(0, 3))(np.random.default_rng(0), x, labels, hidden))
    # J (N, C, P) by the chain rule: one network output after the other.
    jacobian = jax.jit(jax.vmap(jax.jacrev(lambda w, one: network(back(w), one[None])[0]), (None, 0)))(weights, x)
    chance = jax.nn.softmax(network(back(weights), x))
    # g_icc' = J'(p − e_c'), weighted by p_c'/N
    slopes = jnp.einsum("icp,ikc->ikp", jacobian, chance[:, None, :] - jnp.eye(CLASSES)[None])
    parts = landscape.class_decomposition(slopes, chance / samples, labels)
    own = slopes[jnp.arange(samples), labels]
    # The means of what is in a group (class, label) of the same label are taken out of the rest too.
    member = jax.nn.one_hot(labels, CLASSES)
    weight = member.T @ chance / samples
    mean = jnp.einsum("ic,ik,ikp->ckp", member, chance / samples, slopes) / weight[:, :, None]
    means = jnp.einsum("ck,ckp,ckq->pq", weight, mean, mean)
    matrices = {
        "hessian": jax.jit(jax.hessian(lambda w: loss(back(w), x, labels)))(weights),
        "gauss": parts.whole,
        "moment": own.T @ own / samples,
        "between": means,
        "within": parts.whole - means,
    }
    return {name: np.linalg.eigvalsh(np.asarray(matrix))[::-1] for name, matrix in matrices.items()}


def draw(data):
    """All eigenvalues of the Hessian; the largest of all three beside the class part; how far the next ones are."""
    size, top = len(data["hessian"]), float(data["hessian"][0])
    edges = np.linspace(float(data["hessian"][-1]), 1.02 * top, 90)
    counts = np.histogram(data["hessian"], edges)[0]
    first = Picture(
        Axis("eigenvalue of the Hessian"),
        Axis("how many", log=True, low=0.5),
        (
            Histogram(edges, np.where(counts > 0, counts, np.nan), role=SIMULATION, label=f"all {size:,} eigenvalues"),
            *(
                Rule(float(one), upright=True, label="" if i else "theory: class means, the 9 largest")
                for i, one in enumerate(data["between"][: CLASSES - 1])
            ),
        ),
        f"Nearly all of {size:,} eigenvalues are close to zero; a few stand far out, as those of the class means do.",
    )
    number = np.arange(1, SHOWN + 1)
    second = Picture(
        Axis("number of the eigenvalue", whole=True),
        Axis("eigenvalue", log=True, low=float(data["gauss"][SHOWN]) / 3),
        (
            Line(number[: CLASSES - 1], data["between"][: CLASSES - 1], label="theory: class means alone"),
            *(
                Points(number, np.maximum(data[kind][:SHOWN], 1e-12), role=SIMULATION, series=i, label=words)
                for i, (kind, words) in enumerate(WORDS.items())
            ),
            Rule(CLASSES - 0.5, upright=True, label="C − 1 = 9"),
        ),
        "The nine largest eigenvalues of all three follow the part of the Gauss-Newton matrix between classes.",
    )
    found = outliers(data)
    third = Picture(
        Axis("number of the eigenvalue", whole=True),
        Axis("p-value against the bulk behind it", log=True, low=1e-20, high=2.0),
        (
            Points(
                number, np.maximum(found.p_values[:SHOWN], 1e-20), role=SIMULATION, label="Gauss-Newton (from 1e-20)"
            ),
            Rule(found.level / len(found.p_values), label="an outlier, at a level of 0.01 in all"),
            Rule(CLASSES - 0.5, upright=True, label="C − 1 = 9", series=1),
        ),
        "The ninth eigenvalue of Gauss-Newton stands out of the bulk behind it, "
        f"p = {found.p_values[CLASSES - 2]:.0e}; the last one that does is number {found.count}.",
    )
    return [first, second, third]


def outliers(data):
    """Which of the largest eigenvalues of the Gauss-Newton matrix the bulk behind them does not explain."""
    return curvature.count_outliers(data["gauss"][:TESTED])


def check(data):
    """The class part makes the outliers: their trace, and where the spectrum falls most.

    By Weyl's inequality no eigenvalue of Gauss-Newton is more than the largest within classes away from the class part;
    the share of the nine outliers' sum that the class part has is what is measured. A simplex of class means predicts
    C − 1 outliers: the ninth must stand out, by its p-value against the bulk behind it, and at most one more may.
    """
    nine = CLASSES - 1
    inside, whole, part = float(data["within"][0]), data["gauss"], data["between"]
    apart = float(np.max(np.abs(whole[:nine] - part[:nine])))
    return [
        Check(
            "Gauss-Newton outliers: distance from the class part, in units of the rest's norm", apart / inside, 0, 0, 1
        ),
        Check("share of the outliers' sum in the class part", part[:nine].sum() / whole[:nine].sum(), 0, 1, 0.4),
        Check("Hessian: largest eigenvalue over that of Gauss-Newton", data["hessian"][0] / whole[0], 0, 1, 0.3),
        Check("p-value of the ninth eigenvalue of Gauss-Newton", outliers(data).p_values[nine - 1], 0, 0, 1e-3),
        Check("outliers of Gauss-Newton", outliers(data).count, 0, nine, 1),
    ]
