"""A limit written in a notebook is a citizen: a fresh kernel runs examples/own_limit.ipynb to its end."""

from pathlib import Path

import nbclient
import nbformat

NOTEBOOK = Path(__file__).parents[2] / "examples" / "own_limit.ipynb"


def shown(cell, mime):
    return "".join(output.get("data", {}).get(mime, "") for output in cell.outputs)


WITHOUT_MAGIC = (
    "from deeplimits import models\nfrom deeplimits.theory import regression",
    "dl.compare(GaussianNorm(), sizes=(50, 100), samples=800, progress=True).plot(only='mean')",
    "dl.simulate(GaussianNorm(), size=50, samples=8)",
    "dl.limits.RidgelessDoubleDescent(gamma=2, noise=0.5)",
    "models.FullyConnected(2, 'relu', weight_variance=2)",
    "models.Task([[1.0]], noise=0.1)",
    "regression.population([1.0, 4.0])",
    "comparison.cite()",
    "dl.catalogue.search('double descent')",
    "GaussianNorm(dimension=7)",
)
"""Cells beside those of the example: each shows what it ends in."""


def test_a_limit_of_ones_own_in_a_notebook(tmp_path):
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    notebook.cells += [nbformat.v4.new_code_cell(source) for source in WITHOUT_MAGIC]
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    cells = {cell.source.split("\n")[0]: cell for cell in notebook.cells if cell.cell_type == "code"}
    prediction = shown(cells["dl.predict(GaussianNorm())"], "text/html")
    assert "mean norm" in prediction
    assert "<svg" in prediction
    comparison = shown(cells["comparison = dl.compare(GaussianNorm())"], "text/html")
    assert "AGREES: all 2 predictions" in comparison
    assert "<svg" in comparison
    (cited,) = cells["print(comparison.cite())"].outputs
    assert "@book{vershynin2018" in cited["text"]
    assert "False" in shown(cells["class Wrong(GaussianNorm):"], "text/plain")
    assert "A Gaussian vector in high dimension" in (tmp_path / "gaussian-norm.html").read_text()
    assert (tmp_path / "gaussian-norm.json").exists()

    own = {cell.source: cell for cell in notebook.cells if cell.cell_type == "code"}
    _, compared, simulated, limit, network, task, population, cite, found, small = (own[one] for one in WITHOUT_MAGIC)
    assert shown(compared, "image/png")
    assert "comparing: " in "".join(output.get("text", "") for output in compared.outputs)
    assert "mean" in shown(simulated, "text/html")
    values = "RidgelessDoubleDescent(gamma=2.0, noise=0.5, signal=1.0, gammas=[0.2, 0.35,"
    for cell, begins in (
        (limit, values),
        (network, "FullyConnected(hidden_layers=2, activation='relu', weight_variance=2,"),
        (task, "Task(teacher=[[1]]"),
        (population, "Population(eigenvalues=Atoms(values=[1, 4], "),
        (cite, "@book{vershynin2018,\n"),
        (small, "GaussianNorm(dimension=7)"),
    ):
        assert shown(cell, "text/plain").startswith(begins), shown(cell, "text/plain")
    assert "ridgeless-double-descent" in shown(found, "text/html")
