"""The operations of a JAX function, read off its jaxpr, which is evaluated one equation after another."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from deeplimits.measure.adapters.architecture import Architecture, Operation, centre, chance, moments
from deeplimits.measure.adapters.data import Batch
from deeplimits.measure.adapters.with_jax import JaxNetwork, ready

ACTIVATIONS = {
    "tanh": "tanh", "logistic": "sigmoid", "erf": "erf", "sin": "sin", "cos": "cos", "abs": "abs",
    # functions of jax.nn
    "relu": "relu", "gelu": "gelu", "silu": "swish", "swish": "swish", "sigmoid": "sigmoid", "softplus": "softplus",
}  # fmt: skip
UNNAMED = {"exp", "log", "sqrt", "rsqrt", "integer_pow", "pow", "square", "elu", "selu", "log1p", "expm1", "erf_inv"}
MOVES = {
    "reshape", "transpose", "broadcast_in_dim", "squeeze", "slice", "convert_element_type", "dynamic_slice", "rev",
    "copy", "copy_p", "expand_dims", "pad", "select_n", "stop_gradient", "optimization_barrier", "split", "sharding_constraint",
}  # fmt: skip
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
    kind: str
    entering: Any
    weight: Any
    """One row for each output."""
    bias: Any
    """None without"""
    leaving: Any
    """With the bias."""
    power: np.ndarray


class Reader:
    """Evaluates a jaxpr and notes its operations; `shifts` are added to the results of some of them."""

    def __init__(self, samples: int, shifts: dict[int, Any] | None = None):
        self.samples, self.shifts = samples, shifts or {}
        self.count = 0
        self.operations: list[Operation] = []
        self.shapes: list[Any] = []
        self.affine: list[Affine] = []
        self.softmax: set[int] = set()
        self.notes = shifts is None

    def evaluate(self, jaxpr: Any, constants: Any, given: list[Held]) -> list[Held]:
        """The results of a jaxpr."""
        known: dict[Any, Held] = {}

        def of(variable: Any) -> Held:
            return Held(variable.val, None, "") if hasattr(variable, "val") else known[variable]

        for variable, value in zip(jaxpr.constvars, constants, strict=True):
            known[variable] = Held(value, None, "")
        known.update(zip(jaxpr.invars, given, strict=True))
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
        elif "softmax" in word:
            self.softmax.add(place)
        return [Held(value, place, None) for value in results]

    def _bound(self, equation: Any, given: list[Held]) -> list[Any]:
        functions, params = equation.primitive.get_bind_params(equation.params)
        found = equation.primitive.bind(*functions, *(one.value for one in given), **params)
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
        sources = tuple(dict.fromkeys(one.place for one in moving))
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
            kind = "product"
        elif word == "gather" and given[0].place is None:
            table = np.asarray(given[0].value, float)
            kind, name = "embedding", given[0].fixed or word
            constants = {"variance": _square(table), "width": float(table.shape[-1])}
        elif word == "concatenate":
            kind = "concatenation"
        elif word.startswith(("reduce_", "cumsum", "argmax")):
            kind = "pooling"
        self._add(kind, name, what, sources, result, constants)
        if "softmax" in word:
            self.softmax.add(place)

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
            each = moments(np.asarray(x, float), self.samples)
        else:
            numbers = equation.params["dimension_numbers"]
            out = numbers.rhs_spec[0]
            rows = np.moveaxis(matrix, out, 0).reshape(matrix.shape[out], -1)
            fan_in, kind = rows.shape[1], f"Conv{matrix.ndim - 2}d"
            bound = equation.primitive.bind(x**2, jnp.ones_like(fixed[0].value), **equation.params)
            squares = np.asarray(bound, float)
            power, taps = np.asarray(x, float) ** 2, 1.0
            each = moments(np.sqrt(squares), self.samples) / fan_in
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
        self.affine.append(Affine(self.count - 1, name, kind, x, rows, None, result, each))
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
        self.operations.append(
            Operation(
                len(self.operations), kind, name, what, sources, tuple(values.shape), moments(values, self.samples),
                centre(values, -1), constants,
                chance(values, width, self.samples) if kind in ("affine", "embedding") and width else 0.0,
                tokens=values[:8] if kind == "sum" and values.ndim == 3 and values.shape[0] == self.samples else None,
            )
        )  # fmt: skip


class Recorded(NamedTuple):
    """One pass through a JAX network."""

    reader: Reader
    slopes: dict[int, np.ndarray]


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
    return Recorded(reader, found)


def read(network: JaxNetwork, batch: Batch, slopes: bool) -> Architecture:
    """All operations of one pass."""
    made = recorded(network, batch, slopes)
    operations = [
        one._replace(slope=float((made.slopes[one.place] ** 2).sum()) / batch.count) if one.place in made.slopes else one
        for one in made.reader.operations
    ]
    return Architecture(tuple(operations), batch.count)


def _square(value: Any) -> float:
    found = np.asarray(value, float)
    return float((found**2).mean()) if found.size else 0.0
