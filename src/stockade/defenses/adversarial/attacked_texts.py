"""Texts as an attack on a trained model leaves them, through the engine like any attack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stockade.attacks.registry import NamedAttack, make_attack
from stockade.core.errors import BudgetExhausted, ModelError, RunError, SearchStopped, StockadeError
from stockade.core.example import Example
from stockade.core.protocols import Classifier
from stockade.core.seeds import derive_rng, derive_seed
from stockade.core.text import Text, TextInput
from stockade.engine.composite import make_scoring
from stockade.engine.language import EmbeddingService, FillingService
from stockade.engine.requests import Score, VisibleWords
from stockade.engine.scheduler import Scheduler, Search
from stockade.models import load_model
from stockade.models.language import LanguageModels


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
class _Left:
    """What an attack left of one text; `fault` says what went wrong, if anything did."""

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
    """Each text as the attack leaves it: the one it found, else the strongest it tried, else the text itself.

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
    found = list(inputs)
    faults = []
    for ended in scheduler.run(searches):
        left = ended.result
        assert isinstance(left, _Left)
        found[left.row] = left.text.input
        faults += [] if left.fault is None else [left.fault]
    if faults and len(faults) == len(inputs):
        raise RunError(f"The attack {attack} broke down on all {len(inputs)} texts, on the first because {faults[0]}.")
    return found


def _search(row: int, example: Example, named: NamedAttack, budget: int | None, seed: int) -> Search[_Left]:
    async def strongest() -> _Left:
        try:
            return _Left(row, await _strongest(example, named, seed))
        except BudgetExhausted:
            return _Left(row, example.text)
        except SearchStopped as stopped:
            return _Left(row, example.text, str(stopped))
        except StockadeError:
            raise
        except Exception as error:  # a fault in one search must not cost the others
            return _Left(row, example.text, f"the attack raised {type(error).__name__}: {error}")

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
    outcome = await named.attack.search(example, derive_rng(seed, example.id, named.name))
    return example.text if outcome.text is None else outcome.text
