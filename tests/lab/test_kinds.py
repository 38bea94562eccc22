"""Each prediction kind on made-up measurements: true statements pass, false ones do not.

What every kind must do is tested on the example that it brings along; variants of some kinds follow.
"""

import json

import jax.numpy as jnp
import numpy as np
import pytest

from deeplimits.errors import ParameterError
from deeplimits.predictions import (
    KINDS,
    Bound,
    Curve,
    Exponent,
    Finding,
    Identity,
    Picture,
    Probability,
    Spectrum,
    Trial,
    Value,
)
from deeplimits.predictions.picture import EXCLUDED, SIMULATION, THEORY
from deeplimits.render import with_matplotlib
from planting import planted

SIZES = (50, 100, 200)


def trials_of(stated, measure, count=400, seed=0):
    rng = np.random.default_rng(seed)
    return [Trial(n, stated(n) if callable(stated) else stated, np.asarray(measure(rng, n, count))) for n in SIZES]


def grid(points):
    return jnp.linspace(-4.0, 4.0, points)


def normal_systems(samples=40_000):
    return [(n, np.random.default_rng(n).standard_normal((samples, 8))) for n in (20, 40, 80)]


def drawn_trials_of(stated, measured):
    """Trials of a limit that speaks of the drawn system: here a row of eight normal numbers."""
    return [
        stated(jnp.asarray(systems)).trial(n, np.asarray(measured(systems, n)), drawn=True)
        for n, systems in normal_systems()
    ]


VARIANTS = {
    "Probability, asymptotic": lambda: trials_of(
        Probability(jnp.asarray(0.9), label="p", rate=1.0), lambda rng, n, m: rng.random(50 * m) < 0.9 - 1 / n
    ),
    "Bound from below": lambda: trials_of(
        Bound(jnp.asarray(1.0), label="b", side="lower"), lambda rng, n, m: 1 / rng.random(m) ** 0.01
    ),
    "Bound with probability": lambda: trials_of(
        Bound(jnp.asarray(1.6449), label="b", failure=0.05), lambda rng, n, m: rng.standard_normal(20 * m)
    ),
    "Bound on a curve": lambda: trials_of(
        Bound(jnp.ones(3), label="b", x=jnp.arange(3.0), axis="x"), lambda rng, n, m: rng.random((m, 3)) ** 0.01
    ),
    "Exponent inside": lambda: trials_of(
        Exponent(jnp.asarray(1.5), label="e", x=jnp.geomspace(1.0, 100.0, 6), axis="t", rate=1.0),
        lambda rng, n, m: np.geomspace(1, 100, 6) ** (1.5 + 1 / n) * np.exp(0.1 * rng.standard_normal((m, 6))),
    ),
    "Value of each draw": lambda: drawn_trials_of(
        lambda systems: Value(jnp.exp(systems[:, 0]), label="v", rate=1.0),
        lambda systems, n: np.exp(systems[:, 0]) * (1 + 1 / n + 0.05 * systems[:, 1]),
    ),
    "Value of each draw, by differences": lambda: drawn_trials_of(
        lambda systems: Value(systems[:, 0] + 5.0, label="v", per_draw="difference"),
        lambda systems, n: systems[:, 0] + 5 + 0.1 * systems[:, 1],
    ),
    "Curve of each draw": lambda: drawn_trials_of(
        lambda systems: Curve(
            jnp.tile(jnp.arange(4.0), (len(systems), 1)), jnp.exp(systems[:, :4]), axis="x", label="c", rate=1.0
        ),
        lambda systems, n: np.exp(systems[:, :4]) * (1 + 1 / n + 0.05 * systems[:, 4:]),
    ),
    "Bound of each draw": lambda: drawn_trials_of(
        lambda systems: Bound(jnp.exp(systems[:, 0]), label="b"),
        lambda systems, n: np.exp(systems[:, 0] - 0.01 * systems[:, 1] ** 2),
    ),
    "Exponent of a distance": lambda: [
        Exponent(-0.5, label="e", centre=jnp.arange(3.0)).trial(n, np.arange(3.0) + n**-0.5 * draws[:, :3])
        for n, draws in normal_systems()
    ],
    "Exponent of a distance from each draw": lambda: drawn_trials_of(
        lambda systems: Exponent(np.full(len(systems), -1.0), label="e", centre=systems[:, :2], norm="l2"),
        lambda systems, n: systems[:, :2] + systems[:, 2:4] / n,
    ),
    "Value of a variance": lambda: [
        Value(4.0, label="v", about=jnp.asarray(3.0), power=1.0, rate=1.0).trial(
            n, 3 + 2 * np.sqrt((1 + 1 / n) / n) * np.random.default_rng(n).standard_normal(200_000)
        )
        for n in (20, 40, 80)
    ],
}


