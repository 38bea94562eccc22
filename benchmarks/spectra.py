"""Spectral laws: deeplimits against scikit-rmt and freealg.

    python -m benchmarks spectra

The Marchenko-Pastur law at 10^6 points (density, distribution function, quantiles, samples), and the density of a
sample covariance matrix whose population has 3, 20 and 1,000 atoms at 1,000 points. Every answer is judged by its time
(seconds of the processor, the best of several calls after a first one, turn by turn with the peers) and by its error:
for Marchenko-Pastur against the formulas in extended precision, for general populations against the root of
Silverstein's equation found by an independent continuation in 30 digits at a few points. Peers live in environments of
their own under .peers/; what cannot be installed is skipped with a sentence.
"""

import json
import statistics
import subprocess
from pathlib import Path

import numpy as np

from benchmarks._peers import environment
from benchmarks._report import compare, grow
from benchmarks._timing import durations

POINTS = 1_000_000
GAMMA = 0.5
NAMES = {"pdf": "density", "cdf": "distribution function", "ppf": "quantiles", "rvs": "samples"}
POPULATIONS = {3: [1.0, 3.0, 7.0], 20: [1 / i for i in range(1, 21)], 1000: np.geomspace(0.1, 10.0, 1000).tolist()}
TURNS = 3
LIMIT = 600
"""Seconds after which a peer is stopped."""

SCIKIT_RMT = """
import json, sys, time
import numpy as np
from skrmt.ensemble.spectral_law import MarchenkoPasturDistribution
points, gamma = int(sys.argv[1]), float(sys.argv[2])
law = MarchenkoPasturDistribution(ratio=gamma)
low, high = (1 - gamma**0.5) ** 2, (1 + gamma**0.5) ** 2
x = np.linspace(low, high, points + 2)[1:-1]
def best(call, times=3):
    call(); found = []
    for _ in range(times):
        begin = time.process_time(); call(); found.append(time.process_time() - begin)
    return min(found)
some = x[:: points // 200]
levels = np.linspace(0, 1, 1002)[1:-1]
answer = {
    "pdf": [best(lambda: law.pdf(x)), np.asarray(law.pdf(some)).tolist()],
    "cdf": [best(lambda: law.cdf(x)), np.asarray(law.cdf(some)).tolist()],
    # scipy's numerical inversion, point by point: timed on a thousand points.
    "ppf": [best(lambda: law.ppf(levels), 1) * points / 1000, np.asarray(law.ppf(levels[::5])).tolist()],
    "rvs": [best(lambda: law.rvs(size=points)), float(np.mean(law.rvs(size=points)))],
}
wide = MarchenkoPasturDistribution(ratio=2.0)
answer["atom"] = float(np.ravel(wide.cdf(np.array([0.01])))[0])
print(json.dumps(answer))
"""

FREEALG = """
import json, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
task = json.loads(sys.argv[1])
import freealg
def best(call, times=3):
    call(); found = []
    for _ in range(times):
        begin = time.process_time(); call(); found.append(time.process_time() - begin)
    return min(found)
if task["kind"] == "mp":
    from freealg.distributions import MarchenkoPastur
    law = MarchenkoPastur(task["gamma"])
    low, high = (1 - task["gamma"]**0.5) ** 2, (1 + task["gamma"]**0.5) ** 2
    x = np.linspace(low, high, task["points"] + 2)[1:-1]
    some = x[:: task["points"] // 200]
    print(json.dumps([best(lambda: law.density(x)), np.asarray(law.density(some)).tolist()]))
else:
    from freealg.distributions import DeformedMarchenkoPastur
    t = np.array(task["atoms"])
    law = DeformedMarchenkoPastur(t.tolist(), [1 / len(t)] * len(t), task["gamma"])
    x = np.array(task["x"])
    print(json.dumps([best(lambda: law.density(x), 1), np.asarray(law.density(x)).tolist()]))
"""


def best(call, times: int = 3) -> float:
    return min(durations(call, times))


