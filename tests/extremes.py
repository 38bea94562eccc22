"""Functions of a room's door over extreme arguments: a right number, or one sentence.

A room has a table with one line a function, each argument with a kind of value:

    TABLE = {
        "hoeffding": Case((POSITIVE, COUNT), low=0, high=1),
        "azuma": Case((POSITIVE, VECTOR), low=0),
    }

    test_values, test_coverage = extremes.room_tests(inequalities, TABLE, elsewhere={"gronwall": "takes a function"})

The first tries every function of the table, the second sees to it that the table has every function of the door.

A kind holds usual values and extreme ones: scales from 1e-12 to 1e12, zeros, what is degenerate, empty or not
finite, and wrong shapes. Mostly one argument is extreme and the others are usual, so that each check is reached;
sometimes all are. What comes back must hold no NaN, nothing infinite unless the case says so, and lie between `low` and
`high`; what is raised must be this package's own error, in one sentence. Shapes are checked as for a user: without the
run-time type checker of the tests.
"""

import contextlib
import inspect
import math
import signal
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jaxtyping
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deeplimits.errors import DeeplimitsError, OutsideValidityWarning

HANG = 60
"""Seconds after which a call counts as one that hangs."""
NAN, INF = float("nan"), float("inf")


class Kind(NamedTuple):
    """Values of one argument: usual ones, and extreme ones."""

    usual: Sequence[Any]
    extreme: Sequence[Any]

    def __or__(self, more: Any) -> "Kind":
        """The same kind with more extreme values."""
        return Kind(self.usual, [*self.extreme, *more])


class Case(NamedTuple):
    """One function: kinds of its arguments, what to look at in the result, and between what it must lie."""

    arguments: Sequence[Kind]
    look: Callable[[Any], Any] = lambda result: result
    low: float = -INF
    high: float = INF
    infinite: bool = False
    examples: int = 25
    keywords: Mapping[str, Kind] = {}


GRADES = pytest.mark.parametrize("fresh", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["same", "fresh"])
SCALES = [1e-12, 1e-6, 1e6, 1e12]
POSITIVE = Kind([0.3, 1.0, 1.7], [*SCALES, 0.0, -1.0, NAN, INF])
NUMBER = Kind([-0.7, 0.3, 1.0], [*SCALES, -1e-12, -1e12, 0.0, NAN, INF, -INF])
SHARE = Kind([0.2, 0.5], [0.0, 1.0, 1e-12, 1 - 1e-12, -0.1, 1.1, NAN])
COUNT = Kind([2, 5], [1, 0, -1, 1000, 10**6])
WHOLE = Kind([2, 5], [1, 0, -1, 1000, 10**6, 2.5])
FEW = Kind([1, 3], [0, -1, 30, 2.5])
"""A number of layers or the like, whose cost grows with it."""

_x = np.array([[1.0, 0.2, -0.3], [0.1, -1.0, 0.4], [0.5, 0.5, 1.2]])
_tall = np.array([[1.0, 0.2], [-0.4, 1.0], [0.3, 0.8]])
_psd = _x @ _x.T
_wrong = [np.full((3, 3), NAN), np.zeros((0, 0)), np.zeros((0, 3)), np.array(1.0), np.ones((2, 2, 2))]
VECTOR = Kind(
    [np.array([0.4, -1.0, 2.0]), np.array([1.0, 1.0, -1.0])],
    [s * np.array([0.4, -1.0, 2.0]) for s in SCALES]
    + [np.zeros(3), np.zeros(0), np.array([1.0, NAN, 2.0]), np.array([1.0, INF, 2.0]), np.ones((2, 3)), np.ones(2)],
)
TIMES = Kind(
    [np.array([0.0, 0.5, 2.0])],
    [np.array([1e-12, 1.0, 1e12]), np.zeros(0), np.array([2.0, 1.0]), np.array([-1.0, 1.0]), np.array([0.0, NAN])],
)
LABELS = Kind(
    [np.array([1.0, -1.0, 1.0])], [np.ones(3), np.zeros(3), np.array([1.0, NAN, -1.0]), np.ones(2), np.zeros(0)]
)
POINTS = Kind(
    [_x, _tall],
    [s * _x for s in SCALES]
    + [np.zeros((3, 3)), np.ones((3, 2)), np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.ones(3), *_wrong],
)
MATRIX = POINTS
KERNEL = Kind(
    [_psd, np.eye(3)],
    [s * _psd for s in SCALES]
    + [np.zeros((3, 3)), np.ones((3, 3)), _x, -np.eye(3), np.ones((2, 3)), np.ones(3), *_wrong]
    + [np.array([[1.0, 2, 0], [2, 1, 0], [0, 0, 1]]), np.diag([1.0, 1e-12, 1e12])],
)
ACTIVATION = Kind(["tanh", "relu"], ["identity", "sin", "sign", "no such function"])


