"""Which deep linear network do the diabetes data speak for? Their exact evidence over depth and prior scale.

200 patients of scikit-learn's diabetes data, in 1,000 random Fourier features (of the kernel e^{−Σ|x_i − x'_i|/ℓ}):
more dimensions than points, so that linear networks interpolate. Drawn are the logarithm of the evidence over the
number of hidden layers and the prior variance of the weights, relative to the best, with the best scale of each depth;
the evidence at unit variance, where depth finds the scale by itself up to a best depth, and at the best variance, where
layers add nothing; and predictions of the chosen model for other patients. Seconds:

    python examples/diabetes_evidence.py diabetes-evidence.png
"""

import argparse

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_diabetes

from deeplimits.theory import bayes

POINTS, FEATURES, WIDTH, LENGTH = 200, 1000, 1000, 4.0


def data():
    """Features and labels of all patients in a random order; the first of them are seen."""
    x, y = load_diabetes(return_X_y=True, scaled=True)
    random = np.random.default_rng(0)
    frequencies = random.standard_cauchy((x.shape[1], FEATURES)) / LENGTH
    features = np.sqrt(2) * np.cos(x / x.std(axis=0) @ frequencies + random.uniform(0, 2 * np.pi, FEATURES))
    order = random.permutation(len(x))
    return features[order], ((y - y.mean()) / y.std())[order]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", nargs="?", default="diabetes-evidence.png")
    options = parser.parse_args()
    x, y = data()
    seen = bayes.interpolate(x[:POINTS], y[:POINTS])
    print(
        f"{POINTS} points in {x.shape[1]} dimensions; the shortest interpolant has the squared norm "
        f"{float(seen.squared_norm):.3g}"
    )
    depths, variances = np.arange(0, 31), np.geomspace(0.5, 2, 121)
    landscape = np.asarray(bayes.evidence_map(seen, variances, WIDTH, depths))
    chosen = bayes.select_architecture(x[:POINTS], y[:POINTS], [WIDTH], depths)
    best = np.asarray(chosen.log_evidence[0])
    print(
        f"where the prior scale may be chosen the data speak for {chosen.depth} hidden layers at weight variance "
        f"{chosen.weight_variance:.3g}, by {best.max() - best[-1]:.2f} nats over {depths[-1]}"
    )
    unit = np.asarray(bayes.evidence_over_depth(seen, 1.0, WIDTH, depths))
    print(
        f"at weight variance 1 they speak for {depths[unit.argmax()]} hidden layers, by {unit.max() - unit[0]:.2f} "
        "nats over none"
    )
    figure = Figure(figsize=(13, 4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    shown = left.pcolormesh(depths, variances, (landscape - best.max()).T, vmin=-30, vmax=0, shading="nearest")
    left.plot(depths, chosen.weight_variances[0], "w.", label="best variance of each depth")
    left.set(yscale="log", xlabel="hidden layers", ylabel="weight variance times fan-in")
    ticks = (0.5, 0.7, 1, 1.4, 2)
    left.set_yticks(ticks, [f"{one:g}" for one in ticks])
    left.set_yticks([], minor=True)
    left.legend(fontsize=8, framealpha=0.9, facecolor="grey")
    figure.colorbar(shown, ax=left, label="relative log evidence")
    middle.plot(depths, best - best.max(), "o-", ms=3, label="at the best variance")
    middle.plot(depths, unit - best.max(), "s-", ms=3, label="at variance 1")
    middle.set(xlabel="hidden layers", ylabel="log evidence relative to the best")
    middle.axvline(depths[unit.argmax()], color="C1", lw=0.6, ls=":")
    middle.legend(fontsize=8)
    hidden = [WIDTH] * chosen.depth
    told = bayes.predict_labels(x[:POINTS], y[:POINTS], x[POINTS:], chosen.weight_variance, hidden)
    spread = np.sqrt(np.asarray(told.variance))
    inside = np.mean(np.abs(np.asarray(told.mean) - y[POINTS:]) < 2 * spread)
    print(f"{inside:.0%} of {len(x) - POINTS} other patients are within two standard deviations of the prediction")
    right.errorbar(y[POINTS:], told.mean, 2 * spread, fmt=".", ms=3, lw=0.4)
    right.axline((0, 0), slope=1, color="k", lw=0.6)
    right.set(xlabel="label of a patient not seen", ylabel="prediction ± 2 standard deviations")
    figure.savefig(options.path, dpi=150)


if __name__ == "__main__":
    main()
