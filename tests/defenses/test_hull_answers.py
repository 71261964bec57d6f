"""Asking about copies of a text whose words are random mixtures with their synonyms."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import stockade as st
from stockade.core.errors import ModelError, OptionError
from stockade.core.protocols import MixedCopies, Probabilities, WordVocabulary
from stockade.core.text import Text
from stockade.defenses.chain import check_order, load_defenses, save_defenses, wrap
from stockade.defenses.defended import Defended
from stockade.defenses.hull import Hull, word_hulls
from stockade.defenses.registry import make_defense
from stockade.experiment.inputs import defenses_around
from stockade.models.huggingface import HuggingFaceClassifier
from tests.defenses.firebert_kit import OpenVictim, write_table
from tests.defenses.test_adv_hotflip import directions
from tests.models.conftest import tiny_bert, tiny_tokenizer
from tests.toys import WeightVictim

TABLE = directions(great=0, bad=10, good=20, film=100, films=110, **{"is": 112})
VOCABULARY = WordVocabulary(("great", "bad", "film", "films", "was"), np.zeros((5, 2), dtype=np.float32))


@pytest.fixture(autouse=True)
def small_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stockade.defenses.hull.neighbour_table", lambda path: TABLE)


def tiny_classifier() -> HuggingFaceClassifier:
    model = tiny_bert()
    torch.manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    return HuggingFaceClassifier(model, tiny_tokenizer())


def with_vectors(model: HuggingFaceClassifier, text: str, vectors: dict[int, np.ndarray]) -> np.ndarray:
    """The answer with these input vectors at these tokens, given past the embedding."""
    encoded = model.tokenizer(text, return_tensors="pt")
    inputs = model.model.get_input_embeddings()(encoded.pop("input_ids")).detach().clone()
    for place, vector in vectors.items():
        inputs[0, place] = torch.from_numpy(vector).float()
    with torch.no_grad():
        return np.asarray(model.model(inputs_embeds=inputs, **encoded).logits.softmax(1)[0])


def test_the_answer_is_the_mean_over_mixtures_of_the_words_vectors() -> None:
    model = tiny_classifier()
    hull = Hull(copies=3, count=2, min_cosine=0.9)
    rng = np.random.default_rng(5)
    hulls = word_hulls(model.word_vocabulary(), TABLE, 2, 0.9)
    text = Text.parse("The great film was not bad!")
    mixed = hulls.drawn(text, 1.0, 3, np.random.default_rng(5))
    assert mixed is not None
    assert [text.words[index] for index in mixed.words] == ["great", "film", "bad"]
    table = model.model.get_input_embeddings().weight.detach().numpy()
    expected = []
    for copy in range(3):
        vectors = {}
        for number, index in enumerate(mixed.words):
            names = [model.word_vocabulary().words[entry] for entry in mixed.entries[number]]
            tokens = model.tokenizer.convert_tokens_to_ids(names)
            place = 1 + index  # behind [CLS]; every word is one token
            vectors[place] = sum(mixed.weights[copy, number, at] * table[token] for at, token in enumerate(tokens))
        expected.append(with_vectors(model, str(text), vectors))
    defended = Defended(name="hull", defense=hull, inner=model)
    answer = np.array(_answered(defended, text, rng))
    assert answer == pytest.approx(np.mean(expected, axis=0), abs=1e-6)
    assert answer != pytest.approx(model.predict_proba([str(text)])[0], abs=1e-3)


def _answered(model: Defended, text: Text, rng: np.random.Generator) -> tuple[float, ...]:
    from tests.defenses.firebert_kit import run

    (scores,) = run(model.inner, model.defense.answer(text, rng))
    probabilities: tuple[float, ...] = scores.probabilities
    return probabilities


def test_weights_are_dirichlet_over_a_word_and_its_own_neighbours() -> None:
    hulls = word_hulls(VOCABULARY, TABLE, 3, 0.9)
    mixed = hulls.drawn(Text.parse("Great was the film"), 2.0, 4000, np.random.default_rng(0))
    assert mixed is not None
    assert mixed.words == (0, 3)
    assert mixed.entries.tolist() == [[0, 1, 0, 0], [2, 3, 2, 2]]
    assert mixed.weights.sum(2) == pytest.approx(1.0, abs=1e-6)
    assert (mixed.weights[:, :, 2:] == 0).all()  # repetitions of the word itself are no further words
    assert mixed.weights[:, :, 0].mean(0) == pytest.approx(0.5, abs=0.02)
    assert mixed.weights[:, 0, 0].var() == pytest.approx(1 / 20, rel=0.1)  # a (s - a) / s² (s + 1), s = 2 a
    assert hulls.drawn(Text.parse("was this"), 1.0, 2, np.random.default_rng(0)) is None
    assert hulls.drawn(Text.parse(""), 1.0, 2, np.random.default_rng(0)) is None


def test_a_cased_vocabulary_is_asked_for_the_word_as_it_is_written() -> None:
    cased = WordVocabulary(("great", "bad", "Film", "Films"), np.zeros((4, 2), dtype=np.float32))
    hulls = word_hulls(cased, TABLE, 2, 0.9)
    assert [hulls.number_of(word) for word in ("great", "Great", "Film", "film")] == [0, None, 2, None]


@pytest.mark.parametrize("text", ["", "film", "great", "?!", "was", "unknowable wordpieces here", "Größe 🙂 film"])
def test_any_text_has_an_answer(text: str) -> None:
    model = tiny_classifier()
    for how in ("vote", "logit", "normalised-logit", "probability"):
        row = Defended(
            name="hull", defense=Hull(copies=4, count=2, min_cosine=0.9, combine=how), inner=model
        ).predict_proba([text])[0]
        assert row.sum() == pytest.approx(1.0)
        if not {"film", "great"} & set(text.split()) and how == "probability":
            assert row == pytest.approx(model.predict_proba([text])[0], abs=1e-6)


def test_of_a_pair_the_hypothesis_is_mixed_and_what_is_cut_off_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_classifier()
    requests: list[MixedCopies] = []
    predict_mixed = model.predict_mixed

    def watched(batch: Sequence[MixedCopies]) -> Probabilities:
        requests.extend(batch)
        return predict_mixed(batch)

    monkeypatch.setattr(model, "predict_mixed", watched)
    defended = Defended(name="hull", defense=Hull(copies=2, count=2, min_cosine=0.9), inner=model)
    defended.predict_proba([("great film", "the film was bad"), ("a film", "great " * 600)])
    assert requests[0].words == (1, 3)
    assert len(requests[1].words) == 600  # the model takes those it reads


def test_the_same_question_has_the_same_answer_whatever_else_is_asked() -> None:
    defended = Defended(name="hull", defense=Hull(copies=5, count=2, min_cosine=0.9), inner=tiny_classifier())
    texts = ["the great film", "bad film", "great", "not a word of it"]
    together = defended.predict_proba(texts)
    assert together == pytest.approx(np.concatenate([defended.predict_proba([text]) for text in texts]), abs=1e-6)
    assert not defended.deterministic
    assert Defended(name="hull", defense=Hull(copies=5, draws="fixed"), inner=tiny_classifier()).deterministic


def test_without_copies_it_only_trains() -> None:
    plain, averaging = make_defense("hull"), make_defense("hull@dne")
    assert (plain.entry.trains, plain.entry.answers) == (True, False)
    assert (averaging.entry.trains, averaging.entry.answers) == (True, True)
    assert averaging.options["copies"] == 16
    assert not averaging.entry.alters_training_texts
    assert make_defense("ranmask").entry.alters_training_texts
    model = tiny_classifier()
    assert wrap(model, [plain]) is model
    assert isinstance(wrap(model, [averaging]), Defended)
    with pytest.raises(OptionError, match="hull changes how a model is trained"):
        st.defend(model, "hull")
    assert isinstance(st.defend(model, "hull", copies=2), Defended)


def test_masks_go_with_hull_training_but_not_with_its_mixtures() -> None:
    check_order([make_defense("ranmask"), make_defense("hull")])
    check_order([make_defense("fuse"), make_defense("hull@dne")])
    with pytest.raises(OptionError, match="ranmask and hull cannot be combined: both alter what the model reads"):
        check_order([make_defense("ranmask"), make_defense("hull@dne")])
    with pytest.raises(OptionError, match="so it cannot stand around ranmask"):
        check_order([make_defense("hull"), make_defense("ranmask")])


def test_a_folder_keeps_what_stands_around_its_model(tmp_path: Path) -> None:
    save_defenses(tmp_path, [make_defense("hull@dne:copies=3")])
    (loaded,) = load_defenses(tmp_path)
    assert loaded.defense == Hull(start="dirichlet", steps=3, sparsity=0.0, clean=0.0, copies=3)
    assert [item.entry.answers for item in defenses_around(tmp_path, None)] == [True]
    save_defenses(tmp_path, [make_defense("hull")])
    assert [item.entry.answers for item in defenses_around(tmp_path, None)] == [False]


def test_what_is_missing_is_said() -> None:
    for victim in (WeightVictim({}), OpenVictim({})):
        with pytest.raises(ModelError, match="hull mixes the model's input vectors, and this model does not let it"):
            st.defend(victim, "hull", copies=2)

    class Letters(OpenVictim):
        def word_gradients(self, *_: Any) -> Any: ...
        def predict_mixed(self, *_: Any) -> Any: ...
        def word_vocabulary(self) -> WordVocabulary:
            return WordVocabulary((), np.zeros((0, 2), dtype=np.float32))

    with pytest.raises(ModelError, match="this model reads characters or bytes"):
        st.defend(Letters({}), "hull", copies=2)
    with pytest.raises(OptionError, match="-1 copies, expected at least 1, 0 and 0"):
        make_defense("hull:copies=-1")


def test_the_surrogate_shows_mean_probabilities() -> None:
    assert Hull(copies=3, combine="vote").surrogate() == Hull(copies=3, combine="probability")


def test_a_table_of_ones_own_is_part_of_what_the_model_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    path = write_table(tmp_path)
    model = tiny_classifier()
    for name, options in (("hull", {"copies": 2, "neighbours": path}), ("fuse", {"neighbours": path}),
                          ("safer", {"vectors": path})):  # fmt: skip
        defended: Any = st.defend(model, name, **options)
        before = defended.fingerprint()
        content = Path(path).read_bytes()
        write_changed_table(Path(path))
        assert defended.fingerprint() != before, name
        Path(path).write_bytes(content)


def write_changed_table(path: Path) -> None:
    from stockade.lexicon.neighbours import write_neighbours
    from stockade.lexicon.vectors import WordVectors

    write_neighbours(WordVectors(("great", "bad"), np.eye(2, dtype=np.float32)), path, {})
