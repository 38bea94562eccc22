"""Real data that come with scikit-learn, centred and scaled as theorems want them."""

import numpy as np

from deeplimits.errors import require


def digits() -> tuple[np.ndarray, np.ndarray]:
    """1,797 images of handwritten digits, 64 pixels between 0 and 1, and their classes; in a random order."""
    found = require("sklearn.datasets", "gallery").load_digits()
    order = np.random.default_rng(0).permutation(len(found.target))
    return found.data[order] / 16, found.target[order]


def centred_digits() -> tuple[np.ndarray, np.ndarray]:
    """The digits with the mean image taken away and a mean squared norm of 1."""
    x, classes = digits()
    x = x - x.mean(axis=0)
    return x / np.sqrt(np.mean(np.sum(x**2, axis=1))), classes


def diabetes() -> tuple[np.ndarray, np.ndarray]:
    """442 patients with 10 standardized measurements, and the standardized progress of their disease."""
    x, y = require("sklearn.datasets", "gallery").load_diabetes(return_X_y=True, scaled=True)
    order = np.random.default_rng(0).permutation(len(y))
    return (x / x.std(axis=0))[order], ((y - y.mean()) / y.std())[order]


def breast_cancer() -> tuple[np.ndarray, np.ndarray]:
    """569 tumours with 30 standardized measurements, and labels: 1 malignant, -1 benign."""
    x, y = require("sklearn.datasets", "gallery").load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return ((x - x.mean(axis=0)) / x.std(axis=0))[order], 1.0 - 2.0 * y[order]
