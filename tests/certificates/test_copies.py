"""The random copies of a text: how they are distributed, and that the same seed always names the same ones."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import stockade as st
from stockade.certificates.evidence import SampledEvidence, read_evidence
from stockade.certificates.methods.deletion import DeletionDistribution, ShortenedCopies
from stockade.certificates.methods.ranmask import MaskedCopies, MaskingDistribution
from stockade.certificates.methods.safer import SynonymCopies
from stockade.certificates.sampling import Stream
from stockade.certificates.sequential import Tally
from stockade.core.text import Text
from stockade.defenses.registry import make_defense
from tests.toys import WeightVictim

VICTIM = WeightVictim({"good": 4.0, "bad": -4.0, "dull": -2.0, "moving": 2.0}, bias=0.1)
TEXT = Text.parse("a good and moving film about the great big war of my dear old friends")
Chunk = Callable[[Stream, int, int], list[Any]]


def masked(words: int, seed: int = 5) -> MaskedCopies:
    """Six of so many words are shown."""
    return MaskedCopies(words=tuple(map(str, range(words))), premise=None, kept=6, mask="[MASK]", seed=seed)


def shortened(seed: int = 5) -> ShortenedCopies:
    words = tuple(str(TEXT).split())
    return ShortenedCopies(
        words=words, premise=None, distribution=DeletionDistribution(len(words), 0.3), seed=seed, classes=2
    )


def requested(search: Any) -> list[Any]:
    """What a coroutine asks the model about first: one item for each copy."""
    request = search.send(None)
    search.close()
    return request.keep.tolist() if hasattr(request, "keep") else [str(text) for text in request.texts]


def synonyms(seed: int = 5) -> SynonymCopies:
    return SynonymCopies(TEXT, make_defense("safer").defense, seed)


INDEPENDENT: dict[str, Callable[[int], Chunk]] = {
    "masked": lambda seed: lambda *chunk: requested(masked(60, seed).score(*chunk)),
    "masked groups": lambda seed: lambda *chunk: requested(masked(60, seed).score_groups(*chunk)),
    "shortened": lambda seed: lambda *chunk: requested(shortened(seed).score(*chunk)),
    "shortened groups": lambda seed: lambda *chunk: requested(shortened(seed).score_groups(*chunk)),
    "synonyms": lambda seed: lambda *chunk: requested(synonyms(seed).score(*chunk)),
}


@pytest.mark.parametrize("kind", INDEPENDENT)
def test_independent_copies_are_a_function_of_the_seed_the_stream_and_the_start_of_a_chunk(kind: str) -> None:
    """A resumed run draws the chunks of an unfinished text from the first one on: it relies on nothing else."""
    chunk = INDEPENDENT[kind](5)
    first = chunk("estimation", 0, 30)
    assert chunk("estimation", 0, 30) == first == INDEPENDENT[kind](5)("estimation", 0, 30)
    assert INDEPENDENT[kind](6)("estimation", 0, 30) != first
    assert chunk("selection", 0, 30) != first
    assert chunk("estimation", 30, 60) != first
    longer = chunk("estimation", 0, 45)
    assert len(longer) > len(first)
    assert longer[: len(first)] == first  # chunks that begin alike agree as far as both go
    # ... but copies have no numbers of their own: another cut into chunks gives other copies
    assert longer[-len(first) // 2 :] != chunk("estimation", 30, 45)[-len(first) // 2 :]


def test_copies_without_replacement_have_numbers_of_their_own() -> None:
    """20 words of which 6 are shown: 38,760 copies, each once in a stream, however the stream is cut."""
    copies = masked(20)
    assert copies.population == 38_760
    whole = copies.masks("estimation", 0, 75)
    assert np.array_equal(
        np.concatenate([copies.masks("estimation", 0, 50), copies.masks("estimation", 50, 75)]), whole
    )
    assert not np.array_equal(copies.masks("selection", 0, 75), whole)
    every = copies.masks("estimation", 0, 38_760)
    assert len(np.unique(every, axis=0)) == 38_760
    assert (every.sum(1) == 6).all()
    assert copies.independent().population is None
    assert masked(60).population is None  # 50,063,860 copies: too many for it to matter


def test_every_text_of_a_run_has_copies_of_its_own() -> None:
    rows = [(str(TEXT), "positive"), (str(TEXT), "positive")]
    first, second = st.certify(st.defend(VICTIM, "ranmask", rate=0.7), rows).certificates
    assert first.seed != second.seed


def test_copies_vary() -> None:
    for copies in (shortened(), synonyms()):
        texts = requested(copies.score("estimation", 0, 20))
        assert len(set(texts)) > 5


def test_deletion_counts_what_the_exact_distribution_gives() -> None:
    """Four words, each stays with chance 0.4: of the 16 copies those that say positive, by their probabilities."""
    words, chance = ("so", "good", "bad", "good"), 0.4
    exact = 0.0
    for stays in product((False, True), repeat=4):
        shown = " ".join(word for word, here in zip(words, stays, strict=True) if here)
        if shown and VICTIM.predict_proba([shown])[0, 1] > 0.5:
            exact += float(np.prod([chance if here else 1 - chance for here in stays]))
    robust = st.defend(VICTIM, "deletion", kept_chance=chance)
    run = st.certify(robust, [(" ".join(words), "positive")], "deletion:most=4000,scheme=fixed,choose=label")
    evidence = read_evidence(run.certificates[0].evidence or {})
    assert isinstance(evidence, SampledEvidence)
    assert isinstance(evidence.tally, Tally)
    assert evidence.distribution == DeletionDistribution(4, chance)
    assert evidence.tally.counts[1] / 4000 == pytest.approx(exact, abs=0.03)


def test_safer_rests_on_the_overlaps_of_the_words_it_draws() -> None:
    safer = make_defense("safer").defense
    text = Text.parse("a good and moving film")
    sets = safer.word_sets(text)
    assert len(sets) >= 2
    copies = SynonymCopies(text, safer, 0)
    assert copies.distribution.overlaps == tuple(word_set.overlap for word_set in sets)
    assert copies.population is None
    (certificate,) = st.certify(st.defend(VICTIM, "safer"), [("qzxq zzqx", "positive")], "safer").certificates
    assert certificate.copies == 1  # without synonyms there is one copy, the text itself


def test_parts_of_one_word_are_replaced_together() -> None:
    """Whoever counts words by blanks changes one word where two with synonyms stand."""
    safer = make_defense("safer").defense
    apart, joined = Text.parse("a good great film"), Text.parse("a good/great film")
    overlaps = {apart.words[word_set.index]: word_set.overlap for word_set in safer.word_sets(apart)}
    assert {"good", "great", "film"} <= set(overlaps)
    together, single = SynonymCopies(joined, safer, 0).distribution, SynonymCopies(apart, safer, 0).distribution
    assert len(together.overlaps) == len(single.overlaps) - 1
    (both,) = set(together.overlaps) - set(single.overlaps)
    assert both == pytest.approx(overlaps["good"] * overlaps["great"], rel=1e-12)
    assert both <= overlaps["good"] * overlaps["great"]
    assert together.losses()[1] > single.losses()[1]


def test_as_many_words_stay_as_the_defense_keeps_at_least() -> None:
    robust = st.defend(VICTIM, "ranmask", rate=0.9, kept=3)
    (certificate,) = st.certify(robust, [("good fun for all of us", "positive")], "ranmask-gap").certificates
    evidence = read_evidence(certificate.evidence or {})
    assert isinstance(evidence, SampledEvidence)
    assert evidence.distribution == MaskingDistribution(6, 3)
