r"""Margins of homogeneous networks that can be computed: deep linear networks."""

from jax.typing import ArrayLike

from deeplimits.numerics.arguments import NOT_NEGATIVE, argument, at_least
from deeplimits.numerics.shapes import Floats


def deep_linear_margin(margin: ArrayLike, depth: ArrayLike) -> Floats:
    """The largest normalized margin min_i q_i/‖θ‖^D of a linear network of depth D: γ* D^{−D/2}.

    Setting     f(x) = ⟨v, W_{D−1}⋯W₁ x⟩, any widths, θ all weights; γ* = 1/‖ŵ‖ the margin of the linear predictor
    Result      ‖θ‖² is least for a given product if every layer has rank one and the same norm: ‖θ‖² = D‖w‖^{2/D},
                so the best margin is γ*/D^{D/2} and it is attained in the direction of ŵ
    Validity    separable data; gradient flow from almost every start with small loss tends to it
    References  lyu2020; ji2019

    >>> float(deep_linear_margin(1.0, 2))
    0.5
    """
    d = argument("depth", depth, at_least(1), "layers")
    return argument("margin", margin, NOT_NEGATIVE) * d ** (-d / 2)
