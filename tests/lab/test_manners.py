"""The surface as a new user meets it: finding things, figures one can use, values that print, endings of a command."""

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import deeplimits as dl
from deeplimits import cli, guard, references
from deeplimits.errors import ParameterError, UnknownName
from deeplimits.lab.sweep import PredictedAlong, listed
from deeplimits.limit import Limit, Run, real, values_of
from deeplimits.models import Atoms, FullyConnected, Overlaps, Task
from deeplimits.predictions import Curve, Picture, Trial, Value
from deeplimits.theory.regression import population
from house import run_command


@pytest.fixture(scope="module")
def comparison():
    return dl.compare("ridgeless-double-descent", gammas=[0.5, 2.0], sizes=(40, 80), samples=60)


@pytest.fixture(scope="module")
def sweep():
    values = {"gamma": [0.5, 2.0, 4.0], "gammas": [0.5, 2.0]}
    return dl.compare("ridgeless-double-descent", sizes=(40, 80), samples=60, **values)


# Finding things


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("edge of chaos", "order-chaos-phase-diagram"),
        ("edge-of-chaos", "order-chaos-phase-diagram"),
        ("neural tangent kernel", "ntk-recursion"),
        ("svm", "hard-margin-predictor"),
        ("svm", "bias.multiclass_hard_margin"),
        ("mish", "criticality-solver"),
        ("learning curve", "ridgeless-double-descent"),
        ("exact learning curves", "ridgeless-double-descent"),
        ("early stopping", "early-stopped-gradient-flow-risk"),
        ("optimal transport", "mean-field-wasserstein-flow"),
        ("implicit bias", "hard-margin-predictor"),
        ("pca", "spiked-covariance-bbp"),
        ("kaiming", "criticality-solver"),
        ("glorot init", "criticality-solver"),
        ("wigner matrix", "ensembles.random_matrices.gaussian_matrix"),
        ("gaussian orthogonal ensemble", "ensembles.random_matrices.gaussian_eigenvalues"),
        ("wishart", "ensembles.random_matrices.wishart_eigenvalues"),
        ("own covariance", "regression.from_covariance"),
        ("my own data", "regression.feature_regression"),
    ],
)
def test_words_find_names_rooms_and_functions(words, name):
    assert name in [entry.name for entry in dl.catalogue.search(words)]


def test_what_is_called_so_stands_first():
    assert dl.catalogue.search("he initialization")[0].name == "criticality-solver"
    assert dl.catalogue.search("hard margin")[0].name == "hard-margin-predictor"
    assert dl.catalogue.search("marchenko pastur law")[0].name == "marchenko-pastur-law"


def test_functions_of_the_rooms_have_names_too(capsys):
    assert callable(dl.catalogue["bias.hard_margin"])
    assert dl.catalogue["hard_margin"] is dl.catalogue["bias.hard_margin"]
    code, out, _ = run_command(capsys, "show", "bias.hard_margin")
    assert code == 0
    assert "from deeplimits.theory.bias import hard_margin" in out
    for name in _twice():
        with pytest.raises(UnknownName, match="is in several rooms; say") as raised:
            dl.catalogue.entry(name)
        for word in str(raised.value).rpartition("say ")[2].split(" or "):
            assert dl.catalogue.entry(word).role == "function"


def _twice():
    from deeplimits import index

    names = [part.name for part in index.offered().values()]
    return {name for name in names if names.count(name) > 1 and name not in dl.catalogue}


@pytest.mark.parametrize("name", ["hard-margin-predictor", "saad-solla-ode", "marchenko-pastur-law"])
def test_show_has_lines_that_run_on_ones_own_data(capsys, name):
    _, out, _ = run_command(capsys, "show", name)
    own = out.partition("On your own data\n")[2].partition("\n\nCited")[0]
    assert "from deeplimits.theory" in own
    exec("\n".join(line[2:] for line in own.splitlines()), {})


def test_every_function_of_a_room_is_shown_with_lines_that_can_be_read():
    from deeplimits import index

    assert len(index.offered()) > 300
    for part in index.offered().values():
        compile("\n".join(part.example), part.called, "exec")
        assert any(part.name in line for line in part.example)


