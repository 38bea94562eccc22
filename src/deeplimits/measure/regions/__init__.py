"""Linear regions of a piecewise linear network: exact breakpoints along a path, exact polygons in a plane."""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.measure.adapters.switching import Matrices as Matrices
    from deeplimits.measure.regions.lines import LinePieces as LinePieces
    from deeplimits.measure.regions.lines import line_pieces as line_pieces
    from deeplimits.measure.regions.planes import PlaneRegions as PlaneRegions
    from deeplimits.measure.regions.planes import plane_regions as plane_regions
