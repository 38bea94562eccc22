r"""Integrals of an activation over two to four Gaussian fields: closed forms, and the trapezoid rule for any other."""

from deeplimits.theory.gaussian.fields.abstract_fields import Fields as Fields
from deeplimits.theory.gaussian.fields.erf import ErfSaad as ErfSaad
from deeplimits.theory.gaussian.fields.relu import Relu as Relu
from deeplimits.theory.gaussian.fields.wick import Identity as Identity
from deeplimits.theory.gaussian.fields.wick import Square as Square
