"""What is stated of attention: reference values, invariants, rates, and clusters out of almost every start."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special

from deeplimits.ensembles import transformers as ensemble
from deeplimits.ensembles.transformers import blockwise
from deeplimits.measure import tokens as measure
from deeplimits.statistics import mean_of
from deeplimits.theory import attention, bias

X = jnp.array([[1.0, 0.0], [0.6, 0.8], [-0.8, 0.6]])


def time_of(cosine, start, tokens, beta, kind="softmax"):
    return np.exp(float(attention.equiangular_time(cosine, start, tokens, beta, kind=kind)))


def merging(mass, beta, angle, cosine):
    return np.exp(float(attention.merge_time(cosine, np.cos(angle), beta, mass=mass)))


REFERENCE = {
    "sa 2": (lambda: time_of(0.5, 0.0, 2, 1.0), 0.85537502330482),
    "sa 32 warm": (lambda: time_of(0.999, 0.0, 32, 1.0), 5.2702839075862),
    "sa 32": (lambda: time_of(0.999, 0.0, 32, 5.0), 9.5443292035202),
    "sa 32 cold": (lambda: time_of(0.999, 0.0, 32, 9.0), 178.73092951904),
    "usa 32": (lambda: time_of(0.999, 0.0, 32, 1.0, "unnormalized"), 2.8970486229896),
    "cosine 5": (lambda: attention.equiangular_cosine(0.0, 3.0, 5, 3.0).cosine, 0.617398657906),
    "cosine 32": (lambda: attention.equiangular_cosine(0.0, 5.0, 32, 4.0).cosine, 0.952774849743),
    "harmonic 3": (lambda: attention.harmonic_growth(3, 4.0, 2), 0.664388812208),
    "harmonic fastest": (lambda: attention.fastest_mode(25.0, 2).growth, 0.725796513190),
    "harmonic 128": (lambda: attention.harmonic_growth(1, 10.0, 128), 0.986294400053),
    "merging": (lambda: merging(0.625, 4.0, 1.2, 0.99), 3.9118760612209),
    "merging halves": (lambda: merging(0.5, 4.0, np.pi / 2, 0.99), 9.6685331892061),
    "merging quarter": (lambda: merging(0.25, 10.0, 1.0, 0.9), 5.788962782601),
    "order 1": (lambda: attention.poisson_order(0.2, 1.0), 0.318964961149),
    "order 3": (lambda: attention.poisson_order(0.2, 3.0), 0.674984275546),
    "energy": (lambda: attention.energy_growth(X, 1.7).energy, 0.800050760033),
    "growth SA": (lambda: attention.energy_growth(X, 1.7).growth, 0.113375012149),
    "growth USA": (lambda: attention.energy_growth(X, 1.7, kind="unnormalized").growth, 0.312799645097),
    "entropy": (lambda: attention.gibbs_row([1.0, 0.0, -1.0], 1.0).entropy, 0.832395581840),
    "weight": (lambda: attention.gibbs_row([1.0, 0.0, -1.0], 1.0).weights[1], 0.244728471055),
    "moment": (lambda: attention.circle_moments([0.25], [2.0], 2.0)[0, 0], 0.485869335),
    "angle": (lambda: attention.angular_flow([0.0, 1.0, 2.5], [3.0], 2.0)[0, 2], 1.85042105),
    "residual": (lambda: attention.tanh_flow(0.5, 1.0, 1.0, 1.0), 1.147525913662),
    "residual slope": (lambda: jax.grad(lambda x: attention.tanh_flow(x, 1.0, 1.0, 1.0))(0.5), 1.767804536543),
    "hemisphere 4": (lambda: bias.cover_probability(4, 2), 0.5),
    "hemisphere 6": (lambda: bias.cover_probability(6, 3), 0.5),
    "hemisphere 20": (lambda: bias.cover_probability(20, 8), 0.1796417236328125),
    "norm of products": (lambda: attention.score_law("ginibre").norm, 2.598076211353316),
}  # fmt: skip


@pytest.mark.parametrize("name", REFERENCE)
def test_reference_values(name):
    found, wanted = REFERENCE[name]
    digits = len(f"{wanted}".partition(".")[2])
    assert float(found()) == pytest.approx(wanted, rel=1e-12, abs=0.6 * 10.0**-digits)


def test_errors_of_a_residual_network():
    errors = [
        float(ensemble.residual_network(lambda t, x: jnp.tanh(x), jnp.array(0.5), 1.0, layers)) - 1.147525913662
        for layers in (10, 20, 40, 80)
    ]
    np.testing.assert_allclose(errors, [-0.022835160, -0.011528540, -0.005791363, -0.002902366], atol=1e-9)


def test_the_scalar_flow_does_not_overflow():
    """sinh(a x) = sinh(a x₀) e^{awt}; far out x grows by wt, and a decay brings it back."""
    assert float(attention.tanh_flow(1000.0, 1.0, 1.0, 1.0)) == pytest.approx(1001.0, abs=1e-12)
    assert float(attention.tanh_flow(-1.0, 2.0, 1.0, 1e3)) == pytest.approx(
        -(1e3 + np.log(2 * np.sinh(2.0)) / 2), rel=1e-14
    )
    assert float(attention.tanh_flow(1000.0, 1.0, -1.0, 999.5)) == pytest.approx(np.arcsinh(np.exp(0.5) / 2), rel=1e-12)
    assert float(attention.tanh_flow(0.0, 1.0, 1.0, 1e4)) == 0.0


@pytest.mark.parametrize(("degree", "beta", "d"), [(1, 2.0, 3), (3, 5.0, 3), (4, 20.0, 7)])
def test_growth_of_harmonics_is_that_of_funk_and_hecke(degree, beta, d):
    """k(k+d−2)/β times the eigenvalue of e^{β⟨x,y⟩} on harmonics of degree k: an integral with Gegenbauer's C_k."""
    order = (d - 2) / 2

    def mean(power):
        return integrate.quad(
            lambda t: np.exp(beta * (t - 1)) * (1 - t * t) ** ((d - 3) / 2)
            * special.eval_gegenbauer(power, order, t) / special.eval_gegenbauer(power, order, 1.0), -1, 1, epsabs=1e-14
        )[0]  # fmt: skip

    exact = degree * (degree + d - 2) / beta * mean(degree) / mean(0)
    assert float(attention.harmonic_growth(degree, beta, float(d))) == pytest.approx(exact, rel=1e-9)