def test_what_can_be_looked_at_is_found_and_shown(capsys):
    from deeplimits import flags, index

    for picture in index.pictures():
        assert flags.read(picture.command.split()[1:], cli.COMMANDS).command in ("figure", "sweep")
        assert all(name in dl.catalogue for name in picture.limits)
    for command in (("show", "order-chaos-phase-diagram"), ("list", "order", "chaos")):
        _, out, _ = run_command(capsys, *command)
        assert "deeplimits figure order-and-chaos  " in out
        assert "deeplimits sweep --diagram order-chaos  " in out
    _, out, _ = run_command(capsys, "show", "double-descent-ridge-regression")
    assert "deeplimits explore ridge-general-covariance  " in out
    code, out, err = run_command(capsys, "list", "ten", "points")
    assert (code, err) == (0, "")
    assert "deeplimits figure ten-points" in out
    assert "To look at it\n  dl.explore(Unlike)" in dl.show(Unlike)


def test_nothing_found_is_answered_with_the_nearest(capsys):
    code, out, err = run_command(capsys, "list", "marchenko-pasteur")
    assert (code, out) == (0, "(no entries)\n")
    assert "did you mean marchenko-pastur" in err


def test_the_library_cites_itself(capsys):
    code, out, _ = run_command(capsys, "cite")
    assert code == 0
    assert out.startswith("@software{deeplimits,")
    assert str(dl.cite()) == out.strip()
    assert dl.__version__ in out


def test_show_and_cite_in_python(comparison):
    assert repr(dl.show("ridgeless-double-descent")).startswith("ridgeless-double-descent\n")
    assert dl.show(dl.limits.RidgelessDoubleDescent()) == dl.show("ridgeless-double-descent")
    assert repr(comparison.cite()).startswith("@article{hastie2022,\n")
    assert dl.cite(comparison) == dl.cite(dl.limits.RidgelessDoubleDescent) == comparison.cite()


def test_deeplimits_alone_prints_the_help(capsys):
    code, out, _ = run_command(capsys)
    assert code == 0
    assert "deeplimits compare marchenko-pastur-law" in out


def test_names_are_taken_for_limits(comparison):
    assert float(dl.predict("ridgeless-double-descent", gamma=2, noise=1.0)["risk"].value) == 1.5
    assert dl.simulate("knn-bias-variance", size=20, samples=8, neighbours=3)["risk"].shape == (8,)
    assert comparison["risk"].agrees
    assert list(comparison) == list(comparison.findings)
    with pytest.raises(ParameterError, match="did you mean risk_curve"):
        _ = comparison["risk_curv"]


# Figures


def test_a_figure_of_one_result_on_ones_own_axes(comparison, tmp_path):
    from matplotlib.figure import Figure

    drawn = comparison.plot(tmp_path / "one.png", only="risk_curve", size=(5, 3), dpi=50)
    assert len(drawn.axes) == 1
    assert tuple(drawn.get_size_inches()) == (5, 3)
    own = Figure().subplots()
    assert comparison.plot(only="risk_curve", ax=own) is own.figure
    assert own.has_data()
    with pytest.raises(ParameterError, match="ax takes one result"):
        comparison.plot(ax=own)


def test_a_figure_is_an_image_without_a_backend(comparison):
    assert comparison.plot(only="risk")._repr_png_().startswith(b"\x89PNG")


def test_numbers_alone_are_one_small_table():
    prediction = dl.predict("ridgeless-double-descent")
    drawn = prediction.plot()
    assert len([panel for panel in drawn.axes if panel.get_visible()]) == 2
    (table,) = [panel.tables[0] for panel in drawn.axes if panel.tables]
    assert [row[0] for row in _cells(table)] == ["result", "risk", "bias", "variance", "norm", "training error"]
    assert prediction.plot(only=["risk", "bias"]).get_size_inches()[1] < 2.5


def _cells(table):
    cells = table.get_celld()
    rows = {row for row, _ in cells}
    return [[cells[row, column].get_text().get_text() for column in range(3)] for row in sorted(rows)]


