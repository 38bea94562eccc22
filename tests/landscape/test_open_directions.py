"""What is not known: the data and the page say the same, and name what exists."""

import re
from pathlib import Path

from deeplimits.catalogue import catalogue
from deeplimits.theory.landscape import open_directions

PAGE = Path(__file__).parents[2] / "docs" / "open_directions.md"
NAMES = (
    "hessian-gauss-newton", "hessian-two-clusters", "gradient-top-subspace", "papyan-gradient-decomposition",
    "papyan-feature-decomposition", "papyan-backprop-decomposition", "neural-collapse-metrics", "neural-collapse-ufm",
    "edge-of-stability", "large-learning-rate-phases", "catapult-recursion", "catapult-phase-diagram",
    "kgmm-sgd-effective-dynamics", "kgmm-hessian-g-blocks", "weighted-covariance-spectrum", "alignment-and-lives-in",
    "kgmm-alignment-theorems", "xor-hessian-g-blocks", "xor-alignment-theorems", "rank-deficient-spectra",
    "open-directions",
)  # fmt: skip


def test_every_name_of_the_landscape_leads_somewhere():
    assert len(NAMES) == 21
    for name in NAMES:
        assert callable(catalogue[name]), name


def test_page_and_data_agree():
    parts = re.findall(r"- \*\*(.+?)\.\*\* (.*?)(?=\n- |\Z)", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    found = open_directions()
    assert [title for title, _ in parts] == [one.title for one in found]
    for one, (_, text) in zip(found, parts, strict=True):
        assert one.start
        assert all(name in catalogue and f"`{name}`" in text for name in one.start)