def test_rows_of_attention_are_probabilities_up_to_the_coldest():
    x = ensemble.random_tokens(jax.random.key(0), 9, 4)
    score = ensemble.random_score(jax.random.key(1), "ginibre", 4)
    for beta in (0.0, 1.0, 1e3, 1e6):
        rows = np.asarray(ensemble.attention_matrix(x, beta, score=score))
        np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-14)
        assert np.all(rows >= 0)


def test_convex_cones_are_kept():
    """Tokens that begin in the positive orthant, which is no hemisphere's whole, never leave it."""
    x = jnp.abs(ensemble.random_tokens(jax.random.key(2), 10, 4))
    path = ensemble.attention_flow(x, jnp.linspace(0.5, 8.0, 10), 4.0)
    least = np.asarray(jnp.min(path, axis=(1, 2)))
    assert least[0] > float(jnp.min(x))
    assert np.all(np.diff(least) > 0)


@pytest.mark.parametrize("panel", ["A", "C", "D"])
def test_lengths_do_not_drift_over_long_times(panel):
    """A thousand units of time, and a hundred thousand layers: unit to the last digits, clustered or not."""
    layer = ensemble.panel_layer(jax.random.key(3), panel, 3)
    x = ensemble.random_tokens(jax.random.key(4), 5, 3)
    flow = ensemble.attention_flow(x, [10.0, 1000.0], 2.0, layer=layer, rtol=1e-8)
    end = ensemble.after_layers(x, 2.0, 0.05, 100_000, layer=layer)
    for tokens in (*flow, end):
        np.testing.assert_allclose(np.linalg.norm(tokens, axis=1), 1.0, atol=1e-14)


