"""Training on texts that an attack has changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from stockade.attacks.registry import NamedAttack
from stockade.core.errors import DataError, ModelError, OptionError, RunError
from stockade.core.example import Example
from stockade.core.protocols import Attack
from stockade.core.records import Outcome
from stockade.core.text import Text, TextInput
from stockade.defenses import augmentation as module
from stockade.defenses.augmentation import Augmentation, attacked_texts, load_victim
from stockade.defenses.chain import combined_objective, combined_rewrite
from stockade.defenses.registry import make_defense
from stockade.engine.requests import Score
from stockade.lexicon.rules import Rule, RuleSet, load_rules, rules_hash, write_rules
from stockade.training.objective import RewritingDefense
from tests.defenses.adversarial_kit import CLASSES
from tests.toys import WeightVictim
from tests.training.tiny import rows, tiny_origin, train_tiny, without_plots

VICTIM = WeightVictim({"good": 2.0, "fine": 1.0, "meh": -1.0, "bad": -2.0})


class Swap:
    """Finds a text with "meh" for "good"; for "fine" it only gets as far as "good"; on "crash" it breaks."""

    async def search(self, example: Example, rng: Random) -> Outcome:
        words = [word.lower() for word in example.text.words]
        await Score([example.text])
        if "crash" in words:
            raise ValueError("broken")
        if "good" in words:
            return Outcome.found(example.text.replace(words.index("good"), "meh"))
        if "fine" in words:
            return Outcome.failed("not fooled", example.text.replace(words.index("fine"), "good"))
        return Outcome.failed("nothing tried")


def named(attack: Attack) -> Callable[[str], NamedAttack]:
    """Stands for `make_attack`: the attack under any name."""
    return lambda name: NamedAttack(name=name, preset="paper", key=name, method=attack)


@pytest.fixture(autouse=True)
def swap(monkeypatch: pytest.MonkeyPatch) -> None:
    """The attack of these tests, a victim to be named "toy", and no curves on the page, which take long."""
    monkeypatch.setattr(module, "make_attack", named(Swap()))
    monkeypatch.setattr(module, "load_model", lambda reference: VICTIM)
    without_plots(monkeypatch)


def test_the_strongest_text_is_taken_whether_it_fools_the_model_or_not() -> None:
    texts: list[TextInput] = ["a good film", "so fine!", "a bad film", "Good", ("a story", "good one"), "crash good"]
    labels = ["positive", "positive", "negative", "negative", "positive", "positive"]
    assert attacked_texts(VICTIM, texts, labels, "swap") == [
        "a meh film",  # found
        "so good!",  # failed, but tried
        "a bad film",  # nothing tried
        "Good",  # the model is wrong on it anyway
        ("a story", "meh one"),
        "crash good",  # the attack broke down
    ]


def test_an_attack_that_always_breaks_down_is_an_error() -> None:
    message = r"broke down on all 2 texts, on the first because the attack raised ValueError: broken\."
    with pytest.raises(RunError, match=message):
        attacked_texts(VICTIM, ["crash good", "crash fine"], ["positive"] * 2, "swap")


def test_a_budget_that_is_used_up_leaves_the_text() -> None:
    class Greedy:
        async def search(self, example: Example, rng: Random) -> Outcome:
            await Score([example.text] * 2)
            await Score([example.text])
            return Outcome.found(example.text.replace(0, "meh"))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "make_attack", named(Greedy()))
        assert attacked_texts(VICTIM, ["good"], ["positive"], "greedy", budget=2) == ["good"]
        assert attacked_texts(VICTIM, ["good"], ["positive"], "greedy", budget=3) == ["meh"]


def test_random_choices_depend_on_seed_and_place_only() -> None:
    class Dice:
        async def search(self, example: Example, rng: Random) -> Outcome:
            return Outcome.failed("no", example.text.replace(0, f"word{rng.randrange(10**6)}"))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "make_attack", named(Dice()))
        first = attacked_texts(VICTIM, ["good"] * 3, ["positive"] * 3, "dice", seed=1)
        assert len(set(first)) == 3
        assert attacked_texts(VICTIM, ["good"] * 2, ["positive"] * 2, "dice", seed=1) == first[:2]
        assert attacked_texts(VICTIM, ["good"] * 3, ["positive"] * 3, "dice", seed=2) != first


TEXTS: list[TextInput] = [f"a {word} film number{i}" for i, word in enumerate(["good", "fine", "bad", "odd"] * 5)]
TEXTS += ["good one", "fine"]  # too short to be attacked
LABELS = [1, 1, 0, 1] * 5 + [1, 1]


def attacked(text: TextInput) -> TextInput:
    assert isinstance(text, str)
    changed = {"a good": "a meh", "a fine": "a good"}
    return next((text.replace(old, new) for old, new in changed.items() if text.startswith(old)), text)


def test_add_keeps_all_texts_and_adds_what_the_attack_left() -> None:
    inputs, labels = Augmentation(model="toy").rewrite(TEXTS, LABELS, CLASSES, 0)
    assert inputs == [*TEXTS, *map(attacked, TEXTS[:20])]
    assert labels == [*LABELS, *LABELS[:20]]


def test_replace_keeps_the_number_of_texts() -> None:
    defense = Augmentation(model="toy", variant="replace")
    inputs, labels = defense.rewrite(TEXTS, LABELS, CLASSES, 4)
    assert len(inputs) == len(labels) == 22
    rows_attacked = defense.attacked_rows(TEXTS, 4)
    assert 9 <= len(rows_attacked) <= 11  # a half of 22 without those of the two short texts that are in it
    assert all(row < 20 for row in rows_attacked)
    originals = inputs[: 22 - len(rows_attacked)]
    assert len(set(originals)) == len(originals)
    assert set(originals) <= set(TEXTS)
    assert inputs[len(originals) :] == [attacked(TEXTS[row]) for row in rows_attacked]
    wanted = dict(zip(TEXTS, LABELS, strict=True)) | {
        attacked(text): label for text, label in zip(TEXTS[:20], LABELS, strict=False)
    }
    assert [wanted[text] for text in inputs] == labels
    assert defense.rewrite(TEXTS, LABELS, CLASSES, 4) == (inputs, labels)
    assert defense.rewrite(TEXTS, LABELS, CLASSES, 5)[0] != inputs


def test_classes_are_matched_by_name() -> None:
    inputs, labels = Augmentation(model="toy").rewrite(["a good film"] * 2, [0, 0], ("positive", "negative"), 0)
    assert inputs == ["a good film"] * 2 + ["a meh film"] * 2
    assert labels == [0] * 4
    with pytest.raises(ModelError, match="has the classes negative, positive, but the data has no, yes"):
        load_victim("toy", ("no", "yes"))


def test_bad_options() -> None:
    with pytest.raises(OptionError, match="none was named"):
        make_defense("augmentation").defense.rewrite(TEXTS, LABELS, CLASSES, 0)
    with pytest.raises(OptionError, match="variant"):
        make_defense("augmentation:variant=half")
    with pytest.raises(OptionError, match="budget of 0"):
        make_defense("augmentation:budget=0")
    with pytest.raises(OptionError, match="None of the 22 training texts has 1000 words"):
        Augmentation(model="toy", words=1000).rewrite(TEXTS, LABELS, CLASSES, 0)


def test_it_acts_in_training_by_rewriting_alone() -> None:
    named = make_defense("augmentation:model=toy")
    assert isinstance(named.defense, RewritingDefense)
    assert (named.entry.trains, named.entry.answers) == (True, False)
    assert combined_objective([named]) is None


def test_only_the_training_texts_are_rewritten_before_the_model_is_built_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: dict[str, Any] = {"built": [], "rewritten": 0}
    rewrite = Augmentation.rewrite

    def counted(*arguments: Any) -> Any:
        calls["rewritten"] += 1
        return rewrite(*arguments)

    monkeypatch.setattr(Augmentation, "rewrite", counted)
    origin = tiny_origin()
    build = origin.builder
    assert build is not None

    def builder(texts: Any, classes: Any, seed: int) -> Any:
        calls["built"].append(tuple(texts))
        return build(texts, classes, seed)

    def run(resume: bool = False, stop: int | None = None) -> Any:
        def watch(progress: Any) -> None:
            if progress.done == stop:
                raise RuntimeError("power cut")

        return train_tiny(
            tmp_path / "m",
            origin=replace(origin, builder=builder),
            defenses=[make_defense("augmentation:model=toy")],
            resume=resume,
            observer=watch,
        )

    with pytest.raises(RuntimeError, match="power cut"):
        run(stop=3)
    trained = run(resume=True)
    assert calls["rewritten"] == 1  # the second time the folder had them
    first, again = (Counter(texts) for texts in calls["built"])
    assert first == again
    assert any("meh" in text for text in first)
    data = trained.manifest.inputs["data"]
    assert data["validation_texts"] == 6
    originals = calls["built"][0][:54]
    assert set(originals) <= {text for text, _ in rows(60)}
    long_texts = sum(len(text.split()) >= 3 for text in originals)
    assert data["train_texts"] == sum(first.values()) == 54 + long_texts
    assert trained.manifest.spec["defenses"][0]["name"] == "augmentation"


def test_without_a_rewriting_defense_there_is_no_rewrite() -> None:
    assert combined_rewrite([make_defense("ranmask"), make_defense("pgd")]) is None


def test_the_attack_is_told_what_the_model_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a text that is cut after two words no third is tried; one of which nothing is read stays."""

    class Windowed(WeightVictim):
        def visible_words(self, texts: list[Text]) -> list[range]:
            return [range(0 if text.words[0] == "unread" else min(2, len(text.words))) for text in texts]

    class Marking:
        async def search(self, example: Example, rng: Random) -> Outcome:
            return Outcome.found(example.text.replace_all(dict.fromkeys(example.indices, "x")))

    monkeypatch.setattr(module, "make_attack", named(Marking()))
    texts: list[TextInput] = ["good good good", "good", "unread good"]
    assert attacked_texts(Windowed(VICTIM.weights), texts, ["positive"] * 3, "mark") == ["x x good", "x", "unread good"]


