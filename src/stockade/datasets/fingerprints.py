"""Hashes of texts that survive spacing, case and punctuation, for fixed splits and for keeping train and test apart."""

from __future__ import annotations

import hashlib
import unicodedata


def normalise(text: str) -> str:
    """Compatibility-normalised, lower-case letters and digits only: what is left of a text after any tokeniser."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(character for character in folded if character.isalnum())


def text_hash(text: str) -> str:
    """A hash that is equal for texts that differ only in spacing, case and punctuation."""
    return hashlib.sha256(normalise(text).encode("utf-8", "surrogatepass")).hexdigest()
