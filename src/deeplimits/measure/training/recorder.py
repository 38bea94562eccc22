r"""Sharpness along training: the top of the Hessian's spectrum, followed from step to step.

The recorder starts each measurement from the last one's eigenvectors, which saves most of the products. It is called in
a loop of JAX with the parameters of the step; in a loop of PyTorch without, since it looks at the module itself; and it
has the hooks of Lightning's callbacks. It never touches what it looks at.
"""

import time
from typing import Any, NamedTuple

import numpy as np

from deeplimits.errors import ParameterError
from deeplimits.measure.adapters.model import Model
from deeplimits.measure.curvature.lanczos import Eigenpairs, eigenpairs
from deeplimits.measure.curvature.operators import Curvature, hessian
from deeplimits.measure.training.hooks import TrainerHooks
from deeplimits.measure.training.stability import OPTIMIZERS, stable_curvature
from deeplimits.numerics import arguments


class Record(NamedTuple):
    """What was measured along a run; arrays over the measurements."""

    steps: np.ndarray
    losses: np.ndarray
    sharpness: np.ndarray
    """(measurements, top) largest eigenvalues of the Hessian, or of the preconditioned one"""
    gradient_share: np.ndarray
    """|P g|²/|g|² with P onto the measured eigenvectors (C3: near one where the gradient lives in the top subspace)"""
    overlap: np.ndarray
    """|P_now P_before|²_F/top: 1 where the top subspace stands still; NaN at the first"""
    products: np.ndarray
    threshold: float | None
    """the largest curvature that the optimizer bears"""
    size: int
    """how many parameters"""
    residual: np.ndarray | None = None
    """largest |Av − θv| of each measurement"""
    seconds: np.ndarray | None = None
    """how long each took"""
    seed: int | None = None
    """of the first start"""

    @property
    def value(self) -> np.ndarray:
        """The sharpness."""
        return self.sharpness

    @property
    def standard_error(self) -> None:
        """None: each measurement is exact, to its residual."""


class SharpnessRecorder(TrainerHooks):
    """A callback that measures the `top` largest eigenvalues of the loss's Hessian every so many steps.

    `model` is any `Model`, opened on the data whose loss is meant (all of the training data, for the edge of stability
    of full-batch descent). With the `optimizer` ('gd', 'momentum', 'nesterov', 'adam'), its `step` and `momentum` the
    record knows the largest stable curvature; for Adam the second moments must be given with each call (in PyTorch,
    give the optimizer itself as `torch_optimizer`; a trainer gives its own), and what is measured is
    P^{-1/2} H P^{-1/2}. Eigenvalues are found to `tolerance`, eigenvectors to about its square root.

    >>> import jax.numpy as jnp
    >>> from deeplimits.measure.adapters import open_model
    >>> model = open_model(lambda w, x: x @ w, lambda z, y: (z - y) ** 2 / 2, (np.eye(2), np.ones(2)),
    ...                    parameters=jnp.zeros(2))
    >>> recorder = SharpnessRecorder(model, optimizer="gd", step=0.1)
    >>> w = jnp.zeros(2)
    >>> for _ in range(3):
    ...     recorder(w)
    ...     w = w - 0.1 * (w - 1.0) / 2
    >>> recorder.record().sharpness[:, 0].round(12).tolist()
    [0.5, 0.5, 0.5]
    """

    def __init__(
        self,
        model: Model,
        *,
        every: int = 1,
        top: int = 1,
        optimizer: str | None = None,
        step: float | None = None,
        momentum: float = 0.9,
        torch_optimizer: Any = None,
        tolerance: float = 1e-4,
        seed: int = 0,
    ):
        self.model, self.every = model, arguments.whole("every", every, 1)
        self.top = arguments.whole("top", top, 1)
        self.tolerance, self.seed = tolerance, seed
        self.torch_optimizer = torch_optimizer
        self.optimizer = None if optimizer is None else arguments.choice("optimizer", optimizer, OPTIMIZERS)
        if self.optimizer is not None and step is None:
            raise ParameterError("step is missing: the largest stable curvature depends on the learning rate")
        self.threshold = (
            None
            if self.optimizer is None or step is None
            else stable_curvature(self.optimizer, step, momentum=momentum)
        )
        self.calls = 0
        self.rows: list[_Row] = []
        self.vectors: np.ndarray | None = None

    def __call__(self, parameters: Any = None, *, second_moments: Any = None) -> None:
        """Look at these parameters (flat or by name, or as the tree that the model was opened with), or at the user's
        module as it is now; `second_moments` is Adam's √v̂ + ε, alike."""
        begin = time.perf_counter()
        self.calls += 1
        if (self.calls - 1) % self.every:
            return
        model = self.model.now() if parameters is None else self.model.at(self._flat(parameters))
        scale = self._preconditioner(model, second_moments)
        found = self._measure(model, scale)
        gradient = model.gradient() if scale is None else model.gradient() * scale
        inside = found.vectors.T @ gradient
        share = float(inside @ inside / max(gradient @ gradient, 1e-300))
        overlap = np.nan if self.vectors is None else subspace_overlap(self.vectors, found.vectors)
        self.rows.append(
            _Row(
                self.calls - 1,
                model.loss(),
                found.values,
                share,
                overlap,
                found.products,
                found.residual,
                time.perf_counter() - begin,
            )
        )
        self.vectors = found.vectors

    def _measure(self, model: Model, scale: np.ndarray | None) -> Eigenpairs:
        matrix = plain = hessian(model)
        if scale is not None:
            # P^{-1/2} H P^{-1/2} with P^{-1/2} on the diagonal
            matrix = Curvature("preconditioned Hessian", model, model.size, lambda _, v: scale * (plain @ (scale * v)))
        start = None if self.vectors is None else self.vectors.T
        return eigenpairs(matrix, count=self.top, start=start, tolerance=self.tolerance, seed=self.seed + self.calls)

    def _preconditioner(self, model: Model, second_moments: Any) -> np.ndarray | None:
        if self.optimizer != "adam":
            return None
        if second_moments is None and self.torch_optimizer is not None:
            second_moments = adam_denominators(self.torch_optimizer, self.model)
        if second_moments is None:
            raise ParameterError("Adam's sharpness needs its second moments: give √v̂ + ε as second_moments")
        found = self._flat(second_moments)
        if not np.all(found > 0):
            raise ParameterError("second_moments must be positive: √v̂ + ε of every parameter")
        return 1 / np.sqrt(found)

    def _flat(self, parameters: Any) -> np.ndarray:
        return flat_of(self.model, parameters)

    def record(self) -> Record:
        """Everything measured so far."""
        if not self.rows:
            raise ParameterError("nothing has been recorded yet; call the recorder in the training loop")
        *columns, residual, seconds = [np.array(part) for part in zip(*self.rows, strict=True)]
        return Record(
            *columns, threshold=self.threshold, size=self.model.size, residual=residual, seconds=seconds, seed=self.seed
        )


