"""Activations: a value, its first two derivatives, where it is not smooth, and what is known of it.

Everything that is called an activation, a link or a neuron elsewhere is one of these, and a name means one function:
`erf` is erf(u), `erf_saad` is erf(u/√2) (the activation of Saad and Solla), `quadratic` is u²/2, `square` is u², `gelu`
is uΦ(u), `swish` is u/(1 + e^{−u}), `hermite3` is He₃(u)/√3!. `rescaled` gives γσ(βu) for other conventions.

A new activation is one entry of `NAMED`. Every room then knows it: where `theory/gaussian/closed_forms.py` has none of
its integrals, quadrature finds them. Limits offer it where its properties allow.
"""

import dataclasses
import functools
import inspect
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import erf, ndtr

from deeplimits.errors import ParameterError, UnknownName, did_you_mean
from deeplimits.numerics.shapes import Floats

Function = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Activation:
    """A nonlinearity σ with σ' and σ'' almost everywhere, and the points (`kinks`) where σ or σ' jumps."""

    name: str
    value: Function
    derivative: Function
    second_derivative: Function
    kinks: tuple[float, ...] = ()
    continuous: bool = True
    """False where σ itself jumps: then σ' misses a delta function and σ has no tangent kernel on the diagonal."""
    parameters: tuple[float, ...] = ()
    """What the name leaves open, such as the slope of leaky_relu."""
    scaled_from: "tuple[Activation, float, float] | None" = None
    """(base, β, γ) where this is γ·base(βu): closed forms of the base then serve it too."""
    odd: bool = False
    even: bool = False
    increasing: bool = False
    """Nowhere decreasing."""
    through_origin: bool = False
    """σ(0) = 0."""
    homogeneous: int | None = None
    """The k with σ(tu) = t^k σ(u) for all t > 0, if there is one."""
    bounded: bool = False
    """σ is bounded."""
    lipschitz: bool = False
    """σ is continuous and σ' bounded."""
    bounded_curvature: bool = False
    """σ is smooth and σ'' bounded."""

    @property
    def smooth(self) -> bool:
        return not self.kinks

    def __repr__(self) -> str:
        return f"Activation({self.name!r})"

    def __reduce_ex__(self, protocol: Any) -> Any:
        # By its name: another process then has its own, and compiles what is made with it once.
        return (activation, (self.name,)) if NAMED.get(self.name) is self else super().__reduce_ex__(protocol)


def _bell(u):
    return jnp.exp(-(u**2) / 2) / math.sqrt(2 * math.pi)


def _tanh_slope(u):
    return 1 / jnp.cosh(jnp.clip(u, -350.0, 350.0)) ** 2


def _sigmoid_slope(u):
    return jax.nn.sigmoid(u) * jax.nn.sigmoid(-u)


def _sigmoid_curvature(u):
    # σ'(1 − 2σ) = −σ' tanh(u/2), without cancellation at 0
    return -_sigmoid_slope(u) * jnp.tanh(u / 2)


def _positive(u):
    return jnp.where(u > 0, 1.0, 0.0)


def piecewise_linear(positive: float, negative: float, name: str | None = None) -> Activation:
    """σ(u) = `positive`·u for u > 0 and `negative`·u for u < 0.

    >>> [float(piecewise_linear(1.0, 0.1).value(u)) for u in (2.0, -2.0)]
    [2.0, -0.2]
    """
    return Activation(
        name or f"piecewise_linear({positive:g},{negative:g})",
        lambda u: jnp.where(u > 0, positive, negative) * u,
        lambda u: jnp.where(u > 0, positive, negative),
        jnp.zeros_like,
        kinks=() if positive == negative else (0.0,),
        parameters=(positive, negative),
        odd=positive == negative,
        even=positive == -negative,
        increasing=min(positive, negative) >= 0,
        through_origin=True,
        homogeneous=1,
        lipschitz=True,
        bounded_curvature=positive == negative,
    )


def leaky_relu(slope: float) -> Activation:
    """u for u > 0, `slope`·u for u < 0."""
    if not math.isfinite(slope):
        raise ParameterError(f"slope = {slope} is not allowed; leaky_relu needs a finite number")
    return piecewise_linear(1.0, float(slope), f"leaky_relu({float(slope):g})")


