"""Runs one attack on one sentence against a toy translator, through the engine."""

from __future__ import annotations

from dataclasses import dataclass

from stockade.attacks.translation_trial import TranslationTrial, attack_translation
from stockade.core.attacked_translation import TranslationAttack, TranslationExample
from stockade.core.seeds import derive_rng
from stockade.core.text import Text
from stockade.core.translation import Translator
from stockade.engine.scheduler import Scheduler, Search
from stockade.engine.translation import TranslationService, translator_services


@dataclass(frozen=True)
class Result:
    trial: TranslationTrial
    queries: int

    @property
    def source(self) -> str:
        assert self.trial.text is not None, self.trial.reason
        return str(self.trial.text)


def attack(
    translator: Translator,
    source: str,
    method: TranslationAttack,
    *,
    reference: str = "",
    keywords: tuple[str, ...] = (),
    language: str | None = None,
    seed: int = 0,
    budget: int | None = None,
    max_words: int | None = None,
) -> Result:
    example = TranslationExample(
        id="0", text=Text.parse(source), reference=reference, keywords=keywords, language=language
    )

    async def start() -> TranslationTrial:
        return await attack_translation(
            method, example, derive_rng(seed, "0"), deterministic=translator.deterministic, max_words=max_words
        )

    scheduler = Scheduler(translator_services(TranslationService(translator)))
    (finished,) = scheduler.run([Search(start, budget)])
    assert isinstance(finished.result, TranslationTrial), finished.result
    return Result(finished.result, finished.queries)
