"""Exact Bayesian inference with deep linear networks."""
