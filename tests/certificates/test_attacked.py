"""No attack of the package that replaces words, held to a text's radius, changes a certified class."""

from __future__ import annotations

import pytest

import stockade as st
from stockade.attacks.registry import attacks, task_of
from stockade.core.protocols import Classifier
from stockade.defenses.defended import Defended
from stockade.models.huggingface import HuggingFaceClassifier
from tests.certificates.kit import EveryMask
from tests.models.zoo_kit import build

TEXTS = [
    ("a wonderful and moving film throughout", "positive"),
    ("dull and lifeless from start to end", "negative"),
    ("an absolute joy to watch again", "positive"),
    ("stupid , tedious and badly made", "negative"),
]
RATE = 0.75
INSERTING = {"bae-i", "bae-r/i", "bae-r+i"}
"""Insertions change the number of words: no mask certificate speaks of them."""
NEEDS_ATTENTION = {"asmin-gr", "asmax-gr", "asmin-ec", "asmax-ec"}
NEEDS_FILE = {"rules"}
ON_TRANSLATORS = {name for name, entry in attacks().items() if task_of(entry.implementation) == "translation"}
QUICK = {"deepwordbug", "hotflip", "pwws", "textfooler"}
CASES = [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)
    for name in sorted(attacks().keys() - INSERTING - NEEDS_ATTENTION - NEEDS_FILE - ON_TRANSLATORS)
]


@pytest.fixture(scope="module")
def exact() -> Classifier:
    """The built-in CNN with every mask asked: the very classifier that certificates speak of."""
    return Defended(name="every-mask", defense=EveryMask(RATE), inner=st.load_model("builtin:sentiment-cnn"))


@pytest.fixture(scope="module")
def radii() -> dict[str, int]:
    robust = st.defend("builtin:sentiment-cnn", "ranmask", rate=RATE)
    labels = dict(TEXTS)
    certificates = st.certify(robust, TEXTS, "ranmask-exact").certificates
    return {
        certificate.text: certificate.radius or 0
        for certificate in certificates
        if certificate.predicted == labels[certificate.text]
    }


def test_there_is_something_to_attack(radii: dict[str, int]) -> None:
    assert sum(radius >= 1 for radius in radii.values()) >= 2


@pytest.mark.parametrize("name", CASES)
def test_no_success_changes_so_few_words(name: str, exact: Classifier, radii: dict[str, int]) -> None:
    """The attack may change as much as it likes, and then is held to each radius: a success needs more words."""
    free = _successes(name, exact, list(radii), 1.0)
    assert all(_changed(before, after) > radii[before] for before, after in free)
    for radius in sorted({radius for radius in radii.values() if radius}):
        texts = [text for text, allowed in radii.items() if allowed >= radius]
        share = (radius + 0.5) / max(len(text.split()) for text in texts)
        for before, after in _successes(name, exact, texts, share):
            assert _changed(before, after) > radii[before]


def test_without_a_limit_some_attack_succeeds(exact: Classifier, radii: dict[str, int]) -> None:
    """So the test above is one that could fail."""
    assert any(_successes(name, exact, list(radii), 1.0) for name in ("deepwordbug", "textfooler", "hotflip"))


def _successes(name: str, exact: Classifier, texts: list[str], share: float) -> list[tuple[str, str]]:
    labels = dict(TEXTS)
    run = st.attack(
        exact, [(text, labels[text]) for text in texts], name, max_changed=share, similarity=False, budget=400
    )
    return [(record.original, str(record.adversarial)) for record in run.examples if record.status == "success"]


def _changed(before: str, after: str) -> int:
    """How many words differ, words being what blanks separate; another number of words is outside the certificate."""
    first, second = before.split(), after.split()
    if len(first) != len(second):
        return 10**9
    return sum(word != other for word, other in zip(first, second, strict=True))


@pytest.mark.parametrize("name", sorted(NEEDS_ATTENTION))
def test_attacks_by_attention_change_no_certified_class(name: str) -> None:
    """One word each, on a small model with attention; where nothing is certified they may succeed, and one does."""
    network, tokenizer = build("BiLSTM-attention", seed=3)
    model = HuggingFaceClassifier(network, tokenizer)
    attentive = Defended(name="every-mask", defense=EveryMask(RATE), inner=model)
    texts = ["a great film truly great", "what a bad bad movie", "not good not bad at all", "the film is not a movie"]
    labels = [attentive.labels[label] for label in attentive.predict_proba(texts).argmax(1)]
    rows = list(zip(texts, labels, strict=True))
    certificates = st.certify(st.defend(model, "ranmask", rate=RATE), rows, "ranmask-exact").certificates
    assert [certificate.radius for certificate in certificates] == [1, 2, 1, 0]
    run = st.attack(attentive, rows, name, similarity=False)
    fooled = [record.original for record in run.examples if record.status == "success"]
    assert set(fooled) <= {texts[3]}
    assert name != "asmax-gr" or fooled
