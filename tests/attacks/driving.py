"""Runs one attack on one text against a toy victim, through the engine."""

from __future__ import annotations

from dataclasses import dataclass

from stockade.attacks.trial import Trial, attack_example
from stockade.core.example import Example
from stockade.core.protocols import (
    Attack,
    Classifier,
    Filling,
    MaskedLanguageModel,
    SentenceEncoder,
    is_label_only,
)
from stockade.core.seeds import derive_rng
from stockade.core.text import Text
from stockade.engine.language import EmbeddingService, FillingService
from stockade.engine.scheduler import Scheduler, Search
from stockade.engine.scoring import ScoringService


@dataclass(frozen=True)
class Result:
    trial: Trial
    queries: int
    rows: int

    @property
    def words(self) -> tuple[str, ...]:
        assert self.trial.text is not None, self.trial.reason
        return self.trial.text.words


def attack(
    victim: Classifier,
    string: str,
    attack: Attack,
    *,
    label: int = 1,
    target: int | None = None,
    budget: int | None = None,
    seed: int = 0,
    masked_lm: MaskedLanguageModel | None = None,
    encoder: SentenceEncoder | None = None,
) -> Result:
    example = Example("0", Text.parse(string), label, target)

    async def start() -> Trial:
        rng = derive_rng(seed, "0", "test")
        return await attack_example(attack, example, rng, label_only=is_label_only(victim))

    scheduler = Scheduler.for_classifier(
        ScoringService(victim),
        filling=FillingService(lambda: masked_lm) if masked_lm is not None else None,
        embedding=EmbeddingService(lambda: encoder) if encoder is not None else None,
    )
    (finished,) = scheduler.run([Search(start, budget)])
    assert isinstance(finished.result, Trial), finished.result
    return Result(finished.result, finished.queries, finished.rows)


def guesses(*words: str, score: float = 9.0) -> tuple[Filling, ...]:
    """What a masked LM would also write in a place, by falling score; `##` marks a piece of a word."""
    return tuple(
        Filling(w.removeprefix("##"), score - i, not w.startswith("##"), hash(w) % 10_000) for i, w in enumerate(words)
    )
