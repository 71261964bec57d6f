"""How strongly words go with classes, and the replacement rules that follow from it (the transfer paper, section 4.2).

    PMI(w, z) = log2( df(w,z)/N_z * T / (tf(w) * p(z)) )        0 where df(w,z) is 0
    h(z, w -> v) = [PMI(w,z) - PMI(v,z)] + sum over z' != z of [PMI(v,z') - PMI(w,z')]

df(w,z) counts the texts of class z that contain the word, N_z the texts of the class, p(z) their share of all texts;
tf(w) counts the word's tokens and T all tokens. The figures of the paper's Table 6 were computed so: its text prints
the ratio without a logarithm, but the table holds base-2 logarithms, counts texts in the numerator and tokens in the
denominator, and has 0 for a word that a class does not have.

This PMI is not normalised: with two equal classes, a word that only one of them has gets log2(T / N) + 2 bits (6.5 on
MR) instead of 1, a word that a class does not have gets 0, and this offset does not cancel in h. Rules that take out a
word of the class, or put in a word of other classes, without a counterpart go first. The smoothed variant has no such
offset: it puts log2((df + a) / (N_z + 2a)) in the place of PMI.

Differences to the paper: words are those of `core/text.py`, in lower case, so "well-made" is one word.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from stockade.core.errors import DataError, OptionError
from stockade.core.text import Text, is_single_word
from stockade.lexicon.pos import load_tagger, wordnet_pos
from stockade.lexicon.rules import Rule, RuleSet
from stockade.lexicon.wordnet import load_wordnet

Association = Literal["pmi", "pmi-smoothed"]
Places = dict[tuple[str, str], Counter[str]]
"""By class and word, how often the word has which of WordNet's parts of speech."""
SMOOTHING = 0.5
MIN_COUNT = 2
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class WordCounts:
    """How often words occur in labelled texts; words are in lower case.

    Parameters
    ----------
    document_frequency
        df(w, z): for each class, how many of its texts contain a word.
    term_frequency
        tf(w): how often a word occurs in all texts.
    texts
        N_z: how many texts each class has.
    tokens
        T: how many words all texts have.
    """

    document_frequency: Mapping[str, Mapping[str, int]]
    term_frequency: Mapping[str, int]
    texts: Mapping[str, int]
    tokens: int

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes, in the order of their names."""
        return tuple(sorted(self.texts))

    def frequency(self, word: str, label: str) -> int:
        """df: how many texts of a class contain a word.

        Parameters
        ----------
        word
            The word; case is ignored.
        label
            The class.
        """
        return self.document_frequency.get(label, {}).get(word.lower(), 0)

    def pmi(self, word: str, label: str) -> float:
        """The association of a word and a class in bits, as in the paper's Table 6; 0 if the class has not the word.

        Parameters
        ----------
        word
            The word; case is ignored.
        label
            The class.
        """
        frequency = self.frequency(word, label)
        if not frequency:
            return 0.0
        texts = self.texts[label]
        share_of_class = texts / sum(self.texts.values())
        return math.log2(frequency / texts * self.tokens / (self.term_frequency[word.lower()] * share_of_class))

    def smoothed(self, word: str, label: str, smoothing: float = SMOOTHING) -> float:
        """log2 of the share of a class's texts that contain a word, smoothed so that no share is 0 or 1.

        Parameters
        ----------
        word
            The word; case is ignored.
        label
            The class.
        smoothing
            What is added to the texts that contain the word, and to those that do not.
        """
        return math.log2((self.frequency(word, label) + smoothing) / (self.texts[label] + 2 * smoothing))

    def association(self, word: str, label: str, method: Association = "pmi", smoothing: float = SMOOTHING) -> float:
        """`pmi` or `smoothed`, by the name of the method.

        Parameters
        ----------
        word, label
            The word and the class.
        method
            "pmi" or "pmi-smoothed".
        smoothing
            For "pmi-smoothed".
        """
        return self.pmi(word, label) if method == "pmi" else self.smoothed(word, label, smoothing)

    def salience(
        self, label: str, word: str, replacement: str, method: Association = "pmi", smoothing: float = SMOOTHING
    ) -> float:
        """h(z, w -> v): how much less the replacement goes with the class than the word does, and how much more with
        the others.

        Parameters
        ----------
        label
            The class of the texts that the rule is for.
        word, replacement
            The words of the rule.
        method, smoothing
            As for `association`.
        """
        total = 0.0
        for other in self.labels:
            before, after = (self.association(name, other, method, smoothing) for name in (word, replacement))
            total += before - after if other == label else after - before
        return total


def count_words(labelled: Iterable[tuple[str, Text]]) -> WordCounts:
    """Count the words of labelled texts in one pass; the texts are not kept.

    Parameters
    ----------
    labelled
        Pairs of a class and a text; of a pair of texts the hypothesis is counted, which rules change.
    """
    frequency: dict[str, Counter[str]] = {}
    terms: Counter[str] = Counter()
    texts: Counter[str] = Counter()
    tokens = 0
    for label, text in labelled:
        words = [word.lower() for word in text.words]
        texts[label] += 1
        tokens += len(words)
        terms.update(words)
        frequency.setdefault(label, Counter()).update(set(words))
    return WordCounts(frequency, terms, texts, tokens)


def pmi_rules(
    labelled: Iterable[tuple[str, Text]],
    *,
    method: Association = "pmi",
    smoothing: float = SMOOTHING,
    min_count: int = MIN_COUNT,
    provenance: Mapping[str, Any] | None = None,
) -> RuleSet:
    """The replacement rules that word counts give, without any model.

    Substitutes of a word are its WordNet synonyms as the part of speech that it has in a text, which are those that
    PWWS tries. Rules without positive salience are left out, because they are never applied.

    Parameters
    ----------
    labelled
        Pairs of a class and a text; read once.
    method
        "pmi" as in the paper, or "pmi-smoothed".
    smoothing
        For "pmi-smoothed": what is added to each count.
    min_count
        The fewest places of a rule: places in texts of its class where its word has a part of speech as which the
        replacement is a synonym.
    provenance
        What the rules' file says of the data, besides the method and its options.

    Returns
    -------
    RuleSet
        By class, the highest salience first; a rule's `count` is the number of its places.
    """
    _check(method, smoothing, min_count)
    places: Places = {}
    counts = count_words(_noting_places(labelled, places))
    if len(counts.texts) < 2:
        found = ", ".join(counts.labels) or "none"
        raise DataError(f"Rules by word counts need texts of at least two classes (found: {found}). Give more data.")
    rules = []
    for (label, word), parts in places.items():
        for substitute, count in _substitutes(word, parts).items():
            if count < min_count:
                continue
            salience = round(counts.salience(label, word, substitute, method, smoothing), _DIGITS)
            if salience > 0:
                rules.append(Rule(label, word, substitute, salience, count))
    rules.sort(key=lambda rule: (rule.label, -rule.salience, rule.word, rule.replacement))
    about: dict[str, Any] = {"method": method, "min_count": min_count}
    if method == "pmi-smoothed":
        about["smoothing"] = smoothing
    about |= {"texts": {label: counts.texts[label] for label in counts.labels}, "tokens": counts.tokens}
    return RuleSet(tuple(rules), {**about, **(provenance or {})})


def _check(method: str, smoothing: float, min_count: int) -> None:
    if method not in ("pmi", "pmi-smoothed"):
        raise OptionError(f'There are no word counts "{method}" (found: pmi, pmi-smoothed).')
    if not (math.isfinite(smoothing) and smoothing > 0):
        raise OptionError(f"The smoothing is {smoothing:g}, expected a number above 0, such as {SMOOTHING}.")
    if min_count < 1:
        raise OptionError(f"min_count is {min_count}, expected at least 1.")


def _noting_places(labelled: Iterable[tuple[str, Text]], places: Places) -> Iterator[tuple[str, Text]]:
    """The same pairs; `places` learns how often a word has which part of speech in texts of a class."""
    tagger = load_tagger()
    for label, text in labelled:
        for word, tag in zip(text.words, tagger.tag(text.words), strict=True):
            pos = wordnet_pos(tag)
            if pos is not None:
                places.setdefault((label, word.lower()), Counter())[pos] += 1
        yield label, text


def _substitutes(word: str, parts: Mapping[str, int]) -> dict[str, int]:
    """The synonyms of a word with the number of its places; spellings that differ in case only are one word."""
    wordnet = load_wordnet()
    spelling: dict[str, str] = {}
    count: Counter[str] = Counter()
    for pos, places in sorted(parts.items()):
        names = {name.lower(): name for name in reversed(wordnet.synonyms(word, pos)) if is_single_word(name)}
        names.pop(word, None)
        count.update(dict.fromkeys(names, places))
        spelling = names | spelling
    return {spelling[name]: places for name, places in count.items()}
