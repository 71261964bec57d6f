"""Attackers who put in every synonym of a table in mixed scripts: no certificate of `st.certify` is ever broken.

Tables hold whatever a file of vectors may hold: words of several words, Han, kana, Hangul, marks, emoji, joiners. Texts
put them side by side with and without blanks. Every text within the radius is tried, read from its string, and its
class computed from all of its copies. Half of the victims are the worst there can be for one of these texts: they say
something else exactly where its copies are more likely than those of the certified text.
"""

from __future__ import annotations

import random
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

import stockade as st
from stockade.core.protocols import Classifier
from stockade.core.text import Text, match_case
from stockade.defenses.defended import Defended
from stockade.defenses.safer import Safer
from stockade.lexicon import perturbation_sets
from stockade.lexicon.perturbation_sets import PerturbationSets

POOL = (
    *("good", "nice", "fine", "u.s.", "e-mail", "x-", "abª", "straße", "добро", "мир", "rock'n'roll", "naïve"),
    *("日", "月", "好", "高兴", "か", "か\u3099", "カ", "カー", "ー", "々", "〇", "\U00016ff0"),
    *("일", "이", "좋다", "10", "7", "२", "अच्छा", "ดี", "سلام", "حلو", "שלום"),
    *("\u0301", "\u3099", "\u0301일", "\ufe0f", "_", "7-7", "7\u200d7", "😀", "❤\ufe0f", "일.이", "7'", "\u200d7"),
)
JOINTS = ("", "", "", "-", "'", "\u200d", "\u200b", ".", "/", "😀", "\u0301")
MOST_COPIES, MOST_ATTACKS = 90, 90
Law = Mapping[str, Fraction]
CLASSES = 3


def sets_of(robust: Classifier) -> PerturbationSets:
    assert isinstance(robust, Defended)
    assert isinstance(robust.defense, Safer)
    return robust.defense.sets()


def law_of(string: str, sets: PerturbationSets) -> Law:
    """The probability of each copy of a string."""
    text = Text.parse(string)
    choices = [[match_case(drawn, word) for drawn in sets.of(word)] if sets.of(word) else [word] for word in text.words]
    copies = Counter(str(text.replace_all(dict(enumerate(drawn)))) if drawn else string for drawn in product(*choices))
    return {copy: Fraction(count, copies.total()) for copy, count in copies.items()}


def attacks_on(string: str, sets: PerturbationSets, radius: int) -> Iterator[str]:
    """Every text with up to so many words, which blanks separate, replaced by synonyms in all their parts."""
    text = Text.parse(string)
    by_word: dict[int, list[int]] = {}
    for index, start in enumerate(text.starts):
        if sets.synonyms(text.words[index]):
            by_word.setdefault(len(string[: start + 1].split()), []).append(index)
    for chosen in combinations(by_word, min(radius, len(by_word))):
        places = [index for word in chosen for index in by_word[word]]
        options = [
            [text.words[place], *(match_case(other, text.words[place]) for other in sets.synonyms(text.words[place]))]
            for place in places
        ]
        for drawn in product(*options):
            yield str(text.replace_all(dict(zip(places, drawn, strict=True))))


@dataclass
class Tables:
    """A victim that answers each string by the table of the text whose number ends the string."""

    seed: int
    labels: tuple[str, ...] = ("a", "b", "c")
    answers: dict[str, dict[str, int]] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)

    def vote(self, string: str) -> int:
        number = string.rsplit(" ", 1)[-1]
        if number in self.answers:
            return self.answers[number].get(string, 0)
        drawn = zlib.crc32(f"{self.seed} {string}".encode()) / 2**32
        error = self.errors.get(number, 0.0)
        return 0 if drawn >= error else 1 + int(drawn / error * (CLASSES - 1))

    def __call__(self, strings: Sequence[str]) -> list[list[float]]:
        return [np.eye(CLASSES)[self.vote(string)].tolist() for string in strings]

    def counts(self, law: Law) -> list[Fraction]:
        votes = {copy: self.vote(copy) for copy in law}
        return [sum((law[copy] for copy in law if votes[copy] == label), Fraction(0)) for label in range(CLASSES)]


def write_table(rng: random.Random, path: Path) -> list[str]:
    words = rng.sample(POOL, rng.randint(10, 18))
    draw = np.random.default_rng(rng.getrandbits(32))
    path.write_text("".join(f"{word} {' '.join(f'{x:.4f}' for x in draw.normal(size=3))}\n" for word in words))
    return words


def some_text(rng: random.Random, words: Sequence[str], number: int) -> str:
    parts = []
    for _ in range(rng.randint(1, 3)):
        part = rng.choice(words)
        for _ in range(rng.choice((0, 0, 1, 1, 2))):
            part += rng.choice(JOINTS) + rng.choice(words)
        parts.append(rng.choice((part, part, part.upper(), part.capitalize())))
    return " ".join([*parts, f"zq{number}"])


@dataclass
class Tally:
    certified: int = 0
    attacked: int = 0
    broken: list[str] = field(default_factory=list)


