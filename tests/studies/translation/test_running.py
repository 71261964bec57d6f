"""The study of translators from end to end, on two toys whose answers a person can tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stockade as st
from stockade.core.attacked_translation import TranslationRecord
from stockade.core.errors import OptionError
from stockade.models.translation.bleu import bootstrap_bleu, bootstrap_interval, compare_bleu
from stockade.studies.translation.analysis import measure_shift
from stockade.studies.translation.claims import _negated, _paired, _positive
from stockade.studies.translation.study import TranslationStudyResult
from tests.studies.translation.toys import Attentive, Recurrent, pairs

OPTIONS: dict[str, Any] = {"searched": 12, "typos": "mt-typo@full", "attention": 10, "maps": 1, "similarity": False}


def run(out: Path | None = None, **options: Any) -> TranslationStudyResult:
    models = options.pop("models", {"lstm": Recurrent(), "transformer": Attentive()})
    settings = {**OPTIONS, "attacks": ["mt-keyword:keyword=Katze,words=1", "mt-nonoverlap:words=1"], **options}
    result = st.study("translation", models, pairs(), out=out, **settings)
    assert isinstance(result, TranslationStudyResult)
    return result


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> TranslationStudyResult:
    return run(tmp_path_factory.mktemp("study") / "mt")


def test_the_numbers_are_those_of_the_toys(study: TranslationStudyResult) -> None:
    models = study.numbers.models
    assert {name: model.kind for name, model in models.items()} == {
        "lstm": "recurrent",
        "transformer": "self-attentive",
    }
    lstm, transformer = models["lstm"], models["transformer"]
    assert lstm.keyword.success_rate["value"] == 1.0
    assert transformer.keyword.success_rate["value"] == 0.0
    assert lstm.typo.attacked == transformer.typo.attacked == 24
    assert lstm.typo.before["value"] == 100.0
    assert (lstm.typo.change["high"] or 0.0) < 0
    assert transformer.attention["value"] == 0.0
    assert lstm.attention["value"] == pytest.approx(0.8)  # from a fifth for each word to all for one
    compared = study.numbers.compared
    assert compared is not None
    assert compared.only_recurrent == compared.keyword_sentences > 5
    assert compared.recurrent_moves_more == compared.attention_sentences == 10


def test_claims_are_decided_by_tests(study: TranslationStudyResult) -> None:
    verdicts = {claim.claim: claim.verdict for claim in study.claims}
    assert verdicts["the keyword attack succeeds less often on the self-attentive translator"] == "held"
    assert verdicts["the attention of the recurrent translator moves more when a word has a typo"] == "held"
    assert verdicts["one typo per sentence lowers BLEU (lstm)"] == "held"
    assert verdicts["the keyword attack succeeds on fewer than 30 % of the sentences (lstm)"] == "not held"
    assert verdicts["the self-attentive translator has the higher BLEU on unchanged sentences"] == "not held"


def test_what_a_test_cannot_tell_is_undecided() -> None:
    assert _paired("c", 3, 1, "").holds is None
    assert _paired("c", 9, 1, "").holds is True
    assert _paired("c", 1, 9, "").holds is False
    assert _positive("c", {"value": 0.5, "low": -0.1, "high": 1.0}, "").holds is None
    assert _positive("c", {"value": -0.5, "low": -1.0, "high": -0.1}, "").holds is False
    assert _negated({"value": 1.0, "low": 0.5, "high": 2.0}) == {"value": -1.0, "low": -2.0, "high": -0.5}


def test_the_page_has_the_papers_numbers_examples_and_attention(study: TranslationStudyResult) -> None:
    document = study.document()
    page, text = document.to_html(), document.to_markdown()
    for wanted in ("27.5 %", "10.5 %", "25.10 → 13.44", "34.90 → 26.02", "keyword Katze", "lstm, example", "before"):
        assert wanted in text, wanted
        assert wanted in page, wanted
    assert (study.folder / "report.html").exists()


def test_the_runs_inside_are_results_of_their_own(study: TranslationStudyResult) -> None:
    assert set(study.runs) == {"lstm", "lstm-typos", "transformer", "transformer-typos"}
    assert st.load(study.folder / "lstm").summary["attacks"]["mt-keyword"]["success_rate"]["value"] == 1.0
    victims = {name: Recurrent() if name.startswith("lstm") else Attentive() for name in study.runs}
    assert study.verify(victims).holds
    assert {row["run"] for row in study.rows()} == set(study.runs)


def test_an_interrupted_study_goes_on(tmp_path: Path, study: TranslationStudyResult) -> None:
    class Broken(Attentive):
        def greedy_steps(self, sources: Any, wanted: Any) -> Any:
            if len(self.asked) > 100:
                raise KeyboardInterrupt
            return super().greedy_steps(sources, wanted)

    Broken.__qualname__ = "Attentive"
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "mt", models={"lstm": Recurrent(), "transformer": Broken()})
    again = run(tmp_path / "mt", resume=True)
    whole, resumed = ({k: v for k, v in s.summary.items() if k in ("models", "claims")} for s in (study, again))
    assert json.dumps(whole) == json.dumps(resumed)


def test_kinds_can_be_named_and_black_boxes_have_no_attention() -> None:
    def copy(texts: list[str]) -> list[str]:
        return list(texts)

    models = {"first": copy, "second": Recurrent()}
    result = run(models=models, recurrent="first", attacks=["mt-keyword:keyword=Katze,words=1,sample=4,most=4"])
    assert result.numbers.models["first"].kind == "recurrent"
    assert result.numbers.models["first"].attention_sentences == 0
    alone = run(models={"only": Recurrent()})
    assert alone.numbers.compared is None
    assert sum(claim.holds is None for claim in alone.claims) >= 5


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"attacks": "mt-nonoverlap"}, "name mt-keyword among"),
        ({"attacks": "pwws"}, "pwws attacks classifiers"),
        ({"typos": "mt-keyword"}, "is no typo attack"),
        ({"recurrent": "nobody"}, "none of the models"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(OptionError, match=sentence):
        run(**options)


def test_models_or_data_to_train_on_are_needed() -> None:
    with pytest.raises(OptionError, match="--train-data"):
        st.study("translation", data=pairs())
    with pytest.raises(OptionError, match="DATA is missing"):
        st.study("translation", train_data=pairs())


@pytest.mark.slow
def test_both_translators_are_trained_when_none_is_given(tmp_path: Path) -> None:
    result = st.study(
        "translation",
        data=pairs(6),
        train_data=pairs(40),
        train_preset="fast",
        searched=2,
        attacks=["mt-keyword:words=1,sample=4,most=4"],
        typos="mt-typo@full",
        attention=2,
        maps=0,
        similarity=False,
        out=tmp_path / "mt",
    )
    assert set(result.numbers.models) == {"bilstm-mt", "transformer-mt"}
    assert (tmp_path / "mt" / "models" / "bilstm-mt" / "config.json").exists()
    assert [model.kind for model in result.numbers.models.values()] == ["recurrent", "self-attentive"]


def test_attention_moves_by_what_a_person_computes() -> None:
    record = TranslationRecord(
        id="0",
        attack="mt-typo",
        status="success",
        reason=None,
        original="a dog",
        adversarial="a dgo",
        reference="ein Hund",
        original_translation="ein Hund",
        adversarial_translation="ein a",
        keyword=None,
        queries=0,
        rows=0,
    )
    shift = measure_shift(Recurrent(), record, matrices=True)
    assert shift is not None
    assert (list(shift.before), list(shift.after)) == ([0.5, 0.5], [0.0, 1.0])
    assert shift.distance == 0.5
    assert np.shape(shift.weights_after) == (2, 2)


def test_the_paired_bootstrap_agrees_with_sacrebleu_and_is_paired() -> None:
    references = [target for _, target in pairs()]
    worse = [text.replace("dort", "hier") if number % 2 else text for number, text in enumerate(references)]
    scores, drawn, signature = bootstrap_bleu([references, worse], references)
    assert scores[0] == pytest.approx(100.0)
    assert drawn.shape == (2, 1000)
    assert "tok:13a" in signature
    assert drawn[1].mean() == pytest.approx(scores[1], abs=3)
    same = compare_bleu(worse, worse, references)["change"]
    assert (same["value"], same["low"], same["high"]) == (0.0, 0.0, 0.0)
    assert bootstrap_interval(1.0, np.zeros(0)) == {"value": 1.0, "low": 1.0, "high": 1.0}
