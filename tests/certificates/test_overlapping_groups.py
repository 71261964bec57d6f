"""Groups that overlap: the radius against attackers who try everything, and certificates from the defense to verify."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as hs

import stockade as st
from stockade.certificates.bounds import overlapping_radius, partition_radius
from stockade.certificates.methods.partition import OverlappingEvidence
from stockade.core.errors import OptionError
from stockade.core.partitions import cell_offsets
from stockade.core.seeds import derive_seed
from stockade.defenses.partition import Partition
from stockade.workflows.certify.verify import certificate_problems
from tests.toys import WeightVictim

NO_VOTE = -1
VICTIM = WeightVictim({"good": 4.0, "bad": -4.0}, bias=0.1)
Classify = Callable[[tuple[str, ...]], int]


def classifier(seed: int, classes: int) -> Classify:
    """Votes that depend on everything a group shows, mostly for class 1."""
    rng = np.random.default_rng(seed)
    errors, cache = rng.choice([0.0, 0.1, 0.3]), dict[tuple[str, ...], int]()

    def vote(shown: tuple[str, ...]) -> int:
        if shown not in cache:
            draw = np.random.default_rng(derive_seed(seed, *shown))
            # A word "x" is one that no text has: the attacker's own, to which the classifier may do anything.
            wrong = draw.random() < (0.9 if "x" in shown else errors)
            cache[shown] = int(draw.integers(classes)) if wrong else 1
        return cache[shown]

    return vote


def position_votes(defense: Partition, words: Sequence[str], vote: Classify) -> list[int]:
    rows = defense.positions(len(words)).tolist()
    return [vote(tuple(word if stays else "_" for word, stays in zip(words, row, strict=True))) for row in rows]


def hash_votes(defense: Partition, words: Sequence[str], vote: Classify) -> list[int]:
    return [vote(group) if group else NO_VOTE for group in defense.hashed(list(words))]


def winner(votes: Sequence[int], classes: int) -> int:
    counts = [votes.count(label) for label in range(classes)]
    return counts.index(max(counts))


@pytest.mark.parametrize(("groups", "overlap", "words"), [(3, 2, 6), (4, 2, 9), (3, 3, 9), (5, 2, 10)])
@pytest.mark.parametrize("models", [25, pytest.param(250, marks=pytest.mark.slow)])
def test_no_substitution_within_the_radius_changes_the_winner(
    groups: int, overlap: int, words: int, models: int
) -> None:
    defense = Partition(groups=groups, overlap=overlap)
    offsets, text = defense.position_offsets(words), [f"w{at}" for at in range(words)]
    certified = 0
    for seed in range(models):
        classes = 2 + seed % 2
        vote = classifier(seed, classes)
        votes = position_votes(defense, text, vote)
        assert len(votes) == groups * overlap
        chosen = winner(votes, classes)
        radius = overlapping_radius(votes, offsets, chosen, classes)
        assert radius is not None
        for changed in range(1, min(radius, 2) + 1):
            certified += 1
            for places in combinations(range(words), changed):
                for new in product(("x", "y"), repeat=changed):
                    other = list(text)
                    for place, word in zip(places, new, strict=True):
                        other[place] = word
                    assert winner(position_votes(defense, other, vote), classes) == chosen
    assert certified > models / 4


@pytest.mark.parametrize("models", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_no_edits_within_the_radius_change_the_winner_by_hash(models: int) -> None:
    """Insertions and deletions cost 1; a replaced word 2, which is a deletion and an insertion."""
    defense, text, certified = Partition(by="hash", groups=6, overlap=2), [f"w{at}" for at in range(14)], 0
    for seed in range(models):
        classes = 2 + seed % 2
        vote = classifier(seed, classes)
        votes = hash_votes(defense, text, vote)
        chosen = winner(votes, classes)
        radius = overlapping_radius(votes, defense.hash_offsets, chosen, classes)
        if not radius:
            continue
        certified += 1
        longer = [[*text[:at], word, *text[at:]] for at in range(len(text) + 1) for word in ("x", "x2", "w3")]
        shorter = [[*text[:at], *text[at + 1 :]] for at in range(len(text))]
        if radius > 1:
            longer += [[*other[:at], "x", *other[at:]] for other in shorter for at in range(len(other) + 1)]
        assert all(winner(hash_votes(defense, other, vote), classes) == chosen for other in (*longer, *shorter))
    assert certified > models / 4


@given(hs.lists(hs.integers(0, 2), min_size=2, max_size=12), hs.integers(0, 2))
def test_groups_that_do_not_overlap_have_the_usual_radius(votes: list[int], chosen: int) -> None:
    counts = [votes.count(label) for label in range(3)]
    assert overlapping_radius(votes, (0,), chosen, 3) == partition_radius(counts, chosen)


def test_the_radius_by_hand() -> None:
    """Six groups of two cells, five of them for class 0: the lead is 4. A cell is in two groups, 4 in all if both vote
    for class 0 and 2 if one does not: one change is safe, two are not.
    """
    assert overlapping_radius([0, 0, 0, 0, 0, 1], (0, 1), 0, 2) == 1
    assert overlapping_radius([0, 0, 0, 0, 1, 1], (0, 1), 0, 2) == 0
    assert overlapping_radius([0, 0, 0, 0, 0, -1], (0, 1), 0, 2) == 1
    assert overlapping_radius([1, 1, 1, 1, 1, 0], (0, 1), 1, 2) == 0, "a tie goes to class 0"
    assert overlapping_radius([0, 0, 1, 1, 1, 1], (0, 1), 0, 2) is None


@pytest.mark.parametrize("words", [1, 2, 5, 11, 12, 13, 24, 25, 100])
def test_every_word_is_in_as_many_groups_as_any_other(words: int) -> None:
    defense = Partition(groups=4, overlap=3)
    keep, overlap = defense.positions(words), len(defense.position_offsets(words))
    assert overlap == max(1, min(3, words // 4))
    assert keep.sum(0).tolist() == [overlap] * words
    assert keep.any(1).all(), "a group without words could not vote"
    assert len(keep) == min(words, 4 * overlap)
    sizes = keep.sum(1)
    assert sizes.max() <= words / 4 + overlap


def test_groups_share_as_few_cells_as_can_be() -> None:
    offsets = cell_offsets(32, 4)
    differences = [(one - other) % 32 for one in offsets for other in offsets if one != other]
    assert len(set(differences)) == len(differences) == 12
    assert cell_offsets(4, 4) == (0, 1, 2, 3)
    assert cell_offsets(3, 9) == (0, 1, 2)


@pytest.mark.parametrize("by", ["position", "hash"])
def test_certificates_are_made_verified_and_forged_ones_found_out(by: str) -> None:
    text = "good " + " ".join(f"good{at} good" for at in range(12))
    robust = st.defend(VICTIM, "partition", by=by, groups=5, overlap=3)
    run = st.certify(robust, [(text, "positive")])
    (certificate,), (context,) = run.certificates, run.contexts.values()
    assert certificate.evidence is not None
    assert certificate.evidence["kind"] == "overlapping-partition"
    assert run.verify().holds
    counted = sum(vote >= 0 for vote in certificate.evidence["votes"])
    assert certificate.copies == counted
    if by == "position":
        assert (counted, certificate.radius) == (15, 2)
    evidence = OverlappingEvidence.from_description(certificate.evidence)
    for forged in (
        dataclasses.replace(evidence, votes=evidence.votes + (1,) * 15),
        dataclasses.replace(evidence, offsets=(0,)),
        dataclasses.replace(evidence, votes=(*evidence.votes[1:], evidence.votes[0], -1)),
    ):
        other = dataclasses.replace(
            certificate, evidence=forged.described(), radius=forged.radius(), copies=forged.copies
        )
        assert [*certificate_problems(other, context)]


def test_groups_for_no_word_are_refused() -> None:
    with pytest.raises(OptionError, match="overlap of partition is 0"):
        Partition(overlap=0)
    with pytest.raises(OptionError, match="for none of 2 classes"):
        OverlappingEvidence((0, 2), (0, 1), 2, 0)
