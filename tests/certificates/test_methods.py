"""Each way to certify, on models whose smoothed answers can be found by trying every copy."""

from __future__ import annotations

from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import stockade as st
from stockade.certificates.betting_evidence import BettingEvidence
from stockade.certificates.certificate import Certificate
from stockade.certificates.evidence import read_evidence
from stockade.certificates.methods.ranmask import MaskedCopies
from stockade.certificates.registry import make_method, methods
from stockade.core.errors import ModelError, OptionError
from stockade.core.masks import masks_by_number
from stockade.core.partitions import hash_groups
from stockade.defenses.chain import wrap
from stockade.defenses.defended import Defended
from stockade.defenses.registry import make_defense
from stockade.models.huggingface import HuggingFaceClassifier
from tests.certificates.kit import ROWS, EveryMask, every_change
from tests.models.conftest import tiny_bert, tiny_tokenizer
from tests.toys import RandomVictim, WeightVictim

VICTIM = WeightVictim({"good": 4.0, "bad": -4.0, "dull": -2.0, "moving": 2.0}, bias=0.1)


def certified(model: object, *references: str, rows: Any = ROWS, **options: Any) -> dict[tuple[str, str], Certificate]:
    run = st.certify(model, rows, *references, **options)
    return {(one.method, one.text): one for one in run.certificates}


def test_masks_by_number_are_all_combinations_in_order() -> None:
    for words, kept in ((5, 2), (6, 6), (4, 1), (7, 3)):
        masks = masks_by_number(np.arange(comb(words, kept)), words, kept)
        assert [tuple(np.flatnonzero(row)) for row in masks] == list(combinations(range(words), kept))
    assert masks_by_number(np.array([3, 0]), 5, 2).tolist() == [
        [True, False, False, False, True],
        [True, True, False, False, False],
    ]


@pytest.mark.parametrize(("words", "kept"), [(70, 67), (100, 98), (200, 199)])
def test_masks_that_hide_little_have_numbers_too(words: int, kept: int) -> None:
    """There are few of them, and far more ways to keep half of the words than an integer of 64 bits can count."""
    masks = masks_by_number(np.arange(comb(words, kept)), words, kept)
    assert [tuple(np.flatnonzero(row)) for row in masks] == list(combinations(range(words), kept))


def test_a_long_text_of_which_little_is_hidden_is_certified() -> None:
    (one,) = certified(st.defend(VICTIM, "ranmask", rate=0.01), rows=[("good fun " * 50, "positive")]).values()
    assert (one.status, one.radius, one.copies) == ("certified", 0, 100)


@pytest.mark.parametrize("rate", [0.5, 0.7])
def test_no_change_within_the_radius_changes_the_exact_smoothed_class(rate: float) -> None:
    """Five words, all changes of up to two of them into strong words, typos and unknown ones."""
    rows = [
        ("so good a film here", "positive"),
        ("a bad bad dull film", "negative"),
        ("moving and good and fun", "positive"),
    ]
    robust = st.defend(VICTIM, "ranmask", rate=rate)
    exact = Defended(name="every", defense=EveryMask(rate), inner=VICTIM)
    found = certified(robust, "ranmask-exact", "ranmask-gap", "ranmask-lf", rows=rows)
    attackers = ["good", "bad", "moving", "dull", "qzx"]
    largest = 0
    for (method, text), certificate in found.items():
        assert certificate.predicted == exact.labels[int(exact.predict_proba([text])[0].argmax())], method
        for changes in range(1, (certificate.radius or 0) + 1):
            others = exact.predict_proba(every_change(text.split(), changes, attackers))
            assert {exact.labels[label] for label in others.argmax(1)} == {certificate.predicted}
        largest = max(largest, certificate.radius or 0)
    assert largest >= (1 if rate == 0.7 else 0)
    for text, _ in rows:  # the exact method is never weaker
        radii = [found[method, text].radius for method in ("ranmask-exact", "ranmask-gap", "ranmask-lf")]
        assert all((radii[0] or 0) >= (other or 0) for other in radii[1:])