def test_energy_without_temperature():
    """dE₀/dt = Σ|ẋ|² for E₀ = n|x̄|²/2; with the double of it, (1/n)ΣΣ⟨x_i,x_j⟩, twice that."""
    x = ensemble.random_tokens(jax.random.key(5), 7, 3)
    velocity = ensemble.attention_velocity(x, 0.0)
    # Off the sphere by the square of the step, which the energy does not see to first order.
    slope = jax.jvp(lambda y: x.shape[0] * jnp.sum(jnp.mean(y, axis=0) ** 2) / 2, (x,), (velocity,))[1]
    assert float(slope) == pytest.approx(float(jnp.sum(velocity**2)), rel=1e-13)
    double = jax.jvp(lambda y: jnp.sum(y @ y.T) / x.shape[0], (x,), (velocity,))[1]
    assert float(double) == pytest.approx(2 * float(slope), rel=1e-13)
    moved = [attention.mean_energy(x + h * velocity, normalize=True) for h in (-1e-6, 1e-6)]
    assert float(moved[1] - moved[0]) / 2e-6 == pytest.approx(float(slope), rel=1e-6)


@pytest.mark.parametrize("kind", ["softmax", "unnormalized"])
def test_energies_at_a_thousand(kind):
    """E e^{−β} and its growth where E itself is no number, against the velocities of the particles."""
    beta, x = 1e3, ensemble.random_tokens(jax.random.key(6), 6, 2) + jnp.array([[60.0, 0.0]])
    x = ensemble.on_the_sphere(x, normalize=True)
    found = attention.energy_growth(x, beta, kind=kind, shift=beta)
    weights = np.exp(beta * (np.asarray(x @ x.T) - 1))
    assert float(found.energy) == pytest.approx(weights.mean() / (2 * beta), rel=1e-12)
    velocity = np.asarray(ensemble.attention_velocity(x, beta, kind=kind, shift=beta))
    squares = np.sum(velocity**2, axis=1)
    exact = np.mean(squares) if kind == "unnormalized" else np.sum(weights.sum(axis=1) * squares) / 36
    assert float(found.growth) == pytest.approx(exact, rel=1e-9)
    assert float(attention.log_interaction_energy(x, beta)) == pytest.approx(
        float(jnp.log(found.energy)) + beta, rel=1e-14
    )


def test_without_temperature_every_token_attends_to_the_mean():
    """β = 0 known beforehand takes n steps and not n²; with n × n weights it is the same."""
    x = ensemble.random_tokens(jax.random.key(13), 9, 4)
    weights = np.asarray(ensemble.attention_matrix(x, 0.0))
    np.testing.assert_allclose(weights, 1 / 9, atol=1e-16)
    pull = weights @ np.asarray(x)
    exact = pull - np.sum(pull * x, axis=1, keepdims=True) * x
    for beta in (0, 0.0, jnp.zeros(())):
        np.testing.assert_allclose(ensemble.attention_velocity(x, beta), exact, atol=1e-15)
    slope = jax.jacfwd(lambda beta: ensemble.attention_velocity(x, beta))(0.0)
    step = (ensemble.attention_velocity(x, 1e-6) - ensemble.attention_velocity(x, 0.0)) / 1e-6
    np.testing.assert_allclose(slope, step, atol=1e-5)


@pytest.mark.parametrize("dimension", [2, 3, 8])
def test_without_temperature_almost_every_start_ends_in_one_cluster(dimension):
    keys = jax.random.split(jax.random.key(7), 60)

    @jax.jit
    @jax.vmap
    def end(key):
        return measure.chord(ensemble.after_layers(ensemble.random_tokens(key, 32, dimension), 0.0, 0.1, 400))

    assert np.all(np.asarray(end(keys)) < 1e-3)