def one_of(*values: Any, extreme: Sequence[Any] = ()) -> Kind:
    return Kind(values, extreme or values)


@contextlib.contextmanager
def as_a_user() -> Iterator[None]:
    """Without the tests' type checker, whose errors a user never sees; and not for ever."""

    def hangs(*_):
        raise TimeoutError(f"still running after {HANG} s")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(HANG)
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OutsideValidityWarning)
            yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def answer(function: Callable, case: Case, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> None:
    """One call: its numbers are checked, or its refusal."""
    try:
        with as_a_user():
            found = case.look(function(*arguments, **keywords))
            numbers = [np.asarray(leaf) for leaf in jax.tree.leaves(found) if not callable(leaf)]
    except DeeplimitsError as error:
        sentence = str(error)
        assert 8 < len(sentence) < 700, f"no sentence: {sentence!r}"
        assert "\n" not in sentence.strip(), f"more than a sentence: {sentence!r}"
        return
    for leaf in numbers:
        if leaf.dtype.kind not in "fc":
            continue
        assert not np.isnan(leaf).any(), f"NaN in {found}"
        assert case.infinite or np.isfinite(leaf).all(), f"not finite: {found}"
        real = np.real(leaf)
        room = 1e-9 * np.maximum(1.0, np.abs(np.nan_to_num([case.low, case.high], posinf=1.0, neginf=1.0)).max())
        assert (real >= case.low - room).all(), f"below {case.low}: {found}"
        assert (real <= case.high + room).all(), f"above {case.high}: {found}"


def check(function: Callable, case: Case, fresh: bool = False) -> None:
    """`function` over usual and extreme arguments: half as many and the same ones every time, or fresh ones."""
    kinds = [*case.arguments, *case.keywords.values()]
    count = len(case.arguments)

    @settings(
        max_examples=case.examples if fresh else math.ceil(case.examples / 2),
        deadline=None,
        derandomize=not fresh,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def run(data):
        # One extreme argument, or none (the last place but one), or all (the last place).
        where = data.draw(st.integers(0, len(kinds) + 1), label="extreme argument")
        values = [
            data.draw(st.sampled_from(kind.extreme if where in (place, len(kinds) + 1) else kind.usual))
            for place, kind in enumerate(kinds)
        ]
        answer(function, case, values[:count], dict(zip(case.keywords, values[count:], strict=True)))

    run()


def room_tests(
    room: Any, table: Mapping[str, Case], *, elsewhere: Mapping[str, str] | None = None
) -> Iterator[Callable]:
    """The two tests of a room."""

    @GRADES
    @pytest.mark.parametrize("name", table)
    def a_right_number_or_one_sentence(name, fresh):
        check(getattr(room, name), table[name], fresh)

    def every_function_is_tried():
        covers(room, table, elsewhere or {})

    yield from (a_right_number_or_one_sentence, every_function_is_tried)


def covers(room: Any, table: Mapping[str, Case], elsewhere: Mapping[str, str]) -> None:
    """Every function of the door is in the table, or named with the reason why it is not."""
    functions = {
        name
        for name in room.__all__
        if inspect.isfunction(inspect.unwrap(getattr(room, name))) and not isinstance(getattr(room, name), type)
    }
    assert functions == set(table) | set(elsewhere), functions ^ (set(table) | set(elsewhere))
    assert not set(table) & set(elsewhere)


def unit_tests(table: Mapping[str, Callable[[float], Any]], *, rtol: float = 1e-9) -> Callable:
    """A test of functions s -> result that is the same in every unit s: what grows with s has been divided by it.

    Scales alone tell nothing that is known already, so that a number lost to them shows, however plausible it looks.
    """

    @pytest.mark.parametrize("name", table)
    def the_same_in_every_unit(name):
        expected = [np.asarray(leaf) for leaf in jax.tree.leaves(table[name](1.0))]
        for scale in (1e-12, 1e12):
            found = [np.asarray(leaf) for leaf in jax.tree.leaves(table[name](scale))]
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=rtol, atol=1e-300, err_msg=f"in units of {scale:g}")

    return the_same_in_every_unit


def function_tests(cases: Sequence[tuple[Callable, Case]]) -> Callable:
    """A test of functions that are not in a door, but that `show` names."""

    @GRADES
    @pytest.mark.parametrize(("function", "case"), cases, ids=[function.__name__ for function, _ in cases])
    def a_right_number_or_one_sentence(function, case, fresh):
        check(function, case, fresh)

    return a_right_number_or_one_sentence
