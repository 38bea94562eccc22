r"""Random score and value matrices."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles.transformers import particles as ensemble
from deeplimits.ensembles.transformers.random_layers import PANELS, panel_layer, random_tokens
from deeplimits.limit import Limit, Run, choice, integer, real, replace, whole
from deeplimits.measure.tokens import clustering as measure
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.attention import random_scores

SCORE = {"A": "ginibre", "B": "wigner", "C": "ginibre", "D": "wigner"}
VALUE = {"A": "gaussian", "B": "wishart", "C": "ginibre", "D": "wigner"}
"""What the matrices of each panel are, in the words of the theory; C and D take B/√d for V."""


class RandomQkvEnsembles(Limit):
    r"""The scaling in which random scores are of order one, and which random transformers climb an energy.

    Setting     A: B = G₁G₂/√d, V = G₃/√d; B: B Wigner, V = GGᵀ/d; C: B = G₁G₂/√d, V = B/√d; D: B Wigner, V = B/√d; n
                independent uniform tokens
    Limit       d → ∞
    Result      E⟨x_i, Bx_j⟩² = 1 for i ≠ j, E⟨x_i, Bx_i⟩² = (2d+1)/(d+2) for Wigner B, 1 for products; ‖B‖/√d and
                ‖V‖ → 2 for Gaussian and Wigner, 4 for Wishart, √(27/4) for products; in D the energy
                Σ e^{β⟨x_i,Bx_j⟩} never falls, in the others it may
    Validity    independent entries with four moments; size counts the dimension d
    Finite size exact for scores, O(d^(−2/3)) for norms, whose extremes fluctuate like Tracy and Widom's law
    Computed by attention.score_law
    References  geshkovski2025 Sec 7
    """

    panel: str = choice("D", tuple(PANELS), doc="which ensemble of the phase diagram")
    tokens: int = integer(200, 2, 400, symbol="n", doc="number of tokens")
    beta: Array = real(1.0, 0.05, 3.0, symbol=r"\beta", doc="inverse temperature at which the energy is followed")

    dimension: Array = real(64, 4, 1e6, log=True, symbol="d", doc="dimension of the tokens")

    usual = Run(sizes=(32, 64, 128), samples=60, batch=10)
    showcase = Showcase(
        over="dimension",
        first="own_scores",
        ranges={"dimension": (4, 1000)},
        see="Scores are of order one in every dimension, and a token's own become twice as large as those of others; "
        "where values are the scores themselves, every random transformer climbs its energy.",
    )

    def theory(self):
        score = random_scores.score_law(SCORE[self.panel], dimension=self.dimension)
        value = random_scores.score_law(VALUE[self.panel], dimension=self.dimension)
        found = {
            "scores": Value(score.variance, label="variance of scores of two tokens", symbol=r"E\langle x,By\rangle^2"),
            "own_scores": Value(score.own_variance, label="variance of own scores", symbol=r"E\langle x,Bx\rangle^2"),
            "score_norm": Value(score.norm, label="norm of the scores", symbol=r"\|B\|/\sqrt{d}", rate=2 / 3),
            "value_norm": Value(value.norm, label="norm of the values", symbol=r"\|V\|", rate=2 / 3),
        }  # fmt: skip
        if self.panel == "D":
            found["monotone"] = Value(1.0, label="share of systems whose energy rises", symbol=r"P(\dot E\geq0)")
        return found

    def at_size(self, size):
        d = whole(size, "d", self, least=4)
        return {"side": d}, replace(self, dimension=d)

    def simulate(self, key, *, side: int):
        token_key, layer_key = jax.random.split(key)
        x = random_tokens(token_key, self.tokens, side)
        layer = panel_layer(layer_key, self.panel, side)
        score, value = layer.scores[0], layer.values[0]
        scores, n = x @ score @ x.T, self.tokens
        own = jnp.sum(jnp.diagonal(scores) ** 2)
        found = {
            "scores": (jnp.sum(scores**2) - own) / (n * (n - 1)),
            "own_scores": own / n,
            "score_norm": jnp.linalg.norm(score, ord=2) / jnp.sqrt(1.0 * side),
            "value_norm": jnp.linalg.norm(value, ord=2),
        }
        if self.panel == "D":
            # One short layer climbs already: energies are convex along it, to the order of the step.
            after = ensemble.after_layers(x, self.beta, 1e-3, 1, layer=layer)
            before, later = (measure.log_energy(y, self.beta, score=score) for y in (x, after))
            found["monotone"] = (later >= before).astype(float)
        return found