def test_the_fit_is_drawn_where_the_verdict_rests_on_it():
    rng = np.random.default_rng(0)

    def picture(gap):
        stated = Value(2.0, label="level", rate=0.5)
        trials = [Trial(n, stated, 2 + gap * n**-0.5 + 0.01 * rng.standard_normal(400)) for n in (50, 100, 200)]
        return stated.picture(trials)

    labels = [mark.label for mark in picture(1.0).marks]
    assert [label for label in labels if re.match(r"fit: 2\.00\d*\(\d+\) as n → ∞", label) or "fit: 1.99" in label]
    assert not any("fit" in mark.label for mark in picture(0.0).marks)


def test_a_curve_shows_where_it_is_carried():
    rng = np.random.default_rng(1)
    x = np.linspace(0.0, 1.0, 4)
    stated = Curve(x, 1 + x, axis="place", label="wave", rate=1.0)
    trials = [Trial(n, stated, 1 + x + 20 / n + 0.01 * rng.standard_normal((400, 4))) for n in (50, 100, 200)]
    (carried,) = [mark for mark in stated.picture(trials).marks if "n → ∞" in mark.label]
    np.testing.assert_allclose(np.array(carried.y), 1 + x, atol=0.02)


def test_the_command_line_draws_only_what_is_named(capsys, tmp_path):
    figure = tmp_path / "figure.svg"
    arguments = ("predict", "ridgeless-double-descent", "--plot", str(figure), "--only", "risk-curve")
    assert run_command(capsys, *arguments)[0] == 0
    assert figure.exists()


# Ranges


def test_a_list_makes_one_table_and_one_figure(sweep, tmp_path):
    assert len(sweep) == 3
    assert sweep[1].limit.gamma == 2.0
    assert repr(sweep).count("\n") == 6
    assert sweep.outcome in ("agrees", "undecided")
    pictures = sweep.pictures()
    assert set(pictures) == {"risk", "bias", "variance", "norm", "training_error"}
    line, points = pictures["risk"].marks
    assert len(line.x) > 50
    assert points.x == (0.5, 2.0, 4.0)
    assert Picture.from_json(pictures["risk"].to_json()) == pictures["risk"]
    sweep.plot(tmp_path / "sweep.png", only="risk")
    assert "<svg" in sweep._repr_html_()
    assert len(sweep.to_json()) == 3


def test_a_pole_leaves_the_figure_of_a_range():
    """A line through the pole of the risk at γ = 1 was flat there, as high as the nearest of its points."""
    predictions = [dl.predict("ridgeless-double-descent", gamma=gamma) for gamma in (0.5, 2.0)]
    pictures = PredictedAlong(tuple(predictions), "gamma").pictures()
    risk, bias = pictures["risk"], pictures["bias"]
    assert max(risk.marks[0].y) > 100 * risk.y.high
    assert risk.y.high == pytest.approx(3 * 0.75)
    assert bias.y.high is None
    assert (risk.x.label, risk.x.symbol) == ("features per sample, p/n =", r"\gamma")


class Bump(Limit):
    """A number with a finite peak along a parameter, and a curve that the parameter leaves alone.

    Setting     none
    Limit       none
    Result      none
    Validity    size counts nothing
    References  hastie2022
    """

    usual = Run(sizes=(10, 20), samples=20)
    place: object = real(0.0, 0.0, 10.0, symbol="s", doc="the place")

    def theory(self):
        x = jnp.linspace(0.0, 1.0, 5)
        height = jnp.exp(-(((self.place - 4.93) / 0.3) ** 2))
        return {"height": Value(height, label="height"), "wave": Curve(x, jnp.sin(x), axis="time", label="wave")}

    def at_size(self, size):
        return {"size": size}, self

    def simulate(self, key, *, size):
        noise = jax.random.normal(key)
        return {"height": noise, "wave": jnp.sin(jnp.linspace(0.0, 1.0, 5)) + noise}


