"""The gallery: the figures of lecture notes on deep-learning theory, computed, simulated and checked.

One figure, one file `fNN_short_name.py`, which holds what is computed, what is drawn and which numbers show the
phenomenon. `deeplimits figure` lists them, `deeplimits figure F8` makes one.
"""

from deeplimits.doors import door

with door(__name__):
    from deeplimits.gallery.figure import Check as Check
    from deeplimits.gallery.figure import Run as Run
    from deeplimits.gallery.listing import Entry as Entry
    from deeplimits.gallery.listing import entries as entries
    from deeplimits.gallery.listing import find as find
    from deeplimits.gallery.making import Made as Made
    from deeplimits.gallery.making import compute as compute
    from deeplimits.gallery.making import make as make
    from deeplimits.gallery.page import write_page as write_page
