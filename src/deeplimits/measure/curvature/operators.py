r"""Curvature matrices of a network over its whole data set, as SciPy linear operators that count their products.

With L(θ) = (1/N) Σ_i l(f(θ, x_i), y_i), J_i = ∂f(θ, x_i)/∂θ, A_i = ∂²l/∂z² and s_i = ∂l/∂z at sample i:

    Hessian          H = G + E
    Gauss-Newton     G = (1/N) Σ J_iᵀ A_i J_i
    residual         E = (1/N) Σ_ik s_ik ∇²f_k(θ, x_i)
    gradient moment  C = (1/N) Σ J_iᵀ s_i s_iᵀ J_i, with the labels of the data ('empirical Fisher')
    Fisher           F = (1/N) Σ_i Σ_c p_i(c) J_iᵀ s_i(c) s_i(c)ᵀ J_i, where p_i(c) = exp(−l(z_i, c)) are the network's
                     own probabilities: exact over the classes, or with labels drawn from them
    tangent kernel   Θ = J Jᵀ, over all samples and outputs

Each is exact over all data: batch after batch is multiplied and summed. What has been linearized is kept as long as it
fits, so that a product costs half of what it costs the first time.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from deeplimits.errors import ParameterError
from deeplimits.measure.adapters.layout import Patterns
from deeplimits.measure.adapters.model import Model
from deeplimits.measure.adapters.network import Labelled, Piece
from deeplimits.numerics import arguments

LARGEST_DENSE = 20_000

Product = Callable[[Piece, np.ndarray], np.ndarray]


class Curvature(LinearOperator):
    """A symmetric matrix known by its products with vectors.

    >>> import jax.numpy as jnp
    >>> from deeplimits.measure.adapters import open_model
    >>> model = open_model(lambda w, x: x @ w, lambda z, y: (z - y) ** 2 / 2, (np.eye(3), np.ones(3)),
    ...                    parameters=jnp.zeros(3))
    >>> matrix = hessian(model)
    >>> (matrix @ np.ones(3)).round(12).tolist(), matrix.products
    ([0.333333333333, 0.333333333333, 0.333333333333], 1)
    """

    def __init__(self, name: str, model: Model, size: int, multiply: Callable[["Curvature", np.ndarray], np.ndarray]):
        super().__init__(np.dtype(float), (size, size))
        self.name, self.model, self.multiply = name, model, multiply
        self.products = 0
        """How many products with a vector have been made."""
        self.seconds = 0.0
        """Time spent in them."""
        self.weights: np.ndarray | None = None
        self.pieces: list[Piece] | None = None

    def _matvec(self, x: np.ndarray) -> np.ndarray:
        begin = time.perf_counter()
        found = self.multiply(self, np.asarray(x, float).ravel())
        self.products += 1
        self.seconds += time.perf_counter() - begin
        if not np.all(np.isfinite(found)):
            where = self.model.broken(found) if found.size == self.model.size else ["the outputs"]
            raise ParameterError(
                f"the product with the {self.name} is NaN or infinite in {', '.join(where[:6])}: the gradient there is "
                "not finite"
            )
        return found

    def _rmatvec(self, x: np.ndarray) -> np.ndarray:
        return self._matvec(x)

    def _adjoint(self) -> "Curvature":
        return self

    def dense(self) -> np.ndarray:
        """The whole matrix, by as many products as it has columns."""
        size = self.shape[0]
        if size > LARGEST_DENSE:
            raise ParameterError(f"a dense matrix of {size:,} rows is too large; at most {LARGEST_DENSE:,} are formed")
        found = np.stack([self._matvec(unit) for unit in np.eye(size)], axis=1)
        return (found + found.T) / 2

    def each_piece(self) -> Any:
        """The data in pieces, which keep their linearizations while they fit."""
        if self.pieces is not None:
            yield from self.pieces
            return
        kept: list[Piece] | None = []
        room = self.model.network.room
        for piece in self.model.pieces(self.weights):
            yield piece
            if kept is not None:
                kept.append(piece)
                kept = kept if sum(one.bytes for one in kept) <= room else None
        self.pieces = kept


def _summed(name: str, model: Model, product: Product, weights: np.ndarray | None = None) -> Curvature:
    def multiply(operator: Curvature, vector: np.ndarray) -> np.ndarray:
        total = np.zeros(model.size)
        for piece in operator.each_piece():
            total += product(piece, vector)
        return total

    found = Curvature(name, model, model.size, multiply)
    found.weights = weights
    return found


def of_label(model: Model, label: int | None) -> np.ndarray | None:
    """1/N at the samples of one class; None for all samples alike."""
    if label is None:
        return None
    labels, count = model.labels(), len(model.classes())
    if arguments.whole("label", label) >= count:
        raise ParameterError(f"label = {label} is not allowed; there are {count} classes, counted from 0")
    return (labels == label) / model.samples


def hessian(model: Model, *, select: Patterns | None = None, label: int | None = None) -> Curvature:
    """H = ∇²L; of the parameters named by `select`, and the part that the samples of class `label` have in it.

    The parts of all classes sum to the whole.

    >>> import jax.numpy as jnp
    >>> from deeplimits.measure.adapters import open_model
    >>> model = open_model(lambda w, x: x @ w, lambda z, y: (z - y) ** 2 / 2, (np.eye(2), np.ones(2)),
    ...                    parameters=jnp.zeros(2))
    >>> hessian(model).dense().tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """
    chosen = _selected(model, select)
    return _summed("Hessian", chosen, lambda piece, v: piece.hessian(v), of_label(chosen, label))


def gauss_newton(model: Model, *, select: Patterns | None = None, label: int | None = None) -> Curvature:
    """G = (1/N) Σ Jᵀ (∂²l/∂z²) J, positive wherever the loss is convex in the outputs.

    >>> import jax.numpy as jnp
    >>> from deeplimits.measure.adapters import open_model
    >>> model = open_model(lambda w, x: x @ w, lambda z, y: (z - y) ** 2 / 2, (np.eye(2), np.ones(2)),
    ...                    parameters=jnp.zeros(2))
    >>> gauss_newton(model).dense().tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """
    chosen = _selected(model, select)
    return _summed("Gauss-Newton matrix", chosen, lambda p, v: p.pull(p.bend(p.push(v))), of_label(chosen, label))


def residual_part(model: Model, *, select: Patterns | None = None, label: int | None = None) -> Curvature:
    """E = (1/N) Σ_ik (∂l/∂z_ik) ∇²f_k(θ, x_i): what the Hessian has beyond Gauss-Newton, from its own definition.

    >>> import jax.numpy as jnp
    >>> from deeplimits.measure.adapters import open_model
    >>> model = open_model(lambda w, x: x @ w, lambda z, y: (z - y) ** 2 / 2, (np.eye(2), np.ones(2)),
    ...                    parameters=jnp.zeros(2))
    >>> float(np.abs(residual_part(model).dense()).max())  # of a linear network
    0.0
    """
    chosen = _selected(model, select)
    return _summed("residual part", chosen, lambda piece, v: piece.residual(v), of_label(chosen, label))


def gradient_moment(model: Model, *, select: Patterns | None = None, label: int | None = None) -> Curvature:
    """C = (1/N) Σ ∇l_i ∇l_iᵀ, the second moment of the samples' gradients, not centred.

    >>> import jax.numpy as jnp
    >>> from deeplimits.measure.adapters import open_model
    >>> model = open_model(lambda w, x: x @ w, lambda z, y: (z - y) ** 2 / 2, (np.eye(2), np.ones(2)),
    ...                    parameters=jnp.zeros(2))
    >>> gradient_moment(model).dense().tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """
    chosen = _selected(model, select)
    chosen.require_separable("gradients of samples")
    inside = of_label(chosen, label)
    return _outer("gradient moment", chosen, lambda piece: piece.slopes()[:, None], None, inside)


def fisher(
    model: Model, *, draws: int | None = None, seed: int = 0, select: Patterns | None = None, label: int | None = None
) -> Curvature:
    """F, the second moment of gradients at labels from the network's own probabilities p_i(c) = exp(−l(z_i, c)).

    Exact over the classes, or with `draws` labels drawn for each sample. For a cross-entropy F is the Gauss-Newton
    matrix, by another road. A loss that is no cross-entropy (whose p do not sum to one) is refused.

    >>> import jax, jax.numpy as jnp
    >>> from deeplimits.measure.adapters import open_model
    >>> model = open_model(lambda w, x: x @ w, lambda z, y: -jax.nn.log_softmax(z)[jnp.arange(len(y)), y],
    ...                    (np.eye(2), np.array([0, 1])), parameters=jnp.zeros((2, 2)))
    >>> bool(np.allclose(fisher(model).dense(), gauss_newton(model).dense()))
    True
    """
    chosen = _selected(model, select)
    chosen.require_separable("gradients at other labels")
    labels = chosen.classes()
    inside = of_label(chosen, label)
    rng = np.random.default_rng(seed)
    if draws is None:
        return _outer(
            "Fisher matrix", chosen, lambda piece: likelihood(piece, labels).slopes, _probabilities(labels), inside
        )
    count = arguments.whole("draws", draws, 1)

    def drawn(piece: Piece) -> np.ndarray:
        found = likelihood(piece, labels)
        # By inverting the distribution function, one row of draws for each sample.
        levels = np.cumsum(found.probabilities, axis=1)
        picks = (rng.random((piece.count, count, 1)) > levels[:, None, :-1]).sum(axis=2)
        return np.take_along_axis(
            found.slopes, picks.reshape(piece.count, count, *[1] * (found.slopes.ndim - 2)), axis=1
        )

    return _outer("sampled Fisher matrix", chosen, drawn, None, inside)


def likelihood(piece: Piece, labels: list[Any]) -> Labelled:
    """Probabilities and slopes at every label; refused where the probabilities do not sum to one."""
    found = piece.labelled(labels)
    gap = np.abs(found.probabilities.sum(axis=1) - 1).max()
    if gap > 1e-4:
        raise ParameterError(
            f"exp(−loss) summed over the classes misses one by {gap:.2g}: the loss is no cross-entropy, so that the "
            "network has no probabilities of classes"
        )
    return found


def _probabilities(labels: list[Any]) -> Callable[[Piece], np.ndarray]:
    return lambda piece: likelihood(piece, labels).probabilities


def _outer(
    name: str,
    model: Model,
    slopes: Callable[[Piece], np.ndarray],
    shares: Callable[[Piece], np.ndarray] | None,
    inside: np.ndarray | None,
) -> Curvature:
    """Σ_i w_i Σ_a q_ia J_iᵀ s_ia s_iaᵀ J_i; the slopes s (n, a, ...) are kept, since they may be drawn."""
    found: dict[int, Any] = {}
    begins = np.cumsum([0, *(batch.count for batch in model.data)])

    def multiply(operator: Curvature, vector: np.ndarray) -> np.ndarray:
        total = np.zeros(model.size)
        for index, piece in enumerate(operator.each_piece()):
            if index not in found:
                s = slopes(piece).reshape(piece.count, -1, piece.outputs()[0].size)
                q = np.full(s.shape[:2], 1 / s.shape[1]) if shares is None else shares(piece)
                w = np.full(piece.count, 1 / model.samples)
                if inside is not None:
                    w = inside[begins[index] : begins[index + 1]]
                found[index] = s, q * w[:, None]
            s, q = found[index]
            pushed = piece.push(vector)
            along = np.einsum("nak,nk->na", s, pushed.reshape(piece.count, -1))
            total += piece.pull(np.einsum("na,nak->nk", q * along, s).reshape(pushed.shape))
        return total

    return Curvature(name, model, model.size, multiply)


def tangent_kernel(model: Model, *, select: Patterns | None = None) -> Curvature:
    """Θ = J Jᵀ over all samples and outputs, of size N·k, samples first, without a factor 1/N.

    >>> import jax.numpy as jnp
    >>> from deeplimits.measure.adapters import open_model
    >>> model = open_model(lambda w, x: x @ w, lambda z, y: (z - y) ** 2 / 2, (np.eye(2), np.ones(2)),
    ...                    parameters=jnp.zeros(2))
    >>> tangent_kernel(model).dense().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    chosen = _selected(model, select)
    shape = chosen.network.evaluate(next(iter(chosen.data))).shape[1:]
    size = chosen.samples * int(np.prod(shape))

    def multiply(operator: Curvature, vector: np.ndarray) -> np.ndarray:
        u = vector.reshape(chosen.samples, *shape)
        pulled, begin = np.zeros(chosen.size), 0
        for piece in operator.each_piece():
            pulled += piece.pull(u[begin : begin + piece.count])
            begin += piece.count
        return np.concatenate([piece.push(pulled).ravel() for piece in operator.each_piece()])

    return Curvature("tangent kernel", chosen, size, multiply)


