"""Random deletion whose rate depends on the length: the bound against every edited text there is, on tiny texts."""

from __future__ import annotations

from functools import cache
from itertools import compress, product

import numpy as np
import pytest

import stockade as st
from stockade.certificates.adaptive_deletion import adaptive_insertion_leads, adaptive_losses, edit_loss
from stockade.certificates.bounds import deletion_losses, insertion_leads
from stockade.certificates.methods.deletion import DeletionDistribution
from stockade.core.errors import OptionError
from stockade.core.partitions import deletion_chance
from tests.certificates.kit import skewed
from tests.toys import WeightVictim

Words = tuple[int, ...]
CLASSES, VOCABULARY = 3, 2
RATES = ((0.6, 0.7), (0.9, 0.5), (0.25, 0.9), (0.5, 1.6))
"""Pairs of kept_chance and mean_kept, most of them with another chance at every length."""


@cache
def shares_of(text: Words, rate: tuple[float, float], table: int) -> tuple[float, ...]:
    """The exact smoothed classifier: every choice of words, with its probability. A copy without words has no vote."""
    chance, shares = deletion_chance(len(text), *rate), [0.0] * CLASSES
    for keep in product((False, True), repeat=len(text)):
        copy = tuple(compress(text, keep))
        if copy:
            shares[votes(table)[copy]] += chance ** sum(keep) * (1 - chance) ** (len(text) - sum(keep))
    return tuple(shares)


@cache
def votes(table: int) -> dict[Words, int]:
    """A classifier: the class of every text of up to seven words, mostly class 0."""
    rng = np.random.default_rng(table)
    texts = [text for length in range(1, 8) for text in product(range(VOCABULARY), repeat=length)]
    # Errors depend on the length too, because a rate that changes with it shifts votes between lengths.
    errors = rng.random(8) * rng.choice([0.05, 0.3, 0.8])
    drawn = [int(skewed(rng, 1, CLASSES, errors[len(text)])[0]) for text in texts]
    return dict(zip(texts, drawn, strict=True))


@cache
def edited(text: Words) -> frozenset[Words]:
    """All texts within one edit."""
    replaced = {(*text[:at], word, *text[at + 1 :]) for at in range(len(text)) for word in range(VOCABULARY)}
    inserted = {(*text[:at], word, *text[at:]) for at in range(len(text) + 1) for word in range(VOCABULARY)}
    deleted = {(*text[:at], *text[at + 1 :]) for at in range(len(text))}
    return frozenset(replaced | inserted | deleted)


@cache
def within(text: Words, edits: int) -> frozenset[Words]:
    """All texts within so many edits."""
    return (
        frozenset({text}).union(*(edited(other) for other in within(text, edits - 1))) if edits else frozenset({text})
    )


@cache
def longer(text: Words, insertions: int) -> frozenset[Words]:
    """All texts with so many inserted words."""
    if not insertions:
        return frozenset({text})
    return frozenset(other for base in longer(text, insertions - 1) for other in edited(base) if len(other) > len(base))


def leader(shares: tuple[float, ...]) -> tuple[int, float]:
    """The leading class and its lead."""
    chosen = int(np.argmax(shares))
    return chosen, shares[chosen] - max(share for label, share in enumerate(shares) if label != chosen)


