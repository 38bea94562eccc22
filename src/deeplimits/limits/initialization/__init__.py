"""Networks at initialization: kernels, fluctuations, phases, learning rates."""
