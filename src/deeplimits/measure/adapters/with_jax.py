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
from deeplimits.measure.adapters.layout import Layout
from deeplimits.measure.adapters.network import AtOutputs, Inside, Labelled, Network, Piece
from deeplimits.measure.adapters.reductions import reduced, single
from deeplimits.numerics.precision import full_products

Leaves = tuple[jax.Array, ...]


class Opened(NamedTuple):
    """A user's network taken apart: its function, its parameters' leaves and what is held fixed."""

    network: "JaxNetwork"
    notes: list[str]


def compiled(program: Callable[..., Any], *, static: int | None = None) -> Callable[..., Any]:
    return jax.jit(full_products(program), static_argnums=static)


class Programs:
    """The compiled programs of one network and loss, shared by all parameters, data and choices of names."""

    def __init__(self, apply: Callable[[Any, Any], Any], loss: Callable[[Any, Any], Any], tree: Any, reduction: str):
        self.apply, self.loss, self.tree, self.reduction = apply, loss, tree, reduction
        self.owner: Any = None
        """The object that has this function, where it is one of the house's networks."""

    def outputs(self, leaves: Leaves, rest: Leaves, places: tuple[int, ...], x: Any) -> jax.Array:
        """Outputs as a function of the leaves at `places`; all other leaves are in `rest`."""
        full: list[Any] = list(rest)
        for place, leaf in zip(places, leaves, strict=True):
            full.insert(place, leaf)
        return jnp.asarray(self.apply(jax.tree.unflatten(self.tree, full), x))

    def losses(self, z: jax.Array, y: Any) -> jax.Array:
        """The loss of every sample."""
        if self.reduction == "none":
            return jnp.asarray(self.loss(z, y)).astype(z.dtype)
        each = jax.vmap(lambda one, target: jnp.reshape(self.loss(*single(one, target)), ()))(z, y)
        return each.astype(z.dtype)

    def total(self, z: jax.Array, y: Any, share: jax.Array, weights: jax.Array | None) -> jax.Array:
        """F as a function of the outputs."""
        if weights is not None:
            return jnp.sum(weights * self.losses(z, y))
        value = jnp.asarray(self.loss(z, y)).astype(z.dtype)
        return share * jnp.reshape(reduced(value, self.reduction, z.shape[0], jnp.mean), ())

    # Each program is a function of arrays alone, compiled once for each shape.

    @functools.cached_property
    def evaluate(self):
        return compiled(self.outputs, static=2)

    @functools.cached_property
    def linear_outputs(self):
        def program(leaves, rest, places, x):
            return jax.linearize(lambda where: self.outputs(where, rest, places, x), leaves)[1]

        return compiled(program, static=2)

    @functools.cached_property
    def pullback(self):
        def program(leaves, rest, places, x):
            return jax.vjp(lambda where: self.outputs(where, rest, places, x), leaves)[1]

        return compiled(program, static=2)

    @functools.cached_property
    def gradient(self):
        return compiled(self._gradient, static=2)

    def _gradient(self, leaves, rest, places, x, y, share, weights):
        return jax.grad(lambda where: self.total(self.outputs(where, rest, places, x), y, share, weights))(leaves)

    @functools.cached_property
    def linear_gradient(self):
        def program(leaves, rest, places, x, y, share, weights):
            return jax.linearize(lambda where: self._gradient(where, rest, places, x, y, share, weights), leaves)[1]

        return compiled(program, static=2)

    @functools.cached_property
    def linear_residual(self):
        def program(leaves, rest, places, x, y, share, weights):
            z = self.outputs(leaves, rest, places, x)
            slopes = jax.grad(lambda u: self.total(u, y, share, weights))(z)

            def gradient(where):
                return jax.grad(lambda w: jnp.sum(slopes * self.outputs(w, rest, places, x)))(where)

            return jax.linearize(gradient, leaves)[1]

        return compiled(program, static=2)

    @functools.cached_property
    def run(self):  # applies a linearization
        return compiled(lambda linear, *vectors: linear(*vectors))

    @functools.cached_property
    def in_outputs(self):  # F from the outputs
        return compiled(self.total)

    @functools.cached_property
    def each(self):
        return compiled(self.losses)

    @functools.cached_property
    def bend(self):
        def program(z, y, share, weights, u):
            return jax.jvp(jax.grad(lambda w: self.total(w, y, share, weights)), (z,), (u,))[1]

        return compiled(program)

    @functools.cached_property
    def in_outputs_with_slopes(self):
        return jax.jit(jax.value_and_grad(self.total))

    @functools.cached_property
    def slopes(self):
        return compiled(jax.grad(lambda z, y: jnp.sum(self.losses(z, y))))

    @functools.cached_property
    def jacobians(self):
        def program(leaves, rest, places, x):
            def one(single_x):
                expanded = jax.tree.map(lambda array: array[None], single_x)
                found = jax.jacrev(lambda where: self.outputs(where, rest, places, expanded)[0].ravel())(leaves)
                return jnp.concatenate([part.reshape(part.shape[0], -1) for part in found], axis=1)

            return jax.vmap(one)(x)

        return compiled(program, static=2)


