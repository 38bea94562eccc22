"""The kinds of thing a theory predicts, and how each is compared and drawn."""

from deeplimits.predictions.base import Finding as Finding
from deeplimits.predictions.base import Kind as Kind
from deeplimits.predictions.base import Trial as Trial
from deeplimits.predictions.bound import Bound as Bound
from deeplimits.predictions.curve import Curve as Curve
from deeplimits.predictions.exponent import Exponent as Exponent
from deeplimits.predictions.identity import Identity as Identity
from deeplimits.predictions.law import Law as Law
from deeplimits.predictions.probability import Probability as Probability
from deeplimits.predictions.spectrum import Spectrum as Spectrum
from deeplimits.predictions.value import Value as Value