def test_few_copies_are_all_asked_and_nothing_is_left_to_chance() -> None:
    """Six words of which two stay: 15 copies, fewer than those that would choose the class."""
    found = certified(st.defend(VICTIM, "ranmask", rate=0.7), "ranmask-gap")
    one = found["ranmask-gap", "a good and rather moving film"]
    assert (one.copies, one.selection) == (comb(6, 2), None)
    evidence = read_evidence(one.evidence or {})
    assert evidence.tally.counts == (0, 15)  # type: ignore[attr-defined]
    # one of six words is in 5 of the 15 copies: 15 > 2 * 5, and two words are in 9 of them
    assert one.radius == 1


def test_samples_choose_the_class_with_copies_that_are_not_counted() -> None:
    text = "good and good and good and good and good and good and good and good and good and good and fun"
    robust = st.defend(VICTIM, "ranmask", rate=0.8)
    found = certified(robust, "ranmask-gap:selection=40,most=400", rows=[(text, "positive")])
    (one,) = found.values()
    assert sum(one.selection or ()) == 40
    assert one.copies == 40 + read_evidence(one.evidence or {}).copies
    assert one.predicted == "positive"
    assert one.radius is not None
    copies = MaskedCopies(words=tuple(text.split()), premise=None, kept=4, mask="[MASK]", seed=one.seed)
    chosen, counted = copies.masks("selection", 0, 40), copies.masks("estimation", 0, 50)
    assert chosen.sum(1).tolist() == [4] * 40
    assert chosen[:40].tolist() != counted[:40].tolist()
    assert len({row.tobytes() for row in counted}) == 50  # few enough to draw none twice


def test_the_numbered_copies_do_not_depend_on_how_many_are_asked_at_once() -> None:
    for words in (20, 60):  # drawn without and with replacement
        copies = MaskedCopies(words=tuple("w" * words), premise=None, kept=6, mask="[MASK]", seed=5)
        assert (copies.population is None) == (words == 60)
        assert copies.masks("estimation", 50, 75).tolist() == copies.masks("estimation", 50, 75).tolist()
        assert copies.masks("estimation", 0, 50).tolist() != copies.masks("selection", 0, 50).tolist()


def test_with_the_true_class_no_copy_chooses() -> None:
    found = certified(
        st.defend(VICTIM, "ranmask", rate=0.8),
        "ranmask-lf:choose=label,most=200",
        rows=[("good fun and more good fun for all of us and many more good things", "negative")],
    )
    (one,) = found.values()
    assert (one.status, one.radius, one.predicted, one.selection) == ("abstained", None, "negative", None)


def test_an_undecided_text_is_abstained_from_and_that_is_no_class() -> None:
    robust = st.defend(WeightVictim({"good": 4.0, "bad": -4.0}), "ranmask", rate=0.5)
    (one,) = certified(robust, "ranmask-exact", rows=[("good bad", "positive")]).values()
    assert (one.status, one.radius, one.reason) == ("abstained", None, "no class wins by enough")
    (one,) = certified(robust, "ranmask-exact", rows=[("good", "positive")]).values()
    assert (one.status, one.radius) == ("certified", 0)  # the class is certain, one changed word is everything


def test_the_published_procedure_is_called_what_it_is() -> None:
    (one,) = certified(
        st.defend(VICTIM, "ranmask", rate=0.7), "ranmask-legacy:most=500,selection=100", rows=ROWS[:1]
    ).values()
    assert one.status == "claimed"
    assert one.copies == 600
    assert not methods()["ranmask-legacy"].sound
    assert all(entry.sound for name, entry in methods().items() if name != "ranmask-legacy")


def test_groups_by_position_survive_every_change_within_the_radius() -> None:
    rows = [("good good good good good film", "positive"), ("bad bad good bad bad film", "negative")]
    robust = st.defend(VICTIM, "partition", groups=6)
    found = certified(robust, "position-partition", rows=rows)
    assert [one.radius for one in found.values()] == [2, 1]  # 6 and 5 of 6 groups: ties and the bias go to positive
    for one in found.values():
        assert one.copies == 6
        for changes in range(1, (one.radius or 0) + 1):
            others = robust.predict_proba(every_change(one.text.split(), changes, ["good", "bad", "qzx"]))
            assert {robust.labels[label] for label in others.argmax(1)} == {one.predicted}