def test_a_finite_peak_and_an_unmoved_curve_over_a_range():
    """The peak stays in the figure; a curve that is the same everywhere is no plane of level lines."""
    pictures = dl.compare(Bump(), place=[0.0, 1.0, 2.0, 3.0, 10.0]).pictures()
    assert pictures["height"].y.high is None
    assert max(pictures["height"].marks[0].y) == pytest.approx(1.0, abs=0.01)
    assert pictures["wave"].x.label == "time"
    assert pictures["wave"].marks[0].name == "line"


def test_what_is_an_axis_is_not_in_the_title(comparison):
    figure = comparison.plot(only="risk_curve")
    assert "gamma" not in figure.get_suptitle()
    assert "gamma" in comparison.plot(only="risk").get_suptitle()


def test_a_small_figure_keeps_its_legend(comparison):
    figure = comparison.plot(only="risk_curve", size=(4, 3), dpi=80)
    figure.draw_without_rendering()
    legend = figure.axes[0].get_legend().get_window_extent()
    assert legend.x1 <= figure.bbox.x1


def test_only_takes_commas_and_spaces(capsys, tmp_path):
    for names in (("risk,bias",), ("risk", "bias"), ("risk,", "bias")):
        path = tmp_path / f"{len(names)}.json"
        arguments = ("predict", "ridgeless-double-descent", "--plot", str(tmp_path / "f.png"), "--only", *names)
        assert run_command(capsys, *arguments)[0] == 0, path


def test_a_range_on_the_command_line_says_what_it_will_run(capsys, tmp_path):
    figure = tmp_path / "figure.png"
    few = ("--gammas", "0.5,2", "--sizes", "40,80", "--samples", "1e2", "--plot", str(figure), "--only", "risk")
    code, _, err = run_command(capsys, "compare", "ridgeless-double-descent", "--gamma", "2:4:2", *few)
    assert code in (0, 4)
    assert "2 comparisons along gamma: about" in err
    assert "--gammas in place of --gamma" in err
    assert [path.name for path in tmp_path.iterdir()] == ["figure.png"]


def test_sizes_and_samples_as_one_writes_them(monkeypatch, capsys):
    """A range of sizes, and 1e3: on the command line and in Python."""
    asked = []

    def compared(limit, tasks, progress, chosen):
        asked.append([(task.size, task.samples) for task in tasks])
        raise ParameterError("enough")

    monkeypatch.setattr("deeplimits.lab.compare.compared", compared)
    flags = ("--sizes", "10:40:4", "--samples", "1e3")
    assert run_command(capsys, "compare", "marchenko-pastur-law", *flags)[0] == 1
    given = [{"sizes": "10:40:4", "samples": 1e3}, {"sizes": (1e1, 20, 30.0, 40), "samples": np.float64(1000)}]
    for one in given:
        with pytest.raises(ParameterError, match="enough"):
            dl.compare("marchenko-pastur-law", **one)
    assert asked == 3 * [[(10, 1000), (20, 1000), (30, 1000), (40, 1000)]]
    assert all(type(number) is int for number in sum(asked[1] + asked[2], ()))
    assert run_command(capsys, "compare", "marchenko-pastur-law", "--sizes", "40:160:3log")[0] == 1
    assert [size for size, _ in asked[-1]] == [40, 80, 160]


def test_python_reads_the_ranges_of_the_command_line(monkeypatch):
    """So that what the explorer writes as a script runs as it was typed into its boxes."""
    limit = dl.limits.RidgelessDoubleDescent(gammas="0.1:10:3log")
    assert values_of(limit)["gammas"] == pytest.approx([0.1, 1.0, 10.0])
    assert dl.limits.KnnBiasVariance(neighbours=1e2).neighbours == 100
    assert type(dl.limits.KnnBiasVariance(neighbours=1e2).neighbours) is int
    assert listed("ridgeless-double-descent", {"gamma": "0.5:2:4"}) == {"gamma": [0.5, 1.0, 1.5, 2.0]}
    assert listed("knn-bias-variance", {"neighbours": "1:100:3log"}) == {"neighbours": [1, 10, 100]}


# Words and values


