"""Words that mean one thing: arguments, parameters and results are called the same in every room."""

import ast
import functools
import importlib
import inspect
from typing import NamedTuple

import pytest

import deeplimits as dl
from deeplimits.parameters import parameters_of
from house import ROOT, modules

# What nobody writes, and what is written instead.
SYNONYMS = {
    "given": "activation, or what it is",
    "sigma": "activation, covariance or noise",
    "act": "activation",
    "nonlinearity": "activation",
    "ratio": "gamma (features per sample), or what is divided by what",
    "ratios": "gammas",
    "aspect_ratio": "gamma",
    "overparametrization": "gamma",
    "lr": "step",
    "learning_rate": "step",
    "step_size": "step",
    "n_steps": "steps",
    "num_steps": "steps",
    "n_iter": "steps",
    "penalty": "ridge",
    "regularization": "ridge",
    "weight_decay": "ridge",
    "lam": "ridge",
    "noise_std": "noise",
    "noise_level": "noise",
    "noise_var": "noise_variance",
    "x0": "start",
    "initial": "start",
    "t": "time, or times",
    "ts": "times",
}
# A rate is a learning rate in two-layer networks, which is called `step`; here it is how fast something grows.
GROWTH_RATES = {"deeplimits.theory.inequalities.basic.gronwall"}
ROOMS = ("theory", "ensembles", "measure")
# What completes the thing that is asked for may be given by place, although it has a usual value.
COMPLETIONS = {"variance", "beta", "x2", "weights", "low", "high", "columns", "kurtosis"}
# Words that stand in this order wherever two of them meet: what is asked, the model, its sizes; data, where a path
# begins, when it is looked at.
ORDERS = (
    ("ridge", "population", "gamma", "signal", "noise_variance"),
    ("time", "population", "gamma"),
    ("times", "population", "gamma"),
    ("step", "steps", "population", "gamma"),
    ("activation", "x", "y"),
    ("y", "start", "steps"),
    ("start", "times"),
    ("start", "marks"),
    ("weight_variance", "bias_variance"),
    ("samples", "dimension"),
    ("task", "state"),
)


class Written(NamedTuple):
    """A public function or method: its full name, its syntax tree, and what its module says of itself."""

    name: str
    node: ast.FunctionDef
    module_doc: str

    @property
    def arguments(self):
        given = self.node.args
        return [one for one in (*given.posonlyargs, *given.args, *given.kwonlyargs) if one.arg != "self"]

    @property
    def words(self):
        return {one.arg for one in self.arguments}


