"""Questions about alignment with outlier eigenspaces that have no theorem yet."""

from typing import NamedTuple


class Direction(NamedTuple):
    """One question, as it stands on the page of open directions."""

    title: str
    question: str
    start: tuple[str, ...]
    """Names of the catalogue that an experiment could start from."""


DIRECTIONS = (
    Direction(
        "Preconditioned methods",
        "Does preconditioning along the outlier space change the time to leave the start, or the level of alignment?",
        ("kgmm-hessian-g-blocks",),
    ),
    Direction(
        "Reused batches",
        "What are the spectra of training matrices, on whose samples the weights depend?",
        ("weighted-covariance-spectrum",),
    ),
    Direction(
        "Heavy tails",
        "Which outliers are classes and which are rare samples, where the bulk has no edge?",
        ("kgmm-hessian-g-blocks",),
    ),
    Direction(
        "Transfer between layers",
        "In which order do the layers of a deep network align, and does one layer's alignment cause the next one's?",
        ("xor-alignment-theorems",),
    ),
    Direction(
        "Finite ratios",
        "When does each outlier cross the threshold along training, with finitely many test samples per dimension?",
        ("weighted-covariance-spectrum", "kgmm-alignment-theorems"),
    ),
    Direction(
        "The edge of stability",
        "Why do networks sharpen up to the edge, and what holds them there?",
        ("edge-of-stability",),
    ),
)


def open_directions() -> tuple[Direction, ...]:
    """What is asked about alignment with outlier eigenspaces and not known: no prediction, and nothing to test.

    Setting     preconditioned methods, reused batches, heavy tails, transfer between layers, finite ratios of samples
                to dimension, the edge of stability
    Result      for each a question and the names of the catalogue that an experiment could start from; what is known
                about it stands on the page 'Open directions' of the documentation, docs/open_directions.md
    Validity    questions, not statements: there is nothing to agree with
    References  benarous2024

    >>> [one.title for one in open_directions()][:2]
    ['Preconditioned methods', 'Reused batches']
    """
    return DIRECTIONS
