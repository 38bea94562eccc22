r"""Teacher and student of one index."""

from jaxtyping import Array

from deeplimits.ensembles import reduced_chains
from deeplimits.errors import DeeplimitsError
from deeplimits.limit import Limit, Run, activation_choice, axis, real, whole
from deeplimits.limits.online_sgd._shared import moment_curves
from deeplimits.models.activations import Activation
from deeplimits.showcase import Showcase
from deeplimits.theory.online_sgd import landscapes

DRAWS = 150


def _offered(a: Activation) -> bool:
    # Teacher and student share their lowest Hermite order most often where both have a symmetry or a degree.
    return a.continuous and (a.odd or a.homogeneous is not None)


class PopulationLossTeacherStudent(Limit):
    r"""The population loss of a single-index model is a power series in the correlation.

    Setting     y = f(⟨a, θ⟩) + ε, a ~ N(0, I_N), Var ε = σ², L = (y − g(⟨a, x⟩))², |x| = |θ| = 1, m = ⟨x, θ⟩
    Limit       N → ∞ for |∇L|²/N; none is needed for the rest
    Result      φ(m) = −2 Σ_k u_k(f) u_k(g) m^k + ‖f‖² + ‖g‖² + σ², u_k the Hermite coefficients
                −φ'(m) = 2E f'(z')g'(z), s(m) = 4E[((f(z') − g(z))² + σ²) g'(z)²], z, z' with correlation m
                information exponent: the first k ≥ 1 with u_k(f) u_k(g) ≠ 0
    Validity    f and g share a Hermite coefficient, the first of them positive; size counts the dimension N
    Finite size gap O(1/N) of |∇L|²/N; loss, drift and directional moment exact
    Computed by online_sgd.single_index, online_sgd.information_exponent
    References  benarous2021
    """

    teacher: str = activation_choice("relu", _offered, symbol="f", doc="teacher f")
    student: str = activation_choice("relu", _offered, symbol="g", doc="student g")
    noise: Array = real(0.3, 0.0, 5.0, symbol=r"\sigma", doc="standard deviation of the label noise")
    overlaps: Array = axis((0.1, 0.4, 0.7), 0.0, 0.8, symbol="m", doc="correlations at which the loss is measured")

    usual = Run(sizes=(50, 100, 200), samples=2000, batch=100)
    showcase = Showcase(
        parameters={"overlaps": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)},
        see="The loss over the correlation with the teacher: where it is flat at zero, the search is long.",
    )

    def validity(self):
        try:
            found = landscapes.information_exponent(self.teacher, student=self.student)
        except DeeplimitsError:
            return (
                f"teacher = {self.teacher} and student = {self.student} share no Hermite coefficient; choose others",
            )
        if not found.fisher_consistent:
            return (
                f"teacher = {self.teacher} and student = {self.student} have a negative product of order "
                f"{found.exponent}, so that SGD is driven away from the signal; choose others",
            )
        return ()

    def theory(self):
        return moment_curves(landscapes.single_index(self.teacher, self.student, self.noise), self.overlaps)

    def at_size(self, size):
        n = whole(size, "N", self, least=3)
        return {"dimension": n}, self

    def simulate(self, key, *, dimension: int):
        model = reduced_chains.single_index(dimension, self.teacher, self.student, self.noise)
        samples = model.samples(key, (len(self.overlaps), DRAWS))
        return reduced_chains.gradient_moments(model, samples, self.overlaps)
