"""Double descent: a peak where parameters are as many as samples, and beyond it the risk falls again.

Linear regression with n = 400 samples (small: 80) and p features, p/n from 0.1 to 10, unit signal and noise 0.5: bias
and variance of minimum-norm least squares, and the risk with a ridge. Beside it the same on real data: ridge regression
on N random ReLU features of 400 of scikit-learn's digits (small: 100), even against odd ones, with the ridge 1e-5.
"""

import functools

import numpy as np

from deeplimits.gallery.datasets import centred_digits
from deeplimits.gallery.figure import Check
from deeplimits.gallery.marks import averages, mean_and_error
from deeplimits.models.atoms import atoms
from deeplimits.predictions.picture import Axis, Line, Picture, Rule
from deeplimits.theory import regression

NOTES = "Mathematics of Deep Learning, Fig 1.1, 3.1 and ch 7 Fig 1.1"
LIMITS = ("ridgeless-double-descent", "ridge-general-covariance", "random-feature-ridge-mse")
GAMMAS = (0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
NOISE, WEAK = 0.5, 0.02
COUNTS = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.6, 2.5, 4.0, 6.0)
RIDGE, TEST = 1e-5, 500


def compute(run):
    """Risks of linear models and of random features, from the definitions."""
    n, draws = run.pick((400, 16), (80, 25))
    points, again = run.pick((400, 12), (100, 12))
    run.expect(len(GAMMAS) + len(COUNTS))
    linear = [run.step(f"p/n = {gamma:g}", risks, n=n, p=round(gamma * n), draws=draws) for gamma in GAMMAS]
    real = [run.step(f"N/n = {c:g}", digit_errors, n=points, count=round(c * points), draws=again) for c in COUNTS]
    found = {key: np.stack([one[key] for one in linear], axis=1) for key in linear[0]}
    return {**found, **{key: np.stack([one[key] for one in real], axis=1) for key in real[0]}, "n": n, "points": points}


def best(gamma):
    """The best ridge of isotropic features, γσ²/r²."""
    return gamma * NOISE**2


def risks(n, p, draws):
    """Bias and variance of minimum-norm least squares and risks with two ridges, given the design; a row a draw."""
    random = np.random.default_rng(p)
    rows = []
    for _ in range(draws):
        _, s, v = np.linalg.svd(random.standard_normal((n, p)), full_matrices=False)
        beta = random.standard_normal(p)
        along = v @ (beta / np.linalg.norm(beta))
        outside = 1 - np.sum(along**2)
        parts = []
        for ridge in (0.0, WEAK, best(p / n)):
            # β̂ = V diag(s/(s² + nλ)) U'y
            shrunk = n * ridge / (s**2 + n * ridge)
            parts.append((outside + np.sum((shrunk * along) ** 2), NOISE**2 * np.sum((s / (s**2 + n * ridge)) ** 2)))
        rows.append([*parts[0], sum(parts[1]), sum(parts[2])])
    return dict(zip(("bias", "variance", "weak", "best"), np.array(rows).T, strict=True))


def split(n):
    """Training and test digits, even +1 and odd -1, of mean squared norm 1."""
    x, classes = centred_digits()
    x, y = x - x[:n].mean(axis=0), 1.0 - 2.0 * (classes % 2)
    return x[:n], y[:n], x[n : n + TEST], y[n : n + TEST]


def digit_errors(n, count, draws):
    """Training and test error with so many random features; a row for each draw of them."""
    x, y, x_test, y_test = split(n)
    random = np.random.default_rng(count)
    rows = []
    for _ in range(draws):
        w = random.standard_normal((x.shape[1], count))
        u, s, v = np.linalg.svd(np.maximum(x @ w, 0), full_matrices=False)
        # argmin (1/n)‖y − Φβ‖² + λ‖β‖² is V diag(s/(s² + nλ)) U'y
        beta = v.T @ (s / (s**2 + n * RIDGE) * (u.T @ y))
        rows.append(
            [np.mean((y - np.maximum(x @ w, 0) @ beta) ** 2), np.mean((y_test - np.maximum(x_test @ w, 0) @ beta) ** 2)]
        )
    return dict(zip(("training", "test"), np.array(rows).T, strict=True))


