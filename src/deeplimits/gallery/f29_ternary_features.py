"""Random features of two bits.

Kernel ridge regression with the kernel of tanh features, by N random features: Gaussian weights and tanh in single
precision; weights 0 and ±1 (half of them 0) with a ternary activation that has the same slope moment, two bits a
weight; and Nyström's method with N landmarks. On digits of scikit-learn (which of ten; 1,000 seen, small: 300) and
diabetes (disease progress). Drawn is the test error over the memory of the model, with the error of the kernel
itself, the limit of all three.
"""

import numpy as np

from deeplimits.gallery import datasets, marks
from deeplimits.gallery.figure import Check
from deeplimits.predictions.picture import Axis, Mark, Picture, Rule
from deeplimits.theory import gaussian, mixtures

NOTES = "Random Matrix Theory and Its Applications in ML, quantized features"
LIMITS = ("ternary-random-features", "sparse-binary-weights")
METHODS = {
    "full": "tanh features, single precision",
    "ternary": "ternary features",
    "nystrom": "Nyström, single precision",
}
RIDGE = {"digits": 0.1, "diabetes": 0.5}


def compute(run):
    """Errors of every method at every number of features."""
    draws = run.pick(20, 5)
    run.expect(2)
    found = {}
    for name in ("digits", "diabetes"):
        counts = run.pick({"digits": (30, 100, 300, 1000, 3000), "diabetes": (5, 15, 50, 150, 500)}[name],
                          {"digits": (30, 100, 300, 1000), "diabetes": (5, 20, 80, 300)}[name])  # fmt: skip
        one = run.step("errors", errors, name=name, seen=run.pick(1000, 300), counts=counts, draws=draws)
        found |= {f"{key}_{name}": values for key, values in one.items()}
        found[f"counts_{name}"] = np.array(counts)
    return found


def split(name, seen):
    """Inputs of length 1, labels (columns for classes), for training and for testing."""
    if name == "digits":
        x, classes = datasets.centred_digits()
        y = np.eye(10)[classes] - 0.1
    else:
        x, progress = datasets.diabetes()
        y, seen = progress[:, None], 300
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    return x[:seen], y[:seen], x[seen:], y[seen:]


def kernel(x, z):
    """E tanh(u)tanh(v) by the theory's expansion, for inputs of length 1."""
    powers = np.asarray(gaussian.hermite_coefficients(np.tanh, 25).coefficients) ** 2
    return np.polynomial.polynomial.polyval(np.clip(x @ z.T, -1, 1), powers)


def errors(name, seen, counts, draws):
    """Test errors, (draws, counts) for each method, that of the kernel, and memory in bytes."""
    x, y, x_test, y_test = split(name, seen)
    ridge = RIDGE[name]

    def error(answers):
        if y.shape[1] > 1:
            return np.mean(answers.argmax(axis=1) != y_test.argmax(axis=1))
        return np.mean((answers - y_test) ** 2) / np.mean(y_test**2)

    def features_error(phi, phi_test, penalty):
        gram = phi @ phi.T
        return error(phi_test @ (phi.T @ np.linalg.solve(gram + penalty * np.eye(len(gram)), y)))

    exact, across = kernel(x, x), kernel(x_test, x)
    # The ternary activation has the kernel of tanh but for a multiple of the identity, by which the ridge changes.
    size = float(gaussian.second_moment("tanh", 1.0))
    twin = mixtures.ternary_match("tanh")
    low, high = sorted(twin.thresholds)
    found = {key: np.empty((draws, len(counts))) for key in METHODS}
    width = x.shape[1]
    for draw in range(draws):
        random = np.random.default_rng(draw)
        for at, count in enumerate(counts):
            w, root = random.standard_normal((width, count)), np.sqrt(count)
            found["full"][draw, at] = features_error(np.tanh(x @ w) / root, np.tanh(x_test @ w) / root, ridge)
            w = random.choice(np.array([-1.0, 0.0, 0.0, 1.0]), (width, count)) * np.sqrt(2)
            phi, phi_test = (
                twin.jumps[0] * (1.0 * (z @ w > high) - (z @ w < low)) / np.sqrt(count) for z in (x, x_test)
            )
            rest = np.mean(np.sum(phi**2, axis=1)) - size
            found["ternary"][draw, at] = features_error(phi, phi_test, ridge - rest)
            marks_at = random.choice(len(x), min(count, len(x)), replace=False)
            small = exact[np.ix_(marks_at, marks_at)] + 1e-10 * np.eye(len(marks_at))
            factor = np.linalg.cholesky(small)
            phi, phi_test = (np.linalg.solve(factor, part[:, marks_at].T).T for part in (exact, across))
            found["nystrom"][draw, at] = features_error(phi, phi_test, ridge)
    limit = error(across @ np.linalg.solve(exact + ridge * np.eye(len(x)), y))
    counts = np.asarray(counts)
    outputs = 4 * counts * y.shape[1]
    memory = {"full": 4 * counts * width, "ternary": counts * width / 4, "nystrom": 4 * counts * width}
    return {**found, "limit": np.array(limit)} | {f"memory_{key}": value + outputs for key, value in memory.items()}


def draw(data):
    """Errors over memory for both data sets."""
    panels = []
    for name, label, caption in (
        ("digits", "share of wrong digits", "Two bits a weight do what 32 do, in a fraction of the memory."),
        (
            "diabetes",
            "mean squared error over variance",
            "On few measurements too, down to the error of the kernel itself.",
        ),
    ):
        seen: list[Mark] = [Rule(float(data[f"limit_{name}"]), label="theory: the kernel, infinitely many features")]
        for series, (key, words) in enumerate(METHODS.items()):
            seen.append(marks.averages(data[f"memory_{key}_{name}"], data[f"{key}_{name}"], series=series, label=words))
        panels.append(Picture(Axis("memory of the model in bytes", log=True), Axis(label), tuple(seen), caption))
    return panels


def check(data):
    """Both kinds of features reach the kernel's error; and cost so much less memory."""
    found = []
    for name, allowed in (("digits", 0.03), ("diabetes", 0.05)):
        last = {key: data[f"{key}_{name}"][:, -1].mean() for key in METHODS}
        limit = float(data[f"limit_{name}"])
        for key in ("full", "ternary"):
            found.append(Check(f"{name}: error with the most {METHODS[key]}", last[key], 0.0, limit, allowed))
        saved = data[f"memory_full_{name}"][-1] / data[f"memory_ternary_{name}"][-1]
        wanted = {"digits": (64 * 4 + 40) / (64 / 4 + 40), "diabetes": (10 * 4 + 4) / (10 / 4 + 4)}[name]
        found.append(Check(f"{name}: memory saved at as many features", saved, 0.0, wanted, 1e-9))
    return found
