"""The learning curve of random-feature ridge regression: the formula against drawing the features.

    python -m benchmarks random_features

The data: n images of handwritten digits, drawn with repetition and a little noise, even against odd. The curve has 25
numbers of features from n/10 to 10n. The theory needs one kernel, one eigendecomposition and O(n) for each point of the
curve; a simulation needs, for each point and each draw, the features, a Gram matrix and a solve of the smaller size of
n and N. No public code computes these curves: what a user would otherwise do is to simulate, and that is the peer.
"""

import statistics

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks._report import compare, grow
from benchmarks._timing import durations
from deeplimits.ensembles import random_features as draw
from deeplimits.models.activations import activation
from deeplimits.theory.regression.random_features import feature_regression

SIZES = (500, 1000, 2000)
TEST_POINTS = 500
RATIOS = np.geomspace(0.1, 10.0, 25)
RIDGE = 1e-3
SHOWN = (0.1, 1.0, 10.0)
DRAWS = 3


def digits(count: int):
    """`count` training points and some test points: images with noise of a tenth of their spread, even against odd."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    chosen = rng.integers(0, len(images), count + TEST_POINTS)
    x = images[chosen] + 0.1 * images.std() * rng.standard_normal((len(chosen), images.shape[1]))
    x = x - x[:count].mean(axis=0)
    x = x / np.sqrt(np.mean(np.sum(x[:count] ** 2, axis=1)))
    y = np.where(labels[chosen] % 2 == 0, 1.0, -1.0)
    return tuple(jnp.asarray(part) for part in (x[:count], y[:count], x[count:], y[count:]))


def theory(data, counts):
    return jax.block_until_ready(feature_regression(*data).errors(counts, RIDGE))


def simulation(data, count: int, key):
    x, y, x_test, y_test = data
    drawn = draw.neurons(key, activation("relu"), jnp.concatenate([x, x_test]), count)
    found = draw.ridge_errors(drawn[: len(x)], y, drawn[len(x) :], y_test, jnp.asarray(RIDGE))
    return jnp.stack([found.training, found.test])


def seconds(run) -> float:
    return statistics.median(durations(run))


def main(sizes: tuple[int, ...] = SIZES) -> None:
    print(f"{'n':>5} {'theory, 25 points s':>20} {'simulation, one draw each s':>28} {'ratio':>6}")
    simulate = jax.jit(simulation, static_argnums=1)
    for n in sizes:
        data = digits(n)
        counts = np.round(RATIOS * n)
        whole = seconds(lambda data=data, counts=counts: theory(data, counts))
        spent, found = {}, {}
        for ratio in SHOWN:
            count = round(ratio * n)
            keys = jax.random.split(jax.random.key(0), DRAWS)
            found[ratio] = np.stack([simulate(data, count, key) for key in keys])
            spent[ratio] = seconds(
                lambda data=data, count=count, key=keys[0]: jax.block_until_ready(simulate(data, count, key))
            )
        # Between the three measured numbers of features the time is interpolated in logarithms.
        one_draw = float(np.sum(np.exp(np.interp(np.log(RATIOS), np.log(SHOWN), np.log([spent[r] for r in SHOWN])))))
        print(f"{n:>5} {whole:>20.2f} {one_draw:>28.1f} {one_draw / whole:>6.1f}", flush=True)
        what = "random-feature learning curve, 25 points"
        compare("random_features", what, "simulation, one draw each", [whole], [one_draw], size=n)
        grow("random_features", what, "n", n, seconds=whole)
    errors = theory(data, np.round(np.array(SHOWN) * n))
    print(f"\nn = {n}: N/n, training and test error by theory, and by {DRAWS} draws (mean and standard error)")
    for index, ratio in enumerate(SHOWN):
        mean, error = found[ratio].mean(axis=0), found[ratio].std(axis=0, ddof=1) / np.sqrt(DRAWS)
        print(
            f"{ratio:>5} {float(errors.training[index]):.5f} {float(errors.test[index]):.5f}   "
            f"{mean[0]:.5f}({error[0]:.5f}) {mean[1]:.5f}({error[1]:.5f})"
        )


if __name__ == "__main__":
    main()