def relu_power(power: int | float) -> Activation:
    """max(u, 0)^k for k ≥ 1."""
    if power != int(power) or power < 1:
        raise ParameterError(f"power = {power} is not allowed; relu_power needs a whole number of at least 1")
    power = int(power)
    if power == 1:
        return NAMED["relu"]
    return Activation(
        f"relu_power({power})",
        lambda u: jnp.maximum(u, 0.0) ** power,
        lambda u: power * jnp.maximum(u, 0.0) ** (power - 1),
        lambda u: power * (power - 1) * jnp.maximum(u, 0.0) ** (power - 2) * _positive(u),
        kinks=(0.0,),
        parameters=(float(power),),
        increasing=True,
        through_origin=True,
        homogeneous=power,
    )


def polynomial(*coefficients: float, name: str | None = None) -> Activation:
    """c₀ + c₁u + c₂u² + …, in ascending powers.

    >>> float(polynomial(1.0, 0.0, 0.5).value(2.0))
    3.0
    """
    found = tuple(float(c) for c in coefficients)
    if not found or not all(map(math.isfinite, found)):
        raise ParameterError(f"coefficients = {coefficients} is not allowed; give at least one finite number")
    first = tuple(k * c for k, c in enumerate(found))[1:] or (0.0,)
    second = tuple(k * c for k, c in enumerate(first))[1:] or (0.0,)

    def evaluate(powers):
        return lambda u: jnp.polyval(jnp.asarray(powers[::-1]), jnp.asarray(u, float))

    degree = max((k for k, c in enumerate(found) if c), default=0)
    powers = {k for k, c in enumerate(found) if c}
    return Activation(
        name or "polynomial(" + ",".join(f"{c:g}" for c in found) + ")",
        evaluate(found),
        evaluate(first),
        evaluate(second),
        parameters=found,
        odd=all(k % 2 == 1 for k in powers),
        even=all(k % 2 == 0 for k in powers),
        increasing=degree == 0 or (degree == 1 and found[1] > 0),
        through_origin=found[0] == 0,
        homogeneous=degree if len(powers) <= 1 else None,
        bounded=degree == 0,
        lipschitz=degree <= 1,
        bounded_curvature=degree <= 2,
    )


def hermite(order: int | float) -> Activation:
    """He_k(u)/√k!, orthonormal under the standard normal law: He_k of probabilists, He₂ = u² − 1, He₃ = u³ − 3u.

    >>> float(hermite(2).value(3.0)) == 8 / math.sqrt(2)
    True
    """
    if order != int(order) or not 0 <= order <= 20:
        raise ParameterError(f"order = {order} is not allowed; hermite needs a whole number between 0 and 20")
    low, high = [0.0], [1.0]
    for k in range(int(order)):
        # He_{k+1} = u He_k − k He_{k−1}
        lower = [k * c for c in low] + [0.0] * (len(high) + 1 - len(low))
        low, high = high, [left - right for left, right in zip([0.0, *high], lower, strict=True)]
    size = math.sqrt(math.factorial(int(order)))
    return polynomial(*(c / size for c in high), name=f"hermite{int(order)}")


@functools.cache
def rescaled(base: Activation, argument: float, factor: float = 1.0, name: str | None = None) -> Activation:
    """γσ(βu) with β = `argument`, γ = `factor`: other conventions, or swish_β(u) = swish(βu)/β.

    >>> import math
    >>> round(float(rescaled(activation("erf"), 1 / math.sqrt(2)).value(1.0)), 6)
    0.682689
    """
    return dataclasses.replace(
        base,
        name=name or f"{factor:g}*{base.name}({argument:g}u)",
        value=lambda u: factor * base.value(argument * u),
        derivative=lambda u: factor * argument * base.derivative(argument * u),
        second_derivative=lambda u: factor * argument**2 * base.second_derivative(argument * u),
        kinks=tuple(kink / argument for kink in base.kinks),
        parameters=(),
        scaled_from=(base, argument, factor),
        increasing=base.increasing and argument * factor >= 0,
    )


