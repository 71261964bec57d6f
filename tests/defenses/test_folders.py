"""A model trained with a defense: masked texts in training, the defense around it whenever it is loaded."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
import torch

import stockade as st
from stockade.cli import main as command_line
from stockade.core.errors import ModelError, OptionError
from stockade.defenses.chain import FILE_NAME, load_defenses, save_defenses
from stockade.defenses.defended import Defended
from stockade.defenses.ranmask import RanMask
from stockade.defenses.registry import make_defense
from stockade.jobs import ModelOptions
from stockade.models.encoding import TextEncoder
from stockade.training.objective import Batch, CrossEntropy, Objective, TrainingKit
from tests.models.conftest import tiny_tokenizer
from tests.toys import WeightVictim
from tests.training.tiny import rows

Command = Callable[..., tuple[int, str]]
TRAINING = ("--arch", "CNN-W-Random-1", "--set", "filters=8", "--epochs", 30, "--lr", 0.02, "--patience", "none")


@pytest.fixture
def stockade(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """Runs the command in this process, in a folder with data: (exit code, standard error)."""
    monkeypatch.chdir(tmp_path)
    lines = "".join(f"{text},{label}\n" for text, label in rows(60))
    (tmp_path / "data.csv").write_text("text,label\n" + lines)

    def run(*words: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["stockade", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            command_line.main()
        return int(ended.value.code or 0), capsys.readouterr().err

    return run


def test_from_training_to_an_attack_with_the_defense_in_place(stockade: Command, tmp_path: Path) -> None:
    assert stockade("train", "data.csv", *TRAINING, "--defense", "ranmask:rate=0.2,copies=9", "--out", "m") == (0, "")
    kept = json.loads(Path("m", FILE_NAME).read_text())
    assert [one["name"] for one in kept["defenses"]] == ["ranmask"]
    model = ModelOptions().load("m")
    assert isinstance(model, Defended)
    assert model.defense.rate == 0.2  # type: ignore[attr-defined]
    text = "the good film and a story"
    assert model.predict_proba([text])[0].argmax() == model.labels.index("positive")
    assert not isinstance(ModelOptions(defenses=["none"]).load("m"), Defended)
    attack = ("attack", "m", "data.csv", "--attack", "deepwordbug", "--limit", 4, "--budget", 20, "--no-similarity")
    for defense, deterministic in (((), False), (("--defense", "none"), True)):
        out = f"run-{deterministic}"
        assert stockade(*attack, *defense, "--out", out)[0] == 0
        assert json.loads(Path(out, "manifest.json").read_text())["model"]["deterministic"] is deterministic


def test_training_with_masks_gives_other_weights_and_the_same_ones_again(stockade: Command) -> None:
    short = (*TRAINING[:4], "--epochs", 2)
    for out, defense in (("plain", ()), ("a", ("--defense", "ranmask")), ("b", ("--defense", "ranmask"))):
        assert stockade("train", "data.csv", *short, *defense, "--out", out)[0] == 0
    plain, one, same = (
        ModelOptions(defenses=["none"]).load(name).predict_proba(["a good film"]) for name in ("plain", "a", "b")
    )
    assert (one == same).all()
    assert (one != plain).any()


def test_defenses_are_told_back(tmp_path: Path) -> None:
    save_defenses(tmp_path, [make_defense("ranmask@imdb:kept=2,curriculum=0.1")])
    (kept,) = load_defenses(tmp_path)
    assert (kept.preset, kept.defense.kept, kept.defense.curriculum) == ("imdb", 2, 0.1)


def test_without_defenses_there_is_no_file(tmp_path: Path) -> None:
    save_defenses(tmp_path, [])
    assert list(tmp_path.iterdir()) == []
    assert load_defenses(tmp_path) == []
    assert load_defenses(tmp_path / "nothing") == []


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"schema": 99, "defenses": []}', '{"schema": 1, "defenses": [{"name": "ranmask"}]}']
)
def test_a_broken_file_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE_NAME).write_text(content)
    with pytest.raises(ModelError, match=r"defense\.json cannot be read .* --defense none"):
        load_defenses(tmp_path)


def batch(encoder: TextEncoder, *inputs: str | tuple[str, str], seed: int = 0, progress: float = 0.0) -> Batch:
    tensors = encoder.tensors(encoder.encode(inputs), torch.device("cpu"))
    return Batch(
        inputs=inputs,
        labels=torch.zeros(len(inputs), dtype=torch.long),
        tensors=tensors,
        rng=Random(seed),
        encode=None,
        backward=None,
        progress=progress,
    )  # type: ignore[arg-type]


def masked_training(encoder: TextEncoder, plain: Objective | None = None, **options: float) -> Objective:
    """The objective of ranmask in a training of no model in particular."""
    kit = TrainingKit(
        network=None,
        tokenizer=None,
        encoder=encoder,
        classes=("negative", "positive"),
        inputs=(),
        labels=(),
        plain=plain or CrossEntropy(),
        seed=0,
        trained=False,
    )
    return RanMask(**options).objective(kit)  # type: ignore[arg-type]


def test_every_text_of_a_batch_is_masked_anew() -> None:
    encoder = TextEncoder(tiny_tokenizer(), None, True, False)
    training = masked_training(encoder, rate=0.5, kept=1)
    texts = ("the film was bad", "films", "", ("the film", "not bad and great"))
    seen = set()
    for seed in range(20):
        changed = training.augment(batch(encoder, *texts, seed=seed))
        masks = (changed.tensors["input_ids"] == 4).sum(1).tolist()
        assert masks == [2, 0, 0, 2]
        assert (changed.tensors["input_ids"][3, :4] == torch.tensor([2, 6, 7, 3])).all(), "a premise is never hidden"
        again = training.augment(batch(encoder, *texts, seed=seed))
        assert (again.tensors["input_ids"] == changed.tensors["input_ids"]).all()
        seen.add(tuple(changed.tensors["input_ids"][0].tolist()))
    assert len(seen) == 6, "two of four words can be hidden in six ways"


def test_the_rate_of_a_curriculum_rises_in_the_first_part_of_the_training() -> None:
    rising = RanMask(rate=0.9, curriculum=0.3)
    assert [rising.training_rate(progress) for progress in (0.0, 0.3, 0.6, 1.0)] == pytest.approx([0.3, 0.6, 0.9, 0.9])
    assert RanMask(rate=0.9).training_rate(0.0) == 0.9


def test_a_folder_keeps_the_order_and_what_is_no_folder_keeps_nothing(tmp_path: Path) -> None:
    chain = [make_defense("safer@vote", copies=3), make_defense("ranmask@snli"), make_defense("freelb")]
    save_defenses(tmp_path, chain)
    assert [one.described() for one in load_defenses(tmp_path)] == [one.described() for one in chain]
    assert load_defenses(tmp_path / FILE_NAME) == []
    assert load_defenses(tmp_path / "nowhere") == []


def test_what_only_trains_must_be_in_the_model_that_it_is_named_for(tmp_path: Path) -> None:
    options = ModelOptions(defenses=["fuse", "freelb"])
    for model in (tmp_path, str(tmp_path), WeightVictim({})):
        with pytest.raises(OptionError, match=r"freelb changes how .* this one was not trained with it"):
            options.named_defenses(model)
    save_defenses(tmp_path, [make_defense("freelb")])
    for model in (tmp_path, str(tmp_path)):
        assert [one.name for one in options.named_defenses(model)] == ["fuse", "freelb"]
        assert [one.name for one in ModelOptions().named_defenses(model)] == ["freelb"]
        assert ModelOptions(defenses=["none"]).named_defenses(model) == []


def test_the_same_holds_when_a_model_is_defended_from_python(stockade: Command) -> None:
    assert stockade("train", "data.csv", *TRAINING, "--defense", "freelb", "--out", "m") == (0, "")
    assert isinstance(st.defend("m", "ranmask", "freelb"), Defended)
    with pytest.raises(OptionError, match="pgd changes how a model is trained, and this one was not trained with it"):
        st.defend("m", "ranmask", "pgd")
    with pytest.raises(OptionError, match=r"freelb changes how a model is trained: use st\.train"):
        st.defend("m", "freelb")


def test_more_words_are_hidden_as_a_training_goes_on() -> None:
    """Of ten words 2 at the beginning, 5 halfway up, 8 from the end of the rise on."""
    encoder = TextEncoder(tiny_tokenizer(), None, True, False)
    training = masked_training(encoder, rate=0.8, kept=1, curriculum=0.2)
    text = "a film was great and the film was not bad"
    hidden = [
        int((training.augment(batch(encoder, text, progress=progress)).tensors["input_ids"] == 4).sum())
        for progress in (0.0, 0.3, 0.6, 1.0)
    ]
    assert hidden == [2, 5, 8, 8]


def test_the_fewest_words_that_stay_stay_in_training_too() -> None:
    encoder = TextEncoder(tiny_tokenizer(), None, True, False)
    training = masked_training(encoder, rate=0.9, kept=3)
    found = training.augment(batch(encoder, "a film was great and the film was not bad")).tensors["input_ids"]
    assert int((found == 4).sum()) == 7


def test_tokens_are_changed_after_words_are_hidden() -> None:
    encoder = TextEncoder(tiny_tokenizer(), None, True, False)
    masks: list[int] = []

    class Counting(CrossEntropy):
        def augment(self, batch: Batch) -> Batch:
            masks.append(int((batch.tensors["input_ids"] == 4).sum()))
            return batch

    training = masked_training(encoder, Counting(), rate=0.5, kept=1)
    found = training.augment(batch(encoder, "the film was bad"))
    assert masks == [2]
    assert int((found.tensors["input_ids"] == 4).sum()) == 2


def test_the_loss_is_that_of_what_it_stands_around() -> None:
    class Seven(CrossEntropy):
        def loss(self, model: object, batch: Batch) -> torch.Tensor:
            return torch.tensor(7.0)

    training = masked_training(TextEncoder(tiny_tokenizer(), None, True, False), Seven(), rate=0.5, kept=1)
    assert training.loss(None, None) == 7  # type: ignore[arg-type]


def test_a_defense_that_this_version_does_not_have_is_told_with_the_file(tmp_path: Path) -> None:
    entry = {"name": "ranmusk", "preset": "paper", "options": {}}
    (tmp_path / FILE_NAME).write_text(json.dumps({"schema": 1, "defenses": [entry]}))
    with pytest.raises(ModelError, match=r"defense\.json names what this version does not have.*ranmusk"):
        load_defenses(tmp_path)
