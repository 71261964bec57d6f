"""The numbers of the study and the paper's claims, on results that a person can count."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from stockade.attacks.registry import make_attacks
from stockade.core.statistics import wilson
from stockade.studies.attention.analysis import (
    AttentionNumbers,
    ModelResults,
    analyse,
    compare_models,
    examples_to_show,
)
from stockade.studies.attention.claims import check_claims, published_table
from stockade.studies.attention.inputs import ATTACKS, Victim
from stockade.studies.attention.inside import Attention, TextChange
from stockade.studies.attention.texts import Selection
from stockade.studies.claims import Claim
from stockade.studies.records import read_results
from stockade.workflows.attack.spec import AttackSpec
from tests.studies.made_studies import failure, make_run, success

STRONG = {
    "random": "ssff",
    "list": "sfff",
    "asmin-gr": "fsff",
    "asmax-gr": "sfsf",
    "asmin-ec": "ffff",
    "asmax-ec": "sfsf",
    "gs-gr": "sssf",
    "gs-ec": "sssf",
}
"""A letter per text and attack: s succeeds, f fails."""
FLIPS = (0.5, 0.1, 0.0, 0.0)


def text_change(
    number: str, *, words: int = 6, relative: float | None = None, pieces: tuple[int, int] | None = None
) -> TextChange:
    """A success that moves half of R_e of the attention from the first word to the second."""
    moved = (relative or 0.0) / 2
    rest = (0.0,) * (words - 2)
    return TextChange(
        id=number,
        label="positive",
        prediction="negative",
        words=("w",) * words,
        index=0,
        replacement="x",
        relative_change=relative,
        pieces=pieces,
        attention=Attention((1.0, 0.0, *rest), (1.0 - moved, moved, *rest)),
    )


def made(
    folder: Path,
    outcomes: Mapping[str, str] = STRONG,
    flips: tuple[float, ...] = FLIPS,
    *,
    name: str = "toy",
    kind: str = "other",
    relative: float | None = None,
) -> ModelResults:
    """What is known of a model on which the attacks did this."""
    records = {}
    for attack, letters in outcomes.items():
        shares = flips if attack == "random" else (None,) * len(letters)
        records[attack] = [
            success(number, attack, ("one", "x"), flip_share=share)
            if letter == "s"
            else failure(number, attack, flip_share=share)
            for number, (letter, share) in enumerate(zip(letters, shares, strict=True))
        ]
    named = {attack: attack.removesuffix("-last") for attack in outcomes}
    spec = AttackSpec.of(model="toy model", data="toy data", attacks=make_attacks(named), similarity=False)
    run = make_run(folder / name, spec, records)
    victim = Victim(
        name=name,
        reference="toy model",
        fingerprint=None,
        labels=("negative", "positive"),
        kind=kind,
        missing={attack: "not shown" for attack in ATTACKS if attack not in outcomes},
        without_layers="no layers",
        without_self_attention="no self-attention",
    )
    return ModelResults(
        victim=victim,
        summaries=run.summary["attacks"],
        results=read_results(run, run.attacks),
        changes=[text_change(str(number), relative=relative) for number in range(len(outcomes["list"]))],
        theorem=None,
    )


def analysed(*models: ModelResults) -> tuple[AttentionNumbers, tuple[Claim, ...]]:
    texts = len(models[0].results["list"])
    selection = Selection(tuple(map(str, range(texts))), 8, 20, {model.victim.name: 6 for model in models})
    numbers = analyse(selection, models, None)
    changes = {model.victim.name: {change.id: change for change in model.changes} for model in models}
    return numbers, check_claims(numbers, {model.victim.name: model.results for model in models}, changes)


def test_random_is_a_share_of_draws_and_a_star_the_best_of_four(tmp_path: Path) -> None:
    numbers, _ = analysed(made(tmp_path))
    model = numbers.models["toy"]
    assert model.attacks["random"].rate["value"] == pytest.approx(0.15)
    assert model.attacks["random"].success_rate == wilson(2, 4)
    assert model.attacks["list"].rate == wilson(1, 4)
    assert model.a_star is not None
    assert (model.a_star.attack, model.a_star.rate) == ("asmax-gr", wilson(2, 4))
    assert (model.a_star.union.fooled, model.a_star.union.attacked, model.a_star.union.rate) == (3, 4, wilson(3, 4))
    assert model.accuracy == wilson(6, 8)
    assert (numbers.texts.chosen, numbers.texts.classified, numbers.texts.total) == (4, 8, 20)


def test_claims_about_the_attacks_on_one_model(tmp_path: Path) -> None:
    _, claims = analysed(made(tmp_path / "a"))
    assert {claim.holds for claim in claims} == {None}, "four texts decide nothing"
    assert "3 against 2 of 4 texts; 1 fooled only by gs-gr, 0 only by asmax-gr; McNemar p = 1.000" in claims[0].numbers
    assert claims[2].numbers == "75.0 % of texts against 15.0 % of draws; sign flips p = 0.250 on 4 texts"
    assert claims[3].numbers == "3 against 3 of 4 texts: +0.0 points (-49.0 to +49.0)"
    many = {attack: 40 * letters for attack, letters in STRONG.items()}
    _, claims = analysed(made(tmp_path / "b", many, 40 * FLIPS))
    assert [claim.claim.removeprefix("toy: ") for claim in claims] == [
        "gs-gr at least as strong as attention (A*)",
        "gs-gr at least as strong as list",
        "gs-gr at least as strong as random",
        "gs-ec almost identical to gs-gr, within 5 points",
        "asmax-gr at least as strong as asmin-gr",
        "asmax-ec at least as strong as asmin-ec",
    ]
    assert [claim.holds for claim in claims] == [True, True, True, True, True, True]
    other = {**many, "gs-ec": 40 * "sfff", "list": 40 * "ssss", "asmin-gr": 40 * "sssf"}
    _, claims = analysed(made(tmp_path / "c", other, 40 * FLIPS))
    assert [claim.holds for claim in claims] == [None, False, True, False, False, True]


@pytest.mark.parametrize(
    ("only_gr", "only_ec", "texts", "holds"),
    [(0, 0, 100, True), (0, 0, 60, None), (1, 1, 100, True), (2, 0, 100, None), (0, 30, 100, False)],
)
def test_almost_identical_is_undecided_unless_the_interval_is_within_the_margin(
    tmp_path: Path, only_gr: int, only_ec: int, texts: int, holds: bool | None
) -> None:
    """On 60 texts no difference at all is still 6 points wide; the paper's own 2 points on 100 texts reach to 7."""
    both = texts // 2
    rest = texts - both - only_gr - only_ec
    outcomes = {
        "random": texts * "f",
        "list": texts * "f",
        "gs-gr": both * "s" + only_gr * "s" + only_ec * "f" + rest * "f",
        "gs-ec": both * "s" + only_gr * "f" + only_ec * "s" + rest * "f",
    }
    _, claims = analysed(made(tmp_path, outcomes, texts * (0.0,)))
    (claim,) = [claim for claim in claims if "almost identical" in claim.claim]
    assert claim.holds is holds, claim.numbers


