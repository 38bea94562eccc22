"""Five networks on scikit-learn's digits, each diagnosed: two that are broken, and three that are not.

A deep tanh network with far too large weights, a ReLU network with too large a step, a well-behaved one, a small
convolutional network and a small transformer that reads an image row by row. Each report becomes a page, and each
picture a file where a folder for them is given:

    python examples/five_reports.py reports/ --pictures pictures/
    deeplimits diagnose examples/five_reports.py:transformer     # one of them, from the shell
"""

import argparse
import itertools
from pathlib import Path

import torch
from sklearn.datasets import load_digits

import deeplimits as dl
from deeplimits.diagnosis import Report

SAMPLES, BATCH = 256, 64
loss = torch.nn.CrossEntropyLoss()


def data(*shape: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Digits, centred, in batches."""
    digits = load_digits()
    x = torch.tensor(digits.data[:SAMPLES] / 16, dtype=torch.float32)
    x = (x - x.mean(dim=0)).reshape(-1, *(shape or (64,)))
    return list(zip(x.split(BATCH), torch.tensor(digits.target[:SAMPLES]).split(BATCH), strict=True))


def fully_connected(widths: list[int], activation: type, variance: float) -> torch.nn.Sequential:
    """Weights of variance `variance`/fan-in, biases 0."""
    layers = []
    for inside, outside in itertools.pairwise(widths):
        linear = torch.nn.Linear(inside, outside)
        torch.nn.init.normal_(linear.weight, std=(variance / inside) ** 0.5)
        torch.nn.init.zeros_(linear.bias)
        layers += [linear, activation()]
    return torch.nn.Sequential(*layers[:-1])


def sgd(net: torch.nn.Module, step: float, momentum: float = 0.0) -> torch.optim.Optimizer:
    return torch.optim.SGD(net.parameters(), lr=step, momentum=momentum)


def tanh_badly_initialized():
    """Fifteen hidden layers of tanh, weights three times too large: chaotic."""
    torch.manual_seed(0)
    net = fully_connected([64, *[60] * 15, 10], torch.nn.Tanh, 9.0)
    return net, loss, data(), sgd(net, 0.01)


def step_too_large():
    """A ReLU network that starts as it should, with ten times the step that it bears."""
    torch.manual_seed(0)
    net = fully_connected([64, 60, 60, 10], torch.nn.ReLU, 2.0)
    return net, loss, data(), sgd(net, 20.0)


def well_behaved():
    """The same network with a step that it bears."""
    torch.manual_seed(0)
    net = fully_connected([64, 60, 60, 10], torch.nn.ReLU, 2.0)
    return net, loss, data(), sgd(net, 0.02, 0.9)


def convolutional():
    """Two convolutions with batch norm and pooling, trained a little."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 12, 3, padding=1), torch.nn.BatchNorm2d(12), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(12, 24, 3, padding=1), torch.nn.BatchNorm2d(24), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(2),
        torch.nn.Flatten(), torch.nn.Dropout(0.1), torch.nn.Linear(96, 10),
    )  # fmt: skip
    batches, optimizer = data(1, 8, 8), sgd(net, 0.05, 0.9)
    for x, y in batches * 10:
        optimizer.zero_grad()
        loss(net(x), y).backward()
        optimizer.step()
    return net.eval(), loss, batches, optimizer


class Rows(torch.nn.Module):
    """A transformer that reads an image as a sequence of its eight rows."""

    def __init__(self, width: int = 32, layers: int = 3):
        super().__init__()
        self.rows, self.places = torch.nn.Linear(8, width), torch.nn.Parameter(0.3 * torch.randn(8, width))
        layer = torch.nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True, norm_first=True, dropout=0.1)
        self.encoder = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm, self.head = torch.nn.LayerNorm(width), torch.nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.encoder(self.rows(x) + self.places)).mean(dim=1))


def transformer():
    """Three blocks, trained by AdamW for some steps, so that Adam's second moments are known."""
    torch.manual_seed(0)
    net, batches = Rows(), data(8, 8)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for x, y in batches * 10:
        optimizer.zero_grad()
        loss(net(x), y).backward()
        optimizer.step()
    return net.eval(), loss, batches, optimizer


NETWORKS = (tanh_badly_initialized, step_too_large, well_behaved, convolutional, transformer)


def main(arguments: list[str] | None = None) -> dict[str, Report]:
    """The reports, by the name of the network; pages and pictures are written."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", default="reports")
    parser.add_argument("--pictures", help="a folder for the picture of every finding")
    parser.add_argument("--budget", default="2m", help="the time for each network")
    parser.add_argument("--only", nargs="+", metavar="PART")
    options = parser.parse_args(arguments)
    Path(options.folder).mkdir(parents=True, exist_ok=True)
    found = {}
    for make in NETWORKS:
        net, criterion, batches, optimizer = make()
        report = dl.diagnose(net, criterion, batches, optimizer=optimizer, budget=options.budget, only=options.only)
        report.to_html(Path(options.folder) / f"{make.__name__}.html")
        print(f"{make.__name__}: {(make.__doc__ or '').strip()}\n{report}\n")
        found[make.__name__] = report
    if options.pictures:
        folder = Path(options.pictures)
        folder.mkdir(parents=True, exist_ok=True)
        for name, report in found.items():
            for one in report.findings:
                if one.picture is not None:
                    report.plot(one.name, folder / f"{name}-{one.name}.png")
    return found


if __name__ == "__main__":
    main()
