"""Networks whose state is known: freshly drawn ones that are well initialized, and ones broken in one known way."""

import itertools
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.datasets import load_digits

from deeplimits import diagnose
from deeplimits.diagnosis import Optimizer, largest_stable_step

loss = torch.nn.CrossEntropyLoss()
ACTIVATIONS = {"relu": torch.nn.ReLU, "tanh": torch.nn.Tanh, "gelu": torch.nn.GELU}
CRITICAL = {"relu": (2.0, 0.0), "tanh": (1.0, 0.0), "gelu": (1.98, 0.17)}


class Specimen(NamedTuple):
    """A network with its data and step; how it was broken, the findings that say so, and the words they must hold."""

    net: torch.nn.Module
    data: tuple[np.ndarray, np.ndarray]
    optimizer: Any
    fault: str = ""
    names: tuple[str, ...] = ()
    words: str = ""


def digits(count=200):
    data = load_digits()
    x = data.data[:count] / 16
    return (x - x.mean(axis=0)).astype("float32"), data.target[:count].copy()


def fully_connected(widths, activation="relu", variances=None):
    """Gaussian weights of variance C_w/fan-in, biases of variance C_b, from PyTorch's generator."""
    c_w, c_b = CRITICAL[activation] if variances is None else variances
    layers = []
    for inside, outside in itertools.pairwise(widths):
        layer = torch.nn.Linear(inside, outside)
        torch.nn.init.normal_(layer.weight, std=(c_w / inside) ** 0.5)
        torch.nn.init.normal_(layer.bias, std=c_b**0.5)
        layers += [layer, ACTIVATIONS[activation]()]
    return torch.nn.Sequential(*layers[:-1])


class Residual(torch.nn.Module):
    """x + branch(x), the branch of variance `share` at the start."""

    def __init__(self, width, share, norm):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width) if norm else torch.nn.Identity()
        self.first, self.second = torch.nn.Linear(width, width), torch.nn.Linear(width, width)
        for layer, c_w in ((self.first, 2.0), (self.second, share)):
            torch.nn.init.normal_(layer.weight, std=(c_w / width) ** 0.5)
            torch.nn.init.zeros_(layer.bias)

    def forward(self, x):
        return x + self.second(torch.relu(self.first(self.norm(x))))


def residual(width, blocks, norm):
    head = torch.nn.Linear(width, 10)
    torch.nn.init.normal_(head.weight, std=width**-0.5)
    stem = torch.nn.Linear(64, width)
    torch.nn.init.normal_(stem.weight, std=64**-0.5)
    return torch.nn.Sequential(stem, *(Residual(width, 1 / blocks, norm) for _ in range(blocks)), head)


def convolutional(channels, layers):
    parts, before = [], 1
    for _ in range(layers):
        layer = torch.nn.Conv2d(before, channels, 3, padding=1)
        torch.nn.init.normal_(layer.weight, std=(2 / (9 * before)) ** 0.5)
        torch.nn.init.zeros_(layer.bias)
        parts += [layer, torch.nn.ReLU()]
        before = channels
    return torch.nn.Sequential(
        torch.nn.Unflatten(1, (1, 8, 8)), *parts, torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten(),
        torch.nn.Linear(4 * channels, 10),
    )  # fmt: skip


class Branch(torch.nn.Module):
    """x + convolutions of it, each behind a batch norm."""

    def __init__(self, channels, blocks):
        super().__init__()
        parts = []
        for c_w in (2.0, 1 / blocks):
            layer = torch.nn.Conv2d(channels, channels, 3, padding=1, bias=False)
            torch.nn.init.normal_(layer.weight, std=(c_w / (9 * channels)) ** 0.5)
            parts += [torch.nn.BatchNorm2d(channels), torch.nn.ReLU(), layer]
        self.branch = torch.nn.Sequential(*parts)

    def forward(self, x):
        return x + self.branch(x)


def convolutional_residual(channels, blocks):
    """A residual network for images of one channel."""
    stem = torch.nn.Conv2d(1, channels, 3, padding=1)
    torch.nn.init.normal_(stem.weight, std=1 / 3)
    return torch.nn.Sequential(
        stem, *(Branch(channels, blocks) for _ in range(blocks)), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
        torch.nn.Linear(channels, 10),
    )  # fmt: skip


TOKENS = np.random.default_rng(0).integers(0, 50, (40, 6))
LABELS = np.arange(40) % 5


