"""FACT: every batch with alternatives of its texts, under the same labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from torch import Tensor

from stockade.core.errors import ModelError, OptionError
from stockade.core.text import TextInput
from stockade.defenses.chain import combined_objective, wrap
from stockade.defenses.fact import AlternativePool, CoTuning, Fact
from stockade.defenses.registry import defenses, make_defense
from stockade.models.encoding import TextEncoder
from stockade.models.huggingface import HuggingFaceClassifier
from stockade.training.network import Origin
from stockade.training.objective import Batch, CrossEntropy, TrainingKit
from stockade.training.options import preset
from tests.models.conftest import tiny_bert, tiny_tokenizer
from tests.toys import WeightVictim
from tests.training.tiny import OPTIONS, build, train_tiny

from .adversarial_kit import make_kit
from .firebert_kit import OpenVictim, write_table

VICTIM_WEIGHTS = {"great": 3.0, "film": 2.0, "plot": 1.0}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_table(tmp_path_factory.mktemp("table"))


def fact(table: str, **options: Any) -> Fact:
    plain = {"candidates": 1, "match_pos": False, "similarity": "off", "total_alternatives": 3, "neighbours": table}
    return Fact(**{**plain, **options})


@dataclass
class Recording:
    """An objective that remembers what it was handed."""

    batches: list[Batch] = field(default_factory=list)

    def augment(self, batch: Batch) -> Batch:
        self.batches.append(batch)
        return batch

    def loss(self, model: Any, batch: Batch) -> Tensor:
        return torch.tensor(float(len(batch)))


ENCODER = TextEncoder.of(tiny_tokenizer(), tiny_bert(), ["input_ids", "attention_mask", "token_type_ids"])


def encode(texts: Sequence[TextInput]) -> dict[str, Tensor]:
    return ENCODER.tensors(ENCODER.encode(texts), torch.device("cpu"))


def batch(inputs: Sequence[TextInput], labels: Sequence[int], seed: int = 0) -> Batch:
    return Batch(
        inputs=tuple(inputs),
        labels=torch.tensor(labels),
        tensors=encode(inputs),
        rng=Random(seed),
        encode=encode,
        backward=lambda loss: None,
    )


def test_alternatives_join_the_batch_with_the_label_of_their_text(table: str) -> None:
    plain = Recording()
    tuning = CoTuning(ENCODER, plain, AlternativePool(fact(table), OpenVictim(VICTIM_WEIGHTS), 0), 3)
    texts: list[TextInput] = ["Great film!", "zebra", ("great film", "the plot, twice")]
    augmented = tuning.augment(batch(texts, [1, 0, 2]))
    assert augmented is plain.batches[0]
    assert list(augmented.inputs[:3]) == texts
    assert sorted(zip(map(str, augmented.inputs[3:]), augmented.labels[3:].tolist(), strict=True)) == [
        ("('great film', 'the story, twice')", 2),
        ("Good film!", 1),
        ("Good movie!", 1),
        ("Great movie!", 1),
    ]
    assert augmented.labels[:3].tolist() == [1, 0, 2]
    expected = encode(augmented.inputs)
    assert augmented.tensors.keys() == expected.keys()
    assert all(torch.equal(augmented.tensors[name], expected[name]) for name in expected)
    assert tuning.loss(None, augmented) == 7  # type: ignore[arg-type]


def test_tokens_that_were_hidden_stay_hidden(table: str) -> None:
    """Word dropout, or a defense outside, has changed the second text."""
    hidden = batch(["a film and a film", "the film"], [0, 1])
    hidden.tensors["input_ids"][1, 2] = 1
    pool = AlternativePool(fact(table, perturb_words=1), OpenVictim(VICTIM_WEIGHTS), 0)
    augmented = CoTuning(ENCODER, Recording(), pool, 1).augment(hidden)
    assert augmented.inputs[2:] == ("a movie and a film", "the movie")
    assert augmented.tensors["input_ids"][:2].tolist() == [[2, 5, 7, 12, 5, 7, 3], [2, 6, 1, 3, 0, 0, 0]]
    assert augmented.tensors["attention_mask"].sum(1).tolist() == [7, 4, 7, 4]


def test_a_text_is_looked_at_once(table: str) -> None:
    victim = OpenVictim(VICTIM_WEIGHTS)
    pool = AlternativePool(fact(table), victim, 0)
    for texts in (["great film", "plot"], ["plot", "great plot", "plot"], ["great film"]):
        pool.of(texts)
    assert [str(text) for text in victim.looked] == ["great film", "plot", "great plot"]


def test_alternatives_depend_on_seed_and_text_and_not_on_when_the_text_is_seen(table: str) -> None:
    options = fact(table, candidates=2, total_alternatives=2, pool=4)
    texts = ["great film", "film of great plot", "plot film"]
    first, again, other = (AlternativePool(options, OpenVictim(VICTIM_WEIGHTS), seed) for seed in (0, 0, 1))
    expected = first.of(texts)
    assert [again.of([text])[0] for text in reversed(texts)] == expected[::-1]
    assert other.of(texts) != expected
    assert all(len(set(alternatives)) == 4 for alternatives in expected)


def test_each_step_draws_from_the_pool_by_its_own_generator(table: str) -> None:
    pool = AlternativePool(fact(table, candidates=2, total_alternatives=2, pool=8), OpenVictim(VICTIM_WEIGHTS), 0)
    tuning = CoTuning(ENCODER, Recording(), pool, 2)
    drawn = [tuning.augment(batch(["great film"], [1], seed)).inputs[1:] for seed in (1, 1, 2, 3)]
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) > 1
    (alternatives,) = pool.of(["great film"])
    assert all(len(set(two)) == 2 and set(two) <= {alternative.input for alternative in alternatives} for two in drawn)


def test_a_text_that_cannot_be_looked_at_ends_the_training(table: str) -> None:
    class Broken(OpenVictim):
        def token_importance(self, texts: Any, objective: Any) -> Any:
            raise ValueError("no gradient today")

    with pytest.raises(ModelError, match=r"could not make alternatives of a training text.*no gradient today"):
        AlternativePool(fact(table), Broken({}), 0).of(["great film"])


def kit(trained: bool) -> TrainingKit:
    network, tokenizer = build([], ("negative", "positive"), 0)
    encoder = TextEncoder.of(tokenizer, network, ["input_ids", "attention_mask"])
    return TrainingKit(
        network=network,
        tokenizer=tokenizer,
        encoder=encoder,
        classes=("negative", "positive"),
        inputs=["great film"],
        labels=[1],
        plain=CrossEntropy(),
        seed=7,
        trained=trained,
    )


def test_the_reference_is_the_model_that_the_training_starts_from_and_stays_as_it_was(table: str) -> None:
    training = kit(trained=True)
    made = fact(table).objective(training)
    assert isinstance(made, CoTuning)
    assert made.plain is training.plain
    assert isinstance(made.pool.model, HuggingFaceClassifier)
    assert made.pool.model.model is not training.network
    assert not made.pool.model.model.training
    with torch.no_grad():
        training.network.classifier.weight.add_(1.0)
    assert not torch.equal(made.pool.model.model.classifier.weight, training.network.classifier.weight)


def test_without_a_trained_reference_it_is_said_how_to_get_one(table: str) -> None:
    with pytest.raises(OptionError, match="this training starts from an untrained one: train one without fact first"):
        fact(table).objective(kit(trained=False))


def test_a_reference_may_be_named_and_must_fit(table: str, tmp_path: Path) -> None:
    for name, classes in (("two", ("negative", "positive")), ("three", ("a", "b", "c"))):
        network, tokenizer = build([], classes, 3)
        network.save_pretrained(tmp_path / name)
        tokenizer.save_pretrained(tmp_path / name)
    made = fact(table, reference_model=str(tmp_path / "two")).objective(kit(trained=False))
    assert isinstance(made, CoTuning)
    assert made.pool.of(["great film"])[0]
    with pytest.raises(OptionError, match="has 3 classes, expected the 2 of the training data"):
        fact(table, reference_model=str(tmp_path / "three")).objective(kit(trained=True))


def test_it_combines_with_defenses_that_answer(table: str) -> None:
    """FuSE and FIVE do not train: what they stand around is trained as with FACT alone."""
    make = combined_objective([make_defense("fuse"), make_defense("fact", neighbours=table, similarity="off")])
    assert make is not None
    training = kit(trained=True)
    made = make(training)
    assert isinstance(made, CoTuning)
    assert made.plain is training.plain
    assert combined_objective([make_defense("fuse"), make_defense("five")]) is None


@pytest.mark.usefixtures("plain_report")
def test_a_model_is_trained_with_it_and_the_same_twice(tmp_path: Path) -> None:
    """From a trained model; the rows of a step are the texts and their alternatives."""
    start = train_tiny(tmp_path / "start")
    make = combined_objective([make_defense("fact", perturb_words=1, similarity="off", match_pos=False)])
    assert make is not None
    sizes: list[int] = []

    def watched(training: TrainingKit) -> Any:
        class Watched:
            def augment(self, batch: Batch) -> Batch:
                sizes.append(len(batch))
                return batch

            loss = staticmethod(CrossEntropy().loss)

        return make(replace(training, plain=Watched()))

    options = OPTIONS.changed(epochs=1, learning_rate=0.003)
    origin = Origin(model=str(tmp_path / "start"))
    first, second = (
        train_tiny(tmp_path / name, origin=origin, options=options, objective=watched) for name in ("first", "second")
    )
    assert sum(sizes[: len(sizes) // 2]) > 3 * 54
    assert first.history[0].loss == second.history[0].loss
    assert start.accuracy is not None
    assert first.accuracy is not None
    assert first.accuracy >= start.accuracy


def test_presets_say_what_the_paper_says() -> None:
    names = ("perturb_words", "candidates", "similarity", "multiplier", "total_alternatives")
    assert [make_defense("fact").options[name] for name in names] == [9, 10, "filter", 12, 4]
    assert make_defense("fact").options == make_defense("fact@mnli").options
    assert [make_defense("fact@imdb").options[name] for name in names] == [23, 10, "filter", 12, 4]
    mnli, imdb = preset("fact"), preset("fact-imdb")
    assert (mnli.batch, mnli.epochs, mnli.learning_rate, mnli.max_length) == (7, 1, 2e-5, 128)
    assert (imdb.batch, imdb.max_length) == (2, 256)


def test_it_only_trains_and_the_others_only_answer() -> None:
    entries = defenses()
    assert (entries["fact"].trains, entries["fact"].answers) == (True, False)
    for name in ("fuse", "five", "mask-top"):
        assert (entries[name].trains, entries[name].answers) == (False, True)
    victim = OpenVictim({})
    both = wrap(victim, [make_defense("five"), make_defense("fact")])
    assert both.inner is victim  # type: ignore[attr-defined]
    assert wrap(WeightVictim({}), [make_defense("fact")]) == WeightVictim({})


def test_a_pool_smaller_than_a_draw_is_refused() -> None:
    with pytest.raises(OptionError, match="pool is 2, expected at least total_alternatives"):
        make_defense("fact", pool=2)


@pytest.mark.parametrize("between", [[], ["freelb"]])
def test_with_ranmask_the_alternatives_are_masked_too(table: str, between: list[str]) -> None:
    named = [make_defense("ranmask:rate=0.99"), *map(make_defense, between)]
    make = combined_objective([*named, make_defense("fact", neighbours=table, similarity="off")])
    assert make is not None
    training = kit(trained=True)
    texts = ["a good film", "the film with fun"]

    def encode(inputs: Sequence[TextInput]) -> dict[str, Tensor]:
        return training.encoder.tensors(training.encoder.encode(inputs), torch.device("cpu"))

    whole = Batch(
        inputs=tuple(texts),
        labels=torch.tensor([1, 0]),
        tensors=encode(texts),
        rng=Random(0),
        encode=encode,
        backward=torch.autograd.backward,
    )
    augmented = make(training).augment(whole)
    assert len(augmented.inputs) > 2
    masks = (augmented.tensors["input_ids"] == training.tokenizer.unk_token_id).sum(1)
    words = [len(str(text).split()) for text in augmented.inputs]
    for hidden, count in zip(masks.tolist(), words, strict=True):
        assert hidden >= count - 1  # at this rate one word of each text stays; its vocabulary may lack that one too


def test_texts_that_differ_in_a_comma_draw_apart(table: str) -> None:
    """Each text has its own random choices: not all have the same word replaced."""
    options = fact(table, candidates=2, total_alternatives=1)
    texts: list[TextInput] = [f"great film{',' * commas}" for commas in range(12)]
    pools = AlternativePool(options, OpenVictim(VICTIM_WEIGHTS), 0).of(texts)
    assert len({alternative.words for (alternative,) in pools}) > 2


def test_a_reference_model_must_show_its_gradients(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stockade.defenses.fact.load_model", lambda reference, device: WeightVictim({}))
    with pytest.raises(ModelError, match="fact needs the model's gradients"):
        fact(table, reference_model="models/m").model(make_kit())