class _Row(NamedTuple):
    step: int
    loss: float
    sharpness: np.ndarray
    share: float
    overlap: float
    products: int
    residual: float
    seconds: float


def subspace_overlap(one: np.ndarray, other: np.ndarray) -> float:
    """|P₁P₂|²_F/k of the spans of two sets of orthonormal columns: 1 if equal, k/d on average if unrelated.

    >>> subspace_overlap(np.eye(3)[:, :2], np.eye(3)[:, 1:])
    0.5
    """
    return float(np.sum((one.T @ other) ** 2) / min(one.shape[1], other.shape[1]))


def gradient_share(gradient: np.ndarray, vectors: np.ndarray) -> float:
    """|P g|²/|g|², the share of a gradient inside the span of orthonormal columns; k/d for an unrelated direction.

    >>> gradient_share(np.array([3.0, 4.0]), np.array([[1.0], [0.0]]))
    0.36
    """
    g = np.asarray(gradient, float)
    if not np.any(g):
        raise ParameterError("the gradient is zero: it has no direction")
    inside = np.asarray(vectors).T @ g
    return float(inside @ inside / (g @ g))


def flat_of(model: Model, parameters: Any) -> np.ndarray:
    """Parameters as the user's framework holds them, flat: a vector, arrays by name, or a tree of JAX arrays."""
    if isinstance(parameters, np.ndarray) and parameters.shape == (model.size,):
        return np.asarray(parameters, float)
    if isinstance(parameters, dict) and all(name in parameters for name in model.names):
        return model.layout.flat(parameters)
    import jax

    leaves = jax.tree.leaves(parameters)
    shapes = [np.shape(leaf) for leaf in leaves]
    if shapes != list(model.layout.shapes):
        raise ParameterError(
            f"parameters have shapes {shapes[:6]}; the model varies {list(model.layout.shapes)[:6]}: give the tree "
            "that it was opened with, arrays by name, or a flat vector"
        )
    return np.concatenate([np.asarray(leaf, float).ravel() for leaf in leaves])


def adam_denominators(optimizer: Any, model: Model) -> np.ndarray:
    """√v̂ + ε of a PyTorch Adam or AdamW, in the order of the model's parameters; read, not changed.

    >>> from types import SimpleNamespace
    >>> adam_denominators(None, SimpleNamespace(network=None))
    Traceback (most recent call last):
    deeplimits.errors.ParameterError: torch_optimizer needs a model opened from a PyTorch module
    """
    module = getattr(getattr(model.network, "body", None), "module", None)
    if module is None:
        raise ParameterError("torch_optimizer needs a model opened from a PyTorch module")
    groups = {id(one): group for group in optimizer.param_groups for one in group["params"]}
    found = []
    for name, one in module.named_parameters():
        if name not in model.names:
            continue
        state = optimizer.state.get(one, {})
        if "exp_avg_sq" not in state:
            raise ParameterError(f"the optimizer holds no second moment of {name}; record after its first step")
        group = groups[id(one)]
        corrected = state["exp_avg_sq"].double() / (1 - group["betas"][1] ** float(state["step"]))
        found.append((corrected.sqrt() + group["eps"]).cpu().numpy().ravel())
    return np.concatenate(found)
