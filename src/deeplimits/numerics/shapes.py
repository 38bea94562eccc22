"""Types of arrays that most annotations need, by their shapes."""

from jaxtyping import Array, Float

Scalar = Float[Array, ""]
"""One number."""
Floats = Float[Array, "..."]
"""Numbers in an array of any shape."""
