r"""What passes through a user's network, layer by layer: sizes of signals and gradients, angles, idle units.

An affine layer of fan-in m and width n is h_i = Σ_j W_ij x_j + b_i, i = 1 … n. With independent centred entries,
Var W_ij = C_w/m and Var b_i = C_b, every input x has the variance K(x) = C_b + C_w |x|²/m in its neurons, and

    E over the weights of  mean_x (1/n) Σ_i h_i(x)²   is   mean_x K(x),      variance  (2/n) mean_{x,x'} K(x, x')²

where K(x, x') = C_b + C_w x·x'/m and weights are Gaussian: how far the measured moment may be from it by chance.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from deeplimits.errors import ParameterError
from deeplimits.measure.adapters.data import Batch, cut
from deeplimits.measure.adapters.model import Model
from deeplimits.measure.estimates import Estimate
from deeplimits.models import activations
from deeplimits.numerics import arguments

TAKEN_TO_BE = 1e-3
"""Outputs this close to σ of the layer before, relative to their size, are read as σ of it."""
FLAT = 1e-2
"""A unit is saturated where |σ'| is below this share of its largest value."""
BLOCKS = 20
"""Of units, whose scatter is the error of a mean cosine."""
READ = (
    "relu", "tanh", "gelu", "swish", "sigmoid", "leaky_relu(0.01)", "softplus", "identity", "erf", "sin", "abs",
)  # fmt: skip
"""The activations that are looked for between two layers, in this order."""


class LayerSignal(NamedTuple):
    """One affine layer; arrays have one entry for each sample."""

    name: str
    kind: str
    fan_in: int
    width: int
    weight_variance: float
    """C_w, fan-in times the mean square of the weights"""
    bias_variance: float
    """C_b, the mean square of the biases; 0 without"""
    entering: np.ndarray
    """Σ x²/fan-in over the taps of an output, a mean over positions"""
    leaving: np.ndarray
    """(1/n) Σ h_i²"""
    gradient: np.ndarray | None
    """(1/n) Σ (∂l/∂h_i)² of each sample's own loss"""
    before: str | None
    """What made the input: 'data', the name of an activation of the layer before, or None where that is not read"""
    chance: float
    """Relative standard error of the mean of `leaving` about that of `expected`, for independent weights"""
    cosine: float
    """Mean cosine between what leaves the layer for two different samples"""
    idle: float
    """Share of the layer's units whose activation passes no signal on for any sample (0 where it is not read)"""
    saturated: float
    """Share of units and samples at which the activation is flat (0 where it is not read, or is piecewise linear)"""
    cosine_error: float = 0.0
    """Standard error of `cosine` over draws of the layer's own weights, its input given"""
    passed_error: float = 0.0
    """The same of what it would be with infinitely many outputs, over the units that its input has"""
    after: str | None = None
    """The activation that takes what leaves it; None where that is not read"""
    saturated_error: float = 0.0
    """Standard error of `saturated` over the layer's units"""
    gram: np.ndarray | None = None
    """Σ x x'/fan-in for all pairs of samples, where the layer takes one row of each; None where it takes several"""

    @property
    def expected(self) -> np.ndarray:
        """C_b + C_w · entering: what independent weights of these variances make of the input."""
        return self.bias_variance + self.weight_variance * self.entering

    @property
    def ratio(self) -> Estimate:
        """Mean of `leaving` over that of `expected`: 1 for independent centred weights, with its standard error."""
        expected = float(self.expected.mean())
        if expected == 0:
            return Estimate(1.0, 0.0)
        return Estimate(float(self.leaving.mean()) / expected, self.chance, draws=self.width)


class Signals(NamedTuple):
    """The affine layers of a network in the order of their calls, and what must be said of them."""

    layers: tuple[LayerSignal, ...]
    samples: int
    notes: tuple[str, ...]

    @property
    def chain(self) -> tuple[LayerSignal, ...]:
        """The layers from the data on, as long as each is the activation of the one before."""
        found: list[LayerSignal] = []
        for layer in self.layers:
            if layer.before is None or (layer.before == "data") != (not found):
                break
            found.append(layer)
        return tuple(found)