class JaxNetwork(Network):
    """A JAX network at fixed parameters."""

    def __init__(self, programs: Programs, leaves: list[jax.Array], names: list[str], places: tuple[int, ...]):
        self.programs, self.leaves, self.names, self.places = programs, leaves, names, places
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
        return JaxNetwork(self.programs, leaves, self.names, self.places)

    def varying(self, names: tuple[str, ...]) -> "JaxNetwork":
        places = tuple(self.names.index(name) for name in names)
        return JaxNetwork(self.programs, self.leaves, self.names, places)

    def now(self) -> "JaxNetwork":
        return self  # arrays of JAX never change

    def piece(self, batch: Batch, share: float, weights: np.ndarray | None = None) -> "JaxPiece":
        return JaxPiece(self, batch, share, weights)

    def evaluate(self, batch: Batch, seed: int = 0) -> np.ndarray:
        x = ready(batch.inputs, self.dtype)
        return np.asarray(self.programs.evaluate(self.varied, self.rest, self.places, x), float)

    def target_of(self, batch: Batch, label: Any) -> Any:
        y = ready(batch.targets, self.dtype)
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
        z = jnp.asarray(self.evaluate(batch), self.dtype)
        return np.asarray(self.programs.loss(z, ready(batch.targets, self.dtype)))

    def single_losses(self, batch: Batch) -> np.ndarray:
        z = jnp.asarray(self.evaluate(batch), self.dtype)
        trial = Programs(self.programs.apply, self.programs.loss, self.programs.tree, "mean")
        return np.asarray(trial.each(z, ready(batch.targets, self.dtype)), float)

    def with_reduction(self, reduction: str) -> "JaxNetwork":
        programs = Programs(self.programs.apply, self.programs.loss, self.programs.tree, reduction)
        programs.owner = self.programs.owner
        return JaxNetwork(programs, self.leaves, self.names, self.places)


class JaxPiece(Piece):
    """Some samples; what has been linearized is kept."""

    def __init__(self, network: JaxNetwork, batch: Batch, share: float, weights: np.ndarray | None):
        self.network, self.batch, self.count = network, batch, batch.count
        self.x, self.y = ready(batch.inputs, network.dtype), ready(batch.targets, network.dtype)
        self.share = jnp.asarray(share, network.dtype)
        self.weights = None if weights is None else jnp.asarray(weights, network.dtype)
        self.made: dict[str, Any] = {}

    @property
    def at(self) -> tuple[Any, ...]:
        return self.network.varied, self.network.rest, self.network.places, self.x

    @property
    def objective(self) -> tuple[Any, ...]:
        return self.y, self.share, self.weights

    def kept(self, name: str, *arguments: Any) -> Any:
        if name not in self.made:
            self.made[name] = getattr(self.network.programs, name)(*arguments)
            self.bytes += sum(leaf.nbytes for leaf in jax.tree.leaves(self.made[name]))
        return self.made[name]

    @property
    def z(self) -> jax.Array:
        return self.kept("evaluate", *self.at)

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
    if type(tree).__module__.startswith("flax.nnx"):  # whose variables hold their array as .value
        with_paths = [(path[:-1], leaf) for path, leaf in with_paths]
    names, leaves, places = [], [], []
    for index, (path, leaf) in enumerate(with_paths):
        if not eqx.is_array_like(leaf):
            raise ParameterError(f"the parameter {_name(path)} is a {type(leaf).__name__}; it must be an array")
        array = jnp.asarray(leaf)
        if precision is not None and jnp.issubdtype(array.dtype, jnp.floating):
            array = array.astype(precision)
        name = _name(path)
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
    programs = Programs(apply, loss, structure, "mean")
    programs.owner = network
    return Opened(JaxNetwork(programs, leaves, names, tuple(places)), notes)


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
    nested = isinstance(tree, Mapping) and "params" in tree
    return not nested or getattr(path[0], "key", None) == "params"


def _name(path: tuple[Any, ...]) -> str:
    parts = [str(getattr(key, "key", getattr(key, "name", getattr(key, "idx", key)))) for key in path]
    return ".".join(parts) or "parameters"
