r"""The decompositions of a user's network, streaming over its data: gradients, backpropagated errors, features.

With the loss's own probabilities p_i(c') = exp(−l(z_i, c')) and the gradients g_icc' = ∇_θ l(f(θ, x_i), c') at every
possible label, weighted with w_icc' = p_i(c')/N, the whole is the Fisher matrix, which is Gauss-Newton for a
cross-entropy. Its class and cross parts are held as C and C(C−1) vectors; its within and same parts are multiplied
with vectors from their definitions, two passes through the network each.
"""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from deeplimits.errors import ParameterError, TooCostly
from deeplimits.measure.adapters.model import Model, OfOneLabel, labels_of
from deeplimits.measure.adapters.network import Labelled, Piece
from deeplimits.measure.classes import features as feature_moments
from deeplimits.measure.classes.papyan import Groups, Traces, class_rows, cross_rows, from_sums, row_spectrum
from deeplimits.measure.curvature.operators import Curvature, likelihood
from deeplimits.measure.curvature.traces import trace
from deeplimits.measure.estimates import Estimate

VECTORS = 2**31
"""Bytes that the mean gradients of all pairs of classes may take."""
JACOBIANS = 2**31
"""Numbers that are computed to have the traces exactly; beyond, they are estimated."""


class GradientDecomposition(NamedTuple):
    """Gauss-Newton of a cross-entropy as class + cross + within + same."""

    groups: Groups
    classes: np.ndarray
    """(C, P) rows r with G_class = Σ r rᵀ"""
    cross: np.ndarray
    """(C·C, P) rows of G_cross; those with c' = c vanish"""
    within: Curvature
    same: Curvature
    products: int
    """products with transposed Jacobians of all data that were made"""
    seconds: float
    seed: None = None
    """nothing is drawn"""

    @property
    def value(self) -> tuple[np.ndarray | Curvature, ...]:
        """The parts: class, cross, within, same."""
        return self.classes, self.cross, self.within, self.same

    @property
    def standard_error(self) -> None:
        """None: the parts are exact."""

    @property
    def residual(self) -> None:
        """None: no equation is solved."""

    def __matmul__(self, vector: np.ndarray) -> np.ndarray:
        """The sum of all parts times a vector."""
        explicit = self.classes.T @ (self.classes @ vector) + self.cross.T @ (self.cross @ vector)
        return explicit + self.within @ vector + self.same @ vector

    def spectra(self) -> "Spectra":
        """Eigenvalues of the class part (at most C) and of the cross part (at most C(C−2)), descending."""
        return Spectra(np.asarray(row_spectrum(jnp.asarray(self.classes))), np.asarray(_spectrum(self.cross)))

    def traces(self, products: int = 60, seed: int = 0) -> "PartTraces":
        """The trace of each part: exact, or estimated from `products` products where the data are too large."""
        exact = [float(np.sum(rows**2)) for rows in (self.classes, self.cross)]
        model = self.within.model
        outputs = model.network.evaluate(next(iter(model.data)))[0].size
        if model.samples * outputs * model.size <= JACOBIANS:
            rest = _exact_traces(model, self.groups)
            found = [Estimate(value, 0.0) for value in (*exact, rest.within, rest.same)]
        else:
            estimated = [trace(part, products=products, seed=seed) for part in (self.within, self.same)]
            found = [*(Estimate(value, 0.0) for value in exact), *estimated]
        return PartTraces(*found)


class Spectra(NamedTuple):
    """Eigenvalues of the two parts of low rank."""

    classes: np.ndarray
    cross: np.ndarray


class PartTraces(NamedTuple):
    """The trace of each part; errors are zero where it is exact."""

    classes: Estimate
    cross: Estimate
    within: Estimate
    same: Estimate

    @property
    def shares(self) -> np.ndarray:
        """Each part's share of the whole trace, in the order of the fields."""
        values = np.array([float(one.value) for one in self])
        return values / values.sum()


