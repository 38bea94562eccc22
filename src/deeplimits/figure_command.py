"""`deeplimits figure`: the figures of the gallery, listed or made."""

import argparse

from deeplimits import gallery, guard

FAILS = 2


def run(options: argparse.Namespace) -> int:
    """List the figures, or make those that are named; exit code 2 where a check fails."""
    if not options.name:
        for entry in gallery.entries():
            print(f"{entry.label:<4} {entry.name:<28} {entry.title}")
        return 0
    chosen = gallery.entries() if options.name == ["all"] else [gallery.find(name) for name in options.name]
    guard.check_output(options.out, "out", folder=True)
    good = True
    for place, entry in enumerate(chosen):
        if options.compute_only:
            gallery.compute(entry, options.size, options.out)
            print(
                f"wrote {options.out}/{entry.stem}.npz; `deeplimits figure {entry.name} --computed {options.out}` draws"
            )
            continue
        made = gallery.make(entry, options.size, options.out, computed=options.computed)
        print("\n" * (place > 0) + str(made))
        print(f"wrote {options.out}/{entry.stem}.png, .svg, .json", flush=True)
        good &= made.holds
    return 0 if good else FAILS
