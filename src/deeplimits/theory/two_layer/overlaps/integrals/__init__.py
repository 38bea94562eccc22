r"""Gaussian integrals of activations, from which the overlap equations are made.

Fields λ ~ N(0, C); σ_a = σ(λ_a). With indices a, b, c, d that may coincide in any way:

    I₂(a,b) = E σ_a σ_b,  J₂(a,b) = E σ'_a σ'_b,  I₃(a,b,c) = E σ'_a λ_b σ_c,  I₄(a,b,c,d) = E σ'_a σ'_b σ_c σ_d

The integrals themselves are those of `theory.gaussian.fields`: closed forms for erf, ReLU, u² and u, and the trapezoid
rule for any other smooth activation.
"""

from deeplimits.theory.two_layer.overlaps.integrals.moments import Moments as Moments
from deeplimits.theory.two_layer.overlaps.integrals.moments import activation_integrals as activation_integrals
