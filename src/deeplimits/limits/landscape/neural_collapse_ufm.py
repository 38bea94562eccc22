r"""Features and classifier that are free collapse onto a simplex."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.limit import Limit, Run, integer, real, whole
from deeplimits.predictions import Identity
from deeplimits.predictions.picture import Axis, Line, Picture, Rule
from deeplimits.showcase import Showcase
from deeplimits.theory.landscape import collapse

STEPS = 6000
# In units of the largest strength that lets features grow, 1/C.
BEYOND = 1.5


class System(NamedTuple):
    """Where descent starts."""

    classifier: Float[Array, "C d"]
    features: Float[Array, "C n d"]


class NeuralCollapseUfm(Limit):
    r"""Gradient descent on free features and classifier ends in an exact neural collapse, whose size is known.

    Setting     mean cross-entropy of logits WH over n examples of each of C classes plus (λ_W/2)|W|² + (λ_H/2)|H|²,
                features H in R^d free; κ = √(n λ_W λ_H) = f/C
    Limit       t → ∞
    Result      f < 1: logits s(1 − 11'/C), the same for all examples of a class, s = log(1/κ − (C − 1)), loss
                log(1 + (C − 1)e^{−s}) + κ(C − 1)s; classifier and class means dual; f > 1: zero, with loss log C
    Validity    d ≥ C, no bias; f not near 1, where descent is slow; size counts the dimension d
    Finite size exact at every d, n
    Computed by landscape.unconstrained_features, landscape.mean_logits (logits)
    References  zhu2021; papyan2020b
    """

    classes: int = integer(4, 2, 8, symbol="C", doc="number of classes C")
    per_class: int = integer(3, 1, 10, symbol="n", doc="examples n of a class")
    strength: Array = real(0.3, 0.15, 0.7, symbol="f", doc="κC, the strength of the penalty")
    balance: Array = real(
        1.0, 0.5, 2.0, log=True, symbol="b", doc="√(λ_W/(nλ_H)), 1 where both sides are penalized alike"
    )

    usual = Run(sizes=(10, 20), samples=20)
    showcase = Showcase(
        see="Descent ends in the simplex with logits of exactly this size, which a stronger penalty shrinks until, at "
        "f = 1, everything collapses to zero.",
    )

    def charts(self):
        strengths = jnp.concatenate([jnp.geomspace(0.02, 1.0, 60), jnp.linspace(1.0, 1.5, 10)[1:]])
        found = [collapse.unconstrained_features(self.classes, self.per_class, *self._ridges(f)) for f in strengths]
        logits = jnp.stack([collapse.mean_logits(one.scale, self.classes)[0, :2] for one in found])
        marks = (
            Line(strengths, logits[:, 0], label="own class", series=0),
            Line(strengths, logits[:, 1], label="other classes", series=1),
            Rule(1.0, upright=True, label="nothing but zero beyond"),
        )
        return {"size": Picture(Axis("strength of the penalty", "f", log=True), Axis("logit", "WH"), marks)}

    def at_size(self, size):
        return {"dimension": whole(size, "d", self, least=self.classes)}, self

    def draw(self, key, *, dimension: int):
        c, n = self.classes, self.per_class
        numbers = jax.random.normal(key, (c * (n + 1), dimension)) / jnp.sqrt(1.0 * dimension)
        return System(numbers[:c], numbers[c:].reshape(c, n, dimension))

    def _ridges(self, strength):
        """λ_W and λ_H with √(nλ_Wλ_H) = f/C."""
        kappa = strength / self.classes
        return kappa * self.balance, kappa / (self.per_class * self.balance)

    def stated(self, system):
        c, n = self.classes, self.per_class
        inside, outside = (
            collapse.unconstrained_features(c, n, *self._ridges(strength))
            for strength in (self.strength, jnp.asarray(BEYOND))
        )
        logits = collapse.mean_logits(inside.scale, c)
        shared = {"tolerance": 1e-8, "reason": "descent of a few thousand steps, where the penalty is weak"}
        return {
            "logits": Identity(
                jnp.broadcast_to(logits[:, None, :], (c, n, c)), label="logits of all examples", symbol="WH", **shared
            ),
            "loss": Identity(inside.loss, label="loss", symbol="L", **shared),
            "loss_beyond": Identity(outside.loss, label="loss with too strong a penalty", symbol=r"\log C", **shared),
        }

    def measured(self, system):
        logits, loss = self._descend(system, self.strength)
        _, beyond = self._descend(system, jnp.asarray(BEYOND))
        return {"logits": logits, "loss": loss, "loss_beyond": beyond}

    def _descend(self, system, strength):
        c, n = self.classes, self.per_class
        ridge_w, ridge_h = self._ridges(strength)

        def loss(weights):
            w, h = weights
            z = h @ w.T
            right = jnp.sum(z * jnp.eye(c)[:, None, :], axis=-1)
            entropy = jnp.mean(jax.nn.logsumexp(z, axis=-1) - right)
            return entropy + ridge_w / 2 * jnp.sum(w**2) + ridge_h / 2 * jnp.sum(h**2)

        def advance(_, weights):
            w, h = weights
            slope_w, slope_h = jax.grad(loss)(weights)
            # Each feature is seen by one example of nC: its step is larger by as much, that of the classifier by C.
            return w - 0.3 * slope_w, h - 0.3 * n * slope_h

        w, h = jax.lax.fori_loop(0, STEPS, advance, tuple(system))
        return h @ w.T, loss((w, h))
