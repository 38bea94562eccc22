"""`Limit`: the protocol of every entry of the catalogue, and the fields its parameters are declared with."""

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from deeplimits.errors import OutsideValidity, ParameterError, did_you_mean
from deeplimits.models.activations import Activation, names
from deeplimits.numerics.arguments import known
from deeplimits.parameters import Axis, Choice, Integer, Parameter, Real, parameters_of, read_list
from deeplimits.predictions import Kind, Picture
from deeplimits.showcase import Showcase

AnyLimit = TypeVar("AnyLimit", bound="Limit")


def real(default: float, low: float, high: float = math.inf, *, log: bool = False, symbol: str = "", doc: str = ""):
    """A continuous parameter in [low, high], stored as a traced array."""
    return _field(Real(default=default, low=low, high=high, log=log, symbol=symbol, doc=doc), traced=True)


def integer(default: int, low: int, high: float = math.inf, *, log: bool = False, symbol: str = "", doc: str = ""):
    """A whole number in [low, high]; static, because shapes depend on it. 1e3 is a whole number, too."""
    return _field(Integer(default=default, low=low, high=high, log=log, symbol=symbol, doc=doc), traced=False)


def choice(default: str, options: tuple[str, ...], *, symbol: str = "", doc: str = ""):
    """One of the named options; static."""
    return _field(Choice(default=default, options=options, symbol=symbol, doc=doc), traced=False)


def activation_choice(
    default: str,
    where: Callable[[Activation], bool],
    *,
    also: tuple[str, ...] = (),
    symbol: str = "",
    doc: str = "activation σ",
):
    """The name of an activation: of those in the table that have a property, and what `also` names.

    A new activation of the table is offered by every limit whose condition it meets.
    """
    return choice(default, (*names(where), *also), symbol=symbol, doc=doc)


def axis(
    default: tuple[float, ...],
    low: float,
    high: float = math.inf,
    *,
    log: bool = False,
    symbol: str = "",
    doc: str = "",
):
    """The increasing points in [low, high] at which a curve is evaluated, stored as a traced array.

    They may be given as on the command line: "0.5,1,2", or a range "0.1:10:20log".
    """
    return _field(Axis(default=default, low=low, high=high, log=log, symbol=symbol, doc=doc), traced=True)


def _field(parameter: Parameter, traced: bool) -> Any:
    metadata = {"parameter": parameter}
    if traced:
        converter = _to_points if parameter.kind == "axis" else _to_array
        return eqx.field(default=parameter.default, converter=converter, metadata=metadata)
    converter = _to_whole if parameter.kind == "integer" else _to_python
    return eqx.field(default=parameter.default, converter=converter, static=True, metadata=metadata)


def _to_array(value: Any) -> Any:
    # What cannot become a real array is passed on unchanged: `__check_init__` then refuses it by name.
    if isinstance(value, str | bytes):
        return value
    try:
        array = jnp.asarray(value)
        if jnp.issubdtype(array.dtype, jnp.bool_) or jnp.iscomplexobj(array):
            return value
        return array.astype(float)
    except (TypeError, ValueError, OverflowError):
        return value


