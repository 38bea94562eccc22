"""The rooms of two-layer networks over extreme arguments."""

import numpy as np

import extremes
from deeplimits.models.committees import Overlaps, Task
from deeplimits.theory import two_layer
from deeplimits.theory.two_layer import mean_field, overlaps
from deeplimits.theory.two_layer.mean_field import Gaussian, Particles, Reduced, SingleIndex
from deeplimits.theory.two_layer.overlaps import equations, escape, fluctuations
from extremes import ACTIVATION, COUNT, NUMBER, POSITIVE, SHARE, TIMES, VECTOR, Case, one_of

ONE, TWO = [[1.0]], np.eye(2)
TASK = one_of(
    Task(ONE, 0.5, 0.1),
    extreme=[
        *(Task(ONE, step) for step in (0.0, 1e-12, 3.9, 1e12)),
        Task(ONE, 0.5, 1e12), Task([[1e-12]]), Task([[1e12]]), Task([[0.0]]), Task(TWO), Task(ONE, batch=10**6),
        Task(ONE, teacher_output=[0.0]), Task(ONE, teacher_output=[np.nan]), Task([[np.nan]]),
    ],
)  # fmt: skip
STATE = one_of(
    Overlaps([[0.3]], [[0.8]]),
    extreme=[
        Overlaps([[0.0]], [[0.0]]), Overlaps([[1.0]], [[1.0]]), Overlaps([[2.0]], [[0.5]]), Overlaps([[np.nan]], ONE),
        Overlaps([[0.0]], [[1e12]]), Overlaps([[0.0]], [[1e-12]]), Overlaps([[0.3]], ONE, [1e12]),
        Overlaps([[0.3]], ONE, [np.nan]), Overlaps(np.zeros((2, 1)), TWO),
    ],
)  # fmt: skip
SHORT = one_of(np.array([0.5, 2.0]), extreme=[np.zeros(0), np.array([2.0, 1.0]), np.array([-1.0]), np.array([np.nan])])
MATRIX = one_of([[1.0, 0.3], [0.3, 0.8]], extreme=[np.zeros((2, 2)), -TWO, [[1.0, 2.0], [2.0, 1.0]], [1.0], 1e12 * TWO])
INDEX = one_of(0, 1, extreme=[2, -1, 0.5])
PARTICLES = one_of(
    Particles(TWO, [1.0, -0.5]),
    extreme=[
        Particles(np.zeros((2, 2))), Particles(1e12 * TWO), Particles(1e-12 * TWO), Particles(TWO, [np.nan, 1.0]),
        Particles(TWO, weights=[0.0, 0.0]), Particles(np.ones((2, 3))),
    ],
)  # fmt: skip
INDEXED = one_of(
    SingleIndex([0.5, 1.0], [0.7, 1.0], 0.05),
    extreme=[SingleIndex([0.0], [0.0], 1.0), SingleIndex([1e12], [1.0], 1e-12), SingleIndex([0.5, 1.0], [0.7, 0.0], 5)],
)
GRID = np.linspace(-3, 3, 61)


def problem(ridge, inverse_temperature, scale, grid=GRID):
    external = np.where(grid == 0, 0.0, -scale * np.where(grid == 0, 1.0, grid))
    return mean_field.interaction(grid, external, np.outer(grid, grid), 1.0, ridge, inverse_temperature)


def numbers(problem):
    return problem.potential(np.ones(61) / 6)