def attack_one_table(seed: int, texts: int, folder: Path) -> Tally:
    """Certify texts over one random table, and attack what is certified at radius 1 or more."""
    rng = random.Random(seed)
    path = folder / f"table-{seed}.txt"
    words = write_table(rng, path)
    victim = Tables(seed)
    robust = st.defend(
        victim, "safer@vote", vectors=str(path), directions=0, maximum=rng.choice((2, 3, 100)), min_cosine=0.6
    )
    sets = sets_of(robust)
    laws: dict[str, Law] = {}
    for number in range(20 * texts):
        string = some_text(rng, words, number)
        copies = np.prod([len(sets.of(word)) or 1 for word in Text.parse(string).words])
        near = list(attacks_on(string, sets, 2)) if copies <= MOST_COPIES else []
        if not 1 < len(near) <= MOST_ATTACKS:
            continue
        laws[string] = law_of(string, sets)
        tag = string.rsplit(" ", 1)[-1]
        if rng.random() < 0.5:
            victim.errors[tag] = rng.choice((0.0, 0.1, 0.2, 0.4))
        else:
            victim.answers[tag] = _worst_answers(laws[string], [law_of(other, sets) for other in near], rng)
        if len(laws) == texts:
            break
    tally = Tally()
    if not laws:
        return tally
    result = st.certify(robust, list(laws), "safer:alpha=1e-9,most=400,selection=60", unlabelled=True)
    assert result.verify().holds
    for certificate in result.certificates:
        if not certificate.radius:
            continue
        tally.certified += 1
        chosen = victim.labels.index(str(certificate.predicted))
        for other in set(attacks_on(certificate.text, sets, certificate.radius)):
            shares = victim.counts(law_of(other, sets))
            tally.attacked += 1
            if any(share >= shares[chosen] for label, share in enumerate(shares) if label != chosen):
                tally.broken.append(f"{certificate.text!r} → {other!r} (radius {certificate.radius}, {path.name})")
    return tally


def _worst_answers(law: Law, others: Sequence[Law], rng: random.Random) -> dict[str, int]:
    """Class 1 or 2 for the copies that are more likely for the attack whose copies differ most from the text's."""
    distance = [sum(max(share - law.get(copy, 0), Fraction(0)) for copy, share in other.items()) for other in others]
    other, label = others[distance.index(max(distance))], rng.randint(1, 2)
    return {copy: label for copy, share in other.items() if share > law.get(copy, 0)}


def attack_many(tables: range, texts: int, folder: Path) -> Tally:
    total = Tally()
    for seed in tables:
        tally = attack_one_table(seed, texts, folder)
        total.certified += tally.certified
        total.attacked += tally.attacked
        total.broken += tally.broken
    return total


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STOCKADE_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.parametrize(
    ("table", "text", "other", "radius"),
    [
        ("good nice u.s.", "good", "u.s.", 1),  # u.s. is two words: good and nice are the only synonyms left
        ("日 일", "日日", "일일", 0),  # one word
        ("好 佳 高兴", "好", "高兴", 1),  # two words
        ("日 月 7", "日7 up", "77 up", 0),
        ("か き \u3099", "月か", "月\u3099", 0),
        ("good fine goª", "GOOD", "GOª", 1),  # in capitals it is read as capitalised
    ],
)
def test_replacements_that_are_read_otherwise_are_not_certified(
    table: str, text: str, other: str, radius: int, folder: Path
) -> None:
    """The victim says something else to the replaced text, and to copies of it that the text itself has not got."""
    words = [*table.split(), "far", "away"]
    vectors = [f"1 {place / 50}" for place in range(len(words) - 2)] + ["-1 1", "0 -1"]
    path = folder / "table.txt"
    path.write_text("".join(f"{word} {vector}\n" for word, vector in zip(words, vectors, strict=True)))

    def victim(strings: Sequence[str]) -> list[list[float]]:
        return [[1.0, 0.0] if string == other or string == "Good" else [0.0, 1.0] for string in strings]

    robust = st.defend(victim, "safer@vote", vectors=str(path), directions=0)
    (certificate,) = st.certify(robust, [text], "safer:alpha=1e-6", unlabelled=True).certificates
    assert certificate.radius == radius
    assert other not in attacks_on(text, sets_of(robust), radius)


def test_no_certificate_is_broken(folder: Path) -> None:
    tally = attack_many(range(12), 25, folder)
    assert tally.broken == []
    assert tally.certified > 60
    assert tally.attacked > 200


@pytest.mark.slow
def test_no_certificate_of_ten_thousand_is_broken(folder: Path) -> None:
    tally = attack_many(range(100, 700), 60, folder)
    assert tally.broken == []
    assert tally.certified >= 10_000


def test_certificates_that_trust_every_boundary_are_broken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the tests above are ones that could fail."""
    monkeypatch.setattr(PerturbationSets, "_may_be_joined", lambda *_: set())
    joined = attack_many(range(20, 32), 25, folder).broken
    assert len(joined) > 5
    perturbation_sets._sets_of.cache_clear()
    monkeypatch.setattr(perturbation_sets, "is_single_word", lambda _: True)
    assert len(attack_many(range(20, 32), 25, folder).broken) > len(joined)
    perturbation_sets._sets_of.cache_clear()