KINDS: dict[str, Callable[..., Curvature]] = {
    "hessian": hessian,
    "gauss_newton": gauss_newton,
    "residual": residual_part,
    "gradient_moment": gradient_moment,
    "fisher": fisher,
}


def by_layer(model: Model, *, kind: str = "hessian") -> dict[str, Curvature]:
    """The diagonal block of every layer, by the layer's name.

    >>> import jax.numpy as jnp
    >>> from deeplimits.measure.adapters import open_model
    >>> model = open_model(lambda w, x: x @ w, lambda z, y: (z - y) ** 2 / 2, (np.eye(2), np.ones(2)),
    ...                    parameters=jnp.zeros(2))
    >>> [block.shape for block in by_layer(model).values()]
    [(2, 2)]
    """
    make = KINDS[arguments.choice("kind", kind, KINDS)]
    return {layer: make(model, select=names) for layer, names in model.layers.items()}


def by_class(model: Model, *, kind: str = "hessian") -> list[Curvature]:
    """What the samples of each class contribute; the parts sum to the whole.

    >>> import jax, jax.numpy as jnp
    >>> from deeplimits.measure.adapters import open_model
    >>> model = open_model(lambda w, x: x @ w, lambda z, y: -jax.nn.log_softmax(z)[jnp.arange(len(y)), y],
    ...                    (np.eye(2), np.array([0, 1])), parameters=jnp.zeros((2, 2)))
    >>> parts = by_class(model)
    >>> bool(np.allclose(sum(part.dense() for part in parts), hessian(model).dense()))
    True
    """
    make = KINDS[arguments.choice("kind", kind, KINDS)]
    return [make(model, label=index) for index in range(len(model.classes()))]


def _selected(model: Model, select: Patterns | None) -> Model:
    return model if select is None else model.select(select)
