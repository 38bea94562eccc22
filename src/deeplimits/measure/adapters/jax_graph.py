"""The operations of a JAX function, read off its jaxpr, which is evaluated one equation after another."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from deeplimits.errors import ParameterError
from deeplimits.measure.adapters.architecture import AffineLayer, Architecture, Operation, centre, chance, moments
from deeplimits.measure.adapters.data import Batch
from deeplimits.measure.adapters.jax_taps import means_over_taps
from deeplimits.measure.adapters.network import Inside
from deeplimits.measure.adapters.pairs import pairs
from deeplimits.measure.adapters.passages import Passage
from deeplimits.measure.adapters.signals import named
from deeplimits.measure.adapters.with_jax import JaxNetwork, ready

ACTIVATIONS = {
    "tanh": "tanh", "logistic": "sigmoid", "erf": "erf", "sin": "sin", "cos": "cos", "abs": "abs",
    # functions of jax.nn
    "relu": "relu", "gelu": "gelu", "silu": "swish", "swish": "swish", "sigmoid": "sigmoid", "softplus": "softplus",
}  # fmt: skip
UNNAMED = {"exp", "log", "sqrt", "rsqrt", "integer_pow", "pow", "square", "elu", "selu", "log1p", "expm1", "erf_inv"}
MOVES = {
    "reshape", "transpose", "broadcast_in_dim", "squeeze", "slice", "convert_element_type", "dynamic_slice", "rev",
    "copy", "copy_p", "expand_dims", "pad", "select_n", "stop_gradient", "optimization_barrier", "split",
    "sharding_constraint",
}  # fmt: skip
COMPARED = ("affine", "activation", "sum")
"""Where pairs of samples have an error."""
TOKENS = ("sum", "embedding", "shift")
INSIDE = ("jaxpr", "call_jaxpr", "fun_jaxpr")
OPAQUE = {"scan", "while", "cond"}


class Held(NamedTuple):
    """A value on its way: the operation it comes from, or the parameter (with '' for constants)."""

    value: Any
    place: int | None
    fixed: str | None


class Affine(NamedTuple):
    """What an affine layer saw."""

    place: int
    name: str
    parameter: str
    kind: str
    entering: Any
    weight: Any
    """One row for each output."""
    bias: Any
    """None without"""
    leaving: Any
    """With the bias."""
    power: np.ndarray
    axes: Any
    """Of a convolution: where samples, channels and space are before and after it."""
    times: Callable[[Any], Any]
    """The product with other weights."""


class Reader:
    """Evaluates a jaxpr and notes its operations; `shifts` are added to the results of some of them."""

    def __init__(self, samples: int, shifts: dict[int, Any] | None = None):
        self.samples, self.shifts = samples, shifts or {}
        self.count = 0
        self.operations: list[Operation] = []
        self.shapes: list[Any] = []
        self.results: list[Any] = []
        self.affine: list[Affine] = []
        self.softmax: set[int] = set()
        self.notes = shifts is None
        self.channel = -1
        """The axis of an image's channels, known from the first convolution on."""
        self.spreads: dict[int, Any] = {}

    def evaluate(self, jaxpr: Any, constants: Any, entering: list[Held]) -> list[Held]:
        """The results of a jaxpr."""
        known: dict[Any, Held] = {}

        def of(variable: Any) -> Held:
            return Held(variable.val, None, "") if hasattr(variable, "val") else known[variable]

        for variable, value in zip(jaxpr.constvars, constants, strict=True):
            known[variable] = Held(value, None, "")
        known.update(zip(jaxpr.invars, entering, strict=True))
        for equation in jaxpr.eqns:
            results = self._equation(equation, [of(one) for one in equation.invars])
            known.update(zip(equation.outvars, results, strict=True))
        return [of(one) for one in jaxpr.outvars]

    def _equation(self, equation: Any, given: list[Held]) -> list[Held]:
        word = str(equation.params.get("name", equation.primitive.name))
        moving = [one for one in given if one.place is not None]
        if not moving:
            names = [one.fixed for one in given if one.fixed]
            return [Held(value, None, names[0] if names else "") for value in self._bound(equation, given)]
        inner = next((equation.params[key] for key in INSIDE if key in equation.params), None)
        named = word in ACTIVATIONS or word in UNNAMED or "softmax" in word
        if inner is not None and equation.primitive.name not in OPAQUE and not (named and len(moving) == 1):
            closed = inner if hasattr(inner, "consts") else None
            return self.evaluate(closed.jaxpr if closed else inner, closed.consts if closed else (), given)
        results = self._bound(equation, given)
        if word in MOVES and len({one.place for one in moving}) == 1:
            return [Held(value, moving[0].place, None) for value in results]
        place = self.count
        self.count += 1
        if place in self.shifts:
            results[0] = results[0] + self.shifts[place]
        if self.notes:
            self._note(place, word, equation, given, moving, results[0])
        return [Held(value, place, None) for value in results]

    def _bound(self, equation: Any, given: list[Held]) -> list[Any]:
        values = [one.value for one in given]
        inner = next((equation.params[key] for key in INSIDE if key in equation.params), None)
        if inner is not None and equation.primitive.name not in OPAQUE:
            closed = inner if hasattr(inner, "consts") else ClosedJaxpr(inner, ())
            return list(jaxpr_as_fun(closed)(*values))
        params = equation.primitive.get_bind_params(equation.params)
        # Older versions of JAX give functions beside the parameters.
        functions, params = params if isinstance(params, tuple) else ((), params)
        found = equation.primitive.bind(*functions, *values, **params)
        return list(found) if equation.primitive.multiple_results else [found]

    def start(self, value: Any) -> Held:
        """An input."""
        place = self.count
        self.count += 1
        if self.notes:
            tokens = not jnp.issubdtype(value.dtype, jnp.floating)
            self._add("input", "data", "tokens" if tokens else "data", (), value, {})
        return Held(value, place, None)

    def _note(self, place: int, word: str, equation: Any, given: list[Held], moving: list[Held], result: Any) -> None:
        fixed = [one for one in given if one.place is None]
        sources = tuple(dict.fromkeys(one.place for one in moving if one.place is not None))
        kind, what, constants, name = "unread", word, {}, word
        if word in ("dot_general", "conv_general_dilated"):
            kind, what, constants, name = self._product(word, equation, given, fixed, moving, sources, result)
        elif word in ACTIVATIONS or word in UNNAMED:
            kind, what = "activation", ACTIVATIONS.get(word, "")
        elif word in ("max", "maximum") and fixed and not np.any(np.asarray(fixed[0].value)):
            kind, what = "activation", "relu"
        elif word in ("add", "sub", "add_any") and len(moving) > 1:
            whole = {int(np.prod(self.operations[one].shape)) for one in sources}
            kind = "unread" if len(whole) > 1 else "sum" if len(sources) > 1 else "scale"
            constants = {"factor": 4.0} if kind == "scale" else {}
        elif word in ("add", "sub", "add_any"):
            kind, constants = "shift", {"shift": _square(fixed[0].value)}
            self._with_bias(sources[0], fixed[0], result)
        elif word in ("mul", "div") and len(moving) == 1:
            value = np.asarray(fixed[0].value, float)
            kind = "scale" if word == "mul" or moving[0] is given[0] else "unread"
            with np.errstate(divide="ignore"):
                constants = {"factor": _square(value if word == "mul" else 1 / value)}
        elif word in ("mul", "div"):
            kind, what, sources = self._of_two(word, moving, sources, result)
        elif word == "gather" and given[0].place is None:
            table = np.asarray(given[0].value, float)
            kind, name = "embedding", given[0].fixed or word
            constants = {"variance": _square(table), "width": float(table.shape[-1])}
        elif word == "concatenate":
            kind = "concatenation"
        elif word.startswith(("reduce_", "cumsum", "argmax")):
            kind = "pooling"
        self._add(kind, name, what, sources, result, constants)
        if "softmax" in word or what == "softmax":
            self.softmax.add(place)

    def _of_two(self, word: str, moving: list[Held], sources: Any, result: Any):
        """A product or quotient of two signals: an activation written out, weights that sum to one, or just that."""
        above, below = self.operations[moving[0].place], self.operations[moving[-1].place]  # type: ignore[index]
        if word == "div" and below.kind == "pooling" and above.place in below.sources:
            return "unread", "softmax", sources
        for one in moving:
            found = named(np.asarray(one.value, float), np.asarray(result, float))
            if found:
                return "activation", found, (one.place,)
        return "product", word, sources

    def _product(self, word, equation, given, fixed, moving, sources, result):
        if len(moving) > 1:
            kind = "attention" if any(one.place in self.softmax for one in moving) else "product"
            return kind, word, {}, word
        left = given[0].place is not None
        matrix, x = np.asarray(fixed[0].value, float), moving[0].value
        if word == "dot_general":
            (mine, theirs), _ = equation.params["dimension_numbers"]
            axes = theirs if left else mine
            fan_in = int(np.prod([matrix.shape[axis] for axis in axes]))
            rows = np.moveaxis(matrix, axes, range(-len(axes), 0)).reshape(-1, fan_in)
            power, taps, kind = np.asarray(jnp.asarray(x, float) ** 2), 1.0, "Linear"
            each, order = moments(np.asarray(x, float), self.samples), None
        else:
            numbers = equation.params["dimension_numbers"]
            out = numbers.rhs_spec[0]
            rows = np.moveaxis(matrix, out, 0).reshape(matrix.shape[out], -1)
            fan_in, kind = rows.shape[1], f"Conv{matrix.ndim - 2}d"
            bound = equation.primitive.bind(x**2, jnp.ones_like(fixed[0].value), **equation.params)
            squares = np.asarray(bound, float)
            power, taps = np.asarray(x, float) ** 2, 1.0
            each, order = moments(np.sqrt(squares), self.samples) / fan_in, (numbers.lhs_spec, numbers.out_spec)
            self.channel, self.spreads[self.count - 1] = (
                numbers.out_spec[1],
                means_over_taps(equation, x.shape, numbers),
            )
            if self.operations[sources[0]].kind == "input":
                image = pairs(np.asarray(x, float), self.samples, numbers.lhs_spec[1], False)
                self.operations[sources[0]] = self.operations[sources[0]]._replace(pairs=image)

        def times(weights: Any) -> Any:
            other = jnp.asarray(weights, fixed[0].value.dtype).reshape(fixed[0].value.shape)
            return equation.primitive.bind(*((x, other) if left else (other, x)), **equation.params)

        mean = float(np.mean(power))
        taps = float(each.mean()) / mean if mean > 0 else 1.0
        before = float(self.operations[sources[0]].moment.mean())
        constants = {
            "weight_variance": fan_in * _square(matrix),
            "bias_variance": 0.0,
            "fan_in": float(fan_in),
            "width": float(len(rows)),
            "taps": taps * (mean / before if before > 0 else 1.0),
        }
        name = (fixed[0].fixed or word).removesuffix(".kernel").removesuffix(".weight")
        self.affine.append(
            Affine(self.count - 1, name, fixed[0].fixed or "", kind, x, rows, None, result, each, order, times)
        )
        return "affine", word, constants, name

    def _with_bias(self, place: int, fixed: Held, result: Any) -> None:
        for index, one in enumerate(self.affine):
            if one.place == place and one.bias is None and fixed.fixed:
                self.affine[index] = one._replace(bias=np.asarray(fixed.value, float).ravel(), leaving=result)

    def _add(self, kind, name, what, sources, result, constants) -> None:
        real = jnp.issubdtype(jnp.asarray(result).dtype, jnp.floating)
        values = np.asarray(result, float) if real else np.zeros((self.samples, 1))
        width = int(constants.get("width", 0))
        self.shapes.append(jnp.shape(result))
        self.results.append(result)
        self.operations.append(
            Operation(
                len(self.operations), kind, name, what, sources, tuple(values.shape), moments(values, self.samples),
                centre(values, -1), constants,
                chance(values, width, self.samples) if kind in ("affine", "embedding") and width else 0.0,
                tokens=values[:8] if kind in TOKENS and values.ndim == 3 and len(values) == self.samples else None,
                pairs=pairs(values, self.samples, self.channel if values.ndim > 3 else -1, kind in COMPARED),
                spread=self.spreads.pop(len(self.operations), None),
            )
        )  # fmt: skip


