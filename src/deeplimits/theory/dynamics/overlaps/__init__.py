"""Two-layer networks trained by one-pass SGD in high dimension: the equations of their overlaps."""

from deeplimits.theory.dynamics.overlaps import equations as equations
