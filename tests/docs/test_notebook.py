"""A limit written in a notebook is a citizen: a fresh kernel runs examples/own_limit.ipynb to its end."""

from pathlib import Path

import nbclient
import nbformat

NOTEBOOK = Path(__file__).parents[2] / "examples" / "own_limit.ipynb"


def shown(cell, mime):
    return "".join(output.get("data", {}).get(mime, "") for output in cell.outputs)


def test_a_limit_of_ones_own_in_a_notebook(tmp_path):
    notebook = nbformat.read(NOTEBOOK, as_version=4)
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
