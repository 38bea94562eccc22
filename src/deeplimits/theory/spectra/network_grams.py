"""Spectra of random networks: nonlinear Gram matrices, their spikes, and conjugate kernels of deep networks."""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.models.activations import ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics.arguments import POSITIVE, argument, at_least, number
from deeplimits.numerics.roots import bracketed
from deeplimits.numerics.shapes import Scalar
from deeplimits.theory.gaussian import moments as gaussian_moments
from deeplimits.theory.spectra import laws, marchenko_pastur_formulas, preimages
from deeplimits.theory.spectra.companion_law import companion_law
from deeplimits.theory.spectra.deep_kernels import deep_kernel
from deeplimits.theory.spectra.spectral_measure import SpectralMeasure

LOST = 1e-6
"""The edge of the bulk and its own image may differ by this share, where transforms are still numbers."""


class GramMoments(NamedTuple):
    """Gaussian moments of a centred activation: η = Var σ(ξ), ζ = E[ξσ(ξ)]², θ₂ = E[(ξ² − 1)σ(ξ)]."""

    eta: float
    zeta: float
    curvature: float


def gram_moments(activation: ActivationLike) -> GramMoments:
    """The three numbers that decide the spectrum, by quadrature; the activation's mean is taken off.

    >>> [round(part, 10) for part in gram_moments("tanh")[:2]]
    [0.3942944904, 0.3668791644]
    """
    found = named(activation)
    mean = gaussian_moments.mean(found)
    # The variance from the differences: E σ² − (E σ)² would cancel.
    eta = gaussian_moments.along(lambda u, z: (found.value(u) - mean) ** 2, found, 1.0)
    linear, curvature = (gaussian_moments.hermite_moment(found, order) for order in (1, 2))
    return GramMoments(float(eta), float(linear) ** 2, float(curvature))


def _moments(activation) -> GramMoments:
    if isinstance(activation, tuple):
        if len(activation) not in (2, 3):
            raise ParameterError(f"the activation is given by {len(activation)} moments; give (η, ζ) or (η, ζ, θ₂)")
        # The curvature decides the spikes alone, not the bulk.
        found = GramMoments(*map(float, activation), *(() if len(activation) == 3 else (float("nan"),)))
    else:
        found = gram_moments(activation)
    if not (0 <= found.zeta <= found.eta * (1 + 1e-12)) or found.eta <= 0:
        raise ParameterError(
            f"the activation has η = {found.eta:g} and ζ = {found.zeta:g}; it must be 0 ≤ ζ ≤ η and η > 0"
        )
    return found


def nonlinear_gram(
    activation: ActivationLike | tuple[float, ...],
    data_ratio: float,
    width_ratio: float,
) -> SpectralMeasure:
    """The law of the eigenvalues of (1/n)σ(WX/√p)'σ(WX/√p), the Gram matrix of random features.

    Setting     W is N×p, X is p×n, independent standard entries; the activation's mean is taken off;
                `data_ratio` = n/p, `width_ratio` = N/n; the activation by name, as a function, or by (η, ζ)
    Result      (N/n) times the sample covariance law of the population ζMP(n/p) + η − ζ at the ratio n/N: with
                g the transform of that population, z = w(N/n − 1 − w g(w)) and m(z) = (w/z) g(w)
    Validity    σ square integrable; a quartic in general, a cubic for linear σ, Marchenko-Pastur where ζ = 0
    References  pennington2017b; benigni2021

    >>> law = nonlinear_gram("tanh", 2 / 3, 2.0)
    >>> round(float(law.density(0.3)), 8), round(float(law.edges[-1, 1]), 8)
    (0.78021872, 3.64993433)
    """
    moments = _moments(activation)
    data_ratio = float(number("data_ratio", data_ratio, POSITIVE))
    width_ratio = float(number("width_ratio", width_ratio, POSITIVE))
    return laws.sample_covariance(_kernel_law(moments, data_ratio), 1 / width_ratio).affine(width_ratio)


