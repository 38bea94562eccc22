r"""The largest curvature that an optimizer bears, from its own update on a quadratic.

On the loss λθ²/2 an update with memory is a linear map of its state; it is stable while no eigenvalue of the map lies
outside the unit circle. The threshold is found from the map itself, by bisection in λ. Adam with its second moment held
still is heavy ball in the metric of its preconditioner P = (√v̂ + ε), so its threshold speaks of P^{-1/2} H P^{-1/2}.
"""

from collections.abc import Callable

import numpy as np

from deeplimits.numerics import arguments

OPTIMIZERS = ("gd", "momentum", "nesterov", "adam")


def update_matrix(
    optimizer: str, step: float, curvature: float, *, momentum: float = 0.9, ridge: float = 0.0
) -> np.ndarray:
    """One step on λθ²/2 as a matrix on (θ, velocity); `ridge` decays the weights beside the gradient (AdamW).

    'momentum' and 'nesterov' are as in PyTorch, v ← βv + g and θ ← θ − ηv, or θ ← θ − η(g + βv); 'adam' has
    m ← βm + (1 − β)g and θ ← θ − ηm in the metric of its preconditioner.

    >>> update_matrix("gd", 0.1, 20.0).tolist()
    [[-1.0]]
    """
    eta, lam, beta, keep = step, curvature, momentum, 1 - step * ridge
    if optimizer == "gd":
        return np.array([[keep - eta * lam]])
    if optimizer == "momentum":
        return np.array([[keep - eta * lam, -eta * beta], [lam, beta]])
    if optimizer == "nesterov":
        return np.array([[keep - eta * (1 + beta) * lam, -eta * beta**2], [lam, beta]])
    return np.array([[keep - eta * (1 - beta) * lam, -eta * beta], [(1 - beta) * lam, beta]])


def stable_curvature(optimizer: str, step: float, *, momentum: float = 0.9, ridge: float = 0.0) -> float:
    """The largest λ at which the optimizer does not diverge on λθ²/2.

    For Adam it is the largest eigenvalue of the preconditioned Hessian that it bears, `momentum` being its β₁.

    >>> round(stable_curvature("gd", 0.1), 9), round(stable_curvature("momentum", 0.1), 9)
    (20.0, 38.0)
    >>> round(stable_curvature("nesterov", 0.1), 9), round(stable_curvature("adam", 0.1), 9)
    (13.571428571, 380.0)
    """
    arguments.choice("optimizer", optimizer, OPTIMIZERS)
    arguments.real("step", step, arguments.POSITIVE)
    arguments.real("momentum", momentum, arguments.Allowed(lambda x: (x >= 0) & (x < 1), "at least 0 and below 1"))
    arguments.real("ridge", ridge, arguments.NOT_NEGATIVE)

    def radius(curvature: float) -> float:
        found = np.linalg.eigvals(update_matrix(optimizer, step, curvature, momentum=momentum, ridge=ridge))
        return float(np.abs(found).max())

    return _crossing(radius, 1 / step)


def _crossing(radius: Callable[[float], float], scale: float) -> float:
    low, high = 0.0, scale
    while radius(high) <= 1:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if radius(middle) <= 1 else (low, middle)
    return low
