"""Kernels of wide networks, and training with them."""
