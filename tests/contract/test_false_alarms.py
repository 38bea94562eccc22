"""The false-alarm budget holds over fresh seeds, for every limit and for all of them together (slow).

Each comparison gives one p-value, the smallest of its results' times their number, because results of one comparison
share their systems. Comparisons with different seeds are independent, so that their p-values can be pooled;
Bonferroni's inequality makes them conservative, so that only an excess of small ones is an error.
"""

import json
import os

import pytest

import deeplimits as dl
from conftest import each_limit, quick_samples
from deeplimits import tails
from slowly import NOTES, digest

SEEDS = 12
FIRST = int(os.environ.get("DEEPLIMITS_SEED", "1000"))
TAILS = (0.05, 0.01, 0.001)


@pytest.mark.slow
@each_limit
def test_no_false_alarm_over_fresh_seeds(name):
    limit = dl.catalogue[name]()
    found = []
    for seed in range(FIRST, FIRST + SEEDS):
        comparison = dl.compare(limit, samples=quick_samples(limit), seed=seed)
        assert comparison.outcome != "disagrees", f"seed {seed}\n{comparison}"
        p_values = [one.deviation.p_value for one in comparison.findings.values() if one.kind != "Identity"]
        if p_values:
            found.append(min(1.0, len(p_values) * min(p_values)))
    folder = NOTES / f"{digest()}-p-values"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(found))


@pytest.mark.pooled
@pytest.mark.parametrize("tail", TAILS)
def test_small_p_values_are_no_more_frequent_than_they_should_be(tail):
    files = sorted((NOTES / f"{digest()}-p-values").glob("*.json"))
    if not files:
        pytest.skip("no p-values of these sources; `make test-slow` collects them")
    pooled = {path.stem: json.loads(path.read_text()) for path in files}
    count = sum(map(len, pooled.values()))
    below = sum(p < tail for found in pooled.values() for p in found)
    worst = sorted(((min(found), name) for name, found in pooled.items() if found))[:5]
    assert tails.binomial_tail(below, count, tail) > 1e-3, (below, count, tail, worst)