ODD: dict[str, Any] = {"odd": True, "through_origin": True}
# What several entries have in common: symmetry; bounded with bounded derivatives; these and increasing; linear growth.
TAME: dict[str, Any] = {"bounded": True, "lipschitz": True, "bounded_curvature": True}
SIGMOIDAL: dict[str, Any] = {**TAME, "increasing": True}
LINEAR_GROWTH: dict[str, Any] = {"lipschitz": True, "bounded_curvature": True}

_ERF = Activation(
    "erf",
    erf,
    lambda u: 2 / math.sqrt(math.pi) * jnp.exp(-(u**2)),
    lambda u: -4 / math.sqrt(math.pi) * u * jnp.exp(-(u**2)),
    **ODD,
    **SIGMOIDAL,
)

NAMED = {
    activation.name: activation
    for activation in (
        piecewise_linear(1.0, 1.0, "identity"),
        piecewise_linear(1.0, 0.0, "relu"),
        piecewise_linear(1.0, -1.0, "abs"),
        Activation(
            "step", _positive, jnp.zeros_like, jnp.zeros_like, (0.0,), continuous=False,
            increasing=True, through_origin=True, homogeneous=0, bounded=True,
        ),
        Activation(
            "sign", jnp.sign, jnp.zeros_like, jnp.zeros_like, (0.0,), continuous=False,
            increasing=True, homogeneous=0, bounded=True, **ODD,
        ),
        _ERF,
        rescaled(_ERF, 1 / math.sqrt(2), name="erf_saad"),
        Activation("normal_cdf", ndtr, _bell, lambda u: -u * _bell(u), **SIGMOIDAL),
        Activation("tanh", jnp.tanh, _tanh_slope, lambda u: -2 * jnp.tanh(u) * _tanh_slope(u), **ODD, **SIGMOIDAL),
        Activation(
            "hard_tanh",
            lambda u: jnp.clip(u, -1.0, 1.0),
            lambda u: jnp.where(jnp.abs(u) < 1, 1.0, 0.0),
            jnp.zeros_like,
            (-1.0, 1.0),
            increasing=True,
            bounded=True,
            lipschitz=True,
            **ODD,
        ),
        Activation("sigmoid", jax.nn.sigmoid, _sigmoid_slope, _sigmoid_curvature, **SIGMOIDAL),
        Activation(
            "gelu",
            lambda u: u * ndtr(u),
            lambda u: ndtr(u) + u * _bell(u),
            lambda u: (2 - u**2) * _bell(u),
            through_origin=True,
            **LINEAR_GROWTH,
        ),
        Activation(
            "swish",
            lambda u: u * jax.nn.sigmoid(u),
            lambda u: jax.nn.sigmoid(u) + u * _sigmoid_slope(u),
            lambda u: 2 * _sigmoid_slope(u) + u * _sigmoid_curvature(u),
            through_origin=True,
            **LINEAR_GROWTH,
        ),
        Activation("softplus", jax.nn.softplus, jax.nn.sigmoid, _sigmoid_slope, increasing=True, **LINEAR_GROWTH),
        Activation("sin", jnp.sin, jnp.cos, lambda u: -jnp.sin(u), **ODD, **TAME),
        Activation("cos", jnp.cos, lambda u: -jnp.sin(u), lambda u: -jnp.cos(u), even=True, **TAME),
        Activation("exp", jnp.exp, jnp.exp, jnp.exp, increasing=True),
        Activation(
            "gaussian",
            lambda u: jnp.exp(-(u**2) / 2),
            lambda u: -u * jnp.exp(-(u**2) / 2),
            lambda u: (u**2 - 1) * jnp.exp(-(u**2) / 2), even=True, **TAME,
        ),
        Activation(
            "bump",
            lambda u: u**2 * jnp.exp(-(u**2)),
            lambda u: 2 * u * (1 - u**2) * jnp.exp(-(u**2)),
            lambda u: (2 - 10 * u**2 + 4 * u**4) * jnp.exp(-(u**2)),
            even=True, through_origin=True, **TAME,
        ),
        polynomial(0.0, 0.0, 0.5, name="quadratic"),
        polynomial(0.0, 0.0, 1.0, name="square"),
        hermite(2),
        hermite(3),
        hermite(4),
    )
}  # fmt: skip

