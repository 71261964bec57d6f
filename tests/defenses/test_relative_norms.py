"""Norms of PGD and FreeLB that are relative to the length of a model's own input vectors."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import stockade as st
from stockade.core.errors import ModelError, OptionError, RunError
from stockade.defenses.embedding_perturbation import BERT_VECTOR_NORM, Ascent, vector_norm
from stockade.defenses.registry import defenses, make_defense
from stockade.training.objective import TrainingKit, measurements
from tests.defenses.adversarial_kit import make_batch, make_kit, zoo_kit
from tests.training.tiny import rows

LENGTHS = "steps=3,step_size=0.2,start_norm=0.5,max_norm=0.4"


def ascent(reference: str, kit: TrainingKit) -> Ascent:
    result = make_defense(reference).defense.objective(kit).vectors.ascent
    assert isinstance(result, Ascent)
    return result


def loss(reference: str, kit: TrainingKit) -> float:
    objective = make_defense(reference).defense.objective(kit)
    value: float = objective.loss(kit.network, objective.augment(make_batch(kit))).item()
    return value


@pytest.mark.parametrize("name", ["pgd", "freelb"])
def test_vectors_twice_as_long_as_those_of_bert_are_moved_twice_as_far(name: str) -> None:
    """2.8 is twice 1.4: steps, start and ball are twice as long, the number of steps is what it was."""
    doubled = ascent(f"{name}:norm=relative,{LENGTHS}", zoo_kit(vector_norm=2.8))
    assert doubled == Ascent(steps=3, step_size=0.4, start_norm=1.0, max_norm=0.8)
    assert ascent(f"{name}:norm=relative,max_norm=0", zoo_kit()).max_norm == 0.0, "no limit stays no limit"


@pytest.mark.parametrize("name", ["pgd", "freelb"])
def test_with_the_vectors_of_bert_relative_norms_are_the_published_ones(name: str) -> None:
    published = ascent(f"{name}@paper", zoo_kit())
    assert ascent(name, zoo_kit(vector_norm=BERT_VECTOR_NORM)) == published
    assert published == Ascent.of(make_defense(f"{name}@paper").defense)


@pytest.mark.parametrize("name", ["pgd", "freelb"])
def test_relative_norms_do_not_change_with_the_unit_of_the_vectors(name: str) -> None:
    """Vectors ten times as long read by filters a tenth as large are the same model, and it is trained the same."""
    losses: dict[str, list[float]] = {"relative": [], "absolute": []}
    for stretch in (1.0, 10.0):
        kit = zoo_kit()
        with torch.no_grad():
            kit.network.get_input_embeddings().weight *= stretch
            for convolution in kit.network.convolutions:
                convolution.weight /= stretch
        for norm in losses:
            losses[norm].append(loss(f"{name}:norm={norm},{LENGTHS}", kit))
    assert losses["relative"][0] == pytest.approx(losses["relative"][1], abs=1e-5)
    assert losses["absolute"][0] > losses["absolute"][1] + 1e-3, "the same ball is a tenth of what it was"


def test_models_of_the_zoo_have_relative_norms_and_transformers_those_of_the_papers() -> None:
    for name in ("pgd", "freelb"):
        assert make_defense(name).options["norm"] == "auto"
        assert ascent(name, zoo_kit()) == ascent(f"{name}:norm=relative", zoo_kit())
        assert ascent(name, zoo_kit()) != ascent(f"{name}:norm=absolute", zoo_kit())
        assert ascent(name, make_kit()) == ascent(f"{name}:norm=absolute", make_kit())
        assert ascent(name, make_kit()) != ascent(f"{name}:norm=relative", make_kit())


def test_every_published_preset_is_absolute() -> None:
    for name in ("pgd", "freelb"):
        presets = set(defenses()[name].presets) - {"default"}
        assert presets >= {"paper", "ranmask-authors"}
        assert {make_defense(f"{name}@{preset}").options["norm"] for preset in presets} == {"absolute"}
    assert ascent("freelb@mnli:norm=relative", zoo_kit(2.8)).max_norm == 0.5, "and can be made relative"


def test_the_length_of_vectors_is_their_mean_without_rows_of_zeros() -> None:
    class Network:
        def __init__(self, table: list[list[float]]) -> None:
            self.embedding = torch.nn.Embedding.from_pretrained(torch.tensor(table))

        def get_input_embeddings(self) -> torch.nn.Module:
            return self.embedding

    assert vector_norm(Network([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])) == 3.0
    assert vector_norm(Network([[0.0, 0.0]])) == 0.0
    assert vector_norm(Network([[1.0, 0.0], [float("nan"), 0.0]])) == 0.0
    assert vector_norm(Network([[1.0, 1.0]])) == 1.41421


@pytest.mark.parametrize("value", [0.0, float("nan")])
def test_vectors_without_a_length_cannot_be_a_measure(value: float) -> None:
    kit = zoo_kit()
    with torch.no_grad():
        kit.network.get_input_embeddings().weight.fill_(value)
    with pytest.raises(ModelError, match=r"all zero or not finite, so the norms of pgd cannot.*norm=absolute"):
        ascent("pgd", kit)
    assert ascent("pgd:norm=absolute", kit).max_norm == 0.05


def test_another_kind_of_norm_is_refused() -> None:
    with pytest.raises(OptionError, match="option norm of pgd cannot be 'bert'"):
        make_defense("pgd:norm=bert")


def test_what_was_measured_is_found_inside_other_objectives() -> None:
    kit = zoo_kit()
    inside = make_defense("pgd").defense.objective(kit)
    outside = make_defense("safer").defense.objective(replace(kit, plain=inside))
    expected = {
        "norm": "relative",
        "vector_norm": 2.8,
        "scale": 2.0,
        "step_size": 0.6,
        "start_norm": 1.0,
        "max_norm": 0.1,
    }
    assert measurements(outside) == {"pgd": expected}
    assert measurements(kit.plain) == {}


@pytest.mark.usefixtures("plain_report")
def test_the_manifest_the_summary_and_the_card_tell_what_was_measured(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    arguments: dict[str, Any] = {"defenses": "freelb", "epochs": 2, "device": "cpu", "batch": 8, "seed": 1}

    def power_cut(progress: Any) -> None:
        if progress.done == 3:
            raise KeyError("power cut")

    with pytest.raises(KeyError):
        st.train(rows(40), "CNN-W-Random-1", out=folder, observer=power_cut, **arguments)
    measured = json.loads((folder / "manifest.json").read_text())["inputs"]["measured"]["freelb"]
    assert measured["norm"] == "relative"
    assert measured["scale"] == pytest.approx(measured["vector_norm"] / 1.4, rel=1e-5)
    assert measured["max_norm"] == pytest.approx(0.5 * measured["scale"], rel=1e-5)

    with pytest.raises(RunError, match="made with another configuration: defenses was"):
        st.train(rows(40), "CNN-W-Random-1", out=folder, resume=True, **{**arguments, "defenses": "freelb@paper"})
    result = st.train(rows(40), "CNN-W-Random-1", out=folder, resume=True, **arguments)
    assert result.summary["measured"] == {"freelb": measured}
    (remark,) = result.remarks
    assert remark.startswith("freelb measured the model when the training began: norm relative, vector_norm ")
    assert "freelb measured the model" in (folder / "README.md").read_text()
    assert remark in result.document().to_markdown().replace("\\_", "_")
