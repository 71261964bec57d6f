"""Which words of a text a certificate lets an attacker change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stockade.certificates.certificate import Certificate
from stockade.certificates.synonyms import parts_by_word, synonym_distribution
from stockade.core.errors import StockadeError
from stockade.core.text import Text

if TYPE_CHECKING:
    from stockade.lexicon.perturbation_sets import PerturbationSets


def changeable_words(certificate: Certificate, defenses: Sequence[Mapping[str, Any]]) -> tuple[bool, ...] | None:
    """For each word of `text.split()` whether it may be changed: all, or with synonyms those that have some.

    None where it cannot be told: the table of synonyms is not here, or not the one that was certified with.
    """
    distribution = (certificate.evidence or {}).get("distribution", {})
    if distribution.get("kind") != "SynonymDistribution":
        return (True,) * certificate.words
    sets = _synonym_sets(defenses)
    text = Text.parse(certificate.text)
    found = () if sets is None else sets.in_text(text)
    if list(synonym_distribution(text, found).overlaps) != list(distribution["overlaps"]):
        return None
    places = parts_by_word(text, found)
    return tuple(at in places for at in range(certificate.words))


def _synonym_sets(defenses: Sequence[Mapping[str, Any]]) -> PerturbationSets | None:
    """The sets of SAFER, among the defenses of a run; None if they cannot be had here."""
    from stockade.defenses.registry import make_defense

    options: Mapping[str, Any] = next((one["options"] for one in defenses if one["name"] == "safer"), {})
    try:
        sets: PerturbationSets = make_defense("safer", **options).defense.sets()
    except StockadeError:
        return None
    return sets
