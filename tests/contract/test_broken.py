"""The quick grade notices each kind of slip, in both forms of a limit: which test does is said here."""

import pytest

import broken_limits
from conftest import quick_comparison
from contract import test_quick as quick
from deeplimits.catalogue import Entry, catalogue
from deeplimits.errors import DeeplimitsError

AGREEMENT = quick.test_theory_does_not_disagree_with_simulation
RECOMPILATION = quick.test_new_values_do_not_recompile
SLIPS = [
    ("Sign", AGREEMENT, AssertionError),  # a sign in the theory
    ("Twice", AGREEMENT, AssertionError),  # a factor two in the simulation
    ("Less", AGREEMENT, DeeplimitsError),  # a result that is stated and not measured
    ("More", AGREEMENT, DeeplimitsError),  # a result that is measured and not stated
    ("Frozen", RECOMPILATION, AssertionError),  # a continuous parameter that is static
    ("Forced", AGREEMENT, DeeplimitsError),  # a traced value made a Python number
]


@pytest.fixture
def checked(monkeypatch):
    """One check of the quick grade, of a limit in `broken_limits`."""

    def run(cls, check):
        entry = Entry(cls, "limit", f"broken_limits:{cls}")
        monkeypatch.setattr(catalogue, "_entries", {**catalogue._entries, cls: entry})
        check(cls, quick_comparison(cls))

    return run


@pytest.mark.parametrize("form", ["Simulated", "Drawn"])
def test_a_whole_limit_passes(form, checked):
    assert hasattr(broken_limits, form)
    checked(form, AGREEMENT)
    checked(form, RECOMPILATION)


@pytest.mark.parametrize("form", ["Simulated", "Drawn"])
@pytest.mark.parametrize(("slip", "check", "error"), SLIPS, ids=[slip for slip, *_ in SLIPS])
def test_a_slip_is_noticed(form, slip, check, error, checked):
    with pytest.raises(error):
        checked(form + slip, check)
