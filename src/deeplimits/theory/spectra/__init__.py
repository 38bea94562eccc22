"""Limiting laws of eigenvalues."""

from deeplimits.theory.spectra import laws as laws
from deeplimits.theory.spectra import marchenko_pastur_formulas as marchenko_pastur_formulas
from deeplimits.theory.spectra.spectral_measure import SpectralMeasure as SpectralMeasure
