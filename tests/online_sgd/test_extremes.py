"""The room of online SGD over extreme arguments."""

import jax.numpy as jnp
import numpy as np

import extremes
from deeplimits.theory import online_sgd
from deeplimits.theory.online_sgd import (
    EffectiveDynamics,
    XorState,
    classical,
    deviations,
    equator,
    exit_times,
    landscapes,
    recovery,
    spherical_ode,
    spiked_tensor,
    xor,
    xor_sliding,
)
from extremes import COUNT, NUMBER, POSITIVE, SHARE, TIMES, VECTOR, Case, Kind, one_of

LANDSCAPE = one_of(landscapes.online_pca(1.0), landscapes.tensor_pca(2.0, 3), landscapes.binary_mixture(0.5))
ORDER = one_of(2, 3, extreme=[1, 0, -1, 12, 2.5])
LINK = Kind(["tanh", "square"], ["relu", "sign", "step", "no such link", lambda z: 0 * z, lambda z: jnp.exp(z**2)])
DECAY = one_of(EffectiveDynamics(lambda u: u, jnp.zeros_like))
PAIR = one_of(
    np.array([0.3, 0.7]),
    extreme=[np.zeros(2), np.array([0.3, -1.0]), np.array([1e-12, 1e12]), np.array([np.nan, 1.0]), np.ones(3), 1.0],
)
STATE = one_of(
    XorState(jnp.array([0.3, -0.2]), jnp.array([0.2, 0.1]), jnp.array([0.1, -0.3]), 0.5 * jnp.eye(2)),
    extreme=[
        XorState(jnp.zeros(2), jnp.zeros(2), jnp.zeros(2), jnp.zeros((2, 2))),
        XorState(jnp.ones(2), jnp.ones(2), jnp.ones(2), -jnp.eye(2)),
        XorState(jnp.ones(2), jnp.ones(3), jnp.ones(2), jnp.eye(2)),
        XorState(jnp.array([jnp.nan, 1.0]), jnp.ones(2), jnp.ones(2), jnp.eye(2)),
    ],
)
SHORT = one_of(np.array([0.5, 2.0]), extreme=[np.zeros(0), np.array([2.0, 1.0]), np.array([-1.0]), np.array([np.nan])])
RIDGE = one_of(0.05, extreme=[0.0, 1e-12, 0.125, 0.2, 1e12, -1.0, np.nan])


def at_points(landscape):
    m = jnp.array([0.0, 0.4, 1.0])
    return [part(m) for part in landscape[:4]], landscape.drift_constant


