"""Limiting laws of eigenvalues."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.theory.spectra.covariance_gaps import operator_gap as operator_gap
    from deeplimits.theory.spectra.equivalents import difference_singular_values as difference_singular_values
    from deeplimits.theory.spectra.equivalents import quadratic_form_variance as quadratic_form_variance
    from deeplimits.theory.spectra.equivalents import rank_one_solve as rank_one_solve
    from deeplimits.theory.spectra.equivalents import resolvent_equivalent as resolvent_equivalent
    from deeplimits.theory.spectra.equivalents import trace_covariance as trace_covariance
    from deeplimits.theory.spectra.equivalents import trace_fluctuation as trace_fluctuation
    from deeplimits.theory.spectra.isometry import critical_point as critical_point
    from deeplimits.theory.spectra.isometry import deep_linear_log_norm as deep_linear_log_norm
    from deeplimits.theory.spectra.isometry import deep_linear_norm as deep_linear_norm
    from deeplimits.theory.spectra.isometry import jacobian_spectrum as jacobian_spectrum
    from deeplimits.theory.spectra.isometry import slope_law as slope_law
    from deeplimits.theory.spectra.laws import free_product as free_product
    from deeplimits.theory.spectra.laws import free_sum as free_sum
    from deeplimits.theory.spectra.laws import from_atoms as from_atoms
    from deeplimits.theory.spectra.laws import from_eigenvalues as from_eigenvalues
    from deeplimits.theory.spectra.laws import marchenko_pastur as marchenko_pastur
    from deeplimits.theory.spectra.laws import sample_covariance as sample_covariance
    from deeplimits.theory.spectra.laws import semicircle as semicircle
    from deeplimits.theory.spectra.marchenko_pastur_formulas import marchenko_pastur_cdf as marchenko_pastur_cdf
    from deeplimits.theory.spectra.marchenko_pastur_formulas import marchenko_pastur_density as marchenko_pastur_density
    from deeplimits.theory.spectra.marchenko_pastur_formulas import marchenko_pastur_edges as marchenko_pastur_edges
    from deeplimits.theory.spectra.marchenko_pastur_formulas import (
        marchenko_pastur_stieltjes as marchenko_pastur_stieltjes,
    )
    from deeplimits.theory.spectra.network_grams import conjugate_kernel_spectrum as conjugate_kernel_spectrum
    from deeplimits.theory.spectra.network_grams import nonlinear_gram as nonlinear_gram
    from deeplimits.theory.spectra.network_grams import nonlinear_gram_companion as nonlinear_gram_companion
    from deeplimits.theory.spectra.network_grams import nonlinear_gram_spikes as nonlinear_gram_spikes
    from deeplimits.theory.spectra.ridge_equation import effective_ridge as effective_ridge
    from deeplimits.theory.spectra.sample_covariance_law import SampleCovariance as SampleCovariance
    from deeplimits.theory.spectra.shrinkage import linear_shrinkage_intensity as linear_shrinkage_intensity
    from deeplimits.theory.spectra.shrinkage import oracle_inverse_shrinkage as oracle_inverse_shrinkage
    from deeplimits.theory.spectra.shrinkage import oracle_shrinkage as oracle_shrinkage
    from deeplimits.theory.spectra.spectral_measure import SpectralMeasure as SpectralMeasure
    from deeplimits.theory.spectra.spikes import law_spike as law_spike
    from deeplimits.theory.spectra.spikes import population_spike as population_spike
    from deeplimits.theory.spectra.spikes import signal_plus_noise as signal_plus_noise
    from deeplimits.theory.spectra.spikes import spiked_covariance as spiked_covariance
    from deeplimits.theory.spectra.spikes import spiked_wigner as spiked_wigner
    from deeplimits.theory.spectra.tracy_widom import largest_eigenvalue_pvalue as largest_eigenvalue_pvalue
    from deeplimits.theory.spectra.tracy_widom import tracy_widom_cdf as tracy_widom_cdf
    from deeplimits.theory.spectra.tracy_widom import tracy_widom_logcdf as tracy_widom_logcdf
    from deeplimits.theory.spectra.tracy_widom import tracy_widom_pdf as tracy_widom_pdf
    from deeplimits.theory.spectra.tracy_widom import tracy_widom_quantile as tracy_widom_quantile
    from deeplimits.theory.spectra.tracy_widom import tracy_widom_sf as tracy_widom_sf
    from deeplimits.theory.spectra.tracy_widom import white_edge as white_edge
