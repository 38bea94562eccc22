"""How long a program will run, read off its operations before it is compiled.

Only the order of magnitude is wanted: to tell seconds from hours. Operations are counted with their shapes, bodies of
loops as often as they run; where that depends on the data, `UNKNOWN` times.
"""

import math
from collections.abc import Sequence
from typing import Any

import jax

UNKNOWN = 4.0
"""How often a loop without a known number of rounds is taken to run: most are rejections, which seldom repeat."""
SPEED = 2e9
"""Simple operations a second on one core, with their traffic to memory."""
OVERHEAD = 2e-7
"""Seconds that any operation takes to be started, however small."""
# What one entry of the result costs, in simple operations.
HEAVY = {"random_bits": 60, "threefry2x32": 60, "erf_inv": 30, "erf": 20, "tanh": 15, "exp": 10, "log": 10, "sin": 15,
         "cos": 15, "pow": 20, "logistic": 12, "sqrt": 3, "div": 3, "sort": 30}  # fmt: skip
# What a decomposition of an n x n matrix costs, over n³.
DECOMPOSITIONS = {"eigh": 12.0, "svd": 20.0, "qr": 4.0, "householder_product": 4.0, "cholesky": 0.5, "lu": 1.0,
                  "triangular_solve": 1.0, "eig": 25.0, "geqrf": 4.0}  # fmt: skip


def seconds(jaxpr: Any, arguments: Sequence[Any] = (), rounds: float = UNKNOWN) -> float:
    """About how long a program runs on one core of a usual machine.

    Whole numbers that do not depend on the data, such as the ends of loops, are computed on the way; `arguments` are
    those of the program's inputs that are known, None where one is not. `rounds` is how often a loop that ends by
    chance runs; loops inside it are taken for rejections.

    >>> import jax.numpy as jnp
    >>> small, large = (jax.make_jaxpr(lambda x: x @ x)(jnp.ones((n, n))) for n in (10, 1000))
    >>> seconds(small) < 1e-5 < seconds(large)
    True
    >>> def loops(ends):
    ...     return jax.lax.scan(lambda x, end: (jax.lax.fori_loop(0, end, lambda _, y: 1 / y, x), None), 2.0, ends)[0]
    >>> brief, long = (jax.make_jaxpr(lambda ends=ends: loops(jnp.array(ends)))() for ends in ([10, 20], [10, 20_000]))
    >>> round(seconds(long) / seconds(brief), -2) > 300
    True
    """
    inner = _open(jaxpr)
    known = dict(zip(inner.constvars, getattr(jaxpr, "consts", ()), strict=False))
    known |= dict(zip(inner.invars, arguments, strict=False))

    def value(variable: Any) -> Any:
        return variable.val if hasattr(variable, "val") else known.get(variable)

    total = 0.0
    for equation in inner.eqns:
        given = [value(variable) for variable in equation.invars]
        total += _operation(equation, given, rounds)
        found = _computed(equation, given)
        known.update(zip(equation.outvars, found, strict=False))
    return total


WHOLE = {"dot_general", "sort", "scan", "while", *DECOMPOSITIONS}
"""Operations whose inputs and results lie in memory whole; others are fused, and may need no memory of their own."""


def memory(jaxpr: Any) -> float:
    """The bytes that a program needs at least: its results, or its largest operation with all that goes in and out.

    >>> import jax.numpy as jnp
    >>> memory(jax.make_jaxpr(lambda x: x @ x)(jnp.ones((100, 100)))) == 2 * 100 * 100 * 8
    True
    """
    inner = _open(jaxpr)
    most = sum(map(_bytes, inner.outvars))
    for equation in inner.eqns:
        if equation.primitive.name in WHOLE:
            most = max(most, sum(map(_bytes, {id(one): one for one in equation.invars}.values()))
                       + sum(map(_bytes, equation.outvars)))  # fmt: skip
        for value in equation.params.values():
            parts = value if isinstance(value, tuple | list) else (value,)
            most = max([most, *(memory(part) for part in parts if hasattr(_open(part), "eqns"))])
    return float(most)


def _bytes(variable: Any) -> float:
    about = variable.aval
    if not hasattr(about, "shape") or not hasattr(about, "dtype"):
        return 0.0
    return math.prod(about.shape) * getattr(about.dtype, "itemsize", 4)


def _open(jaxpr: Any) -> Any:
    """The operations of a program, which some versions of JAX hand out closed over its constants."""
    return getattr(jaxpr, "jaxpr", jaxpr)


FEW = 1000
"""Only arrays of at most so many whole numbers are computed ahead."""


