"""Compressing a network without changing its kernel.

A network 64-w-10 of ReLU neurons is trained on scikit-learn's digits (w = 1,000; small: 200). Drawn is its test
accuracy over memory after pruning by magnitude and after naive rounding of its weights to three levels, beside
networks of sparse ternary weights (0, 50, 90 % zeros) and few-level activations that have the same conjugate kernel
as random weights, at several widths.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from deeplimits import diagnosis, ensembles
from deeplimits.gallery import datasets
from deeplimits.gallery.figure import Check
from deeplimits.models import FullyConnected
from deeplimits.predictions.picture import SIMULATION, Axis, Picture, Points, Rule

NOTES = "Random Matrix Theory and Its Applications in ML, compression"
LIMITS = ("ntk-lossless-compression",)
SPARSITIES, SEEN = (0.0, 0.5, 0.9), 1200


def compute(run):
    """Accuracy and memory of every way to compress."""
    widths = run.pick((250, 500, 1000, 2000), (400,))
    run.expect(1 + len(widths) * len(SPARSITIES))
    found = run.step("pruned", pruned, width=run.pick(1000, 200), steps=run.pick(1500, 200))
    found["widths"] = np.array(widths)
    for sparsity in SPARSITIES:
        done = [run.step("kernel", of_the_kernel, sparsity=sparsity, width=width) for width in widths]
        found |= {f"{name}_{sparsity}": np.array([one[name] for one in done]) for name in done[0]}
    return found


def data():
    """Digits seen and digits for testing."""
    x, classes = datasets.centred_digits()
    return x[:SEEN], classes[:SEEN], x[SEEN:], classes[SEEN:]


def pruned(width, steps):
    """A trained network, its weights cut by magnitude or rounded to three levels, each without training it again."""
    x, classes, x_test, answers = data()
    random = np.random.default_rng(0)
    labels = jax.nn.one_hot(classes, 10)
    start = (
        jnp.asarray(random.standard_normal((64, width))),
        jnp.asarray(random.standard_normal((width, 10)) / np.sqrt(width)),
    )

    def outputs(network, x):
        return jax.nn.relu(x @ network[0]) @ network[1]

    def loss(network):
        return -jnp.mean(jnp.sum(labels * jax.nn.log_softmax(outputs(network, x)), axis=1))

    descent = jax.jit(functools.partial(ensembles.gradient_descent, loss, marks=[steps]))
    first, second = (np.asarray(part[0]) for part in descent(start, jnp.asarray(0.5)))

    def right(weights):
        return np.mean(np.asarray(outputs((weights, second), x_test)).argmax(axis=1) == answers)

    head = 4 * second.size
    shares = np.array([0.0, 0.5, 0.9, 0.97])
    cut = [np.where(np.abs(first) >= np.quantile(np.abs(first), share), first, 0.0) for share in shares]
    # A kept weight costs 32 bits, and each place one bit that says whether it is kept.
    memory = [4 * first.size * (1 - share) + (first.size / 8 if share else 0) + head for share in shares]
    level = np.abs(first).max()
    naive = level * np.round(first / level)
    return {"pruned": np.array([right(one) for one in cut]), "pruned_memory": np.array(memory), "naive": right(naive),
            "naive_memory": np.array(first.size / 4 + head)}  # fmt: skip


def of_the_kernel(sparsity, width):
    """A network of ternary weights with the kernel of a given architecture at random weights."""
    x, classes, x_test, answers = data()
    found = diagnosis.compress(
        FullyConnected(1, "relu"), x, classes, widths=width, sparsity=sparsity, test=(x_test, answers)
    )
    return {"compressed": np.array(found.accuracy.compressed), "dense": np.array(found.accuracy.dense),
            "memory": np.array(found.memory.compressed), "whole": np.array(found.memory.original),
            "predicted": np.array(found.change.predicted_with_ridge)}  # fmt: skip


def draw(data):
    """Accuracy over memory."""
    dense = data[f"dense_{SPARSITIES[0]}"]
    seen = [
        Rule(float(dense[-1]), label="theory: nothing lost, the dense random network with the same kernel"),
        Points(data["pruned_memory"], data["pruned"], role=SIMULATION, series=0, label="trained, pruned by magnitude"),
        Points(
            [data["naive_memory"]], [data["naive"]], role=SIMULATION, series=1, label="trained, rounded to three levels"
        ),
        Points(
            data[f"whole_{SPARSITIES[0]}"], dense, role=SIMULATION, series=2, label="dense random, last layer fitted"
        ),
    ]
    for series, sparsity in enumerate(SPARSITIES, start=3):
        memory, right = data[f"memory_{sparsity}"], data[f"compressed_{sparsity}"]
        label = f"same kernel, ternary, {sparsity:.0%} zeros"
        seen.append(Points(memory, right, role=SIMULATION, series=series, label=label))
    caption = (
        "With their kernel kept, ternary networks lose little in a fraction of the memory, unlike rounding and pruning."
    )
    words = Axis("share of right test digits")
    return [Picture(Axis("memory in bytes", log=True), words, tuple(seen), caption)]


def check(data):
    """Compressed networks are as good as dense ones; rounding alone is not."""
    found = []
    for sparsity in SPARSITIES:
        right, dense = data[f"compressed_{sparsity}"][-1], data[f"dense_{sparsity}"][-1]
        found.append(Check(f"accuracy at {sparsity:.0%} zeros, dense as theory", right, 0.0, dense, 0.04))
    saved = data["memory_0.9"][-1] / data["whole_0.9"][-1]
    found.append(Check("share of the memory at 90 % zeros is below a quarter", float(saved < 0.25), 0.0, 1.0, 0.0))
    lost = data["pruned"][0] - data["naive"]
    found.append(Check("rounding alone loses more than a tenth of the digits", float(lost > 0.1), 0.0, 1.0, 0.0))
    return found