class Recorded(NamedTuple):
    """One pass through a JAX network."""

    reader: Reader
    slopes: dict[int, np.ndarray]
    run: Callable[[Reader], Any]
    """The outputs of another pass, with shifts."""


def recorded(network: JaxNetwork, batch: Batch, slopes: bool) -> Recorded:
    """All operations with what they saw, and the derivatives of the summed losses by affine results and sums."""
    x = ready(batch.inputs, network.dtype)
    y = ready(batch.targets, network.dtype)
    inputs, structure = jax.tree.flatten(x)
    count = len(network.leaves)

    def function(*flat):
        parameters = jax.tree.unflatten(network.programs.tree, list(flat[:count]))
        return jnp.asarray(network.programs.apply(parameters, jax.tree.unflatten(structure, list(flat[count:]))))

    closed = jax.make_jaxpr(function)(*network.leaves, *inputs)

    def run(reader: Reader) -> Any:
        given = [Held(leaf, None, name) for leaf, name in zip(network.leaves, network.names, strict=True)]
        given += [reader.start(one) for one in inputs]
        return reader.evaluate(closed.jaxpr, closed.consts, given)[0].value

    reader = Reader(batch.count)
    run(reader)
    found: dict[int, np.ndarray] = {}
    if slopes:
        wanted = [one.place for one in reader.operations if one.kind in ("affine", "sum", "embedding")]
        zeros = {place: jnp.zeros(reader.shapes[place], network.dtype) for place in wanted}

        def total(shifts):
            z = run(Reader(batch.count, shifts))
            share = jnp.asarray(1.0, z.dtype)
            return batch.count * network.programs.total(z, y, share, None)

        found = {place: np.asarray(value, float) for place, value in jax.grad(total)(zeros).items()}
    return Recorded(reader, found, run)


