"""PWWS on victims whose saliencies and drops a person can compute."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from stockade.attacks.pwws import PWWS, softmax
from tests.attacks.driving import attack
from tests.toys import TableVictim, WeightVictim

SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "great": ("outstanding", "big"),
    "film": ("movie", "picture"),
    "funny": ("laughable", "comic"),
}


class FakeWordNet:
    def synonyms(self, word: str, pos: str | None = None) -> tuple[str, ...]:
        return SYNONYMS.get(word.lower(), ())

    def lemmas(self, word: str, pos: str) -> tuple[str, ...]:
        return (word,)


class FakeTagger:
    def tag(self, words: tuple[str, ...]) -> list[str]:
        return ["JJ" if word.lower() in ("great", "funny") else "NN" for word in words]

    def tag_candidates(self, words: tuple[str, ...], index: int, candidates: list[str]) -> list[str]:
        return ["NNS" if candidate == "big" else self.tag(words)[index] for candidate in candidates]


@pytest.fixture(autouse=True)
def language(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("stockade.attacks.pwws", "stockade.lexicon.synonyms"):
        monkeypatch.setattr(f"{module}.load_wordnet", FakeWordNet)
        monkeypatch.setattr(f"{module}.load_tagger", FakeTagger)


def test_words_are_replaced_in_order_of_weighted_saliency_until_the_label_changes() -> None:
    weights = {
        "great": 1.0,
        "funny": 1.5,
        "outstanding": 0.8,
        "big": 0.2,
        "laughable": -1.5,
        "comic": 1.0,
        "movie": 0.1,
    }
    result = attack(WeightVictim(weights, bias=-0.5), "a funny great film", PWWS())
    assert result.trial.status == "success"
    assert result.words == ("a", "laughable", "great", "film")
    # the original, four words hidden, two synonyms each of three words, one cumulative text
    assert result.queries == 1 + 4 + 6 + 1


def test_the_substitute_is_the_one_with_the_largest_drop_on_the_original() -> None:
    weights = {"great": 2.0, "outstanding": 1.0, "big": -0.5, "funny": 0.4, "laughable": 0.3, "comic": 0.35}
    result = attack(WeightVictim(weights), "great funny", PWWS())
    assert result.words == ("big", "funny")  # -0.5 + 0.4 is below zero already


def test_the_paper_weights_by_the_drop_and_textattack_by_the_score() -> None:
    """Saliencies 0.3 and 0.1 have the soft-max 0.55 and 0.45. Times the drops 0.12 and 0.15 that is 0.066 and 0.068:
    "film" goes first. Times 1 - min p_y, 0.52 and 0.55, it is 0.286 and 0.248: "great" does. Either is enough.
    """
    hidden = {"[UNK] film": 0.3, "great [UNK]": 0.5}
    swapped = {"big film": 0.48, "great picture": 0.45, "big picture": 0.4}
    victim = TableVictim(table={**hidden, **swapped}, otherwise=0.6)
    assert attack(victim, "great film", PWWS()).words == ("great", "picture")
    assert attack(victim, "great film", PWWS(weight="score")).words == ("big", "film")


def test_softmax_does_not_change_when_a_constant_is_added() -> None:
    saliency = [0.3, 0.1, 0.25]
    assert sum(softmax(saliency)) == pytest.approx(1)
    assert softmax([700.0, 700.0]) == [0.5, 0.5]
    assert softmax(saliency) == pytest.approx(softmax([value + 5.0 for value in saliency]))


def test_the_unknown_word_decides_the_saliency() -> None:
    """Hidden as "[UNK]" great is needed more, hidden as "@" film is; synonyms of both lower the score alike."""
    table = {"[UNK] film": 0.1, "great [UNK]": 0.6, "@ film": 0.6, "great @": 0.1}
    swapped = {"big film": 0.45, "great picture": 0.45}
    victim = TableVictim(table={**table, **swapped}, otherwise=0.6)
    assert attack(victim, "great film", PWWS()).words == ("big", "film")
    assert attack(victim, "great film", PWWS(unknown="@")).words == ("great", "picture")


def test_a_word_whose_synonyms_change_little_waits_however_salient_it_is() -> None:
    """ "great" is needed more than "film", but only "film" has a synonym that lowers the score."""
    weights = {"great": 1.0, "outstanding": 0.95, "big": 0.95, "film": 0.8, "movie": 0.8, "picture": -1.5}
    assert attack(WeightVictim(weights), "great film", PWWS()).words == ("great", "picture")


def test_a_fine_tag_filter_drops_candidates_that_read_as_another_tag() -> None:
    weights = {"great": 1.0, "outstanding": 0.5, "big": -1.0}
    assert attack(WeightVictim(weights), "great", PWWS()).words == ("big",)
    failed = attack(WeightVictim(weights), "great", PWWS(same_pos="fine"))
    assert failed.trial.status == "failed"
    assert failed.trial.reason == "every word was replaced"


def test_the_replacement_keeps_the_case_of_the_word() -> None:
    weights = {"great": 1.0, "big": -1.0}
    assert attack(WeightVictim(weights), "GREAT stuff", PWWS()).words == ("BIG", "stuff")
    assert attack(WeightVictim(weights), "Great stuff", PWWS()).words == ("Big", "stuff")


def test_textattack_skips_stop_words_and_keeps_only_what_helps() -> None:
    weights = {"great": 2.0, "outstanding": 2.5, "big": 1.0, "film": 0.5, "movie": 0.6, "picture": -1.5, "the": 0.1}
    result = attack(
        WeightVictim(weights),
        "the great film",
        PWWS(same_pos="any", stop_words="nltk", choose_again=True, weight="score"),
    )
    assert result.words == ("the", "big", "picture")
    # the original, two words hidden (not "the"), four synonyms, then again two and two on the current text
    assert result.queries == 1 + 2 + 4 + 2 + 2


def test_max_changed_is_a_share_of_the_words_rounded_down() -> None:
    weights = {"great": 2.0, "outstanding": 1.5, "big": 1.0, "film": 0.5, "picture": -1.5}
    free = attack(WeightVictim(weights), "great film", PWWS())
    assert len(free.trial.text.edits) == 2  # type: ignore[union-attr]
    capped = attack(WeightVictim(weights), "great film", PWWS(max_changed=0.5))
    assert capped.trial.status == "failed"
    assert capped.trial.reason == "no success with 1 changed words"


def test_a_text_without_synonyms_fails_with_its_reason() -> None:
    result = attack(WeightVictim({"zzz": 1.0}), "zzz", PWWS())
    assert (result.trial.status, result.trial.reason) == ("failed", "no word has a synonym")


def test_a_targeted_attack_raises_the_target() -> None:
    weights = {"great": 1.0, "big": -1.0}
    result = attack(WeightVictim(weights), "great", PWWS(), label=1, target=0)
    assert result.trial.status == "success"


def test_skipped_when_the_model_is_wrong_anyway() -> None:
    result = attack(WeightVictim({"great": 1.0}), "great", PWWS(), label=0)
    assert (result.trial.status, result.queries) == ("skipped", 0)


def test_the_budget_ends_the_search_as_a_failure() -> None:
    weights = {"great": 1.0, "outstanding": 0.8, "big": 0.2}
    result = attack(WeightVictim(weights), "a great film", PWWS(), budget=5)
    assert (result.trial.status, result.trial.reason) == ("failed", "the query budget of 5 is used up")
    assert result.queries == 5
