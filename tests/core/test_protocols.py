"""A model is recognised by what it can do, whatever its class."""

from __future__ import annotations

import pytest

from stockade.core import protocols

CLASSIFIER = frozenset({"labels", "deterministic", "predict_proba"})
ENCODING = CLASSIFIER | {"encode", "predict_encoded"}
WHITE_BOX = CLASSIFIER | {"word_gradients", "word_vocabulary"}
MEMBERS: dict[type, frozenset[str]] = {
    protocols.Classifier: CLASSIFIER,
    protocols.EncodingClassifier: ENCODING,
    protocols.LogitClassifier: ENCODING | {"logits_encoded"},
    protocols.MaskingClassifier: ENCODING | {"encode_masked"},
    protocols.CompositeClassifier: CLASSIFIER | {"inner", "answer"},
    protocols.WhiteBoxClassifier: WHITE_BOX,
    protocols.MixingClassifier: WHITE_BOX | {"predict_mixed"},
    protocols.AttentiveClassifier: frozenset({"word_attention"}),
    protocols.ZeroingClassifier: frozenset({"predict_zeroed"}),
    protocols.ImportanceClassifier: frozenset({"token_importance"}),
    protocols.NoisedClassifier: frozenset({"predict_noised"}),
    protocols.RepresentingClassifier: frozenset({"represent"}),
    protocols.WindowedClassifier: frozenset({"visible_words"}),
    protocols.ParallelClassifier: frozenset({"workers", "start_worker"}),
    protocols.Fingerprinted: frozenset({"fingerprint"}),
    protocols.ResourcefulAttack: frozenset({"resources"}),
}


@pytest.mark.parametrize("protocol", MEMBERS, ids=lambda protocol: protocol.__name__)
def test_a_model_needs_every_member_and_nothing_else(protocol: type) -> None:
    members = dict.fromkeys(MEMBERS[protocol], "")
    assert isinstance(type("Model", (), members)(), protocol)
    for missing in members:
        others = {name: value for name, value in members.items() if name != missing}
        assert not isinstance(type("Model", (), others)(), protocol)


def test_a_guess_of_a_masked_model_need_not_have_a_token() -> None:
    assert protocols.Filling("film", 1.5, True).token == -1
