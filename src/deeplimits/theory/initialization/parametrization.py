r"""How the powers of the width decide whether a wide network learns features."""

from collections.abc import Sequence
from typing import NamedTuple

from deeplimits.errors import OutsideValidity
from deeplimits.models.parametrizations import PRESETS as PRESETS
from deeplimits.models.parametrizations import Parametrization as Parametrization
from deeplimits.models.parametrizations import maximal_update as maximal_update
from deeplimits.models.parametrizations import ntk as ntk
from deeplimits.models.parametrizations import standard as standard
from deeplimits.numerics.arguments import of_kind


def feature_exponent(parametrization: Parametrization) -> float:
    """r: after O(1) steps of SGD the features of the last hidden layer have moved by n^(−r).

    Setting     L hidden layers of width n, fixed input and output dimensions, the parametrization (a, b, c)
    Result      r = min(a_(L+1) + b_(L+1), 2a_(L+1) + c) + c − 1 + min_(l≤L)(2a_l + 1[l=1])
                NTK and standard parametrization with rate 1/n: r = 1/2, kernel regime; μP: r = 0, features are learned
    Validity    r ≥ 0; for r < 0 training blows up with the width, and OutsideValidity is raised. Preactivations at
                initialization of order one: a_1 + b_1 = 0, a_l + b_l = 1/2, a_(L+1) + b_(L+1) ≥ 1/2
    References  yang2021

    >>> feature_exponent(ntk(2)), feature_exponent(maximal_update(2)), feature_exponent(standard(2))
    (0.5, 0.0, 0.5)
    """
    of_kind("parametrization", parametrization, Parametrization)
    a, b, c = parametrization.a, parametrization.b, parametrization.c
    inner = min(2 * a_l + (1.0 if l == 0 else 0.0) for l, a_l in enumerate(a[:-1]))
    r = min(a[-1] + b[-1], 2 * a[-1] + c) + c - 1 + inner
    if r < 0:
        raise OutsideValidity(
            f"a = {a}, b = {b}, c = {c} gives r = {r:g} < 0: features blow up like n^{-r:g} in the first steps; "
            "take a larger c"
        )
    first, hidden, last = a[0] + b[0], [x + y for x, y in zip(a[1:-1], b[1:-1], strict=True)], a[-1] + b[-1]
    if abs(first) > 1e-9 or any(abs(h - 0.5) > 1e-9 for h in hidden) or last < 0.5 - 1e-9:
        raise OutsideValidity(
            f"a = {a}, b = {b}: preactivations at initialization are not of order one; that needs a_1 + b_1 = 0, "
            "a_l + b_l = 1/2 for hidden layers and at least 1/2 for the output"
        )
    return r


def learns_features(parametrization: Parametrization) -> bool:
    """Whether features move by order one, r = 0.

    >>> from deeplimits.models import maximal_update, ntk
    >>> learns_features(maximal_update(3)), learns_features(ntk(3))
    (True, False)
    """
    of_kind("parametrization", parametrization, Parametrization)
    return feature_exponent(parametrization) == 0


class PlainForm(NamedTuple):
    """Exponents of the width, by layer: variances n^−v of the weights, rates n^−e of SGD."""

    variances: Sequence[float]
    rates: Sequence[float]


def effective_plain_form(parametrization: Parametrization) -> PlainForm:
    """The same network in plain weights W: exponents of its variances (n^−v) and of its SGD rates (n^−e), by layer.

    W = n^(−a) w has variance n^(−2a−2b) and moves at rate η n^(−c−2a).

    >>> effective_plain_form(maximal_update(2))
    PlainForm(variances=[0.0, 1.0, 2.0], rates=[-1.0, 0.0, 1.0])
    """
    of_kind("parametrization", parametrization, Parametrization)
    variances = [2 * (x + y) for x, y in zip(parametrization.a, parametrization.b, strict=True)]
    return PlainForm(variances, [parametrization.c + 2 * x for x in parametrization.a])
