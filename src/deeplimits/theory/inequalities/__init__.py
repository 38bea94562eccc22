"""Inequalities that many proofs rest on: tails of sums, eigenvalues of sums, growth of sequences."""

from deeplimits.theory.inequalities import basic as basic
from deeplimits.theory.inequalities import growth as growth
from deeplimits.theory.inequalities import matrix_tails as matrix_tails
