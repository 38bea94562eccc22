"""Symmetric matrices by their upper triangle, as `deeplimits.numerics.symmetric` has them."""

from deeplimits.numerics.symmetric import diagonal as diagonal
from deeplimits.numerics.symmetric import filled as filled
from deeplimits.numerics.symmetric import triangle as triangle
from deeplimits.numerics.symmetric import upper as upper