TABLE = {
    "binary_mixture": Case((NUMBER,), look=at_points),
    "check_regularity": Case(
        (LANDSCAPE,), keywords={"points": COUNT, "edge": SHARE}, look=lambda found: found[:2], examples=5
    ),
    "classify_dynamics": Case(
        (DECAY, one_of([[0.3, 0.7]], extreme=[[], [[]], [[np.nan, 1.0]], [1.0], [[0.0]], [[1e12]], [[1e-12]]])),
        keywords={"tolerance": POSITIVE},
        look=lambda found: found[:3],
        low=0,
    ),
    "classify_xor_rest": Case((STATE, RIDGE), look=lambda found: found.loss),
    "correlation": Case((LANDSCAPE, NUMBER, POSITIVE, TIMES), low=-1, high=1, examples=12),
    "critical_ratio": Case((COUNT, ORDER), low=0, infinite=True),
    "critical_signal": Case((ORDER, POSITIVE), low=0),
    "critical_step": Case((LANDSCAPE,), low=0),
    "descent_time": Case((LANDSCAPE, SHARE), low=0),
    "equator_density": Case((NUMBER, COUNT), low=0, infinite=True),
    "equator_exceedance": Case((NUMBER, COUNT), low=0, high=1),
    "information_exponent": Case(
        (LINK,), keywords={"student": LINK}, look=lambda found: found.drift_constant, examples=12
    ),
    "online_pca": Case((POSITIVE,), look=at_points),
    "passage_probability": Case(
        (one_of(landscapes.tensor_pca(2.0, 3)), POSITIVE, NUMBER, POSITIVE, SHORT), low=0, high=1, examples=6
    ),
    "passage_time": Case((LANDSCAPE, NUMBER, NUMBER, POSITIVE), low=0),
    "pca_correlation": Case((POSITIVE, NUMBER, POSITIVE, TIMES), low=-1, high=1),
    "pca_plateau": Case((POSITIVE, POSITIVE), low=0, high=1),
    "pca_search_law": Case((POSITIVE, SHARE, POSITIVE, COUNT, NUMBER), low=0),
    "phase_retrieval_correlation": Case((NUMBER, POSITIVE, TIMES), keywords={"noise": POSITIVE}, low=-1, high=1),
    "plateau": Case((LANDSCAPE, NUMBER, POSITIVE), low=-1, high=1),
    "search_law": Case((NUMBER, NUMBER), low=0),
    "search_offset": Case((LANDSCAPE, SHARE, POSITIVE)),
    "single_index": Case((LINK, LINK, POSITIVE), look=at_points, examples=12),
    "solve_ode": Case((DECAY, VECTOR, TIMES)),
    "spiked_ballistic": Case((NUMBER, ORDER, POSITIVE, PAIR, SHORT), examples=15),
    "spiked_rest_points": Case((POSITIVE, ORDER, POSITIVE), look=lambda found: [point.overlap for point in found]),
    "tensor_pca": Case((NUMBER, ORDER), look=at_points),
    "xor_ballistic": Case((STATE, SHORT, POSITIVE, RIDGE, POSITIVE), keywords={"points": one_of(64)}, examples=6),
    "xor_component_count": Case((one_of(2, 3, extreme=[0, -1, 2.5]),), low=0),
    "xor_rest_point": Case((one_of(["mu+", "nu-"], extreme=[[], ["mu"], ["0", "0"], "mu+"]), RIDGE)),
    "xor_success_probability": Case((COUNT,), low=0, high=1),
}
ELSEWHERE = {
    "fixed_points": "takes a dynamics and guesses; test_online_sgd.py",
    "fluctuations": "takes two functions; test_online_sgd.py",
    "gradient_flow_with_fluctuations": "takes two functions; test_online_sgd.py",
    "spiked_dynamics": "gives functions, which spiked_ballistic solves",
    "stationary_covariance": "takes two functions; test_online_sgd.py",
    "zoom": "takes and gives functions; test_online_sgd.py",
}
FOUND = {
    "half_sphere_law": Case((NUMBER, COUNT), low=0),
    "half_sphere_mean": Case((COUNT,), low=0, high=1),
    "martingale_bound": Case((LANDSCAPE, POSITIVE, COUNT, POSITIVE), low=0),
    "no_recovery_bound": Case((LANDSCAPE, POSITIVE, COUNT, POSITIVE, SHARE), low=0, high=1, examples=15),
    "recovery": Case((LANDSCAPE, POSITIVE), low=-1, high=1, examples=15),
    "recovery_probability": Case(
        (one_of(landscapes.online_pca(1.0), landscapes.binary_mixture(0.5)), POSITIVE, COUNT, TIMES, SHARE),
        low=0, high=1, examples=15,
    ),
    "small_step_search": Case((ORDER, POSITIVE, COUNT, POSITIVE, NUMBER), low=0, infinite=True),
    "step_window": Case((COUNT, ORDER, POSITIVE), low=0, infinite=True),
}  # fmt: skip


def coin(x, p):
    return jnp.logaddexp(p[0], -p[0]) - jnp.log(2.0) - p @ x


HAMILTONIAN = one_of(coin, lambda x, p: p @ p / 2 - p @ x)
UNLIKELY = {
    "deviation_rate": Case((POSITIVE, POSITIVE), low=0),
    "deviation_to": Case((HAMILTONIAN, NUMBER, NUMBER, POSITIVE), look=lambda found: found.rate, low=0, examples=8),
    "lagrangian": Case((HAMILTONIAN, one_of([0.3], extreme=[[1e12], [], [np.nan]]), VECTOR), examples=8),
    "path_action": Case(
        (HAMILTONIAN, one_of([[0.0], [0.2]], extreme=[[[0.0]], [[0.0], [np.nan]], [0.0, 0.2]]), SHORT), examples=8
    ),
}


