"""What can be said of a network that cannot be measured: its data, and those of its weights that are numbers."""

import sys
from typing import Any

import numpy as np

from deeplimits.errors import DeeplimitsError, ParameterError
from deeplimits.measure.adapters.data import Data
from deeplimits.measure.adapters.model import labels_of

PARTS = ("data", "weights")


class Unopened:
    """Data and weights alone, with as much of a `Model` as their findings need."""

    separable = False
    notes = ()
    network = None

    def __init__(self, data: Data, parameters: dict[str, np.ndarray]):
        self.data, self.parameters = data, parameters
        self.samples = data.samples

    def classes(self) -> list[Any]:
        """The labels that occur."""
        found = np.unique(np.concatenate([labels_of(batch) for batch in self.data]))
        if len(found) < 2:
            raise ParameterError(f"all samples have the label {found[0]:g}")
        return found.tolist()

    def labels(self) -> np.ndarray:
        """The class of every sample."""
        values = np.array(self.classes())
        return np.concatenate([np.searchsorted(values, labels_of(batch)) for batch in self.data])


def taken(model: Any, data: Any, options: dict[str, Any]) -> Any:
    """Data and finite weights; None where the data cannot be read either."""
    try:
        source = Data(data, split=options.get("split"), chunk=options.get("chunk"))
    except DeeplimitsError:
        return None
    except Exception:
        return None
    parameters: dict[str, np.ndarray] = {}
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        for name, value in model.named_parameters():
            if isinstance(value, torch.nn.parameter.UninitializedParameter) or not value.is_floating_point():
                continue
            array = value.detach().cpu().double().numpy()
            if np.all(np.isfinite(array)):
                parameters[name] = array
    return Unopened(source, parameters)
