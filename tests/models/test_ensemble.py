"""Ensembles: mean logits by hand, members that disagree, references, and what the engine sees of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

import stockade as st
from stockade.core.errors import ModelError, OptionError
from stockade.core.protocols import (
    Classifier,
    EncodingClassifier,
    LogitClassifier,
    MaskingClassifier,
    Probabilities,
    WindowedClassifier,
)
from stockade.core.text import Text, TextInput
from stockade.defenses.chain import save_defenses
from stockade.defenses.registry import make_defense
from stockade.engine.requests import Score
from stockade.engine.scoring import ScoringService
from stockade.models.adapters import load_model
from stockade.models.answers import softmax
from stockade.models.calibration import HOTTEST, calibrate_temperatures
from stockade.models.ensemble import combine, ensemble
from stockade.models.ensemble_reference import EnsembleReference, single_models
from stockade.models.huggingface import HuggingFaceClassifier
from stockade.models.mean_logits import predict_logits
from tests.toys import WeightVictim, words_of

CNN, LSTM = "builtin:sentiment-cnn", "builtin:sentiment-lstm"


@dataclass(frozen=True)
class Letters:
    """A tokenised text of a victim that reads only some of its words."""

    words: tuple[str, ...]

    @property
    def key(self) -> tuple[str, ...]:
        return self.words

    def __len__(self) -> int:
        return max(1, len(self.words))


@dataclass
class OpenLogits:
    """Two classes; the logits of a text are (0, the sum of the weights of its words) plus a constant. Reads only words
    that have a weight, so texts that differ in others are the same to it. Remembers what it computed.
    """

    weights: dict[str, float]
    constant: float = 0.0
    labels: tuple[str, ...] = ("negative", "positive")
    deterministic: bool = True
    computed: list[tuple[str, ...]] = field(default_factory=list)

    def encode(self, inputs: Sequence[TextInput]) -> list[Letters]:
        return [Letters(tuple(word for word in words_of(item) if word in self.weights)) for item in inputs]

    def logits_encoded(self, batch: Sequence[Letters]) -> Probabilities:
        self.computed += [text.words for text in batch]
        sums = [sum(self.weights[word] for word in text.words) for text in batch]
        return np.array([[0.0, odds] for odds in sums]).reshape(-1, 2) + self.constant

    def predict_encoded(self, batch: Sequence[Letters]) -> Probabilities:
        return softmax(self.logits_encoded(batch))

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        return self.predict_encoded(self.encode(inputs))

    def fingerprint(self) -> str:
        return f"{sorted(self.weights.items())}"


def positive(model: Classifier, text: str) -> float:
    return float(model.predict_proba([text])[0, model.labels.index("positive")])


def sigmoid(odds: float) -> float:
    return 1 / (1 + math.exp(-odds))


def test_the_mean_of_logits_by_hand() -> None:
    first, second = OpenLogits({"good": 3.0}), OpenLogits({"good": 1.0, "film": -2.0}, constant=5.0)
    both = ensemble([first, second])
    assert positive(both, "a good film") == pytest.approx(sigmoid((3.0 + 1.0 - 2.0) / 2))
    assert positive(both, "nothing") == pytest.approx(0.5)


def test_logarithms_of_probabilities_stand_in_for_logits_that_are_not_shown() -> None:
    shown, hidden = OpenLogits({"good": 3.0}, constant=7.0), WeightVictim({"good": 1.0, "film": -2.0})
    both = ensemble([shown, hidden])
    assert positive(both, "a good film") == pytest.approx(sigmoid((3.0 - 1.0) / 2))
    assert positive(ensemble([hidden, hidden]), "a good film") == pytest.approx(sigmoid(-1.0))


def test_a_certain_member_outweighs_others_but_not_without_limit() -> None:
    def certain(texts: list[str]) -> list[list[float]]:
        return [[1.0, 0.0] for _ in texts]

    other = OpenLogits({"good": 20.0, "great": 40.0}, labels=("0", "1"))
    both = ensemble([certain, other])
    assert both.predict_proba(["good"])[0].argmax() == 0
    assert both.predict_proba(["great"])[0].argmax() == 1  # 40 against ln 1e12 = 27.6


def test_temperatures_divide_the_logits_of_each_member() -> None:
    first, second = OpenLogits({"good": 3.0}), WeightVictim({"good": -1.0})
    both = ensemble([first, second], [1.5, 0.5])
    assert positive(both, "good") == pytest.approx(sigmoid((3.0 / 1.5 - 1.0 / 0.5) / 2))
    for wrong, problem in (
        ([1.0], "An ensemble of 2 has 1 temperatures, expected one for each member"),
        ([1.0, 0.0], "A temperature of an ensemble is 0, expected a number above 0"),
        ([1.0, math.inf], "is inf, expected a number above 0"),
        ([1.0, math.nan], "is nan, expected a number above 0"),
    ):
        with pytest.raises(OptionError, match=problem):
            ensemble([first, second], wrong)


def test_members_that_have_their_classes_in_another_order() -> None:
    turned = OpenLogits({"good": -4.0}, labels=("positive", "negative"))  # "good" speaks for its first class
    both = ensemble([OpenLogits({"good": 1.0}), turned])
    assert both.labels == ("negative", "positive")
    assert positive(both, "good") == pytest.approx(sigmoid((1.0 + 4.0) / 2))
    assert ensemble([turned, OpenLogits({"good": 1.0})]).labels == ("positive", "negative")


@pytest.mark.parametrize("labels", [("bad", "good"), ("negative", "neutral", "positive"), ("0", "1")])
def test_members_with_other_classes_are_refused_with_both_names(labels: tuple[str, ...]) -> None:
    with pytest.raises(
        ModelError,
        match=rf"WeightVictim has negative, positive and OpenLogits has {', '.join(labels)}: name the classes alike",
    ) as raised:
        ensemble([WeightVictim({}), OpenLogits({}, labels=labels)])
    assert "\n" not in str(raised.value)


def test_labels_name_the_classes_of_all_members() -> None:
    def one(texts: list[str]) -> list[float]:
        return [0.8] * len(texts)

    def other(texts: list[str]) -> list[float]:
        return [0.2] * len(texts)

    both = ensemble([one, other], labels=["no", "yes"])
    assert both.labels == ("no", "yes")
    assert both.predict_proba(["a"])[0] == pytest.approx([0.5, 0.5])


def test_an_ensemble_without_members_and_one_of_a_single_member() -> None:
    with pytest.raises(ModelError, match="An ensemble has no member"):
        ensemble([])
    alone = OpenLogits({"good": 3.0})
    assert positive(ensemble([alone]), "good") == pytest.approx(positive(alone, "good"))
    assert positive(ensemble([alone, alone]), "good") == pytest.approx(positive(alone, "good"))


def test_an_ensemble_inside_an_ensemble_counts_as_one_member() -> None:
    inner = ensemble([OpenLogits({"good": 1.0}), OpenLogits({"good": 3.0})])
    outer = ensemble([inner, OpenLogits({"good": 4.0})])
    assert positive(outer, "good") == pytest.approx(sigmoid((2.0 + 4.0) / 2))


def test_a_member_inside_a_defense_is_refused() -> None:
    defended = st.defend(WeightVictim({}), "ranmask")
    with pytest.raises(ModelError, match="Defended is a model inside a defense, and an ensemble averages bare models"):
        ensemble([WeightVictim({}), defended])


def test_it_is_as_able_as_its_members_are() -> None:
    shown, hidden = OpenLogits({}), WeightVictim({})
    assert not isinstance(ensemble([hidden, hidden]), EncodingClassifier)
    mixed = ensemble([shown, hidden])
    assert isinstance(mixed, LogitClassifier)
    assert not isinstance(mixed, MaskingClassifier)
    assert isinstance(ensemble([CNN, LSTM]), MaskingClassifier)
    assert isinstance(ensemble([hidden]), WindowedClassifier)
    assert ensemble([shown, hidden]).deterministic
    assert not ensemble([shown, WeightVictim({}, deterministic=False)]).deterministic


def test_a_text_that_looks_alike_to_a_member_is_computed_once_by_it() -> None:
    coarse, fine = OpenLogits({"good": 1.0}), OpenLogits({"good": 1.0, "film": 1.0, "movie": 2.0})
    service = ScoringService(ensemble([coarse, fine]))
    texts = [Text.parse(text) for text in ("good film", "good movie", "good x film", "good film")]
    (scores,) = service.answer_scores([Score(texts)])
    assert isinstance(scores, list)
    assert [score.probabilities[1] for score in scores] == pytest.approx([sigmoid(x) for x in (1.5, 2.0, 1.5, 1.5)])
    assert service.rows == 2  # "good x film" reads like "good film" to both
    assert coarse.computed == [("good",)]
    assert sorted(fine.computed) == [("good", "film"), ("good", "movie")]


def test_a_randomised_member_is_asked_about_every_copy() -> None:
    noisy = OpenLogits({"good": 1.0}, deterministic=False)
    both = combine([noisy, OpenLogits({"good": 1.0})])
    both.predict_proba(["good", "good", "good"])
    assert noisy.computed == [("good",)] * 3


def test_nan_of_one_member_is_a_failure_of_that_text_alone() -> None:
    def broken(texts: list[str]) -> list[list[float]]:
        return [[math.nan, 1.0] if "bad" in text else [0.5, 0.5] for text in texts]

    both = ensemble([broken, OpenLogits({"good": 2.0}, labels=("0", "1"))])
    rows = both.predict_proba(["good", "bad"])
    assert rows[0, 1] == pytest.approx(sigmoid(1.0))
    assert np.isnan(rows[1]).all()


def test_the_fingerprint_follows_members_and_temperatures() -> None:
    def prints(members: Sequence[object], temperatures: Sequence[float] | None = None) -> str:
        return combine([load_model(member) for member in members], temperatures).fingerprint()

    first, second = OpenLogits({"a": 1.0}), OpenLogits({"b": 1.0})
    same = prints([first, second])
    assert same == prints([OpenLogits({"a": 1.0}), second], [1.0, 1.0])
    assert len({same, prints([second, first]), prints([first, first]), prints([first, second], [1.0, 2.0])}) == 4


def test_words_that_any_member_reads_are_visible() -> None:
    @dataclass
    class Window(WeightVictim):
        shown: range = range(0)

        def visible_words(self, texts: Sequence[Text]) -> list[range]:
            return [range(max(0, self.shown.start), min(len(text), self.shown.stop)) for text in texts]

    def visible(*members: object) -> list[int]:
        both = ensemble(members)
        assert isinstance(both, WindowedClassifier)
        return list(both.visible_words([Text.parse("one two three four five")])[0])

    assert visible(Window({}, shown=range(0, 2)), Window({}, shown=range(1, 3))) == [0, 1, 2]
    assert visible(Window({}, shown=range(0, 2)), WeightVictim({})) == [0, 1, 2, 3, 4]
    assert visible(Window({}), Window({})) == []


# References


@pytest.mark.parametrize(
    ("reference", "members", "temperatures"),
    [
        ("ensemble:a", ("a",), None),
        ("ensemble:a, b,models/c", ("a", "b", "models/c"), None),
        ("ensemble:builtin:a,python:m:f", ("builtin:a", "python:m:f"), None),
        ("ensemble:a,b:temperatures=1.5,0.8", ("a", "b"), (1.5, 0.8)),
        ('ensemble:"with, comma",b', ("with, comma", "b"), None),
        ('ensemble:"said ""so""",b:temperatures=1,2', ('said "so"', "b"), (1.0, 2.0)),
        ('ensemble:"ensemble:a,b:temperatures=1,2",c', ("ensemble:a,b:temperatures=1,2", "c"), None),
        ('ensemble:"ensemble:a,b:temperatures=1,2",c:temperatures=3,4', ("ensemble:a,b:temperatures=1,2", "c"), (3, 4)),
    ],
)
def test_references_are_read(reference: str, members: tuple[str, ...], temperatures: tuple[float, ...] | None) -> None:
    parsed = EnsembleReference.parse(reference)
    assert (parsed.members, parsed.temperatures) == (members, temperatures)
    assert EnsembleReference.parse(str(parsed)) == parsed


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ("ensemble:", "has an empty member, expected model references separated by commas"),
        ("ensemble:a,,b", "has an empty member"),
        ("ensemble:a,", "has an empty member"),
        ('ensemble:a,""', "has an empty member"),
        ('ensemble:a"b,c', "has a quote in the middle of a member"),
        ('ensemble:"a,b', "has a quote in the middle of a member, or one that does not end"),
        ("ensemble:a,b:temperatures=hot", 'are "hot", expected a number for each member'),
        ("ensemble:a,b:temperatures=", 'are "", expected a number for each member'),
        ("ensemble:ensemble:a,b", "An ensemble inside an ensemble stands in double quotes"),
        ("ensemble:a,ensemble:b", "An ensemble inside an ensemble stands in double quotes"),
    ],
)
def test_references_that_name_no_ensemble_are_refused(reference: str, problem: str) -> None:
    with pytest.raises(ModelError, match=problem) as raised:
        load_model(reference)
    assert "\n" not in str(raised.value)