def nonlinear_gram_companion(
    activation: ActivationLike | tuple[float, ...],
    data_ratio: float,
    width_ratio: float,
) -> SpectralMeasure:
    """The law of the eigenvalues of (1/n)σ(WX/√p)σ(WX/√p)', N×N: the companion of `nonlinear_gram`.

    Setting     as in `nonlinear_gram`; r = N/n = `width_ratio`
    Result      μ_N = μ_n/r + (1 − 1/r)δ₀: the eigenvalues other than zero are the same; its transform is −1/(rα) with
                the preimage α, without a difference. With φ = p/n, ψ = p/N, t = 1/(zψ), P_φ = 1 + (P − 1)φ and
                P_ψ = 1 + (P − 1)ψ, G_N = (ψ/z)P + (1 − ψ)/z where
                (P − 1 − (η − ζ)tP_φP_ψ)(1 − ζtP_φP_ψ) = ζtP_φP_ψ
    Validity    as for `nonlinear_gram`
    References  pennington2017b; benigni2021

    >>> law = nonlinear_gram_companion("tanh", 2 / 3, 2.0)
    >>> float(law.atoms.weights[0]), round(float(law.density(0.3)), 8)
    (0.5, 0.39010936)
    """
    moments = _moments(activation)
    data_ratio = float(number("data_ratio", data_ratio, POSITIVE))
    width_ratio = float(number("width_ratio", width_ratio, POSITIVE))
    law = laws.sample_covariance(_kernel_law(moments, data_ratio), 1 / width_ratio)
    return companion_law(law).affine(width_ratio)


def _kernel_law(moments: GramMoments, data_ratio: float) -> SpectralMeasure:
    """The law of ζX'X/p + (η − ζ)I."""
    if moments.zeta <= 1e-14 * moments.eta:
        return laws.from_atoms([moments.eta])
    return laws.marchenko_pastur(data_ratio).affine(moments.zeta, max(moments.eta - moments.zeta, 0.0))


class GramSpike(NamedTuple):
    """A spike of the nonlinear Gram matrix, if there is one."""

    eigenvalue: float
    """The outlier; the edge where there is none."""
    overlap_data: float
    """Squared overlap of its eigenvector in R^n with the direction of the perturbation."""
    overlap_width: float
    """The same for the left singular vector in R^N."""
    strength: float
    threshold: float
    deviation: float
    """Standard deviation of √n (λ̂ − λ) where this is the only spike; zero where there is none."""


class GramSpikes(NamedTuple):
    """What fluctuating norms of the data and of the weights make."""

    data: GramSpike
    weights: GramSpike


