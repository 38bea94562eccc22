"""What both sides stand on and neither owns: it knows no model, and is tested by itself against other libraries."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.numerics.arguments import Allowed as Allowed
    from deeplimits.numerics.arguments import argument as argument
    from deeplimits.numerics.arguments import array as array
    from deeplimits.numerics.arguments import choice as choice
    from deeplimits.numerics.arguments import number as number
    from deeplimits.numerics.arguments import probabilities as probabilities
    from deeplimits.numerics.arguments import times as times
    from deeplimits.numerics.arguments import whole as whole
    from deeplimits.numerics.checks import aloud as aloud
    from deeplimits.numerics.checks import converged as converged
    from deeplimits.numerics.checks import valid as valid
    from deeplimits.numerics.draws import Draws as Draws
    from deeplimits.numerics.draws import chi_square as chi_square
    from deeplimits.numerics.draws import draw as draw
    from deeplimits.numerics.flows import Reached as Reached
    from deeplimits.numerics.flows import Solved as Solved
    from deeplimits.numerics.flows import fixed_steps as fixed_steps
    from deeplimits.numerics.flows import solve as solve
    from deeplimits.numerics.flows import solve_until as solve_until
    from deeplimits.numerics.panels import Rule as Rule
    from deeplimits.numerics.panels import composite as composite
    from deeplimits.numerics.panels import even as even
    from deeplimits.numerics.panels import gauss as gauss
    from deeplimits.numerics.panels import half_line as half_line
    from deeplimits.numerics.panels import towards_both_ends as towards_both_ends
    from deeplimits.numerics.precision import full_products as full_products
    from deeplimits.numerics.quasi_random import gaussian_points as gaussian_points
    from deeplimits.numerics.ranks import same_rank as same_rank
    from deeplimits.numerics.roots import bracketed as bracketed
    from deeplimits.numerics.roots import on_host as on_host
