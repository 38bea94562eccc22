"""Gradient flows of finite systems, integrated numerically, also to astronomically late times."""

from collections.abc import Callable

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.errors import ParameterError

Field = Callable[[Float[Array, ""], Float[Array, " d"]], Float[Array, " d"]]


def integrate(
    field: Field,
    start: Float[Array, " d"],
    times: Float[Array, " points"],
    rtol: float = 1e-10,
    atol: float = 1e-12,
    stiff: bool = True,
) -> Float[Array, "points d"]:
    """Solve dw/dt = field(t, w) from t = 0 and return w at increasing `times`.

    Late in training the fast directions have settled and only the slow ones should limit the step: for that an implicit
    method of order five; with `stiff=False` an explicit one.
    """
    solved = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, w, _: field(jnp.asarray(t), w)),
        diffrax.Kvaerno5() if stiff else diffrax.Tsit5(),
        0.0,
        times[-1],
        None,
        start,
        saveat=diffrax.SaveAt(ts=times),
        stepsize_controller=diffrax.PIDController(rtol=rtol, atol=atol),
        max_steps=200_000,
    )
    assert solved.ys is not None
    return solved.ys


def gradient_flow(
    loss: Callable[[Float[Array, " d"]], Float[Array, ""]],
    start: Float[Array, " d"],
    times: Float[Array, " points"],
    rtol: float = 1e-10,
    atol: float = 1e-12,
    stiff: bool = True,
) -> Float[Array, "points d"]:
    """dw/dt = −∇L(w), at increasing `times`."""
    gradient = jax.grad(loss)
    return integrate(lambda t, w: -gradient(w), start, times, rtol, atol, stiff)


def gradient_flow_in_log_time(
    loss: Callable[[Float[Array, " d"]], Float[Array, ""]],
    start: Float[Array, " d"],
    log_times: Float[Array, " points"],
    rtol: float = 1e-10,
    atol: float = 1e-12,
) -> Float[Array, "points d"]:
    """dw/dt = −∇L(w) in the variable s = log(1 + t), at increasing `log_times` s; for losses that decay like 1/t."""
    gradient = jax.grad(loss)
    return integrate(lambda s, w: -jnp.exp(s) * gradient(w), start, log_times, rtol, atol)


def classification_flow(
    scores: Callable[[Float[Array, " d"]], Float[Array, " n"]],
    start: Float[Array, " d"],
    log_times: Float[Array, " points"],
    loss: str = "exponential",
    loss_scale: float = 1.0,
    rtol: float = 1e-11,
    atol: float = 1e-12,
) -> Float[Array, "points d"]:
    """Gradient flow on c Σ ℓ(q_i(w)), ℓ = e^{−q} or log(1 + e^{−q}), at s = log(1 + t) as late as one likes.

    `scores` gives q_i = y_i f(x_i; w). e^s and ℓ' are combined in one exponent, so that nothing overflows: t = e^4000
    is no harder than t = e^40.
    """
    if loss not in ("exponential", "logistic"):
        raise ParameterError(f"loss = {loss!r} is not allowed; it must be 'logistic' or 'exponential'")

    def field(s, w):
        q, pull = jax.vjp(scores, w)
        # e^s e^{−q}, or e^s/(1 + e^q) = e^{s − log(1 + e^q)}
        exponent = s - (q if loss == "exponential" else jax.nn.softplus(q))
        return pull(loss_scale * jnp.exp(exponent))[0]

    return integrate(field, start, log_times, rtol, atol)


def separable_flow(
    signed: Float[Array, "n d"],
    start: Float[Array, " d"],
    log_times: Float[Array, " points"],
    loss: str = "exponential",
    loss_scale: float | None = None,
    rtol: float = 1e-11,
) -> Float[Array, "points d"]:
    """`classification_flow` of a linear classifier on the rows x̄_i = y_i x_i, c = 1/n unless given."""
    scale = 1 / signed.shape[0] if loss_scale is None else loss_scale
    return classification_flow(lambda w: signed @ w, start, log_times, loss, scale, rtol)


def log_loss_along(
    signed: Float[Array, "n d"], weights: Float[Array, " d"], loss: str, loss_scale: float | None = None
) -> Float[Array, ""]:
    """log of c Σ ℓ(⟨w, x̄_i⟩), which underflows nowhere."""
    scale = 1 / signed.shape[0] if loss_scale is None else loss_scale
    margins = signed @ weights
    # log ℓ(u) = −u, or log log(1 + e^{−u}) = −u + log(log1p(e^{−u})/e^{−u}), whose last term vanishes for large u
    if loss == "exponential":
        logs = -margins
    else:
        tail = jnp.exp(-margins)
        tiny = tail < 1e-8
        logs = jnp.where(tiny, -margins - tail / 2, jnp.log(jnp.log1p(jnp.where(tiny, 1.0, tail))))
    return jnp.log(scale) + jax.scipy.special.logsumexp(logs)


def diagonal_network_flow(
    x: Float[Array, "n d"],
    y: Float[Array, " n"],
    alpha: Float[Array, ""],
    start: Float[Array, " d"],
    depth: int,
    times: Float[Array, " points"],
) -> Float[Array, "points d"]:
    """β = w₊^D − w₋^D along gradient flow on ½‖Xβ − y‖² from w± = αθ₀, in all 2d parameters, at the given times."""
    saveat = diffrax.SaveAt(ts=times)
    return _coefficients(_diagonal_solve(x, y, alpha * start, depth, times[-1], saveat=saveat), depth)


def diagonal_network_limit(
    x: Float[Array, "n d"],
    y: Float[Array, " n"],
    alpha: Float[Array, ""],
    start: Float[Array, " d"],
    depth: int,
    precision: float = 1e-10,
) -> Float[Array, " d"]:
    """Where that flow ends: β once max |Xβ − y| has fallen below `precision` times max |y|.

    The flow stops there because beyond it only rounding errors would be integrated.
    """

    def interpolates(t, logarithms, args, **kwargs):
        beta = _coefficients(jnp.tile(alpha * start, 2) * jnp.exp(logarithms), depth)
        return jnp.max(jnp.abs(x @ beta - y)) < precision * jnp.max(jnp.abs(y))

    end = _diagonal_solve(x, y, alpha * start, depth, jnp.inf, event=diffrax.Event(interpolates))
    return _coefficients(end[-1], depth)


def _diagonal_solve(x, y, start, depth, end, **options):
    def loss(weights):
        return jnp.sum((x @ _coefficients(weights, depth) - y) ** 2) / 2

    gradient = jax.grad(loss)
    beginning = jnp.concatenate([start, start])

    def field(t, logarithms, args):
        weights = beginning * jnp.exp(logarithms)
        return -gradient(weights) / weights

    solved = diffrax.diffeqsolve(
        # In u = log(w/w(0)), w stays positive: parameters far below the others decide later what grows, so their
        # relative precision counts, and so does the precision of small moves of large parameters.
        diffrax.ODETerm(field),
        diffrax.Tsit5(),
        0.0,
        end,
        None,
        jnp.zeros_like(beginning),
        stepsize_controller=diffrax.PIDController(rtol=1e-11, atol=1e-14),
        max_steps=1_000_000,
        **options,
    )
    assert solved.ys is not None
    return beginning * jnp.exp(solved.ys)


def _coefficients(weights, depth):
    plus, minus = jnp.split(weights, 2, axis=-1)
    return plus**depth - minus**depth
