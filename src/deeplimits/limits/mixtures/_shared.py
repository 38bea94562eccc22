"""What the limits on mixtures share: a stated mixture, and what is looked at of a kernel matrix."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.predictions import Value
from deeplimits.theory.mixtures.gaussian_mixtures import GaussianMixture, KernelData, kernel_data


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
