"""The classical ensembles of random matrices, for every β: matrices, and their eigenvalues alone in quadratic time."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.ensembles.random_matrices.classical import gaussian_eigenvalues as gaussian_eigenvalues
    from deeplimits.ensembles.random_matrices.classical import gaussian_matrix as gaussian_matrix
    from deeplimits.ensembles.random_matrices.classical import wishart_eigenvalues as wishart_eigenvalues