def draw(data):
    """Bias and variance; with ridges; digits."""
    left, right = np.geomspace(0.1, 0.985, 200), np.geomspace(1.015, 10, 200)
    dense = np.concatenate([left, [np.nan], right])
    gamma = np.concatenate([left, [1.5], right])
    risk = regression.ridgeless_risk(gamma, 1.0, NOISE**2)
    over = Axis("features per sample", "p/n", log=True)
    hidden = np.isnan(dense)
    bias, variance = (np.where(hidden, np.nan, part) for part in (risk.bias, risk.variance))
    first = Picture(
        over,
        Axis("excess risk, and its parts", low=0.0, high=4.0),
        (
            Line(dense, bias + variance, label="risk, theory"),
            Line(dense, bias, series=0, label="squared bias"),
            Line(dense, variance, series=1, label="variance"),
            averages(GAMMAS, data["bias"] + data["variance"], series=2, label=f"least squares, n = {int(data['n'])}"),
            averages(GAMMAS, data["bias"], series=0),
            averages(GAMMAS, data["variance"], series=1),
        ),
        "Without a ridge the variance has a pole at p = n, beyond which the risk descends a second time.",
    )
    white, smooth = regression.population(atoms([1.0], [1.0])), np.geomspace(0.1, 10, 300)
    weak = regression.ridge_risk(WEAK, white, smooth, 1.0, NOISE**2).total
    optimal = regression.ridge_risk(best(smooth), white, smooth, 1.0, NOISE**2).total
    second = Picture(
        over,
        Axis("excess risk", low=0.0, high=2.0),
        (
            Line(dense, bias + variance, label="no ridge"),
            Line(smooth, weak, series=0, label=f"ridge {WEAK:g}"),
            Line(smooth, optimal, series=1, label="best ridge, γσ²/r²"),
            averages(GAMMAS, data["weak"], series=0, label=f"ridge regression, n = {int(data['n'])}"),
            averages(GAMMAS, data["best"], series=1),
        ),
        "A little ridge turns the pole into a hill, and the best ridge removes it: the risk only rises with p/n here.",
    )
    n, many = int(data["points"]), np.geomspace(COUNTS[0], COUNTS[-1], 200)
    stated = real_theory(n).errors(many * n, RIDGE)
    third = Picture(
        Axis("random features per sample", "N/n", log=True),
        Axis("mean squared error", log=True, low=1e-4),
        (
            Line(many, stated.test, label="test error, theory", series=0),
            Line(many, stated.training, label="training error, theory", series=1),
            averages(COUNTS, data["test"], series=0, label=f"digits, n = {n}"),
            averages(COUNTS, data["training"], series=1),
            Rule(1.0, upright=True, label="N = n"),
        ),
        "The same on real data: the training error of random features on digits vanishes at N = n, and there the test "
        "error peaks.",
    )
    return [first, second, third]


@functools.cache
def real_theory(n):
    """The theory of random features, given the digits' kernel."""
    return regression.feature_regression(*split(n))


def check(data):
    """Risks beside theory; the limit's own error, of order 1/n, counts as one standard error of its results."""
    n, total = int(data["n"]), data["bias"] + data["variance"]
    white, checks = regression.population(atoms([1.0], [1.0])), []
    for gamma in (0.5, 1.25, 10.0):
        mean, error = mean_and_error(total[:, GAMMAS.index(gamma)])
        exact = regression.ridgeless_finite_sample_risk(n, round(gamma * n), 1.0, NOISE**2).total
        checks.append(Check(f"risk at p/n = {gamma:g}", mean, error, exact, 5))
    mean, error = mean_and_error(data["best"][:, GAMMAS.index(1.1)])
    stated = float(regression.ridge_risk(best(1.1), white, 1.1, 1.0, NOISE**2).total)
    checks.append(Check("risk at p/n = 1.1 with the best ridge", mean, np.hypot(error, stated / n), stated, 5))
    points = int(data["points"])
    for at in (0.4, 1.0, 4.0):
        mean, error = mean_and_error(data["test"][:, COUNTS.index(at)])
        stated = float(real_theory(points).errors(at * points, RIDGE).test)
        slack = stated * (10 / points if at == 1 else 3 / points)
        checks.append(Check(f"test error on digits at N/n = {at:g}", mean, np.hypot(error, slack), stated, 5))
    return checks
