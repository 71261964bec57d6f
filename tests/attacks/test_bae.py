"""BAE's four modes on a victim, a masked LM and an encoder whose answers a person can compute."""

from __future__ import annotations

import pytest

from stockade.attacks.bae import BAE, Mode
from stockade.attacks.registry import make_attack
from tests.attacks.driving import Result, attack
from tests.toys import BagEncoder, ListMaskedLM, WeightVictim


class OneTagTagger:
    """Everything is a noun, except words that end in "ly"."""

    def tag_word(self, words: tuple[str, ...], index: int) -> str:
        return "RB" if words[index].endswith("ly") else "NN"

    def tag_candidates(self, words: tuple[str, ...], index: int, candidates: list[str]) -> list[str]:
        return ["RB" if word.endswith("ly") else "NN" for word in candidates]


@pytest.fixture(autouse=True)
def tagger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stockade.attacks.constraints.load_tagger", OneTagTagger)


def run(
    weights: dict[str, float], after: dict[str, list[str]], bae: BAE, string: str = "a great film", bias: float = 0.0
) -> Result:
    return attack(WeightVictim(weights, bias), string, bae, masked_lm=ListMaskedLM(after), encoder=BagEncoder())


def test_replacing_visits_the_most_important_word_first_and_counts_its_queries() -> None:
    result = run({"great": 1.0, "bad": -1.0, "fine": 0.5}, {"a": ["fine", "bad"]}, BAE(mode="R", threshold=0.0))
    assert result.words == ("a", "bad", "film")
    # the original, three deletions, two candidates for "great"
    assert result.queries == 1 + 3 + 2


def test_pieces_punctuation_and_the_word_itself_are_not_proposed() -> None:
    after = {"a": ["##bad", ",", "great", "Great", "b2b", "fine"]}
    result = run({"great": 1.0, "bad": -1.0, "fine": -0.5}, after, BAE(mode="R", threshold=0.0))
    assert result.words == ("a", "fine", "film")
    assert result.queries == 1 + 3 + 1


def test_a_replacement_keeps_the_part_of_speech_and_an_insertion_need_not() -> None:
    weights, after = {"great": 1.0, "badly": -3.0}, {"a": ["badly"], "great": ["badly"]}
    assert run(weights, after, BAE(mode="R", threshold=0.0)).trial.status == "failed"
    assert run(weights, after, BAE(mode="I", threshold=0.0)).words in (
        ("a", "badly", "great", "film"),
        ("a", "great", "badly", "film"),
    )
    assert run(weights, after, BAE(mode="R", threshold=0.0, same_pos=False)).words == ("a", "badly", "film")


def test_among_winners_the_most_similar_is_taken_not_the_one_with_the_largest_drop() -> None:
    encoder = BagEncoder({"great": 0.2, "bad": 0.2, "awful": 3.0})
    victim = WeightVictim({"great": 1.0, "bad": -0.5, "awful": -5.0})
    masked_lm = ListMaskedLM({"a": ["awful", "bad"]})
    result = attack(victim, "a great film", BAE(mode="R", threshold=0.0), masked_lm=masked_lm, encoder=encoder)
    assert result.words == ("a", "bad", "film")


def test_replace_or_insert_does_one_operation_per_word_and_replace_and_insert_up_to_two() -> None:
    """One word to visit. Replaced: 1.0 - 0.1; with "sadly" before it: 2.0 - 1.6 - 0.1; both: 1.0 - 1.6 - 0.1."""
    weights = {"great": 2.0, "good": 1.0, "sadly": -1.6}
    after = {"": ["good", "sadly"]}
    one = run(weights, after, BAE(mode="R/I", threshold=0.0), "great", bias=-0.1)
    assert (one.trial.status, one.trial.reason) == ("failed", "every word was tried")
    # the original, one deletion, one replacement (the tag rules "sadly" out), two insertions before, none behind
    assert one.queries == 1 + 1 + 1 + 2
    both = run(weights, after, BAE(mode="R+I", threshold=0.0), "great", bias=-0.1)
    assert both.words == ("sadly", "good")
    assert [edit.op for edit in both.trial.text.edits] == ["insert", "replace"]  # type: ignore[union-attr]
    assert run(weights, after, BAE(mode="R", threshold=0.0), "great", bias=-0.1).trial.status == "failed"
    assert run(weights, after, BAE(mode="I", threshold=0.0), "great", bias=-0.1).trial.status == "failed"


