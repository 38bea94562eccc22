"""Kernel matrices that do not fit into memory: block by block on disk, and regression with them by products alone."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.theory.kernels.large.conjugate_gradients import IterativeFit as IterativeFit
    from deeplimits.theory.kernels.large.conjugate_gradients import iterative_ridge as iterative_ridge
    from deeplimits.theory.kernels.large.conjugate_gradients import predict_by_blocks as predict_by_blocks
    from deeplimits.theory.kernels.large.gram_files import GramFile as GramFile
    from deeplimits.theory.kernels.large.gram_files import gram_file as gram_file