class Sequences(torch.nn.Module):
    """A small transformer of PyTorch's own layers."""

    def __init__(self, width=32, first=True):
        super().__init__()
        self.words = torch.nn.Embedding(50, width)
        self.places = torch.nn.Parameter(torch.randn(6, width) * 0.1)
        layer = torch.nn.TransformerEncoderLayer(
            width, 4, 2 * width, batch_first=True, norm_first=first, activation="gelu"
        )
        self.blocks = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = torch.nn.Linear(width, 5)

    def forward(self, x):
        return self.head(self.blocks(self.words(x) + self.places).mean(1))


def largest_step(net, data):
    """The largest stable step of gradient descent, from the report without an optimizer."""
    found = diagnose(net, loss, data, only=("learning rate",), budget="1h")["step-size"]
    return largest_stable_step(Optimizer("gd", 1.0), float(found.measured.value))


def healthy(seed):
    """A well-initialized network of a random kind, width and depth, with a third of the largest stable step."""
    random = np.random.default_rng([seed, 1])
    torch.manual_seed(seed)
    kind = random.choice(["chain", "chain", "chain", "residual", "convolutional"])
    width, data = int(random.integers(40, 160)), digits()
    if kind == "residual":
        net = residual(width, int(random.integers(2, 9)), bool(random.integers(2)))
    elif kind == "convolutional":
        net = convolutional(int(random.integers(8, 24)), int(random.integers(1, 5)))
    else:
        net = fully_connected((64, *[width] * int(random.integers(1, 12)), 10), random.choice(list(ACTIVATIONS)))
    return Specimen(net, data, ("gd", largest_step(net, data) / 3))


FAULTS = (
    "weights times 2", "weights times 0.3", "one layer times 2", "one layer times 0.3", "a dead layer",
    "a layer of zeros", "a step 3 times too large", "a duplicated class", "NaN in one weight",
    "an exploding residual branch",
)  # fmt: skip
SCALES = ("weight-scale", "signal-size", "gradient-size", "depth-scale")


def broken(fault, seed):
    """A well-initialized network, broken in this way."""
    random = np.random.default_rng([seed, 2, FAULTS.index(fault)])
    torch.manual_seed(1000 + seed)
    width, depth, data = int(random.integers(60, 140)), int(random.integers(4, 11)), digits()
    activation = random.choice(["relu", "tanh"]) if "dead" not in fault else "relu"
    net = fully_connected((64, *[width] * depth, 10), activation)
    linear = {name: one for name, one in net.named_modules() if isinstance(one, torch.nn.Linear)}
    name = random.choice(list(linear)[1:-1])
    step = ("gd", largest_step(net, data) / 3)
    names, words = (), ""
    with torch.no_grad():
        if fault.startswith("weights times"):
            for one in linear.values():
                one.weight *= float(fault.split()[-1])
            names = SCALES
        elif fault.startswith("one layer"):
            linear[name].weight.mul_(float(fault.split()[-1]))
            names, words = ("weight-scale",), f"layer {name} "
        elif fault == "a dead layer":
            linear[name].bias.sub_(100.0)
            names, words = ("idle-units",), f"layer {name} "
        elif fault == "a layer of zeros":
            linear[name].weight.zero_()
            names, words = ("zero-weights",), f"{name}.weight"
        elif fault == "a step 3 times too large":
            step, names = ("gd", 9 * step[1]), ("step-size",)
        elif fault == "a duplicated class":
            x, y = data
            one, other = random.choice(10, 2, replace=False)
            x[y == other] = np.resize(x[y == one], (np.sum(y == other), 64))
            names, words = ("contradictions",), f"Classes {min(one, other)} and {max(one, other)} "
        elif fault == "NaN in one weight":
            linear[name].weight[3, 5] = float("nan")
            names, words = ("broken-parameters",), f"{name}.weight"
        else:
            net = residual(width, depth, bool(random.integers(2)))
            step = ("gd", largest_step(net, data) / 3)
            place = int(random.integers(1, depth + 1))
            net[place].second.weight *= 30.0
            names, words = ("residual-branches",), f"{place}.second"
    if names != ("step-size",) and "NaN" not in fault and "zeros" not in fault and "dead" not in fault:
        step = ("gd", largest_step(net, data) / 3)
    return Specimen(net, data, step, fault, names, words)


def named_first(one, report):
    """Whether the report's first finding is the fault."""
    first = report.findings[0]
    return first.name in one.names and one.words in first.sentence and first.severity in ("critical", "warning", "note")
