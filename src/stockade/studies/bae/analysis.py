"""The numbers of the study of BAE (Garg and Ramakrishnan, EMNLP 2020), from the results of its attacks alone.

    attacks             Tables 1 and 2: accuracy before and after, success, similarity, changed words, queries
    ratings             Table 4, if somebody has rated (`ratings.py`)
    splits              Table 5: what inserting adds to replacing, and replacing to inserting
    curve               Figure 2: accuracy after the attack against the largest perturbation allowed
    paired_similarity   each mode against TextFooler on the texts that both fool
    antonyms            how many successes turn a word into its opposite
    fluency             pseudo-perplexity of the texts before and after

Differences to the paper: queries, antonyms and pseudo-perplexity are not in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stockade.attacks.word_attack import changes_allowed
from stockade.core.example import Example
from stockade.core.records import Record
from stockade.core.statistics import wilson
from stockade.core.text import Text
from stockade.lexicon.wordnet import POS_ORDER, WordNet, load_wordnet
from stockade.report.numbers import Interval
from stockade.studies.records import (
    AttackNumbers,
    Results,
    attacked_by_all,
    bootstrap_mean,
    mean,
    middle,
    succeeded,
    successes,
    was_attacked,
)

if TYPE_CHECKING:
    from stockade.studies.bae.ratings import RatingNumbers

REPLACE, INSERT, EITHER, BOTH = "bae-r", "bae-i", "bae-r/i", "bae-r+i"
MODES = (REPLACE, INSERT, EITHER, BOTH)
BASELINE = "textfooler"
ATTACKS = (*MODES, BASELINE)
CAPS = tuple(percent / 100 for percent in range(0, 101, 5))
SPLITS = {
    "A": f"{EITHER} succeeds, {REPLACE} does not",
    "B": f"{EITHER} succeeds, {INSERT} does not",
    "C": f"{EITHER} succeeds, neither {REPLACE} nor {INSERT} does",
}
Perplexities = Mapping[str, float | None]
"""The pseudo-perplexity of each text; None for a text that has none."""


@dataclass(frozen=True, slots=True)
class Share:
    """How many, and which share that is, with its 95 % Wilson interval."""

    count: int
    share: Interval


@dataclass(frozen=True, slots=True)
class Splits:
    """Table 5: over the texts that R, I and R/I have all attacked, and over all test instances as in the paper.

    A text in A needed an insertion, one in B a replacement, one in C both; C is the part that A and B share. Test
    instances are also those that the model gets wrong anyway; texts on which one of the three ended in an error are
    neither.
    """

    attacked: int
    splits: Mapping[str, Share]
    tested: int
    of_tested: Mapping[str, Share]


@dataclass(frozen=True, slots=True)
class Curve:
    """Figure 2: for each attack the accuracy at each cap on the share of changed words."""

    caps: tuple[float, ...]
    attacks: Mapping[str, tuple[Interval, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedSimilarity:
    """A mode against the baseline, on the texts that both fool."""

    texts: int
    mean_similarity: float | None
    baseline_mean_similarity: float | None
    difference: Interval


@dataclass(frozen=True, slots=True)
class Antonyms:
    """Successes in which a word was replaced by its opposite; `with_indirect` also counts opposites via a synonym."""

    successes: int
    direct: Share
    with_indirect: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackFluency:
    """Pseudo-perplexities of one attack's successes; a ratio above 1 means that texts became less fluent."""

    measured: int
    median_original: float | None
    median_adversarial: float | None
    median_ratio: float | None
    mean_ratio: Interval


@dataclass(frozen=True, slots=True)
class Fluency:
    """Pseudo-perplexities by attack, and the masked LM that they are by."""

    masked_lm: str
    attacks: Mapping[str, AttackFluency]


