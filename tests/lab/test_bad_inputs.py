"""About a hundred bad inputs, on the command line and in Python: each is answered by one sentence, before any work."""

import contextlib
import inspect
import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import deeplimits as dl
from deeplimits.errors import DeeplimitsError
from deeplimits.limit import Limit, Run, real
from deeplimits.predictions import Curve, Value
from house import run_command

MP, RIDGELESS, KNN = "marchenko-pastur-law", "ridgeless-double-descent", "knn-bias-variance"


@pytest.fixture(autouse=True)
def nothing_is_simulated(monkeypatch):
    def run(*_, **__):
        raise AssertionError("a simulation was begun")

    monkeypatch.setattr("deeplimits.lab.compare.run", run)
    monkeypatch.setattr("deeplimits.lab.simulate.run", run)


COMMANDS = [
    ("nonsense", "there is no command 'nonsense'"),
    ("comparee", "did you mean compare"),
    ("sho x", "did you mean show?"),
    ("--bogus", "a command must be given"),
    ("show", "NAME"),
    ("show no-such-thing-at-all", "no entry 'no-such-thing-at-all'"),
    ("show marchenko-pastur-lw", "did you mean"),
    (f"show {MP} --json", "--json"),
    ("show gausian_matrix", "did you mean gaussian_matrix"),
    ("show spectra.marchenko_pastur_densty", "did you mean marchenko_pastur_density"),
    ("cite no-such-thing", "no entry 'no-such-thing'"),
    ("list --jsn", "--json"),
    ("predict", "NAME"),
    ("predict marchenko-pastur-low", "did you mean marchenko-pastur-law"),
    ("predict hard_margin", "is a function"),
    ("predict ridgeless-finite-sample", "is a function"),
    ("compare marchenko-pastur", "marchenko-pastur-law"),
    ("compare --gamma 1 marchenko-pastur-law", "NAME stands before"),
    (f"predict {MP} --gamma", "--gamma"),
    (f"predict {MP} --gamma big", "a number between"),
    (f"predict {MP} --gamma nan", "gamma = nan"),
    (f"predict {MP} --gamma inf", "gamma = inf"),
    (f"predict {MP} --gamma -1", "gamma = -1"),
    (f"predict {MP} --gamma 0.0099999999", "gamma = 0.0099999999"),
    (f"predict {MP} --gamma 1e9", "between 0.01 and 100"),
    (f"predict {MP} --gamma 1:2", "first:last:points"),
    (f"predict {MP} --gamma 1:2:1", "at least two points"),
    (f"predict {MP} --gamma 1:2:x", "cannot be read"),
    (f"predict {MP} --gamma 0:2:3log", "positive ends"),
    (f"predict {MP} --gamma 1,,2", "cannot be read"),
    (f"predict {MP} --gama 2", "did you mean --gamma?"),
    (f"predict {MP} --entries cauchy", "gaussian, rademacher"),
    (f"predict {MP} --variance 0", "variance = 0"),
    (f"predict {MP} --samples 3", "--samples"),
    (f"predict {KNN} --neighbours 2.5", "whole number"),
    (f"predict {KNN} --neighbours 0", "between 1 and"),
    (f"predict {RIDGELESS} --gamma 1", "infinite"),
    (f"predict {RIDGELESS} --gamma 0.5,1,2", "infinite"),
    (f"predict {RIDGELESS} --gammas 2,1", "increasing"),
    (f"predict {RIDGELESS} --noise -0.1", "noise = -0.1"),
    (f"predict {RIDGELESS} --plot figure.xyz", "its ending must be one of"),
    (f"predict {RIDGELESS} --plot figure", "its ending must be one of"),
    (f"predict {RIDGELESS} --plot /nowhere/f.png", "no folder /nowhere"),
    (f"predict {RIDGELESS} --plot f.png --only riks", "did you mean risk"),
    (f"predict {RIDGELESS} --only risk", "--plot"),
    (f"compare {RIDGELESS} --plot figure.xyz", "its ending must be one of"),
    (f"compare {RIDGELESS} --plot /nowhere/f.png", "no folder /nowhere"),
    (f"compare {RIDGELESS} --html /nowhere/f.html", "no folder /nowhere"),
    (f"compare {RIDGELESS} --plot f.png --only riks", "did you mean risk"),
    (f"compare {RIDGELESS} --gamma 0.5,1,2", "infinite"),
    (f"compare {RIDGELESS} --sizes 40", "one distinct size"),
    (f"compare {RIDGELESS} --sizes 20,40", "gammas = 0.8 means p = 16"),
    (f"compare {RIDGELESS} --sizes 30,50", "take sizes from 40 on"),
    (f"compare {RIDGELESS} --gamma 0.9999999", "gamma = 0.9999999 means p = 40"),
    (f"compare {RIDGELESS} --gamma 1.05 --sizes 80,150", "at n = 80 gamma = 1.05 means p = 84"),
    (f"compare {RIDGELESS} --sizes 40,40", "one distinct size"),
    (f"compare {MP} --sizes a,b", "whole numbers"),
    (f"compare {MP} --sizes 0,10", "whole numbers"),
    (f"compare {MP} --sizes=-5,10", "whole numbers"),
    (f"compare {MP} --sizes 10.5,20", "whole numbers"),
    (f"compare {MP} --sizes 10:20", "whole numbers"),
    (f"compare {MP} --sizes 10:11:3", "whole numbers"),
    (f"predict {KNN} --neighbours 1:2:3", "1.5 is not whole"),
    (f"predict {KNN} --neighbours inf", "inf is not whole"),
    (f"compare {MP} --sizes nan", "whole numbers"),
    (f"compare {MP} --sizes inf", "whole numbers"),
    (f"compare {MP} --samples 0", "whole numbers"),
    (f"compare {MP} --samples 1,2", "more than one number"),
    (f"compare {MP} --samples 3", "at least 8"),
    (f"compare {MP} --samples many", "whole numbers"),
    (f"compare {MP} --seed 99999999999999999999", "9223372036854775807"),
    (f"compare {MP} --seed -1", "between 0 and"),
    (f"compare {MP} --seed x", "between 0 and"),
    (f"compare {MP} --seed 1.5", "between 0 and"),
    (f"compare {MP} --size 9", "did you mean --sizes"),
    (f"compare {MP} --sizes 100000,200000 --samples 8", "GB of memory"),
    (f"simulate {MP} --size 100000 --samples 8", "would fit"),
    (f"simulate {MP} --size 0", "whole numbers"),
    (f"simulate {MP} --sizes 50", "did you mean --size"),
    (f"simulate {MP} --samples 0", "whole numbers"),
    ("atlas --out /proc/foo/bar", "/proc/foo"),
    ("atlas --out /dev/null", "give a folder"),
    ("atlas --only ridgeless-finite-sample --out /tmp/never", "not a limit of its own"),
    ("atlas --size huge", "--size"),
    ("campaign --draws 0", "whole numbers"),
    ("campaign --draws -3", "--draws"),
    ("campaign --cases /nowhere/cases.jsonl", "no such file"),
    ("campaign --out /nowhere/out.jsonl", "no folder /nowhere"),
    ("campaign --time-limit -1", "positive number"),
    ("campaign --workers 0", "whole numbers"),
    ("campaign --only no-such-limit", "no entry"),
    ("atlas --only marchenko-pastur-lw --out /tmp/never", "did you mean marchenko-pastur-law"),
    ("sweep", "needs the NAME"),
    ("sweep marchenko-pastur-lw --gamma 0.5", "did you mean marchenko-pastur-law"),
    ("sweep ridgeless-finite-sample", "is a function"),
    (f"sweep {RIDGELESS} --gama 2,3", "did you mean --gamma"),
    (f"sweep {RIDGELESS} --gamma 1:2", "first:last:points"),
    (f"sweep {RIDGELESS} --gamma nan", "gamma = nan"),
    (f"sweep {RIDGELESS} --gamma 2,3 --until 0", "positive number"),
    (f"sweep {RIDGELESS} --gamma 2,3 --store /nowhere/s.db", "no folder /nowhere"),
    (f"sweep {RIDGELESS} --gamma 2,3 --export out.xyz", "its ending must be one of"),
    (f"sweep {RIDGELESS} --gamma 2,3 --plot f.png --only riks", "did you mean risk"),
    (f"sweep {RIDGELESS} --gamma 2,3 --only risk", "--plot"),
    (f"sweep {RIDGELESS} --gamma 2,3 --memory lots", "positive number"),
    (f"sweep {RIDGELESS} --gamma 2,3 --workers -1", "whole numbers"),
    ("sweep --diagram no-such-diagram", "there is no diagram"),
    (f"sweep {RIDGELESS} --gamma 2 --diagram order-chaos", "different things"),
    ("sweep --status /nowhere/s.db", "no such file"),
    ("sweep --resume /nowhere/s.db", "no such file"),
    ("sweep --salvage /nowhere/s.db", "no such file"),
    ("explore ridgeless-double-descend --no-browser", "did you mean ridgeless-double-descent"),
    ("explore ridgeless-finite-sample --no-browser", "is a function"),
    ("explore ridgeless-double-descent --gamma 2,3 --no-browser", "the page opens at one"),
    ("explore ridgeless-double-descent --gamma -1 --no-browser", "between 0.01 and 100"),
    ("explore ridgeless-double-descent --gama 2 --no-browser", "did you mean --gamma"),
    ("explore --gamma 2 --no-browser", "--gamma 2"),
    ("explore --port 99999999", "between 0 and 65535"),
    ("explore --port x", "between 0 and 65535"),
    ("explore --site /nowhere --no-browser", "holds no atlas"),
    ("explore --bogus", "--bogus"),
    ("diagnose", "FILE.py:NAME"),
    ("diagnose nothing", "FILE.py:NAME"),
    ("diagnose missing.py:make", "no file missing.py"),
    ("diagnose no_module_at_all:make", "cannot be imported"),
    ("diagnose model.py:nothing", "has no function 'nothing'"),
    ("diagnose model.py:number", "is of type int; give a function"),
    ("diagnose model.py:pair", "it must return (model, loss, data)"),
    ("diagnose model.py:broken", "failed: RuntimeError: no such data"),
    ("diagnose model.py:make --budget never", "'30s'"),
    ("diagnose model.py:make --most-memory big", "'500MB'"),
    ("diagnose model.py:make --only no-such-part", "must be one of"),
    ("diagnose model.py:make --html /nowhere/r.html", "html = '/nowhere/r.html' cannot be written"),
    ("diagnose model.py:make", "needs its parameters"),
    ("figure no-such-figure", "`deeplimits figure` lists all"),
    ("figure matrix-pcs", "did you mean matrix-pca"),
    ("figure F3 --size huge", "--size"),
    ("figure F3 --out /dev/null", "give a folder"),
]

