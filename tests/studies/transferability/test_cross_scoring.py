"""Texts under models that were not attacked: each once, with what went wrong."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from stockade.core.errors import ModelError
from stockade.core.protocols import Probabilities
from stockade.core.text import Text, TextInput
from stockade.experiment.progress import Runtime
from stockade.studies.transferability.cross_scoring import PREDICTIONS, LabelledText, Predictions, TextScorer, predict
from tests.toys import WeightVictim


def labelled(*texts: tuple[str, int]) -> list[LabelledText]:
    return [LabelledText(str(number), Text.parse(text), label) for number, (text, label) in enumerate(texts)]


class Picky(WeightVictim):
    """Raises on texts with a word that it cannot stand."""

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        if any("ugly" in str(item) for item in inputs):
            raise RuntimeError("no such word")
        return super().predict_proba(inputs)


def test_predictions_and_the_probability_of_the_true_class() -> None:
    victim = WeightVictim({"good": 2, "bad": -2})
    predictions = predict(TextScorer(victim, Runtime()), labelled(("good", 1), ("bad", 1), ("good", 0)), "clean")
    assert (predictions.labels, predictions.predicted) == ((1, 1, 0), (1, 0, 1))
    assert predictions.gold == (0.880797, 0.119203, 0.119203)
    assert predictions.wrong == {"0": False, "1": True, "2": True}
    assert predictions.is_complete
    assert PREDICTIONS.read(PREDICTIONS.encode(predictions)) == predictions


def test_a_text_is_computed_once_however_many_sources_found_it() -> None:
    victim = WeightVictim({"good": 2})
    scorer = TextScorer(victim, Runtime())
    predict(scorer, labelled(("good", 1), ("fine", 1)), "first source")
    predict(scorer, labelled(("fine", 1), ("good", 1)), "second source")
    assert sorted(map(str, victim.asked)) == ["fine", "good"]
    assert scorer.effort.model_rows == 2


def test_a_text_without_an_answer_costs_no_other() -> None:
    predictions = predict(TextScorer(Picky({"good": 2}), Runtime()), labelled(("good", 1), ("ugly", 1)), "clean")
    assert predictions.predicted == (1, None)
    assert predictions.wrong == {"0": False}
    assert not predictions.is_complete
    assert predictions.reason == "the model raised RuntimeError: no such word"
    assert PREDICTIONS.read(PREDICTIONS.encode(predictions)) == predictions


def test_a_model_without_any_answer_is_an_error_and_no_texts_are_none() -> None:
    scorer = TextScorer(Picky({}), Runtime())
    with pytest.raises(ModelError, match="the model raised RuntimeError: no such word"):
        predict(scorer, labelled(("ugly", 1), ("so ugly", 0)), "clean")
    assert predict(scorer, [], "clean") == Predictions((), (), (), ())
