"""What verify must notice, one at a time, on runs of one success."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stockade.attacks.registry import make_attack
from stockade.core.errors import ModelError, RunError
from stockade.core.protocols import Classifier, Probabilities
from stockade.core.text import Edit, TextInput
from stockade.defenses.defended import Defended
from stockade.defenses.ranmask import RanMask
from stockade.engine.language import FillingService
from stockade.engine.requests import Surprisal
from stockade.experiment.result import SUMMARY
from stockade.experiment.workspace import begin
from stockade.workflows.attack.result import CODEC, AttackResult
from stockade.workflows.attack.spec import AttackSpec
from tests.records import record
from tests.toys import RandomVictim, WeightVictim
from tests.workflows.evaluate.kit import Noisy

LABELS = ("negative", "positive", "neutral")
EDITS = (Edit("replace", 1, "great", "big"),)
GREAT = float(np.log(4))
TOY = replace(make_attack("pwws"), key="toy")


@dataclass
class Turning:
    """A randomised model: its answers are these classes, one after another; the class "" is a fault."""

    classes: Sequence[str]
    labels: tuple[str, ...] = LABELS
    deterministic: bool = False
    asked: list[TextInput] = field(default_factory=list)

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        said = [self.classes[(len(self.asked) + at) % len(self.classes)] for at in range(len(inputs))]
        self.asked += inputs
        if "" in said:
            raise RuntimeError("no power")
        return np.array([[0.8 if label == one else 0.1 for label in self.labels] for one in said])


def run_of(
    folder: Path,
    targeted: str | None = None,
    fingerprint: str | None = None,
    labels: Sequence[str] = LABELS,
    **fields: Any,
) -> AttackResult:
    """A finished run with one success on "a great film", which is positive: "a big film" was said to be negative."""
    spec = AttackSpec.of(model=len, data=[], attacks=(TOY,), targeted=targeted, similarity=False)
    model = {"reference": "toy", "labels": list(labels), "deterministic": True, "fingerprint": fingerprint}
    data = {"reference": "toy", "fingerprint": "", "rows": 1, "size": 1, "label_counts": {}, "ids": None}
    with begin(folder, spec, {"model": model, "data": data, "neighbours": None}, resume=False) as workspace:
        success = replace(record(0, "success"), **{"edits": EDITS, "perturbed_percent": 100 / 3, **fields})
        workspace.store.add("toy", success.id, CODEC.encode(success), status=success.status)
        result = AttackResult.of(workspace)
        result.write_summary()
    return result


def problems(run: AttackResult, classifier: Classifier) -> list[str]:
    verification = run.verify(classifier)
    assert verification.checked == 1
    assert verification.holds == (not verification.problems)
    return [problem.removeprefix("toy, example 0: ") for problem in verification.problems]


def draws(fooling: str, hits: int) -> Turning:
    return Turning([fooling] * hits + ["positive"] * (20 - hits))


def victim() -> WeightVictim:
    """Says what the record says: of "a big film" negative with 0.6, of "a great film" positive with 0.8."""
    return WeightVictim({"big": -float(np.log(1.5)), "great": GREAT})


@pytest.mark.parametrize(("hits", "holds"), [(20, True), (4, True), (3, False), (0, False)])
def test_a_success_on_a_randomised_model_must_fool_it_in_enough_draws(tmp_path: Path, hits: int, holds: bool) -> None:
    model = draws("negative", hits)
    assert problems(run_of(tmp_path), model) == (
        [] if holds else [f"fooled the model in {hits} of 20 fresh draws only"]
    )
    assert model.asked == ["a big film"] * 20


def test_any_other_class_is_a_hit_unless_there_was_a_target(tmp_path: Path) -> None:
    free, targeted = tmp_path / "free", tmp_path / "targeted"
    assert problems(run_of(free), draws("neutral", 20)) == []
    aimed = run_of(targeted, targeted="negative")
    assert problems(aimed, draws("negative", 20)) == []
    assert problems(aimed, draws("neutral", 20)) == ["fooled the model in 0 of 20 fresh draws only"]


def test_a_randomised_model_that_has_no_answer_cannot_be_asked(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"cannot be asked again about example 0: .*no power"):
        run_of(tmp_path).verify(Turning([""]))


def test_the_draws_of_a_defended_model_differ(tmp_path: Path) -> None:
    """Positive has a chance from 0.45 to 1: a tenth of the draws fools, so among 20 there are few, but not none."""
    model = Defended(name="noisy", defense=Noisy(0.45), inner=victim())
    (found,) = problems(run_of(tmp_path, fingerprint=model.fingerprint()), model)
    hits = int(found.removeprefix("fooled the model in ").split()[0])
    assert 0 < hits < 4


def test_a_deterministic_model_must_say_the_same_again(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    assert problems(run, victim()) == []
    assert problems(run, WeightVictim({"big": 1.0, "great": GREAT})) == ["recorded negative, now positive"]
    (clean,) = problems(run, WeightVictim({"big": -float(np.log(1.5)), "great": 2.0}))
    assert clean == "the scores of the clean text differ from the recorded ones"
    assert problems(run, WeightVictim({"big": -0.41, "great": GREAT})) == ["the scores differ from the recorded ones"]


def test_a_pair_is_asked_about_with_its_premise(tmp_path: Path) -> None:
    model = RandomVictim(seed=1, classes=2)
    clean, row = model.predict_proba([("it rains", "a great film"), ("it rains", "a big film")])
    assert clean.argmax() != row.argmax()
    fields: dict[str, Any] = {
        "premise": "it rains",
        "label": model.labels[int(clean.argmax())],
        "original_prediction": model.labels[int(clean.argmax())],
        "original_scores": tuple(clean.tolist()),
        "adversarial_prediction": model.labels[int(row.argmax())],
        "adversarial_scores": tuple(row.tolist()),
    }
    assert problems(run_of(tmp_path, labels=model.labels, **fields), model) == []


def test_a_forged_premise_is_noticed(tmp_path: Path) -> None:
    """The edit of the hypothesis is right, and the premise is said to have been edited without an edit."""
    run = run_of(tmp_path, premise="it rains", adversarial_premise="it snows")
    wrong = "the recorded edits do not lead from the original to the adversarial text"
    assert wrong in problems(run, victim())


def test_an_edit_outside_of_the_attacked_side_is_noticed(tmp_path: Path) -> None:
    edits = (Edit("replace", 1, "great", "big", "hypothesis"), Edit("replace", 1, "rains", "snows", "premise"))
    run = run_of(tmp_path, premise="it rains", adversarial_premise="it snows", edits=edits, perturbed_percent=200 / 3)
    found = problems(run, victim())
    assert found == ["edits outside of the hypothesis, which alone was attacked"]


def test_edits_must_lead_from_the_original_to_the_text(tmp_path: Path) -> None:
    run = run_of(tmp_path, edits=(Edit("replace", 1, "great", "small"),))
    assert problems(run, victim()) == ["the recorded edits do not lead from the original to the adversarial text"]


def test_the_true_label_is_no_success(tmp_path: Path) -> None:
    found = problems(run_of(tmp_path, label="negative"), victim())
    assert "the recorded prediction is the true label" in found
    assert "recorded as success, and the model said positive of the clean text" in found


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"adversarial_prediction": "neutral"}, "the adversarial scores do not say neutral"),
        ({"original_prediction": "neutral"}, "the original scores do not say neutral"),
        ({"status": "failed"}, "recorded as failed, with the adversarial text a big film"),
        ({"status": "skipped"}, "recorded as skipped, and the model said positive of the clean text"),
        ({"reason": "too long"}, "recorded as success, and the reason is too long"),
        ({"perturbed_percent": 10.0}, "recorded 10.0 % changed words, and there are 1 edits of 3"),
    ],
)
def test_the_fields_of_a_record_must_fit_together(tmp_path: Path, fields: dict[str, Any], problem: str) -> None:
    assert problem in problems(run_of(tmp_path, **fields), victim())


def test_another_model_is_noticed(tmp_path: Path) -> None:
    found = problems(run_of(tmp_path, fingerprint="abc"), victim())
    assert found == ["the model is not the one that was attacked: its fingerprint differs"]


def test_a_summary_that_does_not_follow_from_the_results_is_noticed(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    path = tmp_path / SUMMARY
    written = json.loads(path.read_text())
    written["attacks"]["toy"]["succeeded"] = 7
    path.write_text(json.dumps(written))
    assert problems(run, victim()) == [f"{SUMMARY}: attacks does not follow from the results"]
    path.write_text("{")
    with pytest.raises(RunError, match="cannot be read"):
        run.verify(victim())
    path.unlink()
    assert problems(run, victim()) == [f"{SUMMARY} is missing: the job was interrupted before its end"]


def test_a_defense_that_asks_a_language_model_is_verified_with_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts: list[Sequence[str]] = []

    def surprises(self: FillingService, requests: Sequence[Surprisal]) -> list[tuple[float, ...]]:
        prompts.extend(request.words for request in requests)
        return [(1.0,) * len(request.words) for request in requests]

    monkeypatch.setattr(FillingService, "answer_surprisals", surprises)
    model = Defended(name="ranmask", defense=RanMask(rate=0.3, copies=5, sampling="lm"), inner=victim())
    found = problems(run_of(tmp_path, fingerprint=model.fingerprint()), model)
    assert found == []
    assert set(prompts) == {("a", "big", "film")}