FAMILIES: dict[str, Callable[..., Activation]] = {
    "leaky_relu": leaky_relu,
    "piecewise_linear": piecewise_linear,
    "polynomial": polynomial,
    "relu_power": relu_power,
    "hermite": hermite,
}

ActivationLike = str | Activation | Callable
"""What every room takes as an `activation`: a name, an `Activation`, or a JAX function of one number."""

_CALL = re.compile(r"(\w+)\(([^()]*)\)")
_HERMITE = re.compile(r"hermite(\d+)")


@functools.cache
def activation(given: ActivationLike) -> Activation:
    """The activation of that name, such as 'tanh' or 'leaky_relu(0.1)'; a JAX function of one number is also welcome.

    A function of your own is taken to be smooth; if it has kinks, build an `Activation` that names them.

    >>> activation("leaky_relu(0.1)").parameters
    (1.0, 0.1)
    >>> float(activation(lambda u: u**3).derivative(2.0))
    12.0
    """
    if not (isinstance(given, str | Activation) or callable(given)):
        raise ParameterError(f"activation = {given!r} is not allowed; give a name or a JAX function of one number")
    if not isinstance(given, str):
        return given if isinstance(given, Activation) else from_function(given)
    given = "swish" if given == "silu" else given
    if given in NAMED:
        return NAMED[given]
    if higher := _HERMITE.fullmatch(given):
        return hermite(int(higher[1]))
    call = _CALL.fullmatch(given.replace(" ", ""))
    if call and call[1] in FAMILIES:
        try:
            numbers = [float(part) for part in call[2].split(",")]
            inspect.signature(FAMILIES[call[1]]).bind(*numbers)
        except ValueError:
            raise ParameterError(f"activation = {given!r} is not allowed; {call[1]}(…) takes numbers") from None
        except TypeError:
            raise ParameterError(f"activation = {given!r} is not allowed; {call[1]} wants another count") from None
        return FAMILIES[call[1]](*numbers)
    function = next((one for one in dir(jax.nn) if one.replace("_", "") == given.replace("_", "").lower()), "")
    hint = f"; where functions are taken, give jax.nn.{function}" if function else did_you_mean(given, NAMED)
    offered = ", ".join([*NAMED, *(f"{name}(…)" for name in FAMILIES)])
    raise UnknownName(f"there is no activation {given!r}{hint}; there are {offered}")


def from_function(
    function: Callable, kinks: tuple[float, ...] = (), name: str | None = None, **properties: Any
) -> Activation:
    """An activation from any JAX function of one number; its derivatives are found by automatic differentiation.

    `properties` are those of `Activation`: odd, bounded, lipschitz, …; what is not said is taken to be false.

    >>> from_function(lambda u: u / (1 + jnp.abs(u)), (0.0,), "softsign", odd=True, bounded=True).odd
    True
    """

    def elementwise(scalar):
        return lambda u: jnp.vectorize(scalar)(jnp.asarray(u, float))

    def value(u):
        return jnp.asarray(function(u), float)

    called = getattr(function, "__name__", "it")
    try:
        jax.eval_shape(lambda u: function(u), jax.ShapeDtypeStruct((), float))
    except jax.errors.TracerArrayConversionError:
        raise ParameterError(
            f"activation = {called} is not allowed: it uses NumPy, which JAX cannot trace; write it with jax.numpy"
        ) from None
    except jax.errors.ConcretizationTypeError:
        raise ParameterError(
            f"activation = {called} is not allowed: it asks for the number itself, as math.sin and `if u > 0` do, "
            "which JAX cannot trace; write it with jax.numpy, and a choice as jnp.where"
        ) from None
    except Exception:  # what else may be wrong with it shows where it is used
        pass
    return Activation(
        name or getattr(function, "__name__", "function"),
        elementwise(value),
        elementwise(jax.grad(value)),
        elementwise(jax.grad(jax.grad(value))),
        kinks,
        **properties,
    )


def names(where: Callable[[Activation], bool]) -> tuple[str, ...]:
    """The names in the table whose activations have a property.

    >>> names(lambda a: a.odd and a.smooth and a.bounded)
    ('erf', 'erf_saad', 'tanh', 'sin')
    """
    return tuple(name for name, one in NAMED.items() if where(one))