GAUSSIAN = one_of(Gaussian(0.0, 1.0), extreme=[Gaussian(np.nan, 1.0), Gaussian(0.0, -1)])
MODERATE = one_of(1.0, extreme=[0.0, 1e-12, 1e12, -1.0, np.nan])
OVERLAPS = {
    "batch_terms": Case((TASK, STATE, COUNT), look=tuple),
    "concentration": Case((TASK, STATE, SHORT, COUNT), low=0, examples=6, keywords={"points": one_of(16)}),
    "critical_learning_rate": Case((TASK,), low=0, examples=10),
    "drift": Case((TASK, STATE), look=tuple),
    "escape_time": Case(
        (POSITIVE, POSITIVE, POSITIVE, SHARE), keywords={"alignment": POSITIVE}, look=tuple, examples=12
    ),
    "mean_increment": Case((TASK, STATE, COUNT), look=lambda found: (found.m, found.q)),
    "mediocrity": Case(
        (POSITIVE,), keywords={"noise_variance": POSITIVE, "teacher": POSITIVE}, look=tuple, infinite=True
    ),
    "noise_floor": Case((TASK,), low=0, examples=10),
    "plateau_length": Case((COUNT, SHARE), low=0),
    "risk_near_teacher": Case(
        (
            one_of(Task(ONE), extreme=[Task(TWO), Task(ONE, activation="relu"), Task([[np.nan]]), Task([[0.0]])]),
            one_of([[1e-20]], extreme=[[[0.0]], [[1e-300]], [[-1.0]], [[1e12]], [[np.nan]], TWO, [1.0]]),
            one_of([[1e-11]], extreme=[[[0.0]], [[1.0]], [[np.nan]], TWO]),
        ),
        low=0,
        examples=15,
    ),
    "regime": Case((POSITIVE, NUMBER), keywords={"boundary": one_of("norm", extreme=["none"])}),
    "risk": Case((TASK, STATE), low=0),
    "squared_gradient": Case((TASK, STATE)),
    "stationary_covariance": Case((TASK, STATE), look=lambda found: found.covariance, examples=8),
    "symmetric_plateau": Case((COUNT,), look=lambda found: (found.risk, found.escape_rate), low=0),
    "trajectory": Case((TASK, STATE, SHORT), look=lambda found: (found.q, found.risk), examples=12),
    "variance_flow": Case((TASK, STATE, SHORT), examples=8),
    "velocity": Case((TASK, STATE), look=lambda found: (found.m, found.q)),
}
FIELD = {
    "chaos_bound": Case(
        (TIMES, COUNT),
        keywords={"lipschitz": POSITIVE, "spread": POSITIVE, "step": POSITIVE, "speed": POSITIVE,
                  "inverse_temperature": POSITIVE},
        low=0, examples=40,
    ),
    "convergence_conditions": Case((PARTICLES, ACTIVATION), look=lambda found: found.largest_gap, low=0),
    "density_flow": Case(
        (one_of(problem(0.5, 2.0, 1.0), extreme=[problem(1e-12, 1.0, 0.0), problem(1e6, 1e3, 1.0)]),
         one_of(np.exp(-(GRID**2)), extreme=[np.zeros(61), -np.ones(61), np.ones(60), np.full(61, np.nan)]), SHORT),
        low=-1e-6, examples=8,
    ),
    "dissipation": Case((PARTICLES, MATRIX, one_of([1.0, 1.0], extreme=[[1.0], [np.nan, 1.0]]), ACTIVATION), low=0),
    "gauss_hermite": Case((one_of(2, 5, extreme=[0, -1, 2.5]), one_of(1, 2, extreme=[0, -1, 1.5]))),
    "graded_normal": Case((one_of(4, extreme=[0, 1, -1, 2.5]), one_of(1, 2, extreme=[0, -1]), POSITIVE)),
    "incremental_learning": Case((INDEXED, VECTOR, SHORT), look=lambda found: found[2:5], examples=8),
    "incremental_time_scales": Case((INDEXED,), low=0, infinite=True),
    "learning_time": Case((INDEXED, VECTOR, one_of(0, 1, extreme=[-1, 5, 0.5]), POSITIVE), low=0, examples=8),
    "noisy_linear_neuron": Case((TIMES, NUMBER, POSITIVE, POSITIVE, GAUSSIAN)),
    "normal_quantiles": Case((COUNT,)),
    "quadratic_neurons": Case((MATRIX, MATRIX, SHORT), look=tuple, examples=8),
    "reduced_flow": Case(
        (TASK, one_of(Reduced([[0.3]], [0.5]), extreme=[Reduced([[0.0]], [0.0]), Reduced([[1e12]], [1.0])]), SHORT),
        look=lambda found: found.risk, low=0, examples=8,
    ),
    "stationary_law": Case(
        (one_of(problem(0.5, 2.0, 1.0), extreme=[problem(1e-12, 1.0, 0.0), problem(1e6, 1e3, 1.0)]),),
        look=lambda found: found.density, low=0,
    ),
    "wasserstein_flow": Case((PARTICLES, MATRIX, one_of([1.0, 1.0], extreme=[[1.0], [np.nan, 1.0]]), SHORT),
        look=lambda found: found.risk, low=0, examples=8),
}  # fmt: skip
LAZY = {
    "expected_laziness": Case((ACTIVATION, COUNT, NUMBER, NUMBER), low=0, infinite=True, examples=15),
    "laziness_of_identical_neurons": Case(
        (ACTIVATION, POSITIVE, COUNT, NUMBER, NUMBER, NUMBER, NUMBER), low=0, infinite=True
    ),
    "output_scaling": Case(
        (ACTIVATION, POSITIVE, COUNT), keywords={"squared_norm": POSITIVE, "output_second_moment": POSITIVE}, low=0
    ),
}


def test_functions_behind_the_door():
    """What limits and files use, on the same terms."""
    extremes.check(escape.discriminant, Case((POSITIVE,), keywords={"noise_variance": POSITIVE, "teacher": POSITIVE}))
    extremes.check(equations.squared_gradient_at, Case((TASK, STATE, COUNT), low=0))
    extremes.check(fluctuations.step_covariance, Case((TASK, STATE), examples=5))


def test_problems_of_noisy_flows():
    extremes.check(problem, Case((MODERATE, MODERATE, NUMBER), look=numbers))


def test_integrals():
    def second(activation, c, i, j):
        found = overlaps.activation_integrals(activation)
        return found.i2(c, i, j), found.j2(c, i, j)

    extremes.check(second, Case((ACTIVATION, MATRIX, INDEX, INDEX)))


_EVENTS = "waits for an event; test_overlap_equations.py"
test_overlaps, test_coverage_of_overlaps = extremes.room_tests(
    overlaps, OVERLAPS,
    elsewhere={
        "activation_integrals": "gives functions, tried above",
        "covariance_flow": "what concentration calls", "fixed_point": "what stationary_covariance calls",
        "first_time": _EVENTS, "plateau_exit": _EVENTS, "specialization_time": _EVENTS,
        "from_convention": "takes what to_convention gives; test_overlap_equations.py",
        "to_convention": "takes the name of a convention; test_overlap_equations.py",
    },
)  # fmt: skip
test_fields, test_coverage_of_fields = extremes.room_tests(mean_field, FIELD, elsewhere={"interaction": "tried above"})
test_laziness, test_coverage_of_laziness = extremes.room_tests(two_layer, LAZY)