def test_the_word_the_model_needs_most_is_visited_first_wherever_it_stands() -> None:
    masked_lm = ListMaskedLM({"": ["x"], "alpha": ["y"]})
    victim = WeightVictim({"alpha": 0.5, "beta": 1.0, "x": 0.4, "y": 0.9})
    attack(victim, "alpha beta", BAE(mode="R", threshold=0.0), masked_lm=masked_lm, encoder=BagEncoder())
    assert [before.strip() for before, _ in masked_lm.asked] == ["alpha", ""]


def test_the_order_is_computed_once_on_the_clean_text() -> None:
    victim = WeightVictim({"alpha": 1.0, "beta": 0.5, "weak": 0.8})
    masked_lm = ListMaskedLM({"": ["weak"], "alpha": ["x"], "weak": ["x"]})
    attack(victim, "alpha beta", BAE(mode="R", threshold=0.0), masked_lm=masked_lm, encoder=BagEncoder())
    deletions = [item for item in victim.asked if item in ("beta", "alpha")]
    assert sorted(deletions) == ["alpha", "beta"]
    assert [before.strip() for before, _ in masked_lm.asked] == ["", "weak"]


def test_candidates_that_are_not_similar_enough_are_never_asked() -> None:
    weights, after = {"great": 1.0, "bad": -1.0}, {"a": ["bad"]}
    assert run(weights, after, BAE(mode="R", threshold=0.6)).trial.status == "success"
    strict = run(weights, after, BAE(mode="R", threshold=0.7))
    assert (strict.trial.status, strict.queries) == ("failed", 1 + 3)


@pytest.mark.parametrize("threshold", [0.0, 0.6, 0.7])
@pytest.mark.parametrize("mode", ["R", "I", "R/I", "R+I"])
def test_scoring_first_finds_the_same_with_more_queries_and_fewer_vectors(mode: Mode, threshold: float) -> None:
    weights = {"great": 1.0, "bad": -1.5, "fine": 0.5, "film": 0.4, "flop": -0.2, "so": -0.1}
    masked_lm = {
        "a": ["fine", "bad", "so"],
        "great": ["flop", "so"],
        "bad": ["flop"],
        "fine": ["flop", "so"],
        "": ["so"],
    }
    results, vectors = [], []
    for score_first in (False, True):
        encoder = BagEncoder({"bad": 2.0})
        bae = BAE(mode=mode, threshold=threshold, score_first=score_first)
        found = attack(WeightVictim(weights), "a great film", bae, masked_lm=ListMaskedLM(masked_lm), encoder=encoder)
        results.append(found)
        vectors.append(len(encoder.embedded))
    lazy, eager = results[1], results[0]
    assert (eager.trial.status, eager.trial.text) == (lazy.trial.status, lazy.trial.text)
    assert lazy.queries >= eager.queries
    assert vectors[1] <= vectors[0]


def test_scoring_first_asks_the_victim_about_what_is_not_similar_too() -> None:
    """Of three candidates none has a cosine of 0.7: filtered first, none is scored; scored first, only the one that
    fools the model is compared.
    """
    weights, after = {"great": 1.0, "bad": -1.5, "fine": 0.5, "so": 0.5}, {"a": ["fine", "bad", "so"]}
    for score_first, queries, vectors in ((False, 1 + 3, 1 + 3), (True, 1 + 3 + 3, 1 + 3)):
        encoder = BagEncoder()
        bae = BAE(threshold=0.7, score_first=score_first)
        result = attack(WeightVictim(weights), "a great film", bae, masked_lm=ListMaskedLM(after), encoder=encoder)
        assert (result.trial.status, result.queries, len(encoder.embedded)) == ("failed", queries, vectors)


def test_the_number_of_operations_can_be_capped() -> None:
    weights = {"alpha": 1.0, "beta": 1.0, "gamma": 1.0, "no": -0.2}
    after = {"": ["no"], "alpha": ["no"], "beta": ["no"], "no": ["no"]}
    free = run(weights, after, BAE(mode="R", threshold=0.0), "alpha beta gamma", bias=0.1)
    assert len(free.trial.text.edits) == 3  # type: ignore[union-attr]
    capped = run(weights, after, BAE(mode="R", threshold=0.0, max_changed=0.67), "alpha beta gamma", bias=0.1)
    assert capped.trial.reason == "no success with 2 operations"