def layer_signals(model: Model, *, samples: int = 64) -> Signals:
    """Moments of signals and gradients at every affine layer of a network, over the first samples of the data.

    Linear layers and convolutions are found wherever the module, or the JAX function, calls them. What stands between
    two of them is read off the numbers: an activation is what turns the output of the one, elementwise, into the input
    of the other. The model is not changed.

    >>> import torch
    >>> from deeplimits.measure.adapters import open_model
    >>> _ = torch.manual_seed(0)
    >>> net = torch.nn.Sequential(torch.nn.Linear(20, 300), torch.nn.ReLU(), torch.nn.Linear(300, 1)).double()
    >>> x, y = np.random.default_rng(0).normal(size=(50, 20)), np.zeros((50, 1))
    >>> first, second = layer_signals(open_model(net, torch.nn.MSELoss(), (x, y))).layers
    >>> first.before, second.before, first.width, bool(abs(first.ratio.z - 1 / first.ratio.error) < 4)
    ('data', 'relu', 300, True)
    """
    count = arguments.whole("samples", samples, 2)
    batch = next(iter(model.data))
    batch = Batch(cut(batch.inputs, 0, count), cut(batch.targets, 0, count), min(batch.count, count))
    passed = passages(model, batch)
    notes = [f"{one.name} is called several times; its first call is shown" for one in passed if one.repeated]
    inputs = np.asarray(_flat(batch.inputs)) if hasattr(batch.inputs, "shape") else None
    return Signals(
        tuple(_signal(one, passed[:place], inputs, passed[place + 1 :]) for place, one in enumerate(passed)),
        batch.count,
        tuple(notes),
    )


def passages(model: Model, batch: Batch) -> list[Any]:
    """All affine layers on a batch, in the order in which the network calls them."""
    network: Any = model.network
    if hasattr(network, "body"):
        from deeplimits.measure.adapters import torch_tracing

        return torch_tracing.passages(network, batch)
    if hasattr(network, "programs"):
        from deeplimits.measure.adapters import jax_graph

        return jax_graph.passages(network, batch)
    raise ParameterError("the network is neither a torch.nn.Module nor a JAX function; its layers cannot be read")


def _flat(array: Any) -> np.ndarray:
    found = array.detach().cpu().numpy() if hasattr(array, "detach") else np.asarray(array)
    return found.reshape(len(found), -1)


def _signal(one: Any, earlier: list[Any], inputs: np.ndarray | None, later: list[Any]) -> LayerSignal:
    fan_in, width = one.weight.shape[1], one.weight.shape[0]
    c_w = float(fan_in * np.mean(one.weight**2))
    c_b = 0.0 if one.bias is None else float(np.mean(one.bias**2))
    rows = one.leaving.reshape(len(one.leaving), -1)
    after = _after(one, later)
    saturated = _saturated(one, after)
    return LayerSignal(
        one.name,
        one.kind,
        fan_in,
        width,
        c_w,
        c_b,
        one.power,
        (rows**2).mean(axis=1),
        None if one.slopes is None else (one.slopes.reshape(len(rows), -1) ** 2).mean(axis=1),
        _before(one, earlier, inputs),
        _chance(rows, width),
        _mean_cosine(rows),
        _idle(one, after),
        saturated[0],
        _error(one.leaving if one.leaving.ndim < 3 else np.moveaxis(one.leaving, 1 if one.leaving.ndim > 3 else -1, 1)),
        _error(one.entering, c_b, c_w) if one.entering.ndim == 2 and earlier else 0.0,
        after,
        saturated[1],
        one.entering @ one.entering.T / fan_in if one.entering.ndim == 2 and one.entering.shape[1] == fan_in else None,
    )


def _chance(rows: np.ndarray, width: int) -> float:
    """√((2/n) mean K(x, x')²)/mean K(x), with the outputs' own second moments for K.

    Of n neurons, Σ_{x,x'} (1/n Σ_i h_i(x)h_i(x'))² is above Σ K² by (Σ_x K)²/n, which is taken off.
    """
    gram = rows @ rows.T / rows.shape[1]
    total = np.trace(gram) / len(gram)
    if not total > 0:
        return 0.0
    squares = float(np.mean(gram**2))
    own = max(squares - total**2 / width, squares / len(gram)) if width > 1 else squares
    return float(np.sqrt(2 * own / width)) / total


