"""Two-layer networks trained by one-pass SGD: high dimension, large width, and both."""
