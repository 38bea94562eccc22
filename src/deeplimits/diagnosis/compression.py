"""A fully connected network made of few bits whose kernel on the user's data is that of the original at its start."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from deeplimits.ensembles.few_level_networks import FewLevelNetwork, few_level_network, gaussian_features
from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.measure.adapters.affine_reading import AffineNetwork, affine_layers
from deeplimits.models.activations import Activation, ActivationLike, rescaled
from deeplimits.models.architectures import FullyConnected
from deeplimits.numerics import arguments
from deeplimits.theory.mixtures.activation_moments import layer_moments
from deeplimits.theory.mixtures.few_levels import Match, staircase_match
from deeplimits.theory.mixtures.gaussian_mixtures import kernel_data
from deeplimits.theory.mixtures.kernel_equivalents import equivalent_kernel
from deeplimits.theory.mixtures.layer_equivalents import deep_coefficients

KERNEL_POINTS = 600
"""Points on which kernels are compared."""
EXACT_BELOW = 1e-12
RIDGES = np.geomspace(1e-6, 1e2, 33)
"""In units of the mean squared length of the features."""
LEAST = 1e-3
"""Of the ridge that was asked for: so much is left of it."""


class Change(NamedTuple):
    """|P(K − K')P|/|PKP|, P taking off the mean, of the original's kernel K at its start and another K'."""

    predicted: float
    """By the theory, at infinite width: what is left is a multiple of the identity, which a ridge makes up for."""
    predicted_with_ridge: float
    """The same with that multiple made up for."""
    measured: float
    """Of the compressed network, at its width, against a dense random one."""
    chance: float
    """Of two dense random networks of this width: what is measured cannot be below it, on average."""
    learned: float
    """Of the user's own weights, up to a factor: how far training has moved the kernel. nan for a description."""


class Accuracy(NamedTuple):
    """Share of right answers on the test data; with targets that are no labels, the share of explained variance."""

    original: float
    """The user's network as it is; nan for a description."""
    dense: float
    """Dense random weights in its place, with a fitted last layer."""
    compressed: float


class Memory(NamedTuple):
    """Bytes of all parameters, the last layer in single precision included."""

    original: int
    compressed: int


class Compression(NamedTuple):
    """A compressed network and what it costs."""

    network: FewLevelNetwork
    matches: tuple[Match, ...]
    change: Change
    accuracy: Accuracy
    memory: Memory
    ridge: float
    """λ behind the compressed features; where one was given, less than that by what the identity gained."""
    head: np.ndarray
    """The last layer, a row for each feature and one more for the constant."""
    centre: np.ndarray
    scale: float
    classes: np.ndarray | None

    def outputs(self, x: Any) -> np.ndarray:
        """Outputs at new inputs, one in each row."""
        points = arguments.array("x", x, ("n", len(self.centre)), why="as many columns as the network has inputs")
        phi = self.network.features((np.asarray(points) - self.centre) / self.scale)
        return phi @ self.head[:-1] + self.head[-1]

    def predict(self, x: Any) -> np.ndarray:
        """Labels at new inputs, or outputs where there are no classes."""
        found = self.outputs(x)
        return found if self.classes is None else self.classes[np.argmax(found, axis=1)]

    def __repr__(self) -> str:
        change, accuracy, memory = self.change, self.accuracy, self.memory
        levels = ", ".join(str(len(match.jumps) + 1) for match in self.matches)
        return "\n".join(
            [
                f"Compression into ternary weights and activations of {levels} levels",
                f"  memory    {memory.original:,} -> {memory.compressed:,} bytes",
                f"  kernel    changed by {change.predicted:.3g} predicted, {change.predicted_with_ridge:.3g} with the "
                f"ridge adapted, {change.measured:.3g} measured ({change.chance:.3g} by chance at this width)",
                f"  accuracy  {accuracy.original:.4g} original, {accuracy.dense:.4g} dense random, "
                f"{accuracy.compressed:.4g} compressed",
            ]
        )


def compress(
    network: Any,
    x: Any,
    y: Any,
    *,
    sparsity: float = 0.9,
    levels: int | Sequence[int] = 3,
    ridge: float | None = None,
    widths: int | Sequence[int] | None = None,
    test: tuple[Any, Any] | None = None,
    activation: ActivationLike | None = None,
    parameters: Any = None,
    seed: int = 0,
) -> Compression:
    """A network of sparse ternary weights and few-level activations with the kernel of a given one at its start.

    Setting     a fully connected network of PyTorch or JAX as in `measure.adapters.affine_layers`, or a description
                (`models.FullyConnected`) with `widths`; training data x (rows) and y (labels, or numbers); the last
                layer is fitted by ridge regression, with the λ of least leave-one-out error, or `ridge` times the mean
                squared length of the features; a fifth of the data is kept for `test` unless given
    Result      weights 0 (a share `sparsity`) and ±1, activations of `levels` levels (one number, or one for each
                layer) with the E σ', E σ'' and E[σ'² + σσ''] of the original at its own scales: the conjugate kernel
                on a mixture keeps α₁, α₂, α₃, and only its multiple of the identity changes, which a given
                ridge makes up for as far as it stays positive
    Validity    data like a mixture in high dimension; the kernel is that of the original's layers at random weights of
                the same variances, not what training made of them (`change.learned` says how much that is); biases are
                left out. The tangent kernel keeps β₁, β₂, β₃ and has an infinite diagonal, as activations jump
    References  gu2022; ali2022

    >>> import numpy as np
    >>> from deeplimits.models.architectures import FullyConnected
    >>> random = np.random.default_rng(0)
    >>> y = random.integers(0, 2, 200)
    >>> x = random.standard_normal((200, 30)) + 1.5 * (2 * y[:, None] - 1) * (np.arange(30) < 4)
    >>> found = compress(FullyConnected(1, "relu"), x, y, widths=400)
    >>> found.memory.compressed < found.memory.original / 5, found.accuracy.compressed > 0.9
    (True, True)
    """
    share = float(arguments.number("sparsity", sparsity, arguments.Allowed(lambda s: (s >= 0) & (s < 1), "in [0, 1)")))
    penalty = None if ridge is None else float(arguments.number("ridge", ridge, arguments.POSITIVE))
    arguments.whole("seed", seed)
    given = _split(x, y, test, seed)
    centre = given.x.mean(axis=0)
    scale = float(np.sqrt(np.mean((given.x - centre) ** 2)))
    if not scale > 0:
        raise ParameterError("x is constant; a network sees nothing in it")
    points, new = (given.x - centre) / scale, (given.test_x - centre) / scale
    original, described = _described(network, given.x, widths, activation, parameters, scale)
    means = [float(mean) for mean in deep_coefficients(described.activations, 1.0).means]
    matches = _matched(described.activations, levels)
    compressed = few_level_network(
        seed, [match.activation for match in matches], _means(matches), described.sizes, share
    )
    dense = [gaussian_features(seed + 1 + k, described.activations, means, described.sizes, points) for k in range(2)]
    dense_new = gaussian_features(seed + 1, described.activations, means, described.sizes, new)
    few = compressed.features(points)

    targets, classes = _targets(given.y)
    if penalty is None:
        adapted, asked = _best_ridge(few, targets), _best_ridge(dense[0], targets)
    else:
        # λ' = λ + d₀(original) − d₀(compressed), both at infinite width; K = ΦΦ', so that λ is in its units.
        asked = penalty * float(np.mean(np.sum(dense[0] ** 2, axis=1)))
        before = float(deep_coefficients(described.activations, 1.0).conjugate[-1].diagonal)
        adapted = max(asked - (matches[-1].variance - before), LEAST * asked)
    head, dense_head = _fitted(few, targets, adapted), _fitted(dense[0], targets, asked)
    accuracy = Accuracy(
        math.nan if original is None else _score(original.outputs(given.test_x), given.test_y, classes),
        _score(dense_new @ dense_head[:-1] + dense_head[-1], given.test_y, classes),
        _score(compressed.features(new) @ head[:-1] + head[-1], given.test_y, classes),
    )
    chosen = slice(0, min(KERNEL_POINTS, len(points)))
    kernels = [part[chosen] @ part[chosen].T for part in (dense[0], dense[1], few)]
    predicted = _predicted(described.activations, matches, points[chosen], given.y[chosen], classes)
    learned = math.nan
    if original is not None:
        hidden = original.hidden(given.x[chosen])
        own = hidden @ hidden.T / hidden.shape[1]
        learned = _distance(kernels[0], own * np.sum(own * kernels[0]) / max(np.sum(own**2), 1e-300))
    outputs = targets.shape[1]
    head_bytes = 4 * (described.sizes[-1] + 1) * outputs
    whole = sum(a * b for a, b in zip(described.sizes[:-1], described.sizes[1:], strict=True)) * 4 + head_bytes
    change = Change(*predicted, _distance(kernels[0], kernels[2]), _distance(kernels[0], kernels[1]), learned)
    memory = Memory(whole if original is None else original.bytes, compressed.bytes + head_bytes)
    return Compression(compressed, matches, change, accuracy, memory, adapted, head, centre, scale, classes)


class _Given(NamedTuple):
    x: np.ndarray
    y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


def _split(x: Any, y: Any, test: Any, seed: int) -> _Given:
    points = np.asarray(arguments.array("x", x, ("n", "p"), why="one input in each row"))
    labels = np.asarray(y)
    if labels.shape[:1] != points.shape[:1] or labels.ndim > 2:
        raise ParameterError(
            f"y has shape {labels.shape}; give a label, or a row of targets, for each of {len(points)} rows"
        )
    if labels.dtype.kind == "f" and not np.all(np.isfinite(labels)):
        raise ParameterError("y holds values that are not finite; leave these rows out")
    if test is not None:
        if not isinstance(test, tuple) or len(test) != 2:
            raise ParameterError("test must be a pair (x, y) of further inputs and labels")
        new = np.asarray(arguments.array("test[0]", test[0], ("m", points.shape[1]), why="as many columns as x"))
        marks = np.asarray(test[1])
        if marks.shape != (len(new), *labels.shape[1:]):
            raise ParameterError(f"test[1] has shape {marks.shape}; give one label for each of {len(new)} rows")
        return _Given(points, labels, new, marks)
    if len(points) < 10:
        raise ParameterError(f"x has {len(points)} rows; ten are needed to keep a fifth for testing, or give test")
    order = np.random.default_rng(seed).permutation(len(points))
    kept = order[len(points) // 5 :]
    held = order[: len(points) // 5]
    return _Given(points[kept], labels[kept], points[held], labels[held])


class _Described(NamedTuple):
    activations: tuple[Activation, ...]
    sizes: tuple[int, ...]


def _described(network: Any, x: np.ndarray, widths: Any, activation: Any, parameters: Any, scale: float):
    """The user's layers, if any, and the network at its start: σ_l(√C_w u) for weights of unit variance."""
    inputs = x.shape[1]
    if isinstance(network, FullyConnected):
        if network.residual or network.layer_norm:
            raise OutsideValidity("a network with skips or layer norm has no equivalent here; take a plain one")
        if not network.hidden_layers:
            raise ParameterError("the description has no hidden layer; there is nothing to compress")
        if widths is None:
            raise ParameterError("a description has no widths; give widths=, one number or one for each hidden layer")
        hidden = [widths] * network.hidden_layers if isinstance(widths, int) else list(widths)
        if len(hidden) != network.hidden_layers:
            raise ParameterError(f"widths has {len(hidden)} entries; give one, or {network.hidden_layers}")
        sizes = [arguments.whole("widths", width, 1) for width in hidden]
        variances = [float(c) for c in network.weight_variance[:-1]]
        variances[0] *= scale**2
        return None, _scaled(network.activations, variances, (inputs, *sizes))
    original: AffineNetwork = affine_layers(network, x, activation=activation, parameters=parameters)
    if widths is not None:
        raise ParameterError("widths are those of the network; give none")
    variances = [float(np.mean(weight**2)) * weight.shape[1] for weight in original.weights[:-1]]
    variances[0] *= scale**2
    return original, _scaled(original.activations, variances, (inputs, *original.widths))


def _scaled(activations: Sequence[Activation], variances: Sequence[float], sizes: tuple[int, ...]) -> _Described:
    if not all(variance > 0 for variance in variances):
        raise OutsideValidity("a layer has weights that are all zero; it passes nothing on")
    made = tuple(
        one if abs(variance - 1) < EXACT_BELOW else rescaled(one, math.sqrt(variance))
        for one, variance in zip(activations, variances, strict=True)
    )
    return _Described(made, sizes)


def _matched(activations: Sequence[Activation], levels: int | Sequence[int]) -> tuple[Match, ...]:
    counts = [levels] * len(activations) if isinstance(levels, int) else list(levels)
    if len(counts) != len(activations):
        raise ParameterError(
            f"levels has {len(counts)} entries; give one, or one for each of {len(activations)} layers"
        )
    # Before and behind each layer: variances of the original and of the compressed network.
    found, wide, narrow = [], 1.0, 1.0
    for one, count in zip(activations, counts, strict=True):
        match = staircase_match(one, wide, levels=count, scale=math.sqrt(narrow / wide))
        found.append(match)
        wide, narrow = float(layer_moments(one, wide).variance), match.variance
    return tuple(found)


def _means(matches: Sequence[Match]) -> list[float]:
    """E σ of each staircase at the scale that the one before it leaves."""
    found, variance = [], 1.0
    for match in matches:
        found.append(float(layer_moments(match.activation, variance).mean))
        variance = match.variance
    return found


def _predicted(activations, matches, points, y, classes) -> tuple[float, float]:
    marks = np.zeros(len(points), int) if classes is None else np.searchsorted(classes, y)
    # Classes of fewer than two points say nothing of a covariance.
    if np.any(np.bincount(marks, minlength=1) < 2):
        marks = np.zeros(len(points), int)
    data = kernel_data(points, marks)
    old = deep_coefficients(activations, 1.0).conjugate[-1]
    new = deep_coefficients([match.activation for match in matches], 1.0).conjugate[-1]
    first, second = (np.asarray(equivalent_kernel(one, data).matrix()) for one in (old, new))
    repaired = second + (float(old.diagonal) - float(new.diagonal)) * np.eye(len(points))
    return _distance(first, second), _distance(first, repaired)


def _distance(one: np.ndarray, other: np.ndarray) -> float:
    def centred(matrix):
        matrix = matrix - matrix.mean(axis=0)
        return matrix - matrix.mean(axis=1)[:, None]

    size = np.linalg.norm(centred(one), 2)
    return float(np.linalg.norm(centred(one - other), 2) / max(size, 1e-300))


class _Targets(NamedTuple):
    values: np.ndarray
    classes: np.ndarray | None


def _targets(y: np.ndarray) -> _Targets:
    """±1 for each class of labels; numbers as they are."""
    if y.ndim == 1 and (y.dtype.kind not in "f" or np.all(y == np.round(y))):
        classes = np.unique(y)
        if len(classes) < 2:
            raise ParameterError(f"all labels are {classes[0]}; two classes are needed")
        return _Targets(2.0 * (y[:, None] == classes[None, :]) - 1, classes)
    return _Targets(np.asarray(y, float).reshape(len(y), -1), None)


def _fitted(phi: np.ndarray, targets: np.ndarray, ridge: float) -> np.ndarray:
    """Ridge regression with a constant that is not penalized: Σ|y − Φa − b|² + λ|a|², a rows, b the last one."""
    phi = np.asarray(phi, float)
    mean, level = phi.mean(axis=0), targets.mean(axis=0)
    inner = phi - mean
    if phi.shape[1] <= phi.shape[0]:
        a = np.linalg.solve(inner.T @ inner + ridge * np.eye(phi.shape[1]), inner.T @ (targets - level))
    else:
        a = inner.T @ np.linalg.solve(inner @ inner.T + ridge * np.eye(phi.shape[0]), targets - level)
    return np.concatenate([a, (level - mean @ a)[None, :]])


def _best_ridge(phi: np.ndarray, targets: np.ndarray) -> float:
    """The λ of least leave-one-out error, which is (y − ŷ)/(1 − H_ii) at each point."""
    inner = np.asarray(phi, float) - phi.mean(axis=0)
    u, s, _ = np.linalg.svd(inner, full_matrices=False)
    y, size = targets - targets.mean(axis=0), float(np.sum(inner**2) / len(inner))
    errors = []
    for ridge in RIDGES * size:
        shrunk = s**2 / (s**2 + ridge)
        own = np.sum(u**2 * shrunk, axis=1) + 1 / len(inner)
        errors.append(
            float(np.mean(((y - u @ (shrunk[:, None] * (u.T @ y))) / np.maximum(1 - own, 1e-9)[:, None]) ** 2))
        )
    return float(RIDGES[int(np.argmin(errors))] * size)


def _score(outputs: np.ndarray, y: np.ndarray, classes: np.ndarray | None) -> float:
    if classes is None:
        wanted = np.asarray(y, float).reshape(len(y), -1)
        outputs = outputs.reshape(wanted.shape)
        return float(1 - np.sum((wanted - outputs) ** 2) / np.sum((wanted - wanted.mean(axis=0)) ** 2))
    if outputs.shape[1] == 1 and len(classes) == 2:
        # One output that is positive for the second class.
        return float(np.mean(classes[(outputs[:, 0] > 0).astype(int)] == y))
    if outputs.shape[1] != len(classes):
        raise ParameterError(
            f"the network has {outputs.shape[1]} outputs and the data {len(classes)} classes; give as many outputs"
        )
    return float(np.mean(classes[np.argmax(outputs, axis=1)] == y))
