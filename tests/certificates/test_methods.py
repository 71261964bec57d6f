"""Each way to certify, on models whose smoothed answers can be found by trying every copy."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np
import pytest
import torch

import stockade as st
from stockade.certificates.betting_evidence import BettingEvidence
from stockade.certificates.certificate import Certificate
from stockade.certificates.evidence import SampledEvidence, read_evidence
from stockade.certificates.method import NO_WORDS, CertificationInput
from stockade.certificates.methods.ranmask import MaskedCopies
from stockade.certificates.methods.safer import SynonymDistribution
from stockade.certificates.registry import make_method, methods
from stockade.core.errors import OptionError
from stockade.core.partitions import hash_groups
from stockade.core.text import Text
from stockade.defenses.defended import Defended
from stockade.models.huggingface import HuggingFaceClassifier
from tests.certificates.kit import ROWS, EveryMask, every_change
from tests.models.conftest import tiny_bert, tiny_tokenizer
from tests.toys import WeightVictim

VICTIM = WeightVictim({"good": 4.0, "bad": -4.0, "dull": -2.0, "moving": 2.0}, bias=0.1)


def certified(
    model: object, *references: str, rows: Sequence[tuple[str, str]] = ROWS
) -> dict[tuple[str, str], Certificate]:
    run = st.certify(model, rows, references or None)
    return {(certificate.method, certificate.text): certificate for certificate in run.certificates}


def test_a_long_text_of_which_little_is_hidden_is_certified() -> None:
    (certificate,) = certified(st.defend(VICTIM, "ranmask", rate=0.01), rows=[("good fun " * 50, "positive")]).values()
    assert (certificate.status, certificate.radius, certificate.copies) == ("certified", 0, 100)


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
    certificates = certified(robust, "ranmask-exact", "ranmask-gap", "ranmask-lf", rows=rows)
    attackers = ["good", "bad", "moving", "dull", "qzx"]
    largest = 0
    for (method, text), certificate in certificates.items():
        assert certificate.predicted == exact.labels[int(exact.predict_proba([text])[0].argmax())], method
        for changes in range(1, (certificate.radius or 0) + 1):
            others = exact.predict_proba(every_change(text.split(), changes, attackers))
            assert {exact.labels[label] for label in others.argmax(1)} == {certificate.predicted}
        largest = max(largest, certificate.radius or 0)
    assert largest >= (1 if rate == 0.7 else 0)
    for text, _ in rows:  # the exact method is never weaker
        radii = [certificates[method, text].radius for method in ("ranmask-exact", "ranmask-gap", "ranmask-lf")]
        assert all((radii[0] or 0) >= (other or 0) for other in radii[1:])


def test_how_many_words_stay_may_depend_on_the_number_of_words() -> None:
    """Two of six words stay at a rate of 0.6, and no more of twelve: the longer text then stands more changes."""
    text = "good and bad and good film"
    robust = st.defend(VICTIM, "ranmask", rate=0.6, most_kept=2)
    run = st.certify(robust, [(text, "positive"), ("good " * 12, "positive")], "ranmask-exact")
    assert [(c.evidence or {})["table"]["kept"] for c in run.certificates] == [2, 2]
    assert [c.radius for c in run.certificates][1] == 3  # C(9, 2) / C(12, 2) = 0.545 of the copies show none of three
    assert run.verify().holds
    (plain,) = certified(
        st.defend(VICTIM, "ranmask", rate=0.6), "ranmask-exact", rows=[("good " * 12, "positive")]
    ).values()
    assert plain.radius == 1  # of twelve words five stay
    exact = Defended(name="every", defense=EveryMask(2 / 3), inner=VICTIM)  # two of six
    for changes in range(1, (run.certificates[0].radius or 0) + 1):
        others = exact.predict_proba(every_change(text.split(), changes, ["good", "bad", "qzx"]))
        assert set(others.argmax(1)) == {1}


def test_few_copies_are_all_asked_and_nothing_is_left_to_chance() -> None:
    """Six words of which two stay: 15 copies, fewer than those that would choose the class."""
    certificates = certified(st.defend(VICTIM, "ranmask", rate=0.7), "ranmask-gap")
    certificate = certificates["ranmask-gap", "a good and rather moving film"]
    assert (certificate.copies, certificate.selection) == (comb(6, 2), None)
    evidence = read_evidence(certificate.evidence or {})
    assert evidence.tally.counts == (0, 15)  # type: ignore[attr-defined]
    # one of six words is in 5 of the 15 copies: 15 > 2 * 5, and two words are in 9 of them
    assert certificate.radius == 1


def test_samples_choose_the_class_with_copies_that_are_not_counted() -> None:
    text = "good and good and good and good and good and good and good and good and good and good and fun"
    robust = st.defend(VICTIM, "ranmask", rate=0.8)
    certificates = certified(robust, "ranmask-gap:selection=40,most=400", rows=[(text, "positive")])
    (certificate,) = certificates.values()
    assert sum(certificate.selection or ()) == 40
    assert certificate.copies == 40 + read_evidence(certificate.evidence or {}).copies
    assert certificate.predicted == "positive"
    assert certificate.radius is not None
    copies = MaskedCopies(words=tuple(text.split()), premise=None, kept=4, mask="[MASK]", seed=certificate.seed)
    chosen, counted = copies.masks("selection", 0, 40), copies.masks("estimation", 0, 50)
    assert chosen.sum(1).tolist() == [4] * 40
    assert chosen[:40].tolist() != counted[:40].tolist()
    assert len({row.tobytes() for row in counted}) == 50  # few enough to draw none twice


def test_with_the_true_class_no_copy_chooses() -> None:
    certificates = certified(
        st.defend(VICTIM, "ranmask", rate=0.8),
        "ranmask-lf:choose=label,most=200",
        rows=[("good fun and more good fun for all of us and many more good things", "negative")],
    )
    (certificate,) = certificates.values()
    assert (certificate.status, certificate.radius, certificate.predicted, certificate.selection) == (
        "abstained",
        None,
        "negative",
        None,
    )


def test_an_undecided_text_is_abstained_from_and_that_is_no_class() -> None:
    robust = st.defend(WeightVictim({"good": 4.0, "bad": -4.0}), "ranmask", rate=0.5)
    (certificate,) = certified(robust, "ranmask-exact", rows=[("good bad", "positive")]).values()
    assert (certificate.status, certificate.radius, certificate.reason) == (
        "abstained",
        None,
        "no class wins by enough",
    )
    (certificate,) = certified(robust, "ranmask-exact", rows=[("good", "positive")]).values()
    assert (certificate.status, certificate.radius) == (
        "certified",
        0,
    )  # the class is certain, one changed word is everything


def test_the_published_procedure_is_called_what_it_is() -> None:
    (certificate,) = certified(
        st.defend(VICTIM, "ranmask", rate=0.7), "ranmask-legacy:most=500,selection=100", rows=ROWS[:1]
    ).values()
    assert certificate.status == "claimed"
    assert certificate.copies == 600
    assert not methods()["ranmask-legacy"].sound
    assert all(entry.sound for name, entry in methods().items() if name != "ranmask-legacy")


def test_groups_by_position_survive_every_change_within_the_radius() -> None:
    rows = [("good good good good good film", "positive"), ("bad bad good bad bad film", "negative")]
    robust = st.defend(VICTIM, "partition", groups=6)
    certificates = certified(robust, "position-partition", rows=rows)
    assert [certificate.radius for certificate in certificates.values()] == [
        2,
        1,
    ]  # 6 and 5 of 6 groups: ties and the bias go to positive
    for certificate in certificates.values():
        assert certificate.copies == 6
        for changes in range(1, (certificate.radius or 0) + 1):
            others = robust.predict_proba(every_change(certificate.text.split(), changes, ["good", "bad", "qzx"]))
            assert {robust.labels[label] for label in others.argmax(1)} == {certificate.predicted}


def test_groups_by_hash_survive_insertions_and_deletions_too() -> None:
    text = "good fine good moving good film we loved it good indeed"
    robust = st.defend(VICTIM, "partition", by="hash", groups=7)
    (certificate,) = certified(robust, "hash-partition", rows=[(text, "positive")]).values()
    words = text.split()
    assert certificate.radius is not None
    assert len(set(hash_groups(words, 7, "stockade"))) >= 3
    edited = [
        " ".join(words[:at] + [new] + words[at:]) for at in range(len(words) + 1) for new in ("bad", "dull", "qzx")
    ]
    edited += [" ".join(words[:at] + words[at + 1 :]) for at in range(len(words))]
    assert certificate.radius >= 2  # a replaced word costs 2
    edited += every_change(words, 1, ["bad", "dull"])
    assert {robust.labels[label] for label in robust.predict_proba(edited).argmax(1)} == {"positive"}


def test_deletion_says_more_about_insertions_alone() -> None:
    text = "good good moving good good film good good and good fun good"
    robust = st.defend(VICTIM, "deletion", kept_chance=0.2)
    (certificate,) = certified(robust, "deletion:most=2000", rows=[(text, "positive")]).values()
    assert certificate.radius is not None
    assert certificate.insertions is not None
    assert certificate.insertions >= certificate.radius
    with pytest.raises(OptionError, match="kept_chance"):
        st.defend(VICTIM, "deletion", kept_chance=1.0)


def test_safer_is_about_the_words_with_synonyms_only() -> None:
    """One of three words has synonyms. Its set shares 24 % with the one it is farthest from: that word may alter 76 %
    of the copies, and no votes prove a lead of twice that, not even those of a model that always says positive.
    """
    robust = st.defend(WeightVictim({}, bias=4.0), "safer")
    (certificate,) = certified(robust, "safer", rows=[("qzxq good zzqx", "positive")]).values()
    evidence = read_evidence(certificate.evidence or {})
    assert isinstance(evidence, SampledEvidence)
    assert evidence.distribution == SynonymDistribution((0.24,))
    assert [round(float(loss), 9) for loss in evidence.distribution.losses()] == [0, 0.76]
    assert (certificate.status, certificate.radius) == ("certified", 0)
    assert evidence.explain(robust.labels)[-1] == "radius 1 is out of reach, whatever the votes"


def test_mean_probabilities_are_certified_by_another_bound() -> None:
    text = "good fun and more good fun for all of us and many more good things"
    robust = st.defend(VICTIM, "ranmask", rate=0.7)
    certificates = certified(robust, "ranmask-gap:ensemble=probability,most=1000", rows=[(text, "positive")])
    (certificate,) = certificates.values()
    evidence = read_evidence(certificate.evidence or {})
    assert isinstance(evidence, BettingEvidence)
    assert evidence.rounds.sum(0)[1] / evidence.copies > 0.8
    assert certificate.predicted == "positive"
    assert certificate.radius is not None
    (few,) = certified(
        robust, "ranmask-gap:ensemble=probability,most=1000,scheme=curtailed", rows=[(text, "positive")]
    ).values()
    assert read_evidence(few.evidence or {}).tally.totals[1] / few.copies > 0.5  # type: ignore[attr-defined]
    assert (few.radius or 0) <= certificate.radius


def test_texts_with_too_many_copies_have_no_exact_certificate() -> None:
    robust = st.defend(VICTIM, "ranmask", rate=0.5)
    certificates = certified(robust, "ranmask-exact:most=10", rows=[("good " * 12, "positive"), ("good", "positive")])
    long, short = certificates.values()
    assert long.status == "abstained"
    assert long.reason == "the text has 924 masked copies, more than most=10"
    assert short.status == "certified"


@pytest.mark.parametrize(
    ("defense", "method"),
    [
        ("ranmask", "ranmask-gap"),
        ("ranmask", "ranmask-exact"),
        ("ranmask", "ranmask-legacy"),
        ("deletion", "deletion"),
        ("partition", "position-partition"),
    ],
)
def test_texts_without_words_have_no_certificate(defense: str, method: str) -> None:
    robust = st.defend(VICTIM, defense)
    search = make_method(method).method.certify(CertificationInput(Text.parse("  "), None, 0), robust)
    with pytest.raises(StopIteration) as stopped:
        search.send(None)  # nothing is asked
    assert stopped.value.value == NO_WORDS


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
    first, second = (model.encode_masked(string.split(), None, keep)[0] for string in (text, swapped))
    assert first.key == second.key
