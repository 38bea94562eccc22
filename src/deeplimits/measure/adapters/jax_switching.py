"""The decisions of a JAX network: its program is traced once, and run with all its comparisons as further outputs."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal

from deeplimits.errors import ParameterError
from deeplimits.measure.adapters import with_jax
from deeplimits.measure.adapters.failures import told
from deeplimits.measure.adapters.switching import (
    NOT_LINEAR,
    Choices,
    Chunked,
    Passed,
    Signs,
    Switch,
    refused,
    window_winners,
)

LEAST = 8
"""Points of one call at the least; any number is filled up to a power of two, so that few programs are compiled."""
CONSTANT, STEPS, LINEAR = 0, 1, 2

AFFINE = {
    "add", "sub", "neg", "reduce_sum", "reshape", "transpose", "broadcast_in_dim", "concatenate", "slice", "squeeze",
    "expand_dims", "convert_element_type", "copy", "copy_p", "pad", "rev", "gather", "dynamic_slice", "cumsum", "split",
    "reduce_window_sum", "stop_gradient", "optimization_barrier", "sharding_constraint", "add_any", "real",
    "device_put", "reduce_precision", "unstack",
}  # fmt: skip
PRODUCTS = {"mul", "dot_general", "conv_general_dilated"}
COMPARISONS = {"gt", "ge", "lt", "le"}
INSIDE = ("jaxpr", "call_jaxpr", "fun_jaxpr")


def opened(network: Any, *, parameters: Any = None) -> "JaxSwitching":
    """A JAX function of a batch, with its parameters if it takes any, or a network that has been opened."""
    if isinstance(network, with_jax.JaxNetwork):
        tree = jax.tree.unflatten(network.programs.tree, network.leaves)
        apply: Callable[[Any, Any], Any] = network.programs.apply
    elif parameters is None and not _has_parameters(network):
        tree, apply = (), lambda _, x: network(x)
    else:
        taken = with_jax.function_and_tree(network, parameters)
        tree, apply = taken.tree, taken.apply
    doubled = jax.tree.map(_doubled, tree)
    return JaxSwitching(lambda x: apply(doubled, x))


def _has_parameters(network: Any) -> bool:
    return isinstance(network, with_jax.eqx.Module) or (hasattr(network, "apply") and not callable(network))


def _doubled(leaf: Any) -> Any:
    array = jnp.asarray(leaf)
    if not jnp.issubdtype(array.dtype, jnp.floating):
        return array
    if not np.all(np.isfinite(np.asarray(array))):
        raise ParameterError("the parameters of the network are not finite")
    return array.astype(float)


class JaxSwitching(Chunked):
    """A JAX function whose decisions can be watched."""

    chunk = 256

    def __init__(self, function: Callable[[Any], Any]):
        self.function = function
        self.names: list[tuple[str, dict[str, Any]]] = []
        self.program = jax.jit(self._watched)

    def passed(self, points: np.ndarray, only: int | None) -> Passed:
        count = len(points)
        size = max(LEAST, 1 << (count - 1).bit_length())
        filled = np.concatenate([points, np.repeat(points[-1:], size - count, axis=0)])
        with told(f"the network failed on points of shape {points.shape[1:]}"):
            z, watched = self.program(jnp.asarray(filled, float))
        chosen = range(len(watched)) if only is None else range(only, min(only + 1, len(watched)))
        switches = [_switch(*self.names[place], np.asarray(watched[place])[:count]) for place in chosen]
        return Passed(np.asarray(z, float).reshape(size, -1)[:count], switches)

    def _watched(self, x: jax.Array) -> tuple[Any, list[Any]]:
        closed = jax.make_jaxpr(self.function)(x)
        if len(closed.jaxpr.outvars) != 1:
            raise ParameterError("the network returns several arrays; wrap it so that it returns one")
        trace = _Trace(x.shape[0])
        (out,), _ = trace.evaluated(closed.jaxpr, closed.consts, [x], [LINEAR])
        if out.ndim == 0 or out.shape[0] != x.shape[0]:
            raise ParameterError(
                f"the outputs have shape {out.shape} for {x.shape[0]} inputs; the first axis must count inputs"
            )
        self.names = [(name, options) for name, options, _ in trace.noted]
        return out, [values for *_, values in trace.noted]


def _switch(name: str, options: dict[str, Any], values: np.ndarray) -> Switch:
    count = len(values)
    if "window" in options:
        return Choices(name, values.reshape(count, -1), window_winners(values, **options))
    if "kept" in options:
        rows = np.moveaxis(values, [0, *options["kept"]], range(1 + len(options["kept"])))
        rows = rows.reshape(count, int(np.prod([values.shape[axis] for axis in options["kept"]])), -1)
        return Choices(name, rows.reshape(count, -1), rows.argmax(axis=2) + rows.shape[2] * np.arange(rows.shape[1]))
    return Signs(name, values.reshape(count, -1))


class _Trace:
    """Evaluates a program operation by operation, and notes what is compared."""

    def __init__(self, samples: int):
        self.samples = samples
        self.noted: list[tuple[str, dict[str, Any], jax.Array]] = []

    def evaluated(self, program: Any, consts: Any, given: list[Any], kinds: list[int]) -> tuple[list[Any], list[int]]:
        values: dict[Any, Any] = {}
        how: dict[Any, int] = {}

        def put(variables: Any, arrays: Any, each: list[int]) -> None:
            for variable, one, kind in zip(variables, arrays, each, strict=True):
                values[variable], how[variable] = one, kind

        def get(variable: Any) -> tuple[Any, int]:
            return (variable.val, CONSTANT) if isinstance(variable, Literal) else (values[variable], how[variable])

        put(program.constvars, consts, [CONSTANT] * len(consts))
        put(program.invars, given, kinds)
        for step in program.eqns:
            pairs = [get(one) for one in step.invars]
            arrays, each = [one for one, _ in pairs], [kind for _, kind in pairs]
            found, results = self._one(step, arrays, each)
            put(step.outvars, found, results)
        last = [get(one) for one in program.outvars]
        return [one for one, _ in last], [kind for _, kind in last]

    def _one(self, step: Any, arrays: list[Any], kinds: list[int]) -> tuple[list[Any], list[int]]:
        name = step.primitive.name
        inner = next((step.params[word] for word in INSIDE if word in step.params), None)
        top = max(kinds, default=CONSTANT)
        if inner is not None and name not in ("scan", "while", "cond"):
            program, consts = (inner.jaxpr, inner.consts) if hasattr(inner, "jaxpr") else (inner, ())
            return self.evaluated(program, consts, arrays, kinds)
        kind = top if top == CONSTANT else self._looked_at(name, step.params, arrays, kinds, top)
        found = step.primitive.bind(*arrays, **step.params)
        found = list(found) if step.primitive.multiple_results else [found]
        return found, [kind] * len(found)

    def _looked_at(self, name: str, params: Any, arrays: list[Any], kinds: list[int], top: int) -> int:
        if name in ("scan", "while", "cond"):
            raise ParameterError(
                f"the network depends on its input inside a {name}; write its layers out, so that each can be seen"
            )
        if name in AFFINE:
            return top
        if name in PRODUCTS:
            if kinds.count(LINEAR) > 1:
                raise refused(f"a product of two such things ({name})")
            return top
        if name == "div":
            if kinds[1] != CONSTANT:
                raise refused("a division by such a thing")
            return top
        if name == "select_n":
            return max(kinds[1:]) if max(kinds[1:]) == LINEAR else STEPS
        if top == STEPS and name not in COMPARISONS:
            return STEPS
        if name in ("max", "min", *COMPARISONS):
            self._note(name, jnp.subtract(*jnp.broadcast_arrays(*arrays)))
        elif name in ("abs", "sign"):
            self._note(name, arrays[0])
        elif name == "clamp":
            low, x, high = arrays
            self._note(name, jnp.stack([x - low, x - high], axis=1))
        elif name in ("reduce_window_max", "reduce_max", "reduce_min", "argmax", "argmin"):
            self._chosen(name, params, -arrays[0] if "min" in name else arrays[0])
        else:
            raise refused(name)
        return STEPS if name in (*COMPARISONS, "sign", "argmax", "argmin") else LINEAR

    def _chosen(self, name: str, params: Any, x: Any) -> None:
        if name == "reduce_window_max":
            if any(one != 1 for one in params["base_dilation"]):
                raise refused("a maximum over dilated windows")
            options = {
                "window": tuple(params["window_dimensions"]),
                "strides": tuple(params["window_strides"]),
                "padding": tuple(params["padding"]),
                "dilation": tuple(params["window_dilation"]),
            }
            if options["window"][0] != 1:
                raise refused("a maximum over the samples")
            self._note(name, x, options)
            return
        axes = tuple(axis % x.ndim for axis in params["axes"])
        if 0 in axes:
            raise refused("a maximum over the samples")
        self._note(name, x, {"kept": [axis for axis in range(1, x.ndim) if axis not in axes]})

    def _note(self, name: str, values: Any, options: dict[str, Any] | None = None) -> None:
        if values.ndim == 0 or values.shape[0] != self.samples:
            raise ParameterError(f"the network's {name} mixes the inputs of a batch; {NOT_LINEAR}")
        self.noted.append((f"{len(self.noted)}: {name}", options or {}, values))
