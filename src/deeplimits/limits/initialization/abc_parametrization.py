r"""Which powers of the width let a wide network learn features."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from deeplimits.ensembles import deep_networks
from deeplimits.errors import OutsideValidity
from deeplimits.limit import Limit, Run, activation_choice, integer, real, whole
from deeplimits.models import parametrizations
from deeplimits.models.activations import activation
from deeplimits.predictions import Exponent
from deeplimits.predictions.picture import Axis, Field, Line, Picture, Points
from deeplimits.showcase import Showcase
from deeplimits.theory.initialization import parametrization


class AbcParametrization(Limit):
    r"""Powers of the width decide whether a wide network learns features.

    Setting     W^(l) = n^(−a_l) w^(l), w^(l) ~ N(0, n^(−2b_l)), gradient descent with rate ηn^(−c) on w; L hidden
                layers of width n, a fixed number of inputs, a few steps
    Limit       n → ∞ at a fixed number of steps
    Result      the features of the last hidden layer move by n^(−r),
                r = min(a_(L+1) + b_(L+1), 2a_(L+1) + c) + c − 1 + min_(l≤L)(2a_l + 1[l=1])
                NTK parametrization a = (0, ½, …, ½), b = 0, c = 0: r = ½, a kernel machine
                standard parametrization with rate 1/n: r = ½ too; μP a = (−½, 0, …, 0, ½), b = ½, c = 0: r = 0
    Validity    smooth σ; r ≥ 0, otherwise training blows up with the width; size counts the neurons n of a layer
    Finite size O(1/n) for the movement relative to n^(−r)
    Computed by initialization.feature_exponent, initialization.learns_features, initialization.effective_plain_form
    References  yang2021; chizat2019; jacot2018
    """

    activation: str = activation_choice("tanh", lambda a: a.odd and a.smooth and a.increasing and a.bounded)
    step: Array = real(0.5, 0.01, 2.0, log=True, symbol=r"\eta", doc="learning rate before powers of the width")
    hidden: int = integer(1, 1, 5, symbol="L", doc="number of hidden layers")
    steps: int = integer(3, 1, 20, symbol="t", doc="steps of gradient descent")

    usual = Run(sizes=(250, 4000), samples=300)
    showcase = Showcase(
        first="exponents",
        see="Features move by n^(−r): by n^(−1/2) in the kernel parametrization, and as much at every width on the "
        "white line r = 0, where the maximal-update one lies; beyond it training blows up.",
    )

    def charts(self):
        # The output's weights n^(−a) and the learning rate n^(−c), the other layers as in the kernel parametrization.
        inner = parametrizations.ntk(self.hidden)
        powers, rates = np.linspace(0.5, 1.25, 61), np.linspace(-1.25, 0.75, 81)

        def exponent(a, c):
            try:
                given = parametrizations.Parametrization((*inner.a[:-1], a), inner.b, c)
                return parametrization.feature_exponent(given)
            except OutsideValidity:
                return np.nan

        found = np.array([[exponent(float(a), float(c)) for a in powers] for c in rates])
        # r = 0: along it a falls short of c only where the start is as large as what is learned
        edge = rates[np.argmax(np.isfinite(found), axis=0)]
        marks = (
            Field(powers, rates, found, label="exponent r"),
            Line(powers, edge, label="r = 0: features are learned"),
            # μP in this gauge: weights n^(−1) at the output, rate n
            Points([0.5, 1.0], [0.0, -1.0], label="kernel, and maximal update"),
        )
        across, heights = Axis("power of the output's weights", "a_{L+1}"), Axis("power of the learning rate", "c")
        return {"exponents": Picture(across, heights, marks)}

    # Inputs, orthogonal to each other, with targets of alternating sign and this size.
    points, target = 8, 2.0

    def theory(self):
        def moved(name, label):
            r = parametrization.feature_exponent(parametrizations.PRESETS[name](self.hidden))
            return Exponent(0.0 - r, label=label, symbol=r"|\Delta\phi|")

        return {
            "ntk_features": moved("ntk", "feature movement, NTK"),
            "maximal_update_features": moved("maximal-update", "feature movement, μP"),
        }

    def at_size(self, size):
        n = whole(size, "n", self, least=2)
        return {"width": n}, self

    def simulate(self, key, *, width: int):
        sigma, n = activation(self.activation), float(width)
        x = jnp.eye(self.points)
        y = self.target * jnp.where(jnp.arange(self.points) % 2 == 0, 1.0, -1.0)

        def movement(a, b, c):
            """Root mean square change of the last hidden features."""
            weights = deep_networks.draw(key, self.points, width, self.hidden, list(n**-b))

            def network(w):
                return deep_networks.outputs(sigma, w, x, multipliers=list(n**-a))

            def step(w, _):
                gradient = jax.grad(lambda w: jnp.mean((network(w).outputs - y) ** 2) / 2)(w)
                return jax.tree.map(lambda p, g: p - self.step * n**-c * g, w, gradient), None

            trained, _ = jax.lax.scan(step, weights, length=self.steps)
            return jnp.sqrt(jnp.mean((network(trained).features - network(weights).features) ** 2))

        names = ("ntk", "maximal-update")
        presets = [parametrizations.PRESETS[name](self.hidden) for name in names]
        # Both parametrizations of one draw: each is judged by itself.
        moves = jax.vmap(movement)(*(jnp.array([getattr(preset, part) for preset in presets]) for part in "abc"))
        return {f"{name.replace('-', '_')}_features": move for name, move in zip(names, moves, strict=True)}