def _mean_cosine(rows: np.ndarray, offset: float = 0.0, factor: float = 1.0) -> float:
    gram = offset + factor * (rows @ rows.T) / rows.shape[1]
    lengths = np.sqrt(np.diag(gram))
    if not np.all(lengths > 0) or len(rows) < 2:
        return float("nan")
    count = len(rows)
    return float((np.sum(gram / np.outer(lengths, lengths)) - count) / (count * (count - 1)))


def _error(units: np.ndarray, offset: float = 0.0, factor: float = 1.0) -> float:
    """Of a mean cosine in the kernel offset + factor·x·x'/n, by leaving out blocks of units, axis 1, in turn."""
    parts = np.array_split(np.arange(units.shape[1]), min(BLOCKS, units.shape[1]))
    if len(parts) < 2:
        return 0.0
    left = np.array([_mean_cosine(np.delete(units, part, 1).reshape(len(units), -1), offset, factor) for part in parts])
    if not np.all(np.isfinite(left)):
        return 0.0
    return float(np.sqrt((len(parts) - 1) * np.mean((left - left.mean()) ** 2)))


def _before(one: Any, earlier: list[Any], inputs: np.ndarray | None) -> str | None:
    """What made the input of a layer, read off the numbers."""
    entering = one.entering.reshape(len(one.entering), -1)
    if inputs is not None and entering.shape == inputs.shape and np.allclose(entering, inputs, rtol=1e-5, atol=1e-7):
        return "data"
    if not earlier:
        return None
    left = earlier[-1].leaving.reshape(len(entering), -1)
    return named(left, entering)


def _after(one: Any, later: list[Any]) -> str | None:
    if not later:
        return None
    return named(one.leaving.reshape(len(one.leaving), -1), later[0].entering.reshape(len(one.leaving), -1))


def named(left: np.ndarray, entering: np.ndarray) -> str | None:
    """The activation that turns one array into the other, entry by entry."""
    if left.shape != entering.shape:
        return None
    size = float(np.abs(entering).max())
    for name in READ:
        made = np.asarray(activations.activation(name).value(jnp.asarray(left)))
        if np.abs(made - entering).max() <= TAKEN_TO_BE * max(size, 1e-12):
            return name
    return None


def _idle(one: Any, after: str | None) -> float:
    """Units that are below the kink of a ReLU for every sample and at every position."""
    if after is None or activations.activation(after).homogeneous is None:
        return 0.0
    sigma = activations.activation(after)
    units = np.moveaxis(one.leaving, 1 if one.kind.startswith("Conv") else -1, 0).reshape(one.weight.shape[0], -1)
    return float(np.mean(np.all(np.asarray(sigma.value(jnp.asarray(units))) == 0, axis=1)))


def _saturated(one: Any, after: str | None) -> tuple[float, float]:
    """The share of units and samples, and its error over units."""
    if after is None or not activations.activation(after).bounded:
        return 0.0, 0.0
    flat = np.asarray(is_flat(after, one.leaving))
    units = np.moveaxis(flat, 1 if one.kind.startswith("Conv") else -1, 0).reshape(one.weight.shape[0], -1).mean(axis=1)
    error = float(units.std(ddof=1)) / len(units) ** 0.5 if len(units) > 1 else 0.0
    return float(units.mean()), error


def is_flat(name: str, u: Any) -> Any:
    """Whether an activation's slope is below `FLAT` of its largest.

    >>> is_flat("tanh", np.array([0.0, 2.9, 3.1])).tolist()
    [False, False, True]
    """
    sigma = activations.activation(name)
    top = jnp.abs(sigma.derivative(jnp.linspace(-8, 8, 1001))).max()
    slope = jnp.abs(sigma.derivative(jnp.asarray(u)))
    return slope < (FLAT * top).astype(slope.dtype)