@pytest.mark.parametrize("tables", [6, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("rate", RATES)
def test_no_edit_within_the_radius_changes_the_class(rate: tuple[float, float], tables: int) -> None:
    """Exact leads, every text of four and five words, every edited text: the class never changes."""
    certified = 0
    for table in range(tables):
        for text in (text for length in (4, 5) for text in product(range(VOCABULARY), repeat=length)):
            chosen, lead = leader(shares_of(text, rate, table))
            for edits, loss in enumerate(adaptive_losses(len(text), *rate)[:3]):
                if edits and lead > 2 * loss:
                    certified += 1
                    assert all(leader(shares_of(other, rate, table))[0] == chosen for other in within(text, edits))
            for more, needed in enumerate(adaptive_insertion_leads(len(text), *rate, 2)):
                if more and lead > needed:
                    assert all(leader(shares_of(other, rate, table))[0] == chosen for other in longer(text, more))
    assert certified > 10 * tables, "a test in which nothing is certified shows nothing"


def test_a_bound_that_ignores_the_change_of_the_rate_would_be_wrong() -> None:
    """Seven of eight words are deleted, and the chance rises from 1/16 to a half: for a share between the two bounds
    the one for a constant chance certifies, and the classifier of the test below changes its class.
    """
    constant = deletion_losses(0.5 / 8, 7)[7]
    assert edit_loss(8, 7, 0, lambda words: deletion_chance(words, 0.9, 0.5)) > constant + 0.09


@pytest.mark.parametrize(
    ("words", "lost", "gained"), [(5, 1, 2), (5, 2, 1), (6, 0, 2), (8, 7, 0), (5, 1, 1), (4, 4, 1)]
)
@pytest.mark.parametrize("rate", RATES)
def test_the_bound_is_reached(rate: tuple[float, float], words: int, lost: int, gained: int) -> None:
    """The worst classifier of the proof, on copies counted one by one: c has exactly half of the copies of x' if it has
    exactly the share of the bound in those of x.
    """

    def chance(length: int) -> float:
        return deletion_chance(length, *rate)

    loss = edit_loss(words, lost, gained, chance)
    if loss >= 0.5:
        return
    before, after, common = chance(words), chance(words + gained - lost), words - lost

    def probabilities(length: int, stays: float) -> dict[tuple[bool, ...], float]:
        choices = product((False, True), repeat=length)
        return {keep: stays ** sum(keep) * (1 - stays) ** (length - sum(keep)) for keep in choices}

    drawn, drawn_after = probabilities(words, before), probabilities(words + gained - lost, after)
    # The first `common` words are those that both texts have; f is the vote of copies that show none of the others.
    order = sorted(product((False, True), repeat=common), key=sum, reverse=after <= before)
    left, share_after = loss + 0.5, 0.0
    for keep, probability in drawn.items():  # copies that show words of x alone vote for c
        left -= probability if any(keep[common:]) else 0.0
    for keep in order:
        inside = drawn[(*keep, *[False] * lost)]
        part = min(1.0, max(0.0, left / inside))
        left -= part * inside
        share_after += part * drawn_after[(*keep, *[False] * gained)]
    assert share_after == pytest.approx(0.5, abs=1e-6)


def test_the_same_chance_at_every_length_gives_the_usual_bound() -> None:
    """A mean that no text reaches."""
    losses, usual = adaptive_losses(30, 0.2, 1000.0), deletion_losses(0.2, 30)
    assert losses == pytest.approx([loss for loss in usual if loss < 0.5], abs=1e-8)
    assert all(loss >= other for loss, other in zip(losses, usual, strict=False))
    leads = adaptive_insertion_leads(30, 0.2, 1000.0, 50)
    assert leads == pytest.approx([float(lead) for lead in insertion_leads(0.2, 50) if lead < 1], abs=1e-8)


def test_long_texts_stand_more_edits() -> None:
    radii = [len(adaptive_losses(words, 0.3, 10.0)) - 1 for words in (10, 30, 60, 120, 240)]
    assert radii == sorted(radii)
    assert radii[-1] >= 10 > radii[0]
    assert len(deletion_losses(0.3, 240)) > 0
    assert sum(loss < 0.5 for loss in deletion_losses(0.3, 240)) - 1 == radii[0]


def test_certificates_of_a_model_with_an_adaptive_rate_hold_together() -> None:
    """From the defense to verify; the chance is that of the text's length, and forged evidence is found out."""
    robust = st.defend(WeightVictim({"good": 4.0}, bias=-0.1), "deletion", kept_chance=0.3, mean_kept=4.0)
    run = st.certify(robust, [("good " * 40 + "so and so " * 5, "positive")])
    (certificate,) = run.certificates
    assert certificate.evidence is not None
    assert certificate.evidence["distribution"] == {
        "kind": "deletion",
        "words": 55,
        "kept_chance": 0.3,
        "mean_kept": 4.0,
    }
    assert certificate.radius is not None
    assert certificate.radius >= 2
    assert certificate.insertions is not None
    assert run.verify().holds
    assert DeletionDistribution(55, 0.3, 4.0).group_size == 13
    recorded = DeletionDistribution(55, 0.3, 5.0)
    difference = DeletionDistribution(55, 0.3, 4.0).difference(recorded)
    assert difference.endswith("(0.3 with a mean of 5.0 words), not 0.3 with a mean of 4.0 words")


def test_a_mean_of_no_words_is_refused() -> None:
    with pytest.raises(OptionError, match="mean_kept of deletion is 0"):
        st.defend(WeightVictim({}), "deletion", mean_kept=0)
