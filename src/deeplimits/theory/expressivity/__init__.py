"""What networks can express: paths, Jacobians and tangent kernels at finite width, linear regions, entropy, widths."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.theory.expressivity.kink_density import ExpectedBreakpoints as ExpectedBreakpoints
    from deeplimits.theory.expressivity.kink_density import breakpoint_constant as breakpoint_constant
    from deeplimits.theory.expressivity.kink_density import expected_breakpoints as expected_breakpoints
    from deeplimits.theory.expressivity.kink_density import zero_cell_sides as zero_cell_sides
    from deeplimits.theory.expressivity.path_moments import jacobian_log_moments as jacobian_log_moments
    from deeplimits.theory.expressivity.path_moments import jacobian_moment as jacobian_moment
    from deeplimits.theory.expressivity.path_moments import layer_factor as layer_factor
    from deeplimits.theory.expressivity.paths import PathSum as PathSum
    from deeplimits.theory.expressivity.paths import dead_probability as dead_probability
    from deeplimits.theory.expressivity.paths import gate_probability as gate_probability
    from deeplimits.theory.expressivity.paths import path_count as path_count
    from deeplimits.theory.expressivity.paths import path_sum as path_sum
    from deeplimits.theory.expressivity.region_counts import Cells as Cells
    from deeplimits.theory.expressivity.region_counts import PatternBounds as PatternBounds
    from deeplimits.theory.expressivity.region_counts import activation_region_bound as activation_region_bound
    from deeplimits.theory.expressivity.region_counts import arrangement_cells as arrangement_cells
    from deeplimits.theory.expressivity.region_counts import cell_count as cell_count
    from deeplimits.theory.expressivity.region_counts import one_hidden_layer_pieces as one_hidden_layer_pieces
    from deeplimits.theory.expressivity.region_counts import sawtooth as sawtooth
    from deeplimits.theory.expressivity.tangent_moments import EigenvalueBounds as EigenvalueBounds
    from deeplimits.theory.expressivity.tangent_moments import matrix_chernoff as matrix_chernoff
    from deeplimits.theory.expressivity.tangent_moments import ntk_eigenvalue_bounds as ntk_eigenvalue_bounds
    from deeplimits.theory.expressivity.tangent_moments import ntk_moments as ntk_moments
    from deeplimits.theory.expressivity.tangent_moments import ntk_off_diagonal as ntk_off_diagonal
    from deeplimits.theory.expressivity.tangent_moments import ntk_spread_limit as ntk_spread_limit
    from deeplimits.theory.expressivity.widths_and_entropy import carl_bits as carl_bits
    from deeplimits.theory.expressivity.widths_and_entropy import entropy_numbers as entropy_numbers
    from deeplimits.theory.expressivity.widths_and_entropy import entropy_of_points as entropy_of_points
    from deeplimits.theory.expressivity.widths_and_entropy import entropy_to_width as entropy_to_width
    from deeplimits.theory.expressivity.widths_and_entropy import johnson_lindenstrauss as johnson_lindenstrauss
    from deeplimits.theory.expressivity.widths_and_entropy import no_free_lunch_error as no_free_lunch_error
    from deeplimits.theory.expressivity.widths_and_entropy import projection_failure as projection_failure
    from deeplimits.theory.expressivity.widths_and_entropy import sobolev_width as sobolev_width