@functools.cache
def functions():
    """Every public function and method of the rooms."""
    found = []
    for module in modules():
        if module.split(".")[1:2] == [] or module.split(".")[1] not in ROOMS:
            continue
        path = ROOT.parent.joinpath(*module.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        doc = ast.get_docstring(tree) or ""
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
        for prefix, body in ((module, tree.body), *((f"{module}.{one.name}", one.body) for one in classes)):
            for node in body:
                if isinstance(node, ast.FunctionDef) and (not node.name.startswith("_") or node.name == "__init__"):
                    found.append(Written(f"{prefix}.{node.name}", node, doc))
    return found


def offences(check):
    return "\n".join(f"{one.name}: {problem}" for one in functions() for problem in check(one))


def test_arguments_have_the_names_of_the_house():
    def check(function):
        yield from (f"{word} is called {SYNONYMS[word]}" for word in function.words & set(SYNONYMS))
        if "rate" in function.words and function.name not in GROWTH_RATES:
            yield "a learning rate is called step"
        if {"step", "count"} <= function.words:
            yield "how many steps is called steps"

    assert not offences(check)


def test_an_activation_is_a_name_an_object_or_a_function():
    def check(function):
        for argument in function.arguments:
            if argument.arg in ("activation", "teacher_activation"):
                written = ast.unparse(argument.annotation) if argument.annotation else "nothing"
                if "ActivationLike" not in written:
                    yield f"{argument.arg} is annotated with {written}"

    assert not offences(check)


def test_noise_is_a_standard_deviation():
    def check(function):
        if (
            "noise" in function.words
            and "deviation" not in (ast.get_docstring(function.node) or "") + function.module_doc
        ):
            yield "noise is a standard deviation, and the docstring says so"

    assert not offences(check)


def in_place(function):
    """The arguments of a function that may be given by their place; methods follow the classes they are like."""
    given = function.node.args
    return [] if given.args and given.args[0].arg == "self" else [one.arg for one in (*given.posonlyargs, *given.args)]


def test_knobs_are_given_by_name():
    """What has a usual value is a knob, and keyword-only: `f(x, y, 0.1, 1e-9)` says nothing to a reader."""

    def check(function):
        places = in_place(function)
        for word in places[len(places) - len(function.node.args.defaults) :]:
            if word not in COMPLETIONS:
                yield f"{word} has a usual value; make it keyword-only"

    assert not offences(check)


def test_arguments_stand_in_one_order():
    def check(function):
        places = in_place(function)
        if function.name.split(".")[-1].startswith("check_"):
            return
        if "key" in places and places[0] != "key":
            yield "a key comes first"
        for order in ORDERS:
            found = [word for word in order if word in places]
            if found != sorted(found, key=places.index):
                yield f"takes {sorted(found, key=places.index)}; everywhere else the order is {found}"

    assert not offences(check)


def test_results_with_parts_are_named():
    """A tuple of anything is one kind of thing many times; a tuple of two or three is a result without names."""

    def check(function):
        if function.node.returns is None:
            return
        for part in ast.walk(function.node.returns):
            if isinstance(part, ast.Subscript) and ast.unparse(part.value) == "tuple":
                inside = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
                if ast.unparse(inside[-1]) != "...":
                    yield f"returns {ast.unparse(function.node.returns)}; name its parts"

    assert not offences(check)


def test_the_checks_see_what_they_forbid():
    assert len(functions()) > 500
    bad = ast.parse("def fit(x, sigma, lr, noise) -> tuple[float, float]: ...").body[0]
    assert isinstance(bad, ast.FunctionDef)
    assert Written("deeplimits.theory.fit", bad, "").words & set(SYNONYMS) == {"sigma", "lr"}


@pytest.mark.parametrize("entry", [entry.name for entry in dl.catalogue.limits()])
def test_parameters_have_the_names_of_the_house(entry):
    for name, parameter in parameters_of(dl.catalogue[entry]).items():
        assert name not in SYNONYMS, f"{entry}: {name} is called {SYNONYMS.get(name)}"
        assert name != "rate", f"{entry}: a learning rate is called step"
        if name == "noise":
            assert "standard deviation" in parameter.doc, f"{entry}: noise is a standard deviation"
            assert parameter.symbol in (r"\sigma", r"\sqrt{\Delta}", "s"), f"{entry}: noise has {parameter.symbol}"
        if name in ("gamma", "gammas"):
            assert " per " in parameter.doc, f"{entry}: gamma is features per sample"
        if name == "activation":
            assert parameter.kind == "choice"
        if name == "step":
            assert "step" in parameter.doc or "learning rate" in parameter.doc, f"{entry}: step is {parameter.doc}"


@pytest.mark.parametrize("module", list(modules()))
def test_classes_are_abstract_or_final(module):
    for name, one in inspect.getmembers(importlib.import_module(module), inspect.isclass):
        if one.__module__ != module or issubclass(one, Exception):
            continue
        for parent in one.__mro__[1:]:
            if parent.__module__.startswith("deeplimits."):
                # A variable of the class that is declared and not given, as equinox has it, leaves it abstract too.
                declared = [
                    word for word, kind in vars(parent).get("__annotations__", {}).items() if "ClassVar" in str(kind)
                ]
                missing = any(not hasattr(parent, word) for word in declared)
                unfinished = inspect.isabstract(parent) or missing or parent.__name__.startswith("_")
                assert unfinished, f"{name} subclasses {parent.__name__}, which is not abstract; wrap it instead"
