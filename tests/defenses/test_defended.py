"""A model inside defenses as a classifier: what it is, what is recorded of it, and what an answer may ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from stockade.core.example import Scores
from stockade.core.protocols import Classifier
from stockade.core.text import Text, TextInput
from stockade.defenses.chain import wrap
from stockade.defenses.defended import Defended, defenses_of, probabilities_of
from stockade.defenses.ranmask import RanMask
from stockade.defenses.registry import make_defense
from stockade.engine.requests import Embed, Surprisal
from stockade.models.language import LanguageModels
from tests.toys import BagEncoder, WeightVictim


@dataclass
class Marked(WeightVictim):
    """A victim that says what it is."""

    mark: str = "m"

    def fingerprint(self) -> str:
        return self.mark


@dataclass(frozen=True, slots=True)
class Asking:
    """Answers with what the language models say: how like "good" a text is, over how unexpected its first word is."""

    randomised: bool = False

    def check(self, inner: Classifier) -> None:
        pass

    async def answer(self, text: Text, rng: np.random.Generator) -> Scores:
        vectors = await Embed([str(text), "good"])
        (surprise, *_) = await Surprisal(text.words)
        share = float(vectors[0] @ vectors[1]) / surprise
        return Scores((1 - share, share))


class ToyMaskedLM:
    """Every word is as unexpected as it is long."""

    name = "toy"

    def surprisals(self, texts: list[str], spans: list[list[tuple[int, int]]]) -> list[list[float]]:
        return [[float(end - start) for start, end in places] for places in spans]


@dataclass(frozen=True, slots=True)
class ToyLanguage(LanguageModels):
    def make_masked_lm(self) -> Any:
        return ToyMaskedLM()

    def make_encoder(self) -> Any:
        return BagEncoder()


def test_the_fingerprint_is_of_all_that_decides_an_answer() -> None:
    def fingerprint(inside: str = "m", name: str = "ranmask", rate: float = 0.3, seed: int = 0) -> str:
        return Defended(name=name, defense=RanMask(rate=rate), inner=Marked({}, mark=inside), seed=seed).fingerprint()

    assert fingerprint() == fingerprint()
    different = {
        fingerprint(),
        fingerprint(inside="n"),
        fingerprint(name="other"),
        fingerprint(rate=0.4),
        fingerprint(seed=1),
    }
    assert len(different) == 5


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("draws", ["fixed", "fresh"])
def test_it_is_deterministic_if_nothing_is_random(inside: bool, draws: Any) -> None:
    model = Defended(name="ranmask", defense=RanMask(draws=draws), inner=WeightVictim({}, deterministic=inside))
    assert model.deterministic == (inside and draws == "fixed")


def test_defenses_are_told_from_the_outside_in() -> None:
    """As they were named: the first is asked first."""
    victim = WeightVictim({})
    model = wrap(victim, [make_defense("safer:copies=3"), make_defense("ranmask:copies=5")])
    assert isinstance(model, Defended)
    assert isinstance(model.inner, Defended)
    assert (model.name, model.inner.name) == ("safer", "ranmask")
    assert model.inner.inner is victim
    recorded = [(defense["name"], defense["options"]["copies"]) for defense in defenses_of(model)]
    assert recorded == [("safer", 3), ("ranmask", 5)]


def test_an_answer_may_ask_the_language_models() -> None:
    model = Defended(name="asking", defense=Asking(), inner=WeightVictim({}), language=ToyLanguage())
    assert model.predict_proba(["good", "dreadful"]).tolist() == [[0.75, 0.25], [1.0, 0.0]]


def test_all_defenses_ask_the_language_models_that_were_named() -> None:
    language = ToyLanguage()
    model = wrap(WeightVictim({}), [make_defense("safer"), make_defense("ranmask")], language=language)
    assert isinstance(model, Defended)
    assert isinstance(model.inner, Defended)
    assert model.language is model.inner.language is language


def test_random_choices_depend_on_the_text_and_the_purpose_alone() -> None:
    model = Defended(
        name="ranmask",
        defense=RanMask(rate=0.5, copies=9),
        inner=WeightVictim({"good": 3.0, "bad": -2.0, "dull": -1.0}),
    )
    texts: list[TextInput] = ["a good bad dull film", ("a premise", "a good bad dull film"), "good or bad"]
    together, language = model.predict_proba(texts), LanguageModels()
    for text, row in zip(texts, together, strict=True):
        assert (probabilities_of(model, [text], language) == row).all()
    assert (probabilities_of(model, texts, language, "another") != together).any()
