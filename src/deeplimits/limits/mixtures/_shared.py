"""What the limits on mixtures share: a mixture that is drawn and stated, and what is looked at of a kernel matrix."""

from abc import abstractmethod
from dataclasses import KW_ONLY
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import class_mixtures
from deeplimits.limit import Limit, Run, activation_choice, integer, real, rounded, whole
from deeplimits.models.activations import activation as named
from deeplimits.predictions import Value
from deeplimits.theory.mixtures.gaussian_mixtures import GaussianMixture, KernelData, kernel_data
from deeplimits.theory.mixtures.kernel_equivalents import equivalent_kernel
from deeplimits.theory.mixtures.layer_equivalents import deep_coefficients


class MixtureKernel(Limit):
    """A limit that speaks of a kernel matrix of points of two balanced classes, drawn."""

    _: KW_ONLY
    samples_per_dimension: Array = real(1.0, 0.3, 2.0, log=True, symbol="n/p", doc="samples per dimension")
    strength: Array = real(3.0, 0.0, 10.0, symbol=r"\rho", doc="squared length ρ of a class mean")
    trace: Array = real(1.0, 0.0, 2.0, symbol="t", doc="difference t of the classes' variance, times √p")
    shape: Array = real(0.3, 0.0, 0.6, symbol="h", doc="how unequal the variances of class 2 are, h")

    usual = Run(sizes=(60, 120, 240), samples=24)

    def at_size(self, size):
        p = whole(size, "p", self, least=20)
        n = 2 * whole(p * float(self.samples_per_dimension) / 2, "n/2", self, least=5)
        return {"samples": n, "dimension": p}, rounded(self, samples_per_dimension=n / p)

    def draw(self, key, *, samples: int, dimension: int):
        numbers = jax.random.normal(key, (samples, dimension))
        return class_mixtures.contrasted_classes(numbers, self.strength, self.trace, self.shape)

    @abstractmethod
    def stated(self, system): ...


class DeepMixtureKernel(MixtureKernel):
    """One about a kernel of a deep network of infinite width."""

    activation: str = activation_choice("relu", lambda a: a.lipschitz and not (a.odd and a.smooth and not a.bounded))
    layers: int = integer(2, 1, 4, symbol="L", doc="hidden layers L")

    kernel: ClassVar[str]
    """Which: conjugate or tangent."""

    def validity(self):
        if named(self.activation).even:
            return (
                f"activation = {self.activation} is even, so that nothing of the class means is left in the kernel and "
                "its largest eigenvalue need not stand apart from the others: then it comes only like p^(−1/2); the "
                "matrices themselves are compared by mixtures.equivalent_kernel",
            )
        return ()

    def stated(self, system):
        data = described(system)
        found = deep_coefficients([self.activation] * self.layers, data.variance)
        return said(looked_at(equivalent_kernel(getattr(found, self.kernel)[-1], data).matrix()))

    def measured(self, system):
        found = class_mixtures.deep_kernels([self.activation] * self.layers, system.x, system.variances.mean())
        return looked_at(getattr(found, self.kernel))


def at_two_ratios(limit: Any, size: int) -> tuple[dict[str, Any], Any]:
    """Samples, inputs and neurons of a layer at a given dimension, for `at_size`; and the ratios that they have."""
    p = whole(size, "p", limit, least=10)
    n = whole(p * float(limit.samples_per_dimension), "n", limit, least=10)
    width = whole(p * float(limit.neurons_per_dimension), "N", limit, least=5)
    ratios = {"samples_per_dimension": n / p, "neurons_per_dimension": width / p}
    return {"samples": n, "dimension": p, "width": width}, rounded(limit, **ratios)


def mixture_of(system: Any) -> GaussianMixture:
    """The description of two balanced classes of diagonal covariances, from their `means` and `variances`."""
    covariances = system.variances[:, :, None] * jnp.eye(system.x.shape[1])[None, :, :]
    return GaussianMixture(system.means, covariances, jnp.full((2,), 0.5))


def described(system: Any) -> KernelData:
    """The points, as kernels in high dimension see them."""
    return kernel_data(system.x, system.labels, mixture=mixture_of(system))


def looked_at(matrix: Array) -> dict[str, Array]:
    """The largest eigenvalue of PKP, the root mean square of them all, and the trace of K per point."""
    n = matrix.shape[0]
    centred = matrix - matrix.mean(axis=0)[None, :] - matrix.mean(axis=1)[:, None] + matrix.mean()
    values = jnp.linalg.eigvalsh((centred + centred.T) / 2)
    return {
        "top": values[-1],
        "bulk": jnp.sqrt(jnp.mean(values**2)),
        "diagonal": jnp.trace(matrix) / n,
    }


def said(values: dict[str, Array]) -> dict[str, Value]:
    """The same as statements about a draw."""
    words = {
        "top": ("largest eigenvalue of PKP", r"\lambda_1(PKP)"),
        "bulk": ("root mean square eigenvalue of PKP", r"(\Sigma\lambda^2/n)^{1/2}"),
        "diagonal": ("trace of K per point", r"tr K/n"),
    }
    return {name: Value(values[name], label=words[name][0], symbol=words[name][1], rate=1.0) for name in values}
