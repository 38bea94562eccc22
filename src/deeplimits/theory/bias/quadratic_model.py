r"""Nearly linear models: what a small quadratic term does to gradient flow.

z_a(θ) = ⟨Φ_a, θ⟩ + (ε/2)⟨θ, Ψ_a θ⟩ for m samples with features Φ_a in R^p (the columns of Φ, shape (p, m)) and
symmetric Ψ_a (shape (m, p, p)); loss ½ Σ_a (z_a − y_a)², gradient flow from θ₀. To first order θ(t) = θ_F(t) + ε
θ_I(t) + O(ε²) with θ_F the flow of the linear model. A = ΦΦ' has eigenpairs (a_j, u_j); Π projects on the span of
the features.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import ParameterError
from deeplimits.numerics import arguments
from deeplimits.numerics.checks import valid
from deeplimits.numerics.shapes import Scalar

INTERPOLATES = 1e-9


class Perturbation(NamedTuple):
    """Where gradient flow ends, to first order in ε."""

    linear: Float[Array, " p"]
    """θ_F(∞) = A⁺Φy + (1 − Π)θ₀."""
    parallel: Float[Array, " p"]
    """Π θ_I(∞)."""
    perpendicular: Float[Array, " p"]
    """(1 − Π) θ_I(∞)."""
    misfit: Scalar
    """max_a |⟨Φ_a, θ_F⟩ − y_a|; zero where the linear model interpolates."""

    @property
    def correction(self) -> Float[Array, " p"]:
        """θ_I(∞)."""
        return self.parallel + self.perpendicular


def quadratic_perturbation(features: ArrayLike, forms: ArrayLike, y: ArrayLike, start: ArrayLike) -> Perturbation:
    """The end of gradient flow on a weakly quadratic model, to first order, with its perpendicular part.

    Setting     `features` Φ (p, m), `forms` Ψ (m, p, p) symmetric, labels `y` (m,), `start` θ₀ (p,); ε → 0
    Result      A Πθ_I = −Σ_a [Ψ_a θ_F (⟨Φ_a, θ_F⟩ − y_a) + ½ Φ_a ⟨θ_F, Ψ_a θ_F⟩] on the span of the features, and with
                Δ = Π(θ₀ − θ_F),
                (1−Π)θ_I = −(1−Π) Σ_a Ψ_a [θ_F ⟨Φ_a, A⁺Δ⟩ + Σ_jk u_j ⟨u_j,Δ⟩⟨Φ_a,u_k⟩⟨u_k,Δ⟩/(a_j + a_k)]
    Validity    the linear model interpolates, or the features span R^p (Π = 1); otherwise the perpendicular part grows
                linearly in time and OutsideValidity is raised
    References  roberts2022 Ch. 11

    >>> found = quadratic_perturbation([[1.0], [0.0]], [[[1.0, 2.0], [2.0, -1.0]]], [1.0], [0.0, 0.0])
    >>> [[float(round(v, 12)) + 0.0 for v in part.tolist()] for part in found[:3]]
    [[1.0, 0.0], [-0.5, 0.0], [0.0, 1.0]]
    """
    phi, psi, y, start = _checked(features, forms, y, start)
    modes = _modes(phi, y, start)
    linear, delta = modes.limit, modes.delta
    residuals = phi.T @ linear - y
    inverse = jnp.where(modes.kept, 1 / jnp.where(modes.kept, modes.values, 1.0), 0.0)
    # −Σ_a [Ψ_a θ_F (Φ_a'θ_F − y_a) + ½ Φ_a θ_F'Ψ_a θ_F]
    bent = psi @ linear
    force = -(residuals @ bent + phi @ (bent @ linear) / 2)
    parallel = modes.vectors @ (inverse * (modes.vectors.T @ force))
    seen = modes.vectors.T @ phi * jnp.where(modes.kept, 1.0, 0.0)[:, None]
    drawn = seen.T @ (inverse * delta)
    rates = modes.values[:, None] + modes.values[None, :]
    both = modes.kept[:, None] & modes.kept[None, :]
    # c_aj = ⟨u_j, Δ⟩ Σ_k ⟨Φ_a, u_k⟩⟨u_k, Δ⟩/(a_j + a_k)
    overlaps = jnp.where(both, 1 / jnp.where(both, rates, 1.0), 0.0)
    inner = (seen * delta[:, None]).T @ overlaps * delta[None, :]
    pushed = jnp.einsum("apq,aq->p", psi, drawn[:, None] * linear[None, :] + inner @ modes.vectors.T)
    perpendicular = -(pushed - modes.vectors @ (jnp.where(modes.kept, 1.0, 0.0) * (modes.vectors.T @ pushed)))
    misfit = jnp.max(jnp.abs(residuals))
    determined = (misfit <= INTERPOLATES * (1 + jnp.max(jnp.abs(y)))) | jnp.all(modes.kept)
    return valid(
        Perturbation(linear, parallel, perpendicular, misfit),
        determined,
        "the linear model misfits and its features do not span all directions: the perpendicular part then grows "
        "linearly in time; use `first_order_path`",
        lambda: f" (a misfit of {float(misfit):.2g}, {int(modes.kept.sum())} of {len(linear)} dimensions)",
    )


def linear_path(features: ArrayLike, y: ArrayLike, start: ArrayLike, times: ArrayLike) -> Float[Array, "times p"]:
    """θ_F(t) = θ_F + e^{−At}Δ, the flow of the linear model."""
    phi, y, start = _linear_model(features, y, start)
    modes = _modes(phi, y, start)
    decay = jnp.exp(-modes.values[None, :] * arguments.times("times", times)[:, None])
    return modes.limit[None, :] + (decay * modes.delta[None, :]) @ modes.vectors.T


def first_order_path(
    features: ArrayLike, forms: ArrayLike, y: ArrayLike, start: ArrayLike, times: ArrayLike
) -> Float[Array, "times p"]:
    """θ_I(t), the derivative of the whole trajectory with respect to ε at ε = 0, in closed form.

    Valid whether or not the model interpolates. The forcing −Σ_a[Ψ_aθ_F(t) r_a(t) + ½Φ_a⟨θ_F(t), Ψ_aθ_F(t)⟩] is a
    sum of exponentials e^{−bt} with b = 0, a_j, a_j + a_k, and each is integrated against e^{−A(t−s)}.

    >>> path = first_order_path(np.eye(1), np.ones((1, 1, 1)), np.ones(1), np.zeros(1), np.array([50.0]))
    >>> round(float(path[0, 0]), 6)  # θ + εθ²/2 = 1 has the solution 1 − ε/2 + …
    -0.5
    """
    phi, psi, y, start = _checked(features, forms, y, start)
    times = arguments.times("times", times)
    modes = _modes(phi, y, start)
    u, delta = modes.vectors, modes.delta
    bent = psi @ u  # Ψ_a u_j
    seen = phi.T @ u
    ends, left = psi @ modes.limit, phi.T @ modes.limit - y
    moving = seen * delta[None, :]  # residual of sample a along e^{−a_k t}
    quadratic = jnp.einsum("pj,apk->ajk", u, bent) * delta[None, :, None] * delta[None, None, :]
    # The parts of the forcing, with the rates at which they decay, as rows of components along u_i.
    constant = left @ ends + phi @ (ends @ modes.limit) / 2
    single = (
        jnp.einsum("aj,ap->jp", moving, ends)
        + jnp.einsum("a,apj->jp", left, bent) * delta[:, None]
        + jnp.einsum("pa,aj->jp", phi, (ends @ u) * delta[None, :])
    )
    double = (
        jnp.einsum("ak,apj->jkp", moving, bent) * delta[:, None, None] + jnp.einsum("pa,ajk->jkp", phi, quadratic) / 2
    )
    p = len(delta)
    forces = jnp.concatenate([constant[None], single, double.reshape(p * p, -1)]) @ u
    pairs = (modes.values[:, None] + modes.values[None, :]).ravel()
    rates = jnp.concatenate([jnp.zeros(1), modes.values, pairs])

    def at(t):
        # ∫₀ᵗ e^{−a(t−s)} e^{−bs} ds = t e^{−max(a,b)t} (e^x − 1)/x with x = |a − b|t
        gap = jnp.abs(modes.values[None, :] - rates[:, None]) * t
        lower = jnp.minimum(modes.values[None, :], rates[:, None])
        tiny = gap < 1e-8
        filled = t * jnp.exp(-lower * t) * jnp.where(tiny, 1 - gap / 2, -jnp.expm1(-gap) / jnp.where(tiny, 1.0, gap))
        return -u @ jnp.sum(forces * filled, axis=0)

    return jax.vmap(at)(times)


def feature_change(
    features: ArrayLike, form: ArrayLike, y: ArrayLike, start: ArrayLike, time: ArrayLike
) -> Float[Array, " p"]:
    """How far an input's effective features have moved after time t, per ε: Ψ(x)(1 − e^{−At})(θ_F − θ₀).

    Setting     effective features Φ(x) + εΨ(x)θ_t, the gradient of the model; `form` is Ψ(x) (p, p); flow to `time`,
                which
                may be infinite (for a learning rate γ put γt)
    Result      to first order in ε; at infinity Ψ(x) Π(θ_F − θ₀)
    Validity    ε → 0; corrections O(ε²)
    References  roberts2022 Ch. 11

    >>> phi = [[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]]
    >>> change = feature_change(phi, [[1, 0, 1], [0, 2, 0], [1, 0, 0]], [1.0, 2.0], [0.5, -0.5, 1.0], jnp.inf)
    >>> [round(v, 10) for v in change.tolist()]
    [0.5, 1.0, 0.5]
    """
    phi, y, start = _linear_model(features, y, start)
    p = phi.shape[0]
    form = arguments.array("form", form, (p, p), why="of the size of the features")
    late = arguments.argument("time", time, arguments.UNTIL_THE_END)
    modes = _modes(phi, y, start)
    # Δ = Π(θ₀ − θ_F), so the linear flow has moved by −(1 − e^{−At})Δ.
    grown = jnp.where(modes.kept, -jnp.expm1(-modes.values * late), 0.0)
    return form @ (modes.vectors @ (-grown * modes.delta))


class _Modes(NamedTuple):
    values: Float[Array, " p"]
    vectors: Float[Array, "p p"]
    kept: Array
    limit: Float[Array, " p"]
    delta: Float[Array, " p"]


def _modes(phi, y, start) -> _Modes:
    """Eigenpairs of A with exact zeros off the span of the features, θ_F(∞), and Δ in the eigenbasis."""
    values, vectors = jnp.linalg.eigh(phi @ phi.T)
    kept = values > phi.shape[0] * jnp.finfo(values.dtype).eps * 10 * values[-1]
    values = jnp.where(kept, values, 0.0)
    pulled = vectors.T @ (phi @ y) / jnp.where(kept, values, 1.0)
    begun = vectors.T @ start
    ended = jnp.where(kept, pulled, begun)
    return _Modes(values, vectors, kept, vectors @ ended, jnp.where(kept, begun - ended, 0.0))


def _linear_model(features, y, start):
    phi = arguments.array("features", features, ("p", "m"), why="one column for each sample")
    p, m = phi.shape
    y = arguments.array("y", y, (m,), why="one label for each sample")
    return phi, y, arguments.array("start", start, (p,), why="one parameter for each feature")


def _checked(features, forms, y, start):
    phi, y, start = _linear_model(features, y, start)
    p, m = phi.shape
    psi = arguments.array("forms", forms, (m, p, p), why="one matrix for each sample, of the size of the features")
    if arguments.known(psi) and not np.allclose(psi, psi.transpose(0, 2, 1)):
        raise ParameterError("forms must be symmetric matrices; replace each by the mean of it and its transpose")
    return phi, psi, y, start
