"""The linear regions of networks on digits, before and after training: exact breakpoints, exact polygons.

A ReLU network 64-32-32-10 and a small convolutional network with batch norm and pooling, on scikit-learn's digits.
Above before, below after training: the logits of the first along the segment between two images, with all its
breakpoints by layer beside the number that is expected at initialization; and the regions of both in the plane
x_0 + u(x_1 − x_0) + v(x_2 − x_0) through three images, coloured by the class that the network says in the middle of
each. Every number is checked against dense evaluation. Half a minute:

    python examples/digits_regions.py digits-regions.png
"""

import argparse

import numpy as np
import torch
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from sklearn.datasets import load_digits

from deeplimits.measure import regions
from deeplimits.theory import expressivity

WEIGHT_VARIANCE, BIAS_VARIANCE = 2.0, 0.1
DENSE = 20_001


def networks():
    """A fully connected network with the weights that the theory speaks of, and a convolutional one."""
    plain = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 32), torch.nn.ReLU(),
        torch.nn.Linear(32, 10),
    )  # fmt: skip
    with torch.no_grad():
        for layer in plain:
            if isinstance(layer, torch.nn.Linear):
                layer.weight.normal_(0, (WEIGHT_VARIANCE / layer.in_features) ** 0.5)
                layer.bias.normal_(0, BIAS_VARIANCE**0.5)
    convolutional = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(4, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
        torch.nn.Linear(32, 10),
    )  # fmt: skip
    return {"fully connected": plain.double(), "convolutional": convolutional.double()}


def trained(network, x, y, steps):
    """The network after some steps of Adam."""
    optimizer, loss = torch.optim.Adam(network.parameters(), lr=3e-3), torch.nn.CrossEntropyLoss()
    network.train()
    for _ in range(steps):
        optimizer.zero_grad()
        loss(network(x), y).backward()
        optimizer.step()
    network.eval()
    with torch.no_grad():
        return float((network(x).argmax(dim=1) == y).double().mean())


def largest_miss(network, ends, line):
    """How far the network is from the pieces at many points of the segment."""
    t = np.linspace(0, 1, DENSE)
    points = ends[0] + t[:, None, None, None] * (ends[1] - ends[0])
    with torch.no_grad():
        exact = network.eval()(torch.as_tensor(points)).numpy()
    return float(np.abs(exact - line.at(t)).max())


def draw_line(axes, line, expected):
    axes.plot(line.nodes, line.outputs, lw=0.8)
    low, high = axes.get_ylim()
    # Room for the marks of the breakpoints below, and for the legend above
    axes.set_ylim(low - 0.2 * (high - low), high + 0.25 * (high - low))
    for layer, name in enumerate(("first", "second")):
        places = line.breakpoints[line.layers == layer]
        wanted = f", {expected[layer]:.1f} expected at random" if expected is not None else ""
        axes.plot(places, np.full(len(places), low - (layer + 1) * 0.06 * (high - low)), "|", ms=9,
                  color="k" if layer else "tab:red",
                  label=f"{name} layer: {line.crossings[layer]} breakpoints{wanted}")  # fmt: skip
    axes.legend(loc="upper left", fontsize=7)
    axes.set_xlabel("from a 3 to an 8")
    axes.set_ylabel("logits, coloured as on the right")


def draw_plane(axes, plane, title):
    classes = [int(one.mean(axis=0).argmax()) for one in plane.outputs]
    colours = [f"C{k}" for k in classes]
    axes.add_collection(PolyCollection(plane.polygons, facecolors=colours, edgecolors="k", linewidths=0.15, alpha=0.6))
    for (u, v), digit in zip(((0, 0), (1, 0), (0, 1)), (3, 8, 5), strict=True):
        axes.annotate(str(digit), (u, v), ha="center", va="center", fontsize=9, bbox={"fc": "w", "pad": 1.5, "lw": 0.4})
    handles = [Patch(color=f"C{k}", alpha=0.6, label=str(k)) for k in sorted(set(classes))]
    axes.legend(
        handles=handles, title="the network says", title_fontsize=7, fontsize=7, loc="lower right", framealpha=1
    )
    axes.autoscale()
    axes.set_aspect("equal")
    axes.set(xlabel="u", ylabel="v")
    axes.set_title(f"{title}: {len(plane.polygons)} regions", fontsize=9)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", nargs="?", default="digits-regions.png")
    parser.add_argument("--steps", type=int, default=300)
    options = parser.parse_args()
    digits = load_digits()
    x, y = torch.tensor(digits.images[:, None] / 8 - 1), torch.tensor(digits.target)
    three = np.stack([x[int(np.flatnonzero(digits.target == digit)[0])].numpy() for digit in (3, 8, 5)])
    expected = expressivity.expected_breakpoints(
        three[0].ravel(), (three[1] - three[0]).ravel(), 0.0, 1.0, WEIGHT_VARIANCE, BIAS_VARIANCE, [32, 32]
    ).layers
    figure = Figure(figsize=(13, 8), layout="constrained")
    rows = figure.subplots(2, 3)
    torch.manual_seed(0)
    both = networks()
    for row, when in zip(rows, ("before training", "after training"), strict=True):
        for place, (name, network) in enumerate(both.items()):
            score = trained(network, x, y, options.steps if when == "after training" else 0)
            line = regions.line_pieces(network, three[:2])
            plane = regions.plane_regions(network, three, margin=0.3)
            print(
                f"{name}, {when}: accuracy {score:.3f}; {len(line.breakpoints)} breakpoints, {line.visible.sum()} of "
                f"them visible, {dict(zip(line.names, line.crossings.tolist(), strict=True))}; off by "
                f"{largest_miss(network, three, line):.1e} at {DENSE} points; {len(plane.polygons)} regions in the "
                f"plane, off by {plane.residual:.1e}"
            )
            if not place:
                draw_line(row[0], line, np.asarray(expected))
                row[0].set_title(f"fully connected, {when}", fontsize=9)
            draw_plane(row[1 + place], plane, f"{name}, {when}")
    figure.savefig(options.path, dpi=150)


if __name__ == "__main__":
    main()
