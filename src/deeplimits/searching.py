"""Words to search the catalogue by: without hyphens, and with their synonyms."""

import re

WHO = ("glorot", "he", "kaiming", "xavier")
"""By whom the usual initial variances are called."""
SYNONYMS = {
    "bbp": ("spike", "outlier"),
    "bias variance tradeoff": ("bias variance",),
    "chaos": ("order chaos",),
    "edge of chaos": ("order chaos", "criticality"),
    "gaussian ensemble": ("gaussian matrix", "gaussian β ensemble"),
    "gaussian orthogonal ensemble": ("goe",),
    "gaussian unitary ensemble": ("gue",),
    "gp": ("gaussian process", "kernel ridge"),
    "gradient descent": ("gradient flow",),
    "grokking": ("lazy",),
    **{f"{who}{what}": ("critical initialization",) for who in WHO for what in (" initialization", " init", "")},
    "infinite width": ("wide networks",),
    "learning rate": ("step",),
    "max margin": ("hard margin", "maximum margin"),
    "my": ("given", "your"),
    "momentum": ("nesterov",),
    "mp law": ("marchenko pastur",),
    "neural tangent kernel": ("ntk", "tangent kernel"),
    "nngp": ("conjugate kernel", "nngp"),
    "ntk": ("tangent kernel",),
    "own": ("given", "your"),
    "optimal transport": ("wasserstein",),
    "pca": ("spike", "principal component"),
    "regularization": ("ridge", "early stopping"),
    "support vector machine": ("hard margin",),
    "svm": ("hard margin", "support vector"),
    "transformer": ("attention",),
    "wigner": ("goe", "semicircle"),
    "weight decay": ("ridge",),
    **dict.fromkeys(
        ("elu", "gelu", "mish", "selu", "sigmoid", "silu", "softplus", "softsign", "swish"), ("activation",)
    ),
}
"""What one may also mean by a phrase."""


def plain(text: str) -> str:
    """In small letters, hyphens and underscores as spaces.

    >>> plain("Edge-of-chaos in two_layer networks")
    'edge of chaos in two layer networks'
    """
    return re.sub(r"[-_–\s]+", " ", text.lower()).strip()


def meant(query: str) -> list[list[str]]:
    """The words of a query, and those of each other way to say it.

    >>> meant("SVM")
    [['svm'], ['hard', 'margin'], ['support', 'vector']]
    """
    query = plain(query)
    found = [query]
    for phrase, others in SYNONYMS.items():
        if re.search(rf"\b{phrase}s?\b", query):
            found += [re.sub(rf"\b{phrase}s?\b", other, query) for other in others]
    return [one.split() for one in dict.fromkeys(found)]


def matches(text: str, wanted: list[list[str]]) -> bool:
    """Whether a text has all words of one of the ways to say it; the shortest ones as whole words."""

    def has(word: str) -> bool:
        return word in text.split() if len(word) < 3 else word in text or word.removesuffix("s") in text

    return any(all(map(has, words)) for words in wanted)
