"""The false-alarm budget holds: the whole catalogue, over fresh seeds (slow, run on demand)."""

import numpy as np
import pytest
from scipy import stats

import deeplimits as dl
from conftest import LIMITS
from deeplimits import statistics

SEEDS = 60


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in LIMITS])
def test_false_alarms_over_fresh_seeds(name):
    """No comparison disagrees, and p-values below 1 % are no more frequent than they should be."""
    limit = dl.catalogue[name]()
    samples = max(200, limit.samples // 20)
    p_values = {}
    for seed in range(1000, 1000 + SEEDS):
        comparison = dl.compare(limit, samples=samples, seed=seed)
        assert comparison.agrees, f"seed {seed}\n{comparison}"
        for result, finding in comparison.findings.items():
            if finding.p_value is not None and finding.kind != "Bound":
                p_values.setdefault(result, []).append(finding.p_value)
    for result, found in p_values.items():
        below = int(np.sum(np.array(found) < 0.01))
        # A Bonferroni bound is conservative, so only an excess is an error.
        assert stats.binom.sf(below - 1, SEEDS, 0.015) > statistics.LEVEL, (result, sorted(found)[:5])
