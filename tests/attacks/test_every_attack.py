"""What holds of every attack on the list: pairs, targets, texts with little or nothing to attack."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from stockade.attacks.registry import attacks, make_attack, task_of
from stockade.attacks.trial import Trial, attack_example
from stockade.core.example import Example
from stockade.core.seeds import derive_rng
from stockade.core.text import Text
from stockade.engine.language import EmbeddingService, FillingService
from stockade.engine.scheduler import Scheduler, Search
from stockade.engine.scoring import ScoringService
from stockade.models.adapters import load_model
from stockade.models.huggingface import HuggingFaceClassifier
from stockade.models.language import LanguageModels
from tests.models.conftest import tiny_bert, tiny_tokenizer
from tests.toys import RandomVictim, WeightVictim

WHITE_BOX = ("hotflip", "gs-gr", "gs-ec", "asmin-gr", "asmin-ec", "asmax-gr", "asmax-ec")
NEEDS_FILE = ("rules",)  # see test_rules.py
ON_CLASSIFIERS = {name: entry for name, entry in attacks().items() if task_of(entry.implementation) == "classification"}
BLACK_BOX = [name for name in ON_CLASSIFIERS if name not in (*WHITE_BOX, *NEEDS_FILE)]
EVERY_PRESET = [
    f"{name}@{preset}" for name, entry in ON_CLASSIFIERS.items() for preset in entry.presets if name not in NEEDS_FILE
]
LANGUAGE = LanguageModels()


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    """The real masked LM and sentence encoder, loaded once."""
    masked_lm, encoder = LANGUAGE.make_masked_lm(), LANGUAGE.make_encoder()
    return {"filling": FillingService(lambda: masked_lm), "embedding": EmbeddingService(lambda: encoder)}


@cache
def attentive_victim() -> Any:
    """A small BERT with weights drawn at random."""
    return HuggingFaceClassifier(tiny_bert(), tiny_tokenizer())


def run(victim: Any, text: Text, reference: str, services: dict[str, Any], **options: Any) -> Trial:
    label = int(victim.predict_proba([text.input])[0].argmax())
    target = options.pop("target", None)
    budget = options.pop("budget", None)
    example = Example("0", text, label, target(label) if target else None)
    named = make_attack(reference, **options)

    async def start() -> Trial:
        return await attack_example(named.attack, example, derive_rng(0, "0", named.name))

    scheduler = Scheduler.for_classifier(ScoringService(victim), **services)
    (finished,) = scheduler.run([Search(start, budget)])
    assert isinstance(finished.result, Trial), finished.result
    assert budget is None or finished.queries <= budget
    return finished.result


PREMISE = "The good film was shown twice."
HYPOTHESIS = "A good film was shown to a happy crowd in the old town."


@pytest.mark.parametrize("name", BLACK_BOX)
def test_of_a_pair_only_the_hypothesis_changes(name: str, services: dict[str, Any]) -> None:
    trial = run(RandomVictim(), Text.parse(HYPOTHESIS, premise=PREMISE), name, services, max_changed=0.5)
    assert trial.status == "success", trial.reason
    assert trial.text is not None
    assert trial.text.premise == PREMISE
    assert str(trial.text) != HYPOTHESIS


@pytest.mark.parametrize("name", BLACK_BOX)
def test_of_a_pair_only_the_premise_changes_if_that_is_attacked(name: str, services: dict[str, Any]) -> None:
    """The sides are swapped, so that the premise is the longer one."""
    text = Text.parse(PREMISE, premise=HYPOTHESIS, sides="premise")
    trials = [run(RandomVictim(seed), text, name, services, max_changed=0.5) for seed in range(3)]
    found = [trial.text for trial in trials if trial.status == "success" and trial.text is not None]
    assert found
    for changed in found:
        assert changed.hypothesis == PREMISE
        assert changed.premise != HYPOTHESIS
        assert {edit.side for edit in changed.edits} == {"premise"}


@pytest.mark.parametrize("name", [*BLACK_BOX, *WHITE_BOX])
def test_both_sides_of_a_pair_are_within_reach(name: str, services: dict[str, Any]) -> None:
    """Over a few victims without any structure each side is edited by some success."""
    seen: set[str | None] = set()
    for seed in range(12):
        pair = ("the film was bad and long", "a great film is not bad") if name in WHITE_BOX else (PREMISE, HYPOTHESIS)
        victim: Any = attentive_victim() if name in WHITE_BOX else RandomVictim(seed)
        words = " ".join(pair[0].split()[seed % 7 :])
        trial = run(victim, Text.of((words, pair[1]), "both"), name, services)
        if trial.status == "success" and trial.text is not None:
            changed = (trial.text.premise != words, trial.text.hypothesis != pair[1])
            sides = {edit.side for edit in trial.text.edits}
            assert changed == ("premise" in sides, "hypothesis" in sides)
            seen |= sides
        if seen == {"premise", "hypothesis"}:
            break
    assert name in WHITE_BOX or seen == {"premise", "hypothesis"}


@pytest.mark.parametrize("name", BLACK_BOX)
def test_a_targeted_attack_ends_in_the_target_class(name: str, services: dict[str, Any]) -> None:
    found = []
    for seed in range(6):
        victim = RandomVictim(seed)
        trial = run(victim, Text.parse(HYPOTHESIS), name, services, target=lambda label: (label + 1) % 3)
        if trial.status == "success":
            assert trial.clean is not None
            assert trial.scores is not None
            found.append(trial.scores.label == (trial.clean.label + 1) % 3)
    assert found
    assert all(found)


@pytest.mark.parametrize("reference", EVERY_PRESET)
@pytest.mark.parametrize(
    "string",
    [
        "",
        "😀 🎉 !!!",
        "ok",
        "the and of it was",
        "42",
        "плохой фильм 映画 was très bon",
        "a\u0301 \u200d x",
        "\ud800 film",
    ],
    ids=["empty", "emoji", "one-word", "stop-words", "number", "scripts", "marks", "surrogate"],
)
def test_little_to_attack_ends_in_a_status_and_a_reason(reference: str, string: str, services: dict[str, Any]) -> None:
    if reference.partition("@")[0] in WHITE_BOX:
        victim: Any = attentive_victim() if reference.startswith("as") else load_model("builtin:sentiment-cnn")
        if string == "\ud800 film":
            pytest.skip("the model itself refuses a lone surrogate")
    else:
        victim = WeightVictim({}, bias=1.0)
    trial = run(victim, Text.parse(string), reference, services)
    assert trial.status in ("failed", "success"), trial.reason
    assert trial.status == "success" or trial.reason


@pytest.mark.parametrize("name", [name for name in BLACK_BOX if name not in ("bae-i", "bae-r/i", "bae-r+i")])
def test_five_thousand_words_stay_within_the_budget(name: str, services: dict[str, Any]) -> None:
    text = Text.parse(" ".join(["the good old film was shown"] * 834)[: 5000 * 6])
    trial = run(WeightVictim({}, bias=1.0), text, name, services, budget=300)
    assert trial.status == "failed"
    assert trial.reason is not None
    assert "300 queries" in trial.reason or "budget" in trial.reason


@pytest.mark.parametrize("name", BLACK_BOX)
def test_the_share_of_changed_words_is_never_exceeded(name: str, services: dict[str, Any]) -> None:
    for seed in range(3):
        trial = run(RandomVictim(seed, classes=2), Text.parse(HYPOTHESIS), name, services, max_changed=0.17)
        if trial.text is not None and trial.status == "success":
            assert len(trial.text.edits) <= 2
