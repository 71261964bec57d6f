"""Groups of words that vote, around victims whose votes can be counted by hand or by asking them one by one."""

from __future__ import annotations

from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stockade as st
from stockade.core.errors import ModelError, OptionError
from stockade.core.partitions import Votes, hash_groups
from stockade.core.protocols import Classifier
from stockade.core.text import Text
from stockade.defenses.chain import load_defenses, save_defenses, wrap
from stockade.defenses.combine import predict_or_abstain
from stockade.defenses.defended import Defended
from stockade.defenses.partition import Partition
from stockade.defenses.registry import make_defense
from stockade.engine.composite import make_scoring
from stockade.engine.scheduler import Scheduler, Search
from stockade.models.huggingface import HuggingFaceClassifier
from tests.defenses.adversarial_kit import make_batch, make_kit
from tests.models.conftest import tiny_bert, tiny_tokenizer
from tests.toys import RandomVictim, WeightVictim

WEIGHTS = {"good": 4.0, "bad": -4.0}


def defended(victim: Classifier, **options: Any) -> Defended:
    return Defended(name="partition", defense=Partition(**options), inner=victim)


def votes_of(victim: Classifier, text: str, premise: str | None = None, **options: Any) -> Votes:
    partition = Partition(**options)
    search = Search(lambda: partition.votes(Text.parse(text, premise)))
    [finished] = Scheduler.for_classifier(make_scoring(victim)).run([search])
    assert isinstance(finished.result, Votes)
    return finished.result


def test_by_position_a_black_box_sees_one_group_at_a_time() -> None:
    interleaved, blocks = WeightVictim({}), WeightVictim({})
    defended(interleaved, groups=2, layout="interleaved").predict_proba(["a b  c d e"])
    assert sorted(map(str, interleaved.asked)) == ["[MASK] b [MASK] d [MASK]", "a [MASK] c [MASK] e"]
    defended(blocks, groups=2, layout="blocks", mask="_").predict_proba(["a b c d e"])
    assert sorted(map(str, blocks.asked)) == ["_ _ _ d e", "a b c _ _"]


def test_by_hash_other_words_are_removed_and_empty_groups_are_not_asked() -> None:
    victim = WeightVictim({})
    words = ["The", "film", "was", "the", "best", "Film", "of", "all"]
    groups = hash_groups(words, 4, "k")
    expected = [" ".join(w for w, g in zip(words, groups, strict=True) if g == group) for group in range(4)]
    defended(victim, by="hash", groups=4, key="k").predict_proba(["The film  was the best\tFilm of all"])
    assert sorted(map(str, victim.asked)) == sorted(text for text in expected if text)
    lonely = WeightVictim({})
    defended(lonely, by="hash", groups=50).predict_proba(["good good"])
    assert lonely.asked == ["good good"]


def test_of_a_pair_the_premise_is_in_every_group() -> None:
    for options, texts in (
        ({"by": "position"}, {("a b", "good [MASK]"), ("a b", "[MASK] film")}),
        ({"by": "hash", "groups": 50, "key": "k"}, {("a b", "good"), ("a b", "film")}),
    ):
        victim = WeightVictim({})
        defended(victim, **options).predict_proba([("a b", "good film")])
        assert set(victim.asked) == texts


def test_votes_are_counted_by_hand() -> None:
    """Groups: "good x", "bad x", "x x"; only the first is positive, a bias makes the last negative."""
    victim = WeightVictim(WEIGHTS, bias=-1.0)
    text = "good bad x x x x"
    assert votes_of(victim, text, groups=3) == Votes((2, 1))
    assert defended(victim, groups=3).predict_proba([text])[0] == pytest.approx([2 / 3, 1 / 3])
    means = [1 / (1 + np.exp(-odds)) for odds in (3.0, -5.0, -1.0)]
    assert defended(victim, groups=3, combine="probability").predict_proba([text])[0, 1] == pytest.approx(
        np.mean(means)
    )