def test_groups_by_hash_survive_insertions_and_deletions_too() -> None:
    text = "good fine good moving good film we loved it good indeed"
    robust = st.defend(VICTIM, "partition", by="hash", groups=7)
    (one,) = certified(robust, "hash-partition", rows=[(text, "positive")]).values()
    words = text.split()
    assert one.radius is not None
    assert one.radius >= 1
    assert len(set(hash_groups(words, 7, "stockade"))) >= 3
    edited = [
        " ".join(words[:at] + [new] + words[at:]) for at in range(len(words) + 1) for new in ("bad", "dull", "qzx")
    ]
    edited += [" ".join(words[:at] + words[at + 1 :]) for at in range(len(words))]
    if one.radius >= 2:
        edited += every_change(words, 1, ["bad", "dull"])
    assert {robust.labels[label] for label in robust.predict_proba(edited).argmax(1)} == {"positive"}


def test_deletion_says_more_about_insertions_alone() -> None:
    text = "good good moving good good film good good and good fun good"
    robust = st.defend(VICTIM, "deletion", kept_chance=0.2)
    (one,) = certified(robust, "deletion:most=2000", rows=[(text, "positive")]).values()
    assert one.radius is not None
    assert one.insertions is not None
    assert one.insertions >= one.radius
    with pytest.raises(OptionError, match="kept_chance"):
        st.defend(VICTIM, "deletion", kept_chance=1.0)


def test_safer_is_certain_of_words_without_synonyms() -> None:
    robust = wrap(VICTIM, [make_defense("safer")])
    (one,) = certified(robust, "safer:most=200", rows=[("qzxq good zzqx", "positive")]).values()
    assert one.status == "certified"
    assert read_evidence(one.evidence or {}).distribution.overlaps is not None  # type: ignore[attr-defined]


def test_mean_probabilities_are_certified_by_another_bound() -> None:
    text = "good fun and more good fun for all of us and many more good things"
    robust = st.defend(VICTIM, "ranmask", rate=0.7)
    found = certified(robust, "ranmask-gap:ensemble=probability,most=1000", rows=[(text, "positive")])
    (one,) = found.values()
    evidence = read_evidence(one.evidence or {})
    assert isinstance(evidence, BettingEvidence)
    assert evidence.totals[1] / evidence.copies > 0.8
    assert one.predicted == "positive"
    assert one.radius is not None
    (few,) = certified(
        robust, "ranmask-gap:ensemble=probability,most=1000,scheme=curtailed", rows=[(text, "positive")]
    ).values()
    assert read_evidence(few.evidence or {}).tally.totals[1] / few.copies > 0.5  # type: ignore[attr-defined]
    assert (few.radius or 0) <= one.radius


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, 2.0])
def test_an_alpha_that_is_no_chance_is_refused(alpha: float) -> None:
    with pytest.raises(OptionError, match=r"alpha is .*, expected a chance between 0 and 1"):
        st.certify(st.defend(VICTIM, "ranmask"), ROWS, alpha=alpha)


def test_models_that_no_certificate_speaks_of_are_refused_with_the_reason(tmp_path: Path) -> None:
    cases: list[tuple[object, str, str]] = [
        (VICTIM, "ranmask-gap", "about a model inside ranmask, and this one stands in no defense"),
        (st.defend(VICTIM, "safer"), "ranmask-gap", "stands in safer"),
        (st.defend(VICTIM, "ranmask", sampling="lm"), "ranmask-lf", "depends on the words, and no certificate holds"),
        (st.defend(VICTIM, "partition", by="hash"), "position-partition", "this model has groups by hash"),
        (
            st.defend(RandomVictim(deterministic=False), "ranmask"),
            "ranmask-exact",
            "randomised: asked twice about the same text",
        ),
    ]
    for number, (model, method, reason) in enumerate(cases):
        with pytest.raises(ModelError, match=reason):
            st.certify(model, ROWS, method, out=tmp_path / str(number))
        assert not (tmp_path / str(number)).exists()