@pytest.mark.parametrize(("fooled", "holds"), [(0, True), (3, True), (8, None), (30, False)])
def test_the_pilot_study_must_stay_below_ten_percent(tmp_path: Path, fooled: int, holds: bool | None) -> None:
    many = {attack: 25 * letters for attack, letters in STRONG.items()}
    model = made(tmp_path, {**many, "asmax-ec-last": fooled * "s" + (100 - fooled) * "f"}, 25 * FLIPS)
    _, claims = analysed(model)
    assert claims[-1].claim == "toy: asmax-ec by the last layer fools less than 10 % of the texts"
    assert claims[-1].holds is holds
    assert claims[-1].numbers.startswith(f"{fooled} of 100 texts: {fooled:.1f} %")


def test_where_nothing_fools_a_model_no_claim_is_decided(tmp_path: Path) -> None:
    _, claims = analysed(made(tmp_path, dict.fromkeys(STRONG, "ffff"), (0.0, 0.0, 0.0, 0.0)))
    assert [claim.verdict for claim in claims] == ["undecided"] * 6


def test_a_model_without_attention_leaves_claims_undecided(tmp_path: Path) -> None:
    numbers, claims = analysed(made(tmp_path, {"random": "sf", "list": "ff"}, (0.5, 0.0)))
    model = numbers.models["toy"]
    assert (model.a_star, model.attention, model.without_attention) == (None, None, "not shown")
    assert [claim.holds for claim in claims] == [None] * 6
    assert claims[0].numbers == "the model does not allow one of them"


