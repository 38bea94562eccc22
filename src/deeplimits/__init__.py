"""deeplimits: compute the limit, simulate the network, see whether they agree."""

import os
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from deeplimits.catalogue import catalogue

if TYPE_CHECKING:
    from deeplimits import limits as limits
    from deeplimits.diagnosis.running import diagnose as diagnose
    from deeplimits.diagnosis.width_powers import coordinate_check as coordinate_check
    from deeplimits.explorer.notebook import explore as explore
    from deeplimits.lab.compare import compare as compare
    from deeplimits.lab.predict import Prediction as Prediction
    from deeplimits.lab.predict import predict as predict
    from deeplimits.lab.simulate import simulate as simulate
    from deeplimits.lab.sweeping import sweep as sweep
    from deeplimits.limit import Limit as Limit
    from deeplimits.showing import cite as cite
    from deeplimits.showing import show as show

try:
    __version__ = version("deeplimits")
except PackageNotFoundError:  # run from a source tree that nobody installed
    __version__ = "0+unknown"
__all__ = [
    "Limit",
    "Prediction",
    "__version__",
    "catalogue",
    "cite",
    "compare",
    "coordinate_check",
    "diagnose",
    "explore",
    "limits",
    "predict",
    "show",
    "simulate",
    "sweep",
]

_LAZY = {
    "Limit": "deeplimits.limit",
    "compare": "deeplimits.lab.compare",
    "coordinate_check": "deeplimits.diagnosis.width_powers",
    "diagnose": "deeplimits.diagnosis.running",
    "explore": "deeplimits.explorer.notebook",
    "predict": "deeplimits.lab.predict",
    "Prediction": "deeplimits.lab.predict",
    "simulate": "deeplimits.lab.simulate",
    "sweep": "deeplimits.lab.sweeping",
    "show": "deeplimits.showing",
    "cite": "deeplimits.showing",
}


def _use_double_precision() -> None:
    # The digits of a prediction mean nothing in float32. The environment variable reaches a JAX imported later
    # without importing it here; a JAX imported already is told directly.
    if os.environ.get("DEEPLIMITS_X64", "1") == "0":
        return
    os.environ.setdefault("JAX_ENABLE_X64", "1")
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_enable_x64", True)


_use_double_precision()


def __getattr__(name: str) -> Any:
    import importlib

    if name == "limits":
        return importlib.import_module("deeplimits.limits")
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    from deeplimits.errors import did_you_mean

    raise AttributeError(f"module 'deeplimits' has no attribute {name!r}{did_you_mean(name, __all__)}")


def __dir__() -> list[str]:
    return __all__
