"""Two-layer networks: the overlap equations of one-pass SGD, mean-field flows, laziness."""

from deeplimits.theory.two_layer import laziness as laziness
from deeplimits.theory.two_layer import mean_field as mean_field
from deeplimits.theory.two_layer import overlaps as overlaps
