"""Deterministic mathematics: no randomness, no networks."""