WEIGHTS = one_of(np.array([0.5, 1.0]), extreme=[np.zeros(2), np.array([np.nan, 1.0]), np.ones((2, 2)), np.zeros(0)])
GRAM = one_of(0.5 * np.eye(2), extreme=[np.zeros((2, 2)), -np.eye(2), np.ones((2, 3)), np.full((2, 2), np.nan), 1e12])
BEHIND = {
    "active_types_probability": Case((COUNT, ORDER), low=0, high=1),
    "ballistic_with_fluctuations": Case((NUMBER, ORDER, POSITIVE, PAIR, SHORT), look=tuple, examples=5),
    "components_by_enumeration": Case((one_of(2, 3, extreme=[0, -1, 2.5, 9, 10**6]),), low=1),
    "escape_actions": Case((POSITIVE, ORDER, POSITIVE), low=0),
    "escape_matrix": Case((WEIGHTS, GRAM, POSITIVE, RIDGE), examples=5, keywords={"points": one_of(16)}),
    "exit_offset": Case((POSITIVE, POSITIVE, POSITIVE, POSITIVE)),
    "fourth_moment": Case((COUNT,), low=1, high=3),
    "gaussian_law": Case((NUMBER,), low=0, high=1),
    "growth_rate": Case((LANDSCAPE, POSITIVE)),
    "interpolation": Case((VECTOR, POSITIVE, TIMES)),
    "least_dimension": Case((POSITIVE, POSITIVE), low=3),
    "microscopic_variance": Case(
        (NUMBER, POSITIVE, TIMES, POSITIVE), keywords={"radius": POSITIVE}, low=0, examples=40
    ),
    "noiseless_ballistic": Case((STATE, SHORT, RIDGE), examples=3),
    "noiseless_velocity": Case((STATE, RIDGE)),
    "overlap_roots": Case((POSITIVE, ORDER, POSITIVE), low=0),
    "path_noise": Case((PAIR, ORDER, POSITIVE)),
    "pca_deviation_rate": Case((POSITIVE, SHARE, POSITIVE, POSITIVE, SHARE), low=0, examples=15),
    "pca_search_correction": Case((POSITIVE, POSITIVE)),
    "quadratic_variance": Case((POSITIVE, COUNT), low=0),
    "rest_loss": Case((RIDGE, ORDER), low=0),
    "sliding_times": Case((STATE, POSITIVE, RIDGE), low=0, infinite=True, examples=3),
    "spiked_gradient_covariance": Case((VECTOR, ORDER)),
    "spiked_loss": Case((PAIR, NUMBER, ORDER)),
    "tail_bound": Case((NUMBER,), low=0, high=2),
    "tensor_microscopic_variance": Case(
        (ORDER, POSITIVE, SHORT, POSITIVE), keywords={"radius": POSITIVE}, low=0, examples=6
    ),
    "type_mass": Case((RIDGE,), low=0),
    "velocity": Case(
        (STATE, POSITIVE, RIDGE, POSITIVE), keywords={"points": one_of(16, extreme=[0, 1, 2.5])}, examples=5
    ),
}


def test_functions_behind_the_door():
    """What limits name and files offer, on the same terms."""
    files = (classical, equator, exit_times, spherical_ode, spiked_tensor, xor, xor_sliding)
    for name, case in BEHIND.items():
        extremes.check(next(getattr(file, name) for file in reversed(files) if hasattr(file, name)), case)


def test_speed_of_the_correlation():
    extremes.check(spherical_ode.velocity, Case((LANDSCAPE, NUMBER, POSITIVE)))


test_values, test_coverage = extremes.room_tests(online_sgd, TABLE, elsewhere=ELSEWHERE)
test_recovery, test_coverage_of_recovery = extremes.room_tests(recovery, FOUND)
test_deviations, test_coverage_of_deviations = extremes.room_tests(
    deviations,
    UNLIKELY,
    elsewhere={"hamiltonian_of_data": "gives a function", "tube_exit": "many calls of what deviation_to tries"},
)