@pytest.mark.parametrize(
    ("defense", "method"),
    [
        ("ranmask", "ranmask-gap"),
        ("partition", "position-partition"),
        ("partition:by=hash", "hash-partition"),
        ("deletion", "deletion"),
        ("safer", "safer"),
    ],
)
def test_without_a_name_the_method_is_the_one_for_the_defense(defense: str, method: str) -> None:
    name, _, options = defense.partition(":by=")
    run = st.certify(st.defend(VICTIM, name, **({"by": options} if options else {})), ROWS[:1], alpha=0.01)
    assert {one.method for one in run.certificates} == {method}
    assert run.summary["methods"][method]["alpha"] in (0.01, None)


def test_a_model_that_its_own_method_refuses_hears_the_reason_and_not_of_another_defense() -> None:
    with pytest.raises(ModelError, match="randomised: asked twice about the same text"):
        st.certify(st.defend(RandomVictim(deterministic=False), "deletion"), ROWS)
    with pytest.raises(ModelError, match="stands in no defense: add --defense ranmask"):
        st.certify(VICTIM, ROWS)


def test_texts_without_words_and_with_too_many_copies_have_no_certificate() -> None:
    robust = st.defend(VICTIM, "ranmask", rate=0.5)
    found = certified(robust, "ranmask-exact:most=10", rows=[("good " * 12, "positive"), ("good", "positive")])
    long, short = found.values()
    assert long.status == "abstained"
    assert long.reason == "the text has 924 masked copies, more than most=10"
    assert short.status == "certified"


def test_options_are_checked() -> None:
    for reference, reason in (
        ("ranmask-gap:most=0", "expected at least one copy each"),
        ("ranmask-gap:growth=1", "a growth above 1"),
        ("ranmask-gap:target=-1", "expected a radius from 0 up"),
        ("ranmask-exact:most=0", "expected at least 1 copy"),
        ("ranmask-gap:scheme=never", "scheme of ranmask-gap cannot be"),
    ):
        with pytest.raises(OptionError, match=reason):
            make_method(reference)
    with pytest.raises(st.StockadeError, match='Did you mean "ranmask-gap"'):
        make_method("ranmask-gab")


def test_a_text_that_the_model_cuts_is_said_to_be_cut_and_the_certificate_holds() -> None:
    """Eight words in a window of six tokens: hidden words are one mask each, so untouched copies are cut alike."""
    network = tiny_bert()
    with torch.no_grad():
        network.classifier.weight *= 40
    model = HuggingFaceClassifier(network, tiny_tokenizer(maximum=6))
    text = "the film was great the film was bad"
    robust, exact = st.defend(model, "ranmask", rate=0.8), Defended(name="every", defense=EveryMask(0.8), inner=model)
    rows = [(text, model.labels[0]), ("great film", model.labels[0])]
    long, short = certified(robust, "ranmask-exact", rows=rows).values()
    assert (long.truncated, short.truncated) == (True, False)
    assert long.radius
    for changes in range(1, long.radius + 1):
        others = exact.predict_proba(every_change(text.split(), changes, ["great", "bad", "xylophonist", "the"]))
        assert {exact.labels[label] for label in others.argmax(1)} == {long.predicted}
    keep = np.array([[True, False, True, False, True, True, False, False]])
    swapped = text.replace("film", "xylophonist")
    first, second = (model.encode_masked(one.split(), None, keep)[0] for one in (text, swapped))
    assert first.key == second.key


def test_a_model_that_does_not_repeat_itself_is_refused_whatever_it_says() -> None:
    rng = np.random.default_rng(1)

    def moody(texts: list[str]) -> Any:
        positive = rng.random(len(texts))
        return np.stack([1 - positive, positive], axis=1)

    with pytest.raises(ModelError, match=r"asked twice about the same text it answered \[.*\] and \["):
        st.certify(st.defend(moody, "ranmask", rate=0.7), ROWS)
