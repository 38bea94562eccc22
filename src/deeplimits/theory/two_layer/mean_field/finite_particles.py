r"""How far finitely many neurons, trained in finite steps, are from the flow of measures."""

import math

import jax.numpy as jnp
from jax.typing import ArrayLike

from deeplimits.numerics.arguments import NOT_NEGATIVE, Allowed, argument, at_least, number
from deeplimits.numerics.checks import valid
from deeplimits.numerics.shapes import Floats


def chaos_bound(
    times: ArrayLike,
    particles: ArrayLike,
    *,
    lipschitz: ArrayLike,
    spread: ArrayLike,
    step: ArrayLike = 0.0,
    speed: ArrayLike = 0.0,
    gradient_noise: ArrayLike = 0.0,
    dimension: int = 1,
    inverse_temperature: ArrayLike = math.inf,
) -> Floats:
    r"""A bound on √E|θ_i − θ̄_i|² between p interacting particles and independent copies of the mean-field flow.

    Setting     dθ_i = b(θ_i, ρ_p)dτ + √(2/β) dB_i in R^D (D = `dimension`), ρ_p their empirical law, θ_i(0)
                independent; θ̄_i the same with the flow ρ_τ in place of ρ_p, from the same start with the same noise;
                b(θ, ρ) = −∇V(θ) − ∫∇U(θ, θ')dρ(θ') with |b(θ, ρ) − b(θ', ρ')| ≤ L₁|θ − θ'| + L₂W₂(ρ, ρ'),
                L₁ + L₂ = L (`lipschitz`); |∇U(θ, θ') − ∫∇U(θ, ·)dρ| ≤ s (`spread`), in mean square over θ' if it does
                not depend on θ. In steps of size ε (`step`), |b| ≤ B (`speed`), with gradients of independent errors of
                mean square ≤ G² (`gradient_noise` = G)
    Result      √E|θ_i − θ̄_i|² ≤ [s/√p + L(Bε + √(2Dε/β))](e^{Lτ} − 1)/L + G√(ετ) e^{Lτ}: the rates p^(−1/2) and √ε
                of the propagation of chaos, with constants, by Grönwall's inequality in mean square
    Validity    every p, ε, τ; exponentially pessimistic at late times. A network without 1/p in its step has ε = γ/p
    References  mei2018

    >>> [round(float(chaos_bound(1.0, p, lipschitz=1.0, spread=1.0)), 6) for p in (100, 400)]
    [0.171828, 0.085914]
    """
    tau = argument("times", times, NOT_NEGATIVE)
    p = argument("particles", particles, at_least(1))
    rate = number("lipschitz", lipschitz, NOT_NEGATIVE)
    s = number("spread", spread, NOT_NEGATIVE)
    epsilon, fastest = number("step", step, NOT_NEGATIVE), number("speed", speed, NOT_NEGATIVE)
    error = number("gradient_noise", gradient_noise, NOT_NEGATIVE)
    d = number("dimension", dimension, at_least(1))
    beta = argument("inverse_temperature", inverse_temperature, Allowed(lambda b: b > 0, "positive, or infinite"))
    temperature = 1 / beta
    source = s / jnp.sqrt(p) + rate * (fastest * epsilon + jnp.sqrt(2 * d * epsilon * temperature))
    x = rate * tau
    # (e^x − 1)/x is 1 where nothing amplifies
    growth = jnp.where(x > 0, jnp.expm1(x) / jnp.where(x > 0, x, 1.0), 1.0)
    bound = source * tau * growth + error * jnp.sqrt(epsilon * tau) * jnp.exp(x)
    return valid(
        bound,
        jnp.isfinite(bound),
        "the bound exceeds what double precision holds, e to the lipschitz constant times the time; take earlier times",
    )
