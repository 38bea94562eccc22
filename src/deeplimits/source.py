"""Reading limits and functions off their source, without importing them.

`deeplimits list`, `show` and every `--help` answer from what this module reads, so that they need not wait for JAX.
"""

import ast
import functools
import importlib.util
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deeplimits.errors import UnknownName
from deeplimits.parameters import KINDS, Parameter
from deeplimits.statement import Statement

# Positional order of the arguments of real, integer, choice and axis in `limit.py`.
_ARGUMENTS = {"choice": ("default", "options")}
_RANGED_ARGUMENTS = ("default", "low", "high")
_CONSTANTS = {"math.inf": math.inf, "math.pi": math.pi}


@dataclass(frozen=True)
class Source(Statement):
    """What the source of a limit or function says about it."""

    module: str
    name: str
    line: int
    parameters: dict[str, Parameter]
    signature: str = ""


@functools.cache
def read(target: str) -> Source:
    """Read `package.module:Name`, a class or a function."""
    module, _, name = target.partition(":")
    for node in _tree(module).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return Source(ast.get_docstring(node) or "", module, name, node.lineno, _parameters(node))
        if isinstance(node, ast.FunctionDef) and node.name == name:
            signature = f"{name}({ast.unparse(node.args)})"
            return Source(ast.get_docstring(node) or "", module, name, node.lineno, {}, signature)
    raise UnknownName(f"{module} defines no {name}")


@functools.cache
def first_line(target: str) -> str:
    """The title alone, by a search of the text: a listing of everything need not parse everything."""
    module, _, name = target.partition(":")
    path = module_path(module)
    pattern = rf'^(?:class|def) {name}\b.*?"""(.+?)(?:\n|""")'
    match = path and re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return match[1].rstrip(".") if match else read(target).title


@functools.cache
def module_path(module: str) -> Path | None:
    """The source file of a module, found without importing it or the packages it lies in."""
    top, *rest = module.split(".")
    spec = importlib.util.find_spec(top)
    if spec is None:
        return None
    if not rest:
        return Path(spec.origin) if spec.origin else None
    for root in spec.submodule_search_locations or ():
        place = Path(root, *rest)
        for path in (place.with_suffix(".py"), place / "__init__.py"):
            if path.is_file():
                return path
    return None


@functools.cache
def _tree(module: str) -> ast.Module:
    path = module_path(module)
    if path is None:
        raise UnknownName(f"there is no source for the module {module}")
    return ast.parse(path.read_text(encoding="utf-8"))


def _parameters(node: ast.ClassDef) -> dict[str, Parameter]:
    found = {}
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            call = statement.value
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in KINDS:
                found[statement.target.id] = _parameter(call)
    return found


def _parameter(call: ast.Call) -> Parameter:
    kind = call.func.id  # pyright: ignore[reportAttributeAccessIssue]
    order = _ARGUMENTS.get(kind, _RANGED_ARGUMENTS)
    arguments: dict[str, Any] = {} if kind == "choice" else {"high": math.inf}
    arguments |= {name: _literal(value) for name, value in zip(order, call.args, strict=False)}
    arguments |= {keyword.arg: _literal(keyword.value) for keyword in call.keywords if keyword.arg}
    return KINDS[kind](**arguments)


def _literal(node: ast.expr) -> Any:
    constant = _CONSTANTS.get(ast.unparse(node))
    return ast.literal_eval(node) if constant is None else constant