def trials_of_case(case):
    return KINDS[case].example(np.random.default_rng(0)) if case in KINDS else VARIANTS[case]()


CASES = [*KINDS, *VARIANTS]


@pytest.mark.parametrize("case", CASES)
def test_true_statements_agree_and_false_ones_do_not(case):
    trials = trials_of_case(case)
    kind = trials[-1].stated
    finding = kind.judge(trials)
    assert finding.agrees, finding.verdict
    assert finding.verdict.startswith("agrees")
    for factor in (1.05, 1 / 1.05):
        wrong = planted(trials, factor)
        finding = wrong[-1].stated.judge(wrong)
        assert finding.outcome == "disagrees", (factor, finding.verdict)
        assert finding.verdict.startswith("disagrees")


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_keeps_the_contract(name):
    trials = KINDS[name].example(np.random.default_rng(1))
    stated = trials[-1].stated
    assert type(stated) is KINDS[name]
    assert stated.kind == name
    assert stated.label
    assert stated.summary()
    assert all((KINDS[name].returns, KINDS[name].compared, KINDS[name].drawn))
    assert isinstance(stated.wrong_by(1.5), KINDS[name])
    arrays = stated.arrays()
    assert "" in arrays
    for dims, values in arrays.values():
        assert np.ndim(values) == len(dims)
    json.dumps(stated.to_json(), allow_nan=False)
    finding = stated.judge(trials)
    assert isinstance(finding, Finding)
    assert finding.noticed is None or finding.noticed < 0.2
    found = json.loads(json.dumps(finding.to_json(), allow_nan=False))
    assert (found["kind"], found["outcome"]) == (name, "agrees")
    assert found["details"]["sizes"] == [trial.size for trial in trials]


@pytest.mark.parametrize("case", CASES)
def test_pictures_are_data_that_can_be_drawn(case):
    from matplotlib.figure import Figure

    trials = trials_of_case(case)
    for shown in (trials, ()):
        if trials[-1].stated.kind == "Identity" and not shown:
            continue  # what is stated of one system; see below
        picture = trials[-1].stated.picture(shown)
        described = json.loads(json.dumps(picture.to_json(), allow_nan=False))
        assert Picture.from_json(described) == picture
        roles = {mark.role for mark in picture.marks}
        assert roles <= {THEORY, SIMULATION, EXCLUDED}
        assert THEORY in roles
        assert (SIMULATION in roles) == bool(shown)
        assert any(mark.label for mark in picture.marks)
        if shown:
            assert picture.x.label
            assert picture.y.label
        panel = Figure().subplots()
        with_matplotlib.draw(picture, panel)
        assert panel.has_data() or panel.texts  # a number alone is said


@pytest.mark.parametrize(
    ("shape", "mark"), [((), "number"), ((5,), "points"), ((3, 4), "field"), ((2, 3, 4), "points")]
)
def test_an_identity_alone_shows_the_numbers_it_states(shape, mark):
    stated = Identity(np.arange(1.0, 1 + np.prod(shape)).reshape(shape), label="i", tolerance=1e-12, reason="rounding")
    picture = stated.picture()
    assert [one.name for one in picture.marks] == [mark]
    with_matplotlib.figure("title", [], {"stated": picture})