class AffineSeen(NamedTuple):
    """The operations, and the affine layers with their places."""

    read: Architecture
    seen: list[tuple[int, AffineLayer]]


def affine(network: JaxNetwork, batch: Batch) -> AffineSeen:
    """The affine layers of one pass."""
    reader = recorded(network, batch, False).reader

    def layer(one: Affine) -> AffineLayer:
        shape = (one.weight.shape[0], one.weight.shape[1])
        bare = np.asarray(reader.results[one.place], float)
        return AffineLayer(one.name, one.parameter, shape, bare, lambda w: np.asarray(one.times(w), float), 1.0)

    named = [one for one in reader.affine if one.parameter]
    return AffineSeen(Architecture(tuple(reader.operations), batch.count), [(one.place, layer(one)) for one in named])


def read(network: JaxNetwork, batch: Batch, slopes: bool) -> Architecture:
    """All operations of one pass."""
    made = recorded(network, batch, slopes)
    operations = [
        one._replace(slope=float((made.slopes[one.place] ** 2).sum()) / batch.count)
        if one.place in made.slopes
        else one
        for one in made.reader.operations
    ]
    return Architecture(tuple(operations), batch.count)


def passages(network: JaxNetwork, batch: Batch) -> list[Passage]:
    """All affine layers in the order in which the network computes them."""
    made = recorded(network, batch, True)
    return [
        Passage(
            one.name,
            one.kind,
            _channels_first(one.entering, one.axes, 0),
            _channels_first(one.leaving, one.axes, 1),
            _channels_first(made.slopes[one.place], one.axes, 1) if one.place in made.slopes else None,
            one.weight,
            one.bias,
            one.power,
            sum(other.name == one.name for other in made.reader.affine) > 1,
            lambda weights, one=one: np.asarray(one.times(weights), float),
        )
        for one in made.reader.affine
    ]


