"""Spectra of random matrices."""