def test_the_texts_that_are_kept_are_drawn_apart_from_those_that_are_attacked() -> None:
    """Two random halves of forty texts have some in common, not all."""
    defense = Augmentation(model="toy", variant="replace", words=1)
    texts: list[TextInput] = ["good film"] * 40
    for seed in range(5):
        attacked, originals = defense.attacked_rows(texts, seed), defense.original_rows(40, 20, seed)
        assert len(attacked) == len(originals) == 20
        assert 0 < len(set(attacked) & set(originals)) < 20


@pytest.fixture
def rules(tmp_path: Path) -> str:
    path = tmp_path / "rules.jsonl"
    found = (
        Rule("positive", "good", "decent", 2.0),
        Rule("positive", "film", "movie", 1.0),
        Rule("negative", "bad", "poor", 1.0),
    )
    write_rules(path, RuleSet(found))
    return str(path)


def test_rules_change_each_text_by_the_rules_of_its_own_class(rules: str) -> None:
    texts: list[TextInput] = [
        "A good bad film",
        "a good bad film",
        "nothing to change",
        "bad film",
        ("so", "a good film"),
    ]
    inputs, labels = Augmentation(rules=rules, max_changed=0.5).rewrite(texts, [1, 0, 1, 0, 1], CLASSES, 0)
    assert inputs[:5] == texts
    assert inputs[5:] == ["A decent bad movie", "a good poor film", ("so", "a decent film")]
    assert labels == [1, 0, 1, 0, 1, 1, 0, 1]
    short, _ = Augmentation(rules=rules, max_changed=0.5, words=1).rewrite(texts, [1, 0, 1, 0, 1], CLASSES, 0)
    assert short[7] == "poor film"
    fewer, _ = Augmentation(rules=rules, max_changed=0.25).rewrite(texts, [1, 0, 1, 0, 1], CLASSES, 0)
    assert fewer[5:] == ["A decent bad film", "a good poor film"]