def nonlinear_gram_spikes(
    activation: ActivationLike | tuple[float, ...],
    data_ratio: float,
    width_ratio: float,
    *,
    kurtosis_data: float = 3.0,
    kurtosis_weights: float = 3.0,
) -> GramSpikes:
    """The two outliers that fluctuating norms of data and of weights make in the nonlinear Gram matrix.

    Setting     as in `nonlinear_gram`; kurtosis E[x⁴] of the entries of X and of W
    Result      σ(WX/√p) contains (θ₂/2)(1ψ_X' + ψ_W1'), ψ = ‖·‖²/p − 1, of singular value
                θ = (|θ₂|/2)√(N(κ − 1)/p) in units of √n; an outlier at D(λ) = 1/θ², D = λ g_n g_N, if D(edge) > 1/θ²;
                squared overlaps −g_n/(θ²D') and −g_N/(θ²D')
                n Var λ̂ → {2(n/N)(λg_n)²(−g_N' − g_N²) + 2(λg_N)²(−g_n' − g_n²) + 4(−λg_N' − g_N)/θ² + 2s/θ⁴}/D'², s = 1
                for the spike of the data and n/N for that of the weights, whose own norms fluctuate
    Validity    kurtosis ≥ 1 (Gaussian 3, Rademacher 1: no spike); the first spike is that of the data. Two spikes of
                equal strength repel by O(n^(−1/2)), and the deviation is not that of either
    References  benigni2022; benaych2012

    >>> spike, _ = nonlinear_gram_spikes((1.0, 0.0, 2**0.5), 4 / 3, 3.0)
    >>> round(spike.eigenvalue, 8), round(spike.threshold, 8)
    (8.75, 1.31607401)
    """
    moments = _moments(activation)
    if np.isnan(moments.curvature):
        raise ParameterError(
            "the activation is given by (η, ζ) alone; its spikes need (η, ζ, θ₂), θ₂ = E[(ξ² − 1)σ(ξ)]"
        )
    for name, value in (("kurtosis_data", kurtosis_data), ("kurtosis_weights", kurtosis_weights)):
        argument(name, value, at_least(1), "E x⁴ of a unit variance")
    data_ratio = float(number("data_ratio", data_ratio, POSITIVE))
    width_ratio = float(number("width_ratio", width_ratio, POSITIVE))
    law = laws.sample_covariance(_kernel_law(moments, data_ratio), 1 / width_ratio)
    edge = law.bulks[-1, 1] * width_ratio

    def transforms(alpha):
        """λ, D(λ), g_n and g_N with their slopes at a real preimage α beyond the last one of the bulk: λ = z(w)."""
        first, second = (float(part[0]) for part in preimages.first_and_second(law.population, np.array([alpha])))
        # z = w(r − 1 − w g(w)) = w(r + ∫ t/(w − t))
        place = alpha * (width_ratio + first)
        found = law._transform(np.array([alpha]), np.array([place / width_ratio]))
        value, slope = (float(part[0]) for part in found)
        of_data, data_slope = -value / width_ratio, -slope / width_ratio**2
        # g_N = (g_n − 1/λ)n/N + 1/λ is the companion transform −1/w, without that difference; at an edge dλ/dw = 0.
        of_width = 1 / (alpha * width_ratio)
        width_slope = -1 / (alpha**2 * width_ratio * max(width_ratio - second, 2.0**-52 * width_ratio))
        product = of_data * of_width + place * (data_slope * of_width + of_data * width_slope)
        return place, place * of_data * of_width, of_data, of_width, product, data_slope, width_slope

    last = float(law.ends[-1, 1])
    place, at_edge, of_data, of_width, *_ = transforms(last)
    # At ratios many orders of magnitude apart the transforms are differences of nearly equal numbers.
    if not (min(of_data, of_width, at_edge) > 0 and abs(place / edge - 1) < LOST):
        raise OutsideValidity(
            f"data_ratio = {data_ratio:g} and width_ratio = {width_ratio:g} leave no digits of the transforms at the "
            "edge of the bulk; take ratios nearer to one"
        )

    def one(kurtosis, share):
        strength = abs(moments.curvature) / 2 * np.sqrt(width_ratio * data_ratio * (kurtosis - 1))
        threshold = float(at_edge**-0.5)
        if strength <= threshold:
            return GramSpike(float(edge), 0.0, 0.0, float(strength), threshold, 0.0)
        far = last
        while transforms(far)[1] > strength**-2:
            far *= 2
        near = last
        for _ in range(200):
            # D falls along the curve.
            alpha = (near + far) / 2
            near, far = (alpha, far) if transforms(alpha)[1] > strength**-2 else (near, alpha)
        alpha = (near + far) / 2
        place, _, of_data, of_width, slope, data_slope, width_slope = transforms(alpha)
        scale = -1 / (strength**2 * slope)
        # λ a b = (c − 1/θ)² with a = u'(λ − MM')^{-1}u, b likewise, c = u'(λ − MM')^{-1}Mv, u and v uniform directions
        variance = (
            2 / width_ratio * (place * of_data) ** 2 * (-width_slope - of_width**2)
            + 2 * (place * of_width) ** 2 * (-data_slope - of_data**2)
            + 4 / strength**2 * (-place * width_slope - of_width)
            + 2 * share / strength**4
        ) / slope**2
        return GramSpike(
            place,
            float(of_data * scale),
            float(of_width * scale),
            float(strength),
            threshold,
            float(np.sqrt(variance)),
        )

    return GramSpikes(one(kurtosis_data, 1.0), one(kurtosis_weights, 1 / width_ratio))


