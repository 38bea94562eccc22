r"""Spectral clustering by a kernel."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import class_mixtures
from deeplimits.limit import Limit, Run, choice, real, rounded, whole
from deeplimits.limits.mixtures.kernel_linearization import KERNELS
from deeplimits.numerics.arguments import known, written
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.mixtures.distance_kernels import kernel_clustering

APART = 1.8
"""How far beyond the transition, in ρ/√c, the eigenvector has settled at the usual sizes."""
NAMES = ("heat", "rational", "laplace")
"""Kernels of which fluctuating norms make no second outlier."""


class KernelSpectralClustering(Limit):
    r"""An eigenvector of a kernel matrix knows two classes from |μ|² = √(p/n) on, and not before.

    Setting     x = ±μ + z in R^p, z ~ N(0, I), |μ|² = ρ, n points of balanced classes y = ±1; PKP, P = I − 11'/n,
                K_ij = f(|x_i − x_j|²/p)
    Limit       p, n → ∞ with p/n → c
    Result      a = −2f'(2), κ = f(0) − f(2) + 2f'(2); ρ > √c: an eigenvalue (a/c)(1 + ρ + c + c/ρ) + κ, overlap of
                its eigenvector with y (ρ² − c)/(ρ(ρ + 1)), share of right signs 1 − Q(√((ρ² − c)/(ρ + c)))
                ρ ≤ √c: no such eigenvalue, overlap zero, share ½
    Validity    here ρ > 1.8√c, and f = exp(−t/2), 1/(1 + t) or exp(−√t), of which norms make no second outlier; size
                counts the dimension p
    Finite size O(1/p) in mean
    Computed by mixtures.kernel_clustering
    References  couillet2016; baik2005
    """

    kernel: str = choice("heat", NAMES, symbol="f", doc="the kernel function f")
    gamma: Array = real(0.5, 0.2, 3.0, log=True, symbol="c", doc="dimensions per sample, p/n")
    strength: Array = real(3.0, 1.0, 10.0, log=True, symbol=r"\rho", doc="squared length ρ of a class mean")

    usual = Run(sizes=(60, 120, 240), samples=120)
    showcase = Showcase(
        over="strength",
        ranges={"strength": (1.3, 10.0)},
        first="overlap",
        see="Beyond the transition an eigenvector of the kernel matrix knows the classes, and the better the "
        "further they are apart.",
    )

    def validity(self):
        if not known(self.gamma, self.strength):
            return ()
        found = kernel_clustering(KERNELS[self.kernel], self.gamma, self.strength)
        if float(self.strength) < APART * float(found.threshold):
            return (
                f"strength = {written(self.strength)} is not beyond {APART:g} times the transition at "
                f"{float(found.threshold):.4g}; take a larger one (beside it the eigenvector settles in large systems "
                "only)",
            )
        return ()

    def theory(self):
        found = kernel_clustering(KERNELS[self.kernel], self.gamma, self.strength)
        return {
            "eigenvalue": Value(found.informative, label="informative eigenvalue", symbol=r"\lambda", rate=1.0),
            "overlap": Value(found.overlap, label="overlap with the classes", symbol=r"(v'y)^2/n", rate=1.0),
            "right": Value(1 - found.error, label="share on the right side", symbol=r"P(yv>0)", rate=1.0),
        }

    def at_size(self, size):
        p = whole(size, "p", self, least=20)
        n = 2 * whole(p / float(self.gamma) / 2, "n/2", self, least=10)
        return {"samples": n, "dimension": p}, rounded(self, gamma=p / n)

    def simulate(self, key, *, samples: int, dimension: int):
        numbers = jax.random.normal(key, (samples, dimension))
        system = class_mixtures.contrasted_classes(numbers, self.strength, jnp.zeros(()), jnp.zeros(()))
        y = 1.0 - 2.0 * system.labels.astype(float)
        kernel = class_mixtures.distance_matrix(KERNELS[self.kernel], system.x)
        centred = kernel - kernel.mean(axis=0)[None, :] - kernel.mean(axis=1)[:, None] + kernel.mean()
        values, vectors = jnp.linalg.eigh(centred)
        # Of the three largest the one that knows the classes: which place it has depends on f.
        overlaps = (vectors[:, -3:].T @ y) ** 2 / samples
        place = jnp.argmax(overlaps)
        vector = vectors[:, -3:][:, place]
        wrong = jnp.mean((vector * y < 0).astype(float))
        return {
            "eigenvalue": values[-3:][place],
            "overlap": overlaps[place],
            "right": jnp.maximum(wrong, 1 - wrong),
        }