def test_rules_that_replace_keep_the_number_of_texts(rules: str) -> None:
    texts: list[TextInput] = [f"a good film number{i}" for i in range(20)]
    inputs, labels = Augmentation(rules=rules, variant="replace").rewrite(texts, [1] * 20, CLASSES, 3)
    assert len(inputs) == len(labels) == 20
    assert sum("decent" in text for text in inputs) == 10


def test_rules_that_do_not_fit_are_refused(rules: str, tmp_path: Path) -> None:
    with pytest.raises(
        OptionError, match=r"\(for positive, negative\) change none of the 2 training texts of the classes"
    ):
        Augmentation(rules=rules).rewrite(["nothing to change here", "nor here"], [1, 0], CLASSES, 0)
    with pytest.raises(
        DataError, match=r'"positive" \(found: positive, negative\), which is no class of the data \(x, y'
    ):
        Augmentation(rules=rules).rewrite(TEXTS, LABELS, ("x", "y"), 0)
    with pytest.raises(DataError, match="There is no file of rules"):
        Augmentation(rules=str(tmp_path / "none")).resources()
    with pytest.raises(OptionError, match="leave out one of the options rules and model"):
        make_defense(f"augmentation:rules={rules},model=toy")
    with pytest.raises(OptionError, match="expected a share of the words above 0"):
        make_defense(f"augmentation:rules={rules},max_changed=30")


def test_a_training_is_not_resumed_with_other_rules(rules: str, tmp_path: Path) -> None:
    words = sorted({word for text, _ in rows(60) for word in text.split()})
    write_rules(rules, RuleSet(tuple(Rule("positive", word, "decent", 1.0) for word in words if word != "decent")))

    def run(resume: bool = False, stop: int | None = None) -> Any:
        def watch(progress: Any) -> None:
            if progress.done == stop:
                raise RuntimeError("power cut")

        defenses = [make_defense(f"augmentation:rules={rules},max_changed=1")]
        return train_tiny(tmp_path / "m", defenses=defenses, resume=resume, observer=watch)

    with pytest.raises(RuntimeError, match="power cut"):
        run(stop=3)
    before = Path(rules).read_bytes()
    write_rules(rules, RuleSet(load_rules(rules).rules[:-1]))
    with pytest.raises(RunError, match=r"files\.augmentation\.rules was .*, now"):
        run(resume=True)
    Path(rules).write_bytes(before)
    trained = run(resume=True)
    assert trained.manifest.inputs["files"] == {"augmentation": {"rules": rules_hash(rules)}}
