"""Attacks on translators as jobs: numbers, records, resume, verify, reports, and what is refused."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import stockade as st
from stockade.core.errors import DataError, ModelError, OptionError, ResourceMissing, RunError
from stockade.models.translation.bleu import compare_bleu
from stockade.workflows.translation.result import TranslationResult
from tests.toy_translators import LogitTranslator, TableTranslator

LOGITS = {
    "a": {"ein": 9.0},
    "the": {"der": 9.0},
    "red": {"roter": 4.0, "Hund": 1.0},
    "house": {"Haus": 3.0, "Hund": 2.0},
    "dog": {"Hund": 3.0, "Haus": 1.0},
    "hound": {"Hund": 3.0},
    "tree": {"Baum": 5.0},
    "sleeps": {"schläft": 5.0},
    "stands": {"steht": 9.0},
    "there": {"dort": 9.0},
}
PAIRS = [
    ("a red house stands there", "ein roter Haus steht dort"),
    ("the house stands there", "der Haus steht dort"),
    ("a tree sleeps there", "ein Baum schläft dort"),
    ("the red tree stands there", "der roter Baum steht dort"),
    ("the dog sleeps there", "der Hund schläft dort"),
    ("…", "…"),
]
ATTACKS = ["mt-keyword:keyword=Hund", "mt-typo@full"]


def translator(**options: Any) -> LogitTranslator:
    return LogitTranslator(LOGITS, **options)


def attack(out: Path | None = None, model: Any = None, **options: Any) -> TranslationResult:
    settings = {"similarity": False, **options}
    result = st.attack(model or translator(), PAIRS, settings.pop("attacks", ATTACKS), out=out, **settings)
    assert isinstance(result, TranslationResult)
    return result


def rows(result: TranslationResult) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "similarity"} for row in result.rows()]


def test_what_a_keyword_attack_reports() -> None:
    result = attack(attacks="mt-keyword:keyword=Hund")
    by_id = {record.id: record for record in result.records()}
    assert {number: record.status for number, record in by_id.items()} == {
        "0": "success",
        "1": "success",
        "2": "success",
        "3": "success",
        "4": "skipped",  # the keyword is there already
        "5": "failed",  # no words
    }
    first = by_id["0"]
    assert first.adversarial in ("a red dog stands there", "a red hound stands there")
    assert first.original_translation == first.reference == "ein roter Haus steht dort"
    assert first.adversarial_translation == "ein roter Hund steht dort"
    assert first.keyword == "Hund"
    assert [edit.before for edit in first.edits] == ["house"]
    numbers = result.summary["attacks"]["mt-keyword"]
    assert (numbers["n"], numbers["attacked"], numbers["skipped"], numbers["errors"]) == (6, 5, 1, 0)
    assert numbers["success_rate"]["value"] == 4 / 5
    assert numbers["changed"] == 4
    assert numbers["mean_changed_words"] == 1.0


def test_bleu_is_sacrebleus_over_all_attacked_sentences() -> None:
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    result = attack(attacks="mt-keyword:keyword=Hund")
    records = [record for record in result.records() if record.status in ("success", "failed")]
    references = [[record.reference for record in records]]
    after = [record.adversarial_translation or record.original_translation or "" for record in records]
    numbers = result.summary["attacks"]["mt-keyword"]
    before = [record.original_translation or "" for record in records]
    assert numbers["bleu"]["before"]["value"] == pytest.approx(BLEU().corpus_score(before, references).score, abs=1e-3)
    assert numbers["bleu"]["before"]["value"] > 90
    assert numbers["bleu"]["after"]["value"] == pytest.approx(BLEU().corpus_score(after, references).score, abs=1e-3)
    assert numbers["chrf"]["after"]["value"] == pytest.approx(CHRF().corpus_score(after, references).score, abs=1e-3)
    assert "case:mixed" in numbers["bleu"]["signature"]
    assert "case:lc" in numbers["bleu_lowercase"]["signature"]
    change = numbers["bleu"]["change"]
    assert change["low"] <= change["value"] <= change["high"] <= 0


def test_the_bootstrap_smooths_as_sacrebleu_does() -> None:
    """No sentence has a 4-gram in common with its reference: without smoothing every sample would have BLEU 0."""
    references = ["a b c d e", "f g h i j", "k l m n o"]
    before, after = ["a b c x e", "f g h x j", "k l m x o"], ["a b x d e", "x g x i j", "k l x n x"]
    change = compare_bleu(before, after, references)
    for side in (change["before"], change["after"], change["change"]):
        assert side["low"] <= side["value"] <= side["high"]
    assert change["after"]["low"] > 0
    assert change["change"]["high"] < 0


@pytest.mark.parametrize("concurrency", [1, 3, 64])
def test_results_are_the_same_for_every_concurrency(concurrency: int) -> None:
    assert rows(attack(concurrency=concurrency)) == rows(attack())


class Interrupted(LogitTranslator):
    """Stops the job after so many calls, as Ctrl-C would."""

    def __init__(self, calls: int) -> None:
        super().__init__(LOGITS)
        self.calls = calls

    def greedy_steps(self, sources: Any, wanted: Any) -> Any:
        self.calls -= 1
        if self.calls == 0:
            raise KeyboardInterrupt
        return super().greedy_steps(sources, wanted)


@pytest.mark.parametrize("calls", [3, 6, 9, 14])
def test_an_interrupted_job_is_resumed_to_the_same_results(tmp_path: Path, calls: int) -> None:
    out = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        attack(out, Interrupted(calls), concurrency=1)
    if (out / "run.sqlite").exists():
        assert not st.load(out).complete
    resumed = st.resume(out, model=Interrupted(10**9), data=PAIRS)
    whole = attack()
    assert resumed.complete
    assert sorted(map(str, rows(resumed))) == sorted(map(str, rows(whole)))
    assert (
        resumed.summary["attacks"]["mt-keyword"]["success_rate"]
        == whole.summary["attacks"]["mt-keyword"]["success_rate"]
    )


def test_what_is_finished_is_not_attacked_again(tmp_path: Path) -> None:
    out = tmp_path / "run"
    attack(out)
    again = translator()
    st.resume(out, model=again, data=PAIRS)
    assert [str(source.text) for source in again.asked] == [
        "a red house stands there"
    ]  # it is asked whether it answers


def test_a_sentence_that_was_not_changed_counts_with_its_translation() -> None:
    numbers = attack(attacks="mt-keyword:keyword=xylophon,words=1").summary["attacks"]["mt-keyword"]
    assert (numbers["attacked"], numbers["succeeded"], numbers["changed"]) == (6, 0, 0)
    assert numbers["bleu"]["after"] == numbers["bleu"]["before"]
    assert numbers["bleu"]["change"] == {"value": 0.0, "low": 0.0, "high": 0.0}


def test_another_model_cannot_resume(tmp_path: Path) -> None:
    out = tmp_path / "run"
    attack(out)
    with pytest.raises(RunError):
        st.resume(out, model=LogitTranslator({"a": {"ein": 9.0}}), data=PAIRS)


def test_verify_asks_the_model_again(tmp_path: Path) -> None:
    result = attack(tmp_path / "run")
    verification = result.verify(translator())
    assert verification.holds, verification
    assert verification.checked == 12
    other = LogitTranslator({**LOGITS, "dog": {"Katze": 9.0}, "hound": {"Katze": 9.0}})
    problems = result.verify(other).problems
    assert "the model is not the one that was attacked: its fingerprint differs" in problems
    assert any("recorded" in problem for problem in problems)
    assert any("the original was translated as" in problem for problem in problems)


def test_verify_notices_a_success_that_is_none(tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = attack(out)
    document = dict(result.store.get("mt-keyword", "0") or {})
    result.store.replace("mt-keyword", [("0", {**document, "keyword": "Baum"})])
    result.store.replace("mt-keyword", [("1", {**dict(result.store.get("mt-keyword", "1") or {}), "edits": []})])
    problems = st.load(out).verify(translator()).problems
    assert "mt-keyword, example 0: the recorded translation does not reach the goal" in problems
    assert any("edits do not lead" in problem for problem in problems)


def test_reports_show_the_source_both_translations_and_the_signature() -> None:
    document = attack().document()
    page, text = document.to_html(), document.to_markdown()
    for wanted in ("ein roter", "keyword Hund", "reference", "tok:13a", "4 of 5 translations are as wanted"):
        assert wanted in page
        assert wanted in text
    assert document.data["attacks"]["mt-keyword"]["succeeded"] == 4  # type: ignore[index]


def test_rows_can_be_exported(tmp_path: Path) -> None:
    from stockade.experiment.export import export_to

    result = attack()
    for format in ("csv", "jsonl", "parquet"):
        assert export_to(result.rows(), format, tmp_path / f"rows.{format}", result.layout) == 12
    with (tmp_path / "rows.csv").open(encoding="utf-8", newline="") as stream:
        first = next(csv.DictReader(stream))
    assert first["keyword"] == "Hund"
    assert json.loads(first["edits"])[0]["op"] == "replace"


def test_similarity_of_changed_sources_is_measured() -> None:
    result = attack(similarity=True, attacks="mt-typo@full", limit=2)
    for record in result.records():
        assert record.adversarial is None or 0.0 < (record.similarity or 0.0) <= 1.0
    assert result.complete


def test_keywords_are_drawn_from_all_references_and_by_the_seed() -> None:
    first = attack(attacks="mt-keyword", seed=1)
    keywords = {record.id: record.keyword for record in first.records() if record.keyword}
    words = {word for _, target in PAIRS for word in target.split()}
    assert set(keywords.values()) <= words
    for record in first.records():
        if record.keyword:
            assert record.keyword not in record.reference.split()
            assert record.keyword not in (record.original_translation or "").split()
    again = attack(attacks="mt-keyword", seed=1, limit=3)
    for record in again.records():
        assert keywords.get(record.id) == record.keyword


def test_a_sentence_that_the_model_fails_on_is_recorded_and_the_others_go_on() -> None:
    victim = TableTranslator({"a": "ein", "tree": "Baum"}, poison="red")
    result = attack(model=victim, attacks="mt-typo@full")
    statuses = {record.id: record.status for record in result.records()}
    assert statuses["0"] == statuses["3"] == "error"
    assert statuses["2"] in ("success", "failed")
    assert any("2 sentences ended in an error" in warning for warning in result.summary["warnings"])


def test_sentences_without_a_word_to_misspell_are_counted_and_warned_about() -> None:
    """Of the six sentences only "…" has no letters to shuffle; "qqq" and "zzz" have no natural typos."""
    shuffled = attack(attacks="mt-typo@full").summary
    assert shuffled["attacks"]["mt-typo@full"]["untried"] == 1
    rare = st.attack(translator(), [("qqq zzz", "x"), ("the qqq", "y")], "mt-typo", similarity=False).summary
    assert rare["attacks"]["mt-typo"]["untried"] == 1
    assert any(
        "had nothing to try on 1 of 2 sentences (mostly: no word can be misspelled" in w for w in rare["warnings"]
    )


def test_a_black_box_is_warned_about() -> None:
    result = attack(model=TableTranslator({"a": "ein"}), attacks="mt-keyword:keyword=ein,sample=5,most=5", limit=2)
    assert any("shows no logits" in warning for warning in result.summary["warnings"])


def predict(texts: Sequence[str]) -> list[list[float]]:
    return [[0.2, 0.8] for _ in texts]


predict.labels = ["no", "yes"]  # type: ignore[attr-defined]


def test_attacks_models_and_data_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(OptionError, match="mt-typo attacks translators and pwws classifiers"):
        st.attack(translator(), PAIRS, ["mt-typo", "pwws"])
    with pytest.raises(ModelError, match=r"builtin:sentiment-cnn is a classifier, and these attacks are for transl"):
        st.attack("builtin:sentiment-cnn", "builtin:reviews", "mt-typo")
    with pytest.raises(ModelError, match="answered with a list; expected a string per text"):
        st.attack(predict, PAIRS, "mt-typo")
    with pytest.raises(ModelError, match="is a translator, and pwws attacks classifiers"):
        st.attack(translator(), PAIRS, "pwws")
    with pytest.raises(OptionError, match="mt-typo attacks translators, and this job is about classifiers"):
        st.evaluate(predict, [("a dog", "yes")], "mt-typo")
    with pytest.raises(OptionError, match="--defense is for classifiers"):
        st.attack(translator(), PAIRS, "mt-typo", defenses="ranmask")
    with pytest.raises(OptionError, match="--targeted is for classifiers"):
        st.attack(translator(), PAIRS, "mt-typo", targeted="yes")


def test_a_missing_side_is_named(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("source,target\na dog,ein Hund\na cat,\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"pairs\.csv.*target"):
        st.attack(translator(), str(path), "mt-typo")


def test_without_sacrebleu_one_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import stockade.models.translation.bleu as bleu

    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(bleu, "import_module", missing)
    with pytest.raises(ResourceMissing, match=r"pip install 'stockade\[mt\]'"):
        st.attack(translator(), PAIRS, "mt-typo")


def test_a_language_without_typos_ends_the_job_with_one_sentence() -> None:
    with pytest.raises(OptionError, match="no list of natural typos for the language de"):
        st.attack(translator(), [{"de": "ein Hund", "en": "a dog"}], "mt-typo", similarity=False)
