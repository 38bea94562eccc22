"""The room of inequalities over extreme arguments."""

import extremes
from deeplimits.theory import inequalities
from extremes import COUNT, KERNEL, MATRIX, NUMBER, POSITIVE, TIMES, VECTOR, WHOLE, Case, one_of

ORDER = one_of(2, 3, 4, extreme=[1, 0, -1, 30, 2.5])
TABLE = {
    "azuma": Case((POSITIVE, VECTOR), low=0, high=1),
    "bernoulli_lower_tail": Case((POSITIVE, COUNT), low=0),
    "burkholder": Case((POSITIVE | (2.0, 4.0),), low=0),
    "gronwall": Case((NUMBER, POSITIVE, TIMES), infinite=True),
    "hoeffding": Case((POSITIVE, COUNT), keywords={"low": NUMBER, "high": POSITIVE}, low=0, high=2),
    "hoffman_wielandt": Case((KERNEL, KERNEL), low=0),
    "weyl": Case((MATRIX, MATRIX), low=0),
    "sub_gaussian_norm": Case((VECTOR, one_of(None, extreme=[[0.5, 0.5, 0.0], [1.0, 1.0, 1.0], [1.0]])), low=0),
    "blow_up_time": Case((ORDER, POSITIVE, POSITIVE), low=0),
    "growth_bounds": Case((ORDER, POSITIVE, POSITIVE, WHOLE, POSITIVE), infinite=True),
    "growth_sequence": Case((ORDER, POSITIVE, POSITIVE, one_of(3, extreme=[0, -1, 100, 2.5])), infinite=True),
    "gram_bernstein": Case((POSITIVE, COUNT, COUNT), look=lambda found: (found.deviation(0.1), found.tail(0.5)), low=0),
    "matrix_bernstein": Case(
        (POSITIVE, POSITIVE, COUNT), look=lambda found: (found.deviation(0.1), found.tail(0.5)), low=0
    ),
}


test_values, test_coverage = extremes.room_tests(inequalities, TABLE)
