"""Translations for many searches: asked once, charged, contained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from stockade.core.errors import ModelError, ScoringFailed
from stockade.core.text import Text
from stockade.core.translation import ZeroableSource
from stockade.engine.requests import VisibleWords, Vocabulary
from stockade.engine.scheduler import Finished, Scheduler, Search
from stockade.engine.translation import TranslationService, translator_services
from stockade.engine.translation_requests import Attempt, Retranslate, SourceVectors, Translate, TranslationLoss
from tests.toy_translators import LogitTranslator, TableTranslator

TABLE = {"a": "ein", "dog": "Hund", "cat": "Katze"}
LOGITS = {"a": {"ein": 2.0}, "dog": {"Hund": 3.0, "Katze": 1.0}, "cat": {"Katze": 3.0, "Hund": 2.5}}


def sources(*texts: str, zeroed: int | None = None) -> list[ZeroableSource]:
    return [ZeroableSource(Text.parse(text), zeroed) for text in texts]


def run(service: TranslationService, requests: Sequence[Any], budget: int | None = None) -> list[Finished[Any]]:
    """One search per request, all at once; in the order of the requests."""

    def search(number: int, request: Any) -> Search[tuple[int, Any]]:
        async def start() -> tuple[int, Any]:
            return number, await request

        return Search(start, budget)

    scheduler = Scheduler(translator_services(service))
    ended = list(scheduler.run(search(*item) for item in enumerate(requests)))
    return sorted(ended, key=lambda finished: finished.result[0] if isinstance(finished.result, tuple) else 99)


def answers(service: TranslationService, *requests: Any) -> list[Any]:
    ended: list[Any] = [finished.result for finished in run(service, requests)]
    return [answer for _, answer in ended]


def test_each_source_is_translated_once_for_all_searches_and_kept() -> None:
    translator = TableTranslator(TABLE)
    service = TranslationService(translator)
    first, second = run(service, [Translate(sources("a dog", "a cat")), Translate(sources("a dog"))])
    assert (first.result[1], second.result[1]) == (["ein Hund", "ein Katze"], ["ein Hund"])  # type: ignore[index]
    assert (first.queries, second.queries) == (2, 1)
    assert translator.asked == [["a dog", "a cat"]]
    assert service.rows == 2
    assert answers(service, Translate(sources("a cat"))) == [["ein Katze"]]
    assert len(translator.asked) == 1


def test_a_randomised_translator_is_asked_every_time() -> None:
    translator = TableTranslator(TABLE, deterministic=False)
    service = TranslationService(translator)
    answers(service, Translate(sources("a dog", "a dog")), Translate(sources("a dog")))
    assert sum(map(len, translator.asked)) == 3


def test_a_source_that_the_model_fails_on_costs_only_its_search() -> None:
    service = TranslationService(TableTranslator(TABLE, poison="cat"))
    good, bad = run(service, [Translate(sources("a dog", "dog")), Translate(sources("dog", "a cat"))])
    assert good.result == (0, ["ein Hund", "Hund"])
    assert isinstance(bad.result, ScoringFailed)
    assert "a poisoned source" in str(bad.result)


def test_a_source_past_the_caches_is_sent_alone() -> None:
    translator = TableTranslator(TABLE)
    service = TranslationService(translator)
    assert answers(service, Translate(sources("a dog", "dog")), Retranslate(Text.parse("a dog"), 2)) == [
        ["ein Hund", "Hund"],
        ["ein Hund", "ein Hund"],
    ]
    assert translator.asked.count(["a dog"]) == 2


def test_losses_of_different_keywords_are_computed_together_and_as_alone() -> None:
    requests = [
        TranslationLoss(sources("a dog", "a cat"), keyword="Katze"),
        TranslationLoss(sources("a dog", "dog", zeroed=0), keyword="ein"),
        TranslationLoss(sources("cat"), keyword="ab"),  # in no vocabulary: its letters are wanted
    ]
    together = LogitTranslator(LOGITS)
    expected = [
        [Attempt("ein Hund", 2.0), Attempt("ein Katze", 0.0)],
        [Attempt("ein Hund", 0.0), Attempt("Hund", 1.5)],
        [Attempt("Katze", 12.0)],
    ]
    assert answers(TranslationService(together), *requests) == expected
    assert [answers(TranslationService(LogitTranslator(LOGITS)), request)[0] for request in requests] == expected
    assert len(together.asked) == 5


def test_a_source_has_a_loss_for_each_keyword() -> None:
    service = TranslationService(LogitTranslator(LOGITS))
    for _ in range(2):
        wanted = [TranslationLoss(sources("a dog"), keyword=keyword) for keyword in ("Katze", "Hund")]
        assert answers(service, *wanted) == [[Attempt("ein Hund", 2.0)], [Attempt("ein Hund", 0.0)]]
    assert service.rows == 2


def test_a_black_box_is_judged_by_letters_and_its_words_are_deleted() -> None:
    service = TranslationService(TableTranslator(TABLE))
    (attempts,) = answers(service, TranslationLoss(sources("a dog", zeroed=0), keyword="Mund"))
    assert attempts == [Attempt("Hund", 0.25)]
    with pytest.raises(ModelError, match="only translates"):
        answers(service, TranslationLoss(sources("a dog"), keyword="Mund", loss="hinge"))
    assert answers(service, Vocabulary(required=False))[0].words == ()
    assert answers(service, SourceVectors([Text.parse("a")]))[0].shape == (1, 0)
    assert answers(service, VisibleWords(Text.parse("a dog"))) == [range(2)]


def test_letters_can_be_wanted_of_a_white_box_too() -> None:
    (attempts,) = answers(
        TranslationService(LogitTranslator(LOGITS)), TranslationLoss(sources("dog"), keyword="Mund", loss="characters")
    )
    assert attempts == [Attempt("Hund", 0.25)]


def test_what_a_white_box_shows() -> None:
    service = TranslationService(LogitTranslator(LOGITS, longest=1))
    assert answers(service, Vocabulary())[0].words == ("a", "dog", "cat")
    assert answers(service, SourceVectors([Text.parse("a dog")]))[0].tolist() == [[3.0, 0.0]]
    assert answers(service, VisibleWords(Text.parse("a dog"))) == [range(1)]


def test_the_budget_counts_every_source() -> None:
    service = TranslationService(TableTranslator(TABLE))
    (cut,) = run(service, [Translate(sources("a", "dog", "cat"), partial=True)], budget=2)
    assert cut.result == (0, ["ein", "Hund"])
    assert cut.queries == 2


def test_a_translator_that_answers_too_little_is_a_failure_of_those_sources() -> None:
    class Short(TableTranslator):
        def translate(self, texts: Sequence[str], *, beam: int = 1) -> list[str]:
            return super().translate(texts)[:1]

    (ended,) = run(TranslationService(Short(TABLE)), [Translate(sources("a", "dog"))])
    assert ended.result == (0, ["ein", "Hund"])  # asked one by one, each gets its own
