"""What stochastic gradient descent becomes."""

from deeplimits.theory.dynamics import equator as equator