@pytest.mark.parametrize("shape", [(), (5,), (3, 4)])
def test_an_identity_lies_on_its_diagonal(shape):
    rng = np.random.default_rng(0)
    systems = rng.standard_normal((6, *shape))
    stated = Identity(systems, label="i", tolerance=1e-12, reason="rounding").trial(7, systems + 0.5, drawn=True)
    line, found = stated.stated.against([stated]).marks
    assert line.x == line.y
    assert (line.role, found.role) == (THEORY, SIMULATION)
    assert np.asarray(found.y) - np.asarray(found.x) == pytest.approx(0.5)
    assert line.x[0] < min(found.x) <= max(found.x) < line.x[1]
    assert set(found.x) <= set(systems.ravel().tolist())
    # Before anything is simulated the numbers that are stated stand there, of one system.
    alone = Identity(np.full(shape, 2.0), label="i", tolerance=1e-12, reason="rounding").against()
    assert [mark.role for mark in alone.marks] == [THEORY, THEORY]
    assert alone.marks[0].x[0] < 2.0 < alone.marks[0].x[1]


def wigner(rng, n, spike=0.0):
    noise = rng.standard_normal((n, n))
    matrix = (noise + noise.T) / np.sqrt(2 * n)
    matrix[0, 0] += spike
    return np.linalg.eigvalsh(matrix)


def semicircle(**rest):
    x = -2 * jnp.cos(jnp.arange(0.5, 200) * (jnp.pi / 200))
    density = jnp.sqrt(4 - x**2) / (2 * jnp.pi)
    cdf = 0.5 + x * density / 2 + jnp.arcsin(x / 2) / jnp.pi
    return Spectrum(x, density, cdf, jnp.array([-2.0, 2.0]), **rest)


@pytest.fixture(scope="module")
def wigner_spectra():
    rng = np.random.default_rng(0)
    return {n: np.stack([wigner(rng, n) for _ in range(150)]) for n in (40, 80, 160)}


def test_spectrum(wigner_spectra):
    trials = [Trial(n, semicircle(), eigenvalues) for n, eigenvalues in wigner_spectra.items()]
    finding = trials[-1].stated.judge(trials)
    assert finding.agrees, finding.verdict
    assert finding.report.record.kolmogorov_distances[-1] < 4 / 160
    wrong = planted(trials, 1.02)
    assert not wrong[-1].stated.judge(wrong).agrees


def test_an_outlier_that_is_not_predicted_is_noticed():
    rng = np.random.default_rng(1)
    spectra = {n: np.stack([wigner(rng, n, spike=2.0) for _ in range(150)]) for n in (40, 80, 160)}
    unaware = [Trial(n, semicircle(), eigenvalues) for n, eigenvalues in spectra.items()]
    assert not unaware[-1].stated.judge(unaware).agrees
    # A rank-one addition of size 2 to a Wigner matrix sends an eigenvalue to 2 + 1/2.
    aware = [Trial(n, semicircle(outliers=jnp.array([2.5])), eigenvalues) for n, eigenvalues in spectra.items()]
    assert aware[-1].stated.judge(aware).agrees
    wrong = [Trial(n, semicircle(outliers=jnp.array([2.6])), eigenvalues) for n, eigenvalues in spectra.items()]
    assert not wrong[-1].stated.judge(wrong).agrees


def test_exponents_refuse_what_has_no_logarithm():
    trials = trials_of(Exponent(jnp.asarray(-0.5), label="e"), lambda rng, n, m: rng.standard_normal(m) - 5)
    with pytest.raises(ParameterError, match="positive"):
        trials[-1].stated.judge(trials)
    with pytest.raises(ParameterError, match="distinct sizes"):
        trials[-1].stated.judge(trials[:1])


def test_bounds_know_two_sides():
    with pytest.raises(ParameterError, match="side = 'left'"):
        Bound(jnp.asarray(1.0), label="b", side="left")


def test_a_result_that_is_not_a_number_crosses_its_bound():
    trial = Trial(10, Bound(jnp.asarray(1.0), label="b"), np.array([0.5, np.nan]))
    assert not trial.stated.judge([trial]).agrees
