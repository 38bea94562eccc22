"""Phase diagrams of clustering over time and inverse temperature, for four random ensembles of transformers.

The share of pairs of tokens with a cosine above 0.999, n = 32 tokens in d = 128 dimensions (small: 8 in 48), mean of 6
systems (small: 2, and two panels only), layers of step 0.1. First Q'K = V = I, with the time at which equiangular
tokens reach that cosine; then matrices redrawn for every system: A: Q'K and V Ginibre; B: Q'K Wigner, V Wishart;
C: Q'K Ginibre, V = Q'K; D: Q'K Wigner, V = Q'K.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from deeplimits.ensembles import transformers
from deeplimits.gallery.figure import Check
from deeplimits.measure import tokens
from deeplimits.predictions.picture import SIMULATION, Axis, Field, Line, Mark, Picture
from deeplimits.theory import attention

NOTES = "Mathematics of Deep Learning, ch 14 Fig 2.2"
LIMITS = ("random-qkv-ensembles", "equiangular-reduction")
SAID = {
    "identity": "With Q'K = V = I tokens come together at the time of the equiangular reduction, later for larger β.",
    "A": "A: Ginibre scores and values bring tokens together at every β, after nearly the same time.",
    "B": "B: positive values make clusters soonest; they merge into one late where β is large.",
    "C": "C: with values equal to Ginibre scores, clusters form slowly unless β is small.",
    "D": "D: with values equal to symmetric scores, a gradient flow, many clusters remain unless β is small.",
}
STEP, CLOSE = 0.1, 0.999


def compute(run):
    """Shares of clustered pairs over β and time, for each ensemble."""
    n, d, systems, betas, time = run.pick((32, 128, 6, 10, 30.0), (8, 48, 2, 4, 12.0))
    beta = np.linspace(0.5, 9.0, betas)
    panels = run.pick(tuple(SAID), ("identity", "A"))
    run.expect(len(panels))
    found = {
        panel: run.step(panel, shares, panel=panel, n=n, d=d, systems=systems, betas=beta, time=time)["share"]
        for panel in panels
    }
    return {**found, "beta": beta, "time": np.arange(round(time / STEP) + 1) * STEP, "n": n, "d": d}


def shares(panel, n, d, systems, betas, time):
    """Mean share of clustered pairs: a row for each β, a column for each time."""
    steps = round(time / STEP)

    @functools.partial(jax.vmap, in_axes=(None, 0))
    def one(beta, key):
        token_key, layer_key = jax.random.split(key)
        x = transformers.random_tokens(token_key, n, d)
        layer = None if panel == "identity" else transformers.panel_layer(layer_key, panel, d)
        return tokens.clustered_share(transformers.attention_layers(x, beta, STEP, steps, layer=layer), threshold=CLOSE)

    keys = jax.random.split(jax.random.key(0), systems)
    found = jax.jit(lambda betas: jax.lax.map(lambda beta: jnp.mean(one(beta, keys), axis=0), betas))
    return {"share": found(jnp.asarray(betas))}


def meeting(n, beta):
    """The time t*(β) at which tokens that begin orthogonal have that cosine."""
    return np.exp(np.asarray(attention.equiangular_time(CLOSE, 0.0, int(n), jnp.asarray(beta))))


def draw(data):
    """A field for each ensemble; theory on the first."""
    times, beta, n, d = data["time"], data["beta"], int(data["n"]), int(data["d"])
    every, pictures = max(1, len(times) // 100), []
    for panel, said in ((panel, said) for panel, said in SAID.items() if panel in data):
        field = Field(
            times[::every], beta, data[panel][:, ::every], role=SIMULATION, label="share of pairs with cosine > 0.999"
        )
        marks: list[Mark] = [field]
        if panel == "identity":
            fine = np.linspace(beta[0], beta[-1], 100)
            line = meeting(n, fine)
            inside = line < times[-1]
            marks.append(Line(line[inside], fine[inside], series=1, label=f"theory t*(β), n = {n}, d = {d}"))
        x = Axis("time", "t", low=0.0, high=float(times[-1]))
        pictures.append(Picture(x, Axis("inverse temperature", r"\beta"), tuple(marks), said))
    return pictures


def check(data):
    """Half of the pairs have met at t*(β): inner products at the start, of order 1/√d, move it by as much of itself.

    At the largest β t* is long past the end, while random matrices bring tokens together.
    """
    checks, d = [], int(data["d"])
    for index in (0, 1):
        beta, share = data["beta"][index], data["identity"][index]
        crossed = data["time"][np.argmax(share > 0.5)]
        theory = float(meeting(data["n"], beta))
        checks.append(
            Check(f"time at which half the pairs have met, β = {beta:.3g}", crossed, theory / np.sqrt(d), theory, 2)
        )
    late = float(meeting(data["n"], data["beta"][-1]) < data["time"][-1])
    checks.append(Check("share clustered at the end, identity, largest β", data["identity"][-1, -1], 0, late, 0.02))
    checks.append(Check("share clustered at the end, A, largest β", data["A"][-1, -1], 0, 1, 0.2))
    return checks
