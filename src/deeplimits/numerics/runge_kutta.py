"""One step of an explicit Runge-Kutta method: of order eight with an estimate of its error, and of order four without.

The right-hand side is compiled once, inside a loop over the stages; written out it would stand there thirteen times.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from deeplimits.numerics.shapes import Scalar
from deeplimits.numerics.stepping import Field, Method, Stepped

# Prince and Dormand (1981), RK8(7)13M: nodes, stages and both solutions, in the authors' fractions.
_C = np.array(
    [0, 1/18, 1/12, 1/8, 5/16, 3/8, 59/400, 93/200, 5490023248/9719169821, 13/20, 1201146811/1299019798, 1, 1]
)  # fmt: skip
_A = np.zeros((13, 13))
_A[1, 0] = 1/18  # fmt: skip
_A[2, :2] = 1/48, 1/16  # fmt: skip
_A[3, [0, 2]] = 1/32, 3/32  # fmt: skip
_A[4, [0, 2, 3]] = 5/16, -75/64, 75/64  # fmt: skip
_A[5, [0, 3, 4]] = 3/80, 3/16, 3/20  # fmt: skip
_A[6, [0, 3, 4, 5]] = 29443841/614563906, 77736538/692538347, -28693883/1125000000, 23124283/1800000000  # fmt: skip
_A[7, [0, 3, 4, 5, 6]] = (
    16016141/946692911, 61564180/158732637, 22789713/633445777, 545815736/2771057229, -180193667/1043307555,
)  # fmt: skip
_A[8, [0, 3, 4, 5, 6, 7]] = (
    39632708/573591083, -433636366/683701615, -421739975/2616292301, 100302831/723423059, 790204164/839813087,
    800635310/3783071287,
)  # fmt: skip
_A[9, [0, *range(3, 9)]] = (
    246121993/1340847787, -37695042795/15268766246, -309121744/1061227803, -12992083/490766935,
    6005943493/2108947869, 393006217/1396673457, 123872331/1001029789,
)  # fmt: skip
_A[10, [0, *range(3, 10)]] = (
    -1028468189/846180014, 8478235783/508512852, 1311729495/1432422823, -10304129995/1701304382,
    -48777925059/3047939560, 15336726248/1032824649, -45442868181/3398467696, 3065993473/597172653,
)  # fmt: skip
_A[11, [0, *range(3, 11)]] = (
    185892177/718116043, -3185094517/667107341, -477755414/1098053517, -703635378/230739211,
    5731566787/1027545527, 5232866602/850066563, -4093664535/808688257, 3962137247/1805957418, 65686358/487910083,
)  # fmt: skip
_A[12, [0, *range(3, 11)]] = (
    403863854/491063109, -5068492393/434740067, -411421997/543043805, 652783627/914296604,
    11173962825/925320556, -13158990841/6184727034, 3936647629/1978049680, -160528059/685178525,
    248638103/1413531060,
)  # fmt: skip
_B = np.zeros(13)
_B[[0, *range(5, 13)]] = (
    14005451/335480064, -59238493/1068277825, 181606767/758867731, 561292985/797845732, -1041891430/1371343529,
    760417239/1151165299, 118820643/751138087, -528747749/2220607170, 1/4,
)  # fmt: skip
_B_LOWER = np.zeros(13)
_B_LOWER[[0, *range(5, 12)]] = (
    13451932/455176623, -808719846/976000145, 1757004468/5645159321, 656045339/265891186, -3867574721/1518517206,
    465885868/322736535, 53011238/667516719, 2/45,
)  # fmt: skip

# Kutta's method of order four
_C4 = np.array([0.0, 0.5, 0.5, 1.0])
_A4 = np.diag([0.5, 0.5, 1.0], -1)
_B4 = np.array([1.0, 2.0, 2.0, 1.0]) / 6


def prince_dormand(field: Field, t: Scalar, y: Float[Array, " n"], h: Scalar) -> Stepped:
    """y(t + h) from y(t) by Prince and Dormand's method of order eight, and how it differs from that of order seven."""
    slopes = _slopes(_A, _C, field, t, y, h)
    return Stepped(y + h * (jnp.asarray(_B) @ slopes), h * (jnp.asarray(_B - _B_LOWER) @ slopes))


def kutta(field: Field, t: Scalar, y: Float[Array, " n"], h: Scalar) -> Float[Array, " n"]:
    """y(t + h) from y(t) by Kutta's method of order four."""
    return y + h * (jnp.asarray(_B4) @ _slopes(_A4, _C4, field, t, y, h))


def _slopes(a: np.ndarray, c: np.ndarray, field: Field, t, y, h) -> Float[Array, "stages n"]:
    """k_i = f(t + c_i h, y + h Σ_{j<i} a_ij k_j)."""

    def stage(slopes, row):
        weights, node, index = row
        return slopes.at[index].set(field(t + node * h, y + h * (weights @ slopes))), None

    rows = (jnp.asarray(a), jnp.asarray(c), np.arange(len(c)))
    return jax.lax.scan(stage, jnp.zeros((len(c), y.size)), rows)[0]


EXPLICIT = Method(prince_dormand, order=8)
