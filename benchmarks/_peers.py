"""Peers live in environments of their own under .peers/, made on first use."""

import subprocess
import sys
from pathlib import Path

PEERS = Path(__file__).resolve().parent.parent / ".peers"


def environment(name: str, *packages: str) -> Path | None:
    """The interpreter of the environment `name` with these packages; None, with a sentence, where it cannot be made."""
    folder = PEERS / name
    python = folder / "bin" / "python"
    ready = folder / ".ready"
    if ready.exists() and ready.read_text() == "\n".join(packages):
        return python
    steps = [
        [sys.executable, "-m", "venv", str(folder)],
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages],
    ]
    for step in steps:
        if subprocess.run(step, capture_output=True).returncode:
            print(f"{name} could not be installed into {folder.relative_to(PEERS.parent)} and is skipped")
            return None
    ready.write_text("\n".join(packages))
    return python
