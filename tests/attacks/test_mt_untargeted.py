"""Translations that get worse, and translations of which nothing survives."""

from __future__ import annotations

from typing import Any

import pytest

from stockade.attacks.constraints import MaxEditDistance
from stockade.attacks.mt_nonoverlap import MtNonoverlap
from stockade.attacks.mt_untargeted import MtUntargeted
from stockade.attacks.registry import make_attack
from stockade.attacks.translation_goals import LowerBleu, NoOverlap, sentence_bleu
from stockade.core.errors import OptionError
from tests.attacks.translating import attack
from tests.toy_translators import LogitTranslator

WORDS = {
    "the": {"der": 5.0},
    "big": {"große": 5.0},
    "dog": {"Hund": 5.0},
    "sleeps": {"schläft": 5.0},
    "cat": {"Katze": 5.0},
    "red": {"rote": 5.0},
}
SOURCE, REFERENCE = "the big dog sleeps", "der große Hund schläft"


class LastWordRules(LogitTranslator):
    """Translates word by word; but where a source ends with "cat", everything it writes is "nein"."""

    def greedy_steps(self, sources: Any, wanted: Any) -> Any:
        steps = super().greedy_steps(sources, wanted)
        ruined = [str(source.text).endswith("cat") for source in sources]
        return [
            type(s)(" ".join(["nein"] * len(s.tokens)), s.tokens, s.wanted, s.highest, s.highest_tokens) if bad else s
            for s, bad in zip(steps, ruined, strict=True)
        ]


def test_bleu_falls_to_the_wanted_share() -> None:
    result = attack(LastWordRules(WORDS), SOURCE, MtUntargeted(words=3), reference=REFERENCE)
    assert result.trial.status == "success"
    assert result.trial.adversarial_translation is not None
    assert result.trial.text is not None
    assert sentence_bleu(result.trial.adversarial_translation, REFERENCE) <= 50
    assert len(result.trial.text.edits) <= 3


def test_a_search_that_fails_ends_with_the_lowest_bleu_it_has() -> None:
    result = attack(LogitTranslator(WORDS), SOURCE, MtUntargeted(words=1, share=0.0), reference=REFERENCE)
    assert result.trial.status == "failed"
    assert result.trial.text is not None
    assert len(result.trial.text.edits) == 1
    assert sentence_bleu(str(result.trial.adversarial_translation), REFERENCE) < 100
    cut = attack(LogitTranslator(WORDS), SOURCE, MtUntargeted(share=0.0), reference=REFERENCE, budget=12).trial
    assert "budget of 12" in str(cut.reason)
    assert cut.text is not None


def test_no_word_survives() -> None:
    result = attack(LastWordRules(WORDS), SOURCE, MtNonoverlap(words=4), reference=REFERENCE)
    assert result.trial.status == "success"
    assert not {"der", "große", "Hund", "schläft"} & set(str(result.trial.adversarial_translation).split())


def test_a_word_that_moves_survives_anywhere_but_not_where_it_stood() -> None:
    assert NoOverlap.of("der Hund").survivors("Hund der") == 2
    assert NoOverlap.of("der Hund", "position").survivors("Hund der") == 0
    assert NoOverlap.of("Der Hund").survivors("der hund") == 2
    result = attack(LogitTranslator(WORDS), "the big", MtNonoverlap(overlap="position", words=2, exhaustive=True))
    assert result.trial.status == "success"


def test_what_is_zero_or_empty_already_is_skipped() -> None:
    assert attack(LogitTranslator({}), "x", MtUntargeted(), reference="nichts davon").trial.status == "skipped"
    assert attack(LogitTranslator(WORDS), "dog", MtUntargeted(), reference="Hund").trial.status != "skipped"


def test_goals_by_hand() -> None:
    goal = LowerBleu.of("der große Hund schläft", REFERENCE, 0.5)
    assert goal.before == 100.0
    assert not goal.reached(REFERENCE)
    assert goal.reached("nein")
    assert not LowerBleu.of("nein", REFERENCE).reached("nein")


@pytest.mark.parametrize("method", [MtUntargeted, MtNonoverlap])
def test_the_shared_options_hold(method: Any) -> None:
    def run(**options: Any) -> Any:
        return attack(LastWordRules(WORDS), SOURCE, method(**options), reference=REFERENCE).trial

    assert run(constraint=MaxEditDistance(0)).text is None
    assert "even one" in run(max_changed=0.2).reason
    assert len(run(max_changed=0.25).text.edits) == 1
    assert run(sample=1, most=2, caution=0.5).text is not None
    assert run(exhaustive=True, repair_articles=True).text is not None


@pytest.mark.parametrize("reference", ["mt-untargeted:share=1", "mt-untargeted:share=-0.1", "mt-nonoverlap:overlap=x"])
def test_options_that_cannot_be_are_refused(reference: str) -> None:
    with pytest.raises(OptionError):
        make_attack(reference)