@given(some.lists(some.text(min_size=1).filter(lambda name: name.strip() == name and name), min_size=1, max_size=4))
def test_every_reference_that_is_written_is_read_again(members: list[str]) -> None:
    reference = EnsembleReference(tuple(members), tuple(1.5 for _ in members))
    assert EnsembleReference.parse(str(reference)) == reference


def test_single_models_behind_a_reference() -> None:
    assert single_models("builtin:a") == ("builtin:a",)
    assert single_models('ensemble:"ensemble:a,python:m:f",c') == ("a", "python:m:f", "c")


def test_a_reference_loads_its_members(bert_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bert_folder.parent)
    (bert_folder.parent / "twos.py").write_text("def predict(texts):\n    return [[0.25, 0.75] for _ in texts]\n")
    both = load_model("ensemble:tiny-bert,python:twos:predict", labels=["no", "yes"])
    assert both.labels == ("no", "yes")
    bert = load_model("tiny-bert", labels=["no", "yes"])
    expected = softmax((predict_logits(bert, ["a film"]) + np.log([[0.25, 0.75]])) / 2)
    np.testing.assert_allclose(both.predict_proba(["a film"]), expected, rtol=1e-9)
    with pytest.raises(ModelError, match=r"ensemble:?.*LABEL_0, LABEL_1 and python:twos:predict has 0, 1"):
        load_model("ensemble:tiny-bert,python:twos:predict")


