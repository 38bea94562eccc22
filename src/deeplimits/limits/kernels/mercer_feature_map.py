r"""Kernel matrices at random points, and the eigenvalues of the integral operator."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.limit import Limit, Run, choice, real, whole
from deeplimits.predictions import Curve
from deeplimits.showcase import Showcase
from deeplimits.theory.kernels import mercer


class MercerFeatureMap(Limit):
    r"""The eigenvalues of a kernel matrix at random points tend to those of the integral operator.

    Setting     T_K f(x) = ∫ K(x, y)f(y) dμ(y) = Σ_j λ_j ψ_j(x)⟨ψ_j, f⟩; m independent points of law μ, K_m their kernel
                matrix
    Limit       m → ∞
    Result      eig_j(K_m)/m → λ_j; K = Σ_j λ_j ψ_j(x)ψ_j(y), feature map √λ_j ψ_j
                min(x, y) on [0, 1], uniform: λ_j = 1/((j − ½)²π²)
                e^{−(x−y)²/2l²}, N(0, 1): λ_{k+1} = √(2a/A)(b/A)^k, a = 1/4, b = 1/2l², A = a + b + √(a² + 2ab)
    Validity    K continuous, positive semidefinite; size counts the points m
    Finite size bias O(1/m) for a simple eigenvalue, fluctuations O(m^(−1/2))
    Computed by kernels.mercer_of_minimum, kernels.mercer_of_gaussian
    References  mercer1909; koltchinskii2000; rasmussen2006 Sec 4.3
    """

    kernel: str = choice("minimum", ("minimum", "gaussian"), doc="kernel and law of the points")
    scale: Array = real(1.0, 0.2, 5.0, log=True, symbol="l", doc="length scale of the Gaussian kernel")

    usual = Run(sizes=(24, 48, 96), samples=1000)
    showcase = Showcase(see="Eigenvalues of the kernel matrix approach those of the integral operator, one by one.")

    count = 3

    def theory(self):
        if self.kernel == "minimum":
            found = mercer.mercer_of_minimum(self.count).eigenvalues
        else:
            found = mercer.mercer_of_gaussian(self.count, scale=self.scale).eigenvalues
        return {
            "eigenvalues": Curve(
                jnp.arange(1.0, self.count + 1.0),
                found,
                axis="index",
                axis_symbol="j",
                label="eigenvalues",
                symbol=r"\lambda_j",
                rate=1.0,
                log_y=True,
            )
        }

    def at_size(self, size):
        return {"points": whole(size, "m", self, least=self.count)}, self

    def simulate(self, key, *, points: int):
        if self.kernel == "minimum":
            x = jax.random.uniform(key, (points,))
            matrix = jnp.minimum(x[:, None], x[None, :])
        else:
            x = jax.random.normal(key, (points,))
            matrix = jnp.exp(-((x[:, None] - x[None, :]) ** 2) / (2 * self.scale**2))
        return {"eigenvalues": jnp.linalg.eigvalsh(matrix)[::-1][: self.count] / points}
