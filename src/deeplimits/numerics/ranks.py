"""Arrays of different rank side by side: the axes that NumPy would put in front in silence, put there aloud.

The tests run with `jax_numpy_rank_promotion = "raise"`, so that (n,) against (n, 1) is an error. Where arguments of any
rank are meant to broadcast, this says so.
"""

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array


def same_rank(*parts: ArrayLike) -> tuple[Array, ...]:
    """The same arrays with axes of length one in front until all have one rank; numbers stay numbers.

    >>> [part.shape for part in same_rank(jnp.ones(3), jnp.ones((2, 1)), 0.5)]
    [(1, 3), (2, 1), ()]
    """
    arrays = [jnp.asarray(part) for part in parts]
    rank = max(part.ndim for part in arrays)
    return tuple(jnp.expand_dims(part, range(rank - part.ndim)) if part.ndim else part for part in arrays)
