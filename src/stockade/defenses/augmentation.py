"""Adversarial data augmentation: train on texts that an attack, or a file of replacement rules, has changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from stockade.attacks.registry import NamedAttack, make_attack
from stockade.attacks.rules import BUDGET, rule_labels
from stockade.attacks.watch import Watch
from stockade.attacks.word_attack import check_max_changed
from stockade.core.errors import ModelError, OptionError, RunError, SearchStopped, StockadeError
from stockade.core.example import Example
from stockade.core.protocols import Classifier
from stockade.core.registry import published
from stockade.core.seeds import derive_rng, derive_seed
from stockade.core.text import Text, TextInput
from stockade.engine.composite import make_scoring
from stockade.engine.language import EmbeddingService, FillingService
from stockade.engine.requests import Score, VisibleWords
from stockade.engine.scheduler import Scheduler, Search
from stockade.lexicon.rules import apply_to_text, load_rules, rules_hash
from stockade.models.adapters import load_model
from stockade.models.language import LanguageModels

Variant = Literal["replace", "add"]


@published(
    "augmentation",
    paper="Zeng et al. 2021, RanMASK, section 4.3",
    presets={"paper": {}, "authors": {"variant": "replace"}},
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Augmentation:
    """Train on texts that were attacked before, the strongest text of each attack, successful or not.

    Texts that the attacked model gets wrong are taken as they are. PWWS is the default because it is fast: its
    candidates are looked up, not computed by a language model, and it asks the model about all of them at once.

    With a file of rules no model is attacked: each text is changed by the rules of its own class, and texts that no
    rule changes are left out.

    Differences to the papers: texts come from one attack on the trained model, not anew in every epoch.

    Parameters
    ----------
    model
        The trained model that is attacked: its folder.
    attack
        The attack, with options and preset as everywhere.
    rules
        Word replacement rules to apply in place of an attack: a file that `stockade rules mine` wrote.
    max_changed
        With rules: the largest share of the words that they may change.
    variant
        `add` attacks all texts and adds the results to the data. `replace` attacks a random half of the texts and
        trains on the results together with another random half of the originals, so that there are as many texts as
        before.
    words
        Texts of fewer words are not attacked.
    budget
        Queries per text; None for no limit.
    """

    model: str = ""
    attack: str = "pwws"
    rules: str = ""
    max_changed: float = BUDGET
    variant: Variant = "add"
    words: int = 3
    budget: int | None = None

    def __post_init__(self) -> None:
        if self.words < 1 or (self.budget is not None and self.budget < 1):
            raise OptionError(
                f"augmentation attacks texts of {self.words} words with a budget of {self.budget}, expected at least 1."
            )
        if self.rules and self.model:
            raise OptionError(
                f"augmentation changes texts by the rules of {self.rules} or by an attack on {self.model}, not by "
                "both: leave out one of the options rules and model."
            )
        check_max_changed(self.max_changed)

    def resources(self) -> Mapping[str, str]:
        """The fingerprint of the rules, which a resumed training compares."""
        return {"rules": rules_hash(self.rules)} if self.rules else {}

    def rewrite(
        self, inputs: Sequence[TextInput], labels: Sequence[int], classes: tuple[str, ...], seed: int
    ) -> tuple[list[TextInput], list[int]]:
        """The texts to train on, with the numbers of their classes."""
        rows, changed = (self._ruled if self.rules else self._attacked)(inputs, labels, classes, seed)
        originals = self.original_rows(len(inputs), len(rows), seed)
        return [*(inputs[row] for row in originals), *changed], [labels[row] for row in (*originals, *rows)]

    def _attacked(
        self, inputs: Sequence[TextInput], labels: Sequence[int], classes: tuple[str, ...], seed: int
    ) -> tuple[list[int], list[TextInput]]:
        """The rows that were attacked, and what became of them."""
        if not self.model:
            raise OptionError(
                "augmentation attacks a trained model, but none was named. Name its folder: --defense "
                "augmentation:model=models/m, or rules: --defense augmentation:rules=rules.jsonl"
            )
        victim = load_victim(self.model, classes)
        rows = self.attacked_rows(inputs, seed)
        if not rows:
            raise OptionError(
                f"None of the {len(inputs):,} training texts has {self.words} words, so augmentation would attack none "
                "of them: give fewer, as in augmentation:words=1."
            )
        return rows, attacked_texts(
            victim,
            [inputs[row] for row in rows],
            [classes[labels[row]] for row in rows],
            self.attack,
            budget=self.budget,
            seed=seed,
        )

    def _ruled(
        self, inputs: Sequence[TextInput], labels: Sequence[int], classes: tuple[str, ...], seed: int
    ) -> tuple[list[int], list[TextInput]]:
        """The rows that the rules change, and what becomes of them."""
        names, rules = rule_labels(self.rules, classes, "the data"), load_rules(self.rules)
        changed: dict[int, TextInput] = {}
        for row in self.attacked_rows(inputs, seed):
            label = names.get(labels[row])
            text = Text.of(inputs[row])
            ruled = text if label is None else apply_to_text(text, label, rules, self.max_changed)
            if ruled.edits:
                changed[row] = ruled.input
        if not changed:
            raise OptionError(
                f"The rules of {self.rules} (for {', '.join(rules.labels)}) change none of the {len(inputs):,} "
                f"training texts of the classes {', '.join(classes)}: allow more changes, as in "
                "augmentation:max_changed=0.5, or give rules that were mined from such texts."
            )
        return list(changed), list(changed.values())

    def attacked_rows(self, inputs: Sequence[TextInput], seed: int) -> list[int]:
        """Which texts are attacked: those with enough words, of a random half or of all."""
        rows = list(range(len(inputs)))
        if self.variant == "replace":
            rows = sorted(derive_rng(seed, "augmentation", "attacked").sample(rows, len(rows) // 2))
        return [row for row in rows if _words(inputs[row]) >= self.words]

    def original_rows(self, texts: int, attacked: int, seed: int) -> list[int]:
        """Which texts are trained on as they are: all, or as many as make up the number of texts."""
        if self.variant == "add":
            return list(range(texts))
        return sorted(derive_rng(seed, "augmentation", "kept").sample(range(texts), texts - attacked))


def _words(text: TextInput) -> int:
    return len(Text.of(text))


def load_victim(reference: str, classes: Sequence[str]) -> Classifier:
    """The model that is attacked; it must have the classes of the data."""
    victim = load_model(reference)
    if set(victim.labels) != set(classes):
        raise ModelError(
            f"The model {reference} has the classes {', '.join(victim.labels)}, but the data has {', '.join(classes)}; "
            "expected the same. Attack a model that was trained on such data."
        )
    return victim


@dataclass(frozen=True, slots=True)
class _Attacked:
    """A text as an attack left it; `fault` says what went wrong, if anything did."""

    row: int
    text: Text
    fault: str | None = None


def attacked_texts(
    victim: Classifier,
    inputs: Sequence[TextInput],
    labels: Sequence[str],
    attack: str,
    *,
    budget: int | None = None,
    seed: int = 0,
) -> list[TextInput]:
    """Each text as the attack leaves it: its success, else the strongest text it tried, else the text itself.

    A text's random choices depend on the seed and its place in the data. A fault in one search costs that text only;
    when all searches have one, it is raised.
    """
    named = make_attack(attack)
    language = LanguageModels()
    filling, embedding = FillingService(language.make_masked_lm), EmbeddingService(language.make_encoder)
    scoring = make_scoring(victim, filling=filling, embedding=embedding)
    scheduler = Scheduler.for_classifier(scoring, filling=filling, embedding=embedding)
    texts = list(map(Text.of, inputs))
    numbers = [victim.labels.index(label) for label in labels]
    searches = [
        _search(row, Example(str(row), text, label), named, budget, seed)
        for row, (text, label) in enumerate(zip(texts, numbers, strict=True))
    ]
    changed = list(inputs)
    faults = []
    for ended in scheduler.run(searches):
        attacked = ended.result
        assert isinstance(attacked, _Attacked)
        changed[attacked.row] = attacked.text.input
        faults += [] if attacked.fault is None else [attacked.fault]
    if faults and len(faults) == len(inputs):
        raise RunError(f"The attack {attack} broke down on all {len(inputs)} texts, on the first because {faults[0]}.")
    return changed


def _search(row: int, example: Example, named: NamedAttack, budget: int | None, seed: int) -> Search[_Attacked]:
    async def strongest() -> _Attacked:
        try:
            return _Attacked(row, await _strongest(example, named, seed))
        except SearchStopped as stopped:
            return _Attacked(row, example.text, str(stopped))
        except StockadeError:
            raise
        except Exception as error:  # a fault in one search must not cost the others
            return _Attacked(row, example.text, f"the attack raised {type(error).__name__}: {error}")

    weight = len(example.text) * len(str(example.text))
    return Search(strongest, budget, weight, derive_seed(seed, example.id, named.name, "draws"))


async def _strongest(example: Example, named: NamedAttack, seed: int) -> Text:
    clean = (await Score([example.text], counted=False))[0]
    if clean.label != example.label or not example.text.words:
        return example.text
    visible = await VisibleWords(example.text)
    if not visible:
        return example.text
    example = example if len(visible) == len(example.text) else replace(example, visible=visible)
    outcome = await Watch(lambda: named.attack.search(example, derive_rng(seed, example.id, named.name))).outcome()
    return example.text if outcome.text is None else outcome.text
