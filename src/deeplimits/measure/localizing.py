r"""Whether summary statistics of online SGD are localizable, and of which kind their limit is, from systems that grow.

Statistics u of x' = x − δ∇L(x, Y), H = L − EL, are localizable if near the point, with constants free of N,
‖∇²u_i‖ ≤ Cδ^{−1/2}, |∇Φ| ≤ C, E|∇H|⁸ ≤ Cδ^{−4}, E⟨∇H, ∇u_i⟩⁴ ≤ Cδ^{−2}, E⟨∇²u_i, ∇H⊗∇H − V⟩² = o(δ^{−3}).
"""

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import PRNGKeyArray

from deeplimits.errors import OutsideValidityWarning
from deeplimits.measure.estimates import Estimate
from deeplimits.measure.summary_statistics import coefficients
from deeplimits.numerics import arguments

ITERATIONS = 60
BOUNDS = {
    "curvature of statistics": 0.5,
    "population gradient": 0.0,
    "eighth moment of the noise": 4.0,
    "fourth moment along statistics": 2.0,
    "second moment through curvature": 3.0,
}
VANISHES = -0.25
"""An exponent in N below which a coefficient is held to vanish: halfway to the 1/√N of the slowest corrections."""


class System(NamedTuple):
    """One model in one dimension: the loss of one sample, how samples are drawn, statistics and a point."""

    loss: Callable
    draw: Callable
    statistics: Callable
    point: Any
    step: float
    """The step δ itself."""


class Growth(NamedTuple):
    """How a quantity grows with 1/δ, fitted over the systems, and how much it may."""

    name: str
    exponent: Estimate
    """−inf for what is zero."""
    bound: float

    @property
    def holds(self) -> bool:
        """Whether the exponent is not above the bound by more than three standard errors (and 0.1)."""
        return not self.exponent.value > self.bound + max(3 * self.exponent.error, 0.1)


class Localizability(NamedTuple):
    """The conditions one by one, and the kind of the limit."""

    conditions: tuple[Growth, ...]
    corrector_exponent: Estimate
    """Of |g| as a power of N; −inf where it is zero."""
    diffusion_exponent: Estimate
    """Of |Σ| as a power of N."""

    @property
    def localizable(self) -> bool:
        return all(one.holds for one in self.conditions)

    @property
    def scaling(self) -> str:
        """ "critical" where corrector or diffusion stay as N grows, "sub-critical" where both vanish."""
        stays = max(self.corrector_exponent.value, self.diffusion_exponent.value) > VANISHES
        return "critical" if stays else "sub-critical"

    @property
    def kind(self) -> str:
        """ "diffusive" where Σ stays as N grows, "ballistic" where it vanishes."""
        return "diffusive" if self.diffusion_exponent.value > VANISHES else "ballistic"


def localizability(
    key: PRNGKeyArray, system: Callable[[int], System], dimensions: Sequence[int], *, draws: int = 400
) -> Localizability:
    """The exponents of the five conditions of localizability from systems of several dimensions, and the limit's kind.

    Setting     `system(N)` gives loss(x, sample), draw(key), statistics(x), a point and the step δ, in dimension N
    Result      for every condition the exponent e in quantity ∝ δ^{−e}, by least squares over the dimensions, beside
                the largest allowed one; exponents of corrector and diffusion in N: critical or sub-critical, ballistic
                or diffusive
    Validity    two dimensions or more, far apart; conditions are looked at at the point, not on all u^{−1}(E_K). A
                warning is given where δN grows with N: the theorem is for δ = O(1/N)
    References  benarous2022

    >>> import jax, jax.numpy as jnp
    >>> def pca(n):
    ...     spread = jnp.ones(n).at[0].set(1.5)
    ...     return System(lambda x, y: -((x @ y) ** 2) / 2, lambda key: spread * jax.random.normal(key, (n,)),
    ...         lambda x: jnp.stack([x[0], x @ x - x[0] ** 2]), jnp.ones(n) / n**0.5, 1 / n)
    >>> found = localizability(jax.random.key(0), pca, (20, 40, 80), draws=200)
    >>> found.localizable, found.scaling, found.kind
    (True, 'critical', 'ballistic')
    """
    arguments.whole("dimensions", len(dimensions), 2, "of them, to see how things grow")
    arguments.whole("draws", draws, 8)
    rows, sizes, steps = [], [], []
    for index, dimension in enumerate(dimensions):
        n = arguments.whole("dimension", dimension, 1)
        one = system(n)
        steps.append(float(arguments.number("step", one.step, arguments.POSITIVE)))
        keys = jax.random.split(jax.random.fold_in(key, index))
        rows.append(_quantities(keys[0], one, draws))
        found = coefficients(keys[1], one.loss, one.draw, one.statistics, one.point, one.step, draws)
        sizes.append([_size(found.corrector), _size(found.diffusion)])
    log_n, log_delta = np.log(np.asarray(dimensions, float)), np.log(np.asarray(steps))
    if _slope(log_n, np.exp(log_delta + log_n)).value > 0.1:
        warnings.warn(
            "δN grows with N; effective dynamics are for steps δ = O(1/N), so take smaller ones",
            OutsideValidityWarning,
            stacklevel=2,
        )
    table = np.array(rows)
    conditions = tuple(
        Growth(name, _slope(-log_delta, table[:, place]), bound) for place, (name, bound) in enumerate(BOUNDS.items())
    )
    corrector, diffusion = (_slope(log_n, column) for column in np.array(sizes).T)
    return Localizability(conditions, corrector, diffusion)


