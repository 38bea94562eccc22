"""Curvature of a network's loss: operators, extreme eigenpairs, spectral density, traces and outliers."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.measure.curvature.density import SpectralDensity as SpectralDensity
    from deeplimits.measure.curvature.density import spectral_density as spectral_density
    from deeplimits.measure.curvature.edges import Outliers as Outliers
    from deeplimits.measure.curvature.edges import count_outliers as count_outliers
    from deeplimits.measure.curvature.lanczos import Eigenpairs as Eigenpairs
    from deeplimits.measure.curvature.lanczos import eigenpairs as eigenpairs
    from deeplimits.measure.curvature.operators import Curvature as Curvature
    from deeplimits.measure.curvature.operators import by_class as by_class
    from deeplimits.measure.curvature.operators import by_layer as by_layer
    from deeplimits.measure.curvature.operators import fisher as fisher
    from deeplimits.measure.curvature.operators import gauss_newton as gauss_newton
    from deeplimits.measure.curvature.operators import gradient_moment as gradient_moment
    from deeplimits.measure.curvature.operators import hessian as hessian
    from deeplimits.measure.curvature.operators import residual_part as residual_part
    from deeplimits.measure.curvature.operators import tangent_kernel as tangent_kernel
    from deeplimits.measure.curvature.traces import frobenius as frobenius
    from deeplimits.measure.curvature.traces import trace as trace