def inside(network: JaxNetwork, batch: Batch, layer: str | int | None, directions: np.ndarray) -> Inside:
    """What enters an affine layer, counted from 0 or by name (the last by default), and sensitivities to its result."""
    made = recorded(network, batch, False)
    layers = made.reader.affine
    if not layers:
        raise ParameterError("the function has no affine layer with parameters: there is nothing that enters one")
    places = [i for i, one in enumerate(layers) if layer in (i, one.name)] if layer is not None else [len(layers) - 1]
    if not places:
        raise ParameterError(f"layer = {layer!r} is not allowed; there are {', '.join(one.name for one in layers)}")
    one = layers[places[0]]
    shape = made.reader.shapes[one.place]
    if directions.shape[1]:
        z, pull = jax.vjp(
            lambda added: made.run(Reader(batch.count, {one.place: added})), jnp.zeros(shape, network.dtype)
        )
        u = jnp.asarray(directions, z.dtype)
        found = np.stack([np.asarray(pull(u[:, i].reshape(z.shape))[0], float) for i in range(u.shape[1])], axis=1)
    else:
        found = np.zeros((shape[0], 0, *shape[1:]))
    return Inside(np.asarray(one.entering, float), found, one.weight if one.kind == "Linear" else None)


def _channels_first(value: Any, axes: Any, place: int) -> np.ndarray:
    """Samples, channels, space, whatever the order of a convolution's axes."""
    found = np.asarray(value, float)
    return found if axes is None else np.transpose(found, axes[place])


def _square(value: Any) -> float:
    found = np.asarray(value, float)
    return float((found**2).mean()) if found.size else 0.0