def _size(estimate) -> float:
    """The largest entry of a coefficient that is beyond four standard errors, or zero."""
    value, error = np.abs(np.asarray(estimate.value)), np.asarray(estimate.error)
    return float(np.max(np.where(value > 4 * error + 1e-12, value, 0.0)))


def _slope(x: np.ndarray, values: np.ndarray) -> Estimate:
    """The slope of log values against x and its standard error; −inf where a value is zero."""
    if np.any(values <= 0):
        return Estimate(-math.inf, 0.0, len(x))
    y, centred = np.log(values), x - x.mean()
    if not centred @ centred > 0:
        return Estimate(0.0, 0.0, len(x))
    slope = float(centred @ y / (centred @ centred))
    left = y - y.mean() - slope * centred
    freedom = max(len(x) - 2, 1)
    return Estimate(slope, float(np.sqrt(left @ left / freedom / (centred @ centred))), len(x))


def _quantities(key: PRNGKeyArray, system: System, draws: int) -> list[float]:
    """The left-hand sides of the five conditions, in their order; the largest over the statistics."""
    flat, restore = ravel_pytree(system.point)

    def loss(x, sample):
        return system.loss(restore(x), sample)

    def statistics(x):
        return jnp.atleast_1d(system.statistics(restore(x)))

    slopes = jax.vmap(lambda key: jax.grad(loss)(flat, system.draw(key)))(jax.random.split(key, draws))
    mean = slopes.mean(axis=0)
    noise = slopes - mean[None, :]
    count = statistics(flat).shape[0]

    def curved(index, direction):
        # ∇²u_i times a direction
        return jax.jvp(jax.grad(lambda x: statistics(x)[index]), (flat,), (direction,))[1]

    # Without its own noise: the product of the means of two halves
    half = draws // 2
    population = jnp.sqrt(jnp.maximum(slopes[:half].mean(axis=0) @ slopes[half:].mean(axis=0), 0.0))
    along = jax.vmap(lambda direction: jax.jvp(statistics, (flat,), (direction,))[1])(noise)
    start = jax.random.normal(jax.random.fold_in(key, 1), flat.shape)
    curvatures, through = [], []
    for index in range(count):

        def grown(_, direction, index=index):
            following = curved(index, direction)
            return following / jnp.maximum(jnp.linalg.norm(following), 1e-300)

        top = jax.lax.fori_loop(0, ITERATIONS, grown, start / jnp.linalg.norm(start))
        curvatures.append(float(jnp.linalg.norm(curved(index, top))))
        forms = jax.vmap(lambda h, index=index: h @ curved(index, h))(noise)
        through.append(float(jnp.var(forms)))
    return [
        max(curvatures),
        float(population),
        float(jnp.mean(jnp.sum(noise**2, axis=1) ** 4)),
        float(jnp.max(jnp.mean(along**4, axis=0))),
        max(through),
    ]