def test_measured_minus_predicted_is_one_line(comparison):
    data = comparison.to_xarray()
    difference = data.risk_curve_measured - data.risk_curve
    assert difference.dims == ("size", "features_per_sample")
    assert difference.features_per_sample.values.tolist() == [0.5, 2.0]
    assert abs(float(difference.sel(size=80, features_per_sample=2.0))) < 0.1
    draws = dl.simulate("ridgeless-double-descent", size=40, samples=8, gammas=[0.5, 2.0]).to_xarray()
    assert draws.risk_curve.dims == ("sample", "features_per_sample")


class Unlike(Limit):
    """Two numbers of three that are wrong."""

    usual = Run(sizes=(10, 20), samples=100)
    level: object = real(1.0, 0.0, 10.0, doc="the number")

    def theory(self):
        return {name: Value(self.level, label=name) for name in ("one", "two", "three")}

    def at_size(self, size):
        return {"size": size}, self

    def simulate(self, key, *, size):
        import jax

        noise = 0.01 * jax.random.normal(key)
        return {"one": self.level + noise, "two": self.level + 1 + noise, "three": self.level + 2 + noise}


def test_the_last_line_counts_what_it_names():
    last = str(dl.compare(Unlike())).splitlines()[-1]
    assert last.startswith("DISAGREES: 2 of 3 predictions; worst: ")


def test_what_is_no_z_is_called_a_statistic():
    few = dl.compare("marchenko-pastur-law", sizes=(20, 40), samples=16)["eigenvalues"]
    many = dl.compare(Unlike(), sizes=(10, 20), samples=200)["one"]
    assert re.match(r"agrees to within .* %: statistic [\d.]+ \(threshold [\d.]+, p = [\d.]+\), ", few.verdict)
    assert "z = " in many.verdict


def test_a_prediction_prints_its_values():
    prediction = dl.predict("marchenko-pastur-law")
    assert repr(prediction["eigenvalues"]).startswith("Spectrum(")
    assert "[0.0" in repr(prediction["eigenvalues"])
    assert repr(dl.predict("ridgeless-double-descent")["risk"]) == "Value(excess risk: 0.75)"
    seen = []
    jax.jit(lambda x: seen.append(repr(Value(x, label="x"))) or x)(1.0)
    assert "f64[]" in seen[0]  # what is traced has no value to print


def test_values_are_not_rounded_onto_others():
    assert "gamma = 0.9999999," in str(dl.predict("ridgeless-double-descent", gamma=0.9999999))
    with pytest.raises(ParameterError, match=r"gamma = 100.000001 is not allowed; .* between 0.01 and 100"):
        dl.limits.RidgelessDoubleDescent(gamma=100.000001)


def test_descriptions_print_their_values(comparison):
    said = repr(FullyConnected(2, "tanh", weight_variance=2.0))
    assert said == (
        "FullyConnected(hidden_layers=2, activation='tanh', weight_variance=2, bias_variance=0, parametrization='ntk')"
    )
    assert "noise=0.1" in repr(Task([[1.0]], noise=0.1))
    assert repr(Overlaps([[0.5]], [[0.7]])) == "Overlaps(m=[[0.5]], q=[[0.7]], a=[1])"
    assert repr(Atoms(jnp.linspace(1, 2, 50), jnp.ones(50) / 50)).startswith("Atoms(values=<50 numbers from 1 to 2>")
    assert repr(dl.limits.RidgelessDoubleDescent(gamma=2)).startswith("RidgelessDoubleDescent(gamma=2.0, noise=0.5")
    law = Atoms(jnp.ones(50), jnp.ones(50) / 50)
    assert repr(population(law)).endswith("alignment=<50 numbers from 0.02 to 0.02>)")
    assert re.fullmatch(r"\d+ names: dl.catalogue\(\) lists them, .*", repr(dl.catalogue))
    found = repr(comparison["risk"])
    assert found.startswith("Value 0.75, simulated 0.7")
    assert "z = " in found


# Endings


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "not enough memory"),
        (PermissionError(13, "Permission denied", "/etc/x"), "/etc/x: permission denied"),
        (RuntimeError("first\nsecond"), "RuntimeError: first; --debug shows where"),
    ],
)
def test_what_nobody_foresaw_is_one_line(capsys, error, said):
    def command():
        raise error

    assert guard.guarded(command) == 1
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1
    with pytest.raises(type(error)):
        guard.guarded(command, debug=True)