def test_from_a_hemisphere_there_is_one_cluster():
    x = ensemble.random_tokens(jax.random.key(8), 12, 3)
    x = x * jnp.sign(x[:, :1])
    assert float(measure.chord(ensemble.attention_flow(x, [60.0], 2.0, rtol=1e-7)[0])) < 1e-9


def test_all_pairs_deviate_from_equal_angles_like_the_root_of_the_dimension():
    """max |⟨x_i,x_j⟩ − γ(t)| of n = 8 tokens is at most of the order √(ln d/d): its mean halves from d to 4d."""
    times = jnp.array([2.0])
    exact = attention.equiangular_cosine(0.0, times, 8, 2.0).cosine[0]
    first, second = np.triu_indices(8, 1)

    @jax.jit
    def farthest(key, dimension):
        x = ensemble.attention_flow(ensemble.tokens_in_their_span(key, 8, dimension), times, 2.0, rtol=1e-6)[0]
        return jnp.max(jnp.abs((x @ x.T)[first, second] - exact))

    keys = jax.random.split(jax.random.key(9), 150)
    low, high = (mean_of(np.array([float(farthest(key, d)) for key in keys])) for d in (4000.0, 16000.0))
    # The next order is d^(−1/2) smaller, below the error of 150 draws.
    assert abs(low.value - 2 * high.value) < 4 * np.sqrt(low.variance + 4 * high.variance)


def test_no_square_matrix_in_the_program_for_a_hundred_thousand_tokens():
    """What the compiler reserves, without running it: 0.3 GB at most on a CPU, where a full matrix would be 40 GB.

    With the tiles of an accelerator, a few of 1 GiB.
    """
    x = jax.ShapeDtypeStruct((100_000, 128), jnp.float32)
    one = jax.ShapeDtypeStruct((), jnp.float32)
    square = jax.ShapeDtypeStruct((1, 128, 128), jnp.float32)
    for accelerator, most in ((False, 0.3e9), (True, 4e9)):
        side = blockwise.tile_side(100_000, 4, accelerator)
        programs = (
            blockwise._symmetric.lower(x, one, one, "softmax", side, accelerator),
            blockwise._attended.lower(x, one, one, square, square, "softmax", side, accelerator),
        )
        for program in programs:
            assert program.compile().memory_analysis().temp_size_in_bytes < most


@pytest.mark.parametrize(("n", "room", "kind"), [
    (300, 128**2 * 8, "softmax"), (500, 128**2 * 8, "unnormalized"), (130, 2**30, "softmax"),
])  # fmt: skip
def test_the_tiles_of_an_accelerator_are_the_whole(n, room, kind, monkeypatch):
    """Three and four blocks of rows of one size, the last one filled up; and all tokens in one tile."""
    x = ensemble.random_tokens(jax.random.key(13), n, 5)
    monkeypatch.setattr(blockwise, "on_accelerator", lambda: True)
    monkeypatch.setattr(blockwise, "TILE_BYTES", room)
    assert blockwise.tile_side(n, 8, True) == (128 if room < 2**30 else 256)
    for layer in (None, ensemble.random_layer(jax.random.key(14), "ginibre", "gaussian", 5)):
        found = ensemble.blockwise_velocity(x, 3.0, layer=layer, kind=kind)
        exact = ensemble.attention_velocity(x, 3.0, layer=layer, kind=kind)
        np.testing.assert_allclose(found, exact, atol=1e-13 * max(1.0, float(jnp.max(jnp.abs(exact)))))


