"""The numbers that a detector reads, one by one, and what it is fitted on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from stockade.core.masks import draw_masks
from stockade.core.text import Text, TextInput
from stockade.defenses.detector import fit_detector
from stockade.defenses.detector_features import FEATURES, FREQUENCY, MASKING, Evidence, EvidenceReader
from stockade.engine.composite import make_scoring
from stockade.engine.language import FillingService
from stockade.engine.scheduler import Scheduler, Search
from tests.defenses.test_route import ATTACKED, CLEAN, VICTIM, WEIGHTS
from tests.toys import WeightVictim


class Lengths:
    """A masked LM that expects a word the less the longer it is."""

    name = "toy"

    def surprisals(self, texts: Sequence[str], spans: Sequence[Sequence[tuple[int, int]]]) -> list[list[float]]:
        return [[float(end - start) for start, end in places] for places in spans]


def test_the_numbers_of_a_text_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of eleven words the two longest are the upper tenth."""
    monkeypatch.setattr(EvidenceReader, "frequent", lambda self, text: Text.parse("bad poor film"))
    string = "good fine trick aa bb cc dd ee longest longer"
    words = [*string.split(), "nice"]
    reader = EvidenceReader(features=FEATURES, rate=0.4, kept=1, copies=50, rare=1, counts={})
    scheduler = Scheduler.for_classifier(make_scoring(VICTIM), filling=FillingService(Lengths))  # type: ignore[arg-type]
    text = Text.parse(" ".join(words))
    (ended,) = scheduler.run([Search(lambda: reader.read(text, np.random.default_rng(3)))])
    assert isinstance(ended.result, Evidence)
    numbers = dict(zip(FEATURES, ended.result.numbers, strict=True))

    plain = VICTIM.predict_proba([str(text)])[0]
    label = int(plain.argmax())
    masks = draw_masks(np.random.default_rng(3), 11, 7, 50)
    copies = [" ".join(w if stays else "[MASK]" for w, stays in zip(words, row, strict=True)) for row in masks.tolist()]
    rows = VICTIM.predict_proba(copies)
    others = sum(int(row.argmax()) != label for row in rows)
    assert 0 < others < 25
    mean = [sum(row[label] for row in rows) / 50 for label in (0, 1)]
    assert numbers["disagreement"] == pytest.approx(others / 50)
    assert numbers["fall"] == pytest.approx(plain[label] - mean[label])
    assert numbers["masked-margin"] == pytest.approx(abs(mean[1] - mean[0]))
    lengths = [len(word) for word in words]
    assert numbers["surprise-mean"] == pytest.approx(sum(lengths) / 11)
    assert numbers["surprise-max"] == 7
    assert numbers["surprise-top"] == (7 + 6) / 2
    frequent = VICTIM.predict_proba(["bad poor film"])[0]
    assert numbers["frequency-shift"] == pytest.approx(plain[label] - frequent[label])


def test_the_shift_is_that_of_the_class_of_the_text_whatever_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EvidenceReader, "frequent", lambda self, text: Text.parse("bad poor film"))
    reader = EvidenceReader(features=FREQUENCY, rate=0.4, kept=1, copies=5, rare=1, counts={})
    (ended,) = Scheduler.for_classifier(make_scoring(VICTIM)).run(
        [Search(lambda: reader.read(Text.parse("good film"), np.random.default_rng(0)))]
    )
    assert isinstance(ended.result, Evidence)
    plain, frequent = VICTIM.predict_proba(["good film", "bad poor film"])
    assert ended.result.numbers == pytest.approx((plain[1] - frequent[1],))
    assert plain.argmax() != frequent.argmax()


class Asked(WeightVictim):
    """Tells the copies that it was asked about."""

    def copies(self, text: Text, kept: int) -> set[TextInput]:
        reader = EvidenceReader(features=MASKING, rate=0.9, kept=kept, copies=40, rare=1, counts={})
        list(
            Scheduler.for_classifier(make_scoring(self)).run(
                [Search(lambda: reader.read(text, np.random.default_rng(0)))]
            )
        )
        return set(self.asked) - {text.input}


def test_copies_keep_their_premise_and_the_words_that_must_stay() -> None:
    pair = Text.parse("good film show", "a premise")
    two = {"good film [MASK]", "good [MASK] show", "[MASK] film show"}
    assert Asked(WEIGHTS).copies(pair, kept=2) == {("a premise", copy) for copy in two}
    single = {"good [MASK] [MASK]", "[MASK] film [MASK]", "[MASK] [MASK] show"}
    assert Asked(WEIGHTS).copies(pair, kept=1) == {("a premise", copy) for copy in single}


def test_a_word_at_the_beginning_of_a_text_is_as_frequent_as_elsewhere() -> None:
    reader = EvidenceReader(features=FREQUENCY, rate=0.3, kept=1, copies=5, rare=1, counts={"movie": 9, "film": 3})
    assert str(reader.frequent(Text.parse("Film flick"))) == "Film movie"


def test_the_detector_is_fitted_as_if_each_clean_text_were_new() -> None:
    """Without itself either word is rare and becomes the other; a word without synonyms stays."""
    victim = WeightVictim({"flick": 3.0, "movie": -2.0})
    fitted = fit_detector(victim, ["flick", "movie"], ["qqq"], features=FREQUENCY, rare=0, copies=2)
    shift = 1 / (1 + math.exp(-3)) - 1 / (1 + math.exp(2))
    assert fitted.logistic.means == pytest.approx((2 * shift / 3,))


def test_the_order_of_the_texts_does_not_matter() -> None:
    options: dict[str, Any] = {"features": MASKING, "rate": 0.4, "copies": 7}
    first, other = (fit_detector(VICTIM, clean, ATTACKED, **options) for clean in (CLEAN, CLEAN[::-1]))
    assert first.logistic.means == pytest.approx(other.logistic.means)
    assert first.threshold == pytest.approx(other.threshold)