def test_an_interrupt_has_its_own_code(capsys):
    def command():
        raise KeyboardInterrupt

    assert guard.guarded(command) == 130
    assert capsys.readouterr().err == "deeplimits: interrupted\n"


def _process(*arguments, **options):
    command = [sys.executable, "-m", "deeplimits.cli", *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **options)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full disk to write to")
def test_a_full_disk():
    with open("/dev/full", "w") as full:
        process = _process("list", stdout=full)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err == "deeplimits: no space left on device\n"


@pytest.mark.parametrize(
    ("encoding", "risk", "rule"),
    [
        ("ascii", "||beta^||^2 -> r^2 min(1, 1/gamma) + V", "----"),
        ("latin-1", "||beta^||² -> r² min(1, 1/gamma) + V", "----"),
        ("cp1252", "||beta^||² -> r² min(1, 1/gamma) + V", "----"),
        ("utf-8", "‖β̂‖² → r² min(1, 1/γ) + V", "────"),
    ],
)
def test_what_an_encoding_lacks_is_spelt_out(monkeypatch, encoding, risk, rule):
    """Statements, tables of a comparison that was simulated, and errors: nothing is lost, nothing raised."""
    for command, wanted in (
        (("show", "ridgeless-double-descent"), risk),
        (("compare", "knn-bias-variance", "--sizes", "10,20", "--samples", "8"), rule),
        (("compare", "knn-bias-variance", "--sizes", "γ"), "'gamma'" if encoding != "utf-8" else "'γ'"),
    ):
        streams = [io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in range(2)]
        monkeypatch.setattr(sys, "stdout", streams[0])
        monkeypatch.setattr(sys, "stderr", streams[1])
        with contextlib.suppress(SystemExit):
            assert cli.main(list(command)) in (0, 4)
        monkeypatch.undo()
        said = "".join(one.buffer.getvalue().decode(encoding) for one in streams if one.flush() is None)
        assert wanted in said
        assert "?" not in said
        assert "Traceback" not in said


def test_a_process_in_ascii():
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    process = _process("show", "marchenko-pastur-law", stdout=subprocess.PIPE, env=environment)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert "||Sigma^ - sigma^2I|| -> sigma^2(gamma + 2sqrtgamma)" in out


def test_every_statement_has_a_form_in_ascii():
    from deeplimits import index
    from deeplimits.render.letters import ascii_of

    for record in index.records().values():
        assert "?" not in ascii_of(record.statement.doc.replace("?", "."))


@pytest.mark.parametrize(
    "wait", [3.0, pytest.param(6.0, marks=pytest.mark.slow), pytest.param(9.0, marks=pytest.mark.slow)]
)
def test_interrupts_end_a_comparison(wait, tmp_path):
    """In the middle of importing or compiling: code 130, one line, no traceback, no segmentation fault."""
    environment = {**os.environ, "DEEPLIMITS_CACHE": "0"}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    # In the shell's background interrupts are ignored, and in whatever it starts: the command must hear them anyhow.
    heard = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from deeplimits.cli import main; sys.exit(main())"
    )
    command = [sys.executable, "-c", heard, "compare", "random-feature-ridge-mse"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    time.sleep(wait)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.strip() == "deeplimits: interrupted"


def test_the_version_that_is_cited_is_the_one_of_the_citation_file():
    from house import ROOT

    text = (ROOT.parents[1] / "CITATION.cff").read_text(encoding="utf-8")
    title = re.search(r'^title: "(.*)"', text, re.MULTILINE)
    assert title is not None
    assert title[1] in references.library()
    assert cli.main(["cite"]) == 0


def test_a_narrow_terminal_gets_narrow_lines(monkeypatch):
    wide = str(dl.catalogue.search("svm"))
    assert "\n " not in wide
    monkeypatch.setattr("deeplimits.render.text.columns", lambda: 40)
    narrow = str(dl.catalogue.search("svm"))
    assert max(map(len, narrow.splitlines())) <= 40
    assert "".join(narrow.split()) == "".join(wide.split())