def test_an_accelerator_has_few_tiles():
    """One for ten thousand tokens, 7 × 7 for a hundred thousand; of at most 1 GiB, at most a twentieth filled up."""
    for itemsize in (4, 8):
        for n in (1, 1000, 10_000, 16_384, 16_385, 100_000, 1_000_000):
            side = blockwise.tile_side(n, itemsize, True)
            count = -(-n // side)
            assert side % blockwise.LANES == 0
            assert side**2 * itemsize <= blockwise.TILE_BYTES
            assert count == -(-n // (math.isqrt(2**30 // itemsize) // 128 * 128))
            assert n < 1000 or count * side <= 1.05 * n


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
def test_tiles_with_heads_and_a_feed_forward_part(dtype):
    key = jax.random.key(10)
    one, two = (ensemble.random_layer(k, "ginibre", "gaussian", 4) for k in jax.random.split(key))
    feed = ensemble.FeedForward(*(jax.random.normal(key, shape) for shape in ((4, 3), (3, 4), (3,))), "relu")
    layer = ensemble.AttentionLayer(
        jnp.concatenate([one.scores, two.scores]), jnp.concatenate([one.values, two.values]), feed
    )
    x = ensemble.random_tokens(key, 21, 4).astype(dtype)
    found = ensemble.blockwise_velocity(x, 2.0, layer=layer, block=8)
    assert found.dtype == dtype
    exact = ensemble.attention_velocity(x, 2.0, layer=layer)
    np.testing.assert_allclose(found, exact, atol=1e-13 if dtype == jnp.float64 else 1e-5)


def test_scores_may_depend_on_time_too():
    """Rotating scores, frozen in pieces: layers at t = 0, h, 2h, … approach the flow to the first order."""

    def layer(t):
        turn = jnp.array([[jnp.cos(t), -jnp.sin(t)], [jnp.sin(t), jnp.cos(t)]])
        return ensemble.AttentionLayer(turn[None], (1 + t) * jnp.eye(2)[None])

    end = ensemble.attention_flow(X, [1.0], 1.5, layer=layer)[0]
    errors = [float(jnp.linalg.norm(ensemble.after_layers(X, 1.5, 1 / n, n, layer=layer) - end)) for n in (80, 160)]
    assert errors[0] / errors[1] == pytest.approx(2.0, abs=0.06)


def test_shares_and_chords_of_very_many_tokens_and_of_paths():
    x = ensemble.random_tokens(jax.random.key(11), 1500, 3)
    gram = np.asarray(x @ x.T)
    off = ~np.eye(1500, dtype=bool)
    assert float(measure.clustered_share(x, threshold=0.9)) == pytest.approx(np.mean(gram[off] > 0.9), abs=1e-12)
    assert float(measure.clustered_share(x, threshold=0.9, antipodal=True)) == pytest.approx(
        np.mean(abs(gram[off]) > 0.9), abs=1e-12
    )
    assert float(measure.chord(x)) == pytest.approx(np.max(1 - gram), abs=1e-12)
    path = x.reshape(3, 500, 3)
    assert measure.chord(path).shape == measure.clustered_share(path).shape == (3,)
    assert float(measure.chord(path)[1]) == pytest.approx(float(measure.chord(path[1])))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("panel", "beta", "share", "error"),
    [("B", 4.0, 0.886, 0.022), ("B", 8.0, 0.804, 0.025), ("C", 4.0, 0.46, 0.03), ("D", 4.0, 0.179, 0.014)],
)
def test_shares_in_the_panels(panel, beta, share, error):
    """d = 128, n = 32, t = 30, steps of 0.1, against 80 systems of another program."""

    @jax.jit
    def one(key):
        token_key, layer_key = jax.random.split(key)
        x = ensemble.random_tokens(token_key, 32, 128)
        layer = ensemble.panel_layer(layer_key, panel, 128)
        return measure.clustered_share(ensemble.after_layers(x, beta, 0.1, 300, layer=layer))

    found = mean_of(np.array([float(one(key)) for key in jax.random.split(jax.random.key(12), 40)]))
    assert abs(found.value - share) < 4 * np.sqrt(found.variance + error**2)
