"""Networks near their initialization: linearization and tangent kernels."""

from deeplimits.theory.kernels import linearization as linearization
