"""Inequalities that many proofs rest on: tails of sums, eigenvalues of sums, growth of sequences."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.theory.inequalities.basic import azuma as azuma
    from deeplimits.theory.inequalities.basic import bernoulli_lower_tail as bernoulli_lower_tail
    from deeplimits.theory.inequalities.basic import burkholder as burkholder
    from deeplimits.theory.inequalities.basic import gronwall as gronwall
    from deeplimits.theory.inequalities.basic import hoeffding as hoeffding
    from deeplimits.theory.inequalities.basic import hoffman_wielandt as hoffman_wielandt
    from deeplimits.theory.inequalities.basic import sub_gaussian_norm as sub_gaussian_norm
    from deeplimits.theory.inequalities.basic import weyl as weyl
    from deeplimits.theory.inequalities.growth import blow_up_time as blow_up_time
    from deeplimits.theory.inequalities.growth import growth_bounds as growth_bounds
    from deeplimits.theory.inequalities.growth import growth_sequence as growth_sequence
    from deeplimits.theory.inequalities.matrix_tails import Bernstein as Bernstein
    from deeplimits.theory.inequalities.matrix_tails import gram_bernstein as gram_bernstein
    from deeplimits.theory.inequalities.matrix_tails import matrix_bernstein as matrix_bernstein
