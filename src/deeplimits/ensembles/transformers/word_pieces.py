"""Text to numbers of word pieces, as BERT's uncased encoders read it."""

import unicodedata
from collections.abc import Sequence
from pathlib import Path

LONGEST_WORD = 100
"""Longer words are unknown."""


class WordPieces:
    """The vocabulary of an encoder: `numbers(text)` is [CLS], the longest pieces from the left of every word, [SEP].

    Text is lowered, accents are taken off, and punctuation and Chinese characters stand alone.

    >>> pieces = WordPieces(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "token", "##s", "!"])
    >>> pieces.numbers("Tokéns!")
    [2, 4, 5, 6, 3]
    """

    def __init__(self, vocabulary: Sequence[str]):
        self.words = list(vocabulary)
        self._number = {word: number for number, word in enumerate(self.words)}

    @classmethod
    def from_file(cls, path: Path) -> "WordPieces":
        """One piece in each line of the file."""
        return cls(path.read_text(encoding="utf-8").splitlines())

    def numbers(self, text: str, most: int = 512) -> list[int]:
        """The numbers of the pieces of a text, at most so many with the marks at both ends."""
        found = [number for word in split_words(text) for number in self._pieces(word)]
        return [self._number["[CLS]"], *found[: most - 2], self._number["[SEP]"]]

    def _pieces(self, word: str) -> list[int]:
        unknown = [self._number["[UNK]"]]
        if len(word) > LONGEST_WORD:
            return unknown
        found, begin = [], 0
        while begin < len(word):
            for end in range(len(word), begin, -1):
                piece = ("##" if begin else "") + word[begin:end]
                if piece in self._number:
                    found.append(self._number[piece])
                    begin = end
                    break
            else:
                return unknown
        return found


def split_words(text: str) -> list[str]:
    """Lower-case words without accents; every mark of punctuation and every Chinese character is one by itself.

    >>> split_words("Zürich's 東京")
    ['zurich', "'", 's', '東', '京']
    """
    kept = []
    for letter in text:
        kind = unicodedata.category(letter)
        if letter.isspace() or kind == "Zs":
            kept.append(" ")
        elif not (ord(letter) in (0, 0xFFFD) or kind.startswith("C")):
            kept.append(f" {letter} " if _is_chinese(ord(letter)) else letter)
    plain = unicodedata.normalize("NFD", "".join(kept).lower())
    plain = "".join(letter for letter in plain if unicodedata.category(letter) != "Mn")
    return "".join(f" {letter} " if _is_punctuation(letter) else letter for letter in plain).split()


def _is_chinese(code: int) -> bool:
    ranges = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
              (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))  # fmt: skip
    return any(low <= code <= high for low, high in ranges)


def _is_punctuation(letter: str) -> bool:
    code = ord(letter)
    # All of ASCII that is neither letter nor digit counts, though Unicode calls some of it symbols.
    if 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126:
        return True
    return unicodedata.category(letter).startswith("P")
