"""Online stochastic gradient descent in high dimension."""
