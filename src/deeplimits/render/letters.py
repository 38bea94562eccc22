"""Greek and signs in letters that every encoding has."""

import re
import unicodedata

SIGNS = {
    line[0]: line[2:]
    for line in """\
─ -;│ |;− -;– -;— -;… ...;⋯ ...;’ ';‘ ';′ ';“ ';” ';→ ->;← <-;↦ ->;↔ <->
⟨ <;⟩ >;‖ ||;⌈ [;⌉ ];⌊ [;⌋ ];≤ <=;≥ >=;≠ !=;≈ ~;≃ ~;≲ <~;≪ <<;≫ >>
· *;× x;⊗ x;⊠ x;∘ o;± +/-;∓ -/+;√ sqrt;∞ infinity;∈ in;⊂ in;∝ ~;∼ ~;° deg
∑ sum;∏ prod;∫ integral;∂ d;∇ grad;⊥ _perp;∥ _par;∩ &;∪ |;† ^*;ℓ l
λ lambda;Λ Lambda;ς sigma;ϑ theta
\N{COMBINING CIRCUMFLEX ACCENT} ^;\N{COMBINING TILDE} ~;\N{COMBINING MACRON} -""".replace("\n", ";").split(";")
}
"""How one types them; also Greek letters whose names in Unicode are others."""
INDICES = {"<super>": "^", "<sub>": "_"}
"""What stands before a letter above or below the line."""


def ascii_of(text: str) -> str:
    """A text in ASCII: signs as one types them, Greek by name, a question mark for what has no other form.

    >>> ascii_of("Σ̂ → σ²γ, γλ₁₂ ≤ n⁻¹, é, 中")
    'Sigma^ -> sigma^2gamma, gamma lambda_12 <= n^-1, e, ?'
    """
    text = re.sub("([Α-Ωα-ω])(?=[Α-Ωα-ω])", r"\1 ", text)
    # The letters of one index have one sign before them: n^-^1 is n^-1.
    return re.sub(r"(?:\0[\^_].)+", _index, "".join(map(_letter, text)))


def _index(found: re.Match[str]) -> str:
    said, above = "", ""
    for sign, letter in re.findall(r"\0([\^_])(.)", found[0]):
        said += letter if sign == above else sign + letter
        above = sign
    return said


def _letter(letter: str) -> str:
    if letter.isascii():
        return letter
    if letter in SIGNS:
        return SIGNS[letter]
    name = unicodedata.name(letter, "")
    if found := re.fullmatch(r"GREEK (SMALL|CAPITAL) LETTER (\w+)", name):
        return found[2].lower() if found[1] == "SMALL" else found[2].capitalize()
    kind, _, code = unicodedata.decomposition(letter).partition(" ")
    if kind in INDICES:
        return f"\0{INDICES[kind]}{_letter(chr(int(code, 16)))}"
    if unicodedata.combining(letter):
        return ""
    return unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode() or "?"
