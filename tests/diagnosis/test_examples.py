"""The five networks of the examples get the reports that they should, and the notebook runs to its end."""

import importlib.util
import re
from pathlib import Path

import nbclient
import nbformat
import pytest

from deeplimits import diagnose

EXAMPLES = Path(__file__).parents[2] / "examples"


def five():
    spec = importlib.util.spec_from_file_location("five_reports", EXAMPLES / "five_reports.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "only", "worst", "first"),
    [
        ("tanh_badly_initialized", ("initialization",), "critical", ("weight-scale", "saturated-units")),
        ("step_too_large", ("learning rate",), "critical", ("step-size",)),
        ("well_behaved", ("data", "initialization", "learning rate"), "fine", ()),
    ],
)
def test_examples_are_reported_as_what_they_are(name, only, worst, first):
    net, loss, data, optimizer = getattr(five(), name)()
    report = diagnose(net, loss, data, optimizer=optimizer, only=only, budget="10m")
    assert report.worst in (worst, "note" if worst == "fine" else worst), report
    assert not first or report.findings[0].name in first, report


@pytest.mark.slow
def test_all_five_reports(tmp_path):
    found = five().main([str(tmp_path), "--pictures", str(tmp_path / "pictures"), "--budget", "20m"])
    worst = {name: report.worst for name, report in found.items()}
    assert worst["tanh_badly_initialized"] == worst["step_too_large"] == "critical"
    assert all(worst[name] in ("fine", "note") for name in ("well_behaved", "convolutional", "transformer")), found
    assert "token-clustering" in {one.name for one in found["transformer"].findings}
    assert not any(report.left_out for report in found.values())
    for name, report in found.items():
        page = (tmp_path / f"{name}.html").read_text(encoding="utf-8")
        assert page.count("<figure>") == sum(one.picture is not None for one in report.findings)
    assert len(list((tmp_path / "pictures").iterdir())) > 60


@pytest.mark.slow
def test_the_notebook_runs(tmp_path):
    notebook = nbformat.read(EXAMPLES / "diagnose_digits.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=1800, resources={"metadata": {"path": str(tmp_path)}}).execute()
    said = {cell.id: cell for cell in notebook.cells if cell.cell_type == "code"}
    assert "critical" in "".join(one["data"].get("text/html", "") for one in said["report"].outputs if "data" in one)
    assert "→" in said["compare"].outputs[0]["text"]
    before, now = (float(word) for word in re.findall(r"\d+\.\d+", said["train"].outputs[0]["text"]))
    assert now < 0.5 * before
    assert (tmp_path / "report.html").exists()