def test_only_so_many_proposals_are_tried() -> None:
    weights, after = {"great": 1.0, "fine": 0.5, "bad": -1.0}, {"a": ["fine", "bad"]}
    few = run(weights, after, BAE(mode="R", threshold=0.0, proposals=1))
    assert (few.trial.status, few.queries) == ("failed", 1 + 3 + 1)
    assert run(weights, after, BAE(mode="R", threshold=0.0, proposals=2)).words == ("a", "bad", "film")


def test_the_threshold_is_on_the_scale() -> None:
    """One word of three changed: a cosine of 0.667, 0.732 on the angular scale, 0.159 on tf."""
    weights, after = {"great": 1.0, "bad": -1.0}, {"a": ["bad"]}
    statuses = [run(weights, after, BAE(threshold=0.7, scale=scale)).trial.status for scale in ("angular", "cosine")]
    assert statuses == ["success", "failed"]
    assert run(weights, after, BAE(threshold=0.15, scale="tf")).trial.status == "success"
    assert run(weights, after, BAE(threshold=0.17, scale="tf")).trial.status == "failed"


def test_a_window_compares_less_than_the_whole_text() -> None:
    """One word of four changed leaves a cosine of 0.75; in a window of three words 0.667."""
    weights, after = {"great": 1.0, "bad": -1.0}, {"a": ["bad"]}
    whole, window = BAE(threshold=0.7), BAE(threshold=0.7, window=3)
    assert run(weights, after, whole, "a great old film").trial.status == "success"
    assert run(weights, after, window, "a great old film").trial.status == "failed"


def test_a_text_shorter_than_the_window_has_a_threshold_of_its_own_or_none() -> None:
    weights, after = {"great": 1.0, "bad": -1.0}, {"a": ["bad"]}
    outcomes = {short: run(weights, after, BAE(threshold=0.99, window=5, short=short)) for short in (None, 0.6, 0.7)}
    assert [result.trial.status for result in outcomes.values()] == ["success", "success", "failed"]


def test_drift_is_seen_from_the_original_alone() -> None:
    """Two steps of 0.75 each from the text before; the second is 0.5 from the original."""
    weights, after = {"alpha": 1.0, "beta": 1.0, "bad": -0.5, "ill": -0.5}, {"": ["bad"], "bad": ["ill"]}
    near, far = BAE(threshold=0.7, reference="previous"), BAE(threshold=0.7, reference="original")
    assert run(weights, after, near, "alpha beta gamma delta").words == ("bad", "ill", "gamma", "delta")
    assert run(weights, after, far, "alpha beta gamma delta").trial.status == "failed"


def test_nouns_and_verbs_exchange_when_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    class VerbTagger(OneTagTagger):
        def tag_candidates(self, words: tuple[str, ...], index: int, candidates: list[str]) -> list[str]:
            return ["VB"] * len(candidates)

    monkeypatch.setattr("stockade.attacks.constraints.load_tagger", VerbTagger)
    weights, after = {"great": 1.0, "run": -1.0}, {"a": ["run"]}
    assert run(weights, after, BAE(threshold=0.0)).trial.status == "failed"
    assert run(weights, after, BAE(threshold=0.0, noun_verb_exchange=True)).words == ("a", "run", "film")


def test_stop_words_are_left_alone_when_asked() -> None:
    weights, after = {"a": 1.0, "x": -1.0}, {"": ["x"]}
    assert run(weights, after, BAE(threshold=0.0)).words == ("x", "great", "film")
    spared = run(weights, after, BAE(threshold=0.0, stop_words="nltk"))
    assert (spared.trial.status, spared.queries) == ("failed", 1 + 2)


def test_the_presets_state_their_scales() -> None:
    paper, authors = make_attack("bae-r+i").options, make_attack("bae-r+i", "authors").options
    assert (paper["mode"], paper["scale"], paper["threshold"], paper["reference"]) == ("R+I", "cosine", 0.8, "original")
    assert (authors["scale"], authors["window"], authors["reference"], authors["short"]) == ("tf", 15, "previous", 0.1)
    assert make_attack("bae-r", "textattack").options["threshold"] == 0.936338
