"""Where in the data each rule could be applied: counted in one pass without a model, then listed to be scored.

A place is a word of a text in the part of speech that it has there; every WordNet synonym of that word as that part of
speech is a substitute. Rules that share the word, the class and the part of speech share their places, so the first
pass only counts those: memory grows with the vocabulary, not with the texts.

Of a rule with many places a seeded sample is scored: those with the smallest hash of (seed, text, word). Which ones
does not depend on the order of the texts, on what else is scored, or on the models.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from heapq import heappush, heappushpop

from stockade.core.example import Example
from stockade.core.text import Text, is_single_word, match_case
from stockade.lexicon.pos import load_tagger, wordnet_pos
from stockade.lexicon.wordnet import load_wordnet

Group = tuple[int, str, str]
"""What places have in common: the class of the text, the word in lower case, WordNet's part of speech."""
_NO_LIMIT = 1 << 64


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible rule: its class by number, its words, and how many places the data have for it."""

    label: int
    word: str
    replacement: str
    occurrences: int


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A place at which a rule is scored.

    Parameters
    ----------
    text, label
        The text and its class.
    index
        The word to replace.
    replacement
        What replaces it, in its case.
    rule
        The number of the rule among the candidates.
    """

    text: Text
    label: int
    index: int
    replacement: str
    rule: int

    @property
    def changed(self) -> Text:
        """The text with the rule applied at this place."""
        return self.text.replace(self.index, self.replacement)


@dataclass(frozen=True, slots=True)
class ScoringPlan:
    """Which rules are scored, and at which places.

    Parameters
    ----------
    candidates
        The rules with enough places, in the order of their class, word and replacement.
    seed
        Decides the sample of places.
    """

    candidates: tuple[Candidate, ...]
    seed: int
    _targets: Mapping[Group, tuple[tuple[int, str, int], ...]] = field(repr=False)
    """For each group the rules at its places: number, replacement, and below which hash a place is scored."""

    def occurrences(self, examples: Iterable[Example]) -> Iterator[Occurrence]:
        """The places to score, in the order of the texts.

        Parameters
        ----------
        examples
            The texts that the plan was made from.
        """
        for example in examples:
            words = example.text.words
            for index, group, rank in places(example, self.seed):
                for rule, name, limit in self._targets.get(group, ()):
                    replacement = match_case(name, words[index])
                    if rank < limit and replacement != words[index]:
                        yield Occurrence(example.text, example.label, index, replacement, rule)


def plan_scoring(examples: Iterable[Example], *, min_count: int, max_count: int | None, seed: int) -> ScoringPlan:
    """Count the places of all rules, and choose which rules are scored at which of them.

    Parameters
    ----------
    examples
        The texts with their classes; read once.
    min_count
        Rules with fewer places are not scored.
    max_count
        The most places that are scored of a rule; all if None.
    seed
        Decides the sample.
    """
    groups: dict[Group, _Places] = {}
    for example in examples:
        for _, group, rank in places(example, seed):
            groups.setdefault(group, _Places()).add(rank, max_count)
    candidates: list[Candidate] = []
    targets: dict[Group, list[tuple[int, str, int]]] = {}
    for (label, word), parts in sorted(_by_word(groups).items()):
        for name, shared in sorted(_by_substitute(word, parts).items()):
            counted = [groups[group] for group in shared]
            occurrences = sum(group.count for group in counted)
            if occurrences < min_count:
                continue
            for group in shared:
                targets.setdefault(group, []).append((len(candidates), name, _limit(counted, max_count)))
            candidates.append(Candidate(label, word, name, occurrences))
    return ScoringPlan(tuple(candidates), seed, {group: tuple(rules) for group, rules in targets.items()})


def places(example: Example, seed: int) -> Iterator[tuple[int, Group, int]]:
    """The words of a text that have substitutes: index, group, and the hash that a sample is taken by.

    Parameters
    ----------
    example
        The text and its class.
    seed
        Of the hash.
    """
    words = example.text.words
    of_text = blake2b(f"mine {seed} {example.id}".encode("utf-8", "surrogatepass"), digest_size=8)
    for index, tag in enumerate(load_tagger().tag(words)):
        pos, word = wordnet_pos(tag), words[index].lower()
        if pos is not None and substitutes(word, pos):
            of_place = of_text.copy()
            of_place.update(f" {index}".encode())
            yield index, (example.label, word, pos), int.from_bytes(of_place.digest(), "big")


@lru_cache(maxsize=1 << 16)
def substitutes(word: str, pos: str) -> tuple[str, ...]:
    """The WordNet synonyms of a word as a part of speech; spellings that differ in case only are one word.

    Parameters
    ----------
    word
        The word in lower case.
    pos
        WordNet's part of speech: n, v, a or r.
    """
    names: dict[str, str] = {}
    for name in load_wordnet().synonyms(word, pos):
        if is_single_word(name) and is_single_word(word):
            names.setdefault(name.lower(), name)
    return tuple(names.values())


class _Places:
    """How many places a group has, and the smallest of their hashes."""

    __slots__ = ("_smallest", "count")

    def __init__(self) -> None:
        self.count = 0
        self._smallest: list[int] = []

    def add(self, rank: int, most: int | None) -> None:
        self.count += 1
        if most is None:
            return
        if len(self._smallest) < most:
            heappush(self._smallest, -rank)  # heapq has the smallest on top, and the largest has to go first
        else:
            heappushpop(self._smallest, -rank)

    @property
    def smallest(self) -> list[int]:
        return [-rank for rank in self._smallest]


def _limit(groups: list[_Places], most: int | None) -> int:
    """The hash from which on places of a rule are left out: the first after the `most` smallest."""
    if most is None or sum(group.count for group in groups) <= most:
        return _NO_LIMIT
    return sorted(rank for group in groups for rank in group.smallest)[most - 1] + 1


def _by_word(groups: Iterable[Group]) -> dict[tuple[int, str], list[Group]]:
    """The groups of each word of each class; parts of speech in the order of their names."""
    words: dict[tuple[int, str], list[Group]] = {}
    for group in sorted(groups):
        words.setdefault(group[:2], []).append(group)
    return words


def _by_substitute(word: str, groups: Iterable[Group]) -> dict[str, list[Group]]:
    """The groups in which each substitute of a word may stand; spellings that differ in case only are one."""
    spelling: dict[str, str] = {}
    shared: dict[str, list[Group]] = {}
    for group in groups:
        for name in substitutes(word, group[2]):
            shared.setdefault(spelling.setdefault(name.lower(), name), []).append(group)
    return shared
