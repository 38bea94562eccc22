r"""Four Gaussian fields as four unit vectors, and the areas and volumes they span, without cancellation.

Angles between conditional fields are ratios of exterior products: |v_i ∧ v_j| is the sine of the angle of two fields,
(v_i ∧ v_j ∧ v_k)·(v_i ∧ v_j ∧ v_l)/|v_i ∧ v_j|² the covariance of k and l given that i and j vanish. Where two fields
are nearly parallel every such product is a small difference of large ones; they are formed with 32 digits from the
covariances as given, and then have sixteen.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from deeplimits.numerics import double_double as dd
from deeplimits.numerics.shapes import Scalar
from deeplimits.numerics.symmetric import diagonal

VANISHING = 1e-15
"""Shares of a variance below this are rounding errors of the covariances."""

# The six pairs of fields (i, j), the other two (k, l) of each, and the place of a pair by its fields.
FIRST, SECOND = np.triu_indices(4, 1)
OTHERS = np.array([[2, 3], [1, 3], [1, 2], [0, 3], [0, 2], [0, 1]])
PAIR_OF = np.zeros((4, 4), int)
PAIR_OF[FIRST, SECOND] = PAIR_OF[SECOND, FIRST] = np.arange(6)
# Components (p, q, r) of a product of three vectors, and the places of (p, q), (p, r), (q, r) among the pairs.
_TRIPLES = np.array([[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]])
_PQ, _PR, _QR = (PAIR_OF[_TRIPLES[:, left], _TRIPLES[:, right]] for left, right in ((0, 1), (0, 2), (1, 2)))


class Frame(NamedTuple):
    """What the integrals ask of four unit vectors v."""

    correlations: Float[Array, "4 4"]
    sines: Float[Array, "4 4"]
    """|v_i ∧ v_j|"""
    conditional: Float[Array, "4 4 4"]
    """(v_g ∧ v_x)·(v_g ∧ v_z): the covariance of x and z given that g vanishes, by g, x, z."""
    triples: Float[Array, "6 2"]
    """|v_i ∧ v_j ∧ v_k|² and |v_i ∧ v_j ∧ v_l|² by pairs (i, j) with the others (k, l)."""
    products: Float[Array, " 6"]
    """(v_i ∧ v_j ∧ v_k)·(v_i ∧ v_j ∧ v_l)"""
    volume: Scalar
    """|v_0 ∧ v_1 ∧ v_2 ∧ v_3|"""


def frame(c: Float[Array, "4 4"]) -> Frame:
    """The frame of four fields of positive variances and covariance c, which may be singular.

    >>> import jax.numpy as jnp
    >>> found = frame(jnp.eye(4).at[0, 1].set(0.6).at[1, 0].set(0.6))
    >>> round(float(found.sines[0, 1]), 12), round(float(found.volume), 12)
    (0.8, 0.8)
    """
    v, volume = _vectors(c)
    p, q = FIRST, SECOND
    left, right = v[:, None], v[None, :]
    areas = dd.subtract(dd.multiply(left[..., p], right[..., q]), dd.multiply(left[..., q], right[..., p]))
    conditional = jnp.einsum("gxc,gzc->gxz", areas.high, areas.high)
    square = jnp.einsum("ijc,ijc->ij", areas.high, areas.high)
    sines = jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)
    of_pair, other = areas[FIRST, SECOND][:, None], v[OTHERS]
    x, y, z = (other[..., _TRIPLES[:, place]] for place in range(3))
    spanned = dd.add(
        dd.subtract(dd.multiply(of_pair[..., _PQ], z), dd.multiply(of_pair[..., _PR], y)),
        dd.multiply(of_pair[..., _QR], x),
    ).high
    deviations = jnp.sqrt(diagonal(c))
    return Frame(
        c / (deviations[:, None] * deviations[None, :]),
        sines,
        conditional,
        jnp.sum(spanned**2, axis=-1),
        jnp.sum(spanned[:, 0] * spanned[:, 1], axis=-1),
        volume,
    )


def _vectors(c: Float[Array, "4 4"]) -> tuple[dd.Doubled, Scalar]:
    """Unit vectors whose inner products are the correlations, and their volume: Cholesky, the largest pivot first."""
    variances = diagonal(c)
    rest, columns, volume = dd.doubled(c), [], jnp.ones(())
    for _ in range(4):
        shares = diagonal(rest.high) / variances
        largest = jnp.argmax(shares)
        share = shares[largest]
        alive = share > VANISHING
        pivot = dd.where(alive, rest[largest, largest], 1.0)
        column = dd.where(alive, dd.divide(rest[:, largest], dd.square_root(pivot)[None]), 0.0)
        volume = jnp.where(alive, volume * jnp.sqrt(jnp.where(alive, share, 1.0)), 0.0)
        columns.append(column)
        rest = dd.subtract(rest, dd.multiply(column[:, None], column[None, :]))
    lengths = dd.square_root(dd.doubled(variances))
    return dd.divide(dd.stack(columns, axis=1), lengths[:, None]), volume
