"""A JAX function of parameters and inputs as a `Network`.

Data enter compiled programs as arguments, since closing over them costs minutes of constant folding; the linearization
at fixed parameters is computed once and kept, which halves the time of a product.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from deeplimits.ensembles.wide_networks import WideNetwork
from deeplimits.errors import MissingArgument, ParameterError
from deeplimits.measure.adapters.data import Batch
from deeplimits.measure.adapters.inside_wide_networks import of_wide_network
from deeplimits.measure.adapters.jax_programs import Leaves, Programs
from deeplimits.measure.adapters.layout import Layout
from deeplimits.measure.adapters.network import AtOutputs, Inside, Labelled, Network, Piece


class Opened(NamedTuple):
    """A user's network taken apart: its function, its parameters' leaves and what is held fixed."""

    network: "JaxNetwork"
    notes: list[str]


class JaxNetwork(Network):
    """A JAX network at fixed parameters."""

    def __init__(
        self,
        programs: Programs,
        leaves: list[jax.Array],
        names: list[str],
        places: tuple[int, ...],
        fixed: bool = False,
    ):
        self.programs, self.leaves, self.names, self.places, self.fixed = programs, leaves, names, places, fixed
        real = [i for i, leaf in enumerate(leaves) if jnp.issubdtype(leaf.dtype, jnp.floating)]
        self.everything = Layout(tuple(names[i] for i in real), tuple(leaves[i].shape for i in real))
        self.layout = Layout(tuple(names[i] for i in places), tuple(leaves[i].shape for i in places))

    @property
    def reduction(self) -> str:  # type: ignore[override]
        return self.programs.reduction

    @property
    def dtype(self) -> Any:
        """The precision in which it computes."""
        return jnp.result_type(*(self.leaves[i].dtype for i in self.places))

    @property
    def free_memory(self) -> int | None:
        # A CPU has no statistics.
        told = next(iter(self.varied[0].devices())).memory_stats() or {}
        return told["bytes_limit"] - told["bytes_in_use"] if "bytes_limit" in told else None

    @property
    def varied(self) -> Leaves:
        return tuple(self.leaves[i] for i in self.places)

    @property
    def rest(self) -> Leaves:
        return tuple(leaf for i, leaf in enumerate(self.leaves) if i not in self.places)

    def vector(self) -> np.ndarray:
        return joined(self.varied)

    def tree(self, vector: np.ndarray) -> Leaves:
        """A flat vector as leaves."""
        shaped = self.layout.named(np.asarray(vector)).values()
        return jax.device_put(tuple(np.asarray(p, leaf.dtype) for p, leaf in zip(shaped, self.varied, strict=True)))

    def at(self, vector: np.ndarray) -> "JaxNetwork":
        moved = dict(zip(self.places, self.tree(vector), strict=True))
        leaves = [moved.get(i, leaf) for i, leaf in enumerate(self.leaves)]
        return JaxNetwork(self.programs, leaves, self.names, self.places, self.fixed)

    def varying(self, names: tuple[str, ...]) -> "JaxNetwork":
        places = tuple(self.names.index(name) for name in names)
        return JaxNetwork(self.programs, self.leaves, self.names, places, self.fixed)

    def now(self) -> "JaxNetwork":
        return self  # arrays of JAX never change

    def piece(self, batch: Batch, share: float, weights: np.ndarray | None = None) -> "JaxPiece":
        return JaxPiece(self, batch, share, weights)

    def evaluate(self, batch: Batch, seed: int = 0) -> np.ndarray:
        x = ready(batch.inputs, self.dtype)
        return np.asarray(self.programs.evaluate(self.varied, self.rest, self.places, x), float)

    @property
    def precise(self) -> Any:
        """The precision in which the loss is taken."""
        return jnp.float64 if self.programs.exact else self.dtype

    def wide(self, batch: Batch) -> jax.Array | None:
        """The outputs in float64; None where the network insists on float32."""
        try:
            found = self.programs.wide_outputs(self.varied, self.rest, self.places, ready(batch.inputs, self.dtype))
        except Exception:
            return None
        return found if found.dtype == jnp.float64 else None

    def settled(self, batch: Batch) -> "JaxNetwork":
        # A loss that is nearly zero at most samples hangs on what its outputs have beyond float32 (see `torch_exact`).
        kinds = {leaf.dtype for leaf in self.leaves if jnp.issubdtype(leaf.dtype, jnp.floating)}
        here = next(iter(self.varied[0].devices())).platform == "cpu"
        if self.fixed or kinds != {jnp.dtype(jnp.float32)} or not here or not jax.config.jax_enable_x64:  # pyright: ignore[reportAttributeAccessIssue]
            return self
        tried = self.with_programs(self.programs.renewed(exact=True))
        try:
            wide, narrow = tried.wide(batch), self.evaluate(batch)
            value = tried.raw_loss(batch)
        except Exception:  # what is wrong with it is said later
            return self
        near = wide is not None and np.abs(np.asarray(wide) - narrow).max() <= 1e-3 * np.abs(narrow).max()
        return tried if near and np.all(np.isfinite(value)) else self

    def target_of(self, batch: Batch, label: Any) -> Any:
        y = ready(batch.targets, self.precise)
        if y.ndim == 2 and y.shape[1] > 1:
            return jnp.zeros_like(y).at[:, int(label)].set(1)
        return jnp.full_like(y, label)

    def inside(self, batch: Batch, layer: str | int | None, directions: np.ndarray) -> Inside:
        if not isinstance(self.programs.owner, WideNetwork):
            from deeplimits.measure.adapters import jax_graph

            return jax_graph.inside(self, batch, layer, directions)
        parameters = jax.tree.unflatten(self.programs.tree, self.leaves)
        return of_wide_network(self.programs.owner, parameters, ready(batch.inputs, self.dtype), layer, directions)

    def raw_loss(self, batch: Batch) -> np.ndarray:
        z = jnp.asarray(self.evaluate(batch), self.precise)
        return np.asarray(self.programs.raw(z, ready(batch.targets, self.precise)))

    def single_losses(self, batch: Batch) -> np.ndarray:
        z = jnp.asarray(self.evaluate(batch), self.precise)
        trial = self.programs.renewed(reduction="mean")
        return np.asarray(trial.each(z, ready(batch.targets, self.precise)), float)

    def with_reduction(self, reduction: str) -> "JaxNetwork":
        return self.with_programs(self.programs.renewed(reduction=reduction))

    def with_programs(self, programs: Programs) -> "JaxNetwork":
        """The same network with other programs."""
        return JaxNetwork(programs, self.leaves, self.names, self.places, self.fixed)


class JaxPiece(Piece):
    """Some samples; what has been linearized is kept."""

    def __init__(self, network: JaxNetwork, batch: Batch, share: float, weights: np.ndarray | None):
        self.network, self.batch, self.count = network, batch, batch.count
        self.x, self.y = ready(batch.inputs, network.dtype), ready(batch.targets, network.precise)
        self.share = jnp.asarray(share, network.precise)
        self.weights = None if weights is None else jnp.asarray(weights, network.precise)
        self.made: dict[str, Any] = {}

    @property
    def at(self) -> tuple[Any, ...]:
        return self.network.varied, self.network.rest, self.network.places, self.x, self.wide

    @property
    def objective(self) -> tuple[Any, ...]:
        return self.y, self.share, self.weights

    def kept(self, name: str, *arguments: Any) -> Any:
        if name not in self.made:
            self.made[name] = getattr(self.network.programs, name)(*arguments)
            self.bytes += sum(leaf.nbytes for leaf in jax.tree.leaves(self.made[name]))
        return self.made[name]

    @functools.cached_property
    def wide(self) -> jax.Array | None:
        """The outputs in float64, where the loss is taken there."""
        return self.network.wide(self.batch) if self.network.programs.exact else None

    @property
    def z(self) -> jax.Array:
        return self.kept("evaluate", *self.at) if self.wide is None else self.wide

    def _applied(self, linear: Any, vector: np.ndarray) -> Any:
        return self.network.programs.run(linear, self.network.tree(vector))

    def outputs(self) -> np.ndarray:
        return np.asarray(self.z, float)

    def loss(self) -> float:
        return float(self.network.programs.in_outputs(self.z, *self.objective))

    def losses(self) -> np.ndarray:
        return np.asarray(self.network.programs.each(self.z, self.y), float)

    def gradient(self) -> np.ndarray:
        return joined(self.network.programs.gradient(*self.at, *self.objective))

    def hessian(self, vector: np.ndarray) -> np.ndarray:
        return joined(self._applied(self.kept("linear_gradient", *self.at, *self.objective), vector))

    def residual(self, vector: np.ndarray) -> np.ndarray:
        return joined(self._applied(self.kept("linear_residual", *self.at, *self.objective), vector))

    def push(self, vector: np.ndarray) -> np.ndarray:
        return np.asarray(self._applied(self.kept("linear_outputs", *self.at), vector), float)

    def pull(self, directions: np.ndarray) -> np.ndarray:
        u = jnp.asarray(directions, self.z.dtype).reshape(self.z.shape)
        return joined(self.network.programs.run(self.kept("pullback", *self.at), u)[0])

    def bend(self, directions: np.ndarray) -> np.ndarray:
        u = jnp.asarray(directions, self.z.dtype).reshape(self.z.shape)
        return np.asarray(self.network.programs.bend(self.z, *self.objective, u), float)

    def at_outputs(self, outputs: np.ndarray) -> AtOutputs:
        z = jnp.asarray(outputs, self.z.dtype).reshape(self.z.shape)
        value, slope = self.network.programs.in_outputs_with_slopes(z, *self.objective)
        return AtOutputs(float(value), np.asarray(slope, float))

    def slopes(self) -> np.ndarray:
        return np.asarray(self.network.programs.slopes(self.z, self.y), float)

    def labelled(self, labels: list[Any]) -> Labelled:
        programs, p, s = self.network.programs, [], []
        for label in labels:
            y = self.network.target_of(self.batch, label)
            p.append(np.exp(-np.asarray(programs.each(self.z, y), float)))
            s.append(np.asarray(programs.slopes(self.z, y), float))
        return Labelled(np.stack(p, axis=1), np.stack(s, axis=1))

    def sample_jacobians(self) -> np.ndarray:
        return np.asarray(self.network.programs.jacobians(*self.at), float)


def joined(leaves: Any) -> np.ndarray:
    """Leaves as one flat float64 vector; a device is waited for once."""
    return np.concatenate([np.asarray(leaf, float).ravel() for leaf in jax.device_get(list(leaves))])


def ready(tree: Any, dtype: Any) -> Any:
    """Arrays of the user's as arrays of JAX, real ones in the network's precision."""

    def one(leaf):
        if hasattr(leaf, "detach"):
            leaf = leaf.detach().cpu().numpy()
        found = jnp.asarray(leaf)
        return found.astype(dtype) if jnp.issubdtype(found.dtype, jnp.floating) else found

    return jax.tree.map(one, tree)


def opened(network: Any, loss: Callable[[Any, Any], Any], parameters: Any, *, precision: str | None = None) -> Opened:
    """A JAX function, an equinox module or an object with `apply` (flax, `WideNetwork`), with its parameters."""
    notes: list[str] = []
    apply, tree = function_and_tree(network, parameters)
    with_paths, structure = jax.tree_util.tree_flatten_with_path(tree)
    if not with_paths:
        raise ParameterError("the network has no parameters")
    held = type(tree).__module__.startswith("flax.nnx")  # whose variables hold their array as .value
    names, leaves, places = [], [], []
    for index, (path, leaf) in enumerate(with_paths):
        name = _name(path[:-1] if held else path)
        if not eqx.is_array_like(leaf):
            raise ParameterError(f"the parameter {name} is a {type(leaf).__name__}; it must be an array")
        array = jnp.asarray(leaf)
        if precision is not None and jnp.issubdtype(array.dtype, jnp.floating):
            array = array.astype(precision)
        names.append(name)
        leaves.append(array)
        if jnp.issubdtype(array.dtype, jnp.complexfloating):
            raise ParameterError(f"the parameter {name} is complex; networks must have real parameters")
        if not jnp.issubdtype(array.dtype, jnp.floating):
            notes.append(f"the parameter {name} is of type {array.dtype}; it has no derivative and is held fixed")
        elif _is_variable(tree, path):
            places.append(index)
        else:
            notes.append(f"{name} is no parameter but a state of the network and is held fixed")
    if not places:
        raise ParameterError("the network has no real parameter to vary; all of them are integers or states")
    programs = Programs(apply, loss, structure)
    programs.owner = network
    return Opened(JaxNetwork(programs, leaves, names, tuple(places), precision is not None), notes)


class _Taken(NamedTuple):
    apply: Callable[[Any, Any], Any]
    tree: Any


def function_and_tree(network: Any, parameters: Any) -> _Taken:
    """The function apply(tree, x) of a network of JAX, and its parameters as a tree."""
    if parameters is None:
        if not isinstance(network, eqx.Module):
            raise MissingArgument("a JAX function needs its parameters; give them, as parameters=...")
        varied, rest = eqx.partition(network, eqx.is_inexact_array)

        def module(theta: Any, x: Any) -> Any:
            # Modules of equinox are written for one sample.
            return jax.vmap(eqx.combine(theta, rest))(x)

        return _Taken(module, varied)
    return _Taken(network.apply if hasattr(network, "apply") else network, parameters)


def _is_variable(tree: Any, path: tuple[Any, ...]) -> bool:
    """flax keeps parameters under 'params' and everything else beside it."""
    return not (isinstance(tree, Mapping) and "params" in tree) or getattr(path[0], "key", None) == "params"


def _name(path: tuple[Any, ...]) -> str:
    parts = [str(getattr(key, "key", getattr(key, "name", getattr(key, "idx", key)))) for key in path]
    return ".".join(parts) or "parameters"
