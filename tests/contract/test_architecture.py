"""The rooms import each other in one direction only, and nothing heavy before it is needed."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from deeplimits.lab.task import imports
from house import ROOT, modules

# What each room may import of deeplimits, besides itself. Rooms at the top of the house may import everything below.
BASE = {"doors", "errors", "parameters", "index", "statement", "references", "statistics", "tails"}
BELOW = BASE | {"models", "numerics"}
ALLOWED = {
    "errors": set(),
    "doors": set(),
    "parameters": {"errors"},
    "tails": set(),
    "statement": set(),
    "index": {"errors", "parameters", "statement"},
    # It reads everything once, and only `make index` runs it.
    "indexing": {"catalogue", "gallery", "index", "lab", "statement"},
    "references": {"errors"},
    "statistics": {"errors", "tails"},
    "catalogue": {"errors", "index", "render", "references", "searching"},
    "searching": set(),
    "numerics": {"doors", "errors"},
    "models": BASE | {"numerics"},
    "theory": BELOW,
    "ensembles": BELOW,
    "measure": BELOW | {"ensembles"},
    "predictions": BASE,
    "showcase": set(),
    "limit": BASE | {"predictions", "catalogue", "models", "numerics", "showcase"},
    "limits": BELOW | {"limit", "showcase", "predictions", "theory", "ensembles", "measure", "catalogue"},
    # What is drawn and written comes as data: pictures, documents, rows of tables.
    "render": {"errors", "parameters", "predictions"},
    # Results show themselves, so the lab knows how things look.
    "lab": BASE | {"limit", "predictions", "catalogue", "numerics", "render"},
    # A report shows itself, as results of the lab do.
    "diagnosis": BELOW | {"theory", "ensembles", "measure", "predictions", "render"},
    "atlas": BASE | {"lab", "limit", "catalogue", "render"},
    # The explorer shows the atlas's page, and serves it without loading what computes.
    "explorer": BASE | {"atlas", "lab", "limit", "predictions", "catalogue", "render"},
    # Figures use everything that computes, and nothing else uses them.
    "gallery": BELOW
    | {"theory", "ensembles", "measure", "limit", "limits", "predictions", "lab", "render", "diagnosis", "catalogue"},
    "figure_command": {"gallery", "guard"},
    "guard": {"errors", "render"},
    "flags": BASE | {"catalogue", "guard", "lab"},
    "showing": BASE | {"catalogue", "flags", "limit", "render"},
    "sweep_command": BASE | {"lab", "limit", "flags", "guard", "catalogue", "render"},
    "cli": BASE
    | {"lab", "limit", "atlas", "explorer", "diagnosis", "flags", "guard", "showing", "catalogue", "render"}
    | {"sweep_command", "figure_command", "searching"},
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
        permitted = inside.partition(".")[0] in ALLOWED[room] | {room}
        assert permitted, f"{module} must not import {other}"


STATES = ("theory", "stated", "validity", "validity_at", "charts")
SIMULATES = ("simulate", "draw", "measured", "at_size")


@pytest.mark.parametrize(
    "path", sorted((ROOT / "limits").glob("*/*.py")), ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_inside_a_limit_what_states_and_what_simulates_share_nothing(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    sides = imported_sides(tree)
    uses = used_names(tree)
    for cls in [node for node in tree.body if isinstance(node, ast.ClassDef)]:
        for methods, other in ((STATES, "finite"), (SIMULATES, "theory")):
            for method in methods:
                reached = reachable(f"{cls.name}.{method}", uses, cls.name)
                crossed = sorted(name for name in reached if sides.get(name) == other)
                assert not crossed, f"{cls.name}.{method} uses {crossed}, which belong to the other side"


def imported_sides(tree):
    """Which of a module's imported names belong to theory, and which to finite systems."""
    sides = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            room = node.module.removeprefix("deeplimits.").partition(".")[0]
            for alias in node.names:
                inside = alias.name if node.module == "deeplimits" else room
                side = {"theory": "theory", "ensembles": "finite", "measure": "finite"}.get(inside)
                if node.module.endswith("._shared"):
                    side = side_of_shared(node.module, alias.name)
                if side:
                    sides[alias.asname or alias.name] = side
    return sides


def side_of_shared(module, name):
    """The side of what limits of a room share, by what it calls; it may not call both."""
    tree = ast.parse(ROOT.joinpath(*module.split(".")[1:]).with_suffix(".py").read_text(encoding="utf-8"))
    sides = imported_sides(tree)
    found = {sides[used] for used in reachable(name, used_names(tree), name) if used in sides}
    assert len(found) <= 1, f"{module}.{name} belongs to both sides"
    return found.pop() if found else None


def used_names(tree):
    """The names that each function, and each method as Class.method, uses; `self.x` as self.x."""

    def names(node):
        found = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
        return found | {
            f"self.{inner.attr}"
            for inner in ast.walk(node)
            if isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name) and inner.value.id == "self"
        }

    found = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = names(node)
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    found[f"{node.name}.{inner.name}"] = names(inner)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id: names(node) - {target.id} for target in targets if isinstance(target, ast.Name)}
    return found


def reachable(start, uses, owner):
    """Everything a function uses, through the functions and methods of its own file."""
    seen, waiting = set(), [start]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        key = name.replace("self.", f"{owner}.", 1) if name.startswith("self.") else name
        waiting += uses.get(key, ())
    return seen


@pytest.mark.parametrize("top", ["theory", "models"])
def test_what_is_stated_draws_nothing(top):
    """No random numbers on this side: whatever is drawn is drawn in `ensembles`, `measure` or `numerics.draws`."""
    drawing = set()
    for path in (ROOT / top).rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        named = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        named |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
        if named & {"random", "PRNGKeyArray", "default_rng", "draws", "rvs"}:
            drawing.add(path.name)
    assert not drawing


def test_limits_tests_and_pages_stand_under_the_names_of_the_rooms():
    tests = Path(__file__).parents[1]
    found = {path.parent.relative_to(tests).as_posix() for path in tests.glob("*/**/test_*.py")}
    rooms = {path.name for path in (ROOT / "theory").iterdir() if (path / "__init__.py").exists()}
    assert found == rooms | {
        "models",
        "numerics",
        "ensembles",
        "measure",
        "diagnosis",
        "lab",
        "gallery",
        "contract",
        "docs",
    }
    assert {path.name for path in (ROOT / "limits").iterdir() if (path / "__init__.py").exists()} <= rooms
    pages = {path.stem for path in (tests.parent / "docs" / "rooms").glob("*.md")}
    assert pages == rooms | {"measuring_a_network", "diagnosing_a_network", "reading_a_report"}


def test_a_file_name_occurs_once_inside_theory():
    names = [path.name for path in (ROOT / "theory").rglob("*.py") if path.name != "__init__.py"]
    assert sorted(set(names)) == sorted(names), "say what differs, so that a name is enough to find a file"


def test_one_file_draws():
    """How things look is decided in one place."""
    outside = [
        module for module in modules() if any(name.partition(".")[0] == "matplotlib" for name in imports(module))
    ]
    assert outside == ["deeplimits.render.with_matplotlib"]


def test_files_are_short():
    long = {str(p): n for p in ROOT.rglob("*.py") if (n := len(p.read_text(encoding="utf-8").splitlines())) > 400}
    assert not long


@pytest.mark.parametrize(
    "arguments", [["list"], ["list", "--json"], ["show", "marchenko-pastur-law"], ["--help"], ["figure"],
                  ["figure", "--help"],
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
