"""Texts in other languages: attacks that need English resources are refused, the others run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stockade as st
from stockade.attacks.languages import RESOURCES, missing_resources, script_of
from stockade.attacks.registry import attacks, make_attack, task_of
from stockade.core.errors import OptionError, ResourceMissing
from tests.toys import WeightVictim

GERMAN = [("ein großartiger film mit schönen bildern", "positive"), ("ein schlechter film", "negative")]
RUSSIAN = [("это был отличный фильм", "positive"), ("плохой фильм", "negative")]
VICTIM = WeightVictim({"großartiger": 2.0, "schlechter": -2.0, "отличный": 2.0, "плохой": -2.0}, bias=0.1)
NEEDS = {
    "pwws": ["wordnet", "pos"],
    "pwws:same_pos=any": ["wordnet"],
    "pwws:constraint=same-pos,same_pos=any": ["wordnet", "pos"],
    "random-synonyms": ["wordnet", "pos"],
    "textfooler": ["pos", "neighbours", "encoder"],
    "bae-r": ["pos", "masked-lm", "encoder"],
    "bae-r:same_pos=false": ["masked-lm", "encoder"],
    "bert-attack": ["wordnet", "masked-lm"],
    "bert-attack@textattack": ["masked-lm", "encoder"],
    "genetic": ["neighbours", "masked-lm"],
    "hotflip:same_pos=false": [],
    "deepwordbug": [],
    "deepwordbug@textattack": [],
}


@pytest.mark.parametrize("reference", list(NEEDS))
def test_what_an_attack_needs(reference: str) -> None:
    assert missing_resources(make_attack(reference).attack, ()) == NEEDS[reference]


def test_every_attack_says_what_it_needs() -> None:
    for name, entry in attacks().items():
        if task_of(entry.implementation) == "classification" and name != "rules":
            assert hasattr(entry.implementation, "english"), name


def attacked(rows: list[tuple[str, str]], attack: str, **options: Any) -> st.AttackResult:
    language = options.pop("language", None)
    data_options = st.DataOptions(language=language)
    result: Any = st.attack(VICTIM, rows, attack, similarity=False, data_options=data_options, **options)
    return result


@pytest.mark.parametrize(
    ("rows", "language", "message"),
    [
        (
            GERMAN,
            "de",
            r"pwws needs WordNet, which Stockade has for English alone, and the data are in de \(--language\)",
        ),
        (GERMAN, "pt-BR", "in pt-BR"),
        (RUSSIAN, None, r"written in Cyrillic letters \(name their --language\).*such as deepwordbug"),
        (RUSSIAN, "en", "written in Cyrillic letters"),
    ],
)
def test_an_attack_without_its_resources_is_refused_before_anything_is_begun(
    rows: list[tuple[str, str]], language: str | None, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ResourceMissing, match=message):
        attacked(rows, "pwws", language=language, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("rows", [GERMAN, RUSSIAN])
@pytest.mark.parametrize("attack", ["deepwordbug", "deepwordbug:transforms=swap+delete"])
def test_misspelling_fits_every_language(rows: list[tuple[str, str]], attack: str) -> None:
    run = attacked(rows, attack, language="xx")
    assert run.summary["attacks"]["deepwordbug"]["succeeded"] >= 1
    assert run.manifest.spec["data_options"]["language"] == "xx"


def test_what_the_user_brings_counts() -> None:
    bae = make_attack("bae-r:same_pos=false").attack
    assert missing_resources(bae, {"masked-lm", "encoder"}) == []
    assert missing_resources(make_attack("textfooler:same_pos=false").attack, {"encoder", "neighbours"}) == []
    with pytest.raises(ResourceMissing, match=r"bae-r needs a masked LM.*or name one for that language with --mlm"):
        attacked(GERMAN, "bae-r:same_pos=false", language="de")


def test_similarity_is_not_measured_by_an_encoder_of_another_language() -> None:
    options = st.DataOptions(language="de")
    with pytest.raises(ResourceMissing, match=r"similarity of successes.*--encoder.*--no-similarity"):
        st.attack(VICTIM, GERMAN, "deepwordbug", data_options=options)


def test_english_runs_as_before() -> None:
    rows = [("a great film", "positive")]
    for language in (None, "en", "en-GB"):
        assert attacked(rows, "pwws", language=language).summary["attacks"]["pwws"]["n"] == 1
    with pytest.raises(OptionError, match=r'--language is "german!", expected a code'):
        attacked(rows, "pwws", language="german!")


@pytest.mark.parametrize(
    ("text", "script"),
    [("a great film", "Latin"), ("großartig", "Latin"), ("фильм", "Cyrillic"), ("映画 です", "CJK"), ("123 !", None),
     ("это film", "Latin"), ("это хорошо film", "Cyrillic")],
)  # fmt: skip
def test_scripts(text: str, script: str | None) -> None:
    assert script_of([text]) == script


def test_every_resource_has_a_name() -> None:
    assert all(what for what, _ in RESOURCES.values())