@dataclass(frozen=True, slots=True, kw_only=True)
class BaeNumbers:
    """Every number of the study. `fluency` is None if it was not measured, `ratings` before anybody has rated."""

    attacks: Mapping[str, AttackNumbers]
    splits: Splits
    curve: Curve
    paired_similarity: Mapping[str, PairedSimilarity]
    antonyms: Mapping[str, Antonyms]
    fluency: Fluency | None
    ratings: RatingNumbers | None = None


def analyse(
    results: Results,
    attacks: Mapping[str, AttackNumbers],
    masked_lm: str,
    perplexities: Perplexities | None,
    ratings: RatingNumbers | None = None,
) -> BaeNumbers:
    """Every number of the study.

    Parameters
    ----------
    results
        What the five attacks did.
    attacks
        Their numbers.
    masked_lm
        The masked LM that the pseudo-perplexities are by.
    perplexities
        The pseudo-perplexities of `texts_to_measure`; None if they were not measured.
    ratings
        What human raters say; None before anybody has.
    """
    fooling = {attack: successes(results[attack]) for attack in ATTACKS}
    return BaeNumbers(
        attacks=attacks,
        splits=measure_splits(results),
        curve=Curve(CAPS, {attack: accuracy_curve(results[attack].values()) for attack in ATTACKS}),
        paired_similarity={mode: pair_similarities(results, mode) for mode in MODES},
        antonyms={attack: measure_antonyms(records) for attack, records in fooling.items()},
        fluency=None
        if perplexities is None
        else Fluency(
            masked_lm, {attack: measure_fluency(records, perplexities) for attack, records in fooling.items()}
        ),
        ratings=ratings,
    )


def split_texts(results: Results) -> dict[str, list[str]]:
    """The ids of the texts in each split of Table 5."""
    splits: dict[str, list[str]] = {name: [] for name in SPLITS}
    for text in attacked_by_all(results, (REPLACE, INSERT, EITHER)):
        replaced, inserted = succeeded(results[REPLACE][text]), succeeded(results[INSERT][text])
        if not succeeded(results[EITHER][text]):
            continue
        for split, belongs in (("A", not replaced), ("B", not inserted), ("C", not replaced and not inserted)):
            if belongs:
                splits[split].append(text)
    return splits


def measure_splits(results: Results) -> Splits:
    """Counts and shares, of the attacked texts and of all test instances."""
    attacks = (REPLACE, INSERT, EITHER)
    attacked = len(attacked_by_all(results, attacks))
    records = [[results[attack].get(text) for attack in attacks] for text in results[REPLACE]]
    tested = sum(all(record is not None and record.status != "error" for record in row) for row in records)
    counts = {split: len(texts) for split, texts in split_texts(results).items()}
    return Splits(
        attacked,
        {split: _share(count, attacked) for split, count in counts.items()},
        tested,
        {split: _share(count, tested) for split, count in counts.items()},
    )


def fooled_within(record: Record, caps: Sequence[float]) -> list[bool]:
    """For each cap on the share of changed words, whether a search with that cap would have succeeded.

    The cap of a text of n words is k = floor(share * n) edits: replacements and insertions. BAE and TextFooler fix the
    order of the words before the first edit, look at the cap only to stop, and stop at the first text that fools the
    model. So a search with a cap walks the same way as one without, until the text has k edits. Every step that is
    taken adds one edit, for no word is replaced twice or by itself. If the search without a cap succeeds with m edits,
    then the search with cap k

        finds the same text    if k >= m: there were m - 1 edits when the cap was last looked at
        fails                  if k < m: no text with fewer edits fooled the model

    and one that fails without a cap fails with every cap. This is exact for a model that answers the same text alike.
    tests/studies/bae/test_curve.py compares it with real searches under caps.
    """
    if record.status != "success":
        return [False] * len(caps)
    example = Example(record.id, Text.parse(record.original), 0)
    return [changes_allowed(example, cap) >= len(record.edits) for cap in caps]


