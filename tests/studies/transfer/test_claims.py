"""The paper's main findings on matrices in which they hold, do not hold, or cannot be decided."""

from __future__ import annotations

import pytest

from stockade.studies.transfer.importance_maps import FamilySpread, Spread
from stockade.studies.transferability.matrix import traits_of
from tests.studies.transfer.made import claims_of, make_outcomes, without_second_trainings
from tests.studies.transfer.test_statistics import FAR, rate

ZOO = (
    "LSTM-W-Random-1",
    "LSTM-W-GloVe-1",
    "LSTM-W-Random-2",
    "CNN-W-Random-1",
    "LSTM-C-Random-1",
    "LSTM-WC-ELMo-1",
    "BERT",
    "RoBERTa",
)
OWN = "adversarial texts transfer better to a second training of the same model than to other models"
ORDER = "the input form has the greatest effect on transfer, then architecture, embedding, capacity"
SYMMETRY = "transfer is not symmetric: r(s, t) differs from r(t, s)"
OVERFITS = "pwws overfits to its source more than the genetic attack: its rates move further from the base rate"
SPREADS = "transformers spread their attention over more words than other models"
PRETRAINED = "models with pre-trained embeddings or weights are more robust than word models that begin at random"


def from_(kind: str) -> str:
    return f"adversarial texts of {kind} transfer less than those of other models, to the other models"


def robust(kind: str) -> str:
    return f"{kind} are more robust than other models to the adversarial texts of other models"


def as_published(source: str, target: str) -> float:
    """The paper's world: transformers and character models keep to themselves, pre-trained targets are robust."""
    one, other = traits_of(source).input_class, traits_of(target).input_class
    if source == target:
        return 0.9
    if one == other:
        return 0.6
    special = ("BERT", "Character")
    lost = 0.25 * (other in special) + 0.15 * (one in special)
    return 0.5 - lost - 0.1 * (other in ("GloVe", "ELMo", "BERT"))


def test_the_papers_world_has_the_papers_findings() -> None:
    claims = claims_of({"pwws": make_outcomes(ZOO, as_published)})
    for claim in (from_("transformers"), robust("transformers"), from_("character models"), robust("character models")):
        assert claims[claim].holds, claims[claim]
    for claim in (OWN, SYMMETRY, PRETRAINED):
        assert claims[claim].holds, claims[claim]
    assert "above the mean of its row for 8 of 8 models" in claims[OWN].numbers
    assert claims[PRETRAINED].numbers.startswith("as targets: Random ")
    assert len(claims) == 10


def test_the_opposite_world_has_none_of_them() -> None:
    claims = claims_of({"pwws": make_outcomes(ZOO, lambda source, target: 1 - as_published(source, target))})
    for claim in (from_("transformers"), robust("transformers"), OWN, PRETRAINED):
        assert claims[claim].holds is False, claims[claim]
        assert claims[claim].verdict == "not held"


def test_the_order_of_the_factors() -> None:
    models = ZOO[:5]
    claims = claims_of({"pwws": make_outcomes(models, rate)})
    assert claims[ORDER].holds
    assert "input form 0.500, architecture 0.300, embedding 0.200, capacity 0.100" in claims[ORDER].numbers
    assert "input form over architecture p < 0.001 (1 of 1 target)" in claims[ORDER].numbers.replace(
        "p = 0.001", "p < 0.001"
    )

    def turned(source: str, target: str) -> float:
        return rate(source, target) if traits_of(source).layers == traits_of(target).layers else 0.0

    assert claims_of({"pwws": make_outcomes(models, turned)})[ORDER].holds is False
    missing = claims_of({"pwws": make_outcomes(models[:2], rate)})[ORDER]
    assert (missing.holds, missing.verdict) == (None, "undecided")
    assert "differs in input form or architecture or capacity alone" in missing.numbers


def test_what_the_study_does_not_have_is_undecided_with_the_reason() -> None:
    alone = without_second_trainings(make_outcomes(("mine", "yours"), lambda source, target: 0.5))
    claims = claims_of({"pwws": alone})
    assert {claim.holds for claim in claims.values()} == {None}
    assert claims[from_("transformers")].numbers == "there are no transformers in this study"
    assert claims[robust("character models")].numbers == "there are no character models in this study"
    assert claims[ORDER].numbers == "no two models of the zoo differ in one factor and have a second training"
    assert claims[OWN].numbers == "no model has a second training: name them with --second"
    assert claims[PRETRAINED].numbers == "there are no word models that begin at random in this study"
    assert claims[SPREADS].numbers == "word importance was not measured"
    assert claims[OVERFITS].numbers == "the study has no attack genetic"
    assert "p = 1.000" in claims[SYMMETRY].numbers


def test_pwws_against_the_genetic_attack() -> None:
    def tame(source: str, target: str) -> float:
        return 0.8 - (0.8 - rate(source, target)) / 10

    attacks = {"pwws": make_outcomes(ZOO[:5], rate), "genetic@transfer": make_outcomes(ZOO[:5], tame)}
    claims = claims_of(attacks)
    assert claims[OVERFITS].holds
    assert f"mean effect of the factors {sum(FAR.values()) / 4:.3f} against" in claims[OVERFITS].numbers
    assert f"genetic@transfer: {ORDER}" in claims
    swapped = {"genetic": attacks["pwws"], "pwws": attacks["genetic@transfer"]}
    assert claims_of(swapped)[OVERFITS].holds is False
    bare = {name: without_second_trainings(outcomes) for name, outcomes in attacks.items()}
    assert claims_of(bare)[OVERFITS].holds is None


@pytest.mark.parametrize(("difference", "p", "holds"), [(0.2, 0.01, True), (-0.2, 0.01, False), (0.2, 0.2, None)])
def test_the_spread_of_transformers(difference: float, p: float, holds: bool | None) -> None:
    interval = {"value": difference, "low": None, "high": None}
    family = FamilySpread(
        models=2, others=6, texts=40, spread=0.7, others_spread=0.7 - difference, difference=interval, p=p
    )
    outcomes = {"pwws": make_outcomes(ZOO, as_published)}
    claim = claims_of(outcomes, Spread(40, {}, {"BERT": family}))[SPREADS]
    assert claim.holds is holds
    assert claims_of(outcomes, Spread(40, {}, {}))[SPREADS].numbers == "there are no transformers, or no others"


def test_nothing_is_decided_on_a_few_texts() -> None:
    claims = claims_of({"pwws": make_outcomes(ZOO, as_published, texts=20)})
    assert {claim.holds for claim in claims.values()} == {None}
    assert claims[OWN].numbers.startswith("too few texts to decide (20); ")
