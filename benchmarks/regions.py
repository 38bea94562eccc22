"""Linear regions and exact evidence: against sampling, growth with width, and mpmath.

    python -m benchmarks regions

Breakpoints of random ReLU networks (three hidden layers, ten inputs, C_w = 2, C_b = 0.1) along a segment: the exact
method beside sampling the signs of all neurons, finer and finer until each breakpoint is seen in an interval of its
own; how many are seen with 1,000 points, and both times. Regions of the plane through three points, in regions a second
over widths; and of the PyTorch network of SplineCam's own example (humayun2023: ten inputs, ten layers of 20 leaky
ReLUs with batch norm, a square of side 4), for those who have that program beside this one. Log-evidence of deep linear
networks against mpmath's Meijer G where that works and thirty-digit sums on a contour where it does not, with both
times; and at n = 10⁴, L = 100, P = 5000.
"""

import itertools
import time

import mpmath as mp
import numpy as np
import torch

from benchmarks._report import compare, grow
from benchmarks._timing import durations
from deeplimits.measure import regions
from deeplimits.theory import bayes

WIDTHS = (16, 32, 64, 128)
FINEST = 1 << 22


def network(width, seed):
    """A random network with the weights of the theory."""
    random = np.random.default_rng(seed)
    sizes = [10, width, width, width, 1]
    weights = [random.normal(size=(b, a)) * np.sqrt(2 / a) for a, b in itertools.pairwise(sizes)]
    return regions.Matrices(weights, [np.sqrt(0.1) * random.normal(size=b) for b in sizes[1:]])


def changes(net, path, count):
    """Between how many neighbours, of so many points, some neuron changes its sign."""
    total, before = 0, None
    for begin in range(0, count + 1, 4096):
        t = np.arange(begin, min(begin + 4096, count + 1)) / count
        points = path[0] + t[:, None] * (path[1] - path[0])
        signs = np.concatenate([one.values > 0 for one in net.run(points).switches], axis=1)
        rows = signs if before is None else np.concatenate([before, signs])
        total += int(np.sum(np.any(rows[1:] != rows[:-1], axis=1)))
        before = signs[-1:]
    return total


def lines():
    print("width  breakpoints  exact (s)   missed by 1,000 points   points that miss none   their time (s)   ratio")
    for width in WIDTHS:
        net, path = network(width, 0), 3 * np.random.default_rng(1).normal(size=(2, 10))
        exact = float(np.median(durations(lambda net=net, path=path: regions.line_pieces(net, path), 5)))
        found = len(regions.line_pieces(net, path).breakpoints)
        missed, count, seconds = found - changes(net, path, 1000), 1000, 0.0
        while count < FINEST:
            begin = time.process_time()
            seen = changes(net, path, count)
            seconds = time.process_time() - begin
            if seen == found:
                break
            assert seen < found, "sampling saw a change that the exact method did not"
            count *= 2
        what = "all breakpoints of a network on a segment"
        compare("regions", what, "sampling signs until none is missed", [exact], [seconds], size=width, of="width")
        grow("regions", what, "width", width, seconds=exact)
        said = f"{count:>20,}" if count < FINEST else f"more than {FINEST:,}"
        print(
            f"{width:>5}  {found:>11}  {exact:>9.4f}  {missed:>23}  {said:>22}  {seconds:>15.2f}  "
            f"{seconds / exact:>6.0f}"
        )


def splinecam_example():
    """Ten inputs, ten layers of 20 leaky ReLUs, batch norm behind all but the first of them."""
    torch.manual_seed(0)
    layers = [torch.nn.Linear(10, 20), torch.nn.LeakyReLU(0.03)]
    for _ in range(9):
        layers += [torch.nn.Linear(20, 20), torch.nn.BatchNorm1d(20), torch.nn.LeakyReLU(0.03)]
    return torch.nn.Sequential(*layers, torch.nn.Linear(20, 1)).double().eval()


def square(side):
    """Three corners of a square in a random plane."""
    random = np.random.default_rng(2)
    axes = np.linalg.qr(random.normal(size=(10, 2)))[0].T * side
    corner = random.normal(size=10) - axes.sum(axis=0) / 2
    return np.stack([corner, corner + axes[0], corner + axes[1]])


