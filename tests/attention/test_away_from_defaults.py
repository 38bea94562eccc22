"""Comparisons at parameters that random draws of a campaign found."""

import deeplimits as dl


def test_two_tokens_whose_weights_underflow():
    # At β = N the other token's weight is below the smallest number, and hot attention misses only 1/N².
    comparison = dl.compare(
        "attention-temperature-limits",
        tokens=2,
        dimension=23,
        extreme=444.556394630288,
        samples=60,
        sizes=(160, 320, 640),
    )
    assert comparison.agrees, comparison
