r"""How close the resolvent of one matrix is to its limit."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from deeplimits.ensembles import data
from deeplimits.limit import Limit, Run, axis, choice, real, rounded, whole
from deeplimits.measure import spectra
from deeplimits.predictions import Curve, Identity, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.spectra import equivalents, marchenko_pastur_formulas


class StieltjesTransformAndInversion(Limit):
    r"""The resolvent of one matrix shows the limiting density through a Cauchy kernel; what one sample changes in it.

    Setting     Σ̂ = X'X/M of size N, independent standard Gaussian entries; R(z) = (Σ̂ − z)^{-1}, at z = −y and at
                z = x + iε
    Limit       N, M → ∞ with N/M → γ
    Result      smoothed density (1/πN) Im tr R(x + iε) → (1/π) Im S(x + iε), the law convolved with a Cauchy kernel
                removing a sample: tr R_{A+cvv'} − tr R_A = −c⟨v, R²v⟩/(1 + c⟨v, Rv⟩), exactly
                quadratic forms of an independent x: Var ⟨x, Ax⟩ = 2‖A‖²_F + (κ₄ − 3)ΣA_ii², exactly
    Validity    y, ε > 0; size counts the dimension N
    Finite size the smoothed density deviates by O(1/N); the other two are exact
    Computed by spectra.marchenko_pastur_stieltjes (smoothed_density), spectra.trace_change (leave_one_out),
                spectra.quadratic_form_variance (quadratic_form), spectra.rank_one_solve (leave_one_out),
                spectra.quadratic_form_bound (quadratic_form); of any transform spectra.mass_between (smoothed_density),
                spectra.atom_mass (smoothed_density), spectra.total_mass (smoothed_density), spectra.matrix_function
                (smoothed_density)
    References  bai2010; sherman1950
    """

    gamma: Array = real(0.5, 0.02, 20.0, log=True, symbol=r"\gamma", doc="dimension per sample, N/M")
    shift: Array = real(0.3, 0.02, 10.0, log=True, symbol="y", doc="distance of z = −y below the spectrum")
    height: Array = real(0.3, 0.02, 10.0, log=True, symbol=r"\epsilon", doc="width of the Cauchy kernel")
    entries: str = choice("uniform", ("gaussian", "rademacher", "uniform"), doc="law of x in the quadratic form")
    places: Array = axis((0.2, 0.6, 1.0, 2.0), -100.0, 1000.0, symbol="x", doc="where the density is compared")

    usual = Run(sizes=(30, 60, 120), samples=100)
    showcase = Showcase(
        parameters={"places": (0.05, 0.2, 0.4, 0.7, 1.0, 1.4, 1.8, 2.2, 2.6, 3.0)},
        first="smoothed_density",
        see="One matrix's resolvent shows the limiting density through a window of width ε.",
    )

    def theory(self):
        z = self.places.astype(complex) + 1j * self.height.astype(complex)
        kurtosis = {"gaussian": 3.0, "rademacher": 1.0, "uniform": 1.8}[self.entries]
        matrix = _test_matrix()
        return {
            "smoothed_density": Curve(
                self.places,
                jnp.imag(marchenko_pastur_formulas.marchenko_pastur_stieltjes(z, self.gamma)) / jnp.pi,
                axis="place",
                axis_symbol="x",
                label="smoothed density",
                symbol=r"\frac{1}{\pi}{\rm Im} S(x+i\epsilon)",
                rate=1.0,
            ),
            "quadratic_form": Value(
                equivalents.quadratic_form_variance(matrix, kurtosis),
                label="variance of a quadratic form",
                symbol=r"{\rm Var}\langle x,Ax\rangle",
            ),
        }

    def at_size(self, size):
        n = whole(size, "N", self, least=2)
        m = whole(n / float(self.gamma), "M", self, least=2)
        return {"samples": m, "dimension": n}, rounded(self, gamma=n / m)

    def draw(self, key, *, samples: int, dimension: int):
        x = data.independent_entries(key, samples, dimension)
        return x, data.independent_entries(data.other(key), VECTORS, TEST_SIZE, law=self.entries)

    def stated(self, system):
        x, _ = system
        rest, last = x[:-1], x[-1]
        values, vectors = jnp.linalg.eigh(rest.T @ rest / x.shape[0])
        # tr R = tr R_A − c⟨v, R_A²v⟩/(1 + c⟨v, R_Av⟩) with A from all samples but the last, v, and c = 1/M
        change = jnp.real(equivalents.trace_change(-self.shift, values, last @ vectors, strength=1 / x.shape[0]))
        return {
            "leave_one_out": Identity(
                jnp.sum(1 / (values + self.shift)) + change,
                label="trace, from the one without a sample",
                symbol=r"{\rm tr}R^{(1)}-\frac{\langle v,R^2v\rangle}{M+\langle v,Rv\rangle}",
                tolerance=TOLERANCE,
                reason="a rounding of the largest eigenvalue, up to 1500 times the shift",
            ),
        }

    def measured(self, system):
        x, vectors = system
        eigenvalues = spectra.sample_covariance_eigenvalues(x)
        matrix = _test_matrix()
        form = jnp.sum(vectors @ matrix * vectors, axis=1) - jnp.trace(matrix)
        return {
            "smoothed_density": spectra.cauchy_smoothed(eigenvalues, self.places, self.height),
            "quadratic_form": jnp.mean(form**2),
            "leave_one_out": jnp.sum(1 / (eigenvalues + self.shift)),
        }


TEST_SIZE = 6
VECTORS = 400
TOLERANCE = 3.3e-13


def _test_matrix():
    """A symmetric matrix with a diagonal that is not constant."""
    place = np.arange(1.0, TEST_SIZE + 1)
    return np.diag(place) + np.cos(place[:, None] * place)
