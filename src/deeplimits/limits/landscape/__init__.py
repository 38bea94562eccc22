"""Loss landscapes: curvature, classes, learning rates that are too large for a quadratic."""