class _ByClass:
    """A model's samples in pieces of one class with probabilities and slopes at every label; kept while they fit."""

    def __init__(self, model: Model, size: int):
        self.model, self.size, self.labels = model, size, model.classes()
        self.kept: list[_Part] | None = None

    def __iter__(self) -> Iterator["_Part"]:
        if self.kept is not None:
            yield from self.kept
            return
        kept: list[_Part] | None = []
        room = self.model.network.room
        for found in self.model.by_label(self.size):
            piece = self.model.network.piece(found.batch, 1.0)
            part = _part(found, piece, self.labels, self.model.samples)
            yield part
            if kept is not None:
                kept.append(part)
                kept = kept if sum(one.piece.bytes for one in kept) <= room else None
        self.kept = kept


class _Part(NamedTuple):
    label: int
    piece: Piece
    weights: np.ndarray
    """(n, C) p_i(c')/N, zero at idle samples"""
    slopes: np.ndarray
    """(n, C, k)"""


def _part(found: OfOneLabel, piece: Piece, labels: list[Any], samples: int) -> _Part:
    said: Labelled = likelihood(piece, labels)
    used = np.arange(piece.count) < found.used
    slopes = said.slopes.reshape(piece.count, len(labels), -1)
    return _Part(found.label, piece, said.probabilities * used[:, None] / samples, slopes)


def gradient_decomposition(model: Model, *, size: int = 256) -> GradientDecomposition:
    r"""Papyan's decomposition of Gauss-Newton by class, with parts that sum to the whole.

    Setting     a `Model` with a cross-entropy (or any loss whose exp(−l(z, c)) sums to one over the classes), every
                class with a sample; `size` samples of a class are taken at a time
    Result      G = class + cross + within + same; `spectra()`, `traces()` with their shares
    Validity    any class sizes; C² vectors of the size of the parameters are held
    References  papyan2020

    >>> from deeplimits.measure.adapters import open_model
    >>> import jax
    >>> model = open_model(lambda w, x: x @ w, lambda z, y: -jax.nn.log_softmax(z)[jnp.arange(len(y)), y],
    ...                    (np.eye(4, 2), np.array([0, 1, 0, 1])), parameters=jnp.ones((2, 2)))
    >>> found = gradient_decomposition(model)
    >>> found.traces().shares.round(3).tolist()
    [0.25, 0.0, 0.25, 0.5]
    """
    begin = time.perf_counter()
    count = len(model.classes())
    if count**2 * model.size * 8 > VECTORS:
        raise TooCostly(
            f"the mean gradients of {count}² pairs of classes take {count**2 * model.size * 8 / 2**30:.1f} GiB; choose "
            "some layers by select="
        )
    source = _ByClass(model, size)
    w, sums = np.zeros((count, count)), np.zeros((count, count, model.size))
    for part in source:
        w[part.label] += part.weights.sum(axis=0)
        for label in range(count):
            direction = part.weights[:, label, None] * part.slopes[:, label]
            sums[part.label, label] += part.piece.pull(direction)
    found = from_sums(jnp.asarray(w), jnp.asarray(sums))
    means = np.asarray(found.means)
    within = Curvature("within part", model, model.size, _within(source, means))
    same = Curvature("same part", model, model.size, _same(source))
    return GradientDecomposition(
        found,
        np.asarray(class_rows(found)),
        np.asarray(cross_rows(found)),
        within,
        same,
        count,
        time.perf_counter() - begin,
    )


def _within(source: _ByClass, means: np.ndarray):
    def multiply(_, vector: np.ndarray) -> np.ndarray:
        total, of_means = np.zeros(len(vector)), means @ vector
        back = np.zeros(means.shape[:2])
        for part in source:
            pushed = part.piece.push(vector).reshape(part.piece.count, -1)
            w = part.weights.copy()
            w[:, part.label] = 0.0
            # w_icc' ((g_icc' − g_cc')·v), the coefficient of g_icc' − g_cc'
            along = w * (np.einsum("nck,nk->nc", part.slopes, pushed) - of_means[part.label])
            total += part.piece.pull(np.einsum("nc,nck->nk", along, part.slopes))
            back[part.label] += along.sum(axis=0)
        return total - np.einsum("cl,clp->p", back, means)

    return multiply


def _same(source: _ByClass):
    def multiply(_, vector: np.ndarray) -> np.ndarray:
        total = np.zeros(len(vector))
        for part in source:
            pushed = part.piece.push(vector).reshape(part.piece.count, -1)
            own = part.slopes[:, part.label]
            along = part.weights[:, part.label] * np.einsum("nk,nk->n", own, pushed)
            total += part.piece.pull(along[:, None] * own)
        return total

    return multiply