def planes():
    print("network           regions   CPU seconds   regions/s   largest miss")
    drawn = 3 * np.random.default_rng(2).normal(size=(3, 10))
    cases = [(f"width {width}", network(width, 0), drawn, 0.5) for width in WIDTHS[:3]]
    for name, net, points, margin in [*cases, ("SplineCam's", splinecam_example(), square(4.0), 0.0)]:
        regions.line_pieces(net, points)
        begin = time.process_time()
        found = regions.plane_regions(net, points, margin=margin)
        seconds = time.process_time() - begin
        count = len(found.polygons)
        if name.startswith("width"):
            grow("regions", "all regions of a plane", "width", int(name.split()[1]), seconds=seconds)
        print(f"{name:<15}  {count:>8,}  {seconds:>12.2f}  {count / seconds:>10,.0f}  {found.residual:>13.1e}")


def by_mpmath(p, n0, nu, hidden):
    """log Z at σ² = 1 by mpmath's own Meijer G, in forty digits."""
    with mp.workdps(40):
        zeta = mp.mpf(nu) * mp.fprod(mp.mpf(one) / 2 for one in (n0, *hidden))
        g = mp.meijerg([[], []], [[mp.mpf(p) / 2, *(mp.mpf(one) / 2 for one in hidden)], []], zeta)
        norm = mp.fsum(mp.loggamma(mp.mpf(one) / 2) for one in hidden)
        return mp.log(g) - norm - mp.mpf(p) / 2 * mp.log(mp.pi * nu)


def on_a_contour(p, n0, nu, hidden):
    """The same by the trapezoidal rule on a straight contour through the saddle, in thirty digits; equal widths."""
    with mp.workdps(30):
        half, n, layers = mp.mpf(p) / 2, mp.mpf(hidden[0]) / 2, len(hidden)
        y = mp.log(mp.mpf(nu) * n0 / 2) + layers * mp.log(n)
        c = mp.findroot(lambda c: mp.digamma(half + c) + layers * mp.digamma(n + c) - y, (0, 1))
        step = 1 / (4 * mp.sqrt(mp.psi(1, half + c) + layers * mp.psi(1, n + c)))

        def exponent(z):
            return mp.loggamma(half + z) + layers * (mp.loggamma(n + z) - mp.loggamma(n)) - z * y

        top = exponent(c)
        total = sum(mp.re(mp.exp(exponent(c + 1j * step * k) - top)) * (1 if k else 0.5) for k in range(60))
        return top + mp.log(total * step / mp.pi) - half * mp.log(mp.pi * nu)


CASES = (
    ("Meijer G", by_mpmath, 2, 4, (3, 5)),
    ("Meijer G", by_mpmath, 10, 20, (15, 8, 13)),
    ("Meijer G", by_mpmath, 31, 60, (50, 40)),
    ("contour", on_a_contour, 500, 1000, (1000,) * 10),
    ("contour", on_a_contour, 5000, 10_000, (10_000,) * 100),
)


def evidence():
    print("    P    n_0    L   log evidence          ours (s)   mpmath (s)              relative error   ratio")
    for name, peer, p, n0, hidden in CASES:
        data, widths = bayes.interpolation(p, n0, 1.3, 0.0), np.array(hidden, float)
        ours = float(
            np.median(durations(lambda data=data, widths=widths: float(bayes.log_evidence(data, 1.0, widths)), 5))
        )
        found = float(bayes.log_evidence(data, 1.0, widths))
        begin = time.process_time()
        wanted = peer(p, n0, 1.3, hidden)
        seconds = time.process_time() - begin
        error = float(abs((mp.mpf(found) - wanted) / wanted))
        print(
            f"{p:>5} {n0:>6} {len(hidden):>4}   {found:<20.13g} {ours:>8.4f}  {seconds:>9.2f} ({name:<8})  "
            f"{error:>15.1e}  {seconds / ours:>6.0f}"
        )
        compare("regions", f"log evidence, L = {len(hidden)}", f"mpmath, {name}", [ours], [seconds], size=p, of="P")
        assert error < 1e-10


def main():
    lines()
    planes()
    evidence()