def accuracy_curve(records: Iterable[Record], caps: Sequence[float] = CAPS) -> tuple[Interval, ...]:
    """The accuracy after the attack at each cap, with 95 % Wilson intervals; examples with errors are left out."""
    n, robust = 0, [0] * len(caps)
    for record in records:
        if record.status == "error":
            continue
        n += 1
        if was_attacked(record):
            robust = [count + (not fooled) for count, fooled in zip(robust, fooled_within(record, caps), strict=True)]
    return tuple(wilson(count, n) for count in robust)


def pair_similarities(results: Results, mode: str) -> PairedSimilarity:
    """Mean similarities of a mode and the baseline on the texts that both fool, and of their differences."""
    pairs = [
        (record.similarity, other.similarity)
        for record, other in ((results[mode][text], results[BASELINE].get(text)) for text in results[mode])
        if succeeded(record) and other is not None and succeeded(other)
    ]
    measured = [(first, second) for first, second in pairs if first is not None and second is not None]
    return PairedSimilarity(
        texts=len(measured),
        mean_similarity=mean([first for first, _ in measured]),
        baseline_mean_similarity=mean([second for _, second in measured]),
        difference=bootstrap_mean([first - second for first, second in measured]),
    )


def measure_antonyms(records: Sequence[Record]) -> Antonyms:
    """The share of these successes with an antonym in them.

    A masked LM likes "bad" as much as "good" after "this is": the text fools the model, but it also says something
    else.
    """
    wordnet = load_wordnet()
    direct = sum(_has_antonym(record, wordnet) for record in records)
    indirect = sum(_has_antonym(record, wordnet, indirect=True) for record in records)
    return Antonyms(len(records), _share(direct, len(records)), _share(indirect, len(records)))


def are_antonyms(word: str, other: str, wordnet: WordNet, *, indirect: bool = False) -> bool:
    """Whether WordNet lists a word, or a base form of it, as an antonym of the other in the same part of speech.

    Parameters
    ----------
    word, other
        The two words, in any form and order.
    wordnet
        The lexicon.
    indirect
        Also adjectives that are opposites through a synonym or their head ("parched", like "dry", against "wet").
    """
    return any(
        _lists(wordnet, first, second, pos, indirect)
        for pos in POS_ORDER
        for first, second in ((word, other), (other, word))
    )


def _lists(wordnet: WordNet, word: str, candidate: str, pos: str, indirect: bool) -> bool:
    opposites = {name.lower() for name in wordnet.antonyms(word, pos, indirect=indirect)}
    return bool(opposites) and not opposites.isdisjoint({candidate.lower(), *wordnet.lemmas(candidate, pos)})


def _has_antonym(record: Record, wordnet: WordNet, *, indirect: bool = False) -> bool:
    """Whether at least one replacement of the text is an antonym of the word it replaces."""
    return any(
        are_antonyms(edit.before, edit.after, wordnet, indirect=indirect)
        for edit in record.edits
        if edit.op == "replace"
    )


def texts_to_measure(results: Results) -> list[str]:
    """The texts whose pseudo-perplexity `measure_fluency` asks for: each success and its original, once."""
    records = [record for attack in ATTACKS for record in successes(results[attack])]
    return list(dict.fromkeys(text for record in records for text in (record.original, record.adversarial or "")))


def measure_fluency(records: Sequence[Record], perplexities: Perplexities) -> AttackFluency:
    """Medians of both texts, and the ratio adversarial / original."""
    pairs = [
        (before, after)
        for before, after in (
            (perplexities[record.original], perplexities[record.adversarial or ""]) for record in records
        )
        if before is not None and after is not None
    ]
    ratios = [after / before for before, after in pairs]
    return AttackFluency(
        measured=len(pairs),
        median_original=middle([before for before, _ in pairs]),
        median_adversarial=middle([after for _, after in pairs]),
        median_ratio=middle(ratios),
        mean_ratio=bootstrap_mean(ratios),
    )


def _share(hits: int, trials: int) -> Share:
    return Share(hits, wilson(hits, trials))
