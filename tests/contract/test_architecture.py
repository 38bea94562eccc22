"""The rooms import each other in one direction only, and nothing heavy before it is needed."""

import subprocess
import sys

import pytest

from deeplimits.atlas.fingerprint import imports
from house import ROOT, modules

# What each room may import of deeplimits, besides itself. Rooms at the top of the house may import everything below.
BASE = {"errors", "parameters", "tracing", "source", "references"}
ALLOWED = {
    "errors": set(),
    "parameters": {"errors"},
    "tracing": set(),
    "source": {"errors", "parameters"},
    "references": {"errors"},
    "catalogue": {"errors", "source"},
    "models": BASE,
    "theory": BASE | {"models"},
    "ensembles": BASE | {"models"},
    "measure": BASE | {"models", "ensembles"},
    # Predictions are judged by the laboratory's statistics, which import nothing but numbers.
    "predictions": BASE | {"lab.statistics"},
    "limit": BASE | {"predictions", "catalogue"},
    "limits": BASE | {"limit", "predictions", "models", "theory", "ensembles", "measure", "catalogue"},
    "lab": BASE | {"limit", "predictions", "catalogue"},
    "atlas": BASE | {"lab", "limit", "catalogue"},
    "cli": BASE | {"lab", "atlas", "catalogue"},
}


def room_of(module):
    return module.removeprefix("deeplimits.").partition(".")[0]


@pytest.mark.parametrize("module", [module for module in modules() if module != "deeplimits"])
def test_imports_go_one_way(module):
    room = room_of(module)
    assert room in ALLOWED, f"the house has no room {room}; add it to the plan and to this test"
    for other in imports(module):
        if not other.startswith("deeplimits."):
            continue
        inside = other.removeprefix("deeplimits.")
        permitted = inside.partition(".")[0] == room or any(
            inside == name
            or inside.startswith(f"{name}.")
            or (name.startswith(f"{inside}.") and module_names(module, name))
            for name in ALLOWED[room]
        )
        assert permitted, f"{module} must not import {other}"


def module_names(module, name):
    """`from deeplimits import statistics` names deeplimits.lab on the way to what is allowed."""
    return f"deeplimits.{name}" in imports(module)


def test_statistics_import_nothing_but_errors():
    assert {other for other in imports("deeplimits.statistics") if other.startswith("deeplimits.")} <= {
        "deeplimits.errors",
        "deeplimits.errors.ParameterError",
    }


def test_files_are_short():
    long = {str(p): n for p in ROOT.rglob("*.py") if (n := len(p.read_text(encoding="utf-8").splitlines())) > 400}
    assert not long


@pytest.mark.parametrize(
    "arguments", [["list"], ["list", "--json"], ["show", "marchenko-pastur-law"], ["--help"],
                  ["compare", "ridgeless-double-descent", "--help"], ["cite", "marchenko-pastur-law"]]
)  # fmt: skip
def test_light_commands_import_nothing_heavy(arguments):
    code = (
        "import sys; from deeplimits.cli import main\n"
        f"try: main({arguments!r})\nexcept SystemExit: pass\n"
        "heavy = {'jax', 'jaxlib', 'numpy', 'scipy', 'matplotlib', 'equinox'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize(("setting", "bits"), [("1", "64"), ("0", "32")])
@pytest.mark.parametrize("order", ["import deeplimits; import jax", "import jax; import deeplimits"])
def test_double_precision_is_turned_on_unless_declined(setting, bits, order):
    code = f"{order}; print(jax.numpy.ones(1).dtype)"
    environment = {"PATH": "/usr/bin:/bin", "DEEPLIMITS_X64": setting, "JAX_PLATFORMS": "cpu"}
    found = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    assert found.stdout.strip() == f"float{bits}"
