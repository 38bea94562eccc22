"""Deterministic mathematics: no randomness, no networks."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.theory import attention as attention
    from deeplimits.theory import bayes as bayes
    from deeplimits.theory import bias as bias
    from deeplimits.theory import expressivity as expressivity
    from deeplimits.theory import gaussian as gaussian
    from deeplimits.theory import inequalities as inequalities
    from deeplimits.theory import initialization as initialization
    from deeplimits.theory import kernels as kernels
    from deeplimits.theory import landscape as landscape
    from deeplimits.theory import mixtures as mixtures
    from deeplimits.theory import online_sgd as online_sgd
    from deeplimits.theory import regression as regression
    from deeplimits.theory import spectra as spectra
    from deeplimits.theory import two_layer as two_layer