def ask(python: Path | None, code: str, *arguments: str):
    """What a peer's program prints, as JSON; or a sentence why not."""
    if python is None:
        return "could not be installed"
    try:
        found = subprocess.run([str(python), "-c", code, *arguments], capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return f"no answer within {LIMIT} s"
    if found.returncode:
        return found.stderr.strip().splitlines()[-1][:160]
    return json.loads(found.stdout.strip().splitlines()[-1])


def exact_density(atoms, gamma: float, x) -> np.ndarray:
    """π^{-1} Im m in 30 digits: Newton from far above the real line down to it, unlike what deeplimits does."""
    import mpmath

    found = []
    with mpmath.workdps(30):
        t = [mpmath.mpf(float(a)) for a in atoms]
        rate = mpmath.mpf(gamma) / len(t)
        for point in x:
            m = None
            for height in [*(mpmath.mpf(10) ** (1 - mpmath.mpf(k) / 5) for k in range(45)), mpmath.mpf(0)]:
                z = mpmath.mpf(float(point)) + 1j * height
                m = -1 / z if m is None else m
                for _ in range(60):
                    # z = −1/m̲ + γ Σ t/(1 + t m̲)/p
                    defect = -1 / m + rate * sum(a / (1 + a * m) for a in t) - z
                    step = defect / (1 / m**2 - rate * sum((a / (1 + a * m)) ** 2 for a in t))
                    while (m - step).imag <= 0 and abs(step) > mpmath.mpf(10) ** -28:
                        step /= 2
                    m -= step
                    if abs(step) < mpmath.mpf(10) ** -24 * abs(m):
                        break
            found.append(float(m.imag / (mpmath.pi * gamma)))
    return np.array(found)


def exact_mp(x, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """Density and distribution function in long double arithmetic."""
    x, gamma = np.asarray(x, np.longdouble), np.longdouble(gamma)
    low, high = (1 - np.sqrt(gamma)) ** 2, (1 + np.sqrt(gamma)) ** 2
    pi = np.arccos(np.longdouble(-1))
    half = np.sqrt((high - x) * (x - low))
    away = np.abs(1 - gamma)
    total = half + (1 + gamma) * np.arctan2(x - 1 - gamma, half)
    total = total - away * np.arctan2((1 + gamma) * x - (1 - gamma) ** 2, away * half) + pi / 2 * (1 + gamma - away)
    return half / (2 * pi * gamma * x), total / (2 * pi * gamma)


def worst(found, exact) -> float:
    return float(np.max(np.abs(np.asarray(found, np.longdouble) - exact)))


def row(name, seconds, own, error, note=""):
    print(f"  {name:<14} {seconds:>10.4f} s {seconds / own:>9.1f} x ours   error {error:<10.2g} {note}", flush=True)


def marchenko_pastur(rmt, free) -> None:
    import jax

    from deeplimits import ensembles
    from deeplimits.theory.spectra import laws

    law = laws.marchenko_pastur(GAMMA)
    low, high = law.support
    x = np.linspace(low, high, POINTS + 2)[1:-1]
    some = x[:: POINTS // 200]
    density, cdf = exact_mp(some, GAMMA)
    q = np.linspace(0, 1, POINTS + 2)[1:-1]
    levels = q[:: POINTS // 200]

    def draw():
        return ensembles.from_law(jax.random.key(0), law.ppf, (POINTS,))

    def own():
        return {
            "pdf": (best(lambda: law.pdf(x).block_until_ready()), worst(law.pdf(some), density)),
            "cdf": (best(lambda: law.cdf(x).block_until_ready()), worst(law.cdf(some), cdf)),
            "ppf": (best(lambda: law.ppf(q)), worst(exact_mp(law.ppf(levels), GAMMA)[1], levels)),
            "rvs": (best(draw), abs(float(np.mean(draw())) - 1)),
        }

    # Turn by turn: each turn has the best of several calls of everyone.
    asked = json.dumps({"kind": "mp", "gamma": GAMMA, "points": POINTS})
    turns = [(own(), ask(rmt, SCIKIT_RMT, str(POINTS), str(GAMMA)), ask(free, FREEALG, asked)) for _ in range(TURNS)]
    ours, theirs, other = turns[-1]
    for what, name in NAMES.items():
        times = [turn[0][what][0] for turn in turns]
        named = f"Marchenko-Pastur {name}, {POINTS:,} points"
        grow("spectra", named, "points", POINTS, seconds=statistics.median(times))
        if all(isinstance(turn[1], dict) for turn in turns):
            compare("spectra", named, "scikit-rmt", times, [turn[1][what][0] for turn in turns])
        if what == "pdf" and all(isinstance(turn[2], list) for turn in turns):
            compare("spectra", named, "freealg", times, [turn[2][0] for turn in turns])
    noise = np.sqrt(GAMMA / POINTS)
    print(f"Marchenko-Pastur, ratio {GAMMA}, {POINTS:,} points (noise of their mean: {noise:.1g})")
    for what, (seconds, error) in ours.items():
        print(f" {what}")
        row("deeplimits", seconds, seconds, error)
        if isinstance(theirs, dict) and what in theirs:
            taken, answer = theirs[what]
            answer = exact_mp(answer, GAMMA)[1] if what == "ppf" else np.asarray(answer)
            exact = {"pdf": density, "cdf": cdf, "ppf": np.linspace(0, 1, 1002)[1:-1:5], "rvs": 1.0}[what]
            note = "extrapolated from 1,000 points" if what == "ppf" else ""
            row("scikit-rmt", taken, seconds, worst(answer, exact), note)
        if isinstance(other, list) and what == "pdf":
            row("freealg", other[0], seconds, worst(other[1], density))
    if isinstance(theirs, dict):
        wide = laws.marchenko_pastur(2.0)
        ours_at_zero, theirs_at_zero = float(wide.cdf(0.01)), theirs["atom"]
        print(f" cdf(0.01) at ratio 2: deeplimits {ours_at_zero:.3f}, scikit-rmt {theirs_at_zero:.3f}, exact 0.5")
    for name, answer in (("scikit-rmt", theirs), ("freealg", other)):
        if isinstance(answer, str):
            print(f" {name}: {answer}")


def populations(free) -> None:
    from deeplimits.theory.spectra import laws

    for size, atoms in POPULATIONS.items():
        law = laws.sample_covariance(atoms, GAMMA)
        low, high = law.support
        x = np.linspace(low, high, 1002)[1:-1]
        checked = np.arange(20, 1000, 245 if size > 100 else 98)
        exact = exact_density(atoms, GAMMA, x[checked])
        build = best(lambda atoms=atoms: laws.sample_covariance(atoms, GAMMA))
        seconds = best(lambda law=law, x=x: law.density(x))
        ours = np.asarray(law.density(x))
        print(f"population of {size} atoms, ratio {GAMMA}, 1,000 points ({build:.3f} s to find the edges first)")
        row("deeplimits", seconds, seconds, np.max(np.abs(ours[checked] - exact)), f"{len(law.edges)} bulks")
        answer = ask(free, FREEALG, json.dumps({"kind": "atoms", "atoms": atoms, "gamma": GAMMA, "x": x.tolist()}))
        if isinstance(answer, str):
            print(f"  freealg: {answer}")
        else:
            theirs = np.asarray(answer[1])
            median = np.median(np.abs(theirs - ours)[ours > 0] / ours[ours > 0])
            error = np.max(np.abs(theirs[checked] - exact))
            row("freealg", answer[0], seconds, error, f"median relative {median:.1%}")
            what = f"density of a sample covariance, {size} atoms"
            compare("spectra", what, "freealg", [seconds], [answer[0]], note=f"its median error is {median:.1%}")


def main() -> None:
    rmt = environment("scikit-rmt", "scikit-rmt==2.1.1")
    free = environment("freealg", "freealg==0.12.2")
    marchenko_pastur(rmt, free)
    populations(free)


if __name__ == "__main__":
    main()
