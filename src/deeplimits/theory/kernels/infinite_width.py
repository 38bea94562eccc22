r"""Infinitely wide fully connected networks: their Gaussian process, their tangent kernel, their features' kernel."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.models.architectures import FullyConnected
from deeplimits.numerics.arguments import array, known, whole
from deeplimits.numerics.checks import valid
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.gaussian.dual_activations import closed_form, dual_of
from deeplimits.theory.gaussian.duals.numerical import Quadrature, numerical_duals
from deeplimits.theory.kernels import tiling
from deeplimits.theory.kernels.recursion import Network, points
from deeplimits.theory.kernels.tiling import Kernels

KINDS = ("nngp", "ntk", "conjugate")
MOST_PAIRS_BY_QUADRATURE = 40_000


class InfiniteWidth(eqx.Module):
    r"""A fully connected network whose widths are infinite: describe it once, ask for its kernels.

    Setting     h¹ = W¹x + b¹, h^{l+1} = W^{l+1}σ(h^l) + b^{l+1}, Var W = C_w/(fan in), Var b = C_b, all widths → ∞
    Result      K¹ = C_w x·x'/d + C_b, K^{l+1} = C_w E σσ + C_b: covariance of the outputs (`nngp`)
                T¹ = K¹, T^{l+1} = K^{l+1} + C_w E[σ'σ'] T^l: kernel of gradient descent (`ntk`)
                E σσ at the last hidden layer (`conjugate`)
    Validity    widths to infinity at fixed depth and fixed inputs; E σ² finite; for `ntk` σ continuous
    References  jacot2018; lee2018; lee2019

    `net` is the description from which `ensembles.wide_networks.WideNetwork` makes a finite network: hidden layers,
    activations, variances C_w and C_b, residual connections, layer norm, parametrization (see `models.architectures`).

    >>> import jax.numpy as jnp
    >>> from deeplimits.models.architectures import FullyConnected
    >>> wide = InfiniteWidth(FullyConnected(3, "relu", bias_variance=0.09))
    >>> x = jnp.array([[1.0, 0.5, -0.3], [0.2, -1.0, 0.7]])
    >>> [round(float(value), 12) for value in wide.ntk(x)[0]]
    [0.515833333333, 0.284867646595]
    """

    net: FullyConnected

    def nngp(self, x1: ArrayLike, x2: ArrayLike | None = None, **options) -> Floats:
        """Covariance of the outputs at the rows of `x1` and `x2` (n, d); options as for `kernels`."""
        return self._single("nngp", x1, x2, options)

    def ntk(self, x1: ArrayLike, x2: ArrayLike | None = None, **options) -> Floats:
        """Tangent kernel at the rows of `x1` and `x2` (n, d); options as for `kernels`."""
        return self._single("ntk", x1, x2, options)

    def conjugate(self, x1: ArrayLike, x2: ArrayLike | None = None, **options) -> Floats:
        """Kernel E σσ of the last hidden layer's features at the rows of `x1`, `x2`; options as for `kernels`."""
        return self._single("conjugate", x1, x2, options)

    def kernel_fn(
        self, x1: ArrayLike, x2: ArrayLike | None = None, get: str | Sequence[str] = ("nngp", "ntk")
    ) -> Kernels | Floats:
        """One kernel by its name, or several as `.nngp`, `.ntk`, `.conjugate`."""
        found = self.kernels(x1, x2, get)
        return getattr(found, get) if isinstance(get, str) else found

    def kernels(
        self,
        x1: ArrayLike,
        x2: ArrayLike | None = None,
        get: str | Sequence[str] = ("nngp", "ntk"),
        *,
        diagonal: bool = False,
        every_layer: bool = False,
        tile: int | None = None,
    ) -> Kernels:
        """The kernels named in `get`, in one pass.

        Without `x2`, of `x1` with itself: one triangle is computed, the diagonal exactly. `diagonal` gives K(x, x)
        only, of shape (n,). `every_layer` adds a leading axis that counts the affine layers (for 'conjugate', the
        hidden layers). Large matrices are computed in tiles, with little memory beyond the result, and on all devices
        that JAX sees.
        """
        wanted = self._wanted(get)
        tile = tiling.usual_tile() if tile is None else tile
        x1, x2 = self._checked(x1, x2, wanted, diagonal, tile)
        network = self._network(x1, x2)
        small = max(x1.shape[0], 0 if x2 is None else x2.shape[0]) <= tile
        if diagonal:
            found = tiling.diagonal(network, x1, wanted, every_layer)
        elif every_layer or small or self._traced(x1, x2):
            found = tiling.whole(network, x1, x2, wanted, every_layer)
        else:
            found = tiling.on_all_devices(network, x1, x2, wanted, int(tile))
        return _finite(found)

    def _single(self, kind: str, x1, x2, options: dict) -> Floats:
        return getattr(self.kernels(x1, x2, kind, **options), kind)

    def _wanted(self, get: str | Sequence[str]) -> tuple[str, ...]:
        wanted = (get,) if isinstance(get, str) else tuple(get)
        if not wanted or any(name not in KINDS for name in wanted):
            raise ParameterError(f"get = {get!r} is not allowed; it names one or more of {', '.join(KINDS)}")
        if "conjugate" in wanted and self.net.hidden_layers == 0:
            raise ParameterError("hidden_layers = 0 has no features; the conjugate kernel needs one hidden layer")
        return tuple(name for name in KINDS if name in wanted)

    def _checked(self, x1, x2, wanted, diagonal, tile):
        x1 = array("x1", x1, ("n", "d"), why="one input in each row")
        if x2 is not None:
            x2 = array("x2", x2, ("n", x1.shape[1]), why="one input in each row, with as many columns as x1")
        if diagonal and x2 is not None:
            raise ParameterError("diagonal = True is not allowed with x2; the diagonal is that of x1 with itself")
        whole("tile", tile, 1)
        jumping = [activation.name for activation in self.net.activations if not activation.continuous]
        if "ntk" in wanted and x2 is None and jumping:
            raise OutsideValidity(
                f"{jumping[0]} jumps, so the tangent kernel of an input with itself is infinite; ask for nngp or "
                "conjugate, or take a continuous activation"
            )
        return x1, x2

    def _traced(self, x1, x2) -> bool:
        return not known(x1, x2, self.net.weight_variance, self.net.bias_variance, self.net.skip)

    def _network(self, x1, x2) -> Network:
        """Closed forms where they exist; a Hermite series where the variances are known and allow it; or quadrature."""
        network = Network(self.net, tuple(dual_of(activation) for activation in self.net.activations))
        if self._traced(x1, x2) or all(closed_form(activation) is not None for activation in self.net.activations):
            return network
        inputs = x1 if x2 is None else jnp.concatenate([x1, x2])
        roots = np.ones((self.net.hidden_layers, 1)) if self.net.layer_norm else np.asarray(_roots(network, inputs))
        chosen = [dual_of(activation) for activation in self.net.activations]
        for activation in dict.fromkeys(self.net.activations):
            if closed_form(activation) is None:
                rows = [layer for layer, other in enumerate(self.net.activations) if other == activation]
                for layer, dual in zip(rows, numerical_duals(activation, roots[rows] ** 2), strict=True):
                    chosen[layer] = dual
        pairs = x1.shape[0] * (x1.shape[0] if x2 is None else x2.shape[0])
        for layer, dual in enumerate(chosen):
            if isinstance(dual, Quadrature) and pairs > MOST_PAIRS_BY_QUADRATURE:
                raise OutsideValidity(
                    f"{self.net.activations[layer].name} has no closed form, and at variance "
                    f"{roots[layer].max() ** 2:.3g} (layer {layer + 1}) the Hermite series is too long; "
                    f"{pairs} pairs take hours by quadrature: use layer_norm or smaller weight_variance, a smooth "
                    "activation, or fewer inputs"
                )
        return Network(self.net, tuple(chosen))


@jax.jit
def _roots(network: Network, x):
    return points(network, x).roots


def _finite(found: Kernels) -> Kernels:
    kernels = [kernel for kernel in found if kernel is not None]
    # A sum is finite only if every term is; it needs no second matrix.
    bounded = [jnp.isfinite(jnp.sum(kernel)) for kernel in kernels]
    return valid(
        found,
        jnp.all(jnp.stack(bounded)),
        "the kernel is infinite or overflows: variances grow beyond floating point through "
        "the layers, or the activation has no finite second moment there; lower weight_variance or the depth",
    )