def conjugate_kernel_spectrum(
    activation: ActivationLike | float, data_ratio: float, width_ratios: Sequence[float]
) -> SpectralMeasure:
    """The law of the conjugate kernel X_L'X_L of a deep network whose widths are proportional to the samples.

    Setting     X₀ is d₀×n with independent entries of variance 1/d₀, X_l = σ(W_lX_{l−1})/√d_l, σ normalized to
                E σ(ξ) = 0, E σ(ξ)² = 1 (any activation is normalized here); `data_ratio` = n/d₀,
                `width_ratios` = n/d_l; instead of the activation its b² = E[ξσ(ξ)]² may be given
    Result      μ_l = MP(n/d_l) ⊠ law of b²λ + 1 − b², λ ~ μ_{l−1}; μ₀ = MP(n/d₀)
    Validity    widths of the order of n; b² ∈ [0, 1]
    References  fan2020

    >>> law = conjugate_kernel_spectrum("tanh", 1 / 1.5, [0.5, 1 / 1.5])
    >>> complex(law.stieltjes(1 + 0.5j)).real.__round__(10)
    -0.3817559408
    """
    if isinstance(activation, float | int):
        share = float(activation)
        if not 0 <= share <= 1:
            raise OutsideValidity(f"b² = {share:g} is not allowed; a normalized activation has it between 0 and 1")
    else:
        moments = gram_moments(activation)
        share = moments.zeta / moments.eta
    data_ratio = float(number("data_ratio", data_ratio, POSITIVE))
    given = np.atleast_1d(np.asarray(argument("width_ratios", width_ratios, POSITIVE)))
    ratios = tuple(float(ratio) for ratio in given)
    if not ratios:
        return laws.marchenko_pastur(data_ratio)
    if share <= 1e-14:
        # Nothing but the last layer is left of the network.
        return laws.marchenko_pastur(ratios[-1])
    if len(ratios) == 1:
        return laws.sample_covariance(laws.marchenko_pastur(data_ratio).affine(share, 1 - share), ratios[0])
    return deep_kernel(min(share, 1.0), data_ratio, ratios)


def conjugate_kernel_transform(
    y: Float[Array, " points"], share: Scalar, data_ratio: Scalar, width_ratios: Sequence[Array]
) -> Float[Array, " points"]:
    """∫ y/(y + λ) dμ_L(λ) for y > 0, traceable and differentiable: all layers are one explicit map of a point z₀ < 0.

    α = b²z_{l−1} + 1 − b² and m_H = m_{l−1}/b² give z_l = α(1 − c_l − c_l α m_H), m_l = m_H/(1 − c_l − c_l α m_H); the
    z₀ with z_L = −y is found in log(−z₀).
    """

    parameters = (y, share, data_ratio, *width_ratios)
    sentence = "the layers of the conjugate kernel could not be inverted"
    log_inner = bracketed(_missed, jnp.full(y.shape, -40.0), 60.0, *parameters, sentence=sentence)
    return y * _through(log_inner, *parameters[1:])[1]


def _through(log_inner, share, data_ratio, *ratios):
    """z_L and m_L for z₀ = −exp(log_inner), and whether every layer's z is negative and its transform positive."""
    z, inside = -jnp.exp(log_inner), jnp.ones(jnp.shape(log_inner), bool)
    m = jnp.real(marchenko_pastur_formulas.marchenko_pastur_stieltjes(z, data_ratio))
    for ratio in ratios:
        alpha = share * z + 1 - share
        hidden = m / share
        stretch = 1 - ratio - ratio * alpha * hidden
        z, m = alpha * stretch, hidden / stretch
        inside = inside & (z < 0) & (m > 0)
    return z, m, inside


def _missed(log_inner, y, *parameters):
    z, _, inside = _through(log_inner, *parameters)
    # Too small a |z₀| leaves the half line on which every layer's transform is positive; two layers may leave it and
    # come back with the right sign.
    return jnp.where(inside, z + y, jnp.inf)
