"""ReLU's integrals over four fields in forty digits, from the covariances exactly as the doubles that they are."""

import itertools

import mpmath as mp

mp.mp.dps = 40


def exact(c):
    return mp.matrix([[mp.mpf(float(entry)) for entry in row] for row in c])


def correlations(c):
    n = c.rows
    return mp.matrix([[c[i, j] / mp.sqrt(c[i, i] * c[j, j]) for j in range(n)] for i in range(n)])


def given(r, conditions, i, j):
    """Covariance of fields i and j given that one or two others vanish: a Schur complement."""
    if len(conditions) == 1:
        (a,) = conditions
        return r[i, j] - r[i, a] * r[a, j]
    a, b = conditions
    mixed = r[i, a] * r[b, j] + r[i, b] * r[a, j]
    return r[i, j] - (r[i, a] * r[a, j] + r[i, b] * r[b, j] - r[a, b] * mixed) / (1 - r[a, b] ** 2)


def share(a, b, c):
    """P(both positive) for variances a, b and covariance c."""
    return mp.mpf(1) / 4 + mp.asin(c / mp.sqrt(a * b)) / (2 * mp.pi)


def i2(c):
    root = mp.sqrt(c[0, 0] * c[1, 1] - c[0, 1] ** 2)
    return root / (2 * mp.pi) + c[0, 1] * j2(c)


def j2(c):
    root = mp.sqrt(c[0, 0] * c[1, 1] - c[0, 1] ** 2)
    return mp.mpf(1) / 2 - mp.atan2(root, c[0, 1]) / (2 * mp.pi)


def k20(c):
    return mp.sqrt(c[0, 0] * c[1, 1] - c[0, 1] ** 2) / (2 * mp.pi * c[0, 0])


def conditional_share(r, i, j):
    k, l = (x for x in range(4) if x not in (i, j))
    return share(given(r, (i, j), k, k), given(r, (i, j), l, l), given(r, (i, j), k, l))


def orthant(r):
    """P₄ by Plackett's integral, cut where the smallest angles are seen."""

    def integrand(t):
        # u = 1 − t²: the inverse root at u = 1 is gone
        u = 1 - t**2
        s = mp.matrix([[r[a, b] * (1 if a == b else u) for b in range(4)] for a in range(4)])
        return (
            2
            * t
            * sum(
                r[i, j] / (2 * mp.pi * mp.sqrt(1 - s[i, j] ** 2)) * conditional_share(s, i, j)
                for i, j in itertools.combinations(range(4), 2)
            )
        )

    cuts = [mp.mpf(0), *(mp.mpf(10) ** -k for k in range(8, -1, -2))]
    return mp.mpf(1) / 16 + mp.quad(integrand, cuts)


def i4_and_j4(c):
    """E 1_0 1_1 relu_2 relu_3, by integrating by parts twice, and P(all four are positive)."""
    r = correlations(c)
    probability = orthant(r)
    total = r[2, 3] * probability
    for i in (0, 1, 2):
        factor = 1 if i == 2 else r[2, i]
        for s in (x for x in (0, 1, 2, 3) if x != i):
            dss, dds = given(r, (i,), s, s), given(r, (i,), 3, s)
            total += factor * dds / (2 * mp.pi * mp.sqrt(dss)) * conditional_share(r, i, s)
    return mp.sqrt(c[2, 2] * c[3, 3]) * total, probability
