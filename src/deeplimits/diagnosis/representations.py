"""What enters the last layer: how far its classes have collapsed."""

from collections.abc import Iterator

from deeplimits.diagnosis.findings import Assumption, Finding
from deeplimits.diagnosis.subject import Subject
from deeplimits.errors import DeeplimitsError
from deeplimits.measure.classes import measure_collapse
from deeplimits.measure.estimates import Estimate


def examine(subject: Subject) -> Iterator[Finding]:
    """The four measures of neural collapse, where there are classes and a last linear layer."""
    if not subject.classes:
        return
    try:
        found = measure_collapse(subject.model)
    except DeeplimitsError:
        return
    parts = [f"NC1 {float(found.nc1):.2g} (scatter within classes over that between)"]
    parts.append(f"NC2 {float(found.nc2_angles):.2g} (angles of class means, from a simplex)")
    if found.nc3 is not None:
        parts.append(f"NC3 {float(found.nc3):.2g} (classifier against class means)")
    if found.nc4 is not None:
        parts.append(f"NC4 {float(found.nc4):.2g} (samples that the nearest mean calls otherwise)")
    yield Finding(
        "neural-collapse",
        "representations",
        "note",
        f"features before the last layer: {'; '.join(parts)}. All four vanish where training ends, if it goes on long "
        "after the last error.",
        measured=Estimate(float(found.within_over_between), None),
        what="tr Σ_W/tr Σ_B",
        theory=0.0,
        assumptions=(Assumption("training goes on after the training error is zero, with weight decay", None),),
        references=("papyan2020b",),
        urgency=-1.0,
    )
