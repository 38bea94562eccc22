r"""Ridge regression on random features of one data set."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from deeplimits.ensembles import random_features as draw
from deeplimits.limit import Limit, Run, activation_choice, axis, integer, real, rounded, whole
from deeplimits.models.activations import activation
from deeplimits.models.architectures import FullyConnected
from deeplimits.models.designs import Design
from deeplimits.predictions import Curve, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.gaussian import closed_forms
from deeplimits.theory.kernels.infinite_width import InfiniteWidth
from deeplimits.theory.regression import random_features

TEST_POINTS = 200


class RandomFeatureRidgeMse(Limit):
    r"""Training and test error of ridge regression on N random features of n fixed points, and their double descent.

    Setting     features σ(⟨w_l, x⟩), l ≤ N, w_l ~ N(0, I), of n fixed points x in R^d with labels ±1 and of test
                points; β̂ = argmin (1/n)‖y − Σ'β‖² + λ‖β‖²; K(x, x') = E σ(⟨w, x⟩)σ(⟨w, x'⟩)
    Limit       n, N, d → ∞ together
    Result      κ solves N = tr K(K+κ)^{-1} + nλ/κ; R = (K+κ)^{-1}, D = N − tr KRKR
                training error (κ²/n) y'R[(tr RKR/D) K + 1]Ry
                test error (1/n̂)‖ŷ − K̂Ry‖² + (y'RKRy/D)(1/n̂) tr[K_{X̂X̂} − K̂(R + κR²)K̂'], with a peak at N = n
                resolvent (1/n) y'(Σ'Σ/n + λ)^{-1}y → (κ/λ)(1/n) y'Ry
    Validity    centred data of bounded operator norm, Lipschitz σ, λ > 0; size counts the points n
    Finite size gaps of order 1/n, larger near N = n
    Computed by regression.from_kernels, kernels.InfiniteWidth; on data regression.feature_regression
    References  louart2018; liao2020
    """

    points: int = integer(160, 4, 2000, log=True, symbol="n", doc="training points, whose n x n kernel is decomposed")
    dimension: int = integer(48, 2, 2000, log=True, symbol="d", doc="dimension of the points")
    activation: str = activation_choice(
        "relu",
        lambda a: a.through_origin and a.lipschitz and closed_forms.has_dual(a),
        doc="activation σ of the features",
    )
    gamma: Array = real(0.3, 0.02, 50.0, log=True, symbol="N/n", doc="features per point")
    ridge: Array = real(0.02, 1e-5, 10.0, log=True, symbol=r"\lambda", doc="ridge penalty")
    gammas: Array = axis(
        (0.1, 0.5, 1.0, 2.0, 4.0), 0.02, 50.0, log=True, symbol="N/n", doc="features per point along the curves"
    )

    usual = Run(sizes=(60, 120, 240), samples=600)
    showcase = Showcase(
        first="test_curve",
        parameters={"ridge": 0.002, "gammas": (0.1, 0.3, 0.6, 0.85, 1.0, 1.2, 1.6, 2.5, 4.0)},
        see="The test error peaks where features are as many as points; the training error vanishes beyond.",
    )

    # Disjoint sets of features taken from one draw, where that many fit into it.
    repeats = 12

    def _data(self):
        return (
            _halfspace(self.points, self.dimension),
            _halfspace(TEST_POINTS, self.dimension, fold=1),
        )

    def theory(self):
        # The compiler would compute with the data, which are constants to it, one multiplication at a time.
        train, test = jax.lax.optimization_barrier(self._data())
        n = self.points
        # K(x, x') = E σ(⟨w, x⟩)σ(⟨w, x'⟩) of all points in one pass; Var w = 1 for every input.
        network = InfiniteWidth(FullyConnected(1, self.activation, weight_variance=float(self.dimension)))
        kernel = network.conjugate(jnp.concatenate([train.x, test.x]))
        model = random_features.from_kernels(kernel[:n, :n], kernel[n:, :n], jnp.diagonal(kernel)[n:], train.y, test.y)
        dense = jnp.geomspace(self.gammas[0], self.gammas[-1], 120)
        # At the one ratio, at those of the curve and at those between, in one call.
        everywhere = model.errors(n * jnp.concatenate([self.gamma[None], self.gammas, dense]), self.ridge)
        cuts = [1, 1 + self.gammas.size]

        def curve(y, label):
            _, at, between = jnp.split(y, cuts)
            return Curve(
                self.gammas,
                at,
                axis="features per point",
                axis_symbol="N/n",
                label=label,
                rate=1.0,
                dense_x=dense,
                dense_y=between,
                log_x=True,
                log_y=True,
            )

        return {
            "training_error": Value(everywhere.training[0], label="training error", rate=1.0),
            "test_error": Value(everywhere.test[0], label="test error", rate=1.0),
            "resolvent": Value(
                model.resolvent_at(everywhere.effective_ridge[0], self.ridge),
                label="labels through the resolvent",
                symbol=r"y^\top Qy/n",
                rate=1.0,
            ),
            "training_curve": curve(everywhere.training, "training error"),
            "test_curve": curve(everywhere.test, "test error"),
        }

    def at_size(self, size):
        n = whole(size, "n", self, least=4)
        # The dimension keeps its proportion to the number of points.
        d = whole(self.dimension * n / self.points, "d", self, least=2)
        count = whole(float(self.gamma) * n, "N", self)
        along = tuple(whole(float(gamma) * n, "N", self) for gamma in self.gammas)
        realised = rounded(self, points=n, dimension=d, gamma=count / n, gammas=[many / n for many in along])
        return {"features": count, "along": along}, realised

    def simulate(self, key, *, features: int, along: tuple[int, ...]):
        train, test = self._data()
        counts = sorted({features, *along})
        # The points of the curve share one draw of the weights and take its leading features.
        drawn = draw.neurons(key, activation(self.activation), jnp.concatenate([train.x, test.x]), counts[-1])
        found = draw.ridge_errors_along(
            drawn, jnp.asarray(train.y), jnp.asarray(test.y), self.ridge, counts, repeats=self.repeats
        )
        one, several = counts.index(features), np.array([counts.index(count) for count in along])
        return {
            "training_error": found.training[one],
            "test_error": found.test[one],
            "resolvent": found.resolvent[one],
            "training_curve": found.training[several],
            "test_curve": found.test[several],
        }


def _halfspace(samples: int, dimension: int, fold: int = 0) -> Design:
    """The data set that the limit speaks of: a cloud of points of norm about one, labelled by the side of a hyperplane.

    `fold` picks other points around the same hyperplane, to test on.
    """
    # A generator whose numbers never change; on the host, where there is nothing to compile.
    drawn = np.random.RandomState(fold).standard_normal((samples, dimension))
    x = jnp.asarray(drawn) / jnp.sqrt(1.0 * dimension)
    x = x - jnp.mean(x, axis=0, keepdims=True)
    return Design(x, jnp.sign(x @ jnp.cos(jnp.arange(1.0, dimension + 1))))