def test_by_hash_the_shares_are_of_the_groups_that_vote() -> None:
    victim = WeightVictim(WEIGHTS, bias=-1.0)
    options: dict[str, Any] = {"by": "hash", "groups": 50, "key": "k"}
    assert len(set(hash_groups(["good", "bad", "film"], 50, "k"))) == 3
    assert votes_of(victim, "good bad film", **options) == Votes((2, 1))
    assert defended(victim, **options).predict_proba(["good bad film"])[0] == pytest.approx([2 / 3, 1 / 3])


def test_ties_go_to_the_first_class() -> None:
    victim = WeightVictim(WEIGHTS)
    assert votes_of(victim, "good bad", groups=2) == Votes((1, 1))
    [scores] = defended(victim, groups=2).predict_proba(["good bad"])
    assert scores.tolist() == [0.5, 0.5]
    assert scores.argmax() == 0


@pytest.mark.parametrize("by", ["position", "hash"])
@pytest.mark.parametrize("text", ["", "  ", "\u3000"])
def test_a_text_without_words_is_asked_itself_and_has_no_votes(by: str, text: str) -> None:
    victim = WeightVictim(WEIGHTS, bias=1.5)
    assert votes_of(victim, text, by=by) == Votes((0, 0))
    assert (defended(victim, by=by).predict_proba([text]) == victim.predict_proba([text])).all()
    assert (defended(victim, by=by, combine="probability").predict_proba([text]) == victim.predict_proba([text])).all()


