"""Free cumulants and moments."""

import numpy as np


def cumulants_of_moments(moments: list[float]) -> list[float]:
    """Free cumulants κ_1, …, κ_n of moments m_0 = 1, m_1, …, m_n, from M(z) = 1 + Σ_k κ_k z^k M(z)^k."""
    count = len(moments) - 1
    series = np.zeros(count + 1)
    series[0] = 1.0
    powers = [series]
    for _ in range(count):
        powers.append(np.convolve(powers[-1], moments)[: count + 1])
    cumulants: list[float] = []
    for order in range(1, count + 1):
        # m_n = Σ_{k≤n} κ_k [z^{n−k}] M(z)^k
        known = sum(kappa * powers[k][order - k] for k, kappa in enumerate(cumulants, start=1))
        cumulants.append(float(moments[order] - known))
    return cumulants


def moments_of_cumulants(cumulants: list[float]) -> list[float]:
    """Moments m_0 = 1, m_1, …, m_n of free cumulants κ_1, …, κ_n: m_n = Σ_k κ_k Σ m_{i_1}…m_{i_k}, Σ i = n − k."""
    moments = [1.0]
    for order in range(1, len(cumulants) + 1):
        total = 0.0
        power = np.array([1.0])
        for k in range(1, order + 1):
            power = np.convolve(power, moments)[: order - k + 1]
            total += cumulants[k - 1] * power[order - k]
        moments.append(float(total))
    return moments
