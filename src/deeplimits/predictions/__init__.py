"""The kinds of thing a theory predicts, and how each is compared and drawn."""

import inspect

from deeplimits.predictions.base import Finding as Finding
from deeplimits.predictions.base import Kind as Kind
from deeplimits.predictions.base import Trial as Trial
from deeplimits.predictions.bound import Bound as Bound
from deeplimits.predictions.curve import Curve as Curve
from deeplimits.predictions.exponent import Exponent as Exponent
from deeplimits.predictions.identity import Identity as Identity
from deeplimits.predictions.law import Law as Law
from deeplimits.predictions.picture import Picture as Picture
from deeplimits.predictions.probability import Probability as Probability
from deeplimits.predictions.spectrum import Spectrum as Spectrum
from deeplimits.predictions.value import Value as Value

KINDS: dict[str, type[Kind]] = {
    name: found
    for name, found in list(globals().items())
    if inspect.isclass(found) and issubclass(found, Kind) and not inspect.isabstract(found)
}
"""Every kind, by name: a line above registers one, and tests and documentation find it here."""