def radius(votes: Votes) -> int:
    """How many votes may be changed, at two of the margin each, so that the first class of most votes stays."""
    counts, best = votes.counts, votes.label
    return min((counts[best] - counts[j] - (j < best)) // 2 for j in range(len(counts)) if j != best)


@pytest.mark.parametrize("seed", range(4))
def test_no_change_of_as_many_words_as_votes_allow_changes_the_answer(seed: int) -> None:
    """By position: all ways to replace up to `radius` of seven words, by words the victim treats at random."""
    victim = RandomVictim(seed, classes=2)
    options: dict[str, Any] = {"groups": 7}
    certified = 0
    for start in range(6):
        words = [f"w{start}{place}" for place in range(7)]
        votes = votes_of(victim, " ".join(words), **options)
        allowed = radius(votes)
        changed = [
            [f"x{new}" if place in places else word for place, word in enumerate(words)]
            for places in combinations(range(7), max(0, allowed))
            for new in range(3)
        ]
        answers = defended(victim, **options).predict_proba([" ".join(words) for words in changed])
        assert (answers.argmax(1) == votes.label).all()
        certified += allowed > 0
    assert certified


@pytest.mark.parametrize("seed", range(4))
def test_no_insertion_or_deletion_within_the_votes_changes_the_answer_by_hash(seed: int) -> None:
    victim = RandomVictim(seed, classes=2)
    options: dict[str, Any] = {"by": "hash", "groups": 6}
    certified = 0
    for start in range(8):
        words = [f"w{start}{place}" for place in range(9)]
        votes = votes_of(victim, " ".join(words), **options)
        if radius(votes) < 1:
            continue
        certified += 1
        deleted = [words[:place] + words[place + 1 :] for place in range(9)]
        inserted = [[*words[:p], new, *words[p:]] for p, new in product(range(10), ("x", "y", "w00"))]
        answers = defended(victim, **options).predict_proba([" ".join(words) for words in deleted + inserted])
        assert (answers.argmax(1) == votes.label).all()
    assert certified


def test_the_same_answer_always_and_a_twin_that_shows_probabilities() -> None:
    model = defended(RandomVictim(5), groups=3)
    assert model.deterministic
    assert not defended(RandomVictim(5, deterministic=False), groups=3).deterministic
    surrogate = model.surrogate()
    assert surrogate is not None
    rows = RandomVictim(5).predict_proba(["a [MASK] [MASK]", "[MASK] b [MASK]", "[MASK] [MASK] c"])
    assert surrogate.predict_proba(["a b c"])[0] == pytest.approx(rows.mean(0))
    expected = np.bincount(rows.argmax(1), minlength=3) / 3
    assert model.predict_proba(["a b c"])[0] == pytest.approx(expected)
    assert not np.allclose(rows.mean(0), expected)


def test_a_models_own_mask_token_hides_words_whatever_they_were() -> None:
    model = HuggingFaceClassifier(tiny_bert(), tiny_tokenizer())
    rows = model.predict_proba(["the [MASK] was [MASK]", "[MASK] film [MASK] bad"])
    assert defended(model, groups=2, combine="probability").predict_proba(["the film was bad"])[0] == pytest.approx(
        rows.mean(0), abs=1e-6
    )
    # "greatly" has two pieces and is hidden by one mask all the same.
    assert model.predict_proba(["[MASK] film [MASK] bad"]) == pytest.approx(rows[1:], abs=1e-6)
    other = defended(model, groups=2, combine="probability").predict_proba(["greatly film was bad"])[0]
    first = model.predict_proba(["greatly [MASK] was [MASK]"])[0]
    assert other == pytest.approx((first + rows[1]) / 2, abs=1e-6)


def test_training_shows_one_group_of_a_text_at_a_time_by_position() -> None:
    kit = make_kit()
    objective = make_defense("partition:groups=2").defense.objective(kit)
    text = "a good film the story"
    shown = set()
    unknown = kit.tokenizer.unk_token_id  # this tokenizer has no mask
    numbers = kit.tokenizer(text)["input_ids"]
    for seed in range(30):
        changed = objective.augment(make_batch(kit, [text, ""], [1, 0], seed))
        again = objective.augment(make_batch(kit, [text, ""], [1, 0], seed))
        assert (changed.tensors["input_ids"] == again.tensors["input_ids"]).all()
        assert changed.inputs == (text, "")
        shown.add(tuple(changed.tensors["input_ids"][0].tolist()))
    assert shown == {
        tuple(number if place % 2 == group else unknown for place, number in enumerate(numbers)) for group in (0, 1)
    }


def test_training_by_hash_removes_words_and_shows_the_text_where_the_group_is_empty() -> None:
    kit = make_kit()
    objective = make_defense("partition@hash:groups=3").defense.objective(kit)
    groups = dict(zip(("good", "film", "story"), hash_groups(["good", "film", "story"], 3, "stockade"), strict=True))
    expected = {" ".join(word for word in groups if groups[word] == group) or "good film story" for group in range(3)}
    pair = ("the film", "good")
    shown, whole = set(), []
    for seed in range(60):
        changed = objective.augment(make_batch(kit, ["good film story", "", pair], [1, 0, 1], seed))
        shown.add(changed.inputs[0])
        assert changed.inputs[1:] == ("", pair)
        whole.append(
            changed.tensors["input_ids"].tolist() == make_batch(kit, changed.inputs).tensors["input_ids"].tolist()
        )
    assert shown == expected
    assert all(whole)


def test_from_python_and_from_a_folder(tmp_path: Path) -> None:
    model = st.defend(WeightVictim({}), "partition", groups=8)
    assert isinstance(model, Defended)
    assert model.defense == Partition(groups=8)
    save_defenses(tmp_path, [make_defense("partition@hash:groups=4,key=mine")])
    (loaded,) = load_defenses(tmp_path)
    assert (loaded.preset, loaded.defense) == ("hash", Partition(by="hash", groups=4, key="mine"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("groups=1", "groups of partition are 1, expected at least 2"),
        ("groups=many", "groups of partition cannot be 'many'"),
        ("by=sound", "by"),
        ("layout=spiral", "layout"),
        ("combine=logit", "combine"),
    ],
)
def test_bad_options(options: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        make_defense(f"partition:{options}")


def test_it_must_stand_directly_around_the_model() -> None:
    with pytest.raises(OptionError, match="so safer cannot stand between them"):
        wrap(WeightVictim({}), [make_defense("partition"), make_defense("safer")])
    with pytest.raises(ModelError, match="directly around the model"):
        wrap(wrap(WeightVictim({}), [make_defense("safer")]), [make_defense("partition")])
    with pytest.raises(OptionError, match="can abstain"):
        predict_or_abstain(defended(WeightVictim({})), ["a"])  # nothing is drawn, so nothing is left open
