"""Which copies are drawn, and what is done with them: those that choose the class are never those that are counted."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stockade as st
from stockade.certificates.distributions import MaskingDistribution
from stockade.certificates.evidence import SampledEvidence, read_evidence
from stockade.certificates.masked_copies import MaskedCopies
from stockade.certificates.methods.deletion import ShortenedCopies
from stockade.certificates.methods.safer import SynonymCopies
from stockade.certificates.registry import CertificationInput, MethodResult
from stockade.certificates.resample import resample
from stockade.certificates.sampling import Rows, SampledMethod, Stream, votes_of
from stockade.core.text import Text
from stockade.defenses.registry import make_defense
from tests.certificates.kit import tampered
from tests.toys import WeightVictim

VICTIM = WeightVictim({"good": 4.0, "bad": -4.0, "dull": -2.0, "moving": 2.0}, bias=0.1)
LONG = "good fun and more good fun for all of us and many more good things " * 3


@dataclass
class Scripted:
    """Copies that vote as written: `shares` of class 1 in each stream, evenly spread."""

    shares: dict[str, float]
    population: int | None = None
    asked: list[tuple[str, int, int]] = field(default_factory=list)

    @property
    def distribution(self) -> MaskingDistribution:
        return MaskingDistribution(40, 4)

    async def score(self, stream: Stream, start: int, stop: int) -> Rows:
        self.asked.append((stream, start, stop))
        share = self.shares[stream]
        votes = [int((number + 1) * share) - int(number * share) for number in range(start, stop)]
        return np.eye(2)[votes]


def finding(copies: Scripted, **options: Any) -> MethodResult:
    method = SampledMethod(**options)
    return asyncio.run(method.sampled(copies, CertificationInput(Text.parse("a b"), None, 0), 2))


def test_the_copies_that_are_counted_are_fresh_ones() -> None:
    copies = Scripted({"selection": 1.0, "estimation": 0.9})
    found = finding(copies, scheme="spending", most=500)
    assert isinstance(found.evidence, SampledEvidence)
    assert copies.asked[0] == ("selection", 0, 50)
    assert {stream for stream, _, _ in copies.asked[1:]} == {"estimation"}
    assert [start for _, start, _ in copies.asked[1:]] == [0, *[stop for _, _, stop in copies.asked[1:-1]]]
    assert found.evidence.tally.counts[0] > 0  # type: ignore[union-attr]  # no copy of the selection votes for 0
    assert found.selection == (0, 50)


@pytest.mark.parametrize(("share", "drawn"), [(1.0, 50), (0.9, 50), (0.5, 1000), (0.53, 1000), (0.6, 112)])
def test_the_class_is_chosen_when_one_is_clearly_ahead(share: float, drawn: int) -> None:
    copies = Scripted({"selection": share, "estimation": share})
    assert finding(copies).drawn == drawn
    assert finding(Scripted(copies.shares), scheme="fixed").drawn == 1000


def test_few_copies_are_all_asked_once_and_more_are_drawn() -> None:
    few = Scripted({"estimation": 0.9}, population=150)
    found = finding(few)
    assert few.asked == [("estimation", 0, 150)]
    assert (found.drawn, found.selection) == (0, None)
    assert finding(Scripted({"selection": 0.9, "estimation": 0.9}, population=151)).drawn == 50


def test_a_copy_that_says_nothing_votes_for_nothing() -> None:
    assert votes_of(np.array([[0.2, 0.8], [0.0, 0.0], [0.6, 0.4]])).tolist() == [1, -1, 0]
    robust = st.defend(VICTIM, "deletion", kept_chance=0.05)
    (one,) = st.certify(robust, [("good good good", "positive")], "deletion:most=300,scheme=fixed").certificates
    tally = read_evidence(one.evidence or {}).tally  # type: ignore[attr-defined]
    assert tally.copies == 300
    assert 0 < sum(tally.counts) < 100  # one of three words stays with a chance of 14 %
    assert one.copies == 1000 + 300


def test_every_text_and_every_look_has_copies_of_its_own() -> None:
    rows = [(LONG, "positive"), (LONG, "positive")]
    first, second = st.certify(st.defend(VICTIM, "ranmask", rate=0.7), rows).certificates
    assert first.seed != second.seed
    words = tuple(LONG.split())
    masked = MaskedCopies(words, None, 8, "[MASK]", first.seed)
    assert masked.population is None
    assert masked.masks("estimation", 0, 50).tolist() != masked.masks("estimation", 50, 100).tolist()
    assert masked.masks("estimation", 0, 50).tolist() != masked.masks("selection", 0, 50).tolist()


def test_other_copies_differ_between_looks_and_streams_too() -> None:
    text = Text.parse("a good and moving film about the great big war of my dear old friends")
    shortened = ShortenedCopies(tuple(str(text).split()), None, 0.3, 0, 2)
    for copies in (shortened, SynonymCopies(text, make_defense("safer").defense, 0)):
        asked = [
            _texts(copies.score(*part))
            for part in (("estimation", 0, 20), ("estimation", 20, 40), ("selection", 0, 20))
        ]
        assert all(len(set(texts)) > 5 for texts in asked)
        assert asked[0] != asked[1]
        assert asked[0] != asked[2]
        assert asked[0] == _texts(copies.score("estimation", 0, 20))


def _texts(asking: Any) -> list[str]:
    """The texts that a coroutine asks about first."""
    request = asking.send(None)
    asking.close()
    return [str(text) for text in request.texts]


def test_deletion_counts_what_the_exact_law_gives() -> None:
    """Four words, each stays with chance 0.4: of the 16 copies those that say positive, by their chances."""
    words, chance = ("so", "good", "bad", "good"), 0.4
    exact = 0.0
    for stays in product((False, True), repeat=4):
        shown = " ".join(word for word, here in zip(words, stays, strict=True) if here)
        if shown and VICTIM.predict_proba([shown])[0, 1] > 0.5:
            exact += float(np.prod([chance if here else 1 - chance for here in stays]))
    robust = st.defend(VICTIM, "deletion", kept_chance=chance)
    run = st.certify(robust, [(" ".join(words), "positive")], "deletion:most=4000,scheme=fixed,choose=label")
    evidence: Any = read_evidence(run.certificates[0].evidence or {})
    assert evidence.distribution.kept_chance == chance
    assert evidence.distribution == ShortenedCopies(words, None, chance, 0, 2).distribution
    assert evidence.tally.counts[1] / 4000 == pytest.approx(exact, abs=0.03)


def test_safer_rests_on_the_overlaps_of_the_words_it_draws() -> None:
    safer = make_defense("safer").defense
    text = Text.parse("a good and moving film")
    sets = safer.word_sets(text)
    assert len(sets) >= 2
    copies = SynonymCopies(text, safer, 0)
    assert copies.distribution.overlaps == tuple(one.overlap for one in sets)
    assert copies.population is None
    (one,) = st.certify(st.defend(VICTIM, "safer"), [("qzxq zzqx", "positive")], "safer").certificates
    assert one.copies == 1  # without synonyms there is one copy, the text itself


def test_parts_of_one_word_are_replaced_together() -> None:
    """Whoever counts words by blanks changes one word where two with synonyms stand."""
    safer = make_defense("safer").defense
    apart, joined = Text.parse("a good great film"), Text.parse("a good/great film")
    overlaps = {apart.words[one.index]: one.overlap for one in safer.word_sets(apart)}
    assert {"good", "great", "film"} <= set(overlaps)
    distribution, single = SynonymCopies(joined, safer, 0).distribution, SynonymCopies(apart, safer, 0).distribution
    assert len(distribution.overlaps) == len(single.overlaps) - 1
    (both,) = set(distribution.overlaps) - set(single.overlaps)
    assert both == pytest.approx(overlaps["good"] * overlaps["great"], rel=1e-12)
    assert both <= overlaps["good"] * overlaps["great"]
    assert distribution.losses()[1] == max(distribution.losses()[1], single.losses()[1])


def test_as_many_words_stay_as_the_defense_keeps_at_least() -> None:
    robust = st.defend(VICTIM, "ranmask", rate=0.9, kept=3)
    (one,) = st.certify(robust, [("good fun for all of us", "positive")], "ranmask-gap").certificates
    assert read_evidence(one.evidence or {}).distribution == MaskingDistribution(6, 3)  # type: ignore[attr-defined]


def test_fresh_copies_of_another_model_refute_what_was_sampled() -> None:
    run = st.certify(st.defend(VICTIM, "ranmask", rate=0.7), [(LONG, "positive")], "ranmask-gap:most=500")
    assert run.certificates[0].status == "certified"
    assert resample(run, st.defend(VICTIM, "ranmask", rate=0.7)).refuted == ()
    other = st.defend(WeightVictim({"good": -4.0}), "ranmask", rate=0.7)
    (problem,) = resample(run, other).refuted
    assert "fresh copies show at most" in problem


def test_a_certificate_without_alpha_may_never_be_refuted() -> None:
    """Six sampled ones of which half may be wrong do not excuse one for which every copy was asked."""
    rows = [(f"{LONG} {number}", "positive") for number in range(6)] + [("a pivot film", "positive")]
    weights = {"good": 4.0, "pivot": 1.0}
    run = st.certify(
        st.defend(WeightVictim(weights, bias=0.1), "ranmask", rate=0.3), rows, "ranmask-gap:alpha=0.5,most=200"
    )
    other = st.defend(WeightVictim({**weights, "pivot": -1.0}, bias=0.1), "ranmask", rate=0.3)
    again = resample(run, other)
    assert (len(again.refuted), again.certain) == (1, 1)
    assert again.allowed == 3
    assert not again.holds


def test_fresh_copies_speak_of_insertions_too(tmp_path: Path) -> None:
    robust = st.defend(VICTIM, "deletion", kept_chance=0.1)
    rows = [("good " * 20 + "bad " * 10, "positive")]
    run = st.certify(robust, rows, "deletion:most=500", out=tmp_path / "run")
    assert resample(run, robust).refuted == ()
    (problem,) = resample(tampered(tmp_path / "run", lambda told: told.update(insertions=6)), robust).refuted
    assert "a number of 6 insertions needs more than" in problem