def _to_points(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value = read_list(value)
        except (ValueError, OverflowError):
            return value  # refused by name, like all that is no list
    return _to_array(value)


def _to_python(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _to_whole(value: Any) -> Any:
    value = _to_python(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


@dataclasses.dataclass(frozen=True)
class Run:
    """How a limit is usually simulated."""

    sizes: tuple[int, ...] = (100, 200, 400)
    """The sizes at which `compare` simulates unless told otherwise."""
    samples: int = 40
    """How many systems `compare` draws at each size unless told otherwise."""
    batch: int = 1
    """How many systems are simulated side by side on a CPU; more than one pays only for tiny systems."""


RESERVED = (
    "usual", "showcase", "charts", "theory", "at_size", "simulate", "draw", "stated", "measured", "validity",
    "validity_at", "rounds"
)  # fmt: skip
"""What every limit has; all other names are free for parameters."""


class Limit(eqx.Module):
    """A limit theorem with its parameters.

    A subclass declares its parameters as fields (`real`, `integer`, `choice`, `axis`), how it is usually run (`usual`),
    and three methods:

    - `theory()`: the prediction, pure and traceable, as a dictionary from names to prediction kinds;
    - `at_size(size)`: on the host, the integers of a finite system of that size, and the limit at exactly the ratios
      those integers have, so that rounding `p = gamma n` is never mistaken for a finite-size effect;
    - `simulate(key, **sizes)`: one finite system drawn and measured from its definition, as a dictionary with the
      same names; traceable, a solver on the host being called through `jax.pure_callback`.

    A theorem about *the system that was drawn* (this data set's margin, this network's kernel) has, in place of
    `simulate`,

    - `draw(key, **sizes)`: the system: data, start, weights;
    - `stated(system)`: what the theory says of this very system, as a dictionary of kinds;
    - `measured(system)`: what it does, from the definition, under the same names and those of `theory()`, if any.

    What states calls nothing that simulates, and the other way round. Values are checked at construction. `jax.grad`,
    `jax.vmap` and `jax.jit` see a limit as a pytree whose leaves are its continuous parameters. Parameters are named as
    in the paper: nothing is reserved but these methods, `validity`, `validity_at`, `usual`, `showcase` and `charts`.
    """

    usual: ClassVar[Run] = Run()
    """How `compare` runs it unless told otherwise."""
    showcase: ClassVar[Showcase] = Showcase()
    """How atlas and explorer show it; what is left open is made from the parameters."""

    def theory(self) -> Mapping[str, Kind]:
        """The prediction, as far as it does not depend on the draw."""
        return {}

    def charts(self) -> Mapping[str, Picture]:
        """Further pictures that the theory draws, such as a diagram of phases over two parameters."""
        return {}

    @abstractmethod
    def at_size(self, size: int) -> tuple[dict[str, Any], "Limit"]:
        """The integers of a finite system, to be passed to `simulate`, and the limit at the ratios they really have."""

    def rounds(self, **sizes: Any) -> float | None:
        """About how often a loop of the simulation that ends by chance runs, to know its cost; None without one."""
        return None

    def simulate(self, key: PRNGKeyArray, **sizes: Any) -> dict[str, Array]:
        """One finite system, measured."""
        return self.measured(self.draw(key, **sizes))

    def draw(self, key: PRNGKeyArray, **sizes: Any) -> Any:
        """One finite system."""
        raise TypeError(f"{type(self).__name__} has neither simulate nor draw; see deeplimits.limit.Limit")

    def stated(self, system: Any) -> Mapping[str, Kind]:
        """What the theory says of this system."""
        return {}

    def measured(self, system: Any) -> dict[str, Array]:
        """What this system does."""
        raise TypeError(f"{type(self).__name__} has draw but not measured; see deeplimits.limit.Limit")

    def validity(self) -> tuple[str, ...]:
        """The conditions of the theorem that the present parameters violate, a sentence each."""
        return ()

    def __new__(cls, *values: Any, **parameters: Any):
        unknown = [name for name in parameters if name not in {field.name for field in dataclasses.fields(cls)}]
        if unknown:
            raise ParameterError(_no_parameter(cls, unknown[0]))
        return super().__new__(cls)

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        for name in RESERVED:
            if isinstance(vars(cls).get(name), dataclasses.Field):
                raise ParameterError(
                    f"{cls.__name__}: no parameter can be called {name}, which every limit has; name it otherwise"
                )

    def __repr__(self) -> str:
        given = ((name, getattr(self, name)) for name in parameters_of(type(self)))
        said = (f"{name}={_plain(value) if known(value) else value!r}" for name, value in given)
        return f"{type(self).__name__}({', '.join(said)})"

    def __check_init__(self):
        for name, parameter in parameters_of(type(self)).items():
            value = getattr(self, name)
            if known(value):
                parameter.check(type(self).__name__, name, value)

    def validity_at(self, size: int) -> tuple[str, ...]:
        """The conditions that systems of this size are too small for, a sentence each, with the size that would do."""
        return ()


# The rest is said of a limit by functions, so that its class reserves no word that a paper may need for a parameter.


def values_of(limit: Limit) -> dict[str, Any]:
    """The parameters' values as plain Python numbers, strings and lists."""
    return {name: _plain(getattr(limit, name)) for name in parameters_of(type(limit))}


def replace(limit: AnyLimit, /, **changes: Any) -> AnyLimit:
    """The same limit with some parameters changed, checked again."""
    _check_names(limit, changes)
    return dataclasses.replace(limit, **changes)  # pyright: ignore[reportArgumentType]


def rounded(limit: AnyLimit, /, **changes: Any) -> AnyLimit:
    """The same limit at the ratios of a finite system, for `at_size`; not checked again.

    A ratio of whole numbers may lie beyond the end of its range, or fall on its neighbour on an axis, when what was
    asked for does not.
    """
    _check_names(limit, changes)
    found = object.__new__(type(limit))
    for field in dataclasses.fields(limit):  # pyright: ignore[reportArgumentType]
        value = getattr(limit, field.name)
        if field.name in changes:
            changed = changes[field.name]
            value = _to_array(changed) if isinstance(value, jax.Array) else _to_python(changed)
        object.__setattr__(found, field.name, value)
    return found


def _check_names(limit: Limit, changes: Mapping[str, Any]) -> None:
    known_names = parameters_of(type(limit))
    unknown = sorted(set(changes) - set(known_names))
    if unknown:
        raise ParameterError(_no_parameter(type(limit), unknown[0]))


def _no_parameter(cls: type, name: str) -> str:
    names = parameters_of(cls)
    hint = did_you_mean(name, names)
    # A name from a file may be any text.
    said = name if name.isidentifier() else repr(name[:80])
    return f"{cls.__name__} has no parameter {said}; it has {', '.join(names) or 'none'}{hint}"


def speaks_of_draws(limit: Limit) -> bool:
    """Whether the limit states something about the very system that was drawn."""
    return type(limit).draw is not Limit.draw


def require_valid(limit: Limit, size: int | None = None) -> None:
    """Raise OutsideValidity, with sentences, if the theorem does not cover these values, at this size if given."""
    violated = limit.validity()
    if not violated and size is not None:
        violated = limit.validity_at(size)
    if violated:
        raise OutsideValidity(f"{type(limit).__name__}: " + "; ".join(violated))


def too_small(size: float, least: float, sentence: str) -> tuple[str, ...]:
    """What `validity_at` answers where a condition asks for sizes of at least `least`."""
    return () if size >= least else (sentence,)


def to_json(limit: Limit) -> dict[str, Any]:
    """Name and parameters, ready for `json.dumps`."""
    from deeplimits.catalogue import catalogue

    return {"name": catalogue.name_of(type(limit)), "parameters": values_of(limit)}


def from_json(document: Any) -> Limit:
    """The limit that `to_json` described; anything else is refused, and only limits are made."""
    from deeplimits.catalogue import catalogue

    name = document.get("name") if isinstance(document, Mapping) else None
    values = document.get("parameters") if isinstance(document, Mapping) else None
    if not (isinstance(name, str) and isinstance(values, Mapping) and all(isinstance(key, str) for key in values)):
        raise ParameterError(
            'document describes no limit; it must be what `to_json` gives, as {"name": "bai-yin-edges", '
            '"parameters": {"gamma": 2.0}}'
        )
    entry = catalogue.entry(name)
    if entry.role == "function":
        raise ParameterError(f"document names {entry.name}, which is a function and no limit")
    return entry.load()(**values)


def _plain(value: Any) -> Any:
    return np.asarray(value).tolist() if isinstance(value, jax.Array | np.ndarray) else value


def whole(size: float, what: str, owner: Limit, least: int = 1) -> int:
    """Round to a whole number of `what`, refusing fewer than `least`."""
    count = round(float(size))
    if count < least:
        raise OutsideValidity(
            f"{type(owner).__name__}: this size leaves {what} = {count}, fewer than {least}; take a larger size"
        )
    return count


def sized(limit: AnyLimit, /, *, least: int = 1, **count: float) -> tuple[dict[str, Any], AnyLimit]:
    """For `at_size`, where the size is a parameter of the limit: the whole number that it is, and the limit with it."""
    ((name, size),) = count.items()
    found = whole(size, parameters_of(type(limit))[name].symbol, limit, least)
    return {name: found}, replace(limit, **{name: found})