def _computed(equation: Any, given: Sequence[Any]) -> Sequence[Any]:
    """The results of an operation on known whole numbers, nothing where it is not that."""
    wanted = all(
        jax.numpy.issubdtype(variable.aval.dtype, jax.numpy.integer) and math.prod(variable.aval.shape) <= FEW
        for variable in equation.outvars
        if hasattr(variable.aval, "dtype")
    )
    if not wanted or any(one is None for one in given) or equation.primitive.name in ("while", "scan", "cond"):
        return ()
    if any(math.prod(jax.numpy.shape(one)) > FEW for one in given):
        return ()
    try:
        with jax.ensure_compile_time_eval():
            found = equation.primitive.bind(*given, **equation.params)
    except Exception:  # what cannot be computed ahead stays unknown
        return ()
    return found if equation.primitive.multiple_results else [found]


def _loop(equation: Any, given: Sequence[Any], rounds: float) -> float:
    """Seconds of a loop. One that counts from a known number to a known number runs so often.

    Its body is looked at in the middle of the count, where the ends of loops inside it are those of most rounds.
    """
    params = equation.params
    test, body = _open(params["cond_jaxpr"]), _open(params["body_jaxpr"])
    shared, kept = params["cond_nconsts"], params["body_nconsts"]
    constants, first = given[shared : shared + kept], list(given[shared + kept :])
    before, after = body.invars[kept:], body.outvars
    carried = [one if left is right else None for one, left, right in zip(first, before, after, strict=True)]
    if len(test.eqns) == 1 and test.eqns[0].primitive.name == "lt":
        ends = test.eqns[0].invars
        values = dict(zip(test.invars, [*given[:shared], *first], strict=True))
        low, high = (one.val if hasattr(one, "val") else values.get(one) for one in ends)
        index = test.invars.index(ends[0]) - shared if ends[0] in test.invars else -1
        if low is not None and high is not None and jax.numpy.ndim(low) == jax.numpy.ndim(high) == 0 <= index:
            counts = any(
                step.outvars[0] is after[index]
                and step.primitive.name == "add"
                and step.invars[0] is before[index]
                and getattr(step.invars[1], "val", None) == 1
                for step in body.eqns
            )
            if counts:
                rounds = max(float(high) - float(low), 0.0)
                carried[index] = (low + high) // 2
    return rounds * (seconds(params["body_jaxpr"], [*constants, *carried]) + seconds(params["cond_jaxpr"]))


def _scan(equation: Any, known: Sequence[Any], rounds: float) -> float:
    """Seconds of a loop over the entries of arrays.

    What is kept, carried and gone along is told apart by shapes, which every version of JAX has: what the loop goes
    along, and what it stacks, has one axis more outside than inside.
    """
    body, length = equation.params["jaxpr"], equation.params["length"]
    inside, outside = _open(body).invars, equation.invars
    going = sum(a.aval.ndim > b.aval.ndim for a, b in zip(outside, inside, strict=True))
    carried = sum(a.aval.ndim == b.aval.ndim for a, b in zip(equation.outvars, _open(body).outvars, strict=True))
    still = len(known) - going
    kept, along = known[: still - carried], known[still:]
    if length > FEW or all(one is None for one in along):
        return length * seconds(body, kept, rounds)
    start = [None] * carried
    return sum(
        seconds(body, [*kept, *start, *(None if one is None else one[index] for one in along)], rounds)
        for index in range(length)
    )


def _operation(equation: Any, known: Sequence[Any], rounds: float) -> float:
    name, given = equation.primitive.name, equation.params
    if name == "scan":
        return _scan(equation, known, rounds)
    if name == "while":
        return _loop(equation, known, rounds)
    if name == "cond":
        return max(seconds(branch, known[1:], rounds) for branch in given["branches"])
    inner = [value for value in given.values() if hasattr(value, "eqns") or hasattr(value, "jaxpr")]
    if inner:
        return sum(seconds(part, known, rounds) for part in inner[:1])
    shape = equation.outvars[0].aval.shape if equation.outvars else ()
    if name == "dot_general":
        (contracted, _), _ = given["dimension_numbers"]
        depth = math.prod(equation.invars[0].aval.shape[axis] for axis in contracted)
        return OVERHEAD + 0.25 * math.prod(shape) * depth / SPEED
    if name in DECOMPOSITIONS:
        matrix = equation.invars[0].aval.shape
        work = math.prod(matrix[:-2]) * max(matrix[-2:]) * min(matrix[-2:]) ** 2
        # Large matrices are worked on in blocks that stay in the cache.
        return OVERHEAD + DECOMPOSITIONS[name] * work / SPEED / (1 + min(matrix[-2:]) / 80)
    entries = sum(math.prod(variable.aval.shape) for variable in equation.outvars)
    # Chains of simple operations are fused: each is a fraction of a pass over memory.
    return OVERHEAD + HEAVY.get(name, 0.5) * entries / SPEED
