"""predict, simulate and compare, and what they say about bad input."""

import functools

import jax
import numpy as np
import pytest

import deeplimits as dl
from deeplimits.errors import DeeplimitsError, OutsideValidity, ParameterError
from deeplimits.lab import compare, simulate
from deeplimits.lab.predict import check_count, check_limit
from deeplimits.lab.task import Task
from deeplimits.limit import Limit, Run, real, replace
from deeplimits.predictions import Value
from deeplimits.render import bars


class Constant(Limit):
    """A number, measured with noise."""

    level: jax.Array = real(1.0, 0.0, 10.0, doc="the number")

    usual = Run(sizes=(10, 20))

    def theory(self):
        return {"level": Value(self.level, label="level", rate=1.0)}

    def at_size(self, size):
        return {"size": size}, self

    def simulate(self, key, *, size):
        return {"level": self.level + 1 / size + 0.01 * jax.random.normal(key)}


class Diverging(Constant):
    """A simulation that overflows."""

    def simulate(self, key, *, size):
        return {"level": self.level / 0.0}


class Mute(Constant):
    """A simulation that forgets a result."""

    def simulate(self, key, *, size):
        return {"other": self.level}


def test_limits_outside_the_catalogue_work_too():
    comparison = dl.compare(Constant())
    assert comparison.agrees
    assert "level agrees" in comparison.verdict
    assert comparison.to_json()["name"] == "Constant"


def test_nothing_is_simulated_twice(monkeypatch):
    """What decides nothing is made larger; the systems that were simulated serve again."""
    simulated = []

    def run(task, bar, stop):
        simulated.append((task.size, task.samples))
        return simulate.run(task, bar, stop)

    monkeypatch.setattr(compare, "run", run)
    found = dl.compare(Constant())
    assert len(found.sizes) > len(Constant.usual.sizes)
    assert sorted(simulated) == [(size, found.samples) for size in found.sizes]


def test_a_size_is_rounded_once(monkeypatch):
    """For the cost of its systems and for the run."""
    rounded = []

    def at_size(limit, size):
        rounded.append(size)
        return {"size": size}, limit

    monkeypatch.setattr(Constant, "at_size", at_size)
    task = Task(Constant(), 10, 40)
    simulate.seconds(task)
    with bars.progress(40, "simulating", False) as bar:
        simulate.run(task, bar)
    assert rounded == [10]


def test_gradient_of_a_prediction():
    risk = jax.grad(lambda gamma: dl.limits.RidgelessDoubleDescent(gamma=gamma, noise=1.0).theory()["risk"].value)(2.0)
    assert float(risk) == pytest.approx(1 / 4 - 1)  # d/dγ (1 − 1/γ + 1/(γ−1))


def test_vmap_of_a_prediction():
    gammas = np.array([0.5, 2.0, 4.0])
    limit = dl.limits.RidgelessDoubleDescent(noise=1.0)
    risks = jax.vmap(lambda gamma: replace(limit, gamma=gamma).theory()["risk"].value)(gammas)
    np.testing.assert_allclose(risks, [1.0, 1.5, 0.75 + 1 / 3])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (functools.partial(dl.compare, samples=3), ParameterError, "samples = 3"),
        (functools.partial(dl.compare, sizes=(10,)), ParameterError, "distinct size"),
        (functools.partial(dl.compare, sizes=(0, 10)), ParameterError, "sizes = 0"),
        (functools.partial(dl.simulate, size=10, samples=-1), ParameterError, "samples = -1"),
    ],
)
def test_bad_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call(Constant())


def test_wrong_types():
    with pytest.raises(ParameterError, match="construct it first"):
        check_limit(Constant)
    with pytest.raises(ParameterError, match=r"size = 2.5 is not allowed; it must be a whole number of at least 1"):
        check_count(2.5, "size")


def test_a_diverging_simulation_is_reported():
    with pytest.raises(DeeplimitsError, match="level is not finite"):
        dl.simulate(Diverging(), size=10, samples=8)


def test_results_must_match():
    with pytest.raises(DeeplimitsError, match=r"predicts \['level'\] but simulates \['other'\]"):
        dl.compare(Mute())


def test_unknown_parameter_and_result():
    with pytest.raises(ParameterError, match="has no parameter gama"):
        replace(Constant(), gama=1.0)
    with pytest.raises(ParameterError, match="no result 'risk'; there are level"):
        dl.predict(Constant())["risk"]


def test_outside_validity():
    with pytest.raises(OutsideValidity, match=r"gamma = 1 .* infinite"):
        dl.predict(dl.limits.RidgelessDoubleDescent(gamma=1.0))
    with pytest.raises(OutsideValidity, match=r"\|p - n\| >= 8"):
        dl.compare(dl.limits.RidgelessDoubleDescent(gamma=1.05), sizes=(20, 40))
    with pytest.raises(OutsideValidity, match="exceeds points"):
        dl.predict(dl.limits.KnnBiasVariance(points=3, neighbours=5))
    with pytest.raises(OutsideValidity, match="not below d/2"):
        dl.predict(dl.limits.NadarayaWatsonSingularKernel(singularity=1.5))


def test_progress_bars_go_to_standard_error(capsys):
    dl.simulate(Constant(), size=10, samples=20, progress=True)
    shown = capsys.readouterr()
    assert "simulating" in shown.err
    assert shown.out == ""


def test_repr_of_each_answer():
    assert "prediction" in repr(dl.predict(Constant()))
    assert "8 systems with size = 10" in repr(dl.simulate(Constant(), size=10, samples=8))
    assert dl.simulate(Constant(), size=10, samples=8).to_xarray()["level"].shape == (8,)
    assert "AGREES" in repr(dl.compare(Constant()))
