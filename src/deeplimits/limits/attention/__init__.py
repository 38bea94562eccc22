"""Limits about attention: transformers as interacting particles on the sphere."""
