"""Limiting laws of eigenvalues."""

from deeplimits.theory.spectra import marchenko_pastur as marchenko_pastur
