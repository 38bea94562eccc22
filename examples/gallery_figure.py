"""A figure of the gallery from Python: with its captions and checks, its numbers, and with data of one's own.

python examples/gallery_figure.py "A sentence of yours." "And another one."
"""

import sys

from deeplimits import gallery
from deeplimits.gallery import Run

# Computed step by step; with out="figures" PNG, SVG, JSON and the finished steps are kept there.
made = gallery.make("marchenko-pastur", size="small")
print(made)
print(made.data["c = 2"][-3:])  # what was computed, by name: the largest eigenvalues
made.plot().savefig("marchenko-pastur.png", dpi=150)  # a matplotlib figure

# A figure is a module with compute, draw and check; some take data of the user's.
figure = gallery.find("encoder-tokens").load()
data = figure.compute(Run("full"), sentences=sys.argv[1:] or figure.SENTENCES)
print("mean cosine of two tokens, from the embedding to the last layer:", data["encoder mean"].round(2).tolist())
