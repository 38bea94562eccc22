r"""Symbols of TeX in letters, with `_{}` and `^{}` left for the page to lower and raise."""

import re
import unicodedata

WORDS = {
    "infty": "∞", "ell": "ℓ", "sqrt": "√", "langle": "⟨", "rangle": "⟩", "perp": "⊥", "parallel": "∥", "to": "→",
    "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥", "ne": "≠", "approx": "≈", "sim": "∼", "times": "×", "cdot": "·",
    "star": "⋆", "ast": "*", "nabla": "∇", "partial": "∂", "sum": "Σ", "prod": "Π", "int": "∫", "in": "∈", "pm": "±",
    "mid": "|", "vert": "|", "lVert": "‖", "rVert": "‖", "Vert": "‖", "dots": "…", "ldots": "…", "cdots": "⋯",
    "prime": "′", "dagger": "†", "top": "⊤", "circ": "∘", "odot": "⊙", "otimes": "⊗", "oplus": "⊕", "max": "max",
    "min": "min", "log": "log", "exp": "exp", "tr": "tr", "det": "det", "sin": "sin", "cos": "cos", "quad": " ",
    "bullet": "•", "propto": "∝", "dot": "", "left": "", "right": "", "operatorname": "", "mathrm": "", "text": "",
    "mathbf": "", "mathcal": "", "rm": "", "bf": "", "displaystyle": "", "big": "", "Big": "", "bigl": "", "bigr": "",
}  # fmt: skip
"""What is not the name of a Greek letter."""
OVER = {"hat": "\u0302", "bar": "\u0304", "tilde": "\u0303", "dot": "\u0307", "vec": "\u20d7", "ddot": "\u0308",
        "widehat": "\u0302", "overline": "\u0304", "widetilde": "\u0303"}  # fmt: skip
DOUBLE = {"E": "E", "P": "P", "R": "ℝ", "N": "ℕ", "S": "𝕊", "1": "1", "Z": "ℤ", "C": "ℂ"}


def letters(symbol: str) -> str:
    r"""A symbol of TeX as text; what is lowered or raised stays in braces behind `_` or `^`.

    >>> letters(r"\eta\lambda_{\max}/2"), letters(r"\|\hat\beta\|^2"), letters(r"\frac{a}{b+c}")
    ('ηλ_{max}/2', '‖β̂‖^{2}', 'a/(b+c)')
    """
    found = symbol.replace(r"\|", "‖").replace(r"\,", " ").replace(r"\;", " ").replace(r"\!", "").replace(r"\ ", " ")
    found = found.replace(r"\#", "#").replace(r"\%", "%")
    found = found.replace(r"\{", "{").replace(r"\}", "}") if "{" not in found.replace(r"\{", "") else found
    found = re.sub(r"\\(?:mathbb|mathds)\{?(\w)\}?", lambda m: DOUBLE.get(m[1], m[1]), found)
    for _ in range(4):  # fractions within fractions
        found = re.sub(
            r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}", lambda m: f"{_bracketed(m[1])}/{_bracketed(m[2])}", found
        )
        found = re.sub(r"\\sqrt\{([^{}]*)\}", lambda m: f"√{_bracketed(m[1])}", found)
    accents = "|".join(OVER)
    found = re.sub(rf"\\({accents})\s*\{{?(\\[A-Za-z]+|\w)\}}?", lambda m: _word(m[2]) + OVER[m[1]], found)
    found = re.sub(r"\\[A-Za-z]+ ?", lambda m: _word(m[0]), found)
    found = re.sub(r"([_^])([^{\s])", r"\1{\2}", found)
    return found.replace("'", "′").strip()


def plain(symbol: str) -> str:
    """The same without marks for what is lowered, for places where text is all there is."""
    return re.sub(r"[{}]", "", letters(symbol))


def _bracketed(part: str) -> str:
    return part if re.fullmatch(r"\\?\w+", part) else f"({part})"


def _word(command: str) -> str:
    name = command.strip().removeprefix("\\")
    if not command.startswith("\\"):
        return name
    if name in WORDS:
        # A function's name keeps the space that it is given, or gets one.
        return WORDS[name] + (" " if WORDS[name] == name and command.endswith(" ") else "")
    bare = name.removeprefix("var")
    spelled = {"lambda": "lamda", "Lambda": "Lamda"}.get(bare, bare)
    try:
        return unicodedata.lookup(f"GREEK {'CAPITAL' if spelled[0].isupper() else 'SMALL'} LETTER {spelled.upper()}")
    except KeyError:
        return name