class _Rest(NamedTuple):
    within: float
    same: float


def _exact_traces(model: Model, groups: Groups) -> _Rest:
    """Σ w |g_icc' − g_cc'|² and Σ w |g_icc|² from the Jacobian of every sample."""
    outputs = model.network.evaluate(next(iter(model.data)))[0].size
    chunk = max(1, min(256, 2**24 // (outputs * model.size)))
    within = same = 0.0
    means = np.asarray(groups.means)
    for part in _ByClass(model, chunk):
        gradients = np.einsum("nck,nkp->ncp", part.slopes, part.piece.sample_jacobians())
        own = gradients[:, part.label]
        same += float(np.sum(part.weights[:, part.label] * np.sum(own**2, axis=1)))
        w = part.weights.copy()
        w[:, part.label] = 0.0
        within += float(np.sum(w * np.sum((gradients - means[part.label][None]) ** 2, axis=2)))
    return _Rest(within, same)


def _spectrum(rows: np.ndarray) -> np.ndarray:
    return np.asarray(row_spectrum(jnp.asarray(rows[np.any(rows != 0, axis=1)]))) if np.any(rows) else np.zeros(0)


class BackpropDecomposition(NamedTuple):
    """Traces and eigenvalues of the parts of the second moment of errors δ = ∂l/∂z at one layer."""

    traces: Traces
    classes: np.ndarray
    cross: np.ndarray
    within: np.ndarray
    """(d, d) matrix"""
    same: np.ndarray
    """(d, d) matrix"""
    whole: np.ndarray
    """(d, d) matrix Σ w δ δᵀ, summed by itself"""
    products: int
    """passes of an error backwards through all data"""
    seconds: float
    seed: None = None
    """nothing is drawn"""

    @property
    def value(self) -> Traces:
        """The traces of the parts."""
        return self.traces

    @property
    def standard_error(self) -> None:
        """None: the parts are exact."""

    @property
    def residual(self) -> float:
        """How far the traces of the parts are from the trace of the whole, relative to it."""
        whole = float(np.trace(self.whole))
        return abs(float(self.traces.whole) - whole) / whole if whole else 0.0


def backprop_decomposition(model: Model, *, layer: str | int | None = None) -> BackpropDecomposition:
    """The same decomposition of the errors δ_icc' = ∂l(f(x_i), c')/∂z at what leaves a layer of the network.

    `layer` is the name of a module of PyTorch or the number of a layer of a `WideNetwork`; the last by default, where
    δ = p − e_c'. Entries of what leaves the layer are taken together as one vector.

    >>> import jax
    >>> from deeplimits.measure.adapters import open_model
    >>> model = open_model(lambda w, x: x @ w, lambda z, y: -jax.nn.log_softmax(z)[jnp.arange(len(y)), y],
    ...                    (np.eye(2), np.array([0, 1])), parameters=jnp.eye(2))
    >>> found = backprop_decomposition(model)
    >>> bool(np.isclose(found.traces.whole, np.trace(found.whole)))
    True
    """
    begin = time.perf_counter()
    source = _ByClass(model, 256)
    count = len(source.labels)
    w, sums = np.zeros((count, count)), None
    for part, delta in _errors(model, source, layer):
        sums = np.zeros((count, count, delta.shape[2])) if sums is None else sums
        w[part.label] += part.weights.sum(axis=0)
        sums[part.label] += np.einsum("nc,ncd->cd", part.weights, delta)
    assert sums is not None
    found = from_sums(jnp.asarray(w), jnp.asarray(sums))
    means, size = np.asarray(found.means), sums.shape[2]
    within, same, whole = np.zeros((size, size)), np.zeros((size, size)), np.zeros((size, size))
    for part, delta in _errors(model, source, layer):
        own = delta[:, part.label]
        same += (part.weights[:, part.label, None] * own).T @ own
        weights = part.weights.copy()
        whole += np.einsum("nc,nca,ncb->ab", weights, delta, delta)
        weights[:, part.label] = 0.0
        centred = delta - means[part.label][None]
        within += np.einsum("nc,nca,ncb->ab", weights, centred, centred)
    a, b = class_rows(found), cross_rows(found)
    sizes = Traces(jnp.sum(a**2), jnp.sum(b**2), jnp.asarray(np.trace(within)), jnp.asarray(np.trace(same)))
    return BackpropDecomposition(
        sizes, np.asarray(row_spectrum(a)), _spectrum(np.asarray(b)), within, same, whole,
        products=2 * count, seconds=time.perf_counter() - begin,
    )  # fmt: skip


class _WithErrors(NamedTuple):
    part: _Part
    errors: np.ndarray


def _errors(model: Model, source: _ByClass, layer: str | int | None) -> Iterator[_WithErrors]:
    for part, found in zip(source, model.by_label(source.size), strict=True):
        inside = model.network.inside(found.batch, layer, part.slopes)
        n, c = inside.sensitivities.shape[:2]
        yield _WithErrors(part, inside.sensitivities.reshape(n, c, -1))


def measure_collapse(model: Model, *, layer: str | int | None = None) -> feature_moments.Collapse:
    """NC1 to NC4 at what enters a layer: the last linear one by default, whose rows are the classifier's weights.

    Streams over the data: class means first, then what is around them. NC3 and the geometry of the weights are left out
    where the layer has no matrix with one row for each class.

    >>> import jax
    >>> from deeplimits.ensembles.wide_networks import WideNetwork
    >>> from deeplimits.measure.adapters import open_model
    >>> from deeplimits.models.architectures import FullyConnected
    >>> network = WideNetwork(FullyConnected(1, "tanh"), inputs=2, widths=4, outputs=2)
    >>> model = open_model(network, lambda z, y: -jax.nn.log_softmax(z)[jnp.arange(len(y)), y],
    ...                    (np.eye(2), np.array([0, 1])), parameters=network.init(jax.random.key(0)))
    >>> found = measure_collapse(model)  # one sample of each class
    >>> bool(found.within_over_between < 1e-12)
    True
    """
    begin = time.perf_counter()
    labels = model.classes()
    count, values = len(labels), np.array(labels)
    if count < 2:
        raise ParameterError("neural collapse needs at least two classes")
    sums, counts, weights = None, np.zeros(count), None
    for found in _entering(model, values, layer):
        member = np.eye(count)[found.labels]
        sums = member.T @ found.features if sums is None else sums + member.T @ found.features
        counts, weights = counts + member.sum(axis=0), found.weights
    assert sums is not None
    means = sums / counts[:, None]
    if not np.any(means - means.mean(axis=0)):
        raise ParameterError("all class means of the features are the same: there is nothing between the classes")
    within, wrong = np.zeros((means.shape[1],) * 2), 0.0
    for found in _entering(model, values, layer):
        centred = found.features - means[found.labels]
        within += (centred / counts[found.labels][:, None] / count).T @ centred
        nearest = np.asarray(feature_moments.nearest_mean(jnp.asarray(found.features), jnp.asarray(means)))
        wrong += float(np.sum(found.chosen != nearest))
    rows = jnp.asarray(weights) if weights is not None and weights.shape == means.shape else None
    found = feature_moments.collapse_of(
        jnp.asarray(means), jnp.asarray(within), rows, mismatch=jnp.asarray(wrong / model.samples)
    )
    return found._replace(seconds=time.perf_counter() - begin)


class _Entered(NamedTuple):
    features: np.ndarray
    labels: np.ndarray
    chosen: np.ndarray
    weights: np.ndarray | None


def _entering(model: Model, values: np.ndarray, layer: str | int | None) -> Iterator[_Entered]:
    for batch in model.data:
        outputs = model.network.evaluate(batch)
        inside = model.network.inside(batch, layer, np.zeros((batch.count, 0, outputs[0].size)))
        flat = outputs.reshape(batch.count, -1)
        # One output with two classes decides by its sign.
        chosen = np.argmax(flat, axis=1) if flat.shape[1] > 1 else (flat[:, 0] > 0).astype(int)
        features = inside.entering.reshape(batch.count, -1)
        yield _Entered(features, np.searchsorted(values, labels_of(batch)), chosen, inside.weights)