def test_claims_about_models_count_the_texts_that_fool_only_one(tmp_path: Path) -> None:
    strong = {attack: 8 * letters for attack, letters in STRONG.items()}
    weaker = {**strong, "gs-gr": 8 * "ssss", "list": 8 * "fsss", "asmin-gr": 8 * "ffff"}
    few = 8 * (0.1, 0.0, 0.0, 0.0)
    bert = made(tmp_path, strong, few, name="bert", kind="self-attentive", relative=0.2)
    lstm = made(tmp_path, weaker, 8 * FLIPS, name="lstm", kind="recurrent", relative=0.6)
    other = made(tmp_path, strong, 8 * FLIPS, name="cnn")
    numbers, several = analysed(bert, lstm, other)
    claims = {claim.claim: claim for claim in several}
    assert [pair.models for pair in numbers.pairs] == [("bert", "lstm")]
    assert len(claims) == len(several) == 3 * 6 + len(ATTACKS) + 2
    assert claims["random: bert is fooled less often than lstm"].holds is True
    assert claims["gs-gr: bert is fooled less often than lstm"].holds is True
    assert claims["gs-ec: bert is fooled less often than lstm"].holds is None
    assert claims["asmin-gr: bert is fooled less often than lstm"].holds is False
    listed = claims["list: bert is fooled less often than lstm"]
    assert listed.numbers == "8 against 24 of 32 texts; 8 fool only bert, 24 only lstm; McNemar p = 0.007"
    assert listed.holds is True
    moved = claims["R_e is larger for lstm than for bert"]
    assert moved.holds is True
    assert moved.numbers.startswith("bert 0.200 (0.200–0.200), lstm 0.600 (0.600–0.600); sign flips p < 0.001 on 32")
    stable = claims["gs-ec moves less attention in bert than in lstm"]
    assert stable.holds is True
    assert stable.numbers.startswith("bert 0.100 (0.100–0.100), lstm 0.300 (0.300–0.300); sign flips p < 0.001 on 32")
    compared = numbers.pairs[0].attacks["list"]
    assert compared == compare_models(bert.results, lstm.results, "list")
    assert compared is not None
    assert (compared.texts, compared.fooled, compared.only) == (32, (8, 24), (8, 24))
    assert compare_models(bert.results, {}, "list") is None


def test_models_that_differ_on_a_few_texts_are_not_told_apart(tmp_path: Path) -> None:
    weaker = {**STRONG, "gs-gr": "ssss"}
    bert = made(tmp_path, STRONG, name="bert", kind="self-attentive", relative=0.2)
    lstm = made(tmp_path, weaker, name="lstm", kind="recurrent", relative=0.6)
    _, several = analysed(bert, lstm)
    assert {claim.verdict for claim in several} == {"undecided"}


def test_texts_that_fool_most_models_are_shown_first() -> None:
    shown = examples_to_show({"a": [text_change(number) for number in "123"], "b": [text_change("3")]}, 2)
    assert [change.id for change in shown["a"]] == ["3", "1"]
    assert [change.id for change in shown["b"]] == ["3"]
    lengths = [text_change("short", words=3), text_change("long", words=31), text_change("fine", words=30)]
    assert [change.id for change in examples_to_show({"a": lengths})["a"]] == ["fine", "short", "long"]
    kept = [text_change("shifts", pieces=(2, 1)), text_change("keeps", pieces=(1, 1))]
    assert [change.id for change in examples_to_show({"a": kept})["a"]] == ["keeps", "shifts"]


def test_the_papers_numbers_have_a_row_for_each_attack_and_one_for_the_best() -> None:
    rows = {str(row[0]): row for row in published_table().rows}
    assert [name for name in rows if name != "A*"] == list(ATTACKS)
    assert rows["gs-ec"][1:3] == ("78 %", "50 %")
