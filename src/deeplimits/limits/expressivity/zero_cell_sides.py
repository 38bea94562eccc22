r"""The linear region around the origin: how many sides it has."""

import jax
import jax.numpy as jnp

from deeplimits.ensembles import relu_networks
from deeplimits.limit import Limit, Run, choice, integer, sized
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.expressivity import kink_density


class ZeroCellSides(Limit):
    r"""The cell of random lines around the origin has π²/2 sides on average.

    Setting     n lines w_j·x + b_j = 0 in the plane, w_j ~ N(0, I_2), b_j centred Gaussian: the linear region at the
                origin of a ReLU network with two inputs and one hidden layer
    Limit       n → ∞ for π²/2
    Result      E #sides = (n(n−1)/2) ∫_0^{π/2} cos t (½ + t/π)^{n−2} dt + n/2^{n−1} → π²/2
    Validity    isotropic directions; size counts the lines n
    Finite size the integral is exact at every n
    Computed by expressivity.zero_cell_sides
    References  hanin2019
    """

    bias: str = choice("wide", ("wide", "narrow"), doc="biases of standard deviation 1 or 0.01; the law is the same")
    lines: int = integer(10, 1, 100_000, log=True, symbol="n", doc="number of lines")

    usual = Run(sizes=(4, 16, 64), samples=8000, batch=100)
    showcase = Showcase(
        over="lines",
        ranges={"lines": (3, 128)},
        see="However many lines cut the plane, the cell around the origin has about five sides: π²/2 on average.",
    )

    def theory(self):
        sides = kink_density.zero_cell_sides(self.lines)
        return {"sides": Value(sides, label="sides of the cell around the origin", symbol=r"E\,\#")}

    def at_size(self, size):
        return sized(self, lines=size)

    def simulate(self, key, *, lines: int):
        noise = jax.random.normal(key, (lines, 3))
        scale = 1.0 if self.bias == "wide" else 0.01
        return {"sides": relu_networks.cell_sides(noise[:, :2], scale * jnp.asarray(noise[:, 2]))}