def test_a_member_that_is_gone_is_named(bert_folder: Path) -> None:
    with pytest.raises(ModelError, match=r"The member \./gone of an ensemble cannot be loaded\. There is no folder"):
        load_model(f"ensemble:{bert_folder},./gone")


def test_a_comma_in_a_path_stands_in_quotes(bert_folder: Path) -> None:
    folder = bert_folder.rename(bert_folder.parent / "bert,tiny")
    assert load_model(f'ensemble:"{folder}"').labels == ("LABEL_0", "LABEL_1")
    with pytest.raises(ModelError, match=r'bert,tiny" holds a comma, which separates the members .*: put it into doub'):
        load_model(f"ensemble:{folder}")


def test_members_are_bare_models_whatever_their_folder_records(bert_folder: Path) -> None:
    bare = load_model(f"ensemble:{bert_folder}").predict_proba(["a film"])
    save_defenses(bert_folder, [make_defense("ranmask")])
    again = load_model(f"ensemble:{bert_folder}")
    assert again.deterministic
    np.testing.assert_array_equal(again.predict_proba(["a film"]), bare)
    run = st.attack(f"ensemble:{bert_folder}", [("a film", 0)], "pwws", similarity=False)
    assert run.defenses == []


def test_neural_members_are_their_mean_whatever_the_batches(bert: Any, tokenizer: Any) -> None:
    model = HuggingFaceClassifier(bert, tokenizer)
    texts = ["a film", "the film was great", "bad and not great .", ""]
    both = ensemble([model, model], [1.0, 2.0])
    logits = np.concatenate([model.logits_encoded(model.encode([text])) for text in texts])
    expected = softmax(logits * (1 + 1 / 2) / 2)
    np.testing.assert_allclose(both.predict_proba(texts), expected, atol=1e-6)
    keep = np.array([[True, False], [True, True]])
    assert isinstance(both, MaskingClassifier)
    masked = both.predict_encoded(both.encode_masked(["great", "film"], None, keep))
    np.testing.assert_allclose(masked, both.predict_proba(["great [MASK]", "great film"]), atol=1e-6)


# Temperatures


def test_calibration_finds_the_temperature_that_was_hidden() -> None:
    """Texts of one word; the share of positive labels is what the weight says, so the victim's best temperature is 1,
    and that of one with weights three times as large is 3.
    """
    honest, loud = OpenLogits({"maybe": math.log(3.0)}), WeightVictim({"maybe": 3 * math.log(3.0)})
    rows = [("maybe", "positive")] * 75 + [("maybe", "negative")] * 25
    assert calibrate_temperatures([honest, loud], rows) == pytest.approx((1.0, 3.0), rel=1e-3)
    (clueless,) = calibrate_temperatures([OpenLogits({"maybe": -5.0})], rows)
    assert clueless == pytest.approx(HOTTEST, rel=1e-2)


def test_calibration_follows_classes_in_another_order() -> None:
    turned = OpenLogits({"maybe": -2 * math.log(3.0)}, labels=("positive", "negative"))
    rows = [("maybe", "positive")] * 75 + [("maybe", "negative")] * 25
    assert calibrate_temperatures([WeightVictim({"maybe": 1.0}), turned], rows)[1] == pytest.approx(2.0, rel=1e-3)
