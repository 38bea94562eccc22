"""The figure of the README: the double descent curve, theory and simulation.

Run with `python examples/double_descent.py double-descent.png`.
"""

import sys

from matplotlib.figure import Figure

import deeplimits as dl

limit = dl.limits.RidgelessDoubleDescent(noise=0.5, gammas=[0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 1.25, 1.5, 2, 3, 5, 10])
comparison = dl.compare(limit, sizes=(40, 160), samples=100)
print(comparison)

figure = Figure(figsize=(7, 3.8), layout="constrained")
axes = figure.subplots()
comparison.predictions["risk_curve"].draw(axes, comparison.trials["risk_curve"])
axes.set_title("Minimum-norm least squares: more parameters, less error, again")
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "double-descent.png", dpi=150)