MODEL = """
import numpy as np

number = 3


def make():
    return lambda x: x, lambda z, y: 0.0, (np.ones((8, 3)), np.ones(8))


def pair():
    return 1, 2


def broken():
    raise RuntimeError("no such data")
"""
"""What `diagnose` is given."""


@pytest.mark.parametrize(("line", "words"), COMMANDS, ids=[line for line, _ in COMMANDS])
def test_on_the_command_line(capsys, monkeypatch, tmp_path, line, words):
    monkeypatch.chdir(tmp_path)
    if "model.py" in line:
        (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    before = set(tmp_path.iterdir())
    code, _, err = run_command(capsys, *line.split())
    assert code == 1
    assert len(err.strip().splitlines()) == 1, err
    assert err.startswith("deeplimits")
    assert words in err, err
    left = {path for path in set(tmp_path.iterdir()) - before if path.name != "__pycache__"}
    assert not left or "campaign" in line


class Own(Limit):
    """A limit of one's own."""

    level: jax.Array = real(1.0, 0.0, 10.0, doc="the number")
    usual = Run(sizes=(10, 20), samples=20)

    def theory(self):
        return {"level": Value(self.level, label="level", rate=1.0)}

    def at_size(self, size):
        return {"size": size}, self

    def simulate(self, key, *, size):
        return {"level": self.level + jax.random.normal(key)}


def own(**methods):
    """The limit with a method that goes wrong."""
    return type("Own", (Own,), {"__module__": __name__, "__doc__": Own.__doc__, **methods})()


def host(self):
    return {"level": Value(np.sqrt(self.level), label="level")}


def branches(self):
    return {"level": Value(self.level if self.level > 1 else 0.0, label="level")}


BROKEN = [
    ({"theory": lambda self: 1.0}, "Own.theory returns a float"),
    ({"theory": lambda self: {"level": 1.0}}, "returns a float for 'level'; it must be a prediction"),
    ({"theory": lambda self: None}, "returns nothing"),
    ({"theory": host}, "write it with jax.numpy"),
    ({"theory": branches}, "jnp.where"),
    ({"theory": lambda self: {"level": Value(jnp.zeros(int(self.level)), label="x")}}, "integer(...)"),
    ({"at_size": lambda self, size: {"size": size}}, "at_size returns a dict"),
    ({"at_size": lambda self, size: ({"size": size}, {"size": size})}, "at_size returns a tuple"),
    ({"at_size": lambda self, size: None}, "at_size returns nothing"),
    ({"simulate": lambda self, key, *, size: 3.0}, "Own.simulate returns a float"),
    ({"simulate": lambda self, key, *, size: {"level": "a"}}, "returns a str for 'level'"),
    ({"simulate": lambda self, key, *, size: {"level": None}}, "returns nothing for 'level'"),
    ({"simulate": lambda self, key, *, size: {"level": jnp.zeros(3)}}, "has shape (3,)"),
    ({"simulate": lambda self, key, *, size: {"other": jnp.zeros(())}}, "but simulates ['other']"),
    ({"theory": lambda self: {"level": Curve(jnp.arange(3.0), jnp.ones(3), axis="x", label="c")}}, "shape ()"),
]


@pytest.mark.parametrize(("methods", "words"), BROKEN, ids=[words for _, words in BROKEN])
def test_what_a_limits_methods_return(methods, words):
    with pytest.raises(DeeplimitsError) as caught:
        dl.compare(own(**methods))
    one_sentence(caught.value, words)


def one_sentence(error, words):
    assert words in str(error), str(error)
    assert len(str(error).splitlines()) == 1


CALLS = [
    ("dl.predict(Own)", "construct it first"),
    ("dl.predict(3)", "is not a limit"),
    ('dl.predict("ridgeless-double-descend")', "did you mean ridgeless-double-descent"),
    ('dl.compare("ridgeless-finite-sample")', "is a function"),
    ('dl.predict("ridgeless-double-descent", gama=2)', "did you mean gamma"),
    ("dl.limits.RidgelessDoubleDescent(gama=2)", "did you mean gamma"),
    ("dl.predict(dl.limits.RidgelessDoubleDescent(gamma=[1.5, 2]))", "more than one number"),
    ("dl.limits.RidgelessDoubleDescent(gammas=5)", "list of increasing numbers"),
    ('dl.limits.RidgelessDoubleDescent(gamma="two")', "gamma = 'two'"),
    ("dl.compare(Own(), sizes=100)", "sizes = 100"),
    ('dl.compare(Own(), sizes="10:20")', "sizes = '10:20'"),
    ('dl.compare(Own(), sizes="10:11:3")', "'100:400:4'"),
    ('dl.compare(Own(), sizes="many")', "sizes = 'many'"),
    ("dl.compare(Own(), sizes=[])", "at least one whole number"),
    ("dl.compare(Own(), sizes=(10.5, 20.0))", "sizes = 10.5"),
    ("dl.simulate(Own(), size=2.5)", "size = 2.5"),
    ("dl.compare(Own(), samples=1000.5)", "samples = 1000.5"),
    ('dl.compare(Own(), samples="1e3")', "samples = '1e3'"),
    ("dl.simulate(Own(), samples=float('inf'))", "samples = inf"),
    ("dl.simulate(Own(), samples=float('nan'))", "samples = nan"),
    ('dl.limits.RidgelessDoubleDescent(gammas="1:2")', "gammas = '1:2'"),
    ('dl.limits.RidgelessDoubleDescent(gammas="2,1")', "increasing"),
    ('dl.compare("ridgeless-double-descent", gamma="0.5:2")', "gamma = '0.5:2'"),
    ("dl.limits.KnnBiasVariance(neighbours=2.5)", "neighbours = 2.5"),
    ('dl.compare(Own(), seed="a")', "seed = 'a'"),
    ("dl.predict(Own(), seed=None)", "seed = None"),
    ("dl.simulate(Own(), seed=2**70)", "seed = 1180591620717411303424"),
    ("dl.simulate(Own(), seed=-1)", "seed = -1"),
    ('dl.compare("ridgeless-double-descent", gamma=[])', "gamma = [] has no value"),
    ('dl.compare("ridgeless-double-descent", gamma=[0.5, 1.0])', "infinite"),
    ('dl.predict(Own())["levle"]', "did you mean level?"),
    ('dl.predict(Own()).plot(only="levle")', "did you mean level?"),
    ("dl.predict(Own()).plot(only=[])", "names no result"),
    ("dl.predict(Own()).plot(size=3)", "width and height"),
    ("dl.predict(Own()).plot(dpi=-1)", "dots an inch"),
    ('dl.predict(Own()).plot(ax="here")', "matplotlib axes"),
    ('dl.predict(Own()).plot("f.xyz")', "its ending must be one of"),
    ("dl.show(3)", "nor a limit"),
    ('dl.cite("nothing-like-it")', "no entry"),
    ("FullyConnected(2, np.tanh)", "write it with jax.numpy"),
    ("FullyConnected(2, 'softsign')", "give jax.nn.soft_sign"),
    ("FullyConnected(2, 'tahn')", "did you mean tanh"),
    ("FullyConnected(2, 3)", "give a name or a JAX function"),
]
SCRIPT = f"""
import json, sys
import jax
import numpy as np
import deeplimits as dl
from deeplimits.errors import DeeplimitsError
from deeplimits.limit import Limit, Run, real
from deeplimits.models import FullyConnected
from deeplimits.predictions import Value

{inspect.getsource(Own)}
for call in json.load(sys.stdin):
    try:
        print(json.dumps(["nothing was wrong", repr(eval(call))[:80]]))
    except DeeplimitsError as error:
        print(json.dumps(["refused", str(error)]))
    except BaseException as error:
        print(json.dumps(["raised " + type(error).__name__, str(error)]))

found = dl.compare(Own(), sizes=(10, 20), samples=8)
found.plot("own.png")
found.to_html("own.html")
dl.predict(Own()).plot("prediction.png")
print(json.dumps(found.cite()))
"""


def test_in_python(tmp_path):
    """As a user has it, without the tests' checks of types; in a script, whose limit stands in `__main__`."""
    calls = [call for call, _ in CALLS]
    command = [sys.executable, "-c", SCRIPT]
    ran = subprocess.run(command, input=json.dumps(calls), capture_output=True, text=True, check=True, cwd=tmp_path)
    *answers, cited = ran.stdout.splitlines()
    assert json.loads(cited) == ""
    assert {path.name for path in tmp_path.iterdir()} == {"own.png", "own.html", "prediction.png"}
    for (call, words), line in zip(CALLS, answers, strict=True):
        outcome, said = json.loads(line)
        assert (outcome, words in said, said.count("\n")) == ("refused", True, 0), (call, words, outcome, said)


def test_attributes_are_answered_with_the_nearest():
    with pytest.raises(AttributeError, match="did you mean compare"):
        _ = dl.compar
    with pytest.raises(AttributeError, match="did you mean"):
        _ = dl.limits.RidgelessDoubleDecent


def test_a_missing_extra_is_told_beforehand(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with contextlib.suppress(SystemExit):
        code, _, err = run_command(capsys, "compare", RIDGELESS, "--plot", "f.png")
    assert code == 1
    assert "deeplimits[plot]" in err
